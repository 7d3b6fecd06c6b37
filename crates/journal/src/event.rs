//! What can happen to a run. Events are tagged, versioned, and never changed once they are written.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::memory::{Fix, FixOutcome};
use crate::run::{Limits, RunId, Spent};

/// The version of the shape of events.
pub const EVENT_VERSION: u32 = 1;

/// Something that happened to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The version of this shape.
    pub v: u32,
    /// The run.
    pub run: RunId,
    /// The position among the events of the run, from 1, without gaps.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub payload: Payload,
}

/// What happened. Names and fields are those of the plan loop that this grew from, and more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Payload {
    /// Somebody asked for a run; it waits in the queue.
    RunCreated {
        /// Which driver it is for: `plan`, for instance.
        kind: String,
        /// A name that people know it by.
        name: String,
        /// The repository or folder that it works in.
        workspace: String,
        /// What a worker has to have to take it.
        #[serde(default)]
        labels: BTreeSet<String>,
        /// What comes first in the queue: larger is earlier.
        #[serde(default)]
        priority: i32,
        /// What it may use.
        #[serde(default)]
        limits: Limits,
        /// What the driver was asked for, in the driver's own words.
        request: Value,
    },
    /// A worker took the run from the queue.
    LeaseTaken {
        /// The worker.
        worker: String,
        /// The fencing token: whoever shows a lower one is refused.
        token: u64,
    },
    /// The worker gave it back.
    LeaseReleased {
        /// The worker.
        worker: String,
        /// Its token.
        token: u64,
        /// Why.
        reason: String,
    },
    /// The worker was not heard of in time; the run is back in the queue.
    LeaseExpired {
        /// The worker.
        worker: String,
        /// Its token.
        token: u64,
    },
    /// The driver begins, for the first time or again.
    RunStarted {
        /// The worker.
        worker: String,
    },
    /// A step begins.
    StepStarted {
        /// Its number in the run, from 1.
        step: u32,
        /// `implementation`, `verification`, `review`, `merge` and so on.
        kind: String,
        /// The task that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskRef>,
        /// Which attempt at this task, from 1.
        attempt: u32,
        /// Which round of the loop, from 1.
        iteration: u32,
        /// The commit that it begins on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
        /// What else the driver wants to know of it.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        detail: Value,
    },
    /// A step ended.
    StepFinished {
        /// Its number.
        step: u32,
        /// How.
        outcome: StepOutcome,
        /// What went wrong, or was decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The commit that it ended on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
        /// What it used; taken from the run's budget.
        #[serde(default)]
        spent: Spent,
        /// The result, in the driver's own words.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        result: Value,
    },
    /// The worker that was at a step is gone; the step did not end.
    StepInterrupted {
        /// Its number.
        step: u32,
        /// What is known.
        reason: String,
    },
    /// The loop seems to go round in circles.
    WatchdogSignal {
        /// The step that it was seen after.
        step: u32,
        /// `repeated_diff`, `no_progress`, `same_failure`, `malformed_output`.
        signal: String,
        /// What was seen.
        evidence: String,
    },
    /// The next prompt begins with other words because of that.
    WatchdogRewrite {
        /// The step that it was seen after.
        step: u32,
        /// The signal.
        signal: String,
        /// Rewrites so far, this one included.
        rewrite: u32,
        /// What the next prompt says first.
        text: String,
    },
    /// Everything agrees that the work is done.
    RunCompleted {
        /// In a sentence.
        summary: String,
        /// The commit that it ended on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
    },
    /// It cannot go on.
    RunFailed {
        /// Why, as `what:detail`.
        reason: String,
    },
    /// A person has to decide.
    RunWaiting {
        /// Why.
        reason: String,
        /// What can be done.
        #[serde(default)]
        choices: Vec<String>,
    },
    /// It goes on later by itself: an allowance is used up, for instance. This uses up no attempt.
    RunDeferred {
        /// Why.
        reason: String,
        /// When, in milliseconds since 1970.
        until_ms: u64,
    },
    /// Somebody wants it to pause after this step.
    PauseRequested {
        /// Who.
        by: String,
    },
    /// It is paused.
    RunPaused {
        /// Why.
        reason: String,
    },
    /// It goes on: after a pause, a decision or a failure it is back in the queue.
    RunResumed {
        /// Who.
        by: String,
        /// What it may use from now on, if that changes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
    },
    /// Tasks that failed get their attempts back, and the run goes on.
    RunRetried {
        /// Who.
        by: String,
        /// Which tasks; all that failed if empty.
        #[serde(default)]
        tasks: Vec<String>,
    },
    /// Somebody wants it to end now.
    CancelRequested {
        /// Who.
        by: String,
    },
    /// It was ended.
    RunCancelled {
        /// By whom or why.
        reason: String,
    },
    /// Somebody has a word for the next prompt.
    Steered {
        /// Who.
        by: String,
        /// The word.
        note: String,
    },
    /// How worktrees are made.
    WorktreeProviderSelected {
        /// `git`.
        provider: String,
    },
    /// The run has a place to work.
    WorktreeCreated {
        /// Where.
        path: String,
        /// Its branch.
        branch: String,
        /// The branch that it began on.
        base_branch: String,
        /// The commit that it began on.
        base: String,
        /// `created`, `adopted` or `repaired`, and what was mended.
        how: String,
    },
    /// The place is gone.
    WorktreeRemoved {
        /// Where it was.
        path: String,
    },
    /// The work went somewhere.
    Delivered {
        /// `keep`, `merge`, `squash` or `branch`.
        strategy: String,
        /// The branch that has it now.
        branch: String,
        /// The commit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
    },
    /// What is known of a run is being put together.
    PostmortemStart {
        /// Why.
        reason: String,
    },
    /// It is.
    PostmortemEnd {
        /// `ok` or `failed`.
        status: String,
        /// The files.
        #[serde(default)]
        files: Vec<String>,
    },
    /// Skills were looked for.
    SkillsDiscovered {
        /// How many.
        count: u64,
        /// Where.
        locations: Vec<String>,
        /// Their names, as many as fit.
        names: Vec<String>,
    },
    /// Skills were chosen for a step, or none was.
    SkillsSelected {
        /// The kind of step.
        step_kind: String,
        /// The task, as the plan says it.
        task_label: String,
        /// Those that were chosen.
        skills: Vec<SelectedSkill>,
        /// `hint`, `match` or `none`.
        strategy: String,
        /// What went wrong.
        #[serde(default)]
        errors: Vec<String>,
    },
    /// A skill could not be loaded.
    SkillsLoadFailed {
        /// The skill.
        name: String,
        /// Why.
        error: String,
    },
    /// A skill was cut to its budget.
    SkillsTruncated {
        /// The skill.
        name: String,
        /// The budget.
        max_chars: u64,
    },
    /// The plan was read: what the engine goes by from now on, whatever becomes of the file.
    PlanRead {
        /// The digest of the file.
        digest: String,
        /// Its tasks.
        tasks: Vec<TaskSeen>,
    },
    /// The tasks of the plan cannot be told, so the agent chooses.
    PlanFallback {
        /// Why.
        reason: String,
    },
    /// Somebody else had changed the plan, and it was put right.
    PlanRestored {
        /// What was put right.
        reason: String,
    },
    /// The engine changed how far a task is.
    TaskMarked {
        /// The task.
        task: TaskRef,
        /// `open`, `implemented`, `reviewed`, `failed` and so on.
        mark: String,
        /// Why.
        reason: String,
    },
    /// Something that later prompts are offered.
    Learned {
        /// The task that it came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskRef>,
        /// What.
        note: String,
    },
    /// A failure was seen. What is known of it by now is in the memory.
    FailureSeen {
        /// Which repository it is about: nothing learnt in one is used in another.
        scope: String,
        /// Its signature: two failures with the same one are the same.
        signature: String,
        /// What kind it is.
        category: String,
        /// The tool's name for this kind of error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// Which tool spoke.
        tool: String,
        /// One message, without secrets.
        example: String,
    },
    /// A fix was tried, and the checks were run again.
    FixTried {
        /// Which repository it is about.
        scope: String,
        /// The failure that it was meant for.
        signature: String,
        /// The fix.
        fix: Fix,
        /// What the checks said afterwards.
        outcome: FixOutcome,
        /// What was seen.
        reason: String,
    },
    /// Something of a driver that has no other kind.
    Note {
        /// The driver's word for it.
        name: String,
        /// What it says.
        data: Value,
    },
}

/// A task of a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct TaskRef {
    /// Its id.
    pub id: String,
    /// Its words.
    pub label: String,
}

/// A task as it stands in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSeen {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// How far it is: `open`, `blocked`, `implemented`, `reviewed`, `manual_qa` or `failed`.
    pub mark: String,
}

/// A skill that was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SelectedSkill {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// As it should.
    Ok,
    /// It did not reach what it was for.
    Failed,
    /// It says that the work has to be done again.
    SentBack,
    /// Somebody stopped it; it counts as no attempt.
    Stopped,
}

impl Payload {
    /// The tag.
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
            Payload::Note { .. } => "NOTE",
        }
    }

    /// The step that it is about.
    pub fn step(&self) -> Option<u32> {
        match self {
            Payload::StepStarted { step, .. }
            | Payload::StepFinished { step, .. }
            | Payload::StepInterrupted { step, .. } => Some(*step),
            _ => None,
        }
    }
}
