//! Hands a copy of the conversation to its recorder before every call of the model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use repertoire_agent::middleware::{AgentTurn, MiddlewareNext, TurnError, TurnMiddleware};
use tokio::sync::mpsc::UnboundedSender;

use super::recorder::TurnRecord;

/// The recorders of conversations whose turns are in progress, by id.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckpointSenders {
    senders: Arc<Mutex<BTreeMap<String, UnboundedSender<TurnRecord>>>>,
}

/// A conversation of which checkpoints are recorded until this is dropped.
pub(super) struct CheckpointWatch {
    checkpoints: CheckpointSenders,
    id: String,
}

impl CheckpointSenders {
    pub(super) fn watch_conversation(
        &self,
        id: &str,
        sender: UnboundedSender<TurnRecord>,
    ) -> CheckpointWatch {
        self.lock_senders().insert(id.to_owned(), sender);
        CheckpointWatch { checkpoints: self.clone(), id: id.to_owned() }
    }

    fn lock_senders(&self) -> MutexGuard<'_, BTreeMap<String, UnboundedSender<TurnRecord>>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CheckpointWatch {
    fn drop(&mut self) {
        self.checkpoints.lock_senders().remove(&self.id);
    }
}

impl TurnMiddleware for CheckpointSenders {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn handle<'a>(
        &'a self,
        turn: &'a mut AgentTurn,
        next: MiddlewareNext<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            if turn.run.depth == 0 && !turn.preview {
                let sender = self.lock_senders().get(&turn.conversation.id).cloned();
                if let Some(sender) = sender {
                    let mut state = turn.conversation.clone();
                    state.todos = turn.run.state.todos();
                    // The receiver is gone only if the turn was dropped.
                    let _ = sender.send(TurnRecord::Checkpoint(state));
                }
            }
            next.run(turn).await
        })
    }
}
