//! `workflow_record`: records the findings of a review.

use std::sync::Arc;

use repertoire_flow::driver::AnyWorkflowRun;
use repertoire_flow::driver::operations::{CheckToRecord, GateReviewRecord};
use repertoire_flow::engine::ItemRecord;
use repertoire_flow::items;
use repertoire_flow::workflow::StepId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::super::state::McpState;
use super::workflow::{WorkflowPosition, operation_error, render_step};
use super::{ServedTool, ServedToolEffect, ServedToolError, ServedToolReply};

/// Records the findings of a review.
pub(super) struct WorkflowRecord;

/// The run and the findings.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkflowRecordArguments {
    /// The id of the run.
    run: String,
    /// Items of the review.
    #[serde(default)]
    items: Vec<WorkflowRecordItem>,
    /// Declared checks: a name runs its command; `NAME=PASS` or `NAME=FAIL: why` is for a check
    /// without a command.
    #[serde(default)]
    checks: Vec<String>,
    /// The gate to which they belong, if several are possible.
    #[serde(default)]
    gate: Option<String>,
}

/// A review item. Absent fields stay unchanged.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkflowRecordItem {
    /// The id of the item.
    id: String,
    /// The scope of the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// The condition to check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<String>,
    /// The severity of a failure: MUST, SHOULD or COULD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    severity: Option<String>,
    /// The result: TODO, PASS or FAIL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// The evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finding: Option<String>,
}

impl ServedTool for WorkflowRecord {
    const NAME: &'static str = "workflow_record";
    const TITLE: &'static str = "Record a review";
    const ABOUT: &'static str = "Records what a review step of a workflow has found: items with PASS or FAIL and the evidence, and declared \
        checks, whose commands are run.";
    const EFFECT: ServedToolEffect = ServedToolEffect::Adds;
    type Arguments = WorkflowRecordArguments;
    type Output = WorkflowPosition;

    async fn call(
        state: Arc<McpState>,
        asked: WorkflowRecordArguments,
        cancel: CancellationToken,
    ) -> Result<ServedToolReply<WorkflowPosition>, ServedToolError> {
        if asked.items.is_empty() && asked.checks.is_empty() {
            return Err(ServedToolError(
                "There is nothing to record. Give `items` or `checks`.".to_owned(),
            ));
        }
        let gate = asked.gate.as_deref().map(StepId::from);
        let record = GateReviewRecord {
            gate,
            items: parse_items(&asked.items)?,
            checks: parse_checks(&asked.checks)?,
        };
        let operations = state
            .serve_state
            .workflow_operations()
            .await
            .map_err(|error| operation_error(error.into()))?;
        let run = operations.record_review(&asked.run, record, &cancel, |_, _| {}).await;
        render_step(&AnyWorkflowRun::Workflow(Box::new(run.map_err(operation_error)?)), None)
    }
}

fn parse_items(given: &[WorkflowRecordItem]) -> Result<Vec<ItemRecord>, ServedToolError> {
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let text = serde_json::to_string(given).expect("text is JSON");
    items::parse_items(&text)
        .map_err(|error| ServedToolError(format!("An item does not fit: {error}.")))
}

fn parse_checks(given: &[String]) -> Result<Vec<CheckToRecord>, ServedToolError> {
    let asked = given.iter().map(|text| {
        if text.contains('=') {
            items::parse_check(text)
                .map(CheckToRecord::Claimed)
                .map_err(|error| ServedToolError(format!("A check does not fit: {error}.")))
        } else {
            Ok(CheckToRecord::Run(text.clone()))
        }
    });
    asked.collect()
}
