//! Runs and steps as they are now.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{StepOutcome, TaskRef};

/// The id of a run: time-ordered, so that ids sort as runs were made.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// A new one.
    #[expect(clippy::new_without_default, reason = "two of them are never the same")]
    pub fn new() -> Self {
        RunId(uuid::Uuid::now_v7().to_string())
    }

    /// One that somebody wrote down.
    pub fn known(text: impl Into<String>) -> Self {
        RunId(text.into())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The end of it, which tells runs apart: the start is the time.
    pub fn short(&self) -> &str {
        let start = self.0.len().saturating_sub(8);
        self.0.get(start..).unwrap_or(&self.0)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far a run is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It waits for a worker.
    Queued,
    /// A worker has it.
    Running,
    /// Somebody paused it.
    Paused,
    /// It waits for a person.
    Waiting,
    /// It is done, and everything agrees.
    Completed,
    /// It cannot go on.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

impl RunStatus {
    /// All of them.
    pub const ALL: &[RunStatus] = &[
        RunStatus::Queued,
        RunStatus::Running,
        RunStatus::Paused,
        RunStatus::Waiting,
        RunStatus::Completed,
        RunStatus::Failed,
        RunStatus::Cancelled,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Queued => "queued",
            RunStatus::Running => "running",
            RunStatus::Paused => "paused",
            RunStatus::Waiting => "waiting",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more happens by itself or by resuming.
    pub fn is_over(self) -> bool {
        matches!(self, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What somebody wants of a run that a worker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// To pause after this step.
    Pause,
    /// To end now.
    Cancel,
}

/// What a run may use; nothing said is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Most US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Most tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Longest time at work, in milliseconds; waiting does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Dollars, as far as prices are known, in millionths: sums of them are exact.
    #[serde(default)]
    pub cost_micro_usd: u64,
    /// Whether something was used whose price nobody knows.
    #[serde(default)]
    pub unpriced: bool,
    /// Tokens in.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens out.
    #[serde(default)]
    pub output_tokens: u64,
    /// Time at work, in milliseconds.
    #[serde(default)]
    pub time_ms: u64,
}

impl Spent {
    /// Dollars.
    pub fn cost_usd(&self) -> f64 {
        self.cost_micro_usd as f64 / 1e6
    }

    /// All tokens.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// With something more.
    #[must_use]
    pub fn plus(self, more: Spent) -> Spent {
        Spent {
            cost_micro_usd: self.cost_micro_usd.saturating_add(more.cost_micro_usd),
            unpriced: self.unpriced || more.unpriced,
            input_tokens: self.input_tokens.saturating_add(more.input_tokens),
            output_tokens: self.output_tokens.saturating_add(more.output_tokens),
            time_ms: self.time_ms.saturating_add(more.time_ms),
        }
    }
}

/// A run as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Which driver it is for.
    pub kind: String,
    /// A name that people know it by.
    pub name: String,
    /// Where it works.
    pub workspace: String,
    /// What a worker has to have to take it.
    pub labels: BTreeSet<String>,
    /// What comes first in the queue: larger is earlier.
    pub priority: i32,
    /// How far it is.
    pub status: RunStatus,
    /// Why it is so, if it is not obvious.
    pub reason: Option<String>,
    /// What can be done, if it waits for a person.
    pub choices: Vec<String>,
    /// What somebody wants of it.
    pub wish: Option<Wish>,
    /// Events so far.
    pub seq: u64,
    /// The fencing token of the last lease; 0 before the first.
    pub token: u64,
    /// Who has it.
    pub worker: Option<String>,
    /// When it may be taken again, in milliseconds since 1970; 0 for at once.
    pub not_before_ms: u64,
    /// What it may use.
    pub limits: Limits,
    /// What it has used.
    pub spent: Spent,
    /// Steps so far.
    pub steps: u32,
    /// The step that is under way.
    pub open_step: Option<u32>,
    /// Where it works.
    pub worktree: Option<Worktree>,
    /// When it was made.
    pub created_ms: u64,
    /// When it began.
    pub started_ms: Option<u64>,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// When something last happened.
    pub updated_ms: u64,
    /// What the driver was asked for.
    pub request: Value,
}

/// The place that a run works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worktree {
    /// Where.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// The branch that it began on.
    pub base_branch: String,
    /// The commit that it began on.
    pub base: String,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Under way.
    Running,
    /// Ended, with an outcome.
    Finished,
    /// Its worker is gone.
    Interrupted,
}

/// A step as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Its run.
    pub run: RunId,
    /// Its number, from 1.
    pub number: u32,
    /// `implementation`, `verification`, `review` and so on.
    pub kind: String,
    /// The task that it is about.
    pub task: Option<TaskRef>,
    /// Which attempt at this task, from 1.
    pub attempt: u32,
    /// Which round of the loop, from 1.
    pub iteration: u32,
    /// How far it is.
    pub status: StepStatus,
    /// How it ended.
    pub outcome: Option<StepOutcome>,
    /// What went wrong, or was decided.
    pub reason: Option<String>,
    /// The token of the lease that it was begun under.
    pub token: u64,
    /// The worker that began it.
    pub worker: Option<String>,
    /// The commit that it began on.
    pub head_before: Option<String>,
    /// The commit that it ended on.
    pub head_after: Option<String>,
    /// What it used.
    pub spent: Spent,
    /// When it began.
    pub started_ms: u64,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// What else the driver wants to know of it.
    pub detail: Value,
    /// The result.
    pub result: Value,
}
