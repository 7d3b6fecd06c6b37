//! What is remembered of failures and fixes.

use std::collections::BTreeMap;

use repertoire_journal::memory::{FailureKnowledge, FixOrigin, MemoryObservation};
use repertoire_journal::{
    Event, FailureFilter, FailureFix, FixOutcome, FixRemedy, Journal, JournalError, KnownFix,
    MemoryLesson, Payload, RunId,
};

use super::{
    Place, agrees, claim, claimed, completed, doomed, finished, forget, new_run, started, worker,
};

const SCOPE: &str = "github.com/somebody/something";

fn seen(signature: &str) -> Payload {
    Payload::FailureSeen {
        scope: SCOPE.into(),
        signature: signature.into(),
        category: "build".into(),
        code: Some("E0433".into()),
        tool: "cargo".into(),
        example: "use of undeclared crate or module `serde`".into(),
    }
}

fn command(words: &[&str]) -> FailureFix {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    FailureFix {
        remedy: FixRemedy::Command(words),
        preconditions: vec!["exists Cargo.lock".into()],
        origin: FixOrigin::Learnt,
    }
}

fn tried(signature: &str, fix: &FailureFix, outcome: FixOutcome) -> Payload {
    Payload::FixTried {
        scope: SCOPE.into(),
        signature: signature.into(),
        fix: fix.clone(),
        outcome,
        reason: "the checks said so".into(),
    }
}

async fn only_fix(journal: &Journal, signature: &str) -> KnownFix {
    let mut fixes = journal.list_fixes(SCOPE, signature).await.unwrap();
    assert_eq!(fixes.len(), 1);
    fixes.remove(0)
}

async fn remembers(journal: &Journal) {
    assert_eq!(journal.replay_memory(SCOPE).await.unwrap(), []);
}

pub(crate) async fn what_runs_see_and_try_is_remembered_in_the_same_breath(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let fix = command(&["cargo", "fetch"]);
    assert_eq!(journal.find_failure(SCOPE, "aa11").await.unwrap(), None);
    let first = vec![started(1), seen("aa11"), finished(1)];
    journal.append(&lease, first).await.unwrap();
    let second = vec![seen("aa11"), tried("aa11", &fix, FixOutcome::Worked), completed()];
    journal.append(&lease, second).await.unwrap();
    let failure = journal.find_failure(SCOPE, "aa11").await.unwrap().unwrap();
    assert_eq!((failure.seen, failure.tool.as_str()), (2, "cargo"));
    assert!(failure.first_ms < failure.last_ms);
    let known = only_fix(&journal, "aa11").await;
    assert_eq!((known.tried, known.worked, known.failed), (1, 1, 0));
    assert_eq!((&known.fix, &known.evidence), (&fix, &vec![lease.run.clone()]));
    agrees(&journal, &lease.run).await;
    remembers(&journal).await;
    let other = place.open().await;
    assert_eq!(other.find_failure(SCOPE, "aa11").await.unwrap().unwrap(), failure);
}

pub(crate) async fn a_fix_that_fails_loses_its_confidence(place: Place) {
    let journal = place.open().await;
    let fix = command(&["cargo", "update"]);
    let mut confidences = Vec::new();
    use FixOutcome::{Failed, Unknown, Worked};
    for outcome in [Worked, Failed, Unknown, Failed, Failed, Failed] {
        let lease = claimed(&journal, &worker("w")).await.lease;
        let all = vec![seen("aa11"), tried("aa11", &fix, outcome), completed()];
        journal.append(&lease, all).await.unwrap();
        confidences.push((only_fix(&journal, "aa11").await.confidence * 100.0).round() as u32);
    }
    assert_eq!(confidences, [65, 46, 46, 32, 22, 16]);
    let known = only_fix(&journal, "aa11").await;
    assert_eq!((known.tried, known.worked, known.failed), (5, 1, 4));
    assert_eq!(known.evidence.len(), 5);
    remembers(&journal).await;
}

pub(crate) async fn a_worker_that_lost_its_run_teaches_nothing(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &doomed("w")).await.lease;
    journal.requeue_expired().await.unwrap();
    let late = journal.append(&lease, vec![seen("aa11")]).await;
    assert!(matches!(late, Err(JournalError::Fenced { .. })), "{late:?}");
    let next = claim(&journal, &worker("v")).await.lease;
    let wrong = journal.append(&next, vec![seen("aa11"), finished(7)]).await;
    assert!(matches!(wrong, Err(JournalError::Fold(_))), "{wrong:?}");
    assert_eq!(journal.find_failure(SCOPE, "aa11").await.unwrap(), None);
}

/// The memory as the events of all runs say it, without looking at what is stored beside them.
async fn folded(journal: &Journal) -> BTreeMap<String, FailureKnowledge> {
    let runs = journal.runs(&Default::default()).await.unwrap().items;
    let mut events: Vec<Event> = Vec::new();
    for run in runs {
        events.extend(journal.events(&run.id, 0, 0).await.unwrap());
    }
    events.sort_by_key(|event| event.at_ms);
    let mut all: BTreeMap<String, FailureKnowledge> = BTreeMap::new();
    for Event { payload, run, at_ms, .. } in events {
        let (signature, observation) = match payload {
            Payload::FailureSeen { signature, category, code, tool, example, .. } => {
                (signature, MemoryObservation::Seen { category, code, tool, example })
            }
            Payload::FixTried { signature, fix, outcome, reason, .. } => {
                (signature, MemoryObservation::Tried { fix, outcome, reason, run: Some(run) })
            }
            _ => continue,
        };
        let known = all.entry(signature.clone()).or_default();
        known.apply(SCOPE, &signature, &observation, at_ms);
    }
    all
}

pub(crate) async fn what_is_stored_is_the_fold_of_all_events(place: Place) {
    let journal = place.open().await;
    let fixes = [command(&["a"]), command(&["b"]), command(&["c"])];
    for round in 0..6_usize {
        let lease = claimed(&journal, &worker("w")).await.lease;
        let signature = ["aa11", "bb22"][round % 2];
        let outcome = [FixOutcome::Worked, FixOutcome::Failed, FixOutcome::Unknown][round % 3];
        let fix = &fixes[(round * 2) % 3];
        let all = vec![seen("aa11"), seen(signature), tried(signature, fix, outcome)];
        journal.append(&lease, all).await.unwrap();
        journal.append(&lease, vec![completed()]).await.unwrap();
    }
    let folded = folded(&journal).await;
    assert_eq!(folded.len(), 2);
    for (signature, known) in folded {
        assert_eq!(journal.known(SCOPE, &signature).await.unwrap(), known);
    }
    remembers(&journal).await;
    let tampered = "UPDATE failure SET state = replace(state, '\"seen\":', '\"seen\":1') WHERE signature = 'aa11'";
    let fix = journal.list_fixes(SCOPE, "bb22").await.unwrap().remove(0).id;
    journal.close().await;
    (place.tamper)(&place.target, tampered).await;
    let journal = place.reopen_without_digests().await;
    let differences = async || -> Vec<String> {
        let found = journal.replay_memory(SCOPE).await.unwrap();
        found.into_iter().map(|one| one.what).collect()
    };
    assert_eq!(differences().await, ["failure aa11.seen"]);
    // Missing rows are a difference, too: first a fix, then a whole failure.
    (place.tamper)(&place.target, "DELETE FROM fix WHERE signature = 'bb22'").await;
    assert!(differences().await.contains(&format!("fixes of bb22.{fix}")));
    (place.tamper)(&place.target, "DELETE FROM failure WHERE signature = 'bb22'").await;
    assert!(differences().await.contains(&"failure bb22".to_owned()));
}

pub(crate) async fn what_a_forgotten_run_has_learnt_stays(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let fix = command(&["cargo", "fetch"]);
    let all = vec![seen("aa11"), tried("aa11", &fix, FixOutcome::Worked), completed()];
    journal.append(&lease, all).await.unwrap();
    let before = journal.known(SCOPE, "aa11").await.unwrap();
    forget(&journal, &lease.run).await.unwrap();
    assert_eq!(journal.run(&lease.run).await.unwrap(), None);
    assert_eq!(journal.known(SCOPE, "aa11").await.unwrap(), before);
    remembers(&journal).await;
}

pub(crate) async fn nothing_learnt_in_one_repository_is_known_in_another(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let fix = command(&["cargo", "fetch"]);
    journal.append(&lease, vec![tried("aa11", &fix, FixOutcome::Worked)]).await.unwrap();
    assert_eq!(journal.list_fixes("github.com/mallory/something", "aa11").await.unwrap(), []);
    assert_eq!(journal.list_scopes().await.unwrap(), [(SCOPE.to_owned(), 1)]);
    let elsewhere = FailureFilter { scope: "elsewhere".into(), ..FailureFilter::default() };
    assert_eq!(journal.list_failures(&elsewhere).await.unwrap().items, []);
}

fn lesson(signature: &str, fix: FailureFix) -> MemoryLesson {
    let mut known = FailureKnowledge::default();
    let observation = MemoryObservation::Tried {
        fix: fix.clone(),
        outcome: FixOutcome::Unknown,
        reason: String::new(),
        run: None,
    };
    known.apply("elsewhere", signature, &observation, 5);
    MemoryLesson { failure: known.failure.unwrap(), fixes: vec![KnownFix::new(fix, 5)] }
}

pub(crate) async fn a_lesson_twice_changes_nothing_and_what_was_seen_here_stands(place: Place) {
    let journal = place.open().await;
    let fix = FailureFix { origin: FixOrigin::Taught, ..command(&["cargo", "fetch"]) };
    for _ in 0..2 {
        journal.store_lessons(SCOPE, vec![lesson("aa11", fix.clone())]).await.unwrap();
    }
    let known = only_fix(&journal, "aa11").await;
    assert_eq!((known.tried, known.confidence, known.added_ms), (0, 0.5, 5));
    assert_eq!(journal.find_failure(SCOPE, "aa11").await.unwrap().unwrap().seen, 0);
    let lease = claimed(&journal, &worker("w")).await.lease;
    journal.append(&lease, vec![tried("aa11", &fix, FixOutcome::Failed)]).await.unwrap();
    journal.store_lessons(SCOPE, vec![lesson("aa11", fix)]).await.unwrap();
    assert_eq!(only_fix(&journal, "aa11").await.failed, 1);
    remembers(&journal).await;
}

pub(crate) async fn secrets_are_not_remembered(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let secret = "ghp_abcdefghijklmnop1234";
    let leak = Payload::FailureSeen {
        scope: SCOPE.into(),
        signature: "aa11".into(),
        category: "git".into(),
        code: None,
        tool: "generic".into(),
        example: format!("could not push with {secret} {}", "x".repeat(2_000)),
    };
    let mut fix = command(&["git", "push", secret]);
    fix.preconditions = vec![format!("exists {secret}")];
    let all = vec![leak, tried("aa11", &fix, FixOutcome::Worked)];
    journal.append(&lease, all).await.unwrap();
    journal.store_lessons(SCOPE, vec![lesson("bb22", fix)]).await.unwrap();
    for signature in ["aa11", "bb22"] {
        let known = journal.known(SCOPE, signature).await.unwrap();
        assert!(!format!("{known:?}").contains(secret), "{known:?}");
        assert!(known.failure.unwrap().example.chars().count() <= 500);
        let fix = known.fixes.into_values().next().unwrap();
        assert!(matches!(fix.fix.remedy, FixRemedy::Advice(_)));
    }
    let events = journal.events(&lease.run, 0, 0).await.unwrap();
    assert!(!format!("{events:?}").contains(secret));
}

pub(crate) async fn what_is_no_failure_is_refused(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let odd = journal.append(&lease, vec![seen("a/../b")]).await;
    assert!(matches!(odd, Err(JournalError::Refused { .. })), "{odd:?}");
    let huge = command(&["x", &"y".repeat(40_000)]);
    let large = journal.append(&lease, vec![tried("aa11", &huge, FixOutcome::Worked)]).await;
    assert!(matches!(large, Err(JournalError::TooLarge { .. })), "{large:?}");
    let odd = journal.store_lessons(SCOPE, vec![lesson("no such", command(&["a"]))]).await;
    assert!(matches!(odd, Err(JournalError::NotRemembered { .. })), "{odd:?}");
    assert_eq!(journal.list_scopes().await.unwrap(), []);
    assert_eq!(journal.find_failure("a\0b", "aa11").await.unwrap(), None);
}

pub(crate) async fn a_failure_is_unlearnt_with_all_that_belongs_to_it(place: Place) {
    let journal = place.open().await;
    let lease = claimed(&journal, &worker("w")).await.lease;
    let fix = command(&["cargo", "fetch"]);
    for signature in ["aa11", "bb22", "cc33"] {
        let all = vec![seen(signature), tried(signature, &fix, FixOutcome::Worked)];
        journal.append(&lease, all).await.unwrap();
    }
    assert_eq!(journal.delete_failures(SCOPE, Some("aa11")).await.unwrap(), 1);
    assert_eq!(journal.delete_failures(SCOPE, Some("aa11")).await.unwrap(), 0);
    assert_eq!(journal.known(SCOPE, "aa11").await.unwrap(), FailureKnowledge::default());
    let filter = FailureFilter { scope: SCOPE.into(), limit: 1, ..FailureFilter::default() };
    let page = journal.list_failures(&filter).await.unwrap();
    assert_eq!((page.items[0].signature.as_str(), page.next), ("bb22", Some(1)));
    let page = journal.list_failures(&FailureFilter { after: 1, ..filter.clone() }).await.unwrap();
    assert_eq!((page.items[0].signature.as_str(), page.next), ("cc33", None));
    let begins = FailureFilter { signature: Some("cc".into()), ..filter };
    assert_eq!(journal.list_failures(&begins).await.unwrap().items[0].signature, "cc33");
    remembers(&journal).await;
    assert_eq!(journal.delete_failures(SCOPE, None).await.unwrap(), 2);
    assert_eq!(journal.list_scopes().await.unwrap(), []);
}

pub(crate) async fn many_who_learn_at_once_lose_nothing(place: Place) {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..4 {
        let journal = place.open().await;
        tasks.spawn(async move {
            let lease = claimed(&journal, &worker(&format!("w{number}"))).await.lease;
            let fix = command(&["cargo", "fetch"]);
            for _ in 0..5 {
                let all = vec![seen("aa11"), tried("aa11", &fix, FixOutcome::Worked)];
                journal.append(&lease, all).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let journal = place.open().await;
    assert_eq!(journal.find_failure(SCOPE, "aa11").await.unwrap().unwrap().seen, 20);
    let known = only_fix(&journal, "aa11").await;
    assert_eq!((known.worked, known.evidence.len()), (20, 4));
    remembers(&journal).await;
}

pub(crate) async fn a_journal_of_the_first_version_is_brought_up_to_date(place: Place) {
    let journal = place.open().await;
    let run: RunId = journal.create(new_run("old")).await.unwrap().id;
    journal.close().await;
    (place.tamper)(&place.target, super::WITHOUT_DIGESTS).await;
    let first = "DROP TABLE failure; DROP TABLE fix; DROP TABLE memory; DROP TABLE letter; \
        ALTER TABLE run DROP COLUMN lease_beat; ALTER TABLE run DROP COLUMN lease_length_ms; \
        ALTER TABLE run DROP COLUMN lease_boot; ALTER TABLE run DROP COLUMN lease_boot_until_ms; \
        ALTER TABLE run DROP COLUMN lease_shown_until_ms; \
        DELETE FROM journal_version WHERE version >= 2";
    (place.tamper)(&place.target, first).await;
    let journal = place.open().await;
    agrees(&journal, &run).await;
    let lease = claim(&journal, &worker("w")).await.lease;
    assert_eq!(lease.run, run);
    journal.append(&lease, vec![seen("aa11")]).await.unwrap();
    assert_eq!(journal.list_scopes().await.unwrap(), [(SCOPE.to_owned(), 1)]);
}
