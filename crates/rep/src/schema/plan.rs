//! The shapes of `rep plan … --json`.

use repertoire_flow::plan::{Format, Mark, Plan, Priority, Progress, Task, TaskId};
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::Serialize;

/// `rep plan next --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanNextJson {
    /// The plan's file.
    pub plan: String,
    /// `task`, `nothing`, `stuck`, or `unknown` if the tasks of the plan cannot be told.
    pub choice: &'static str,
    /// The task that comes next.
    pub task: Option<TaskJson>,
    /// Why it is this one; or why there is none.
    pub why: String,
    /// The open tasks that wait, if all do.
    pub waiting: Vec<WaitingJson>,
    /// How many tasks have each mark.
    pub progress: Progress,
}

/// A task that waits.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WaitingJson {
    /// Its name.
    pub id: TaskId,
    /// What is to be done.
    pub text: String,
    /// What it waits for.
    pub why: String,
}

/// `rep plan status --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanStatusJson {
    /// The plan's file.
    pub plan: String,
    /// Its title.
    pub title: Option<String>,
    /// Whose habits it follows.
    pub format: Format,
    /// Why its tasks cannot be told, if they cannot.
    pub fallback: Option<String>,
    /// How many tasks have each mark.
    pub progress: Progress,
    /// The task that comes next.
    pub next: Option<TaskId>,
    /// The sections that have tasks.
    pub sections: Vec<SectionJson>,
    /// The tasks, in file order.
    pub tasks: Vec<TaskJson>,
    /// Boxes in sections for people, which are no tasks.
    pub ignored_boxes: usize,
    /// Errors that `rep plan check` shows.
    pub errors: usize,
}

/// A section with tasks.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SectionJson {
    /// Its title.
    pub title: String,
    /// The number of `Phase N`.
    pub phase: Option<u32>,
    /// Its line, from 1.
    pub line: usize,
    /// What it waits for, as it is written.
    pub blocked_by: Vec<String>,
    /// How many of its own tasks have each mark.
    pub progress: Progress,
}

/// One task.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TaskJson {
    /// Its name: stays as long as its text stays.
    pub id: TaskId,
    /// The label that its author gave it.
    pub label: Option<String>,
    /// What is to be done.
    pub text: String,
    /// Where it stands.
    pub mark: Mark,
    /// The title of the section that it stands in.
    pub section: Option<String>,
    /// The task that it is a part of.
    pub parent: Option<TaskId>,
    /// How urgent it is.
    pub priority: Priority,
    /// What it waits for, as it is written.
    pub blocked_by: Vec<String>,
    /// What keeps it from being chosen now.
    pub waits_for: Vec<String>,
    /// Skills that are named for it.
    pub hints: Vec<String>,
    /// Parts of a specification that it names.
    pub spec_refs: Vec<String>,
    /// The lines below it.
    pub details: String,
    /// Whether it can be done beside others.
    pub parallel: bool,
    /// The user story that it belongs to.
    pub story: Option<String>,
    /// Its line, from 1.
    pub line: usize,
}

impl TaskJson {
    pub(crate) fn of(plan: &Plan, task: &Task, waits_for: Vec<String>) -> Self {
        TaskJson {
            id: task.id.clone(),
            label: task.label.clone(),
            text: task.text.clone(),
            mark: task.mark,
            section: task.section.map(|at| plan.sections[at].title.clone()),
            parent: task.parent.clone(),
            priority: task.priority,
            blocked_by: task.blocked_by.iter().map(|blocker| blocker.text.clone()).collect(),
            waits_for,
            hints: task.hints.clone(),
            spec_refs: task.spec_refs.clone(),
            details: task.details.clone(),
            parallel: task.parallel,
            story: task.story.clone(),
            line: task.line,
        }
    }
}

/// `rep plan check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanCheckJson {
    /// The plan's file.
    pub plan: String,
    /// Why its tasks cannot be told, if they cannot.
    pub fallback: Option<String>,
    /// How many tasks it has.
    pub tasks: usize,
    /// What was found.
    pub diagnostics: Vec<DiagnosticJson>,
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
}
