//! `workflow_record`: records the findings of a review.

use std::sync::Arc;

use repertoire_flow::driver::desk::{AskedCheck, Record, Standing};
use repertoire_flow::engine::ItemRecord;
use repertoire_flow::items;
use repertoire_flow::workflow::StepId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::super::state::State;
use super::workflow::{At, failed, told};
use super::{Complaint, Effect, Reply, ServedTool};

/// Records the findings of a review.
pub(super) struct WorkflowRecord;

/// The run and the findings.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The id of the run.
    run: String,
    /// Items of the review.
    #[serde(default)]
    items: Vec<Item>,
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
pub(super) struct Item {
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
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Arguments;
    type Output = At;

    async fn call(
        state: Arc<State>,
        asked: Arguments,
        cancel: CancellationToken,
    ) -> Result<Reply<At>, Complaint> {
        if asked.items.is_empty() && asked.checks.is_empty() {
            return Err(Complaint(
                "There is nothing to record. Give `items` or `checks`.".to_owned(),
            ));
        }
        let gate = asked.gate.as_deref().map(StepId::from);
        let record = Record { gate, items: items(&asked.items)?, checks: checks(&asked.checks)? };
        let run = state.house.desk().record(&asked.run, record, &cancel, |_, _| {}).await;
        told(&Standing::Workflow(Box::new(run.map_err(failed)?)), None)
    }
}

fn items(given: &[Item]) -> Result<Vec<ItemRecord>, Complaint> {
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let text = serde_json::to_string(given).expect("text is JSON");
    items::parse(&text).map_err(|error| Complaint(format!("An item does not fit: {error}.")))
}

fn checks(given: &[String]) -> Result<Vec<AskedCheck>, Complaint> {
    let asked = given.iter().map(|text| {
        if text.contains('=') {
            items::parse_check(text)
                .map(AskedCheck::Claimed)
                .map_err(|error| Complaint(format!("A check does not fit: {error}.")))
        } else {
            Ok(AskedCheck::Run(text.clone()))
        }
    });
    asked.collect()
}
