//! Plan files as data: Markdown checklists that an agent works through task by task.
//!
//! [`parse_plan`] accepts any text and never fails. Problems become diagnostics, and if the tasks cannot be determined at
//! all, [`PlanDocument::fallback`] says why. [`select_task`] chooses the next task; [`mark_task`] and [`append_note`] change one
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
mod labels;
mod lines;
mod metadata;
mod opaque;
mod read;
mod select;
mod specs;

pub use check::check_plan;
pub use edit::{PlanEditError, append_note, mark_task, mark_tasks};
pub use select::{TaskChoice, select_task};

/// A parsed plan file.
#[derive(Clone, Debug)]
pub struct PlanDocument {
    /// The first heading of level 1.
    pub title: Option<String>,
    /// The headings in file order, including ignored sections.
    pub sections: Vec<PlanSection>,
    /// In file order.
    pub tasks: Vec<PlanTask>,
    pub format: PlanFormat,
    /// The reason why the tasks cannot be determined, in which case an agent has to choose.
    pub fallback: Option<String>,
    /// Problems of the file itself. [`check_plan`] finds more.
    pub diagnostics: Vec<Diagnostic>,
    source: Source,
}

/// A heading, and what it implies for the tasks below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanSection {
    /// The heading level, starting at 1.
    pub level: u8,
    /// The text without priority and blockers.
    pub title: String,
    /// The number in `Phase N`.
    pub phase: Option<u32>,
    /// The index of the enclosing section.
    pub parent: Option<usize>,
    /// The default priority of the tasks below.
    pub priority: Option<TaskPriority>,
    /// The blockers of all tasks below.
    pub blocked_by: Vec<TaskBlocker>,
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
pub struct PlanTask {
    /// Stable as long as the text does not change.
    pub id: TaskId,
    /// The label given by the author: `T001`, `1.2`, `Task 3`.
    pub label: Option<String>,
    /// The text without mark, label, priority, blockers and trailing notes; Markdown is kept.
    pub text: String,
    pub mark: TaskMark,
    /// The index of the section the task is in.
    pub section: Option<usize>,
    /// The task this one is nested in.
    pub parent: Option<TaskId>,
    /// The task's own priority, else that of the task or section above it.
    pub priority: TaskPriority,
    /// The task's own blockers; those of the tasks and sections above it apply as well.
    pub blocked_by: Vec<TaskBlocker>,
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
    at: TaskSpans,
}

/// The positions of a task's parts in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TaskSpans {
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
pub enum TaskMark {
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

impl TaskMark {
    pub const ALL: [TaskMark; 6] = [
        TaskMark::Open,
        TaskMark::Blocked,
        TaskMark::Implemented,
        TaskMark::Reviewed,
        TaskMark::ManualQa,
        TaskMark::Failed,
    ];

    /// The box as written in the file.
    pub fn symbol(self) -> &'static str {
        match self {
            TaskMark::Open => "[ ]",
            TaskMark::Blocked => "[~]",
            TaskMark::Implemented => "[x]",
            TaskMark::Reviewed => "[R]",
            TaskMark::ManualQa => "[ ]?",
            TaskMark::Failed => "[!]",
        }
    }

    /// A word for use after "is".
    pub fn described(self) -> &'static str {
        match self {
            TaskMark::Open => "open",
            TaskMark::Blocked => "blocked",
            TaskMark::Implemented => "implemented",
            TaskMark::Reviewed => "reviewed",
            TaskMark::ManualQa => "manual QA",
            TaskMark::Failed => "failed",
        }
    }

    /// Returns true if the work is done, reviewed or not.
    pub fn is_done(self) -> bool {
        matches!(self, TaskMark::Implemented | TaskMark::Reviewed)
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
pub enum TaskPriority {
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

impl TaskPriority {
    pub fn as_str(self) -> &'static str {
        match self {
            TaskPriority::Critical => "critical",
            TaskPriority::High => "high",
            TaskPriority::Medium => "medium",
            TaskPriority::Low => "low",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "p0" | "critical" | "urgent" | "highest" => Some(TaskPriority::Critical),
            "p1" | "high" => Some(TaskPriority::High),
            "p2" | "medium" | "normal" => Some(TaskPriority::Medium),
            "p3" | "low" | "lowest" => Some(TaskPriority::Low),
            _ => None,
        }
    }
}

/// A dependency of a task or section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskBlocker {
    /// The text as written in the file.
    pub text: String,
    pub on: BlockerTarget,
    #[serde(skip)]
    at: Span,
}

/// The target of a blocker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockerTarget {
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
pub enum PlanFormat {
    /// A plan for a loop: phases, priorities, blockers.
    Loop,
    /// A plain list of tasks.
    Tasks,
    /// The `tasks.md` of an OpenSpec change.
    OpenSpec,
    /// The `tasks.md` of spec-kit; its stories carry priorities, but its phases are worked through in order.
    SpecKit,
}

impl PlanFormat {
    pub fn as_str(self) -> &'static str {
        match self {
            PlanFormat::Loop => "loop",
            PlanFormat::Tasks => "tasks",
            PlanFormat::OpenSpec => "openspec",
            PlanFormat::SpecKit => "spec-kit",
        }
    }
}

/// The number of tasks with each mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskMarkCounts {
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

impl TaskMarkCounts {
    /// Counts tasks by mark.
    pub fn count_tasks<'a>(tasks: impl IntoIterator<Item = &'a PlanTask>) -> Self {
        let mut progress = TaskMarkCounts::default();
        for task in tasks {
            *match task.mark {
                TaskMark::Open => &mut progress.open,
                TaskMark::Blocked => &mut progress.blocked,
                TaskMark::Implemented => &mut progress.implemented,
                TaskMark::Reviewed => &mut progress.reviewed,
                TaskMark::ManualQa => &mut progress.manual_qa,
                TaskMark::Failed => &mut progress.failed,
            } += 1;
        }
        progress
    }

    /// The number of tasks that are done, reviewed or not.
    pub fn done_count(self) -> usize {
        self.implemented + self.reviewed
    }

    /// The number of tasks for the engine: all except those for people.
    pub fn task_count(self) -> usize {
        self.done_count() + self.open + self.blocked + self.failed
    }

    /// Returns true if every task is done, except those for people.
    pub fn is_done(self) -> bool {
        self.done_count() == self.task_count()
    }
}

impl PlanDocument {
    /// Counts the tasks by mark.
    pub fn count_marks(&self) -> TaskMarkCounts {
        TaskMarkCounts::count_tasks(&self.tasks)
    }

    pub fn task(&self, id: &TaskId) -> Option<&PlanTask> {
        self.tasks.iter().find(|task| &task.id == id)
    }

    /// The open tasks, in file order.
    pub fn open_tasks(&self) -> impl Iterator<Item = &PlanTask> {
        self.tasks.iter().filter(|task| task.mark == TaskMark::Open)
    }

    /// The tasks waiting for a review, in file order.
    pub fn review_backlog(&self) -> impl Iterator<Item = &PlanTask> {
        self.tasks.iter().filter(|task| task.mark == TaskMark::Implemented)
    }

    /// The tasks directly within a task, in file order.
    pub fn children<'a>(&'a self, id: &'a TaskId) -> impl Iterator<Item = &'a PlanTask> {
        self.tasks.iter().filter(move |task| task.parent.as_ref() == Some(id))
    }

    /// The reasons why a task cannot be chosen, one sentence each; empty if it can be started.
    pub fn blocking_reasons(&self, id: &TaskId) -> Vec<String> {
        select::blocking_reasons(self, id)
    }

    /// The text the plan was parsed from.
    pub fn source(&self) -> &Source {
        &self.source
    }
}

/// Parses a plan. Every text gives a plan.
pub fn parse_plan(text: &str, path: &Utf8Path) -> PlanDocument {
    read::read_plan(Source::new(path, text))
}

/// Parses a plan from bytes that may not be UTF-8.
pub fn parse_plan_bytes(bytes: &[u8], path: &Utf8Path) -> PlanDocument {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse_plan(text, path),
        Err(error) => read::plan_not_text(path, error.valid_up_to()),
    }
}
