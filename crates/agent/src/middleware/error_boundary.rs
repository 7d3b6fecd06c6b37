//! Converts every error and panic of a turn to the outcome of the run.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use repertoire_model::{ModelMessage, UserPart};

use super::{AgentTurn, MiddlewareNext, TurnError, TurnMiddleware, TurnOutcome};

/// The outermost link.
#[derive(Clone, Copy, Debug)]
pub struct ErrorBoundary;

impl TurnMiddleware for ErrorBoundary {
    fn name(&self) -> &'static str {
        "error boundary"
    }

    fn handle<'a>(
        &'a self,
        turn: &'a mut AgentTurn,
        next: MiddlewareNext<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            let cancel = turn.run.cancel.clone();
            let is_over = turn.iteration > 1 && cancel.is_cancelled();
            // A panic in one run must not affect other runs of the process.
            let rest = AssertUnwindSafe(next.run(turn)).catch_unwind();
            let ended = tokio::select! {
                // Poll the work first, so that sub-agents can stop on their own and report it.
                biased;
                () = std::future::ready(()), if is_over => Err(TurnError::Cancelled),
                ended = rest => ended.unwrap_or_else(|panic| Err(TurnError::Panicked(panic_message(&*panic)))),
                () = cancel.cancelled() => Err(TurnError::Cancelled),
            };
            if let Err(error) = ended {
                let text = last_text(turn);
                turn.outcome = Some(TurnOutcome {
                    status: error.status(),
                    text,
                    structured: None,
                    error: Some(error),
                });
            }
            Ok(())
        })
    }
}

/// The last text of the agent since the user's last message.
fn last_text(turn: &AgentTurn) -> String {
    let since = turn.messages().iter().rev().take_while(|message| !has_user_text(message));
    let said = since.filter(|message| matches!(message, ModelMessage::Assistant { .. }));
    said.map(ModelMessage::text).find(|text| !text.trim().is_empty()).unwrap_or_default()
}

fn has_user_text(message: &ModelMessage) -> bool {
    match message {
        ModelMessage::User { content } => {
            content.iter().any(|part| matches!(part, UserPart::Text { .. }))
        }
        _ => false,
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}
