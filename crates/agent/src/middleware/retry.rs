//! Retries model calls where that can help, waits for usage limits to reset, and compacts the
//! conversation when the provider rejects it as too long.

use std::time::Duration;

use futures_util::future::BoxFuture;
use repertoire_model::ModelError;
use repertoire_model::retry::RetryAdvice;
use tokio::time::Instant;

use super::{AgentTurn, MiddlewareNext, TurnError, TurnMiddleware};
use crate::compaction;
use crate::event::EventKind;

/// Retries failed model calls.
#[derive(Clone, Copy, Debug)]
pub struct RetryMiddleware;

impl TurnMiddleware for RetryMiddleware {
    fn name(&self) -> &'static str {
        "retry"
    }

    fn handle<'a>(
        &'a self,
        turn: &'a mut AgentTurn,
        next: MiddlewareNext<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            let mut attempt = 1;
            let mut shortened = false;
            loop {
                turn.attempt = attempt;
                let error = match next.run(turn).await {
                    Err(TurnError::Model(error)) => error,
                    ended => return ended,
                };
                if matches!(error, ModelError::ContextTooLong { .. }) && !shortened {
                    shortened = true;
                    compaction::compact_by_half(turn).await;
                    continue;
                }
                attempt = wait_for_retry(turn, error, attempt).await?;
            }
        })
    }
}

/// Waits until the next attempt, and returns its number.
async fn wait_for_retry(
    turn: &AgentTurn,
    error: ModelError,
    attempt: u32,
) -> Result<u32, TurnError> {
    let system = &turn.run.system;
    let now_ms = system.clock().now_ms();
    match system.config().retry.advise(&error, attempt, system.random_jitter(), now_ms) {
        RetryAdvice::GiveUp => Err(error.into()),
        RetryAdvice::Retry { after_ms } => {
            let reason = error.to_string();
            if is_past_deadline(turn, after_ms) {
                return Err(error.into());
            }
            tracing::warn!(attempt, after_ms, reason, "the model is called again");
            let what = "model call".to_owned();
            turn.run.events.emit(EventKind::Retry { what, reason, attempt, after_ms });
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            // A call that the circuit breaker blocked does not count as an attempt.
            Ok(attempt + u32::from(!matches!(error, ModelError::CircuitOpen { .. })))
        }
        // If the limit has already reset and the call failed anyway, treat it like other failures.
        RetryAdvice::Pause { until_ms } if until_ms <= now_ms => {
            let limit = system.config().retry.attempts_max;
            if attempt >= limit {
                return Err(error.into());
            }
            tokio::time::sleep(Duration::from_millis(system.config().retry.initial_ms)).await;
            Ok(attempt + 1)
        }
        RetryAdvice::Pause { until_ms } => {
            let reason = error.to_string();
            if is_past_deadline(turn, until_ms.saturating_sub(now_ms)) {
                return Err(TurnError::Paused { reason, until_ms });
            }
            turn.run.events.emit(EventKind::Paused { reason, until_ms });
            tokio::time::sleep(Duration::from_millis(until_ms.saturating_sub(now_ms))).await;
            Ok(attempt)
        }
    }
}

fn is_past_deadline(turn: &AgentTurn, after_ms: u64) -> bool {
    Instant::now() + Duration::from_millis(after_ms) >= turn.run.spending.deadline()
}
