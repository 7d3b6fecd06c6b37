//! A worker: claims runs from the queue and drives several of them concurrently until shutdown.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use repertoire_journal::run::Run;
use repertoire_journal::{ClaimRules, JournalError, QueueWorker as Who, RunId};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::limits::{CLAIM_PAUSE, CLAIM_POLL};
use repertoire_plan::{DriveError, KIND, PlanRunner};

/// Claims runs from the queue and drives them.
#[derive(Clone, Debug)]
pub struct PlanWorker {
    pub runner: PlanRunner,
    /// The name under which the worker is registered in the queue.
    pub name: String,
    /// The worker only claims runs whose required labels are all among these.
    pub labels: BTreeSet<String>,
    /// Time without a heartbeat after which other workers may take over a run.
    pub lease: Duration,
    /// Priority and concurrency rules of the queue.
    pub rules: ClaimRules,
    /// Maximum number of concurrent runs.
    pub at_once: usize,
}

/// An event of a worker, for logs and displays.
#[derive(Debug)]
pub enum PlanWorkerEvent {
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
pub type PlanWorkerEventHandler = Arc<dyn Fn(PlanWorkerEvent) + Send + Sync>;

impl PlanWorker {
    /// The worker's registration in the queue.
    pub fn queue_identity(&self) -> Who {
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
    pub async fn run_until_shutdown(
        &self,
        shutdown: &CancellationToken,
        hearer: &PlanWorkerEventHandler,
    ) -> Result<(), JournalError> {
        // A child token, so that a permanent journal error can stop the runs in progress as well.
        let shutdown = &shutdown.child_token();
        let mut outcome = Ok(());
        let mut at_work: JoinSet<()> = JoinSet::new();
        let mut changes = self.runner.journal.subscribe_changes();
        let who = self.queue_identity();
        while !shutdown.is_cancelled() {
            while at_work.try_join_next().is_some() {}
            let mut pause = CLAIM_POLL;
            if at_work.len() < self.at_once {
                match self.runner.journal.claim(&who, &self.rules).await {
                    Ok(Some(claimed)) => {
                        hearer(PlanWorkerEvent::Took(claimed.run.clone()));
                        let (runner, shutdown) = (self.runner.clone(), shutdown.clone());
                        let hearer = hearer.clone();
                        at_work.spawn(async move {
                            let run = claimed.run.id.clone();
                            let driven = async move { runner.drive_run(claimed, &shutdown).await };
                            // Spawn a separate task, so that a panic ends only this run and is
                            // reported like any other error.
                            match AbortOnDropHandle::new(tokio::spawn(driven)).await {
                                Ok(Ok(run)) => hearer(PlanWorkerEvent::LetGo(run)),
                                Ok(Err(error)) => hearer(PlanWorkerEvent::Failed { run, error }),
                                Err(error) => {
                                    let error = DriveError::Crashed(error.to_string());
                                    hearer(PlanWorkerEvent::Failed { run, error });
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
                        hearer(PlanWorkerEvent::Unreachable(error));
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
