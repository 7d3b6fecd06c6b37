//! One damaged row: it is named, nothing is added to its run, and everything else goes on.

use repertoire_journal::{
    ClaimRules, Command, Filter, Journal, JournalError, Payload, RunId, RunStatus,
};

use super::{Place, agrees, claim, claimed, completed, doomed, finished, new_run, started, worker};

/// The run that an error of a damaged row names.
#[track_caller]
fn damaged_run<T: std::fmt::Debug>(done: Result<T, JournalError>) -> RunId {
    match done {
        Err(JournalError::Altered { run: Some(run), .. }) => run,
        other => panic!("{other:?}"),
    }
}

async fn all_ids(journal: &Journal, limit: u32) -> (Vec<RunId>, Vec<String>) {
    let (mut ids, mut damaged) = (Vec::new(), Vec::new());
    let mut filter = Filter { limit, ..Filter::default() };
    loop {
        let page = journal.runs(&filter).await.unwrap();
        ids.extend(page.items.into_iter().map(|run| run.id));
        damaged.extend(page.damaged.into_iter().map(|row| row.id));
        filter.before = page.next;
        if filter.before.is_none() {
            return (ids, damaged);
        }
    }
}

pub(crate) async fn one_damaged_run_keeps_no_other_from_being_used(place: Place) {
    let journal = place.open().await;
    let bad = journal.create(new_run("bad")).await.unwrap().id;
    let first = journal.create(new_run("first")).await.unwrap().id;
    let second = journal.create(new_run("second")).await.unwrap().id;
    (place.tamper)(&place.target, "UPDATE run SET name = 'other' WHERE name = 'bad'").await;
    // It is the first of the queue, for this process and for one that has not met it yet.
    assert_eq!(claim(&journal, &worker("w")).await.run.id, first);
    let other = place.open().await;
    let lease = claim(&other, &worker("v")).await.lease;
    assert_eq!(lease.run, second);
    other.append(&lease, vec![started(1), finished(1), completed()]).await.unwrap();
    agrees(&journal, &second).await;
    let next = journal.create(new_run("next")).await.unwrap().id;
    for limit in [0, 1, 2] {
        let expected = vec![next.clone(), second.clone(), first.clone()];
        assert_eq!(all_ids(&journal, limit).await, (expected, vec![bad.to_string()]), "{limit}");
    }
    assert_eq!(damaged_run(journal.run(&bad).await), bad);
    let cancel = Command::Cancel { by: "me".into() };
    assert_eq!(damaged_run(journal.order(&bad, cancel).await), bad);
    let asked_for = journal.claim_run(&bad, &worker("w"), &ClaimRules::default()).await;
    assert_eq!(damaged_run(asked_for), bad);
    let runs = camino::Utf8Path::new("/no/folder");
    journal.remove_damaged_run(runs, &bad).await.unwrap();
    assert_eq!(all_ids(&journal, 0).await.1, [""; 0]);
    assert_eq!(journal.run(&bad).await.unwrap(), None);
    assert_eq!(journal.events(&bad, 0, 0).await.unwrap(), []);
    journal.check_damage().await.unwrap();
}

pub(crate) async fn nothing_is_added_to_a_run_with_a_damaged_event(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let other = claimed(&journal, &worker("v")).await.lease;
    let tampered =
        format!("UPDATE event SET at_ms = at_ms + 1 WHERE seq = 1 AND run = '{}'", lease.run);
    (place.tamper)(&place.target, tampered.leak()).await;
    assert_eq!(damaged_run(journal.events(&lease.run, 0, 0).await), lease.run);
    for refused in [
        journal.append(&lease, vec![completed()]).await.map(drop),
        journal.release_run(&lease, "bye").await,
        journal.order(&lease.run, Command::Cancel { by: "me".into() }).await.map(drop),
    ] {
        assert_eq!(damaged_run(refused), lease.run);
    }
    // The state of the run itself is sound.
    assert_eq!(journal.run(&lease.run).await.unwrap().unwrap().seq, 2);
    journal.append(&other, vec![completed()]).await.unwrap();
}

pub(crate) async fn a_damaged_run_with_an_expired_lease_is_left_alone(place: Place) {
    let journal = place.open().await;
    let bad = claimed(&journal, &doomed("w")).await.run.id;
    (place.tamper)(&place.target, "UPDATE run SET name = 'other'").await;
    assert_eq!(journal.requeue_expired().await.unwrap(), []);
    let lost = journal.create(new_run("lost")).await.unwrap().id;
    journal.claim_run(&lost, &doomed("w"), &ClaimRules::default()).await.unwrap().unwrap();
    assert_eq!(journal.requeue_expired().await.unwrap(), [lost]);
    assert_eq!(damaged_run(journal.run(&bad).await), bad);
}

pub(crate) async fn a_run_of_a_later_version_is_listed_as_such(place: Place) {
    let journal = place.open().await;
    let odd = claimed(&journal, &worker("w")).await.run.id;
    let renamed = "UPDATE run SET state = replace(state, '\"running\"', '\"dreaming\"')";
    (place.tamper)(&place.target, renamed).await;
    let journal = place.reopen_without_digests().await;
    let known = journal.create(new_run("known")).await.unwrap();
    let page = journal.runs(&Filter::default()).await.unwrap();
    assert_eq!(page.items, [known]);
    let [row] = &page.damaged[..] else { panic!("{page:?}") };
    assert_eq!(row.id, odd.as_str());
    assert!(row.what.contains("dreaming"), "{}", row.what);
    // It is not damaged: a later version continues it.
    let problem = journal.verify_run(&odd).await.unwrap().problem.unwrap();
    assert_eq!(problem.event, None);
    let statuses = vec![RunStatus::Queued];
    let queued = Filter { statuses, ..Filter::default() };
    assert_eq!(journal.runs(&queued).await.unwrap().damaged, []);
    let note = Payload::Note { name: "n".into(), data: serde_json::Value::Null };
    let refused = journal.order(&odd, Command::Event(note)).await;
    assert!(matches!(refused, Err(JournalError::Unreadable { .. })), "{refused:?}");
}
