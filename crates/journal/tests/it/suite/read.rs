//! Looking at runs.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use repertoire_journal::{
    ClaimRules, EventCursor, Filter, JournalError, NewRun, Payload, QueueWorker, RunId, RunKind,
    RunStatus,
};

use super::{Place, agrees, claim, claimed, completed, finished, new_run, started, worker};

pub(crate) async fn a_run_is_found_by_id_part_name_and_last(place: Place) {
    let journal = place.open().await;
    let none = journal.find_run("last").await.unwrap_err();
    assert!(none.to_string().contains("has no runs"), "{none}");
    for (id, name) in [("0199aa-one1", "alpha"), ("0199aa-two2", "beta"), ("0199bb-two2", "beta")] {
        journal.create(NewRun { id: RunId::known(id), ..new_run(name) }).await.unwrap();
    }
    for (text, id) in [
        ("0199aa-one1", "0199aa-one1"),
        ("alpha", "0199aa-one1"),
        (" one1 ", "0199aa-one1"),
        ("0199b", "0199bb-two2"),
        ("last", "0199bb-two2"),
    ] {
        assert_eq!(journal.find_run(text).await.unwrap().id.as_str(), id, "{text}");
    }
    for (text, first) in
        [("beta", "0199bb-two2"), ("two2", "0199bb-two2"), ("0199a", "0199aa-two2")]
    {
        let Err(JournalError::Ambiguous { ids, more: false, .. }) = journal.find_run(text).await
        else {
            panic!("{text}")
        };
        assert_eq!((ids.len(), ids[0].as_str()), (2, first));
    }
    for text in ["", "ne1", "nothing", "%", "____", "0199cc", "a\0b"] {
        let error = journal.find_run(text).await.unwrap_err();
        assert!(matches!(error, JournalError::NotFound { .. }), "{text}: {error}");
    }
}

pub(crate) async fn the_latest_run_is_that_of_the_latest_event(place: Place) {
    let ticks = place.ticks.clone();
    let journal = place.open().await;
    let talk = |workspace: &str| NewRun {
        kind: RunKind::Conversation.as_str().into(),
        workspace: workspace.into(),
        ..new_run("talk")
    };
    let said = || Payload::KindEvent { name: "SAID".into(), data: serde_json::json!(1) };
    let first = journal.create_attended(talk("/here"), vec![]).await.unwrap().id;
    // The clock is far ahead for a moment.
    let now = ticks.fetch_add(1_000_000_000, Ordering::Relaxed);
    let second = journal.create_attended(talk("/there"), vec![]).await.unwrap().id;
    ticks.store(now, Ordering::Relaxed);
    journal.append_attended(&first, 1, vec![said()]).await.unwrap();
    journal.create(new_run("a plan")).await.unwrap();
    let latest = journal.list_latest_ids(RunKind::Conversation, None).await.unwrap();
    assert_eq!(latest, [first, second.clone()]);
    let there = journal.list_latest_ids(RunKind::Conversation, Some("/there")).await.unwrap();
    assert_eq!(there, [second]);
}

pub(crate) async fn lists_come_in_pages_newest_first(place: Place) {
    let journal = place.open().await;
    for at in 0..5 {
        let workspace = format!("/{}", at % 2);
        journal.create(NewRun { workspace, ..new_run(&format!("r{at}")) }).await.unwrap();
    }
    claim(&journal, &worker("w")).await;
    let mut seen = Vec::new();
    let mut filter = Filter { limit: 2, ..Filter::default() };
    loop {
        let page = journal.runs(&filter).await.unwrap();
        seen.extend(page.items.into_iter().map(|run| run.name));
        filter.before = page.next;
        if filter.before.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["r4", "r3", "r2", "r1", "r0"]);
    let names = async |filter: Filter| {
        let page = journal.runs(&filter).await.unwrap();
        page.items.into_iter().map(|run| run.name).collect::<Vec<_>>()
    };
    let statuses = vec![RunStatus::Running, RunStatus::Paused];
    assert_eq!(names(Filter { statuses, ..Filter::default() }).await, ["r0"]);
    let workspace = Some("/1".to_owned());
    assert_eq!(names(Filter { workspace, ..Filter::default() }).await, ["r3", "r1"]);
    let kind = Some("review".to_owned());
    assert_eq!(names(Filter { kind, ..Filter::default() }).await, [""; 0]);
}

pub(crate) async fn a_tail_misses_nothing_while_many_write(place: Place) {
    let journal = place.open().await;
    // If the tail is held up at this moment, this one is still to come; otherwise it is not.
    let before = journal.create(new_run("before")).await.unwrap().id;
    let start = journal.last_cursor().await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..4 {
        let journal = if at == 3 { place.open().await } else { journal.clone() };
        tasks.spawn(async move {
            for _ in 0..3 {
                let id = journal.create(new_run("r")).await.unwrap().id;
                let who = worker(&format!("w{at}"));
                let taken = journal.claim_run(&id, &who, &ClaimRules::default()).await.unwrap();
                let lease = taken.unwrap().lease;
                for step in 1..=4 {
                    journal.append(&lease, vec![started(step), finished(step)]).await.unwrap();
                }
                journal.append(&lease, vec![completed()]).await.unwrap();
            }
        });
    }
    let mut seen: BTreeMap<RunId, u64> = BTreeMap::new();
    let mut at = start;
    loop {
        let page = journal.list_all_events(at, 7).await.unwrap();
        for (_, event) in &page.events {
            let last = seen.entry(event.run.clone()).or_default();
            assert_eq!(event.seq, *last + 1, "{event:?}");
            *last = event.seq;
        }
        assert_eq!(at.to_string().parse::<EventCursor>().unwrap(), at);
        at = page.next;
        if page.is_end() && seen.values().filter(|last| **last == 12).count() == 12 {
            break;
        }
        tokio::select! {
            biased;
            Some(done) = tasks.join_next() => done.unwrap(),
            _ = tokio::task::yield_now() => {}
        }
    }
    assert!(journal.list_all_events(at, 100).await.unwrap().is_end());
    seen.remove(&before);
    assert_eq!(seen.len(), 12);
    assert!("12".parse::<EventCursor>().is_err());
}

pub(crate) async fn a_change_is_heard_of(place: Place) {
    let (journal, other) = (place.open().await, place.open().await);
    let mut changes = journal.subscribe_changes();
    // What happened before somebody listens may be heard of, too.
    while changes.next(Duration::from_millis(700)).await {}
    journal.create(new_run("here")).await.unwrap();
    assert!(changes.next(Duration::from_secs(20)).await);
    while changes.next(Duration::from_millis(700)).await {}
    // Whoever looks for work and finds none wakes nobody, itself least of all.
    let none = QueueWorker { kinds: Default::default(), ..worker("w") };
    for journal in [&journal, &other] {
        assert!(journal.claim(&none, &ClaimRules::default()).await.unwrap().is_none());
    }
    assert!(!changes.next(Duration::from_millis(700)).await);
    other.create(new_run("there")).await.unwrap();
    assert!(changes.next(Duration::from_secs(20)).await);
    journal.close().await;
    other.close().await;
}

pub(crate) async fn what_does_not_exist_is_not_found(place: Place) {
    let journal = place.open().await;
    for id in ["none", "", "a\0b", "a'b"] {
        let id = RunId::known(id);
        assert_eq!(journal.run(&id).await.unwrap(), None);
        assert_eq!(journal.steps(&id).await.unwrap(), []);
        assert_eq!(journal.events(&id, 0, 0).await.unwrap(), []);
        assert!(matches!(journal.replay_run(&id).await, Err(JournalError::NotFound { .. })));
    }
}

pub(crate) async fn replay_says_what_was_tampered_with(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    journal.append(&lease, vec![started(1), finished(1), completed()]).await.unwrap();
    agrees(&journal, &lease.run).await;
    journal.close().await;
    (place.tamper)(&place.target, "UPDATE step SET state = replace(state, '\"ok\"', '\"failed\"')")
        .await;
    let journal = place.reopen_without_digests().await;
    let differences = async || -> Vec<(String, String, String)> {
        let replayed = journal.replay_run(&lease.run).await.unwrap();
        let text = replayed.differences.into_iter();
        text.map(|found| (found.what, found.stored, found.replayed)).collect()
    };
    let outcome = ("step 1.outcome".into(), "\"failed\"".into(), "\"ok\"".into());
    assert_eq!(differences().await, std::slice::from_ref(&outcome));
    (place.tamper)(&place.target, "UPDATE run SET lease_shown_until_ms = 5").await;
    let held = ("the run's lease".into(), "a lease".into(), "no lease".into());
    assert_eq!(differences().await, [outcome, held]);
    for columns in [
        "UPDATE run SET status = 'queued'",
        "UPDATE run SET status = 'completed', labels = '[\"gpu\"]'",
    ] {
        (place.tamper)(&place.target, columns).await;
        let error = journal.replay_run(&lease.run).await.unwrap_err().to_string();
        assert!(error.contains("do not fit its state"), "{error}");
    }
}

pub(crate) async fn an_event_of_a_later_version_is_kept_and_shown(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    journal.append(&lease, vec![started(1), finished(1)]).await.unwrap();
    journal.close().await;
    (place.tamper)(
        &place.target,
        "UPDATE event SET type = 'STEP_DREAMT', payload = '{\"type\":\"STEP_DREAMT\",\"x\":1}' WHERE seq = 3",
    )
    .await;
    (place.tamper)(&place.target, "UPDATE event SET v = 2 WHERE seq = 2").await;
    let journal = place.reopen_without_digests().await;
    let events = journal.events(&lease.run, 0, 0).await.unwrap();
    let Payload::Note { name, data } = &events[2].payload else { panic!() };
    assert_eq!((name.as_str(), &data["x"]), ("unknown:STEP_DREAMT", &1.into()));
    let replayed = journal.replay_run(&lease.run).await.unwrap();
    assert_eq!(replayed.differences[0].stored, "LEASE_TAKEN, version 2");
    assert!(replayed.differences[1].replayed.contains("cannot be told"));
    // The run goes on: what is stored beside the events counts.
    journal.append(&lease, vec![completed()]).await.unwrap();
}

pub(crate) async fn an_event_of_an_earlier_version_is_read(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    journal.close().await;
    (place.tamper)(&place.target, "UPDATE event SET v = 0").await;
    let journal = place.reopen_without_digests().await;
    let events = journal.events(&lease.run, 0, 0).await.unwrap();
    assert_eq!((events[1].v, events[1].payload.name()), (0, "LEASE_TAKEN"));
    agrees(&journal, &lease.run).await;
}

pub(crate) async fn an_event_that_cannot_be_decoded_hides_no_other(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    journal.append(&lease, vec![started(1), finished(1)]).await.unwrap();
    journal.close().await;
    (place.tamper)(&place.target, "UPDATE event SET payload = '{\"typ' WHERE seq = 3").await;
    let journal = place.reopen_without_digests().await;
    let events = journal.events(&lease.run, 0, 0).await.unwrap();
    let Payload::Note { name, data } = &events[2].payload else { panic!() };
    assert_eq!((name.as_str(), data), ("unknown:STEP_STARTED", &"{\"typ".into()));
    assert_eq!(events[3].payload, finished(1));
    let replayed = journal.replay_run(&lease.run).await.unwrap();
    assert!(replayed.differences[0].replayed.contains("cannot be told"));
}
