//! Writes a checkpoint of a conversation before every call of the model. Writing happens on a
//! separate thread, so that no run waits for the disk.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::BoxFuture;
use repertoire_agent::conversation::Conversation;
use repertoire_agent::middleware::{AgentTurn, MiddlewareNext, TurnError, TurnMiddleware};

use super::store::{self, ConversationMetadata, ConversationStoreError};

/// The writers of the watched conversations, by id.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckpointWriters {
    writers: Arc<Mutex<BTreeMap<String, Sender<Conversation>>>>,
}

/// A watched conversation.
pub(super) struct CheckpointWatch {
    checkpoints: CheckpointWriters,
    id: String,
    writer: Option<JoinHandle<Result<(), ConversationStoreError>>>,
}

impl CheckpointWriters {
    /// Writes checkpoints of a conversation until the watch is finished or dropped.
    pub(super) fn watch_conversation(
        &self,
        dir: &Utf8Path,
        head: &ConversationMetadata,
    ) -> CheckpointWatch {
        let (sender, receiver) = channel();
        let (dir, head) = (dir.to_owned(), head.clone());
        let id = head.id.clone();
        let writer = std::thread::spawn(move || write_all(&dir, &head, &receiver));
        self.lock_writers().insert(id.clone(), sender);
        CheckpointWatch { checkpoints: self.clone(), id, writer: Some(writer) }
    }

    fn lock_writers(&self) -> MutexGuard<'_, BTreeMap<String, Sender<Conversation>>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CheckpointWatch {
    /// Waits until all checkpoints are written.
    pub(super) fn finish(mut self) -> Result<(), ConversationStoreError> {
        self.stop_writer()
    }

    fn stop_writer(&mut self) -> Result<(), ConversationStoreError> {
        self.checkpoints.lock_writers().remove(&self.id);
        // If the writer panicked, the final save still writes everything.
        self.writer.take().and_then(|writer| writer.join().ok()).unwrap_or(Ok(()))
    }
}

impl Drop for CheckpointWatch {
    fn drop(&mut self) {
        // The run was dropped, so there is no caller to return an error to.
        let _ = self.stop_writer();
    }
}

fn write_all(
    dir: &Utf8PathBuf,
    head: &ConversationMetadata,
    receiver: &Receiver<Conversation>,
) -> Result<(), ConversationStoreError> {
    while let Ok(mut conversation) = receiver.recv() {
        // Only the latest checkpoint matters.
        while let Ok(later) = receiver.try_recv() {
            conversation = later;
        }
        store::write_conversation(dir, head, &conversation)?;
    }
    Ok(())
}

impl TurnMiddleware for CheckpointWriters {
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
                let sender = self.lock_writers().get(&turn.conversation.id).cloned();
                if let Some(sender) = sender {
                    let mut state = turn.conversation.clone();
                    state.todos = turn.run.state.todos();
                    // The writer ends early only after a disk error, which is reported at the end
                    // of the run.
                    let _ = sender.send(state);
                }
            }
            next.run(turn).await
        })
    }
}
