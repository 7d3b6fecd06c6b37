//! Enforces the limits on depth, turns, tokens, time and money before every model call.

use futures_util::future::BoxFuture;
use repertoire_model::TokenUsage;

use super::{AgentTurn, MiddlewareNext, TurnError, TurnMiddleware};
use crate::event::EventKind;
use crate::spending::LimitReached;

/// Enforces the limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct SafetyLimits;

impl TurnMiddleware for SafetyLimits {
    fn name(&self) -> &'static str {
        "safety limits"
    }

    fn handle<'a>(
        &'a self,
        turn: &'a mut AgentTurn,
        next: MiddlewareNext<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            if turn.preview {
                return next.run(turn).await;
            }
            if let Err(limit) = check_limits(turn) {
                return Err(report_limit(turn, limit));
            }
            let deadline = turn.run.spending.deadline();
            let max_s = turn.run.spending.limits().duration_max.as_secs();
            match tokio::time::timeout_at(deadline, next.run(turn)).await {
                Ok(ended) => ended,
                Err(_) => Err(report_limit(turn, LimitReached::Duration { max_s })),
            }
        })
    }
}

fn report_limit(turn: &AgentTurn, limit: LimitReached) -> TurnError {
    let (name, message) = (limit.name().to_owned(), limit.to_string());
    turn.run.events.emit(EventKind::Limit { limit: name, message });
    limit.into()
}

fn check_limits(turn: &AgentTurn) -> Result<(), LimitReached> {
    let spending = &turn.run.spending;
    let limits = spending.limits();
    if turn.run.depth > limits.depth_max {
        return Err(LimitReached::Depth { depth: turn.run.depth, max: limits.depth_max });
    }
    let max = iterations_max(turn);
    if turn.iteration > max {
        return Err(LimitReached::Iterations { max });
    }
    let (name, next_usd) = match &turn.model {
        Some(model) => {
            let reading = TokenUsage {
                cache_read_tokens: turn.conversation.estimate_tokens(),
                ..TokenUsage::default()
            };
            (model.name.to_string(), turn.run.system.prices().cost_usd(&model.name, &reading))
        }
        None => (String::new(), None),
    };
    spending.check_limits(next_usd, &name)
}

fn iterations_max(turn: &AgentTurn) -> u32 {
    let own = turn.agent.max_iterations.unwrap_or(u32::MAX);
    own.min(turn.run.spending.limits().iterations_max)
}
