//! Determining the outcome of a step: reported by the agent, or computed by the engine.

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentRole, StepId, WorkflowOutcome};

/// The way the outcome of a step is determined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decide {
    /// The agent reports it.
    #[default]
    Reported,
    /// Computed from the recorded items of a review.
    Gate(Gate),
    /// Computed from the agent's confidence.
    Confidence(ConfidenceLoop),
    /// Computed from parameters and state.
    Cases(OutcomeCases),
}

/// A gate: a run passes only if the recorded items allow it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The subject of the review, for banners: `Plan completeness`.
    pub name: String,
    /// The steps during which items are recorded. The `fail` edge in `next` leads to the step that repairs.
    pub reviews: Vec<StepId>,
    /// The agent that repairs.
    #[serde(default)]
    pub fix: RepairAgent,
    /// The lowest severity that blocks in each iteration; the last entry also applies to all later iterations.
    #[serde(default = "schedule", skip_serializing_if = "is_usual_schedule")]
    pub schedule: Vec<ItemSeverity>,
    /// The number of failed iterations after which the run stops for a person; by default the length of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Declared checks that have to pass in every iteration, whatever the schedule says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// First pillar: the banner that tells the reviewer its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub banner: Option<String>,
    /// Second pillar: actions that are forbidden until the gate is passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Third pillar: the way the review after a repair is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverify: Option<ReverifyMode>,
    /// The message when the gate is passed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pass_message: String,
}

/// The agent that repairs the findings of a review.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepairAgent {
    /// The agent that requests steps.
    #[default]
    Own,
    /// A sub-agent with this role; the agent that requests steps neither reads nor summarises the findings.
    Agent(AgentRole),
}

/// The way the review after a repair is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReverifyMode {
    /// Every item is open again, and the reviewer does not see the earlier findings.
    Fresh,
    /// Only failed items are open again.
    Targeted,
}

/// The severity of a failed item.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum ItemSeverity {
    /// Nice to have.
    Could,
    /// Recommended.
    Should,
    /// Required.
    Must,
}

/// A level of confidence.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ConfidenceLevel {
    /// Still exploring.
    Exploring,
    /// A guess.
    Low,
    /// Likely.
    Medium,
    /// Nearly certain.
    High,
    /// Certain.
    Certain,
}

/// A step that repeats until the agent is confident enough: the outcome is `iterate` until then, and `ok` afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfidenceLoop {
    /// The confidence that is required.
    pub until: ConfidenceLevel,
    /// The maximum number of visits; after that the run continues with `ok`, and the outcome is marked as limited.
    pub max: u32,
    /// Questions of fact from which the engine computes the confidence. Without any, the agent reports it.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub questions: IndexMap<String, ConfidenceQuestion>,
    /// The minimum sum of answers (yes 1, partial ½, no 0) for each level. Below all of them the level is `exploring`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub levels: IndexMap<ConfidenceLevel, f64>,
}

/// A question of fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfidenceQuestion {
    /// The question.
    pub ask: String,
    /// True if `partial` is a valid answer.
    #[serde(default = "yes")]
    pub partial: bool,
}

fn yes() -> bool {
    true
}

/// Outcomes by condition; the first condition that holds decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeCases {
    /// The conditions, in order.
    pub when: Vec<OutcomeCase>,
    /// The outcome if none holds.
    #[serde(default = "ok")]
    pub otherwise: WorkflowOutcome,
}

fn ok() -> WorkflowOutcome {
    WorkflowOutcome::Ok
}

/// A condition and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeCase {
    /// An expression over parameters and state, such as `mode == "quick"`.
    #[serde(rename = "if")]
    pub condition: String,
    /// The outcome if it holds.
    pub outcome: WorkflowOutcome,
}

/// The bound of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopBound {
    /// The maximum number of visits.
    pub max: u32,
    /// The outcome that is forced at the limit, whatever is reported; without one the run stops for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_limit: Option<WorkflowOutcome>,
}

/// The default schedule: all severities block for three iterations, then `MUST` and `SHOULD`, then only `MUST`.
pub(crate) fn schedule() -> Vec<ItemSeverity> {
    use ItemSeverity::{Could, Must, Should};
    vec![Could, Could, Could, Should, Must]
}

fn is_usual_schedule(given: &Vec<ItemSeverity>) -> bool {
    *given == schedule()
}

impl Decide {
    /// Returns true if the agent reports the outcome.
    pub fn is_reported(&self) -> bool {
        matches!(self, Decide::Reported)
    }

    pub fn as_gate(&self) -> Option<&Gate> {
        match self {
            Decide::Gate(gate) => Some(gate),
            Decide::Reported | Decide::Confidence(_) | Decide::Cases(_) => None,
        }
    }
}

impl Default for Gate {
    /// A gate with the default schedule, and without name, reviews or pillars.
    fn default() -> Self {
        Gate {
            name: String::new(),
            reviews: Vec::new(),
            fix: RepairAgent::Own,
            schedule: schedule(),
            limit: None,
            checks: Vec::new(),
            banner: None,
            stop: None,
            reverify: None,
            pass_message: String::new(),
        }
    }
}

impl Gate {
    /// The number of failed iterations after which the run stops for a person.
    pub fn iteration_limit(&self) -> u32 {
        self.limit.unwrap_or(self.schedule.len() as u32).max(1)
    }

    /// The lowest severity that blocks in an iteration; iterations start at 1.
    pub fn blocking_severity(&self, iteration: u32) -> ItemSeverity {
        let at = (iteration.max(1) as usize - 1).min(self.schedule.len().saturating_sub(1));
        self.schedule.get(at).copied().unwrap_or(ItemSeverity::Could)
    }
}

impl OutcomeCases {
    /// The outcomes, each once, in the order in which they are tried.
    pub fn distinct_outcomes(&self) -> Vec<WorkflowOutcome> {
        let mut all = Vec::new();
        for outcome in self.when.iter().map(|case| &case.outcome).chain([&self.otherwise]) {
            if !all.contains(outcome) {
                all.push(outcome.clone());
            }
        }
        all
    }
}

impl ItemSeverity {
    pub fn as_str(self) -> &'static str {
        match self {
            ItemSeverity::Could => "COULD",
            ItemSeverity::Should => "SHOULD",
            ItemSeverity::Must => "MUST",
        }
    }

    /// Parses a severity, ignoring case.
    pub fn parse(word: &str) -> Option<Self> {
        [ItemSeverity::Could, ItemSeverity::Should, ItemSeverity::Must]
            .into_iter()
            .find(|severity| severity.as_str().eq_ignore_ascii_case(word.trim()))
    }
}

impl fmt::Display for ItemSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl ConfidenceLevel {
    /// All levels, from lowest to highest.
    pub const ALL: [ConfidenceLevel; 5] = [
        ConfidenceLevel::Exploring,
        ConfidenceLevel::Low,
        ConfidenceLevel::Medium,
        ConfidenceLevel::High,
        ConfidenceLevel::Certain,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ConfidenceLevel::Exploring => "exploring",
            ConfidenceLevel::Low => "low",
            ConfidenceLevel::Medium => "medium",
            ConfidenceLevel::High => "high",
            ConfidenceLevel::Certain => "certain",
        }
    }

    /// Parses a level, ignoring case.
    pub fn parse(word: &str) -> Option<Self> {
        ConfidenceLevel::ALL
            .into_iter()
            .find(|level| level.as_str().eq_ignore_ascii_case(word.trim()))
    }
}

impl fmt::Display for ConfidenceLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
