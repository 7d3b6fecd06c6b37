//! The shapes of `rep runs … --json`, `rep replay --json` and the lines of `rep events --json`, which are the journal's
//! own events.

use repertoire_drive::plan::PlanState;
use repertoire_drive::plan::state::{TaskState, mark_word};
use repertoire_flow::plan::Mark;
use repertoire_journal::{Difference, Replayed, Run, RunId, RunStatus, Step};
use schemars::JsonSchema;
use serde::Serialize;

/// `rep runs --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunsJson {
    /// The runs, the newest first.
    pub runs: Vec<RunRow>,
    /// Where the list goes on, for `--before`; null if it does not.
    pub next: Option<u64>,
}

/// One run of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// The end of the id, which is enough to name it.
    pub short: String,
    /// A name that people know it by.
    pub name: String,
    /// Which driver it is for.
    pub kind: String,
    /// How far it is.
    pub status: RunStatus,
    /// Why it is so, if that is not obvious.
    pub reason: Option<String>,
    /// Where it works.
    pub workspace: String,
    /// Steps so far.
    pub steps: u32,
    /// How many of its tasks are done; null if it has none, or too much happened to count it here.
    pub tasks: Option<TasksDone>,
    /// Time at work, in milliseconds.
    pub time_ms: u64,
    /// Tokens.
    pub tokens: u64,
    /// Dollars, as far as prices are known.
    pub cost_usd: f64,
    /// Whether something was used whose price nobody knows.
    pub cost_is_partial: bool,
    /// Who has it.
    pub worker: Option<String>,
    /// The branch that it works on.
    pub branch: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When something last happened.
    pub updated_ms: u64,
    /// When it ended.
    pub ended_ms: Option<u64>,
}

/// How many tasks are done. Those for people are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TasksDone {
    /// Implemented or reviewed.
    pub done: usize,
    /// All of them.
    pub all: usize,
}

impl TasksDone {
    /// Of a plan loop; nothing if it has no tasks.
    pub(crate) fn of(state: &PlanState) -> Option<Self> {
        let counted = state.tasks.values().filter(|task| task.mark != Mark::ManualQa);
        let is_done = |task: &&TaskState| matches!(task.mark, Mark::Implemented | Mark::Reviewed);
        let done =
            TasksDone { done: counted.clone().filter(is_done).count(), all: counted.count() };
        (!state.tasks.is_empty()).then_some(done)
    }
}

impl RunRow {
    pub(crate) fn new(run: &Run, tasks: Option<TasksDone>) -> Self {
        RunRow {
            id: run.id.clone(),
            short: run.id.short().to_owned(),
            name: run.name.clone(),
            kind: run.kind.clone(),
            status: run.status,
            reason: run.reason.clone(),
            workspace: run.workspace.clone(),
            steps: run.steps,
            tasks,
            time_ms: run.spent.time_ms,
            tokens: run.spent.tokens(),
            cost_usd: run.spent.cost_usd(),
            cost_is_partial: run.spent.unpriced,
            worker: run.worker.clone(),
            branch: run.worktree.as_ref().map(|worktree| worktree.branch.clone()),
            created_ms: run.created_ms,
            updated_ms: run.updated_ms,
            ended_ms: run.ended_ms,
        }
    }
}

/// `rep runs show --json`, and `rep replay --at --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunJson {
    /// The run.
    pub run: Run,
    /// Its tasks, in the order of the plan.
    pub tasks: Vec<RunTask>,
    /// How many of them are done.
    pub done: Option<TasksDone>,
    /// Why the tasks of the plan cannot be told, if so.
    pub fallback: Option<String>,
    /// Its steps.
    pub steps: Vec<Step>,
    /// What people said for the next prompt.
    pub steering: Vec<String>,
    /// What the watchdog saw.
    pub watchdog: Vec<SignalJson>,
    /// What was learnt.
    pub learnings: Vec<String>,
    /// Where the work went, if it went somewhere.
    pub delivered: Option<DeliveredJson>,
    /// When the lease of its worker ends, in milliseconds since 1970.
    pub lease_until_ms: Option<u64>,
    /// What it left behind for people.
    pub files: Vec<RunFile>,
    /// What can be done next.
    pub commands: Vec<RunCommand>,
}

/// One task of a run, as the journal has it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunTask {
    /// Its id.
    pub id: String,
    /// Its words.
    pub label: String,
    /// How far it is: `open`, `blocked`, `implemented`, `reviewed`, `manual_qa` or `failed`.
    pub mark: String,
    /// Attempts that came to an end.
    pub attempts: u32,
    /// Whether it got where it is in this run.
    pub touched: bool,
}

impl RunTask {
    pub(crate) fn all(state: &PlanState) -> Vec<Self> {
        let known = state.order.iter().filter_map(|id| Some((id, state.tasks.get(id)?)));
        let task = |(id, task): (&String, &TaskState)| RunTask {
            id: id.clone(),
            label: task.label.clone(),
            mark: mark_word(task.mark).to_owned(),
            attempts: task.attempts,
            touched: task.touched,
        };
        known.map(task).collect()
    }
}

/// Something that the watchdog saw.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SignalJson {
    /// The step that it was seen after.
    pub step: u32,
    /// What it is called.
    pub signal: String,
    /// What was seen.
    pub evidence: String,
    /// Whether the next prompt began with other words because of it.
    pub rewritten: bool,
}

/// Where the work of a run went.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeliveredJson {
    /// `keep`, `merge`, `squash` or `branch`.
    pub strategy: String,
    /// The branch that has it now.
    pub branch: String,
    /// The commit.
    pub commit: Option<String>,
}

/// A file of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunFile {
    /// Where it is.
    pub path: String,
    /// How large.
    pub bytes: u64,
}

/// Something that can be done with a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunCommand {
    /// What to type.
    pub command: String,
    /// What it does.
    pub about: String,
}

/// `rep runs diff --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunDiffJson {
    /// The run.
    pub run: RunId,
    /// `branch` if it was compared now, `record` if it is what the run left behind.
    pub source: &'static str,
    /// The commit that the run began on.
    pub from: Option<String>,
    /// The commit that it is at.
    pub to: Option<String>,
    /// The files.
    pub files: Vec<ChangedFile>,
    /// Lines that came.
    pub insertions: u64,
    /// Lines that went.
    pub deletions: u64,
    /// Whether the text is not all of it.
    pub cut: bool,
    /// The diff; null with `--stat`.
    pub text: Option<String>,
}

/// What has changed in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedFile {
    /// Its path.
    pub path: String,
    /// Its path before, if it was renamed.
    pub from: Option<String>,
    /// Lines that came; null if it is no text.
    pub insertions: Option<u64>,
    /// Lines that went; null if it is no text.
    pub deletions: Option<u64>,
}

/// `rep runs prune --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PruneJson {
    /// Whether nothing was removed because it was only asked what would be.
    pub dry_run: bool,
    /// Worktrees that are gone, or would be.
    pub removed: Vec<RemovedJson>,
    /// Worktrees that stay.
    pub kept: Vec<KeptJson>,
    /// Workspaces that could not be looked at.
    pub failed: Vec<WorkspaceProblem>,
}

/// A worktree that is gone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovedJson {
    /// The run.
    pub run: String,
    /// Where it was.
    pub path: String,
    /// Its branch, which is gone as well.
    pub branch: String,
    /// Where the branch was: `git branch NAME COMMIT` brings it back.
    pub tip: Option<String>,
}

/// A worktree that stays.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeptJson {
    /// The run.
    pub run: String,
    /// Where it is.
    pub path: String,
    /// Why it stays.
    pub why: String,
}

/// A workspace that could not be looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkspaceProblem {
    /// The workspace.
    pub workspace: String,
    /// Why.
    pub why: String,
}

/// `rep replay --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReplayJson {
    /// Whether all of them are equal.
    pub equal: bool,
    /// The runs that were replayed.
    pub runs: Vec<ReplayedJson>,
}

/// A run that was replayed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReplayedJson {
    /// The run.
    pub run: RunId,
    /// Whether what is stored is what the events say.
    pub equal: bool,
    /// Events.
    pub events: u64,
    /// Steps.
    pub steps: u64,
    /// Where it is not.
    pub differences: Vec<DifferenceJson>,
}

/// Something that is stored otherwise than the events say.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DifferenceJson {
    /// What.
    pub what: String,
    /// What is stored.
    pub stored: String,
    /// What the events say.
    pub replayed: String,
}

impl ReplayedJson {
    pub(crate) fn new(run: RunId, replayed: Replayed) -> Self {
        let one = |found: Difference| DifferenceJson {
            what: found.what,
            stored: found.stored,
            replayed: found.replayed,
        };
        ReplayedJson {
            run,
            equal: replayed.differences.is_empty(),
            events: replayed.events,
            steps: replayed.steps,
            differences: replayed.differences.into_iter().map(one).collect(),
        }
    }
}
