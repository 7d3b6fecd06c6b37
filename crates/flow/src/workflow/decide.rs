//! How the outcome of a step is found: reported by the agent, or computed by the engine.

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentRole, Outcome, StepId};

/// How the outcome of a step is found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decide {
    /// The agent says it.
    #[default]
    Reported,
    /// Computed from what a review has recorded.
    Gate(Gate),
    /// Computed from how sure the agent is.
    Confidence(ConfidenceLoop),
    /// Computed from parameters and state.
    Cases(Cases),
}

/// A gate: it lets a run on only if what was recorded says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// What is reviewed, for banners: `Plan completeness`.
    pub name: String,
    /// The steps during which items are recorded. Where `next` leads on `fail` is the step that repairs.
    pub reviews: Vec<StepId>,
    /// Who repairs.
    #[serde(default)]
    pub fix: Fix,
    /// The least severity that blocks in each iteration; the last holds from there on.
    #[serde(default = "schedule", skip_serializing_if = "is_usual_schedule")]
    pub schedule: Vec<Severity>,
    /// After how many failed iterations the run stops for a person; by default the length of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Declared checks that have to pass, in every iteration and whatever the schedule says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// First pillar: what the reviewer is told about where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub banner: Option<String>,
    /// Second pillar: what nobody may do before the gate is passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Third pillar: how the review after a repair is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverify: Option<Reverify>,
    /// What is said when it is passed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pass_message: String,
}

/// Who repairs what a review has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fix {
    /// The agent that asks for steps.
    #[default]
    Own,
    /// A sub-agent of this role; the agent that asks for steps neither reads nor sums up the findings.
    Agent(AgentRole),
}

/// How the review after a repair is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reverify {
    /// Every item is open again, and the reviewer does not see what the last one found.
    Fresh,
    /// Only what failed is open again.
    Targeted,
}

/// How bad it is if an item fails.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Severity {
    /// Would be nice.
    Could,
    /// Ought to hold.
    Should,
    /// Has to hold.
    Must,
}

/// How sure somebody is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Only looking round yet.
    Exploring,
    /// A guess.
    Low,
    /// Likely.
    Medium,
    /// Nearly sure.
    High,
    /// Sure.
    Certain,
}

/// A step that is gone through again until the agent is sure enough: `iterate` until then, and `ok`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfidenceLoop {
    /// How sure is sure enough.
    pub until: Confidence,
    /// How often the step is gone through at most; then the run goes on with `ok`, and says so.
    pub max: u32,
    /// Questions of fact from which the engine computes how sure it is. Without any, the agent says it.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub questions: IndexMap<String, ConfidenceQuestion>,
    /// The least sum of answers (yes 1, partial ½, no 0) for each level. Below all of them it is `exploring`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub levels: IndexMap<Confidence, f64>,
}

/// A question of fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfidenceQuestion {
    /// The question.
    pub ask: String,
    /// Whether `partial` is an answer.
    #[serde(default = "yes")]
    pub partial: bool,
}

fn yes() -> bool {
    true
}

/// Outcomes by condition; the first that holds counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cases {
    /// The conditions, in order.
    pub when: Vec<Case>,
    /// The outcome if none holds.
    #[serde(default = "ok")]
    pub otherwise: Outcome,
}

fn ok() -> Outcome {
    Outcome::Ok
}

/// A condition and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// An expression over parameters and state, such as `mode == "quick"`.
    #[serde(rename = "if")]
    pub condition: String,
    /// The outcome if it holds.
    pub outcome: Outcome,
}

/// How often a step may be gone through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// How often at most.
    pub max: u32,
    /// The outcome that the last time has, whatever is reported; without one the run stops for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_limit: Option<Outcome>,
}

/// All severities for three iterations, then `MUST` and `SHOULD`, then only `MUST`.
pub(crate) fn schedule() -> Vec<Severity> {
    use Severity::{Could, Must, Should};
    vec![Could, Could, Could, Should, Must]
}

fn is_usual_schedule(given: &Vec<Severity>) -> bool {
    *given == schedule()
}

impl Decide {
    /// Whether the agent says it.
    pub fn is_reported(&self) -> bool {
        matches!(self, Decide::Reported)
    }

    /// The gate, if it is one.
    pub fn as_gate(&self) -> Option<&Gate> {
        match self {
            Decide::Gate(gate) => Some(gate),
            Decide::Reported | Decide::Confidence(_) | Decide::Cases(_) => None,
        }
    }
}

impl Default for Gate {
    /// A gate with the usual schedule, and without name, reviews or pillars.
    fn default() -> Self {
        Gate {
            name: String::new(),
            reviews: Vec::new(),
            fix: Fix::Own,
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
    /// After how many failed iterations the run stops for a person.
    pub fn limit(&self) -> u32 {
        self.limit.unwrap_or(self.schedule.len() as u32).max(1)
    }

    /// The least severity that blocks in an iteration, which starts at 1.
    pub fn blocking(&self, iteration: u32) -> Severity {
        let at = (iteration.max(1) as usize - 1).min(self.schedule.len().saturating_sub(1));
        self.schedule.get(at).copied().unwrap_or(Severity::Could)
    }
}

impl Cases {
    /// The outcomes, each once, in the order in which they are tried.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let mut all = Vec::new();
        for outcome in self.when.iter().map(|case| &case.outcome).chain([&self.otherwise]) {
            if !all.contains(outcome) {
                all.push(outcome.clone());
            }
        }
        all
    }
}

impl Severity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Could => "COULD",
            Severity::Should => "SHOULD",
            Severity::Must => "MUST",
        }
    }

    /// Reads the word, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        [Severity::Could, Severity::Should, Severity::Must]
            .into_iter()
            .find(|severity| severity.as_str().eq_ignore_ascii_case(word.trim()))
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Confidence {
    /// All levels, from the least to the most.
    pub const ALL: [Confidence; 5] = [
        Confidence::Exploring,
        Confidence::Low,
        Confidence::Medium,
        Confidence::High,
        Confidence::Certain,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Confidence::Exploring => "exploring",
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
            Confidence::Certain => "certain",
        }
    }

    /// Reads the word, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        Confidence::ALL.into_iter().find(|level| level.as_str().eq_ignore_ascii_case(word.trim()))
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
