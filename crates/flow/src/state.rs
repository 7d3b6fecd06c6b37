//! The state of a run: where it is, and what was reported, recorded and decided. [`crate::engine::advance_run`] computes the
//! next state.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::workflow::{EdgeTarget, ItemSeverity, StepId, WorkflowOutcome};

/// The version of the serialised form of [`WorkflowRunState`].
pub const STATE_VERSION: u32 = 1;

/// The id of a run.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct WorkflowRunId(String);

/// The digest of a workflow with everything it injects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct WorkflowFingerprint(String);

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowRunState {
    /// The version of this format.
    pub version: u32,
    /// The id of the run.
    pub run: WorkflowRunId,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow the run was started with; a run never continues with another one.
    pub fingerprint: WorkflowFingerprint,
    /// The status of the run.
    pub status: WorkflowRunStatus,
    /// The current step.
    pub step: StepId,
    /// The number of steps entered so far, starting at 1. It tells a repeated report from a new one.
    pub turn: u32,
    /// The number of times each step was entered.
    pub visits: BTreeMap<StepId, u32>,
    /// The number of times a person has allowed a step to exceed its bound.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub granted: BTreeMap<StepId, u32>,
    /// The parameters that have a value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
    /// The latest output of each step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<StepId, String>,
    /// The reviews, by gate.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reviews: BTreeMap<StepId, GateReview>,
    /// The digest of the report that made the run wait, so that repeating the report has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since: Option<String>,
    /// The number of times the user was asked during this visit of the step.
    #[serde(default)]
    pub asked: u32,
    /// The user's answers during this visit of the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<UserAnswer>,
    /// The decisions of people, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<PersonDecision>,
    /// The steps that were left, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<StepTransition>,
}

/// The status of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkflowRunStatus {
    /// Waiting for the agent.
    Active,
    /// Waiting for a person.
    Waiting(WaitReason),
    /// Complete.
    Done,
    /// Ended by a person.
    Aborted,
}

/// The reason why a run waits for a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// A gate has failed as often as its limit allows.
    Limit {
        /// The gate.
        gate: StepId,
        /// The items and checks that block.
        blocking: Vec<String>,
    },
    /// A loop has reached its bound.
    Bound {
        /// The step with the bound.
        step: StepId,
        /// The outcome that continues the loop; none if the step could not be carried out.
        wanted: Option<WorkflowOutcome>,
    },
    /// Questions to the user are open.
    Questions {
        /// The questions.
        questions: Vec<UserQuestion>,
    },
    /// A step could not be carried out.
    Error {
        /// The reason.
        message: String,
    },
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserQuestion {
    /// The id that the answer refers to.
    pub id: String,
    /// The question.
    pub ask: String,
    /// Two or three suggested answers; any other answer is accepted as well.
    pub options: Vec<String>,
}

/// The user's answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserAnswer {
    /// The id of the question.
    pub id: String,
    /// The question.
    pub ask: String,
    /// The answer.
    pub answer: String,
}

/// The review for a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateReview {
    /// The current iteration, starting at 1.
    pub iteration: u32,
    /// The items, in the order in which they were recorded.
    pub items: Vec<GateItem>,
    /// The verdicts of declared checks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, GateCheckResult>,
    /// Earlier iterations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<ReviewRound>,
    /// True once the gate was passed; the next visit starts a new review.
    #[serde(default)]
    pub passed: bool,
}

/// A decided iteration of a review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewRound {
    /// The number of the iteration.
    pub iteration: u32,
    /// True if the gate was passed.
    pub passed: bool,
    /// The items at that time.
    pub items: Vec<GateItem>,
    /// The checks at that time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, GateCheckResult>,
}

/// An item of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateItem {
    /// The id of the item.
    pub id: String,
    /// The part of the work that is reviewed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The condition that has to hold.
    pub check: String,
    /// The severity if the condition does not hold.
    pub severity: ItemSeverity,
    /// The verdict.
    pub status: ItemStatus,
    /// The evidence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub finding: String,
}

/// The verdict on an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ItemStatus {
    /// No verdict yet.
    Todo,
    /// The condition holds.
    Pass,
    /// The condition does not hold.
    Fail,
}

/// The result of a declared check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateCheckResult {
    /// The verdict.
    pub status: ItemStatus,
    /// The basis of the verdict.
    pub proof: CheckProof,
    /// Observations.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// The basis of a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckProof {
    /// A claim of an agent.
    Claim,
    /// The driver of the engine ran the command.
    Run {
        /// The command.
        command: String,
        /// The exit code; none if the command was killed.
        exit_code: Option<i32>,
        /// The work that the command has looked at; none if it could not be told, or changed meanwhile.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<WorkFingerprint>,
    },
}

/// The digest of the files that a check looks at. A green check proves only work with the same digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct WorkFingerprint(String);

/// A person's decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersonDecision {
    /// The turn in which it was made.
    pub turn: u32,
    /// The current step at that time.
    pub step: StepId,
    /// The choice.
    pub choice: String,
    /// The reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Failed items that were accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<String>,
}

/// A step that was left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepTransition {
    /// The turn.
    pub turn: u32,
    /// The step.
    pub step: StepId,
    /// The outcome; none if the step could not be carried out.
    pub outcome: Option<WorkflowOutcome>,
    /// The next step, or `end`.
    #[schemars(with = "String")]
    pub to: EdgeTarget,
    /// True if a bound forced the outcome instead of the report.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limited: bool,
    /// The reason why the step could not be carried out, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The digest of the report, so that repeating the report has no effect.
    pub report: String,
}

impl WorkflowRunState {
    /// The current iteration of a gate's review, starting at 1.
    pub fn review_iteration(&self, gate: &StepId) -> u32 {
        self.reviews.get(gate).map_or(1, |review| review.iteration)
    }

    /// The number of times the current step was entered.
    pub fn visit_count(&self) -> u32 {
        self.visits.get(&self.step).copied().unwrap_or(1)
    }
}

impl Default for GateReview {
    fn default() -> Self {
        GateReview {
            iteration: 1,
            items: Vec::new(),
            checks: BTreeMap::new(),
            rounds: Vec::new(),
            passed: false,
        }
    }
}

impl ItemStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            ItemStatus::Todo => "TODO",
            ItemStatus::Pass => "PASS",
            ItemStatus::Fail => "FAIL",
        }
    }

    /// Parses a status, ignoring case.
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

impl WorkflowRunId {
    pub fn new(id: impl Into<String>) -> Self {
        WorkflowRunId(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkflowRunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl WorkFingerprint {
    /// A fingerprint from a digest of the work.
    pub fn new(digest: impl Into<String>) -> Self {
        WorkFingerprint(digest.into())
    }
}

impl WorkflowFingerprint {
    /// Computes the digest of a frozen workflow.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        WorkflowFingerprint(repertoire_skill::skill::ContentDigest::hash_bytes(bytes).to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}
