//! A worker: claims runs from the queue and drives several of them concurrently until shutdown.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use repertoire_journal::run::Run;
use repertoire_journal::{JournalError, Rules, RunId, Worker as Who};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::limits::{CLAIM_PAUSE, CLAIM_POLL};
use repertoire_plan::{DriveError, KIND, Runner};

/// Claims runs from the queue and drives them.
#[derive(Clone, Debug)]
pub struct Worker {
    pub runner: Runner,
    /// The name under which the worker is registered in the queue.
    pub name: String,
    /// The worker only claims runs whose required labels are all among these.
    pub labels: BTreeSet<String>,
    /// Time without a heartbeat after which other workers may take over a run.
    pub lease: Duration,
    /// Priority and concurrency rules of the queue.
    pub rules: Rules,
    /// Maximum number of concurrent runs.
    pub at_once: usize,
}

/// An event of a worker, for logs and displays.
#[derive(Debug)]
pub enum Told {
    Took(Run),
    /// The run ended, or the worker released it.
    LetGo(Run),
    /// The worker lost a run, or failed to continue it.
    Failed {
        run: RunId,
        error: DriveError,
    },
    /// The journal cannot be reached; the worker retries.
    Unreachable(JournalError),
}

/// A callback for a worker's events.
pub type Hearer = Arc<dyn Fn(Told) + Send + Sync>;

impl Worker {
    /// The worker's registration in the queue.
    pub fn who(&self) -> Who {
        Who {
            name: self.name.clone(),
            labels: self.labels.clone(),
            kinds: BTreeSet::from([KIND.to_owned()]),
            lease: self.lease,
        }
    }

    /// Works until `shutdown`. Runs in progress are then released, so that any worker can continue
    /// them.
    ///
    /// # Errors
    ///
    /// Fails if the journal can no longer be used: it is damaged, or belongs to a newer version.
    pub async fn work(
        &self,
        shutdown: &CancellationToken,
        hearer: &Hearer,
    ) -> Result<(), JournalError> {
        // A child token, so that a permanent journal error can stop the runs in progress as well.
        let shutdown = &shutdown.child_token();
        let mut outcome = Ok(());
        let mut at_work: JoinSet<()> = JoinSet::new();
        let mut changes = self.runner.journal.changes();
        let who = self.who();
        while !shutdown.is_cancelled() {
            while at_work.try_join_next().is_some() {}
            let mut pause = CLAIM_POLL;
            if at_work.len() < self.at_once {
                match self.runner.journal.claim(&who, &self.rules).await {
                    Ok(Some(claimed)) => {
                        hearer(Told::Took(claimed.run.clone()));
                        let (runner, shutdown) = (self.runner.clone(), shutdown.clone());
                        let hearer = hearer.clone();
                        at_work.spawn(async move {
                            let run = claimed.run.id.clone();
                            let driven = async move { runner.drive(claimed, &shutdown).await };
                            // Spawn a separate task, so that a panic ends only this run and is
                            // reported like any other error.
                            match AbortOnDropHandle::new(tokio::spawn(driven)).await {
                                Ok(Ok(run)) => hearer(Told::LetGo(run)),
                                Ok(Err(error)) => hearer(Told::Failed { run, error }),
                                Err(error) => {
                                    let error = DriveError::Crashed(error.to_string());
                                    hearer(Told::Failed { run, error });
                                }
                            }
                        });
                        continue;
                    }
                    Ok(None) => {}
                    Err(error) if error.is_permanent() => {
                        outcome = Err(error);
                        shutdown.cancel();
                    }
                    Err(error) => {
                        hearer(Told::Unreachable(error));
                        pause = CLAIM_PAUSE;
                    }
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                _ = changes.next(pause) => {}
                Some(_) = at_work.join_next() => {}
            }
        }
        // Each run sees the shutdown itself, stops its child processes and releases its claim.
        while at_work.join_next().await.is_some() {}
        outcome
    }
}
