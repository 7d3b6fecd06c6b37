//! `workflow_step`: reports on a step, or returns the current one.

use std::collections::BTreeMap;
use std::sync::Arc;

use repertoire_flow::driver::operations::StepResultReport;
use repertoire_flow::engine::StepReport;
use repertoire_flow::workflow::{ConfidenceLevel, WorkflowOutcome};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::super::state::McpState;
use super::workflow::{WorkflowPosition, operation_error, render_step};
use super::{ServedTool, ServedToolEffect, ServedToolError, ServedToolReply};

/// Continues a run.
pub(super) struct WorkflowStep;

/// The run, and the report on its step.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkflowStepArguments {
    /// The run, as returned by `workflow_start`. Pass only this to get the current step.
    run: String,
    /// The turn of the report, so that a repeated report counts once.
    #[serde(default)]
    at: Option<u32>,
    /// The outcome of the step, if it asks for one.
    #[serde(default)]
    outcome: Option<String>,
    /// Your confidence, if the step asks for it: exploring, low, medium, high or certain.
    #[serde(default)]
    confidence: Option<String>,
    /// Answers to questions of fact, by their ids: yes, partial or no.
    #[serde(default)]
    facts: BTreeMap<String, String>,
    /// Parameters that the step sets, by name.
    #[serde(default)]
    set: BTreeMap<String, String>,
    /// The output of the step.
    #[serde(default)]
    output: Option<String>,
    /// The reason why the step could not be carried out.
    #[serde(default)]
    error: Option<String>,
}

impl ServedTool for WorkflowStep {
    const NAME: &'static str = "workflow_step";
    const TITLE: &'static str = "Go on with a workflow";
    const ABOUT: &'static str = "Reports how a step of a workflow ended and tells the next one; with nothing but the run it tells where the \
        run stands.";
    const EFFECT: ServedToolEffect = ServedToolEffect::Adds;
    type Arguments = WorkflowStepArguments;
    type Output = WorkflowPosition;

    async fn call(
        state: Arc<McpState>,
        asked: WorkflowStepArguments,
        cancel: CancellationToken,
    ) -> Result<ServedToolReply<WorkflowPosition>, ServedToolError> {
        let (run, at) = (asked.run.clone(), asked.at);
        let said = build_report(asked)?;
        let operations = state
            .serve_state
            .workflow_operations()
            .await
            .map_err(|error| operation_error(error.into()))?;
        let standing =
            operations.advance_run(&run, at, said, &cancel).await.map_err(operation_error)?;
        render_step(&standing, None)
    }
}

/// Builds the report; `None` if only the run and the turn are given.
fn build_report(asked: WorkflowStepArguments) -> Result<Option<StepResultReport>, ServedToolError> {
    let confidence = match &asked.confidence {
        None => None,
        Some(word) => Some(ConfidenceLevel::parse(word).ok_or_else(|| {
            ServedToolError(format!(
                "`{word}` is no level of confidence. Use exploring, low, medium, high or certain."
            ))
        })?),
    };
    let report = StepReport {
        outcome: asked.outcome.as_deref().map(WorkflowOutcome::from),
        confidence,
        facts: asked.facts,
        set: asked.set,
        output: asked.output,
    };
    let reports = report != StepReport::default();
    match asked.error {
        Some(_) if reports => Err(ServedToolError(
            "A step that could not be carried out has nothing else to report. Give `error` alone."
                .to_owned(),
        )),
        Some(why) => Ok(Some(StepResultReport::Failed(why))),
        None => Ok(reports.then_some(StepResultReport::Done(report))),
    }
}
