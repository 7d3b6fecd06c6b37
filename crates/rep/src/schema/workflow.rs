//! The types of `rep workflow … --json`. A step is printed as the step model itself.

pub use repertoire_flow::driver::json_output::{
    GateJson, StatusJson, WorkflowJson, WorkflowRow, WorkflowRunListRow,
};
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::Serialize;

/// The output of `rep workflow list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkflowsJson {
    /// The workflows, sorted by name.
    pub workflows: Vec<WorkflowRow>,
}

/// The output of `rep workflow check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkflowCheckJson {
    /// The workflows that were checked.
    pub workflows: Vec<CheckedWorkflowJson>,
    /// Number of errors in all workflows.
    pub errors: usize,
    /// Number of warnings in all workflows.
    pub warnings: usize,
}

/// A workflow that was checked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckedWorkflowJson {
    /// The name of the workflow.
    pub name: String,
    /// The path of the file.
    pub path: String,
    /// True if the workflow can run.
    pub can_run: bool,
    /// The findings about the workflow.
    pub diagnostics: Vec<DiagnosticJson>,
}

/// The output of `rep workflow runs --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkflowRunsListJson {
    /// The runs, the latest first.
    pub runs: Vec<WorkflowRunListRow>,
    /// Runs that cannot be read.
    pub broken: Vec<BrokenWorkflowRun>,
}

/// A run that cannot be read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BrokenWorkflowRun {
    /// The name of the run.
    pub run: String,
    /// The reason why it cannot be read.
    pub reason: String,
}
