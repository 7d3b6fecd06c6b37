//! The shapes of `rep workflow … --json`. A step is printed in the shape of the step model itself.

pub use repertoire_flow::driver::shown::{GateJson, RunRow, StatusJson, WorkflowJson, WorkflowRow};
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::Serialize;

/// `rep workflow list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkflowsJson {
    /// The workflows, by name.
    pub workflows: Vec<WorkflowRow>,
}

/// `rep workflow check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckJson {
    /// What was checked.
    pub workflows: Vec<CheckedJson>,
    /// Errors in all of them.
    pub errors: usize,
    /// Warnings in all of them.
    pub warnings: usize,
}

/// One workflow that was checked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckedJson {
    /// Its name.
    pub name: String,
    /// The file.
    pub path: String,
    /// Whether it can run.
    pub can_run: bool,
    /// What was found.
    pub diagnostics: Vec<DiagnosticJson>,
}

/// `rep workflow runs --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunsJson {
    /// The runs, the latest first.
    pub runs: Vec<RunRow>,
    /// Folders that cannot be read.
    pub broken: Vec<BrokenRun>,
}

/// A run that cannot be read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BrokenRun {
    /// Its name.
    pub run: String,
    /// Why.
    pub reason: String,
}
