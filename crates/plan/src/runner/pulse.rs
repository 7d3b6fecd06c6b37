//! Keeps a lease alive while a step is at work, and hears what people want of the run in the meantime.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use repertoire_journal::run::Wish;
use repertoire_journal::{Journal, JournalError, Lease};
use tokio::time::{Instant, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::limits::WISH_POLL;

/// Why a step was told to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Somebody wants the run to end.
    Cancel,
    /// Somebody else has the run now, or may have it.
    Lost(String),
}

/// The heartbeat of a run. It ends when it is dropped.
pub(super) struct Pulse {
    stop: Arc<Mutex<Option<Stop>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Pulse {
    /// Begins to beat. `work` is cancelled when the step has to stop.
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

    /// Why the work was told to stop, if it was.
    pub(super) fn stop(&self) -> Option<Stop> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Beats until the work has to stop, and says why.
async fn beat(journal: &Journal, lease: &Lease) -> Stop {
    let beat_every = lease.length / 3;
    let mut look = interval(WISH_POLL.min(beat_every).max(Duration::from_millis(10)));
    let mut heard = Instant::now();
    loop {
        look.tick().await;
        let (at, beats) = (Instant::now(), heard.elapsed() >= beat_every);
        let asked = async {
            match beats {
                true => journal.heartbeat(lease).await,
                false => journal.wish(lease).await,
            }
        };
        // The journal tries again by itself, but not for longer than the lease is ours.
        let left = lease.length.saturating_sub(heard.elapsed());
        let Ok(answer) = timeout(left, asked).await else {
            return Stop::Lost("the journal did not answer for as long as the lease".to_owned());
        };
        match answer {
            Ok(Some(Wish::Cancel)) => return Stop::Cancel,
            // The lease runs from when it was asked for.
            Ok(_) if beats => heard = at,
            Ok(_) => {}
            Err(error @ JournalError::Fenced { .. }) => return Stop::Lost(error.to_string()),
            // The store may come back; but when the lease may have run out, another worker may be at it.
            Err(error) if heard.elapsed() >= lease.length => return Stop::Lost(error.to_string()),
            Err(_) => {}
        }
    }
}
