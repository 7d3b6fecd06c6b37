//! A worker: takes runs from the queue and drives them, several at once, until it is told to stop.

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

/// Takes runs from the queue.
#[derive(Clone, Debug)]
pub struct Worker {
    /// What drives them.
    pub runner: Runner,
    /// How it is known, and what it has.
    pub name: String,
    /// What it has; a run is taken only if it asks for nothing else.
    pub labels: BTreeSet<String>,
    /// How long it may be silent before others take over.
    pub lease: Duration,
    /// Which run comes first, and how many there may be.
    pub rules: Rules,
    /// Runs at once here.
    pub at_once: usize,
}

/// What a worker has to say.
#[derive(Debug)]
pub enum Told {
    /// It took a run.
    Took(Run),
    /// It is done with one.
    LetGo(Run),
    /// It lost one, or could not go on with it.
    Failed {
        /// The run.
        run: RunId,
        /// Why.
        error: DriveError,
    },
    /// The journal cannot be reached; it tries again.
    Unreachable(JournalError),
}

/// Who hears it.
pub type Hearer = Arc<dyn Fn(Told) + Send + Sync>;

impl Worker {
    /// How the queue knows it.
    pub fn who(&self) -> Who {
        Who {
            name: self.name.clone(),
            labels: self.labels.clone(),
            kinds: BTreeSet::from([KIND.to_owned()]),
            lease: self.lease,
        }
    }

    /// Works until `shutdown`; runs that are under way are then let go of, and any worker may take them up.
    ///
    /// # Errors
    ///
    /// When the journal can no longer be used: it is damaged, or belongs to a newer version.
    pub async fn work(
        &self,
        shutdown: &CancellationToken,
        hearer: &Hearer,
    ) -> Result<(), JournalError> {
        // Also ends the runs under way when this worker has to give up.
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
                            // A panic ends this run, and is reported as every other error.
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
        // Each of them sees the shutdown itself, stops its children and gives its run back.
        while at_work.join_next().await.is_some() {}
        outcome
    }
}
