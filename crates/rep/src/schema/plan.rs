//! The types of `rep plan … --json`.

use repertoire_journal::Payload;
use repertoire_journal::event::TaskRef;
pub use repertoire_plan::document::json::{PlanStatusJson, SectionJson, TaskJson};
use repertoire_plan::document::{TaskId, TaskMarkCounts};
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::Serialize;

/// The output of `rep plan next --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanNextJson {
    /// The plan's file.
    pub plan: String,
    /// `task`, `nothing`, `stuck`, or `unknown` if the tasks of the plan cannot be determined.
    pub choice: &'static str,
    /// The task that comes next.
    pub task: Option<TaskJson>,
    /// The reason for the choice.
    pub why: String,
    /// The open tasks and their blockers, if all open tasks are blocked.
    pub waiting: Vec<BlockedTaskJson>,
    /// Number of tasks with each mark.
    pub progress: TaskMarkCounts,
}

/// A task that is blocked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BlockedTaskJson {
    /// The id of the task.
    pub id: TaskId,
    /// The text of the task.
    pub text: String,
    /// The reason why it is blocked.
    pub why: String,
}

/// The output of `rep plan check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanCheckJson {
    /// The plan's file.
    pub plan: String,
    /// The reason why the tasks cannot be determined, if they cannot.
    pub fallback: Option<String>,
    /// Number of tasks.
    pub tasks: usize,
    /// The findings about the plan.
    pub diagnostics: Vec<DiagnosticJson>,
    /// Number of errors.
    pub errors: usize,
    /// Number of warnings.
    pub warnings: usize,
}

/// The output of `rep plan prompt --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanPromptJson {
    /// The task; null if the agent would choose it.
    pub task: Option<TaskRef>,
    /// The skills that are loaded into the prompt.
    pub skills: Vec<String>,
    /// The events that a run would record.
    pub events: Vec<Payload>,
    /// The exact prompt.
    pub prompt: String,
}
