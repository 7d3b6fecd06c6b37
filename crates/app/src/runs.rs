//! Information about runs, collected from the journal, their files and their branches.

mod diff;
mod merge;
mod older_stores;
mod retention;

use camino::Utf8Path;
use repertoire_journal::{
    DamagedRow, Event, Filter, Journal, JournalError, JournalPage, Payload, Run, RunFolder, RunId,
    RunKind, RunStatus, Step,
};
use repertoire_plan::document::TaskMark;
use repertoire_text::fs;
use schemars::JsonSchema;
use serde::Serialize;

use repertoire_plan::PlanState;
use repertoire_plan::state::{TaskState, mark_word};

pub use diff::{RunChangedFile, RunDiffError, RunDiffJson, run_diff};
pub use merge::{MergeError, RunDelivery, merge_run};
pub use older_stores::{describe_older_stores, find_older_stores};
pub use retention::{
    RemovalMode, RunEnd, RunRemovalReport, RunSelection, SafeRemovalError, apply_retention,
    force_remove_run, remove_old_runs, remove_run,
};

/// Maximum number of events read to count the tasks of a list. Runs beyond that have no count.
const EVENTS_READ_MAX: u64 = 100_000;
/// Maximum number of files listed for a run.
const FILES_MAX: usize = 10_000;

/// A run in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunListRow {
    /// The id of the run.
    pub id: RunId,
    /// The end of the id, which is enough to identify the run.
    pub short: String,
    /// The name of the run.
    pub name: String,
    /// The kind of the run: `conversation`, `workflow`, `review`, `plan` or `task`.
    pub kind: String,
    /// The status of the run.
    pub status: RunStatus,
    /// True if the process that carried out the run is gone, and nothing continues it by itself.
    pub interrupted: bool,
    /// The reason for the status, if it is not obvious.
    pub reason: Option<String>,
    /// The workspace of the run.
    pub workspace: String,
    /// The number of steps so far.
    pub steps: u32,
    /// The progress of its tasks; null if it has none, or too many events to count them here.
    pub tasks: Option<TasksDone>,
    /// Time at work, in milliseconds.
    pub time_ms: u64,
    /// The number of tokens used.
    pub tokens: u64,
    /// The cost in US dollars, as far as prices are known.
    pub cost_usd: f64,
    /// True if something without a known price was used.
    pub cost_is_partial: bool,
    /// The worker that has the run.
    pub worker: Option<String>,
    /// The branch of the run.
    pub branch: Option<String>,
    /// When the run was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When the run last changed, in milliseconds since 1970.
    pub updated_ms: u64,
    /// When the run ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
}

/// The number of completed tasks. Manual tasks are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TasksDone {
    /// Implemented or reviewed tasks.
    pub done: usize,
    /// All tasks.
    pub all: usize,
}

impl TasksDone {
    /// The progress of a plan run; `None` if it has no tasks.
    pub fn from_state(state: &PlanState) -> Option<Self> {
        let counted = state.tasks.values().filter(|task| task.mark != TaskMark::ManualQa);
        let done = counted
            .clone()
            .filter(|task| matches!(task.mark, TaskMark::Implemented | TaskMark::Reviewed));
        let tasks = TasksDone { done: done.count(), all: counted.count() };
        (!state.tasks.is_empty()).then_some(tasks)
    }
}

impl RunListRow {
    /// The row of a run. `runs` is the folder of all runs.
    pub fn new(run: &Run, runs: &Utf8Path, tasks: Option<TasksDone>) -> Self {
        RunListRow {
            id: run.id.clone(),
            short: run.id.short().to_owned(),
            name: run.name.clone(),
            kind: run.kind.clone(),
            status: run.status,
            interrupted: is_interrupted(run, runs),
            reason: run.reason.clone(),
            workspace: run.workspace.clone(),
            steps: run.steps,
            tasks,
            time_ms: run.spent.time_ms,
            tokens: run.spent.total_tokens(),
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

/// The output of `rep runs show --json` and `rep runs replay --at --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunJson {
    /// The run.
    pub run: Run,
    /// True if the process that carried out the run is gone, and nothing continues it by itself.
    pub interrupted: bool,
    /// The tasks, in the order of the plan.
    pub tasks: Vec<RunTask>,
    /// The number of completed tasks.
    pub done: Option<TasksDone>,
    /// The reason why the plan's tasks cannot be parsed, if so.
    pub fallback: Option<String>,
    /// The steps.
    pub steps: Vec<Step>,
    /// People's notes for the next prompt.
    pub steering: Vec<String>,
    /// The signals of the watchdog.
    pub watchdog: Vec<SignalJson>,
    /// The learnings of the run.
    pub learnings: Vec<String>,
    /// The delivery of the work, if it was delivered.
    pub delivered: Option<DeliveredJson>,
    /// When the worker's lease expires, in milliseconds since 1970.
    pub lease_until_ms: Option<u64>,
    /// The files that the run left for people.
    pub files: Vec<RunFile>,
    /// The commands that can be run next.
    pub commands: Vec<RunCommand>,
}

/// A task of a run, as recorded in the journal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunTask {
    /// The id of the task.
    pub id: String,
    /// The text of the task.
    pub label: String,
    /// The mark of the task: `open`, `blocked`, `implemented`, `reviewed`, `manual_qa` or `failed`.
    pub mark: String,
    /// The number of completed attempts.
    pub attempts: u32,
    /// True if the mark was set in this run.
    pub touched: bool,
}

impl RunTask {
    /// The tasks of a plan run, in the order of the plan.
    pub fn from_state(state: &PlanState) -> Vec<Self> {
        let known = state.order.iter().filter_map(|id| Some((id, state.tasks.get(id)?)));
        known.map(|(id, task)| RunTask::new(id, task)).collect()
    }

    fn new(id: &str, task: &TaskState) -> Self {
        RunTask {
            id: id.to_owned(),
            label: task.label.clone(),
            mark: mark_word(task.mark).to_owned(),
            attempts: task.attempts,
            touched: task.touched,
        }
    }
}

/// A signal of the watchdog.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SignalJson {
    /// The step after which it was raised.
    pub step: u32,
    /// The name of the signal.
    pub signal: String,
    /// The observation, as a sentence.
    pub evidence: String,
    /// True if the next prompt was rewritten because of it.
    pub rewritten: bool,
}

/// The delivery of a run's work.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeliveredJson {
    /// `keep`, `merge`, `squash` or `branch`.
    pub strategy: String,
    /// The branch that contains the work.
    pub branch: String,
    /// The commit that contains the work.
    pub commit: Option<String>,
}

/// A file of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunFile {
    /// The path of the file.
    pub path: String,
    /// The size of the file.
    pub bytes: u64,
}

/// A command that can be run for a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunCommand {
    /// The command line.
    pub command: String,
    /// The effect of the command.
    pub about: String,
}

impl RunJson {
    /// A run after these events. Parts that are not in them, such as its files, are left empty.
    pub fn of_events(run: Run, steps: Vec<Step>, events: &[Event]) -> Self {
        let state = if has_plan(&run) { PlanState::replay(events) } else { PlanState::default() };
        RunJson {
            interrupted: false,
            tasks: RunTask::from_state(&state),
            done: TasksDone::from_state(&state),
            fallback: state.fallback,
            steps,
            steering: state.steering,
            watchdog: watchdog_signals(events),
            learnings: state.learnings,
            delivered: events.iter().rev().find_map(delivery_of),
            lease_until_ms: None,
            files: Vec::new(),
            commands: Vec::new(),
            run,
        }
    }

    /// Collects everything about a run. `runs` is the folder of all runs.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be used.
    pub async fn gather(
        journal: &Journal,
        run: Run,
        runs: &Utf8Path,
    ) -> Result<Self, JournalError> {
        Ok(RunJson::gather_with_events(journal, run, runs).await?.0)
    }

    /// Like [`RunJson::gather`], with the events of the run.
    ///
    /// # Errors
    ///
    /// As [`RunJson::gather`].
    pub async fn gather_with_events(
        journal: &Journal,
        run: Run,
        runs: &Utf8Path,
    ) -> Result<(Self, Vec<Event>), JournalError> {
        let events = events_of(journal, &run.id).await?;
        let steps = journal.steps(&run.id).await?;
        let lease_until_ms = journal.lease_until(&run.id).await?;
        let files = files_of(&runs.join(run.id.as_str()));
        let interrupted = is_interrupted(&run, runs);
        let known = RunJson::of_events(run, steps, &events);
        Ok((RunJson { interrupted, lease_until_ms, files, ..known }, events))
    }
}

/// Returns true if the process that carried out a run is gone. `runs` is the folder of all runs. Only
/// the machine that has the folder of the run can tell.
pub fn is_interrupted(run: &Run, runs: &Utf8Path) -> bool {
    let folder = RunFolder::new(runs, &run.id);
    belongs_to_process(run)
        && run.status == RunStatus::Running
        && folder.path().exists()
        && !folder.is_locked()
}

/// Returns true for a run that one process carries out from its start to its end. A workflow is not
/// such a run: between two steps no process works on it.
fn belongs_to_process(run: &Run) -> bool {
    run.attended && RunKind::parse(&run.kind) != Some(RunKind::Workflow)
}

/// Returns true for runs that work through a plan.
fn has_plan(run: &Run) -> bool {
    matches!(RunKind::parse(&run.kind), Some(RunKind::Plan | RunKind::Task))
}

/// Reads all events of a run.
///
/// # Errors
///
/// Fails if the journal cannot be used.
pub async fn events_of(journal: &Journal, run: &RunId) -> Result<Vec<Event>, JournalError> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let page = journal.events(run, after, 0).await?;
        if page.is_empty() {
            return Ok(events);
        }
        events.extend(page);
    }
}

/// Rows of runs, newest first. `runs` is the folder of all runs. `events_read` is the number of events
/// read for previous rows; tasks are no longer counted beyond a limit.
///
/// # Errors
///
/// Fails if the journal cannot be used.
pub async fn rows(
    journal: &Journal,
    runs: &Utf8Path,
    filter: &Filter,
    events_read: &mut u64,
) -> Result<JournalPage<RunListRow>, JournalError> {
    let JournalPage { items: found, mut damaged, next } = journal.runs(filter).await?;
    let mut items = Vec::new();
    for run in &found {
        if has_plan(run) {
            *events_read += run.seq;
        }
        let tasks = if has_plan(run) && *events_read <= EVENTS_READ_MAX {
            count_tasks(journal, &run.id).await
        } else {
            Ok(None)
        };
        match tasks {
            Ok(tasks) => items.push(RunListRow::new(run, runs, tasks)),
            Err(error) => {
                let what = error.run_problem().ok_or(error)?;
                damaged.push(DamagedRow { id: run.id.to_string(), what });
            }
        }
    }
    Ok(JournalPage { items, damaged, next })
}

async fn count_tasks(journal: &Journal, run: &RunId) -> Result<Option<TasksDone>, JournalError> {
    let events = events_of(journal, run).await?;
    Ok(TasksDone::from_state(&PlanState::replay(&events)))
}

fn watchdog_signals(events: &[Event]) -> Vec<SignalJson> {
    let mut out: Vec<SignalJson> = Vec::new();
    for event in events {
        match &event.payload {
            Payload::WatchdogSignal { step, signal, evidence } => out.push(SignalJson {
                step: *step,
                signal: signal.clone(),
                evidence: evidence.clone(),
                rewritten: false,
            }),
            Payload::WatchdogRewrite { step, signal, .. } => {
                let seen = out.iter_mut().rev().find(|seen| seen.step == *step);
                if let Some(seen) = seen.filter(|seen| seen.signal == *signal) {
                    seen.rewritten = true;
                }
            }
            _ => {}
        }
    }
    out
}

fn delivery_of(event: &Event) -> Option<DeliveredJson> {
    let Payload::Delivered { strategy, branch, commit } = &event.payload else { return None };
    Some(DeliveredJson {
        strategy: strategy.clone(),
        branch: branch.clone(),
        commit: commit.clone(),
    })
}

/// The files of a run; empty if its folder does not exist.
fn files_of(folder: &Utf8Path) -> Vec<RunFile> {
    let Ok(entries) = fs::list_entries(folder) else { return Vec::new() };
    let names = entries.take(FILES_MAX).filter_map(|entry| entry.ok()?.name.into_string().ok());
    // The lock is nothing to open.
    let names = names.filter(|name| name != "lock");
    let mut files: Vec<RunFile> = names.filter_map(|name| run_file(folder, &name)).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn run_file(folder: &Utf8Path, name: &str) -> Option<RunFile> {
    let path = folder.join(name);
    let bytes = path.metadata().ok().filter(|meta| meta.is_file())?.len();
    Some(RunFile { path: path.to_string(), bytes })
}

/// Abbreviates a commit id.
pub fn short_oid(oid: &str) -> &str {
    oid.get(..10).unwrap_or(oid)
}
