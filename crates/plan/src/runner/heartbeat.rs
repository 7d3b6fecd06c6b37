//! Renews the lease of a run while a step is in progress, and polls for cancellation.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use repertoire_journal::run::RunStopRequest;
use repertoire_journal::{Journal, JournalError, RunLease};
use tokio::time::{Instant, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::limits::WISH_POLL;

/// The reason why a step has to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepStopReason {
    /// The run was cancelled.
    Cancel,
    /// Another worker has the run, or may have it.
    Lost(String),
}

/// The heartbeat of a run. Ends when dropped.
pub(super) struct LeaseHeartbeat {
    stop: Arc<Mutex<Option<StepStopReason>>>,
    task: tokio::task::JoinHandle<()>,
}

impl LeaseHeartbeat {
    /// Starts the heartbeat. Cancels `work` when the step has to stop.
    pub(super) fn start(journal: Journal, lease: RunLease, work: CancellationToken) -> Self {
        let stop = Arc::new(Mutex::new(None));
        let told = stop.clone();
        let task = tokio::spawn(async move {
            let why = keep_lease(&journal, &lease).await;
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            work.cancel();
        });
        LeaseHeartbeat { stop, task }
    }

    /// The reason why the step has to stop, if so.
    pub(super) fn stop_reason(&self) -> Option<StepStopReason> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for LeaseHeartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sends heartbeats until the step has to stop, and returns the reason.
async fn keep_lease(journal: &Journal, lease: &RunLease) -> StepStopReason {
    let beat_every = lease.length / 3;
    let mut look = interval(WISH_POLL.min(beat_every).max(Duration::from_millis(10)));
    let mut heard = Instant::now();
    loop {
        look.tick().await;
        let (at, beats) = (Instant::now(), heard.elapsed() >= beat_every);
        let asked = async {
            if beats {
                journal.renew_lease(lease).await
            } else {
                journal.pending_request(lease).await
            }
        };
        // The journal retries by itself, but must not do so for longer than the lease is valid.
        let left = lease.length.saturating_sub(heard.elapsed());
        let Ok(answer) = timeout(left, asked).await else {
            return StepStopReason::Lost(
                "the journal did not answer for as long as the lease".to_owned(),
            );
        };
        match answer {
            Ok(Some(RunStopRequest::Cancel)) => return StepStopReason::Cancel,
            // The lease counts from the time of the request, not of the answer.
            Ok(_) if beats => heard = at,
            Ok(_) => {}
            Err(error @ JournalError::Fenced { .. }) => {
                return StepStopReason::Lost(error.to_string());
            }
            // The store may come back, but once the lease may have expired, another worker may have
            // claimed the run.
            Err(error) if heard.elapsed() >= lease.length => {
                return StepStopReason::Lost(error.to_string());
            }
            Err(_) => {}
        }
    }
}
