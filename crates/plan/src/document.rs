//! Plan files as data: Markdown check lists that an agent works through, task after task.
//!
//! [`parse`] reads any text and never fails; what it cannot make sense of is a diagnostic, and if the tasks cannot be
//! told at all, [`Plan::fallback`] says why. [`select_task`] chooses the next task, [`mark`] and [`append_note`] change
//! one place of the file and keep every other byte. A task is named by its content, never by its line.
//!
//! Nothing here reads a file or runs anything: the plan loop does.

use camino::Utf8Path;
use repertoire_text::source::Span;
use repertoire_text::{Diagnostic, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod blockers;
mod check;
mod edit;
mod ids;
mod inline;
pub mod json;
mod keys;
mod labels;
mod lines;
mod opaque;
mod read;
mod select;
mod specs;

pub use check::check;
pub use edit::{EditError, append_note, mark, mark_all};
pub use select::{Choice, select_task};

/// What a plan file says.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The first heading of level 1.
    pub title: Option<String>,
    /// The headings, in file order, also those whose boxes are not the engine's business.
    pub sections: Vec<Section>,
    /// The tasks, in file order.
    pub tasks: Vec<Task>,
    /// Whose habits the file follows.
    pub format: Format,
    /// Why the tasks of this plan cannot be told; then an agent has to choose itself.
    pub fallback: Option<String>,
    /// What is wrong with the file as such. [`check`] finds more.
    pub diagnostics: Vec<Diagnostic>,
    source: Source,
}

/// A heading, and what it says about the tasks below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// Its level, from 1.
    pub level: u8,
    /// Its text without priority and blockers.
    pub title: String,
    /// The number of `Phase N`.
    pub phase: Option<u32>,
    /// The section that it stands in.
    pub parent: Option<usize>,
    /// A priority for the tasks below.
    pub priority: Option<Priority>,
    /// What the tasks below wait for.
    pub blocked_by: Vec<Blocker>,
    /// Skills for the tasks below.
    pub hints: Vec<String>,
    /// Whether boxes below are no tasks: check lists for people, and legends.
    pub ignored: bool,
    /// How many boxes were passed over for that reason.
    pub ignored_boxes: usize,
    /// Its line, from 1.
    pub line: usize,
    /// Where the skills are named.
    #[serde(skip)]
    at: Vec<(String, Span)>,
}

/// One box that is to be ticked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    /// What it is called by: stays as long as its text stays.
    pub id: TaskId,
    /// The label that its author gave it: `T001`, `1.2`, `Task 3`.
    pub label: Option<String>,
    /// What is to be done: without mark, label, priority, blockers and trailing notes; Markdown is kept.
    pub text: String,
    /// Where it stands.
    pub mark: Mark,
    /// The heading that it stands under.
    pub section: Option<usize>,
    /// The task that it is a part of.
    pub parent: Option<TaskId>,
    /// Its own priority, else that of the task or section above it.
    pub priority: Priority,
    /// What it waits for, besides what the tasks and sections above it wait for.
    pub blocked_by: Vec<Blocker>,
    /// Skills that its author names, then those of the task and the sections above it.
    pub hints: Vec<String>,
    /// Parts of a specification that it names.
    pub spec_refs: Vec<String>,
    /// The lines below it that belong to it and to no task within it, without their common indentation.
    pub details: String,
    /// Whether its author says that it can be done beside others (`[P]`).
    pub parallel: bool,
    /// The user story that it belongs to (`[US1]`).
    pub story: Option<String>,
    /// Its line, from 1.
    pub line: usize,
    #[serde(skip)]
    at: Places,
}

/// Where the parts of a task are in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Places {
    /// The box, with its `?`.
    mark: Span,
    /// Whether the box holds a mark of the legend.
    known: bool,
    /// Whether a person has ticked a box of manual QA.
    ticked: bool,
    /// The box and the text behind it on its line.
    head: Span,
    /// The hints in its text that are read.
    hints: Vec<(String, Span)>,
    /// What would be a hint, were it no code.
    coded_hints: Vec<Span>,
    /// The references to files.
    specs: Vec<(String, Span)>,
    /// After the last line of its text.
    text_end: usize,
    /// After its last line before a task within it.
    own_end: usize,
    /// The indentation of what is nested below it.
    nested: String,
}

/// The name of a task: its label if no other has the same, else a digest of its text.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct TaskId(String);

impl TaskId {
    /// A name that was typed or kept.
    pub fn new(id: impl Into<String>) -> Self {
        TaskId(id.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the box of a task says.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// `[ ]`: to be done.
    Open,
    /// `[~]`: cannot be done now. A box with a sign that nobody knows counts as this.
    Blocked,
    /// `[x]`: done, and waits for a review.
    Implemented,
    /// `[R]`: done and reviewed.
    Reviewed,
    /// `[ ]?`: for people, never for the engine.
    ManualQa,
    /// `[!]`: its attempts are used up; a person has to look.
    Failed,
}

impl Mark {
    /// Every mark.
    pub const ALL: [Mark; 6] = [
        Mark::Open,
        Mark::Blocked,
        Mark::Implemented,
        Mark::Reviewed,
        Mark::ManualQa,
        Mark::Failed,
    ];

    /// The box as it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Mark::Open => "[ ]",
            Mark::Blocked => "[~]",
            Mark::Implemented => "[x]",
            Mark::Reviewed => "[R]",
            Mark::ManualQa => "[ ]?",
            Mark::Failed => "[!]",
        }
    }

    /// In words, after "is".
    pub fn described(self) -> &'static str {
        match self {
            Mark::Open => "open",
            Mark::Blocked => "blocked",
            Mark::Implemented => "implemented",
            Mark::Reviewed => "reviewed",
            Mark::ManualQa => "manual QA",
            Mark::Failed => "failed",
        }
    }

    /// Whether the work is done, reviewed or not.
    pub fn is_done(self) -> bool {
        matches!(self, Mark::Implemented | Mark::Reviewed)
    }
}

/// How urgent a task is; the most urgent is the least.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// `P0`, `critical`.
    Critical,
    /// `P1`, `high`.
    High,
    /// `P2`, `medium`, or nothing said.
    #[default]
    Medium,
    /// `P3`, `low`.
    Low,
}

impl Priority {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Priority::Critical => "critical",
            Priority::High => "high",
            Priority::Medium => "medium",
            Priority::Low => "low",
        }
    }

    fn named(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "p0" | "critical" | "urgent" | "highest" => Some(Priority::Critical),
            "p1" | "high" => Some(Priority::High),
            "p2" | "medium" | "normal" => Some(Priority::Medium),
            "p3" | "low" | "lowest" => Some(Priority::Low),
            _ => None,
        }
    }
}

/// One thing that a task or section waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocker {
    /// As it is written.
    pub text: String,
    /// What it names.
    pub on: BlockedOn,
    #[serde(skip)]
    at: Span,
}

/// What a blocker names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedOn {
    /// A task: waits until it is implemented or reviewed.
    Task(TaskId),
    /// A section: waits until all its tasks are, those for people left out.
    Section(usize),
    /// Nothing that is known: waits for ever.
    Nothing,
}

/// Whose habits a plan follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A plan for a loop: phases, priorities, blockers.
    Loop,
    /// A plain list of tasks.
    Tasks,
    /// The `tasks.md` of an OpenSpec change.
    OpenSpec,
    /// The `tasks.md` of spec-kit. Its stories carry priorities, but its phases come in their order.
    SpecKit,
}

impl Format {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Loop => "loop",
            Format::Tasks => "tasks",
            Format::OpenSpec => "openspec",
            Format::SpecKit => "spec-kit",
        }
    }
}

/// How many tasks have each mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// To be done.
    pub open: usize,
    /// Cannot be done now.
    pub blocked: usize,
    /// Done, and wait for a review.
    pub implemented: usize,
    /// Done and reviewed.
    pub reviewed: usize,
    /// For people.
    pub manual_qa: usize,
    /// Their attempts are used up.
    pub failed: usize,
}

impl Progress {
    /// Counts tasks.
    pub fn of<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> Self {
        let mut progress = Progress::default();
        for task in tasks {
            *match task.mark {
                Mark::Open => &mut progress.open,
                Mark::Blocked => &mut progress.blocked,
                Mark::Implemented => &mut progress.implemented,
                Mark::Reviewed => &mut progress.reviewed,
                Mark::ManualQa => &mut progress.manual_qa,
                Mark::Failed => &mut progress.failed,
            } += 1;
        }
        progress
    }

    /// The tasks that are done, reviewed or not.
    pub fn done(self) -> usize {
        self.implemented + self.reviewed
    }

    /// The tasks that the engine has to do with: all but those for people.
    pub fn total(self) -> usize {
        self.done() + self.open + self.blocked + self.failed
    }

    /// Whether every task is done; those for people are left out.
    pub fn is_done(self) -> bool {
        self.done() == self.total()
    }
}

impl Plan {
    /// How many tasks have each mark.
    pub fn progress(&self) -> Progress {
        Progress::of(&self.tasks)
    }

    /// The task of that name.
    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| &task.id == id)
    }

    /// The tasks that are open, in file order.
    pub fn open(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.mark == Mark::Open)
    }

    /// The tasks that wait for a review, in file order.
    pub fn backlog(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.mark == Mark::Implemented)
    }

    /// The tasks directly within a task, in file order.
    pub fn children<'a>(&'a self, id: &'a TaskId) -> impl Iterator<Item = &'a Task> {
        self.tasks.iter().filter(move |task| task.parent.as_ref() == Some(id))
    }

    /// What keeps a task from being chosen, one sentence each; nothing if it could be begun.
    pub fn waits_for(&self, id: &TaskId) -> Vec<String> {
        select::waits_for(self, id)
    }

    /// The text that the plan was read from.
    pub fn source(&self) -> &Source {
        &self.source
    }
}

/// Reads a plan. Whatever the text, there is an answer.
pub fn parse(text: &str, path: &Utf8Path) -> Plan {
    read::read(Source::new(path, text))
}

/// Reads a plan from bytes that need not be text.
pub fn parse_bytes(bytes: &[u8], path: &Utf8Path) -> Plan {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text, path),
        Err(error) => read::not_text(path, error.valid_up_to()),
    }
}
