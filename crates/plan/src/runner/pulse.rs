//! Renews the lease of a run while a step is in progress, and polls for cancellation.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use repertoire_journal::run::Wish;
use repertoire_journal::{Journal, JournalError, Lease};
use tokio::time::{Instant, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::limits::WISH_POLL;

/// The reason why a step has to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The run was cancelled.
    Cancel,
    /// Another worker has the run, or may have it.
    Lost(String),
}

/// The heartbeat of a run. Ends when dropped.
pub(super) struct Pulse {
    stop: Arc<Mutex<Option<Stop>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Pulse {
    /// Starts the heartbeat. Cancels `work` when the step has to stop.
    pub(super) fn start(journal: Journal, lease: Lease, work: CancellationToken) -> Self {
        let stop = Arc::new(Mutex::new(None));
        let told = stop.clone();
        let task = tokio::spawn(async move {
            let why = beat(&journal, &lease).await;
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            work.cancel();
        });
        Pulse { stop, task }
    }

    /// The reason why the step has to stop, if so.
    pub(super) fn stop(&self) -> Option<Stop> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sends heartbeats until the step has to stop, and returns the reason.
async fn beat(journal: &Journal, lease: &Lease) -> Stop {
    let beat_every = lease.length / 3;
    let mut look = interval(WISH_POLL.min(beat_every).max(Duration::from_millis(10)));
    let mut heard = Instant::now();
    loop {
        look.tick().await;
        let (at, beats) = (Instant::now(), heard.elapsed() >= beat_every);
        let asked = async {
            if beats { journal.heartbeat(lease).await } else { journal.wish(lease).await }
        };
        // The journal retries by itself, but must not do so for longer than the lease is valid.
        let left = lease.length.saturating_sub(heard.elapsed());
        let Ok(answer) = timeout(left, asked).await else {
            return Stop::Lost("the journal did not answer for as long as the lease".to_owned());
        };
        match answer {
            Ok(Some(Wish::Cancel)) => return Stop::Cancel,
            // The lease counts from the time of the request, not of the answer.
            Ok(_) if beats => heard = at,
            Ok(_) => {}
            Err(error @ JournalError::Fenced { .. }) => return Stop::Lost(error.to_string()),
            // The store may come back, but once the lease may have expired, another worker may have
            // claimed the run.
            Err(error) if heard.elapsed() >= lease.length => return Stop::Lost(error.to_string()),
            Err(_) => {}
        }
    }
}
