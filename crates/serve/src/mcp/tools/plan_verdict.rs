//! `plan_verdict`: a verdict on a step of a plan.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::state::State;
use super::form::{self, Taken};
use super::{Complaint, Effect, Reply, ServedTool};

/// Hands in a verdict.
pub(super) struct PlanVerdict;

/// What is handed in, and on which form.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The form that you were told to fill in.
    form: String,
    /// The verdict, as the form's schema wants it.
    verdict: JsonObject,
}

impl ServedTool for PlanVerdict {
    const NAME: &'static str = repertoire_agent::form::VERDICT;
    const TITLE: &'static str = "Give a verdict";
    const ABOUT: &'static str =
        "Hands in your verdict on a step of a plan, on the form that you were told.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Arguments;
    type Output = Taken;

    async fn call(state: Arc<State>, asked: Arguments) -> Result<Reply<Taken>, Complaint> {
        let form = form::find(&state, &asked.form)?;
        form::hand_in(&form, asked.verdict)
    }
}
