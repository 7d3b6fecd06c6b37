//! The events of a run. Events are tagged, versioned, and never changed once written.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::memory::{FailureFix, FixOutcome};
use crate::run::{Limits, RunId, RunUsage};

/// The version of the event format.
pub const EVENT_VERSION: u32 = 1;

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The version of the event format.
    pub v: u32,
    /// The run.
    pub run: RunId,
    /// The position among the events of the run, from 1, without gaps.
    pub seq: u64,
    /// The time of the event, in milliseconds since 1970.
    pub at_ms: u64,
    /// The type of the event, and its fields.
    #[serde(flatten)]
    pub payload: Payload,
}

/// The type of an event, and its fields. Names and fields extend those of the plan loop of seed
/// 001.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Payload {
    /// A run was created and waits in the queue.
    RunCreated {
        /// The driver the run is for, for instance `plan`.
        kind: String,
        /// The name shown to people.
        name: String,
        /// The repository or folder the run works in.
        workspace: String,
        /// Only workers with all of these labels may claim the run.
        #[serde(default)]
        labels: BTreeSet<String>,
        /// The priority in the queue: larger is earlier.
        #[serde(default)]
        priority: i32,
        /// The limits of the run.
        #[serde(default)]
        limits: Limits,
        /// The request, in the driver's own format.
        request: Value,
        /// True if the process that created the run also carries it out, so that it is never queued.
        #[serde(default, skip_serializing_if = "is_false")]
        attended: bool,
    },
    /// A worker claimed the run from the queue.
    LeaseTaken {
        /// The worker.
        worker: String,
        /// The fencing token: requests with a lower token are refused.
        token: u64,
    },
    /// The worker released the run.
    LeaseReleased {
        /// The worker.
        worker: String,
        /// The worker's token.
        token: u64,
        /// The reason for the release.
        reason: String,
    },
    /// The worker did not renew its lease in time; the run is back in the queue.
    LeaseExpired {
        /// The worker.
        worker: String,
        /// The worker's token.
        token: u64,
    },
    /// The driver started or restarted the run.
    RunStarted {
        /// The worker.
        worker: String,
    },
    /// A step started.
    StepStarted {
        /// The number of the step in the run, from 1.
        step: u32,
        /// `implementation`, `verification`, `review`, `merge` and so on.
        kind: String,
        /// The task the step is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskRef>,
        /// The attempt at this task, from 1.
        attempt: u32,
        /// The iteration of the loop, from 1.
        iteration: u32,
        /// The commit the step started on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
        /// Further details, in the driver's own format.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        detail: Value,
    },
    /// A step finished.
    StepFinished {
        /// The number of the step.
        step: u32,
        /// The outcome of the step.
        outcome: StepOutcome,
        /// The error, or the decision that was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The commit the step ended on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
        /// The resources the step used; deducted from the run's budget.
        #[serde(default)]
        spent: RunUsage,
        /// The result, in the driver's own format.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        result: Value,
    },
    /// The worker disappeared while the step was in progress; the step did not finish.
    StepInterrupted {
        /// The number of the step.
        step: u32,
        /// The known reason.
        reason: String,
    },
    /// The watchdog detected that the loop may be going in circles.
    WatchdogSignal {
        /// The step after which the signal was raised.
        step: u32,
        /// `repeated_diff`, `no_progress`, `same_failure`, `malformed_output`.
        signal: String,
        /// The evidence for the signal.
        evidence: String,
    },
    /// The watchdog changed the next prompt because of a signal.
    WatchdogRewrite {
        /// The step after which the signal was raised.
        step: u32,
        /// The signal.
        signal: String,
        /// The number of rewrites so far, including this one.
        rewrite: u32,
        /// The text the next prompt begins with.
        text: String,
    },
    /// The run completed: its tasks, reviews and checks agree that the work is done.
    RunCompleted {
        /// A summary of one sentence.
        summary: String,
        /// The commit the run ended on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
    },
    /// The run failed.
    RunFailed {
        /// The reason, as `what:detail`.
        reason: String,
    },
    /// The run waits for a decision by a person.
    RunWaiting {
        /// The reason.
        reason: String,
        /// The choices the person has.
        #[serde(default)]
        choices: Vec<String>,
    },
    /// The run continues by itself later, for instance when a quota is available again. This does
    /// not count as an attempt.
    RunDeferred {
        /// The reason.
        reason: String,
        /// The time at which the run continues, in milliseconds since 1970.
        until_ms: u64,
    },
    /// A user asked the run to pause after the current step.
    PauseRequested {
        /// The user.
        by: String,
    },
    /// The run is paused.
    RunPaused {
        /// The reason.
        reason: String,
    },
    /// The run continues: after a pause, a decision or a failure it is back in the queue.
    RunResumed {
        /// The user.
        by: String,
        /// The new limits, if they change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
    },
    /// Failed tasks get their attempts back, and the run continues.
    RunRetried {
        /// The user.
        by: String,
        /// The ids of the tasks to retry; all failed tasks if empty.
        #[serde(default)]
        tasks: Vec<String>,
    },
    /// A user asked the run to stop now.
    CancelRequested {
        /// The user.
        by: String,
    },
    /// The run was cancelled.
    RunCancelled {
        /// The user who cancelled it, or another reason.
        reason: String,
    },
    /// A user added a note for the next prompt.
    Steered {
        /// The user.
        by: String,
        /// The note.
        note: String,
    },
    /// The provider of worktrees was selected.
    WorktreeProviderSelected {
        /// `git`.
        provider: String,
    },
    /// The run has a worktree.
    WorktreeCreated {
        /// The path of the worktree.
        path: String,
        /// The branch of the worktree.
        branch: String,
        /// The branch the worktree is based on.
        base_branch: String,
        /// The commit the worktree is based on.
        base: String,
        /// `created`, `adopted` or `repaired`, and what was repaired.
        how: String,
    },
    /// The worktree was removed.
    WorktreeRemoved {
        /// The path of the removed worktree.
        path: String,
    },
    /// The work was delivered.
    Delivered {
        /// `keep`, `merge`, `squash` or `branch`.
        strategy: String,
        /// The branch that now contains the work.
        branch: String,
        /// The commit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
    },
    /// The post-mortem of a run started.
    PostmortemStart {
        /// The reason.
        reason: String,
    },
    /// The post-mortem of a run ended.
    PostmortemEnd {
        /// `ok` or `failed`.
        status: String,
        /// The files that were written.
        #[serde(default)]
        files: Vec<String>,
    },
    /// Skills were discovered.
    SkillsDiscovered {
        /// The number of skills.
        count: u64,
        /// The locations they were found in.
        locations: Vec<String>,
        /// The names of the skills, as many as fit.
        names: Vec<String>,
    },
    /// Skills were selected for a step, or none was.
    SkillsSelected {
        /// The kind of step.
        step_kind: String,
        /// The label of the task in the plan.
        task_label: String,
        /// The selected skills.
        skills: Vec<SelectedSkill>,
        /// `hint`, `match` or `none`.
        strategy: String,
        /// The errors during selection.
        #[serde(default)]
        errors: Vec<String>,
    },
    /// A skill could not be loaded.
    SkillsLoadFailed {
        /// The name of the skill.
        name: String,
        /// The reason.
        error: String,
    },
    /// A skill was truncated to its budget.
    SkillsTruncated {
        /// The name of the skill.
        name: String,
        /// The budget in characters.
        max_chars: u64,
    },
    /// The plan was read. From now on the engine uses these tasks, whatever happens to the file.
    PlanRead {
        /// The digest of the file.
        digest: String,
        /// The tasks of the plan.
        tasks: Vec<TaskSeen>,
    },
    /// The tasks of the plan cannot be determined, so the agent chooses its own.
    PlanFallback {
        /// The reason.
        reason: String,
    },
    /// The plan file had been changed by another party and was restored.
    PlanRestored {
        /// The part that was restored.
        reason: String,
    },
    /// The engine changed the state of a task.
    TaskMarked {
        /// The task.
        task: TaskRef,
        /// `open`, `implemented`, `reviewed`, `failed` and so on.
        mark: String,
        /// The reason.
        reason: String,
    },
    /// A learning that later prompts are offered.
    Learned {
        /// The task the learning came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskRef>,
        /// The text of the learning.
        note: String,
    },
    /// A failure was observed. The memory holds what is known about it by now.
    FailureSeen {
        /// The repository the failure belongs to; learnings of one repository are not used in
        /// another.
        scope: String,
        /// The signature of the failure: failures with equal signatures are the same.
        signature: String,
        /// The category of the failure.
        category: String,
        /// The tool's code for this error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// The tool that reported the failure.
        tool: String,
        /// An example message, without secrets.
        example: String,
    },
    /// A fix was tried, and the checks were run again.
    FixTried {
        /// The repository the failure belongs to.
        scope: String,
        /// The signature of the failure the fix was meant for.
        signature: String,
        /// The fix.
        fix: FailureFix,
        /// The result of the checks afterwards.
        outcome: FixOutcome,
        /// The evidence for the outcome.
        reason: String,
    },
    /// An event of the run's kind, in the format of the crate that carries out runs of that kind.
    KindEvent {
        /// The name of the event within its kind.
        name: String,
        /// The data of the event.
        data: Value,
    },
    /// A driver event that has no type of its own.
    Note {
        /// The driver's name for the event.
        name: String,
        /// The data of the event.
        data: Value,
    },
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A reference to a task of a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct TaskRef {
    /// The id of the task.
    pub id: String,
    /// The text of the task.
    pub label: String,
}

/// A task and its state in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSeen {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The state of the task: `open`, `blocked`, `implemented`, `reviewed`, `manual_qa` or
    /// `failed`.
    pub mark: String,
}

/// A selected skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SelectedSkill {
    /// The name of the skill.
    pub name: String,
    /// The reason it was selected.
    pub reason: String,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// The step succeeded.
    Ok,
    /// The step did not reach its goal.
    Failed,
    /// The step requires that the work be done again.
    SentBack,
    /// The step was stopped by a user; it does not count as an attempt.
    Stopped,
}

impl StepOutcome {
    pub fn is_ok(self) -> bool {
        match self {
            StepOutcome::Ok => true,
            StepOutcome::Failed | StepOutcome::SentBack | StepOutcome::Stopped => false,
        }
    }

    /// Returns true if the step found something wrong, with the work or with itself.
    pub fn is_bad(self) -> bool {
        match self {
            StepOutcome::Failed | StepOutcome::SentBack => true,
            StepOutcome::Ok | StepOutcome::Stopped => false,
        }
    }

    /// Returns true if the step came to the result that the work has to be done again. A step that
    /// failed has no such result.
    pub fn rejects_work(self) -> bool {
        match self {
            StepOutcome::SentBack => true,
            StepOutcome::Ok | StepOutcome::Failed | StepOutcome::Stopped => false,
        }
    }

    /// Returns true if the step counts as an attempt.
    pub fn is_counted(self) -> bool {
        match self {
            StepOutcome::Ok | StepOutcome::Failed | StepOutcome::SentBack => true,
            StepOutcome::Stopped => false,
        }
    }
}

impl Payload {
    /// The `type` tag of the event.
    pub fn name(&self) -> &'static str {
        match self {
            Payload::RunCreated { .. } => "RUN_CREATED",
            Payload::LeaseTaken { .. } => "LEASE_TAKEN",
            Payload::LeaseReleased { .. } => "LEASE_RELEASED",
            Payload::LeaseExpired { .. } => "LEASE_EXPIRED",
            Payload::RunStarted { .. } => "RUN_STARTED",
            Payload::StepStarted { .. } => "STEP_STARTED",
            Payload::StepFinished { .. } => "STEP_FINISHED",
            Payload::StepInterrupted { .. } => "STEP_INTERRUPTED",
            Payload::WatchdogSignal { .. } => "WATCHDOG_SIGNAL",
            Payload::WatchdogRewrite { .. } => "WATCHDOG_REWRITE",
            Payload::RunCompleted { .. } => "RUN_COMPLETED",
            Payload::RunFailed { .. } => "RUN_FAILED",
            Payload::RunWaiting { .. } => "RUN_WAITING",
            Payload::RunDeferred { .. } => "RUN_DEFERRED",
            Payload::PauseRequested { .. } => "PAUSE_REQUESTED",
            Payload::RunPaused { .. } => "RUN_PAUSED",
            Payload::RunResumed { .. } => "RUN_RESUMED",
            Payload::RunRetried { .. } => "RUN_RETRIED",
            Payload::CancelRequested { .. } => "CANCEL_REQUESTED",
            Payload::RunCancelled { .. } => "RUN_CANCELLED",
            Payload::Steered { .. } => "STEERED",
            Payload::WorktreeProviderSelected { .. } => "WORKTREE_PROVIDER_SELECTED",
            Payload::WorktreeCreated { .. } => "WORKTREE_CREATED",
            Payload::WorktreeRemoved { .. } => "WORKTREE_REMOVED",
            Payload::Delivered { .. } => "DELIVERED",
            Payload::PostmortemStart { .. } => "POSTMORTEM_START",
            Payload::PostmortemEnd { .. } => "POSTMORTEM_END",
            Payload::SkillsDiscovered { .. } => "SKILLS_DISCOVERED",
            Payload::SkillsSelected { .. } => "SKILLS_SELECTED",
            Payload::SkillsLoadFailed { .. } => "SKILLS_LOAD_FAILED",
            Payload::SkillsTruncated { .. } => "SKILLS_TRUNCATED",
            Payload::PlanRead { .. } => "PLAN_READ",
            Payload::PlanFallback { .. } => "PLAN_FALLBACK",
            Payload::PlanRestored { .. } => "PLAN_RESTORED",
            Payload::TaskMarked { .. } => "TASK_MARKED",
            Payload::Learned { .. } => "LEARNED",
            Payload::FailureSeen { .. } => "FAILURE_SEEN",
            Payload::FixTried { .. } => "FIX_TRIED",
            Payload::KindEvent { .. } => "KIND_EVENT",
            Payload::Note { .. } => "NOTE",
        }
    }

    /// The number of the step the event starts or ends, if it does.
    pub fn step(&self) -> Option<u32> {
        match self {
            Payload::StepStarted { step, .. }
            | Payload::StepFinished { step, .. }
            | Payload::StepInterrupted { step, .. } => Some(*step),
            _ => None,
        }
    }
}
