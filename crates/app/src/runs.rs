//! What is known of runs, put together from the journal, from what they left behind and from their branches.

mod diff;
mod merge;

use camino::Utf8Path;
use repertoire_plan::document::Mark;
use repertoire_journal::{
    Event, Filter, Journal, JournalError, Page, Payload, Run, RunId, RunStatus, Step,
};
use repertoire_text::fs;
use schemars::JsonSchema;
use serde::Serialize;

use repertoire_plan::PlanState;
use repertoire_plan::state::{TaskState, mark_word};

pub use diff::{ChangedFile, DiffError, RunDiffJson, diff};
pub use merge::{MergeError, Merged, merge};

/// Events that are read to count the tasks of a list; runs behind that many have no count.
const EVENTS_READ_MAX: u64 = 100_000;
/// Files of a run that are looked at.
const FILES_MAX: usize = 10_000;

/// One run of a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    pub fn of(state: &PlanState) -> Option<Self> {
        let counted = state.tasks.values().filter(|task| task.mark != Mark::ManualQa);
        let is_done = |task: &&TaskState| matches!(task.mark, Mark::Implemented | Mark::Reviewed);
        let done =
            TasksDone { done: counted.clone().filter(is_done).count(), all: counted.count() };
        (!state.tasks.is_empty()).then_some(done)
    }
}

impl RunRow {
    /// A run, and how far its tasks are.
    pub fn new(run: &Run, tasks: Option<TasksDone>) -> Self {
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    /// Of a plan loop, in the order of the plan.
    pub fn all(state: &PlanState) -> Vec<Self> {
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeliveredJson {
    /// `keep`, `merge`, `squash` or `branch`.
    pub strategy: String,
    /// The branch that has it now.
    pub branch: String,
    /// The commit.
    pub commit: Option<String>,
}

/// A file of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunFile {
    /// Where it is.
    pub path: String,
    /// How large.
    pub bytes: u64,
}

/// Something that can be done with a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunCommand {
    /// What to type.
    pub command: String,
    /// What it does.
    pub about: String,
}

impl RunJson {
    /// A run as it was after these events. What is not in them, such as its files, is for others to add.
    pub fn of_events(run: Run, steps: Vec<Step>, events: &[Event]) -> Self {
        let state = PlanState::replay(events);
        RunJson {
            tasks: RunTask::all(&state),
            done: TasksDone::of(&state),
            fallback: state.fallback,
            steps,
            steering: state.steering,
            watchdog: signals(events),
            learnings: state.learnings,
            delivered: events.iter().rev().find_map(delivered),
            lease_until_ms: None,
            files: Vec::new(),
            commands: Vec::new(),
            run,
        }
    }

    /// Everything about a run; `left_behind` is the folder where it keeps files for people.
    ///
    /// # Errors
    ///
    /// When the journal cannot be used.
    pub async fn gather(
        journal: &Journal,
        run: Run,
        left_behind: &Utf8Path,
    ) -> Result<Self, JournalError> {
        let events = events_of(journal, &run.id).await?;
        let steps = journal.steps(&run.id).await?;
        let lease_until_ms = journal.lease_until(&run.id).await?;
        let files = files_of(left_behind);
        Ok(RunJson { lease_until_ms, files, ..RunJson::of_events(run, steps, &events) })
    }
}

/// All events of a run.
///
/// # Errors
///
/// When the journal cannot be used.
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

/// Rows of runs, newest first. `events_read` is how many events were read for rows before these: counting tasks is given up
/// behind a limit.
///
/// # Errors
///
/// When the journal cannot be used.
pub async fn rows(
    journal: &Journal,
    filter: &Filter,
    events_read: &mut u64,
) -> Result<Page<RunRow>, JournalError> {
    let page = journal.runs(filter).await?;
    let mut items = Vec::new();
    for run in &page.items {
        *events_read += run.seq;
        let tasks = match *events_read <= EVENTS_READ_MAX {
            true => TasksDone::of(&PlanState::replay(&events_of(journal, &run.id).await?)),
            false => None,
        };
        items.push(RunRow::new(run, tasks));
    }
    Ok(Page { items, next: page.next })
}

fn signals(events: &[Event]) -> Vec<SignalJson> {
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

fn delivered(event: &Event) -> Option<DeliveredJson> {
    let Payload::Delivered { strategy, branch, commit } = &event.payload else { return None };
    Some(DeliveredJson {
        strategy: strategy.clone(),
        branch: branch.clone(),
        commit: commit.clone(),
    })
}

/// What a run left behind; a folder that is gone has nothing.
fn files_of(folder: &Utf8Path) -> Vec<RunFile> {
    let Ok(entries) = fs::entries(folder) else { return Vec::new() };
    let file = |name: &str| {
        let path = folder.join(name);
        let bytes = path.metadata().ok().filter(|meta| meta.is_file())?.len();
        Some(RunFile { path: path.to_string(), bytes })
    };
    let names = entries.take(FILES_MAX).filter_map(|entry| entry.ok()?.name.into_string().ok());
    let mut files: Vec<RunFile> = names.filter_map(|name| file(&name)).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}
