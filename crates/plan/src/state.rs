//! How far a plan loop is: a fold of its events, rebuilt from the journal whenever a worker takes the run up.

use std::collections::BTreeMap;

use crate::document::{Mark, Task};
use repertoire_journal::event::{StepOutcome, TaskRef};
use repertoire_journal::{Event, Payload};
use serde_json::Value;

use crate::limits::{HISTORY_MAX, TASK_LABEL_CHARS_MAX};

/// The task that is not in any plan: what the final checks found.
pub const FINAL_TASK: &str = "final-checks";
/// Its words.
pub const FINAL_LABEL: &str = "Make the final checks pass";

/// The word for a task that a person has taken out of the plan.
pub const REMOVED: &str = "removed";

/// The kinds of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An agent works on a task.
    Implementation,
    /// Declared checks run.
    Verification,
    /// What they found is mended by what helped before, without an agent.
    Recovery,
    /// An agent looks at the work of another.
    Review,
}

impl Kind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Implementation => "implementation",
            Kind::Verification => "verification",
            Kind::Recovery => "recovery",
            Kind::Review => "review",
        }
    }

    /// Whether an agent is at work in it.
    pub fn is_agent(self) -> bool {
        matches!(self, Kind::Implementation | Kind::Review)
    }

    /// The kind of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Kind::Implementation, Kind::Verification, Kind::Recovery, Kind::Review]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// What a verification comes after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Work on a task.
    Implementation,
    /// A review of it.
    Review,
    /// Everything.
    Everything,
}

impl After {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            After::Implementation => "implementation",
            After::Review => "review",
            After::Everything => "everything",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [After::Implementation, After::Review, After::Everything]
            .into_iter()
            .find(|after| after.as_str() == word)
    }
}

/// How a step of the past ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With an outcome.
    With(StepOutcome),
    /// Its worker was gone.
    Interrupted,
}

/// A step of the past.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// Its number.
    pub number: u32,
    /// Its kind.
    pub kind: Kind,
    /// What it came after, if it was a verification.
    pub after: Option<After>,
    /// Its task.
    pub task: Option<TaskRef>,
    /// The commit that it began on.
    pub began_on: Option<String>,
    /// How it ended; nothing while it is under way.
    pub ended: Option<Ended>,
    /// Why.
    pub reason: Option<String>,
    /// The result.
    pub result: Value,
}

impl Past {
    /// Whether it ended as it should.
    pub fn is_ok(&self) -> bool {
        self.ended == Some(Ended::With(StepOutcome::Ok))
    }

    /// Whether it says that something is wrong with the work.
    pub fn is_bad(&self) -> bool {
        matches!(self.ended, Some(Ended::With(StepOutcome::Failed | StepOutcome::SentBack)))
    }

    /// A text of the result.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.result.get(name)?.as_str()
    }

    /// A flag of the result.
    pub fn flag(&self, name: &str) -> bool {
        self.result.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}

/// How far a task is.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskState {
    /// Its words.
    pub label: String,
    /// How far the engine says that it is.
    pub mark: Mark,
    /// Implementations that came to an end.
    pub attempts: u32,
    /// The commit that work on it began on.
    pub base: Option<String>,
    /// The commit that these attempts began on: a later one, if it was tried again after other work.
    pub begun: Option<String>,
    /// The commit that the last work on it ended on.
    pub head: Option<String>,
    /// Whether it got where it is in this run.
    pub touched: bool,
    /// Whether it did so since a person last looked.
    pub fresh: bool,
}

impl TaskState {
    fn new(label: &str, mark: Mark) -> Self {
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

/// How far a plan loop is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanState {
    /// Tasks, by id; also those that are gone from the file.
    pub tasks: BTreeMap<String, TaskState>,
    /// The order in which they were first seen.
    pub order: Vec<String>,
    /// Steps, the last one last, as many as are worth remembering.
    pub history: Vec<Past>,
    /// Implementations and reviews so far.
    pub iterations: u32,
    /// How many of these there were when a person last looked.
    pub iterations_seen: u32,
    /// Steps in a row whose worker was gone.
    pub interruptions: u32,
    /// Whether a person has looked since the last step.
    pub looked: bool,
    /// Bad steps in a row, by kind.
    pub failures: BTreeMap<Kind, u32>,
    /// Times that the watchdog put other words before a prompt.
    pub rewrites: u32,
    /// The words for the next prompt.
    pub rewrite: Option<String>,
    /// The step after which the watchdog last acted.
    pub watched_to: u32,
    /// What people said for the next prompt.
    pub steering: Vec<String>,
    /// How many of these the step under way was told.
    steering_told: usize,
    /// What the last bad step said.
    pub notes: Option<String>,
    /// What was learnt.
    pub learnings: Vec<String>,
    /// Why the tasks of the plan cannot be told, if so.
    pub fallback: Option<String>,
    /// Whether the plan was read in this run.
    pub is_read: bool,
}

impl PlanState {
    /// The state after these events.
    pub fn replay<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut state = PlanState::default();
        for event in events {
            state.apply(&event.payload);
        }
        state
    }

    /// One event more. What does not concern the loop changes nothing.
    pub fn apply(&mut self, payload: &Payload) {
        match payload {
            Payload::PlanRead { tasks, .. } => {
                self.is_read = true;
                self.fallback = None;
                for seen in tasks {
                    self.see(&seen.task, mark_of(&seen.mark));
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
                self.see(task, mark_of(mark));
                let state = self.task_mut(task);
                state.mark = mark_of(mark);
                state.touched = true;
                state.fresh = true;
            }
            Payload::StepStarted { step, kind, task, head, detail, .. } => {
                if let Some(kind) = Kind::from_word(kind) {
                    self.begin(*step, kind, task.as_ref(), head.as_ref(), detail);
                }
            }
            Payload::StepFinished { step, outcome, reason, head, result, .. } => {
                self.end(*step, Ended::With(*outcome), reason.clone(), head.as_ref(), result);
            }
            Payload::StepInterrupted { step, reason } => {
                self.end(*step, Ended::Interrupted, Some(reason.clone()), None, &Value::Null);
            }
            Payload::WatchdogRewrite { step, rewrite, text, .. } => {
                self.rewrites = *rewrite;
                self.rewrite = Some(text.clone());
                self.watched_to = *step;
            }
            Payload::Steered { note, .. } => self.steering.push(note.clone()),
            Payload::Learned { note, .. } => self.learnings.push(note.clone()),
            Payload::RunRetried { tasks, .. } => self.retry(tasks),
            // A person has looked.
            Payload::RunResumed { .. } => self.look_again(),
            _ => {}
        }
    }

    /// The last step.
    pub fn last(&self) -> Option<&Past> {
        self.history.last()
    }

    /// Tasks that the engine says are so far, in the order of the plan.
    pub fn marked(&self, mark: Mark) -> impl Iterator<Item = (&str, &TaskState)> {
        let known = self.order.iter().filter_map(|id| Some((id.as_str(), self.tasks.get(id)?)));
        known.filter(move |(_, task)| task.mark == mark)
    }

    /// A task, with the words that it is known by.
    pub fn task_ref(&self, id: &str) -> Option<TaskRef> {
        let task = self.tasks.get(id)?;
        Some(TaskRef { id: id.to_owned(), label: task.label.clone() })
    }

    fn see(&mut self, task: &TaskRef, mark: Mark) {
        if self.tasks.contains_key(&task.id) {
            return;
        }
        self.order.push(task.id.clone());
        self.tasks.insert(task.id.clone(), TaskState::new(&task.label, mark));
    }

    fn task_mut(&mut self, task: &TaskRef) -> &mut TaskState {
        let id = task.id.clone();
        self.tasks.entry(id).or_insert_with(|| TaskState::new(&task.label, Mark::Open))
    }

    fn begin(
        &mut self,
        number: u32,
        kind: Kind,
        task: Option<&TaskRef>,
        head: Option<&String>,
        detail: &Value,
    ) {
        if let (Kind::Implementation, Some(task)) = (kind, task) {
            self.see(task, Mark::Open);
            let state = self.task_mut(task);
            state.base = state.base.take().or(head.cloned());
            state.begun = state.begun.take().or(head.cloned());
        }
        self.looked = false;
        if kind.is_agent() {
            self.iterations += 1;
            self.steering_told = self.steering.len();
        }
        let after = detail.get("after").and_then(Value::as_str).and_then(After::from_word);
        let (task, began_on) = (task.cloned(), head.cloned());
        let (ended, reason, result) = (None, None, Value::Null);
        self.history.push(Past { number, kind, after, task, began_on, ended, reason, result });
        if self.history.len() > HISTORY_MAX {
            self.history.remove(0);
        }
    }

    fn end(
        &mut self,
        number: u32,
        ended: Ended,
        reason: Option<String>,
        head: Option<&String>,
        result: &Value,
    ) {
        let Some(past) = self.history.iter_mut().find(|past| past.number == number) else { return };
        past.ended = Some(ended);
        past.reason = reason;
        past.result = result.clone();
        let past = past.clone();
        self.count(&past, head);
        let is_agent = past.kind.is_agent();
        let counts = !matches!(ended, Ended::Interrupted | Ended::With(StepOutcome::Stopped));
        if is_agent && !counts {
            // It cost no attempt, so it is no round either.
            self.iterations = self.iterations.saturating_sub(1);
        }
        if is_agent && counts {
            let told = self.steering_told.min(self.steering.len());
            self.steering.drain(..told);
            self.rewrite = None;
        }
        self.steering_told = 0;
        if past.is_bad() {
            let said = past.text("notes").map(str::to_owned).or(past.reason.clone());
            self.notes = said.or(self.notes.take());
        } else if past.is_ok() && past.kind == Kind::Verification {
            self.notes = None;
        }
    }

    fn count(&mut self, past: &Past, head: Option<&String>) {
        match past.ended {
            None | Some(Ended::With(StepOutcome::Stopped)) => return,
            Some(Ended::Interrupted) => {
                self.interruptions = self.interruptions.saturating_add(1);
                return;
            }
            Some(Ended::With(StepOutcome::Failed)) => {
                let failures = self.failures.entry(past.kind).or_default();
                *failures = failures.saturating_add(1);
            }
            // A review that sends work back is a review as it should be: the attempts at the task bound that.
            Some(Ended::With(StepOutcome::Ok | StepOutcome::SentBack)) => {
                self.failures.remove(&past.kind);
            }
        }
        self.interruptions = 0;
        let Some(task) = &past.task else { return };
        let state = self.task_mut(task);
        let is_attempt = past.kind == Kind::Implementation && !past.flag("agent_failed");
        state.attempts += u32::from(is_attempt);
        state.head = head.cloned().or(state.head.take());
    }

    fn retry(&mut self, tasks: &[String]) {
        for (id, task) in &mut self.tasks {
            let is_meant = match task.mark {
                Mark::Failed => tasks.is_empty() || tasks.contains(id),
                // What its author holds back is not begun because something else failed.
                Mark::Blocked => tasks.contains(id) || tasks.is_empty() && task.touched,
                _ => false,
            };
            if is_meant {
                task.mark = Mark::Open;
                task.attempts = 0;
                task.begun = None;
            }
        }
        self.look_again();
    }

    fn look_again(&mut self) {
        self.failures.clear();
        self.rewrites = 0;
        self.watched_to = self.last().map_or(0, |past| past.number);
        self.iterations_seen = self.iterations;
        self.interruptions = 0;
        self.looked = true;
        for task in self.tasks.values_mut() {
            task.fresh = false;
        }
    }
}

/// A task as the journal names it.
pub fn reference(task: &Task) -> TaskRef {
    let label = match task.text.char_indices().nth(TASK_LABEL_CHARS_MAX) {
        None => task.text.clone(),
        Some((at, _)) => format!("{}…", &task.text[..at]),
    };
    TaskRef { id: task.id.as_str().to_owned(), label }
}

/// The word for a mark.
pub fn mark_word(mark: Mark) -> &'static str {
    match mark {
        Mark::Open => "open",
        Mark::Blocked => "blocked",
        Mark::Implemented => "implemented",
        Mark::Reviewed => "reviewed",
        Mark::ManualQa => "manual_qa",
        Mark::Failed => "failed",
    }
}

/// The mark of a word; one that nobody knows is not done.
fn mark_of(word: &str) -> Mark {
    [Mark::Blocked, Mark::Implemented, Mark::Reviewed, Mark::ManualQa, Mark::Failed]
        .into_iter()
        .find(|mark| mark_word(*mark) == word)
        .unwrap_or(Mark::Open)
}
