//! `hand_in`: a whole answer.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::state::State;
use super::form::{self, Taken};
use super::{Complaint, Effect, Reply, ServedTool};

/// Hands in an answer.
pub(super) struct HandIn;

/// What is handed in, and on which form.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The form that you were told to fill in.
    form: String,
    /// The answer, as the form's schema wants it.
    answer: JsonObject,
}

impl ServedTool for HandIn {
    const NAME: &'static str = repertoire_agent::form::HAND_IN;
    const TITLE: &'static str = "Hand in an answer";
    const ABOUT: &'static str = "Hands in your answer on the form that you were told; findings that you have reported before are part of it.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Arguments;
    type Output = Taken;

    async fn call(state: Arc<State>, asked: Arguments) -> Result<Reply<Taken>, Complaint> {
        let form = form::find(&state, &asked.form)?;
        form::hand_in(&form, asked.answer)
    }
}
