//! Digests: what was changed behind the journal's back is an error, never other content.

use repertoire_journal::letter::{LetterPriority, LetterSource};
use repertoire_journal::memory::FixOrigin;
use repertoire_journal::metrics::MetricsCollector;
use repertoire_journal::{
    FailureFilter, FailureFix, FixOutcome, FixRemedy, Journal, JournalError, LetterFilter,
    LetterStatus, NewLetter, NewRun, Payload, RunId, RunKind,
};
use serde_json::json;

use super::{Place, agrees, claimed, completed, finished, new_run, started, worker};

pub(crate) const SCOPE: &str = "github.com/somebody/something";

/// Fills a journal with runs of several kinds, steps, memory and dead letters, and returns the ids of its runs.
pub(crate) async fn fill(journal: &Journal) -> Vec<RunId> {
    let lease = claimed(journal, &worker("w")).await.lease;
    let seen = Payload::FailureSeen {
        scope: SCOPE.into(),
        signature: "aa11".into(),
        category: "build".into(),
        code: Some("E0433".into()),
        tool: "cargo".into(),
        example: "use of undeclared crate or module `serde`".into(),
    };
    let tried = |word: &str, outcome| Payload::FixTried {
        scope: SCOPE.into(),
        signature: "aa11".into(),
        fix: FailureFix {
            remedy: FixRemedy::Command(vec!["cargo".into(), word.into()]),
            preconditions: vec!["exists Cargo.lock".into()],
            origin: FixOrigin::Learnt,
        },
        outcome,
        reason: "the checks said so".into(),
    };
    journal.append(&lease, vec![started(1), seen.clone(), finished(1)]).await.unwrap();
    let second = vec![
        started(2),
        tried("fetch", FixOutcome::Failed),
        tried("update", FixOutcome::Worked),
        finished(2),
    ];
    journal.append(&lease, second).await.unwrap();
    journal.append(&lease, vec![seen, completed()]).await.unwrap();
    let stopped = claimed(journal, &worker("v")).await.lease;
    let failed = Payload::RunFailed { reason: "r:x".into() };
    journal.append(&stopped, vec![started(1), failed]).await.unwrap();
    let queued = NewRun { priority: 3, workspace: "/other".into(), ..new_run("queued") };
    let queued = journal.create(queued).await.unwrap().id;
    let talk = NewRun { kind: RunKind::Conversation.as_str().into(), ..new_run("talk") };
    let said = |text: String| Payload::KindEvent { name: "SAID".into(), data: json!(text) };
    let talk = journal.create_attended(talk, vec![said("hello".into())]).await.unwrap();
    let long = vec![said("a long answer ".repeat(700)), completed()];
    journal.append_attended(&talk.id, 2, long).await.unwrap();
    for (title, priority) in [
        ("issue 7", LetterPriority::Medium),
        ("issue 8", LetterPriority::Critical),
        ("issue 9", LetterPriority::Low),
    ] {
        journal.bury(new_letter(title, priority)).await.unwrap();
    }
    let letters = journal.list_letters(&LetterFilter::default()).await.unwrap().items;
    journal.set_letter_status(&letters[1].id, LetterStatus::Resolved, "me", "done").await.unwrap();
    vec![lease.run, stopped.run, queued, talk.id]
}

fn new_letter(title: &str, priority: LetterPriority) -> NewLetter {
    NewLetter {
        scope: SCOPE.into(),
        source: LetterSource::Event,
        title: title.into(),
        priority,
        class: "permanent".into(),
        reason: "the actor may not write".into(),
        question: "May octocat write here?".into(),
        run: None,
        data: json!({ "event": { "action": "opened" } }),
        by: "rep github run".into(),
    }
}

/// The words of an error that says that stored content was changed.
fn damage<T: std::fmt::Debug>(read: Result<T, JournalError>) -> String {
    match read {
        Err(JournalError::Altered { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn a_changed_event_is_an_error_that_names_it(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    journal.append(&lease, vec![started(1), finished(1)]).await.unwrap();
    let id = &lease.run;
    let sound = journal.verify_run(id).await.unwrap();
    assert_eq!((sound.events, sound.steps, sound.problem), (4, 1, None));
    (place.tamper)(&place.target, "UPDATE event SET at_ms = at_ms + 1 WHERE seq = 3").await;
    let expected = format!("event 3 of run {id} does not fit its digest");
    assert_eq!(damage(journal.events(id, 0, 0).await), expected);
    assert_eq!(damage(journal.replay_run(id).await), expected);
    assert_eq!(journal.events(id, 3, 0).await.unwrap().len(), 1);
    assert_eq!(journal.events(id, u64::MAX, 0).await.unwrap(), []);
    let report = journal.verify_run(id).await.unwrap();
    let problem = report.problem.unwrap();
    assert_eq!((report.events, problem.event), (2, Some(3)));
    assert_eq!(problem.what, "event 3 does not fit its digest");
    journal.create(new_run("next")).await.unwrap();
}

pub(crate) async fn a_damaged_event_hides_no_other_event_of_the_stream(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    journal.append(&lease, vec![started(1), finished(1)]).await.unwrap();
    let other = claimed(&journal, &worker("v")).await.lease;
    let damage = "UPDATE event SET at_ms = at_ms + 1 WHERE seq IN (2, 3)";
    (place.tamper)(&place.target, damage).await;
    // The stream on PostgreSQL may be held up by transactions of other tests.
    let mut page = journal.list_all_events(Default::default(), 0).await.unwrap();
    while page.events.len() + page.damaged.len() < 6 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        page = journal.list_all_events(Default::default(), 0).await.unwrap();
    }
    let seen: Vec<_> = page.events.iter().map(|(_, event)| (&event.run, event.seq)).collect();
    assert_eq!(seen, [(&lease.run, 1), (&lease.run, 4), (&other.run, 1)]);
    let damaged: Vec<_> = page.damaged.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(damaged, [lease.run.as_str(), lease.run.as_str(), other.run.as_str()]);
    let expected = format!("event 2 of run {} does not fit its digest", lease.run);
    assert_eq!(page.damaged[0].what, expected);
    assert!(journal.list_all_events(page.next, 0).await.unwrap().is_end());
    let damaged = journal.list_damaged_runs().await.unwrap();
    assert_eq!(damaged.len(), 2, "{damaged:?}");
    let mut metrics = MetricsCollector::new();
    assert_eq!(metrics.collect_new_events(&journal).await.unwrap().len(), 2);
    assert_eq!(metrics.collect_new_events(&journal).await.unwrap(), []);
    let text = metrics.encode_prometheus();
    assert!(text.contains("rep_runs{status=\"running\"} 2\n"), "{text}");
    assert!(text.contains("rep_runs_damaged 2\n"), "{text}");
}

pub(crate) async fn an_event_that_does_not_follow_the_one_before_it_is_an_error(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let other = claimed(&journal, &worker("v")).await.lease;
    journal.append(&lease, vec![started(1), finished(1)]).await.unwrap();
    // The event is whole, but from the end of another chain.
    journal.append(&other, vec![started(1)]).await.unwrap();
    let moved =
        "UPDATE event SET seq = 9 WHERE seq = 3 AND run = (SELECT run FROM event WHERE seq = 4)";
    (place.tamper)(&place.target, moved).await;
    let read = damage(journal.events(&lease.run, 0, 0).await);
    assert_eq!(read, format!("event 3 of run {} is missing", lease.run));
    let problem = journal.verify_run(&lease.run).await.unwrap().problem.unwrap();
    assert_eq!((problem.event, problem.what.as_str()), (Some(3), "event 3 is missing"));
    let cut = "DELETE FROM event WHERE seq = 3";
    (place.tamper)(&place.target, cut).await;
    let read = damage(journal.events(&other.run, 0, 0).await);
    assert_eq!(read, format!("event 3 of run {} is missing", other.run));
    assert_eq!(damage(journal.events(&other.run, 2, 0).await), read);
    let problem = journal.verify_run(&other.run).await.unwrap().problem.unwrap();
    assert_eq!(problem.event, Some(3));
}

pub(crate) async fn a_page_of_events_continues_the_page_before_it(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    journal.append(&lease, vec![started(1), finished(1)]).await.unwrap();
    let id = &lease.run;
    assert_eq!(journal.events(id, 2, 1).await.unwrap().len(), 1);
    (place.tamper)(&place.target, "UPDATE event SET row_digest = prev WHERE seq = 2").await;
    let expected = format!("event 3 of run {id} does not follow the event before it");
    assert_eq!(damage(journal.events(id, 2, 1).await), expected);
}

pub(crate) async fn the_last_event_is_the_one_that_the_run_has_recorded(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let id = &lease.run;
    (place.tamper)(&place.target, "UPDATE run SET head = row_digest").await;
    let expected = format!("event 2 of run {id} is not the last one that the run has recorded");
    assert_eq!(damage(journal.events(id, 0, 0).await), expected);
}

pub(crate) async fn every_changed_row_is_an_error(place: Place) {
    let journal = place.open().await;
    let ids = fill(&journal).await;
    let id = &ids[0];
    let failures = FailureFilter { scope: SCOPE.into(), ..FailureFilter::default() };
    let letters = LetterFilter::default();
    let tamper = async |sql| (place.tamper)(&place.target, sql).await;
    tamper("UPDATE step SET state = replace(state, '\"ok\"', '\"failed\"')").await;
    assert!(damage(journal.steps(id).await).starts_with("step 1 of run"));
    let report = journal.verify_run(id).await.unwrap();
    assert_eq!((report.steps, report.problem.unwrap().event), (0, None));
    tamper("UPDATE run SET name = 'other' WHERE kind = 'plan'").await;
    assert!(damage(journal.run(id).await).contains("columns"));
    let page = journal.runs(&Default::default()).await.unwrap();
    assert_eq!((page.items.len(), page.damaged.len()), (1, 3));
    assert!(page.damaged.iter().all(|run| run.what.contains("columns")), "{page:?}");
    tamper("UPDATE request SET body = '{}'").await;
    assert!(damage(journal.run(id).await).contains("request"));
    tamper("UPDATE run SET state = replace(state, 'done', 'gone')").await;
    assert!(damage(journal.run(id).await).contains("state"));
    let problem = journal.verify_run(id).await.unwrap().problem.unwrap();
    assert_eq!(problem.what, format!("the state of run {id} does not fit its digest"));
    tamper("UPDATE memory SET at_ms = at_ms - 1").await;
    assert!(damage(journal.replay_memory(SCOPE).await).contains("observation 1 "));
    tamper("UPDATE fix SET state = replace(state, 'cargo', 'rm -f')").await;
    assert!(damage(journal.list_fixes(SCOPE, "aa11").await).starts_with("a fix of failure aa11"));
    tamper("UPDATE failure SET seen = seen + 1").await;
    assert!(damage(journal.known(SCOPE, "aa11").await).starts_with("failure aa11"));
    assert!(damage(journal.list_failures(&failures).await).starts_with("failure aa11"));
    tamper("UPDATE letter SET state = replace(state, 'octocat', 'mallory')").await;
    let page = journal.list_letters(&letters).await.unwrap();
    assert_eq!((page.items.len(), page.damaged.len()), (0, 3));
    assert!(damage(journal.find_letter(&page.damaged[0].id).await).starts_with("dead letter"));
}

pub(crate) async fn a_missing_step_is_an_error(place: Place) {
    let journal = place.open().await;
    let ids = fill(&journal).await;
    (place.tamper)(&place.target, "DELETE FROM step WHERE number = 2").await;
    assert!(damage(journal.steps(&ids[0]).await).contains("has 2 steps"));
    let problem = journal.verify_run(&ids[0]).await.unwrap().problem.unwrap();
    assert_eq!(problem.what, format!("step 2 of run {} is missing", ids[0]));
    assert_eq!(journal.steps(&ids[1]).await.unwrap().len(), 1);
}

pub(crate) async fn a_journal_without_digests_gets_them_when_it_is_opened(place: Place) {
    let journal = place.open().await;
    let ids = fill(&journal).await;
    let letters = journal.list_letters(&LetterFilter::default()).await.unwrap().items;
    let known = journal.known(SCOPE, "aa11").await.unwrap();
    journal.close().await;
    let journal = place.reopen_without_digests().await;
    for id in &ids {
        agrees(&journal, id).await;
        assert_eq!(journal.verify_run(id).await.unwrap().problem, None);
    }
    assert_eq!(journal.list_run_ids().await.unwrap().len(), ids.len());
    assert_eq!(journal.list_letters(&LetterFilter::default()).await.unwrap().items, letters);
    assert_eq!(journal.known(SCOPE, "aa11").await.unwrap(), known);
    assert_eq!(journal.replay_memory(SCOPE).await.unwrap(), []);
    journal.append_attended(&ids[3], 4, vec![said_again()]).await.unwrap_err();
    let again = Payload::RunResumed { by: "me".into(), limits: None };
    journal.append_attended(&ids[3], 4, vec![again, said_again()]).await.unwrap();
    agrees(&journal, &ids[3]).await;
    assert_eq!(journal.last_kind_event(&ids[3]).await.unwrap().unwrap().payload, said_again());
}

fn said_again() -> Payload {
    Payload::KindEvent { name: "SAID".into(), data: json!("again") }
}
