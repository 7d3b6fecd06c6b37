//! The shapes of `rep plan … --json`.

pub use repertoire_plan::document::json::{PlanStatusJson, SectionJson, TaskJson};
use repertoire_plan::document::{Progress, TaskId};
use repertoire_journal::Payload;
use repertoire_journal::event::TaskRef;
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

/// `rep plan prompt --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanPromptJson {
    /// The task; nothing if the agent would choose.
    pub task: Option<TaskRef>,
    /// Skills that are loaded into it.
    pub skills: Vec<String>,
    /// What a run would record.
    pub events: Vec<Payload>,
    /// The prompt, to the byte.
    pub prompt: String,
}
