//! `workflow_step`: reports on a step, or returns the current one.

use std::collections::BTreeMap;
use std::sync::Arc;

use repertoire_flow::driver::desk::Said;
use repertoire_flow::engine::Report;
use repertoire_flow::workflow::{Confidence, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::super::state::State;
use super::workflow::{At, failed, told};
use super::{Complaint, Effect, Reply, ServedTool};

/// Continues a run.
pub(super) struct WorkflowStep;

/// The run, and the report on its step.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
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
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Arguments;
    type Output = At;

    async fn call(
        state: Arc<State>,
        asked: Arguments,
        cancel: CancellationToken,
    ) -> Result<Reply<At>, Complaint> {
        let (run, at) = (asked.run.clone(), asked.at);
        let said = said(asked)?;
        let standing = state.house.desk().step(&run, at, said, &cancel).await.map_err(failed)?;
        told(&standing, None)
    }
}

/// Builds the report; `None` if only the run and the turn are given.
fn said(asked: Arguments) -> Result<Option<Said>, Complaint> {
    let confidence = match &asked.confidence {
        None => None,
        Some(word) => Some(Confidence::parse(word).ok_or_else(|| {
            Complaint(format!(
                "`{word}` is no level of confidence. Use exploring, low, medium, high or certain."
            ))
        })?),
    };
    let report = Report {
        outcome: asked.outcome.as_deref().map(Outcome::from),
        confidence,
        facts: asked.facts,
        set: asked.set,
        output: asked.output,
    };
    let reports = report != Report::default();
    match asked.error {
        Some(_) if reports => Err(Complaint(
            "A step that could not be carried out has nothing else to report. Give `error` alone."
                .to_owned(),
        )),
        Some(why) => Ok(Some(Said::Failed(why))),
        None => Ok(reports.then_some(Said::Done(report))),
    }
}
