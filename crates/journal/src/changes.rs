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

use crate::limits::{CHANGE_POLL, LISTEN_AGAIN};
use crate::store::Store;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;

/// A subscription to the changes of a journal.
pub struct Changes {
    heard: watch::Receiver<u64>,
}

impl Changes {
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
pub(crate) struct Bell {
    rung: watch::Sender<u64>,
}

impl Bell {
    pub(crate) fn new() -> Self {
        Bell { rung: watch::Sender::new(0) }
    }

    pub(crate) fn ring(&self) {
        self.rung.send_modify(|times| *times = times.wrapping_add(1));
    }

    pub(crate) fn changes(&self) -> Changes {
        Changes { heard: self.rung.subscribe() }
    }

    fn is_heard(&self) -> bool {
        self.rung.receiver_count() > 0
    }
}

/// The background task that detects changes of other processes. It ends with the journal.
pub(crate) struct Watch {
    task: AbortHandle,
}

impl Watch {
    pub(crate) fn start(store: Arc<Store>, bell: Bell) -> Self {
        let task = tokio::spawn(async move {
            loop {
                // Both return only when the connection is lost. Notify, because changes may have
                // been missed in the meantime.
                let _ = match &*store {
                    Store::Sqlite(store) => look(store, &bell).await,
                    Store::Postgres(store) => listen(store, &bell).await,
                };
                bell.ring();
                tokio::time::sleep(LISTEN_AGAIN).await;
            }
        });
        Watch { task: task.abort_handle() }
    }

    pub(crate) fn stop(&self) {
        self.task.abort();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn look(store: &SqliteStore, bell: &Bell) -> Result<(), sqlx::Error> {
    let mut connection = store.watcher().await?;
    let mut last: Option<i64> = None;
    loop {
        if bell.is_heard() {
            let version =
                sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut connection).await?;
            if last.replace(version) != Some(version) {
                bell.ring();
            }
        }
        tokio::time::sleep(CHANGE_POLL).await;
    }
}

async fn listen(store: &PostgresStore, bell: &Bell) -> Result<(), sqlx::Error> {
    let mut listener = store.listener().await?;
    bell.ring();
    // `None` means that the connection was lost; the listener has already reconnected.
    while listener.try_recv().await?.is_some() {
        bell.ring();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_waits_for_a_journal_that_is_gone_still_waits() {
        let bell = Bell::new();
        let mut changes = bell.changes();
        bell.ring();
        assert!(changes.next(Duration::from_secs(5)).await);
        drop(bell);
        let begun = tokio::time::Instant::now();
        assert!(!changes.next(Duration::from_millis(30)).await);
        assert!(begun.elapsed() >= Duration::from_millis(30));
    }
}
