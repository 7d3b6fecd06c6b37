//! Runs that the process which creates them carries out itself.

use repertoire_journal::{ClaimRules, Command, JournalError, NewRun, Payload, RunKind, RunStatus};
use serde_json::json;

use super::{Place, finished, forget, new_run, started, worker};

fn kind_event(name: &str) -> Payload {
    Payload::KindEvent { name: name.into(), data: json!({ "n": 1 }) }
}

fn workflow_run(name: &str) -> NewRun {
    NewRun { kind: RunKind::Workflow.as_str().into(), ..new_run(name) }
}

pub(crate) async fn an_attended_run_is_never_queued_and_goes_on_after_its_end(place: Place) {
    let journal = place.open().await;
    let run = journal.create_attended(workflow_run("w"), vec![kind_event("a")]).await.unwrap();
    assert_eq!((run.status, run.seq, run.attended), (RunStatus::Running, 2, true));
    let nothing = journal.claim(&worker("w"), &ClaimRules::default()).await.unwrap();
    assert!(nothing.is_none());
    let done = Payload::RunCompleted { summary: "done".into(), head: None };
    let run = journal.append_attended(&run.id, 2, vec![kind_event("b"), done]).await.unwrap();
    assert_eq!(run.status, RunStatus::Completed);
    let again = Payload::RunResumed { by: "me".into(), limits: None };
    let run = journal.append_attended(&run.id, run.seq, vec![again]).await.unwrap();
    assert_eq!(run.status, RunStatus::Running);
    let last = journal.last_kind_event(&run.id).await.unwrap().unwrap();
    assert_eq!((last.seq, last.payload), (3, kind_event("b")));
    assert_eq!(journal.replay_run(&run.id).await.unwrap().differences, []);
    let refused = journal.order(&run.id, Command::Pause { by: "me".into() }).await;
    assert!(matches!(refused, Err(JournalError::Refused { .. })));
    forget(&journal, &run.id).await.unwrap();
    assert!(journal.run(&run.id).await.unwrap().is_none());
}

pub(crate) async fn first_events_that_are_too_large_are_refused(place: Place) {
    let journal = place.open().await;
    let large = || Payload::KindEvent { name: "LARGE".into(), data: json!("x".repeat(9 << 20)) };
    let new = workflow_run("w");
    let refused = journal.create_attended(new.clone(), vec![large(), large()]).await;
    assert!(matches!(refused, Err(JournalError::TooLarge { .. })), "{:?}", refused.map(drop));
    assert_eq!(journal.run(&new.id).await.unwrap(), None);
}

pub(crate) async fn an_attended_run_takes_no_place_of_the_queue(place: Place) {
    let journal = place.open().await;
    journal.create_attended(workflow_run("w"), Vec::new()).await.unwrap();
    let plan = journal.create(new_run("p")).await.unwrap();
    let rules =
        ClaimRules { total_max: Some(1), per_workspace_max: Some(1), ..ClaimRules::default() };
    let claimed = journal.claim(&worker("w"), &rules).await.unwrap();
    assert_eq!(claimed.map(|claimed| claimed.run.id), Some(plan.id));
}

pub(crate) async fn a_run_is_created_with_a_step_in_progress(place: Place) {
    let journal = place.open().await;
    let created = journal.create_attended(workflow_run("w"), vec![started(1)]).await.unwrap();
    let run = journal.append_attended(&created.id, 2, vec![finished(1)]).await.unwrap();
    assert_eq!((run.steps, run.open_step), (1, None));
    assert_eq!(journal.steps(&run.id).await.unwrap().len(), 1);
    assert_eq!(journal.replay_run(&run.id).await.unwrap().differences, []);
}

pub(crate) async fn of_two_who_continue_an_attended_run_one_wins(place: Place) {
    let journal = place.open().await;
    let new = workflow_run("w");
    let run = journal.create_attended(new.clone(), Vec::new()).await.unwrap();
    let twice = journal.create_attended(new, Vec::new()).await;
    assert!(matches!(twice, Err(JournalError::Exists { .. })));
    let (a, b) = tokio::join!(
        journal.append_attended(&run.id, 1, vec![kind_event("a")]),
        journal.append_attended(&run.id, 1, vec![kind_event("b")]),
    );
    let conflicts = [&a, &b]
        .into_iter()
        .filter(|done| matches!(done, Err(JournalError::Conflict { expected: 1, found: 2, .. })));
    assert_eq!(conflicts.count(), 1, "{a:?} {b:?}");
    let queued = journal.create(new_run("p")).await.unwrap();
    let without_lease = journal.append_attended(&queued.id, 1, vec![kind_event("a")]).await;
    assert!(matches!(without_lease, Err(JournalError::Refused { .. })));
}

pub(crate) async fn attended_runs_count_towards_no_cap_and_have_no_lease_that_expires(
    place: Place,
) {
    let journal = place.open().await;
    let attended = journal.create_attended(workflow_run("w"), Vec::new()).await.unwrap();
    let queued = journal.create(new_run("p")).await.unwrap();
    assert_eq!(attended.workspace, queued.workspace);
    let rules =
        ClaimRules { total_max: Some(1), per_workspace_max: Some(1), ..ClaimRules::default() };
    let claimed = journal.claim(&worker("w"), &rules).await.unwrap();
    assert_eq!(claimed.map(|claimed| claimed.run.id), Some(queued.id));
    assert_eq!(journal.requeue_expired().await.unwrap(), []);
    let attended = journal.run(&attended.id).await.unwrap().unwrap();
    assert_eq!((attended.status, attended.seq), (RunStatus::Running, 1));
}

pub(crate) async fn a_run_is_found_among_those_of_its_kind(place: Place) {
    let journal = place.open().await;
    let workflow = journal.create_attended(workflow_run("same"), Vec::new()).await.unwrap();
    let plan = journal.create(new_run("same")).await.unwrap();
    for text in ["same", "last"] {
        let found = journal.find_run_of_kind(RunKind::Workflow, text).await.unwrap();
        assert_eq!(found.id, workflow.id);
        let found = journal.find_run_of_kind(RunKind::Plan, text).await.unwrap();
        assert_eq!(found.id, plan.id);
    }
    let part = plan.id.short();
    assert!(journal.find_run_of_kind(RunKind::Workflow, part).await.is_err());
    assert!(journal.find_run_of_kind(RunKind::Workflow, plan.id.as_str()).await.is_err());
    assert!(journal.find_run_of_kind(RunKind::Review, "last").await.is_err());
    let start = &workflow.id.as_str()[..1];
    let ids = journal.ids_with_prefix(RunKind::Workflow, start).await.unwrap();
    assert_eq!(ids.as_slice(), std::slice::from_ref(&workflow.id));
    assert_eq!(journal.ids_with_prefix(RunKind::Review, start).await.unwrap(), []);
}
