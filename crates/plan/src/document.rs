//! Plan files as data: Markdown checklists that an agent works through task by task.
//!
//! [`parse`] accepts any text and never fails. Problems become diagnostics, and if the tasks cannot be determined at
//! all, [`Plan::fallback`] says why. [`select_task`] chooses the next task; [`mark`] and [`append_note`] change one
//! place of the file and preserve every other byte. A task is identified by its content, never by its line.
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

/// A parsed plan file.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The first heading of level 1.
    pub title: Option<String>,
    /// The headings in file order, including ignored sections.
    pub sections: Vec<Section>,
    /// In file order.
    pub tasks: Vec<Task>,
    pub format: Format,
    /// The reason why the tasks cannot be determined, in which case an agent has to choose.
    pub fallback: Option<String>,
    /// Problems of the file itself. [`check`] finds more.
    pub diagnostics: Vec<Diagnostic>,
    source: Source,
}

/// A heading, and what it implies for the tasks below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// The heading level, starting at 1.
    pub level: u8,
    /// The text without priority and blockers.
    pub title: String,
    /// The number in `Phase N`.
    pub phase: Option<u32>,
    /// The index of the enclosing section.
    pub parent: Option<usize>,
    /// The default priority of the tasks below.
    pub priority: Option<Priority>,
    /// The blockers of all tasks below.
    pub blocked_by: Vec<Blocker>,
    /// Skills for the tasks below.
    pub hints: Vec<String>,
    /// True if boxes below are not tasks: checklists for people, and legends.
    pub ignored: bool,
    /// The number of boxes skipped for that reason.
    pub ignored_boxes: usize,
    /// Counted from 1.
    pub line: usize,
    /// The spans of the named skills.
    #[serde(skip)]
    at: Vec<(String, Span)>,
}

/// A task: one checkbox of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Stable as long as the text does not change.
    pub id: TaskId,
    /// The label given by the author: `T001`, `1.2`, `Task 3`.
    pub label: Option<String>,
    /// The text without mark, label, priority, blockers and trailing notes; Markdown is kept.
    pub text: String,
    pub mark: Mark,
    /// The index of the section the task is in.
    pub section: Option<usize>,
    /// The task this one is nested in.
    pub parent: Option<TaskId>,
    /// The task's own priority, else that of the task or section above it.
    pub priority: Priority,
    /// The task's own blockers; those of the tasks and sections above it apply as well.
    pub blocked_by: Vec<Blocker>,
    /// Skills named by the author, followed by those of the task and the sections above.
    pub hints: Vec<String>,
    /// References to parts of a specification.
    pub spec_refs: Vec<String>,
    /// The lines below that belong to this task and not to a nested one, without their common indentation.
    pub details: String,
    /// True if the author marked the task as parallelisable (`[P]`).
    pub parallel: bool,
    /// The user story the task belongs to (`[US1]`).
    pub story: Option<String>,
    /// Counted from 1.
    pub line: usize,
    #[serde(skip)]
    at: Places,
}

/// The positions of a task's parts in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Places {
    /// The box, including its `?`.
    mark: Span,
    /// True if the box holds a known mark.
    known: bool,
    /// True if a person has ticked a box of manual QA.
    ticked: bool,
    /// The box and the rest of its line.
    head: Span,
    /// Skill hints in the text.
    hints: Vec<(String, Span)>,
    /// Skill names in backticks, which don't count as hints.
    coded_hints: Vec<Span>,
    /// References to files.
    specs: Vec<(String, Span)>,
    /// Byte offset of the end of the text.
    text_end: usize,
    /// Byte offset of the end of the last line before a nested task.
    own_end: usize,
    /// The indentation of lines nested below the task.
    nested: String,
}

/// The id of a task: its label if that is unique, else a digest of its text.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct TaskId(String);

impl TaskId {
    /// Creates an id from text that was typed or stored.
    pub fn new(id: impl Into<String>) -> Self {
        TaskId(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The mark in the checkbox of a task.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// `[ ]`: to be done.
    Open,
    /// `[~]`: cannot be done now; a box with an unknown character counts as this.
    Blocked,
    /// `[x]`: done, waiting for a review.
    Implemented,
    /// `[R]`: done and reviewed.
    Reviewed,
    /// `[ ]?`: for people, never for the engine.
    ManualQa,
    /// `[!]`: attempts used up, a person has to look.
    Failed,
}

impl Mark {
    pub const ALL: [Mark; 6] = [
        Mark::Open,
        Mark::Blocked,
        Mark::Implemented,
        Mark::Reviewed,
        Mark::ManualQa,
        Mark::Failed,
    ];

    /// The box as written in the file.
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

    /// A word for use after "is".
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

    /// Returns true if the work is done, reviewed or not.
    pub fn is_done(self) -> bool {
        matches!(self, Mark::Implemented | Mark::Reviewed)
    }
}

/// The priority of a task; the most urgent one sorts first.
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
    /// `P2`, `medium`, or none given.
    #[default]
    Medium,
    /// `P3`, `low`.
    Low,
}

impl Priority {
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

/// A dependency of a task or section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocker {
    /// The text as written in the file.
    pub text: String,
    pub on: BlockedOn,
    #[serde(skip)]
    at: Span,
}

/// The target of a blocker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedOn {
    /// Blocked until the task is implemented or reviewed.
    Task(TaskId),
    /// Blocked until all tasks of the section are, except those for people.
    Section(usize),
    /// The target is unknown, so the task is blocked forever.
    Nothing,
}

/// The conventions a plan follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A plan for a loop: phases, priorities, blockers.
    Loop,
    /// A plain list of tasks.
    Tasks,
    /// The `tasks.md` of an OpenSpec change.
    OpenSpec,
    /// The `tasks.md` of spec-kit; its stories carry priorities, but its phases are worked through in order.
    SpecKit,
}

impl Format {
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Loop => "loop",
            Format::Tasks => "tasks",
            Format::OpenSpec => "openspec",
            Format::SpecKit => "spec-kit",
        }
    }
}

/// The number of tasks with each mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// To be done.
    pub open: usize,
    /// Cannot be done now.
    pub blocked: usize,
    /// Done, waiting for a review.
    pub implemented: usize,
    /// Done and reviewed.
    pub reviewed: usize,
    /// For people.
    pub manual_qa: usize,
    /// Attempts used up.
    pub failed: usize,
}

impl Progress {
    /// Counts tasks by mark.
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

    /// The number of tasks that are done, reviewed or not.
    pub fn done(self) -> usize {
        self.implemented + self.reviewed
    }

    /// The number of tasks for the engine: all except those for people.
    pub fn total(self) -> usize {
        self.done() + self.open + self.blocked + self.failed
    }

    /// Returns true if every task is done, except those for people.
    pub fn is_done(self) -> bool {
        self.done() == self.total()
    }
}

impl Plan {
    /// Counts the tasks by mark.
    pub fn progress(&self) -> Progress {
        Progress::of(&self.tasks)
    }

    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| &task.id == id)
    }

    /// The open tasks, in file order.
    pub fn open(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.mark == Mark::Open)
    }

    /// The tasks waiting for a review, in file order.
    pub fn backlog(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.mark == Mark::Implemented)
    }

    /// The tasks directly within a task, in file order.
    pub fn children<'a>(&'a self, id: &'a TaskId) -> impl Iterator<Item = &'a Task> {
        self.tasks.iter().filter(move |task| task.parent.as_ref() == Some(id))
    }

    /// The reasons why a task cannot be chosen, one sentence each; empty if it can be started.
    pub fn waits_for(&self, id: &TaskId) -> Vec<String> {
        select::waits_for(self, id)
    }

    /// The text the plan was parsed from.
    pub fn source(&self) -> &Source {
        &self.source
    }
}

/// Parses a plan. Every text gives a plan.
pub fn parse(text: &str, path: &Utf8Path) -> Plan {
    read::read(Source::new(path, text))
}

/// Parses a plan from bytes that may not be UTF-8.
pub fn parse_bytes(bytes: &[u8], path: &Utf8Path) -> Plan {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text, path),
        Err(error) => read::not_text(path, error.valid_up_to()),
    }
}
