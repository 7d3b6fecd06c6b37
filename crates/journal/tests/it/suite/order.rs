//! Telling runs what to do.

use std::time::Duration;

use repertoire_journal::run::Limits;
use repertoire_journal::{
    Command, JournalError, Payload, RunId, RunLease, RunStatus, RunStopRequest,
};

use super::{
    Place, agrees, claim, claimed, completed, doomed, forget, names, new_run, started, worker,
};

fn pause() -> Command {
    Command::Pause { by: "me".into() }
}

fn resume() -> Command {
    Command::Resume { by: "me".into(), limits: None }
}

fn cancel() -> Command {
    Command::Cancel { by: "me".into() }
}

fn retry() -> Command {
    Command::Retry { by: "me".into(), tasks: Vec::new() }
}

fn steer() -> Command {
    Command::Steer { by: "me".into(), note: "faster".into() }
}

pub(crate) async fn a_run_that_nobody_has_is_paused_and_cancelled_at_once(place: Place) {
    let journal = place.open().await;
    let id = journal.create(new_run("r")).await.unwrap().id;
    assert_eq!(journal.order(&id, pause()).await.unwrap().status, RunStatus::Paused);
    assert!(journal.claim(&worker("w"), &Default::default()).await.unwrap().is_none());
    assert_eq!(journal.order(&id, resume()).await.unwrap().status, RunStatus::Queued);
    journal.order(&id, steer()).await.unwrap();
    let run = journal.order(&id, cancel()).await.unwrap();
    assert_eq!((run.status, run.reason.as_deref()), (RunStatus::Cancelled, Some("by me")));
    assert_eq!(
        names(&journal, &id).await,
        ["RUN_CREATED", "RUN_PAUSED", "RUN_RESUMED", "STEERED", "RUN_CANCELLED"]
    );
    agrees(&journal, &id).await;
}

pub(crate) async fn a_worker_hears_of_a_wish_by_its_heartbeat(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let until = journal.lease_until(&lease.run).await.unwrap();
    let run = journal.order(&lease.run, pause()).await.unwrap();
    assert_eq!((run.status, run.wish), (RunStatus::Running, Some(RunStopRequest::Pause)));
    assert_eq!(journal.lease_until(&lease.run).await.unwrap(), until);
    assert_eq!(journal.renew_lease(&lease).await.unwrap(), Some(RunStopRequest::Pause));
    assert_eq!(journal.order(&lease.run, resume()).await.unwrap().wish, None);
    assert_eq!(journal.renew_lease(&lease).await.unwrap(), None);
    journal.order(&lease.run, cancel()).await.unwrap();
    assert_eq!(journal.renew_lease(&lease).await.unwrap(), Some(RunStopRequest::Cancel));
    let ended = Payload::RunCancelled { reason: "by me".into() };
    let run = journal.append(&lease, vec![ended]).await.unwrap();
    assert_eq!((run.status, run.wish), (RunStatus::Cancelled, None));
    agrees(&journal, &lease.run).await;
}

pub(crate) async fn a_wish_takes_effect_when_the_worker_is_lost(place: Place) {
    let journal = place.open().await;
    for (wish, status) in [(pause(), RunStatus::Paused), (cancel(), RunStatus::Cancelled)] {
        let lost = claimed(&journal, &worker("w")).await.lease;
        journal.append(&lost, vec![started(1)]).await.unwrap();
        assert!(journal.order(&lost.run, wish.clone()).await.unwrap().wish.is_some());
        // A heartbeat that holds for no time is the last one.
        let last = RunLease { length: Duration::ZERO, ..lost.clone() };
        journal.renew_lease(&last).await.unwrap();
        assert_eq!(journal.requeue_expired().await.unwrap(), std::slice::from_ref(&lost.run));
        assert_eq!(journal.run(&lost.run).await.unwrap().unwrap().status, status);
        agrees(&journal, &lost.run).await;
        // Of a worker that is gone already nothing is wished: it happens at once.
        let gone = claimed(&journal, &doomed("w")).await.lease;
        assert_eq!(journal.order(&gone.run, wish.clone()).await.unwrap().status, status);
        agrees(&journal, &gone.run).await;
        let released = claimed(&journal, &worker("w")).await.lease;
        journal.order(&released.run, wish).await.unwrap();
        journal.release_run(&released, "shutdown").await.unwrap();
        assert_eq!(journal.run(&released.run).await.unwrap().unwrap().status, status);
        agrees(&journal, &released.run).await;
    }
}

pub(crate) async fn what_makes_no_sense_is_refused_with_a_reason(place: Place) {
    let journal = place.open().await;
    let refused = async |id: &RunId, order: Command, word: &str| {
        let error = journal.order(id, order.clone()).await.unwrap_err();
        assert!(matches!(error, JournalError::Refused { .. }), "{order:?}: {error}");
        assert!(error.to_string().contains(word), "{order:?}: {error}");
    };
    let queued = journal.create(new_run("queued")).await.unwrap().id;
    let before = journal.run(&queued).await.unwrap().unwrap();
    assert_eq!(journal.order(&queued, resume()).await.unwrap(), before, "nothing changes");
    refused(&queued, retry(), "in the queue already").await;
    journal.order(&queued, pause()).await.unwrap();
    refused(&queued, pause(), "paused already").await;
    let running = claimed(&journal, &worker("w")).await.lease;
    refused(&running.run, resume(), "running already").await;
    refused(&running.run, retry(), "pause it").await;
    journal.order(&running.run, pause()).await.unwrap();
    refused(&running.run, pause(), "already asked").await;
    journal.order(&running.run, cancel()).await.unwrap();
    refused(&running.run, cancel(), "being cancelled").await;
    refused(&running.run, pause(), "being cancelled").await;
    refused(&running.run, resume(), "being cancelled").await;
    let more = Command::Resume { by: "me".into(), limits: Some(Limits::default()) };
    refused(&running.run, more, "being cancelled").await;
    let done = claimed(&journal, &worker("w")).await.lease;
    journal.append(&done, vec![completed()]).await.unwrap();
    for order in [pause(), resume(), cancel(), retry(), steer()] {
        refused(&done.run, order, "completed").await;
    }
    refused(&done.run, Command::Event(started(1)), "only be added by the worker").await;
    let nobody = journal.order(&RunId::known("nobody"), pause()).await;
    assert!(matches!(nobody, Err(JournalError::NotFound { .. })));
}

pub(crate) async fn a_failed_run_is_retried_and_a_completed_one_is_not(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let failed = Payload::RunFailed { reason: "r:x".into() };
    journal.append(&lease, vec![failed.clone()]).await.unwrap();
    journal.order(&lease.run, retry()).await.unwrap();
    let lease = claim(&journal, &worker("w")).await.lease;
    journal.append(&lease, vec![failed]).await.unwrap();
    let limits = Limits { tokens: Some(9), ..Limits::default() };
    let more = Command::Resume { by: "me".into(), limits: Some(limits) };
    let run = journal.order(&lease.run, more).await.unwrap();
    assert_eq!((run.status, run.limits), (RunStatus::Queued, limits));
    let lease = claim(&journal, &worker("w")).await.lease;
    assert_eq!(lease.token, 3);
    let later = Payload::RunDeferred { reason: "later".into(), until_ms: u64::MAX };
    journal.append(&lease, vec![later]).await.unwrap();
    journal.order(&lease.run, resume()).await.unwrap();
    claim(&journal, &worker("w")).await;
    agrees(&journal, &lease.run).await;
}

pub(crate) async fn a_run_that_is_over_is_forgotten_with_all_that_belongs_to_it(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let other = journal.create(new_run("other")).await.unwrap();
    let refused = async |word: &str| {
        let error = forget(&journal, &lease.run).await.unwrap_err();
        assert!(matches!(error, JournalError::Refused { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    };
    refused("it is running").await;
    let worktree = Payload::WorktreeCreated {
        path: "/there".into(),
        branch: "b".into(),
        base_branch: "main".into(),
        base: "abc".into(),
        how: "created".into(),
    };
    journal.append(&lease, vec![worktree, started(1), completed()]).await.unwrap();
    refused("/there is still there").await;
    let removed = Payload::WorktreeRemoved { path: "/there".into() };
    journal.order(&lease.run, Command::Event(removed)).await.unwrap();
    for _ in 0..2 {
        forget(&journal, &lease.run).await.unwrap();
        assert_eq!(journal.run(&lease.run).await.unwrap(), None);
        assert_eq!(journal.steps(&lease.run).await.unwrap(), []);
        assert_eq!(journal.events(&lease.run, 0, 0).await.unwrap(), []);
    }
    let late = journal.append(&lease, vec![started(2)]).await;
    assert!(matches!(late, Err(JournalError::NotFound { .. })), "{late:?}");
    assert_eq!(journal.run(&other.id).await.unwrap(), Some(other.clone()));
    agrees(&journal, &other.id).await;
}

pub(crate) async fn what_happens_after_the_end_is_remembered(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    journal.append(&lease, vec![completed()]).await.unwrap();
    let delivered = Payload::Delivered {
        strategy: "merge".into(),
        branch: "main".into(),
        commit: Some("abc".into()),
    };
    let run = journal.order(&lease.run, Command::Event(delivered)).await.unwrap();
    assert_eq!((run.status, run.seq), (RunStatus::Completed, 5));
    agrees(&journal, &lease.run).await;
}
