//! `workflow_step`: where a run stands, and going on.

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

/// Goes on with a run.
pub(super) struct WorkflowStep;

/// Which run, and what is reported.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The run, as `workflow_start` names it. Alone it asks where the run stands.
    run: String,
    /// The turn that is reported about, so that the same report twice counts once.
    #[serde(default)]
    at: Option<u32>,
    /// How the step ended, where it asks for it.
    #[serde(default)]
    outcome: Option<String>,
    /// How sure you are, where it asks for it: exploring, low, medium, high or certain.
    #[serde(default)]
    confidence: Option<String>,
    /// Answers to questions of fact, by their ids: yes, partial or no.
    #[serde(default)]
    facts: BTreeMap<String, String>,
    /// Parameters that the step sets, by name.
    #[serde(default)]
    set: BTreeMap<String, String>,
    /// What the step hands over.
    #[serde(default)]
    output: Option<String>,
    /// Why the step could not be carried out, if it could not.
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

/// What is reported, if anything is besides the turn.
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
