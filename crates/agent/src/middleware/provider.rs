//! Selects the model: the caller's, else the agent's, else the one requested for the delegating
//! agent, else the configured one.

use futures_util::future::BoxFuture;
use repertoire_model::ModelName;

use super::{AgentTurn, MiddlewareNext, ModelChoice, TurnError, TurnMiddleware};
use crate::compaction;
use crate::limits::CONTEXT_TOKENS_UNKNOWN;

/// Selects the model.
#[derive(Clone, Copy, Debug)]
pub struct ProviderSelection;

impl TurnMiddleware for ProviderSelection {
    fn name(&self) -> &'static str {
        "provider selection"
    }

    fn handle<'a>(
        &'a self,
        turn: &'a mut AgentTurn,
        next: MiddlewareNext<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            if turn.model.is_none() {
                turn.model = Some(choose_model(turn));
            }
            // The budget depends on the model, so compaction happens here.
            if !turn.preview {
                compaction::compact_if_needed(turn).await;
            }
            next.run(turn).await
        })
    }
}

fn choose_model(turn: &AgentTurn) -> ModelChoice {
    let system = &turn.run.system;
    let asked = turn.options.model.as_ref().or(turn.agent.model.as_ref());
    let asked = asked.or(turn.run.model.as_ref());
    let name: ModelName = asked.unwrap_or(&system.config().model).clone();
    let info = system.prices().get(&name).copied();
    let context_tokens = info.map_or(CONTEXT_TOKENS_UNKNOWN, |info| info.context_tokens);
    ModelChoice { name, info, context_tokens }
}
