//! The conversations of a system: those in memory, and the folder that each has for its programs.

use std::sync::Arc;

use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_skill::skill::ContentDigest;
use tokio::sync::OwnedMutexGuard;

use super::System;
use crate::conversation::Conversation;
use crate::limits::CONVERSATIONS_MAX;
use crate::run::lock_unpoisoned;

/// A conversation in memory; the list is ordered by last use, oldest first.
pub(super) struct StoredConversation {
    id: String,
    conversation: Arc<tokio::sync::Mutex<Conversation>>,
}

impl System {
    /// Locks a conversation, or starts it. Conversations of sub-agents are not stored.
    pub(super) async fn lock_conversation(
        &self,
        id: &str,
        depth: u32,
    ) -> OwnedMutexGuard<Conversation> {
        let begin = || Arc::new(tokio::sync::Mutex::new(Conversation::new(id)));
        let conversation = if depth > 0 {
            begin()
        } else {
            let mut kept = lock_unpoisoned(&self.inner.conversations);
            let found = kept.iter().position(|kept| kept.id == id);
            let known = found.map(|at| kept.remove(at).conversation);
            let conversation = known.unwrap_or_else(begin);
            kept.push(StoredConversation { id: id.to_owned(), conversation: conversation.clone() });
            if kept.len() > CONVERSATIONS_MAX {
                kept.remove(0);
            }
            conversation
        };
        conversation.lock_owned().await
    }

    /// Returns a copy of a conversation, for saving it to disk.
    pub async fn conversation(&self, id: &str) -> Option<Conversation> {
        let known = {
            let kept = lock_unpoisoned(&self.inner.conversations);
            kept.iter().find(|kept| kept.id == id).map(|kept| kept.conversation.clone())
        };
        match known {
            Some(conversation) => Some(conversation.lock().await.clone()),
            None => None,
        }
    }

    /// Restores a conversation that was saved to disk.
    pub fn restore_conversation(&self, conversation: Conversation) {
        let mut kept = lock_unpoisoned(&self.inner.conversations);
        kept.retain(|kept| kept.id != conversation.id);
        let id = conversation.id.clone();
        kept.push(StoredConversation {
            id,
            conversation: Arc::new(tokio::sync::Mutex::new(conversation)),
        });
    }

    /// Creates the workplace of a conversation, with its own folder for large output and for
    /// private files of programs.
    pub(super) fn conversation_workplace(&self, conversation: &str) -> RunWorkplace {
        let inner = &self.inner;
        let spill_dir = inner.spill_dir.join(conversation_folder(conversation));
        let mut place = RunWorkplace::new(&inner.work_dir, spill_dir, inner.sandbox.clone());
        place.environment = inner.environment.clone();
        place.limits = inner.config.tools;
        for dir in &inner.readable {
            place.readable.add(dir);
        }
        let catalog = self.catalog();
        // Skills that are trusted because of their location must not be modified by the agents that
        // follow them.
        for root in catalog.roots() {
            let dir = inner.work_dir.join(&root.root.dir);
            let holds_more = inner.work_dir.starts_with(&dir) || inner.spill_dir.starts_with(&dir);
            if dir.starts_with(&inner.work_dir) && !holds_more && dir.is_dir() {
                place.protected.push(dir);
            }
        }
        place
    }
}

/// The name of a conversation's folder. Ids are chosen by callers and may not be valid file names.
fn conversation_folder(conversation: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if !conversation.is_empty() && conversation.len() <= 64 && conversation.chars().all(is_plain) {
        return conversation.to_owned();
    }
    ContentDigest::hash_bytes(conversation.as_bytes()).to_string().replace(':', "-")
}
