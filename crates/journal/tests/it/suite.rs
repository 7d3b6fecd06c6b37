//! The tests that both stores have to pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use repertoire_journal::event::StepOutcome;
use repertoire_journal::run::{Limits, RunUsage};
use repertoire_journal::{
    ClaimRules, ClaimedRun, Journal, JournalError, NewRun, Payload, QueueWorker, RunId,
    RunRemovalError, Target,
};
use serde_json::Value;

pub(crate) mod append;
pub(crate) mod attended;
pub(crate) mod damage;
pub(crate) mod digests;
pub(crate) mod leases;
pub(crate) mod letters;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod order;
pub(crate) mod queue;
pub(crate) mod read;
pub(crate) mod removal;

/// A place for a journal that is empty. It can be opened more than once, as if by several processes.
pub(crate) struct Place {
    pub(crate) target: Target,
    pub(crate) ticks: Arc<AtomicU64>,
    /// Changes the store behind the journal's back.
    pub(crate) tamper: fn(&Target, &'static str) -> BoxFuture,
}

pub(crate) type BoxFuture = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Takes away what the migration to digests added.
pub(crate) const WITHOUT_DIGESTS: &str = "DROP INDEX run_by_kind; DROP INDEX run_by_workspace; \
    DROP INDEX failure_by_category; ALTER TABLE event DROP COLUMN prev; \
    ALTER TABLE event DROP COLUMN row_digest; ALTER TABLE memory DROP COLUMN row_digest; \
    ALTER TABLE letter DROP COLUMN row_digest; ALTER TABLE run DROP COLUMN head; \
    ALTER TABLE run DROP COLUMN row_digest; ALTER TABLE request DROP COLUMN row_digest; \
    ALTER TABLE step DROP COLUMN row_digest; ALTER TABLE failure DROP COLUMN row_digest; \
    ALTER TABLE fix DROP COLUMN row_digest; DELETE FROM journal_version WHERE version = 4";

/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(600);

impl Place {
    pub(crate) fn new(target: Target, tamper: fn(&Target, &'static str) -> BoxFuture) -> Self {
        Place { target, ticks: Arc::new(AtomicU64::new(1_000_000)), tamper }
    }

    /// A clock that ticks each time it is looked at.
    pub(crate) async fn open(&self) -> Journal {
        let ticks = self.ticks.clone();
        let clock = Arc::new(move || ticks.fetch_add(1, Ordering::Relaxed));
        Journal::open(&self.target, clock).await.unwrap()
    }

    /// Opens the journal as if an older version without digests had written what it holds by now.
    pub(crate) async fn reopen_without_digests(&self) -> Journal {
        (self.tamper)(&self.target, WITHOUT_DIGESTS).await;
        self.open().await
    }
}

pub(crate) fn worker(name: &str) -> QueueWorker {
    QueueWorker {
        name: name.into(),
        labels: Default::default(),
        kinds: ["plan".to_owned()].into(),
        lease: LONG,
    }
}

/// Whose leases run out at once.
pub(crate) fn doomed(name: &str) -> QueueWorker {
    QueueWorker { lease: Duration::ZERO, ..worker(name) }
}

pub(crate) fn new_run(name: &str) -> NewRun {
    NewRun {
        id: RunId::new(),
        kind: "plan".into(),
        name: name.into(),
        workspace: "/repo".into(),
        labels: Default::default(),
        priority: 0,
        limits: Limits::default(),
        request: serde_json::json!({ "plan": "PLAN.md" }),
    }
}

pub(crate) async fn claim(journal: &Journal, who: &QueueWorker) -> ClaimedRun {
    journal.claim(who, &ClaimRules::default()).await.unwrap().expect("there is a run")
}

/// A run that this worker has just taken.
pub(crate) async fn claimed(journal: &Journal, who: &QueueWorker) -> ClaimedRun {
    journal.create(new_run("a run")).await.unwrap();
    claim(journal, who).await
}

pub(crate) fn started(step: u32) -> Payload {
    Payload::StepStarted {
        step,
        kind: "implementation".into(),
        task: None,
        attempt: 1,
        iteration: 1,
        head: Some("abc".into()),
        detail: Value::Null,
    }
}

pub(crate) fn finished(step: u32) -> Payload {
    Payload::StepFinished {
        step,
        outcome: StepOutcome::Ok,
        reason: None,
        head: Some("def".into()),
        spent: RunUsage { cost_micro_usd: 5, input_tokens: 10, ..RunUsage::default() },
        result: serde_json::json!({ "files": 3 }),
    }
}

pub(crate) fn completed() -> Payload {
    Payload::RunCompleted { summary: "done".into(), head: None }
}

/// Removes a run that has no folder.
pub(crate) async fn forget(journal: &Journal, id: &RunId) -> Result<(), JournalError> {
    let Some(run) = journal.run(id).await? else { return Ok(()) };
    match journal.remove_run(camino::Utf8Path::new("/no/folder"), &run).await {
        Err(RunRemovalError::Journal(error)) => Err(error),
        removed => {
            removed.unwrap();
            Ok(())
        }
    }
}

/// The names of a run's events; their numbers have no gaps.
pub(crate) async fn names(journal: &Journal, id: &RunId) -> Vec<&'static str> {
    let events = journal.events(id, 0, 0).await.unwrap();
    for (seq, event) in (1..).zip(&events) {
        assert_eq!(event.seq, seq);
    }
    events.iter().map(|event| event.payload.name()).collect()
}

/// Replaying the run gives what is stored.
pub(crate) async fn agrees(journal: &Journal, id: &RunId) {
    let replayed = journal.replay_run(id).await.unwrap();
    assert_eq!(replayed.differences, []);
    assert_eq!(replayed.events, journal.run(id).await.unwrap().unwrap().seq);
}
