//! The current state of runs and steps.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{StepOutcome, TaskRef};

/// The id of a run. Ids are time-ordered, so they sort in the order of creation.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// Generates a new id.
    #[expect(clippy::new_without_default, reason = "two of them are never the same")]
    pub fn new() -> Self {
        RunId(uuid::Uuid::now_v7().to_string())
    }

    /// Wraps an existing id.
    pub fn known(text: impl Into<String>) -> Self {
        RunId(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the last 8 characters. They tell runs apart; the start of the id is the time.
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

/// The kind of a run: which crate carries it out, and which events it has besides those of all runs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// Prompts of a person to an agent, and its answers.
    Conversation,
    /// The steps of a workflow.
    Workflow,
    /// The review of a change.
    Review,
    /// The tasks of a plan.
    Plan,
    /// A task that a GitHub event started.
    Task,
}

impl RunKind {
    pub const ALL: &[RunKind] =
        &[RunKind::Conversation, RunKind::Workflow, RunKind::Review, RunKind::Plan, RunKind::Task];

    /// The name used in events and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            RunKind::Conversation => "conversation",
            RunKind::Workflow => "workflow",
            RunKind::Review => "review",
            RunKind::Plan => "plan",
            RunKind::Task => "task",
        }
    }

    /// Returns the kind with this name.
    pub fn parse(name: &str) -> Option<RunKind> {
        RunKind::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for RunKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The status of a run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Waiting for a worker.
    Queued,
    /// Held by a worker.
    Running,
    /// Paused by a user.
    Paused,
    /// Waiting for a decision by a person.
    Waiting,
    /// Done: tasks, reviews and checks agree.
    Completed,
    /// Unable to continue.
    Failed,
    /// Ended by a user.
    Cancelled,
}

impl RunStatus {
    /// All statuses.
    pub const ALL: &[RunStatus] = &[
        RunStatus::Queued,
        RunStatus::Running,
        RunStatus::Paused,
        RunStatus::Waiting,
        RunStatus::Completed,
        RunStatus::Failed,
        RunStatus::Cancelled,
    ];

    /// The name used in JSON and in the database.
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

    /// Returns true if the run has ended. A failed run can still be resumed, and a failed or
    /// cancelled one retried.
    pub fn is_over(self) -> bool {
        matches!(self, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A pending request to a run that a worker holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStopRequest {
    /// Pause after the current step.
    Pause,
    /// Stop now.
    Cancel,
}

/// The limits of a run; `None` means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// The maximum cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The maximum number of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The maximum working time in milliseconds; waiting does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// The resources used by a step or run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunUsage {
    /// The cost in millionths of a US dollar, as far as prices are known. Integers keep sums exact.
    #[serde(default)]
    pub cost_micro_usd: u64,
    /// True if part of the usage has no known price.
    #[serde(default)]
    pub unpriced: bool,
    /// The number of input tokens.
    #[serde(default)]
    pub input_tokens: u64,
    /// The number of output tokens.
    #[serde(default)]
    pub output_tokens: u64,
    /// The working time in milliseconds.
    #[serde(default)]
    pub time_ms: u64,
}

impl RunUsage {
    /// Returns the cost in US dollars.
    pub fn cost_usd(&self) -> f64 {
        self.cost_micro_usd as f64 / 1e6
    }

    /// Returns the sum of input and output tokens.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, more: RunUsage) -> RunUsage {
        RunUsage {
            cost_micro_usd: self.cost_micro_usd.saturating_add(more.cost_micro_usd),
            unpriced: self.unpriced || more.unpriced,
            input_tokens: self.input_tokens.saturating_add(more.input_tokens),
            output_tokens: self.output_tokens.saturating_add(more.output_tokens),
            time_ms: self.time_ms.saturating_add(more.time_ms),
        }
    }
}

/// The current state of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The id of the run.
    pub id: RunId,
    /// The driver the run is for, for instance `plan`.
    pub kind: String,
    /// The name shown to people.
    pub name: String,
    /// The repository or folder the run works in.
    pub workspace: String,
    /// Only workers with all of these labels may claim the run.
    pub labels: BTreeSet<String>,
    /// The priority in the queue: larger is earlier.
    pub priority: i32,
    /// The status of the run.
    pub status: RunStatus,
    /// The reason for the status, if it is not obvious.
    pub reason: Option<String>,
    /// The choices of the person the run waits for.
    pub choices: Vec<String>,
    /// A pending request to pause or cancel the run.
    pub wish: Option<RunStopRequest>,
    /// The number of events so far.
    pub seq: u64,
    /// The fencing token of the last lease; 0 before the first.
    pub token: u64,
    /// The worker that holds the run.
    pub worker: Option<String>,
    /// The earliest time the run may be claimed again, in milliseconds since 1970; 0 for at once.
    pub not_before_ms: u64,
    /// The limits of the run.
    pub limits: Limits,
    /// The resources used so far.
    pub spent: RunUsage,
    /// The number of steps so far.
    pub steps: u32,
    /// The number of the step in progress.
    pub open_step: Option<u32>,
    /// The worktree the run works in.
    pub worktree: Option<JournalWorktree>,
    /// The time the run was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// The time the run was first started, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// The time the run ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// The time of the last event, in milliseconds since 1970.
    pub updated_ms: u64,
    /// The request, in the driver's own format.
    pub request: Value,
    /// True if the process that created the run also carries it out. Such a run is never queued and
    /// has no lease: see [`Journal::append_attended`](crate::Journal::append_attended).
    #[serde(default)]
    pub attended: bool,
}

/// The worktree of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalWorktree {
    /// The path of the worktree.
    pub path: String,
    /// The branch of the worktree.
    pub branch: String,
    /// The branch the worktree is based on.
    pub base_branch: String,
    /// The commit the worktree is based on.
    pub base: String,
}

/// The status of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// In progress.
    Running,
    /// Finished, with an outcome.
    Finished,
    /// Interrupted, because its worker disappeared or the run stopped.
    Interrupted,
}

/// The current state of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The run the step belongs to.
    pub run: RunId,
    /// The number of the step in the run, from 1.
    pub number: u32,
    /// `implementation`, `verification`, `review` and so on.
    pub kind: String,
    /// The task the step is about.
    pub task: Option<TaskRef>,
    /// The attempt at this task, from 1.
    pub attempt: u32,
    /// The iteration of the loop, from 1.
    pub iteration: u32,
    /// The status of the step.
    pub status: StepStatus,
    /// The outcome of a finished step.
    pub outcome: Option<StepOutcome>,
    /// The error, or the decision that was made.
    pub reason: Option<String>,
    /// The fencing token of the lease under which the step was started.
    pub token: u64,
    /// The worker that started the step.
    pub worker: Option<String>,
    /// The commit the step started on.
    pub head_before: Option<String>,
    /// The commit the step ended on.
    pub head_after: Option<String>,
    /// The resources the step used.
    pub spent: RunUsage,
    /// The time the step started, in milliseconds since 1970.
    pub started_ms: u64,
    /// The time the step ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// Further details, in the driver's own format.
    pub detail: Value,
    /// The result, in the driver's own format.
    pub result: Value,
}
