//! Taking runs, and losing them.

use std::collections::BTreeSet;

use repertoire_journal::{
    ClaimRules, JournalError, NewRun, QueueOrder, QueueWorker, RunId, RunStatus, StepStatus,
};

use super::{
    Place, agrees, claim, claimed, completed, doomed, finished, names, new_run, started, worker,
};

fn labels(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| word.to_string()).collect()
}

pub(crate) async fn a_run_is_given_only_to_a_worker_that_has_its_labels_and_its_kind(place: Place) {
    let journal = place.open().await;
    let new = NewRun { labels: labels(&["gpu", "linux"]), ..new_run("picky") };
    journal.create(new).await.unwrap();
    let rules = ClaimRules::default();
    let with = |words: &[&str]| QueueWorker { labels: labels(words), ..worker("w") };
    for words in [&[][..], &["gpu"], &["gpu", "mac"], &["linux gpu"]] {
        assert!(journal.claim(&with(words), &rules).await.unwrap().is_none(), "{words:?}");
    }
    for kinds in [&[][..], &["review"]] {
        let who = QueueWorker { kinds: labels(kinds), ..with(&["gpu", "linux"]) };
        assert!(journal.claim(&who, &rules).await.unwrap().is_none(), "{kinds:?}");
    }
    let who = QueueWorker { kinds: labels(&["review", "plan"]), ..with(&["linux", "gpu", "x"]) };
    assert!(journal.claim(&who, &rules).await.unwrap().is_some());
}

pub(crate) async fn larger_priorities_come_first_and_then_the_oldest_or_the_newest(place: Place) {
    for (order, expected) in [
        (QueueOrder::Fifo, ["high 1", "high 2", "a", "b", "low"]),
        (QueueOrder::NewestFirst, ["high 2", "high 1", "b", "a", "low"]),
    ] {
        let journal = place.open().await;
        let rules = ClaimRules { order, ..ClaimRules::default() };
        for (name, priority) in [("low", -5), ("a", 0), ("high 1", 9), ("b", 0), ("high 2", 9)] {
            journal.create(NewRun { priority, ..new_run(name) }).await.unwrap();
        }
        for name in expected {
            let taken = journal.claim(&worker("w"), &rules).await.unwrap().unwrap();
            assert_eq!(taken.run.name, name);
        }
        assert!(journal.claim(&worker("w"), &rules).await.unwrap().is_none());
    }
}

pub(crate) async fn caps_hold_in_all_and_per_workspace(place: Place) {
    let journal = place.open().await;
    for (name, workspace) in [("a1", "/a"), ("a2", "/a"), ("b1", "/b"), ("c1", "/c")] {
        journal.create(NewRun { workspace: workspace.into(), ..new_run(name) }).await.unwrap();
    }
    let rules =
        ClaimRules { total_max: Some(2), per_workspace_max: Some(1), ..ClaimRules::default() };
    let first = journal.claim(&worker("w"), &rules).await.unwrap().unwrap();
    let second = journal.claim(&worker("w"), &rules).await.unwrap().unwrap();
    assert_eq!((first.run.name.as_str(), second.run.name.as_str()), ("a1", "b1"));
    assert!(journal.claim(&worker("w"), &rules).await.unwrap().is_none());
    journal.append(&first.lease, vec![completed()]).await.unwrap();
    let third = journal.claim(&worker("w"), &rules).await.unwrap().unwrap();
    assert_eq!(third.run.name, "a2");
}

pub(crate) async fn caps_are_exact_when_many_workers_come_at_once(place: Place) {
    let journals = [place.open().await, place.open().await];
    for at in 0..12 {
        let workspace = format!("/{}", at % 3);
        journals[0].create(NewRun { workspace, ..new_run("r") }).await.unwrap();
    }
    let rules =
        ClaimRules { total_max: Some(5), per_workspace_max: Some(2), ..ClaimRules::default() };
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..12 {
        let (journal, rules) = (journals[at % 2].clone(), rules.clone());
        tasks.spawn(async move { journal.claim(&worker("w"), &rules).await.unwrap() });
    }
    let taken: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(taken.len(), 5);
    for workspace in ["/0", "/1", "/2"] {
        assert!(taken.iter().filter(|claimed| claimed.run.workspace == workspace).count() <= 2);
    }
}

pub(crate) async fn every_run_is_taken_once_when_many_workers_come_at_once(place: Place) {
    let journals = [place.open().await, place.open().await];
    let mut made = BTreeSet::new();
    for _ in 0..20 {
        made.insert(journals[0].create(new_run("r")).await.unwrap().id);
    }
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..6 {
        let journal = journals[at % 2].clone();
        tasks.spawn(async move {
            let mut done = Vec::new();
            while let Some(claimed) =
                journal.claim(&worker(&format!("w{at}")), &ClaimRules::default()).await.unwrap()
            {
                let payloads = vec![started(1), finished(1), completed()];
                journal.append(&claimed.lease, payloads).await.unwrap();
                done.push(claimed.run.id);
            }
            done
        });
    }
    let done: Vec<RunId> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!((done.len(), done.into_iter().collect::<BTreeSet<_>>()), (20, made.clone()));
    for id in &made {
        assert_eq!(journals[1].run(id).await.unwrap().unwrap().token, 1);
        agrees(&journals[1], id).await;
    }
}

pub(crate) async fn a_lost_lease_puts_the_run_back_and_fences_its_worker(place: Place) {
    let journal = place.open().await;
    let lost = claimed(&journal, &doomed("lost")).await.lease;
    journal.append(&lost, vec![started(1)]).await.unwrap();
    let taken = claim(&journal, &worker("next")).await;
    assert_eq!((taken.lease.token, taken.run.open_step), (2, None));
    let step = &journal.steps(&lost.run).await.unwrap()[0];
    assert_eq!((step.status, step.token), (StepStatus::Interrupted, 1));
    let before = journal.run(&lost.run).await.unwrap().unwrap();
    for result in [
        journal.append(&lost, vec![finished(1), completed()]).await.map(drop),
        journal.renew_lease(&lost).await.map(drop),
        journal.release_run(&lost, "late").await,
    ] {
        let Err(JournalError::Fenced { token: 1, now, .. }) = &result else { panic!("{result:?}") };
        assert_eq!(now, "`next` has it with token 2");
    }
    assert_eq!(journal.run(&lost.run).await.unwrap().unwrap(), before);
    // The same worker under the same name is still somebody else.
    let again = QueueWorker { name: "lost".into(), ..worker("") };
    journal.release_run(&taken.lease, "bye").await.unwrap();
    claim(&journal, &again).await;
    let late = journal.append(&lost, vec![started(2)]).await;
    assert!(matches!(late, Err(JournalError::Fenced { .. })));
    assert_eq!(
        names(&journal, &lost.run).await,
        [
            "RUN_CREATED",
            "LEASE_TAKEN",
            "STEP_STARTED",
            "STEP_INTERRUPTED",
            "LEASE_EXPIRED",
            "LEASE_TAKEN",
            "LEASE_RELEASED",
            "LEASE_TAKEN"
        ]
    );
    agrees(&journal, &lost.run).await;
}

pub(crate) async fn many_reapers_at_once_are_harmless(place: Place) {
    let journals = [place.open().await, place.open().await];
    let mut lost = BTreeSet::new();
    for _ in 0..8 {
        journals[0].create(new_run("r")).await.unwrap();
    }
    let rules = ClaimRules::default();
    for at in 0..8 {
        // Each claim puts back what the one before it lost, so they are taken by name.
        let page = journals[0].runs(&Default::default()).await.unwrap();
        let id = page.items[at].id.clone();
        let who = QueueWorker { lease: std::time::Duration::from_millis(200), ..worker("w") };
        journals[0].claim_run(&id, &who, &rules).await.unwrap().unwrap();
        lost.insert(id);
    }
    place.ticks.fetch_add(1_000, std::sync::atomic::Ordering::Relaxed);
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..8 {
        let journal = journals[at % 2].clone();
        tasks.spawn(async move { journal.requeue_expired().await.unwrap() });
    }
    let reaped: Vec<RunId> = tasks.join_all().await.into_iter().flatten().collect();
    assert!(reaped.len() <= 8);
    for id in &lost {
        let told = names(&journals[0], id).await;
        let expired = told.iter().filter(|name| **name == "LEASE_EXPIRED").count();
        assert_eq!(expired, told.iter().filter(|name| **name == "LEASE_TAKEN").count());
        assert_eq!(journals[0].run(id).await.unwrap().unwrap().status, RunStatus::Queued);
        agrees(&journals[0], id).await;
    }
    assert_eq!(journals[1].requeue_expired().await.unwrap(), []);
}

pub(crate) async fn a_heartbeat_keeps_the_lease(place: Place) {
    let journal = place.open().await;
    let claimed = claimed(&journal, &doomed("w")).await;
    let until = journal.lease_until(&claimed.run.id).await.unwrap().unwrap();
    // It ran out, but nobody has taken it: the worker may still say that it is there.
    let lease = repertoire_journal::RunLease { length: super::LONG, ..claimed.lease };
    assert_eq!(journal.renew_lease(&lease).await.unwrap(), None);
    assert!(journal.lease_until(&lease.run).await.unwrap().unwrap() >= until + 500_000);
    assert!(journal.claim(&worker("v"), &ClaimRules::default()).await.unwrap().is_none());
    let [(run, who, _)] = &journal.list_leased_runs().await.unwrap()[..] else { panic!() };
    assert_eq!((run, who.as_str()), (&lease.run, "w"));
}

pub(crate) async fn a_run_that_cannot_be_read_keeps_no_other_waiting(place: Place) {
    let journal = place.open().await;
    let odd = claimed(&journal, &doomed("w")).await.run.id;
    (place.tamper)(
        &place.target,
        "UPDATE run SET state = replace(state, '\"running\"', '\"dreaming\"')",
    )
    .await;
    let journal = place.reopen_without_digests().await;
    let lost = journal.create(new_run("lost")).await.unwrap().id;
    journal.claim_run(&lost, &doomed("w"), &ClaimRules::default()).await.unwrap().unwrap();
    assert_eq!(journal.requeue_expired().await.unwrap(), std::slice::from_ref(&lost));
    // It would be the first in the queue, too.
    (place.tamper)(&place.target, "UPDATE run SET status = 'queued'").await;
    assert_eq!(claim(&journal, &worker("w")).await.run.id, lost);
    assert!(journal.claim(&worker("w"), &ClaimRules::default()).await.unwrap().is_none());
    let asked_for = journal.claim_run(&odd, &worker("w"), &ClaimRules::default()).await;
    assert!(
        matches!(&asked_for, Err(JournalError::Unreadable { run, .. }) if *run == odd.as_str())
    );
}

pub(crate) async fn a_released_run_is_back_in_the_queue(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    journal.append(&lease, vec![started(1)]).await.unwrap();
    journal.release_run(&lease, "shutdown").await.unwrap();
    let run = journal.run(&lease.run).await.unwrap().unwrap();
    assert_eq!((run.status, run.worker, run.open_step), (RunStatus::Queued, None, None));
    let step = &journal.steps(&lease.run).await.unwrap()[0];
    assert_eq!(step.reason.as_deref(), Some("shutdown"));
    assert_eq!(claim(&journal, &worker("v")).await.lease.token, 2);
    agrees(&journal, &lease.run).await;
}

pub(crate) async fn a_certain_run_can_be_taken(place: Place) {
    let journal = place.open().await;
    let first = journal.create(new_run("first")).await.unwrap().id;
    let second = journal.create(new_run("second")).await.unwrap().id;
    let rules = ClaimRules::default();
    let taken = journal.claim_run(&second, &doomed("w"), &rules).await.unwrap().unwrap();
    assert_eq!(taken.run.id, second);
    let again = journal.claim_run(&second, &worker("v"), &rules).await.unwrap().unwrap();
    assert_eq!(again.lease.token, 2);
    assert!(journal.claim_run(&second, &worker("u"), &rules).await.unwrap().is_none());
    assert!(
        journal.claim_run(&RunId::known("no\0"), &worker("u"), &rules).await.unwrap().is_none()
    );
    assert_eq!(claim(&journal, &worker("u")).await.run.id, first);
}

pub(crate) async fn a_long_history_is_not_looked_at(place: Place) {
    let journal = place.open().await;
    let id = journal.create(new_run("r")).await.unwrap().id;
    (place.tamper)(
        &place.target,
        "INSERT INTO run (id, kind, name, workspace, labels, priority, status, seq, token, not_before_ms, state) \
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
         SELECT 'done-' || i, r.kind, r.name, r.workspace, r.labels, 0, 'completed', 1, 1, 0, r.state \
         FROM n CROSS JOIN run r",
    )
    .await;
    (place.tamper)(&place.target, "ANALYZE").await;
    for (order, index) in
        [(QueueOrder::Fifo, "run_oldest_first"), (QueueOrder::NewestFirst, "run_newest_first")]
    {
        let plan = journal.claim_plan(order).await.unwrap();
        assert!(plan.contains(index) && plan.contains("run_under_way"), "{plan}");
        let lines = plan.lines();
        // An index that holds only what is queued may be read from its start; the table may not.
        let whole: Vec<_> = lines
            .filter(|line| line.contains("Seq Scan on run") || line.trim() == "SCAN r")
            .collect();
        assert_eq!(whole, [""; 0], "{plan}");
        assert!(!plan.to_lowercase().contains("sort"), "{plan}");
    }
    assert_eq!(claim(&journal, &worker("w")).await.run.id, id);
}

pub(crate) async fn what_was_refused_stands_in_nobodys_way(place: Place) {
    let journal = place.open().await;
    for _ in 0..100 {
        let lost = claimed(&journal, &doomed("w")).await.lease;
        journal.requeue_expired().await.unwrap();
        let late = journal.append(&lost, vec![started(1)]).await;
        assert!(matches!(late, Err(JournalError::Fenced { .. })), "{late:?}");
        // At once, while the refused transaction may still be on its way.
        let next =
            journal.claim_run(&lost.run, &worker("v"), &ClaimRules::default()).await.unwrap();
        journal.append(&next.expect("it is free").lease, vec![completed()]).await.unwrap();
    }
}
