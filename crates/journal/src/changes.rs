//! Waiting for changes without polling the journal.
//!
//! A background task of the journal detects changes made by other processes: PostgreSQL sends
//! notifications, and a SQLite file is polled with a cheap pragma, only while there are
//! subscribers. A notification says only that something *may* have changed: subscribers look for
//! themselves, and should also look now and then without one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::limits::LISTEN_AGAIN;
use crate::store::JournalStore;

/// A subscription to the changes of a journal.
pub struct ChangeSubscription {
    heard: watch::Receiver<u64>,
}

impl ChangeSubscription {
    /// Waits until something may have changed since the last call, for at most `at_most`. Returns
    /// false on a timeout.
    pub async fn next(&mut self, at_most: Duration) -> bool {
        let heard = async {
            match self.heard.changed().await {
                Ok(()) => true,
                // The journal is closed and nothing will change any more. Don't return at once, or
                // a caller that loops would spin.
                Err(_) => std::future::pending().await,
            }
        };
        tokio::time::timeout(at_most, heard).await.unwrap_or(false)
    }
}

/// Notifies all subscribers of a journal.
#[derive(Clone)]
pub(crate) struct ChangeNotifier {
    rung: watch::Sender<u64>,
}

impl ChangeNotifier {
    pub(crate) fn new() -> Self {
        ChangeNotifier { rung: watch::Sender::new(0) }
    }

    pub(crate) fn notify_all(&self) {
        self.rung.send_modify(|times| *times = times.wrapping_add(1));
    }

    pub(crate) fn subscribe(&self) -> ChangeSubscription {
        ChangeSubscription { heard: self.rung.subscribe() }
    }

    pub(crate) fn has_subscribers(&self) -> bool {
        self.rung.receiver_count() > 0
    }
}

/// The background task that detects changes of other processes. It ends with the journal.
pub(crate) struct ChangeWatcher {
    task: AbortHandle,
}

impl ChangeWatcher {
    pub(crate) fn start(store: Arc<JournalStore>, bell: ChangeNotifier) -> Self {
        let task = tokio::spawn(async move {
            loop {
                // The connection is lost. Notify, because changes may have been missed in the
                // meantime.
                let _ = store.watch_changes(&bell).await;
                bell.notify_all();
                tokio::time::sleep(LISTEN_AGAIN).await;
            }
        });
        ChangeWatcher { task: task.abort_handle() }
    }

    pub(crate) fn stop(&self) {
        self.task.abort();
    }
}

impl Drop for ChangeWatcher {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_waits_for_a_journal_that_is_gone_still_waits() {
        let bell = ChangeNotifier::new();
        let mut changes = bell.subscribe();
        bell.notify_all();
        assert!(changes.next(Duration::from_secs(5)).await);
        drop(bell);
        let begun = tokio::time::Instant::now();
        assert!(!changes.next(Duration::from_millis(30)).await);
        assert!(begun.elapsed() >= Duration::from_millis(30));
    }
}
