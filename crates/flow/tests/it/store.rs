//! Runs in a journal: every accepted input is stored exactly once, even if other processes change the run.

use std::sync::Arc;

use camino::Utf8PathBuf;
use repertoire_flow::driver::{
    NewWorkflowRun, StoredWorkflowRun, WorkflowRunError, WorkflowRunListEntry, WorkflowRunRequest,
    WorkflowRunStore,
};
use repertoire_flow::engine::{EngineAction, EngineInput, PersonChoice};
use repertoire_flow::items::parse_items;
use repertoire_journal::{Journal, NewRun, RunId, RunStatus, Target};

use crate::support::checked;

const REVIEW: &str = "\
steps:
  - { id: work, title: Work, actions: [Work.], next: look }
  - { id: look, title: Look, actions: [Look.], next: gate }
  - id: gate
    title: Gate
    decide:
      gate: { name: Review, reviews: [look], banner: Look., stop: Stop., reverify: fresh }
    next: { ok: end, fail: work }
";

struct Bench {
    _keep: tempfile::TempDir,
    journal: Journal,
    store: WorkflowRunStore,
}

impl Bench {
    async fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(keep.path().to_owned()).unwrap();
        let target = Target::File(dir.join("journal.sqlite"));
        let journal = Journal::open(&target, Arc::new(|| 1_000)).await.unwrap();
        let store = WorkflowRunStore::new(journal.clone(), dir.join("runs"));
        Bench { _keep: keep, journal, store }
    }

    async fn start(&self, id: &str) {
        let begin = NewWorkflowRun {
            id: id.to_owned(),
            folder: "/project".into(),
            request: WorkflowRunRequest { trusted: true, ..WorkflowRunRequest::default() },
        };
        self.store.start(&checked(REVIEW), &begin).await.unwrap();
    }

    async fn event_count(&self, id: &str) -> u64 {
        self.journal.run(&RunId::known(id)).await.unwrap().unwrap().seq
    }
}

fn record(item: &str) -> EngineInput {
    let text = format!(r#"{{"id":"{item}","check":"it holds","severity":"MUST"}}"#);
    let items = parse_items(&text).unwrap();
    EngineInput::about_now(EngineAction::Record { gate: None, items, checks: Vec::new() })
}

#[tokio::test]
async fn an_input_for_a_run_that_has_changed_is_applied_to_the_run_as_it_is() {
    let bench = Bench::new().await;
    bench.start("run").await;
    bench.store.apply_input("run", &EngineInput::leave_step()).await.unwrap();
    let stale = bench.store.open_run("run").await.unwrap();
    bench.store.apply_input("run", &record("A")).await.unwrap();
    let run = bench.store.continue_run(stale, &record("B")).await.unwrap();
    let ids = |run: &StoredWorkflowRun| -> Vec<String> {
        run.state.reviews["gate"].items.iter().map(|item| item.id.clone()).collect()
    };
    assert_eq!(ids(&run), ["A", "B"]);
    let read = bench.store.open_run("run").await.unwrap();
    assert_eq!((read.state, read.head), (run.state, run.head));
    assert_eq!(bench.event_count("run").await, 5);
    // Inputs that change nothing or are refused append nothing.
    bench.store.apply_input("run", &record("B")).await.unwrap();
    let refused = bench.store.apply_input("run", &EngineInput::leave_with("none")).await;
    assert!(matches!(refused, Err(WorkflowRunError::Refused(_))));
    assert_eq!(bench.event_count("run").await, 5);
}

#[tokio::test]
async fn runs_of_other_kinds_are_neither_opened_nor_listed_nor_removed() {
    let bench = Bench::new().await;
    bench.start("run-1").await;
    let plan = NewRun {
        id: RunId::known("run-2"),
        kind: "plan".to_owned(),
        name: "run".to_owned(),
        workspace: "/project".to_owned(),
        labels: Default::default(),
        priority: 0,
        limits: Default::default(),
        request: serde_json::json!({}),
    };
    bench.journal.create(plan).await.unwrap();
    assert_eq!(bench.store.resolve_id("run").await.unwrap(), "run-1");
    let other = bench.store.open_any("run-2").await;
    assert!(matches!(other, Err(WorkflowRunError::NotFound { wanted }) if wanted == "run-2"));
    assert!(bench.store.remove_run("run-2").await.is_err());
    let listed = bench.store.list_runs().await.unwrap();
    let [WorkflowRunListEntry::Run(row)] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!((row.run.as_str(), row.state, row.step.as_str()), ("run-1", "active", "work"));
    assert_eq!((row.workflow.as_str(), row.folder.as_str(), row.turn), ("test", "/project", 1));
}

#[tokio::test]
async fn an_id_is_given_once_and_a_run_that_is_removed_is_gone() {
    let bench = Bench::new().await;
    bench.start("run").await;
    let begin = NewWorkflowRun { id: "run".to_owned(), ..NewWorkflowRun::default() };
    let again = bench.store.start(&checked(REVIEW), &begin).await;
    assert!(matches!(again, Err(WorkflowRunError::Exists { id }) if id == "run"));
    let stale = bench.store.open_run("run").await.unwrap();
    assert_eq!(bench.store.remove_run("r").await.unwrap(), "run");
    let late = bench.store.continue_run(stale, &EngineInput::leave_step()).await;
    assert!(matches!(late, Err(WorkflowRunError::NotFound { .. })), "{late:?}");
    assert!(bench.store.list_runs().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_run_that_is_over_is_complete_in_the_journal() {
    let bench = Bench::new().await;
    bench.start("run").await;
    for input in [
        EngineInput::leave_step(),
        record("A"),
        EngineInput::leave_step(),
        EngineInput::about_now(EngineAction::Record {
            gate: None,
            items: parse_items("A=PASS").unwrap(),
            checks: Vec::new(),
        }),
        EngineInput::leave_step(),
    ] {
        bench.store.apply_input("run", &input).await.unwrap();
    }
    let run = bench.journal.run(&RunId::known("run")).await.unwrap().unwrap();
    assert_eq!(run.status, RunStatus::Completed);
    let late = bench.store.apply_input("run", &EngineInput::leave_step()).await;
    assert!(matches!(late, Err(WorkflowRunError::Refused(_))), "{late:?}");
}

#[tokio::test]
async fn an_input_without_a_turn_never_lands_on_a_later_step() {
    let bench = Bench::new().await;
    bench.start("run").await;
    let seen = bench.store.open_run("run").await.unwrap();
    let first = bench.store.apply_input("run", &EngineInput::leave_step()).await.unwrap();
    assert_eq!(first.state.step.as_str(), "look");
    let failed = EngineAction::Error { message: "no luck".to_owned() };
    let answers = [("q".to_owned(), "yes".to_owned())].into();
    let choice = PersonChoice::Continue;
    for action in [
        failed,
        EngineAction::Answer { answers },
        EngineAction::Choose { choice, note: String::new() },
    ] {
        let late = bench.store.continue_run(seen.clone(), &EngineInput::about_now(action)).await;
        assert!(matches!(late, Err(WorkflowRunError::Refused(_))), "{late:?}");
    }
    // The same report by a second agent counts once.
    let same = bench.store.continue_run(seen, &EngineInput::leave_step()).await.unwrap();
    assert_eq!((same.state.step.as_str(), same.state.turn), ("look", 2));
    let read = bench.store.open_run("run").await.unwrap();
    assert_eq!((read.state.step.as_str(), bench.event_count("run").await), ("look", 3));
}
