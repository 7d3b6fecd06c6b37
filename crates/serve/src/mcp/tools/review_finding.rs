//! `review_finding`: one finding of a review.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::state::State;
use super::form::{self, Taken};
use super::{Complaint, Effect, Reply, ServedTool};

/// Reports a finding.
pub(super) struct ReviewFinding;

/// What is handed in, and on which form.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The form that you were told to fill in.
    form: String,
    /// The finding, as the form's schema wants it.
    finding: JsonObject,
}

impl ServedTool for ReviewFinding {
    const NAME: &'static str = repertoire_agent::form::FINDING;
    const TITLE: &'static str = "Report a finding";
    const ABOUT: &'static str =
        "Reports one finding of a review, as you find it, on the form that you were told.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Arguments;
    type Output = Taken;

    async fn call(state: Arc<State>, asked: Arguments) -> Result<Reply<Taken>, Complaint> {
        let form = form::find(&state, &asked.form)?;
        form::add_finding(&form, asked.finding)
    }
}
