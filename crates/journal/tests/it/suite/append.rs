//! Making runs and adding to them.

use repertoire_journal::run::Limits;
use repertoire_journal::{ClaimRules, JournalError, NewRun, Payload, RunId, RunStatus, StepStatus};
use serde_json::json;

use super::{Place, agrees, claim, claimed, completed, finished, names, new_run, started, worker};

pub(crate) async fn a_run_goes_from_the_queue_to_its_end(place: Place) {
    let journal = place.open().await;
    let run = journal.create(new_run("first")).await.unwrap();
    assert_eq!((run.status, run.seq, run.token), (RunStatus::Queued, 1, 0));
    let lease = claim(&journal, &worker("w")).await.lease;
    assert_eq!(lease.token, 1);
    journal.append(&lease, vec![started(1)]).await.unwrap();
    let run = journal.append(&lease, vec![finished(1), started(2)]).await.unwrap();
    assert_eq!((run.steps, run.open_step, run.spent.cost_micro_usd), (2, Some(2), 5));
    let run = journal.append(&lease, vec![finished(2), completed()]).await.unwrap();
    assert_eq!((run.status, run.worker.as_deref()), (RunStatus::Completed, None));
    assert_eq!(journal.run(&run.id).await.unwrap().unwrap(), run);
    let steps = journal.steps(&run.id).await.unwrap();
    assert!(steps.iter().all(|step| step.status == StepStatus::Finished && step.token == 1));
    let told = names(&journal, &run.id).await;
    assert_eq!(told.len(), 8);
    assert_eq!(told[6..], ["RUN_COMPLETED", "LEASE_RELEASED"]);
    agrees(&journal, &run.id).await;
    // Another process sees the same.
    let other = place.open().await;
    assert_eq!(other.run(&run.id).await.unwrap().unwrap(), run);
}

pub(crate) async fn the_same_id_twice_is_one_run(place: Place) {
    let journal = place.open().await;
    let new = new_run("first");
    let first = journal.create(new.clone()).await.unwrap();
    let again = journal.create(NewRun { name: "other".into(), ..new }).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(names(&journal, &first.id).await, ["RUN_CREATED"]);
    let odd = NewRun { id: RunId::known("a/../b"), ..new_run("odd") };
    assert!(matches!(journal.create(odd).await, Err(JournalError::Refused { .. })));
}

pub(crate) async fn what_cannot_follow_is_refused_and_nothing_of_it_is_stored(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let before = journal.append(&lease, vec![started(1), finished(1)]).await.unwrap();
    for wrong in [
        vec![finished(1)],
        vec![started(2), finished(2), finished(2)],
        vec![started(3)],
        vec![started(2), started(3)],
    ] {
        let refused = journal.append(&lease, wrong).await;
        assert!(matches!(refused, Err(JournalError::Fold(_))), "{refused:?}");
    }
    assert_eq!(journal.run(&lease.run).await.unwrap().unwrap(), before);
    assert_eq!(journal.steps(&lease.run).await.unwrap().len(), 1);
    agrees(&journal, &lease.run).await;
}

pub(crate) async fn a_run_that_stops_ends_its_lease_and_its_step(place: Place) {
    let journal = place.open().await;
    let stops = [
        (Payload::RunFailed { reason: "r:x".into() }, RunStatus::Failed),
        (Payload::RunPaused { reason: "p".into() }, RunStatus::Paused),
        (
            Payload::RunWaiting { reason: "w".into(), choices: vec!["go".into()] },
            RunStatus::Waiting,
        ),
        (Payload::RunCancelled { reason: "c".into() }, RunStatus::Cancelled),
    ];
    for (stop, status) in stops {
        let lease = claimed(&journal, &worker("w")).await.lease;
        let run = journal.append(&lease, vec![started(1), stop]).await.unwrap();
        assert_eq!((run.status, run.open_step, run.worker), (status, None, None));
        assert_eq!(journal.steps(&run.id).await.unwrap()[0].status, StepStatus::Interrupted);
        assert_eq!(journal.lease_until(&run.id).await.unwrap(), None);
        let late = journal.append(&lease, vec![started(2)]).await;
        assert!(matches!(late, Err(JournalError::Fenced { .. })), "{late:?}");
        agrees(&journal, &run.id).await;
    }
    assert_eq!(journal.list_leased_runs().await.unwrap(), []);
}

pub(crate) async fn a_deferred_run_goes_back_to_the_queue_and_is_not_taken_before_its_time(
    place: Place,
) {
    let journal = place.open().await;
    let far = 9_000_000_000_000;
    for (until_ms, taken) in [(far, false), (1, true)] {
        let lease = claimed(&journal, &worker("w")).await.lease;
        let later = Payload::RunDeferred { reason: "allowance".into(), until_ms };
        let run = journal.append(&lease, vec![later]).await.unwrap();
        assert_eq!((run.status, run.not_before_ms), (RunStatus::Queued, until_ms));
        let next = journal.claim(&worker("v"), &ClaimRules::default()).await.unwrap();
        assert_eq!(next.map(|claimed| claimed.run.id), taken.then_some(lease.run));
    }
}

pub(crate) async fn strange_characters_come_back_as_they_can(place: Place) {
    let journal = place.open().await;
    let new = NewRun {
        name: "a\0b\nc".into(),
        workspace: "/re\0po".into(),
        labels: ["l\0".to_owned()].into(),
        request: json!({ "text": "nul \0 quote ' \" \\ ü 🦀 \u{2028}" }),
        ..new_run("")
    };
    let run = journal.create(new.clone()).await.unwrap();
    assert_eq!((run.name.as_str(), run.workspace.as_str()), ("a b c", "/re po"));
    let run = journal.run(&run.id).await.unwrap().unwrap();
    assert_eq!(run.request, new.request);
    let mut who = worker("w\0'; DROP TABLE run; --");
    who.labels = ["l\0".to_owned()].into();
    let lease = claim(&journal, &who).await.lease;
    let note = Payload::Note { name: "n\0".into(), data: json!(["\0", "\u{7}"]) };
    let steered = Payload::Steered { by: "m\0e".into(), note: "\0".into() };
    journal.append(&lease, vec![note.clone(), steered]).await.unwrap();
    let events = journal.events(&run.id, 2, 1).await.unwrap();
    assert_eq!(events[0].payload, note);
    agrees(&journal, &run.id).await;
}

pub(crate) async fn what_is_too_large_is_refused(place: Place) {
    let journal = place.open().await;
    let huge = json!("x".repeat(2_000_000));
    let refused = journal.create(NewRun { request: huge.clone(), ..new_run("huge") }).await;
    assert!(matches!(refused, Err(JournalError::TooLarge { .. })));
    let lease = claimed(&journal, &worker("w")).await.lease;
    let note = Payload::Note { name: "n".into(), data: huge };
    let refused = journal.append(&lease, vec![started(1), note]).await;
    assert!(matches!(refused, Err(JournalError::TooLarge { .. })));
    let many = vec![Payload::Learned { task: None, note: "n".into() }; 1_001];
    let refused = journal.append(&lease, many[..].to_vec()).await;
    assert!(matches!(refused, Err(JournalError::TooLarge { .. })));
    let large = Payload::Note { name: "n".into(), data: json!("x".repeat(1_000_000)) };
    let refused = journal.append(&lease, vec![large; 17]).await;
    assert!(matches!(refused, Err(JournalError::TooLarge { .. })));
    journal.append(&lease, many[1..].to_vec()).await.unwrap();
    assert_eq!(journal.run(&lease.run).await.unwrap().unwrap().seq, 1_002);
    agrees(&journal, &lease.run).await;
}

pub(crate) async fn numbers_come_back_exactly(place: Place) {
    let journal = place.open().await;
    let odd = 0.1 + 0.2 + 1.0 / 3.0;
    let limits = Limits { cost_usd: Some(odd), tokens: Some(u64::MAX), time_ms: None };
    let request = json!({ "f": 1e-7 / 3.0, "big": u64::MAX, "small": i64::MIN });
    let new = NewRun { limits, request, ..new_run("odd") };
    journal.create(new.clone()).await.unwrap();
    let lease = claim(&journal, &worker("w")).await.lease;
    for step in 1..=5 {
        journal.append(&lease, vec![started(step), finished(step)]).await.unwrap();
    }
    let run = journal.run(&lease.run).await.unwrap().unwrap();
    assert_eq!((run.limits, &run.request), (limits, &new.request));
    agrees(&journal, &run.id).await;
    let limits = Limits { cost_usd: Some(f64::INFINITY), ..Limits::default() };
    let refused = journal.create(NewRun { limits, ..new_run("infinite") }).await;
    assert!(matches!(refused, Err(JournalError::Refused { .. })));
}

pub(crate) async fn time_does_not_go_backwards_within_a_run(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    place.ticks.store(5, std::sync::atomic::Ordering::Relaxed);
    journal.append(&lease, vec![started(1), finished(1)]).await.unwrap();
    let events = journal.events(&lease.run, 0, 0).await.unwrap();
    assert!(events.is_sorted_by_key(|event| event.at_ms));
    assert!(events[3].at_ms >= 1_000_000);
}

pub(crate) async fn the_journals_own_events_cannot_be_forged(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let forged = Payload::LeaseTaken { worker: "me".into(), token: 99 };
    let refused = journal.append(&lease, vec![forged]).await;
    assert!(matches!(refused, Err(JournalError::Refused { .. })));
    assert_eq!(names(&journal, &lease.run).await.len(), 2);
}
