//! `workflow_start`: starts a workflow.

use std::collections::BTreeMap;
use std::sync::Arc;

use repertoire_flow::driver::operations::WorkflowStartRequest;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::super::state::McpState;
use super::workflow::{WorkflowPosition, operation_error, render_step};
use super::{ServedTool, ServedToolEffect, ServedToolError, ServedToolReply};

/// Starts a workflow.
pub(super) struct WorkflowStart;

/// The workflow to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkflowStartArguments {
    /// The workflow's name; `skill/name` for a sub-agent's workflow.
    workflow: String,
    /// The values of its parameters, by name.
    #[serde(default)]
    parameters: BTreeMap<String, String>,
    /// An id for the run; generated if absent.
    #[serde(default)]
    run: Option<String>,
    /// The run whose sub-agent starts this one.
    #[serde(default)]
    parent: Option<String>,
}

impl ServedTool for WorkflowStart {
    const NAME: &'static str = "workflow_start";
    const TITLE: &'static str = "Start a workflow";
    const ABOUT: &'static str = "Starts a run of a workflow and tells its first step. Do what the step says, then report with \
        `workflow_step`; it tells the next one.";
    const EFFECT: ServedToolEffect = ServedToolEffect::Adds;
    type Arguments = WorkflowStartArguments;
    type Output = WorkflowPosition;

    async fn call(
        state: Arc<McpState>,
        asked: WorkflowStartArguments,
        cancel: CancellationToken,
    ) -> Result<ServedToolReply<WorkflowPosition>, ServedToolError> {
        let WorkflowStartArguments { workflow, parameters, run: id, parent } = asked;
        let start = WorkflowStartRequest { workflow, parameters, id, parent };
        let operations = state
            .serve_state
            .workflow_operations()
            .await
            .map_err(|error| operation_error(error.into()))?;
        let started = operations.start(start, &cancel).await.map_err(operation_error)?;
        let note = started.withheld.map(|withheld| {
            format!(
                "Nobody has trusted the skill `{}`: commands that it declares are not run before a person says \
                 `rep trust {}`.",
                withheld.skill, withheld.skill
            )
        });
        render_step(&started.standing, note)
    }
}
