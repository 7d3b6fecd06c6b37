//! The state of a plan run: a fold over its events, rebuilt from the journal whenever a worker
//! claims the run.

use std::collections::BTreeMap;

use crate::document::{PlanTask, TaskMark};
use repertoire_journal::event::{StepOutcome, TaskRef};
use repertoire_journal::{Event, Payload};
use serde_json::Value;

use crate::step_result::PlanStepResult;

use crate::limits::{HISTORY_MAX, TASK_LABEL_CHARS_MAX};

/// The id of the task to fix failed final checks, which is in no plan.
pub const FINAL_TASK: &str = "final-checks";
/// Its label.
pub const FINAL_LABEL: &str = "Make the final checks pass";

/// The mark of a task that a person has removed from the plan.
pub const REMOVED: &str = "removed";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanStepKind {
    /// An agent works on a task.
    Implementation,
    /// The declared checks run.
    Verification,
    /// Failed checks are repaired without an agent.
    Recovery,
    /// An agent reviews the work of another one.
    Review,
}

impl PlanStepKind {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            PlanStepKind::Implementation => "implementation",
            PlanStepKind::Verification => "verification",
            PlanStepKind::Recovery => "recovery",
            PlanStepKind::Review => "review",
        }
    }

    /// Returns true if an agent runs in this kind of step.
    pub fn is_agent(self) -> bool {
        matches!(self, PlanStepKind::Implementation | PlanStepKind::Review)
    }

    /// Parses a serialised name.
    pub fn from_word(word: &str) -> Option<Self> {
        [
            PlanStepKind::Implementation,
            PlanStepKind::Verification,
            PlanStepKind::Recovery,
            PlanStepKind::Review,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == word)
    }
}

/// The step that a verification follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifiedAfter {
    Implementation,
    Review,
    /// The final verification, after all tasks.
    Everything,
}

impl VerifiedAfter {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            VerifiedAfter::Implementation => "implementation",
            VerifiedAfter::Review => "review",
            VerifiedAfter::Everything => "everything",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [VerifiedAfter::Implementation, VerifiedAfter::Review, VerifiedAfter::Everything]
            .into_iter()
            .find(|after| after.as_str() == word)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanStepEnd {
    With(StepOutcome),
    /// Its worker died.
    Interrupted,
}

/// A past step, or the current one.
#[derive(Clone, Debug, PartialEq)]
pub struct PastStep {
    pub number: u32,
    pub kind: PlanStepKind,
    /// The step that it followed, for a verification or a recovery.
    pub after: Option<VerifiedAfter>,
    pub task: Option<TaskRef>,
    /// The commit at its start.
    pub began_on: Option<String>,
    /// `None` while it is in progress.
    pub ended: Option<PlanStepEnd>,
    pub reason: Option<String>,
    pub result: PlanStepResult,
}

impl PastStep {
    /// The outcome; `None` if the step was interrupted or is in progress.
    pub fn outcome(&self) -> Option<StepOutcome> {
        match self.ended {
            Some(PlanStepEnd::With(outcome)) => Some(outcome),
            Some(PlanStepEnd::Interrupted) | None => None,
        }
    }

    /// Returns true if the step succeeded.
    pub fn is_ok(&self) -> bool {
        self.outcome().is_some_and(StepOutcome::is_ok)
    }

    /// Returns true if the step found something wrong with the work.
    pub fn is_bad(&self) -> bool {
        self.outcome().is_some_and(StepOutcome::is_bad)
    }

    /// Returns true if the step demands that the work be done again.
    pub fn rejects_work(&self) -> bool {
        self.outcome().is_some_and(StepOutcome::rejects_work)
    }

    /// Returns true if the step has a result, and need not be repeated for the lack of one.
    pub fn is_counted(&self) -> bool {
        self.outcome().is_some_and(StepOutcome::is_counted)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TaskState {
    pub label: String,
    /// The engine's own mark, whatever the plan file says.
    pub mark: TaskMark,
    /// Completed implementations.
    pub attempts: u32,
    /// The commit before any work on the task.
    pub base: Option<String>,
    /// The commit before the current attempts: later than `base` if the task was retried after
    /// other work.
    pub begun: Option<String>,
    /// The commit after the last work on the task.
    pub head: Option<String>,
    /// True if the mark was set in this run.
    pub touched: bool,
    /// True if the mark was set since the run was last resumed.
    pub fresh: bool,
}

impl TaskState {
    fn new(label: &str, mark: TaskMark) -> Self {
        TaskState {
            label: label.to_owned(),
            mark,
            attempts: 0,
            base: None,
            begun: None,
            head: None,
            touched: false,
            fresh: false,
        }
    }
}

/// The state of a plan run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanState {
    /// Tasks by id, including those that are no longer in the file.
    pub tasks: BTreeMap<String, TaskState>,
    /// Task ids in the order in which they were first seen.
    pub order: Vec<String>,
    /// The last steps, oldest first; at most [`HISTORY_MAX`].
    pub history: Vec<PastStep>,
    /// Implementations and reviews so far.
    pub iterations: u32,
    /// The value of `iterations` when a person last resumed the run.
    pub iterations_seen: u32,
    /// Consecutive steps whose worker died.
    pub interruptions: u32,
    /// True if a person has resumed the run since the last step.
    pub looked: bool,
    /// Consecutive failed steps by kind.
    pub failures: BTreeMap<PlanStepKind, u32>,
    /// Number of prompt rewrites by the watchdog.
    pub rewrites: u32,
    /// The watchdog's text for the next prompt.
    pub rewrite: Option<String>,
    /// The number of the step after which the watchdog last acted.
    pub watched_to: u32,
    /// People's notes for the next prompt.
    pub steering: Vec<String>,
    /// Number of notes that were part of the current step's prompt.
    steering_told: usize,
    /// The notes of the last failed step.
    pub notes: Option<String>,
    pub learnings: Vec<String>,
    /// The reason why the plan's tasks cannot be parsed, if so.
    pub fallback: Option<String>,
    /// True if the plan was read in this run.
    pub is_read: bool,
}

impl PlanState {
    /// Folds events into a state.
    pub fn replay<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut state = PlanState::default();
        for event in events {
            state.apply(&event.payload);
        }
        state
    }

    /// Applies an event. Events that do not concern the plan are ignored.
    pub fn apply(&mut self, payload: &Payload) {
        match payload {
            Payload::PlanRead { tasks, .. } => {
                self.is_read = true;
                self.fallback = None;
                for seen in tasks {
                    self.add_task(&seen.task, mark_of(&seen.mark));
                }
            }
            Payload::PlanFallback { reason } => {
                self.is_read = true;
                self.fallback = Some(reason.clone());
            }
            Payload::TaskMarked { task, mark, .. } if mark == REMOVED => {
                self.tasks.remove(&task.id);
                self.order.retain(|id| *id != task.id);
            }
            Payload::TaskMarked { task, mark, .. } => {
                self.add_task(task, mark_of(mark));
                let state = self.task_mut(task);
                state.mark = mark_of(mark);
                state.touched = true;
                state.fresh = true;
            }
            Payload::StepStarted { step, kind, task, head, detail, .. } => {
                if let Some(kind) = PlanStepKind::from_word(kind) {
                    self.begin_step(*step, kind, task.as_ref(), head.as_ref(), detail);
                }
            }
            Payload::StepFinished { step, outcome, reason, head, result, .. } => {
                self.end_step(
                    *step,
                    PlanStepEnd::With(*outcome),
                    reason.clone(),
                    head.as_ref(),
                    result,
                );
            }
            Payload::StepInterrupted { step, reason } => {
                self.end_step(
                    *step,
                    PlanStepEnd::Interrupted,
                    Some(reason.clone()),
                    None,
                    &Value::Null,
                );
            }
            Payload::WatchdogRewrite { step, rewrite, text, .. } => {
                self.rewrites = *rewrite;
                self.rewrite = Some(text.clone());
                self.watched_to = *step;
            }
            Payload::Steered { note, .. } => self.steering.push(note.clone()),
            Payload::Learned { note, .. } => self.learnings.push(note.clone()),
            Payload::RunRetried { tasks, .. } => self.retry_tasks(tasks),
            // Resuming resets the counters of failures.
            Payload::RunResumed { .. } => self.reset_counters(),
            _ => {}
        }
    }

    /// The last or current step.
    pub fn last_step(&self) -> Option<&PastStep> {
        self.history.last()
    }

    /// The tasks with a mark, in the order of the plan.
    pub fn tasks_with_mark(&self, mark: TaskMark) -> impl Iterator<Item = (&str, &TaskState)> {
        let known = self.order.iter().filter_map(|id| Some((id.as_str(), self.tasks.get(id)?)));
        known.filter(move |(_, task)| task.mark == mark)
    }

    /// The id and label of a task.
    pub fn task_ref(&self, id: &str) -> Option<TaskRef> {
        let task = self.tasks.get(id)?;
        Some(TaskRef { id: id.to_owned(), label: task.label.clone() })
    }

    fn add_task(&mut self, task: &TaskRef, mark: TaskMark) {
        if self.tasks.contains_key(&task.id) {
            return;
        }
        self.order.push(task.id.clone());
        self.tasks.insert(task.id.clone(), TaskState::new(&task.label, mark));
    }

    fn task_mut(&mut self, task: &TaskRef) -> &mut TaskState {
        let id = task.id.clone();
        self.tasks.entry(id).or_insert_with(|| TaskState::new(&task.label, TaskMark::Open))
    }

    fn begin_step(
        &mut self,
        number: u32,
        kind: PlanStepKind,
        task: Option<&TaskRef>,
        head: Option<&String>,
        detail: &Value,
    ) {
        if let (PlanStepKind::Implementation, Some(task)) = (kind, task) {
            self.add_task(task, TaskMark::Open);
            let state = self.task_mut(task);
            state.base = state.base.take().or(head.cloned());
            state.begun = state.begun.take().or(head.cloned());
        }
        self.looked = false;
        if kind.is_agent() {
            self.iterations += 1;
            self.steering_told = self.steering.len();
        }
        let after = detail.get("after").and_then(Value::as_str).and_then(VerifiedAfter::from_word);
        let (task, began_on) = (task.cloned(), head.cloned());
        let (ended, reason, result) = (None, None, PlanStepResult::default());
        self.history.push(PastStep { number, kind, after, task, began_on, ended, reason, result });
        if self.history.len() > HISTORY_MAX {
            self.history.remove(0);
        }
    }

    fn end_step(
        &mut self,
        number: u32,
        ended: PlanStepEnd,
        reason: Option<String>,
        head: Option<&String>,
        result: &Value,
    ) {
        let Some(past) = self.history.iter_mut().find(|past| past.number == number) else { return };
        past.ended = Some(ended);
        past.reason = reason;
        past.result = PlanStepResult::from_value(result);
        let past = past.clone();
        self.count_step(&past, head);
        let is_agent = past.kind.is_agent();
        let counts = past.is_counted();
        if is_agent && !counts {
            // The step did not count as an attempt, so it does not count as an iteration either.
            self.iterations = self.iterations.saturating_sub(1);
        }
        if is_agent && counts {
            let told = self.steering_told.min(self.steering.len());
            self.steering.drain(..told);
            self.rewrite = None;
        }
        self.steering_told = 0;
        if past.is_bad() {
            let said = past.result.notes.clone().or(past.reason.clone());
            self.notes = said.or(self.notes.take());
        } else if past.is_ok() && past.kind == PlanStepKind::Verification {
            self.notes = None;
        }
    }

    fn count_step(&mut self, past: &PastStep, head: Option<&String>) {
        match past.ended {
            None | Some(PlanStepEnd::With(StepOutcome::Stopped)) => return,
            Some(PlanStepEnd::Interrupted) => {
                self.interruptions = self.interruptions.saturating_add(1);
                return;
            }
            Some(PlanStepEnd::With(StepOutcome::Failed)) => {
                let failures = self.failures.entry(past.kind).or_default();
                *failures = failures.saturating_add(1);
            }
            // Sending work back is a valid review, not a failure. The task's attempts limit it.
            Some(PlanStepEnd::With(StepOutcome::Ok | StepOutcome::SentBack)) => {
                self.failures.remove(&past.kind);
            }
        }
        self.interruptions = 0;
        let Some(task) = &past.task else { return };
        let state = self.task_mut(task);
        let is_attempt = past.kind == PlanStepKind::Implementation && !past.result.agent_failed;
        state.attempts += u32::from(is_attempt);
        state.head = head.cloned().or(state.head.take());
    }

    fn retry_tasks(&mut self, tasks: &[String]) {
        for (id, task) in &mut self.tasks {
            let is_meant = match task.mark {
                TaskMark::Failed => tasks.is_empty() || tasks.contains(id),
                // A task that was blocked by the author of the plan is only retried by name.
                TaskMark::Blocked => tasks.contains(id) || tasks.is_empty() && task.touched,
                _ => false,
            };
            if is_meant {
                task.mark = TaskMark::Open;
                task.attempts = 0;
                task.begun = None;
            }
        }
        self.reset_counters();
    }

    fn reset_counters(&mut self) {
        self.failures.clear();
        self.rewrites = 0;
        self.watched_to = self.last_step().map_or(0, |past| past.number);
        self.iterations_seen = self.iterations;
        self.interruptions = 0;
        self.looked = true;
        for task in self.tasks.values_mut() {
            task.fresh = false;
        }
    }
}

/// The journal's reference to a task.
pub fn task_reference(task: &PlanTask) -> TaskRef {
    let label = match task.text.char_indices().nth(TASK_LABEL_CHARS_MAX) {
        None => task.text.clone(),
        Some((at, _)) => format!("{}…", &task.text[..at]),
    };
    TaskRef { id: task.id.as_str().to_owned(), label }
}

/// The serialised name of a mark.
pub fn mark_word(mark: TaskMark) -> &'static str {
    match mark {
        TaskMark::Open => "open",
        TaskMark::Blocked => "blocked",
        TaskMark::Implemented => "implemented",
        TaskMark::Reviewed => "reviewed",
        TaskMark::ManualQa => "manual_qa",
        TaskMark::Failed => "failed",
    }
}

/// Parses a serialised mark. An unknown one counts as open.
fn mark_of(word: &str) -> TaskMark {
    [
        TaskMark::Blocked,
        TaskMark::Implemented,
        TaskMark::Reviewed,
        TaskMark::ManualQa,
        TaskMark::Failed,
    ]
    .into_iter()
    .find(|mark| mark_word(*mark) == word)
    .unwrap_or(TaskMark::Open)
}
