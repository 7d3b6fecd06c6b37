//! Retries model calls where that can help, waits for usage limits to reset, and compacts the
//! conversation when the provider rejects it as too long.

use std::time::Duration;

use futures_util::future::BoxFuture;
use repertoire_model::Error;
use repertoire_model::retry::Advice;
use tokio::time::Instant;

use super::{Middleware, Next, Turn, TurnError};
use crate::compaction;
use crate::event::EventKind;

/// Retries failed model calls.
#[derive(Clone, Copy, Debug)]
pub struct Retry;

impl Middleware for Retry {
    fn name(&self) -> &'static str {
        "retry"
    }

    fn handle<'a>(
        &'a self,
        turn: &'a mut Turn,
        next: Next<'a>,
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
                if matches!(error, Error::ContextTooLong { .. }) && !shortened {
                    shortened = true;
                    compaction::shorten(turn).await;
                    continue;
                }
                attempt = decide(turn, error, attempt).await?;
            }
        })
    }
}

/// Waits until the next attempt, and returns its number.
async fn decide(turn: &Turn, error: Error, attempt: u32) -> Result<u32, TurnError> {
    let system = &turn.run.system;
    let now_ms = system.clock().now_ms();
    match system.config().retry.advise(&error, attempt, system.random(), now_ms) {
        Advice::GiveUp => Err(error.into()),
        Advice::Retry { after_ms } => {
            let reason = error.to_string();
            if too_late(turn, after_ms) {
                return Err(error.into());
            }
            let what = "model call".to_owned();
            turn.run.events.emit(EventKind::Retry { what, reason, attempt, after_ms });
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            // A call that the circuit breaker blocked does not count as an attempt.
            Ok(attempt + u32::from(!matches!(error, Error::CircuitOpen { .. })))
        }
        // If the limit has already reset and the call failed anyway, treat it like other failures.
        Advice::Pause { until_ms } if until_ms <= now_ms => {
            let limit = system.config().retry.attempts_max;
            if attempt >= limit {
                return Err(error.into());
            }
            tokio::time::sleep(Duration::from_millis(system.config().retry.initial_ms)).await;
            Ok(attempt + 1)
        }
        Advice::Pause { until_ms } => {
            let reason = error.to_string();
            if too_late(turn, until_ms.saturating_sub(now_ms)) {
                return Err(TurnError::Paused { reason, until_ms });
            }
            turn.run.events.emit(EventKind::Paused { reason, until_ms });
            tokio::time::sleep(Duration::from_millis(until_ms.saturating_sub(now_ms))).await;
            Ok(attempt)
        }
    }
}

fn too_late(turn: &Turn, after_ms: u64) -> bool {
    Instant::now() + Duration::from_millis(after_ms) >= turn.run.spending.deadline()
}
