//! A worker: takes runs from the queue and drives them, several at once, until it is told to stop.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use repertoire_journal::run::Run;
use repertoire_journal::{JournalError, Rules, RunId, Worker as Who};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::limits::{CLAIM_PAUSE, CLAIM_POLL};
use crate::plan::{DriveError, KIND, Runner};

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
    pub async fn work(&self, shutdown: &CancellationToken, hearer: &Hearer) {
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
                            match runner.drive(claimed, &shutdown).await {
                                Ok(run) => hearer(Told::LetGo(run)),
                                Err(error) => hearer(Told::Failed { run, error }),
                            }
                        });
                        continue;
                    }
                    Ok(None) => {}
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
    }
}
