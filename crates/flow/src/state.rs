//! A run as a value: where it is, what was reported, recorded and decided. [`crate::engine::next`] makes the next one.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::workflow::{Outcome, Severity, StepId, Target};

/// The version of the shape of [`State`].
pub const STATE_VERSION: u32 = 1;

/// The name of a run.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct RunId(String);

/// The digest of a workflow with all that it injects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Fingerprint(String);

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct State {
    /// The version of this shape.
    pub version: u32,
    /// The run.
    pub run: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow that it was started with; a run never goes on with another.
    pub fingerprint: Fingerprint,
    /// Whether it goes on.
    pub status: Status,
    /// The step that it is at.
    pub step: StepId,
    /// How many steps were entered. It starts at 1, and tells a repeated report from a new one.
    pub turn: u32,
    /// How often each step was entered.
    pub visits: BTreeMap<StepId, u32>,
    /// How often a person has allowed a step once more than its bound.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub granted: BTreeMap<StepId, u32>,
    /// The parameters that have a value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
    /// What steps have handed over, the latest of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<StepId, String>,
    /// What was recorded, by gate.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reviews: BTreeMap<StepId, Review>,
    /// The digest of the report that has made the run wait, so that the same report again changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since: Option<String>,
    /// How often the user was asked during this visit.
    #[serde(default)]
    pub asked: u32,
    /// What the user has answered during this visit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// What a person has decided, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// The way so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Passage>,
}

/// Whether a run goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is the agent's turn.
    Active,
    /// It is a person's turn.
    Waiting(Waiting),
    /// It is complete.
    Done,
    /// A person has ended it.
    Aborted,
}

/// What a person is waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// A gate has failed as often as it may.
    Limit {
        /// The gate.
        gate: StepId,
        /// What blocks it.
        blocking: Vec<String>,
    },
    /// A loop was gone through as often as it may.
    Bound {
        /// The step that bounds it.
        step: StepId,
        /// The outcome that leads on in the loop; none if the step could not be carried out.
        wanted: Option<Outcome>,
    },
    /// Somebody has asked the user.
    Questions {
        /// The questions.
        questions: Vec<UserQuestion>,
    },
    /// A step could not be carried out.
    Error {
        /// Why.
        message: String,
    },
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserQuestion {
    /// Its name, by which it is answered.
    pub id: String,
    /// The question.
    pub ask: String,
    /// Two or three answers to choose from. Others are answers too.
    pub options: Vec<String>,
}

/// What the user has answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The name of the question.
    pub id: String,
    /// The question.
    pub ask: String,
    /// The answer.
    pub answer: String,
}

/// What was recorded for one gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// Which iteration this is; the first is 1.
    pub iteration: u32,
    /// The items, in the order in which they were recorded.
    pub items: Vec<Item>,
    /// The verdicts of declared checks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, CheckResult>,
    /// Earlier iterations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<Round>,
    /// Whether the gate was passed; what comes then is a new review.
    #[serde(default)]
    pub passed: bool,
}

/// One iteration that was decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Which.
    pub iteration: u32,
    /// Whether the gate was passed.
    pub passed: bool,
    /// The items as they were.
    pub items: Vec<Item>,
    /// The checks as they were.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, CheckResult>,
}

/// One thing that a review looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Item {
    /// Its name.
    pub id: String,
    /// What is looked at.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// What has to hold.
    pub check: String,
    /// How bad it is if it does not.
    pub severity: Severity,
    /// What was found.
    pub status: ItemStatus,
    /// The evidence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub finding: String,
}

/// What was found about an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ItemStatus {
    /// Nothing yet.
    Todo,
    /// It holds.
    Pass,
    /// It does not hold.
    Fail,
}

/// The verdict of a declared check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// The verdict.
    pub status: ItemStatus,
    /// How it was come by.
    pub proof: Proof,
    /// What was seen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// How a verdict was come by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Somebody says so.
    Claim,
    /// The engine's driver has run the command.
    Run {
        /// The command.
        command: String,
        /// How it ended; none if it was killed.
        exit_code: Option<i32>,
    },
}

/// What a person has decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// When: the turn.
    pub turn: u32,
    /// Where.
    pub step: StepId,
    /// What.
    pub choice: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Items that failed and were accepted as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<String>,
}

/// One step that was left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Passage {
    /// The turn.
    pub turn: u32,
    /// The step.
    pub step: StepId,
    /// How it ended; none if it could not be carried out.
    pub outcome: Option<Outcome>,
    /// Where the run went; `end` is the end.
    #[schemars(with = "String")]
    pub to: Target,
    /// Whether a bound has decided it, and not what was reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limited: bool,
    /// Why the step could not be carried out, where that is how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The digest of what was reported, so that the same report again changes nothing.
    pub report: String,
}

impl State {
    /// Which iteration a gate's review is in; the first is 1.
    pub fn iteration(&self, gate: &StepId) -> u32 {
        self.reviews.get(gate).map_or(1, |review| review.iteration)
    }

    /// How often the step that the run is at was entered.
    pub fn visit(&self) -> u32 {
        self.visits.get(&self.step).copied().unwrap_or(1)
    }
}

impl Default for Review {
    fn default() -> Self {
        Review {
            iteration: 1,
            items: Vec::new(),
            checks: BTreeMap::new(),
            rounds: Vec::new(),
            passed: false,
        }
    }
}

impl ItemStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            ItemStatus::Todo => "TODO",
            ItemStatus::Pass => "PASS",
            ItemStatus::Fail => "FAIL",
        }
    }

    /// Reads the word, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        [ItemStatus::Todo, ItemStatus::Pass, ItemStatus::Fail]
            .into_iter()
            .find(|status| status.as_str().eq_ignore_ascii_case(word.trim()))
    }
}

impl fmt::Display for ItemStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl RunId {
    /// A name that was made elsewhere.
    pub fn new(id: impl Into<String>) -> Self {
        RunId(id.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Fingerprint {
    /// The digest of the bytes of a workflow that was frozen.
    pub fn of(bytes: &[u8]) -> Self {
        Fingerprint(repertoire_skill::skill::Digest::of(bytes).to_string())
    }

    /// The digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
