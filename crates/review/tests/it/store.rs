//! Reviews in a real journal, with their files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_journal::{Journal, Run, RunFolder, RunId, RunStatus, StepStatus, Target};
use repertoire_review::change::ReviewChange;
use repertoire_review::finding::Phase;
use repertoire_review::lineup::ModelTier;
use repertoire_review::pipeline::Progress;
use repertoire_review::record::{CallOutcome, ReviewCall, ReviewRecord};
use repertoire_review::run_event::{ReviewProgress, ReviewRequest, ReviewVerdict};
use repertoire_review::store::{ReviewStore, ReviewStoreError, new_review_id};
use serde_json::json;

/// A journal in a folder of its own.
struct Bench {
    _keep: tempfile::TempDir,
    root: Utf8PathBuf,
    journal: Journal,
}

impl Bench {
    async fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(keep.path()).unwrap().to_owned();
        let now_ms = AtomicU64::new(1_000);
        let clock = Arc::new(move || now_ms.fetch_add(1, Ordering::Relaxed));
        let target = Target::File(root.join("journal.sqlite"));
        let journal = Journal::open(&target, clock).await.unwrap();
        Bench { _keep: keep, root, journal }
    }

    fn store(&self, workspace: &str) -> ReviewStore {
        let workspace = Utf8Path::new(workspace);
        ReviewStore::new(self.journal.clone(), &self.root.join("runs"), workspace)
    }

    fn folder(&self, id: &str) -> RunFolder {
        RunFolder::new(&self.root.join("runs"), &RunId::known(id))
    }

    async fn run(&self, id: &str) -> Run {
        self.journal.run(&RunId::known(id)).await.unwrap().unwrap()
    }

    async fn review(&self, store: &ReviewStore) -> (ReviewRecord, ReviewChange) {
        let review = record(&new_review_id());
        let change = ReviewChange { files: Vec::new(), skipped: Vec::new() };
        let recorder = store.start_review(&review.id, &request()).await.unwrap();
        recorder.note_progress(Progress::Phase(Phase::Quick, 1));
        recorder.note_progress(Progress::Asked(Phase::Quick, "security-agent"));
        let call = call();
        recorder.note_progress(Progress::Answered(&call));
        recorder.note_progress(Progress::Checked(&call));
        recorder.finish_review(&review, &change).await.unwrap();
        (review, change)
    }
}

fn record(id: &str) -> ReviewRecord {
    serde_json::from_value(json!({
        "version": 1, "id": id, "subject": "code", "depth": "quick",
        "scope": { "words": "uncommitted changes" }, "started_ms": 5, "duration_ms": 7,
        "files": [], "categories": [], "findings": [], "calls": [], "planned": [],
    }))
    .unwrap()
}

fn request() -> ReviewRequest {
    serde_json::from_value(json!({
        "scope": { "words": "uncommitted changes" }, "subject": "code", "depth": "quick", "files": 1,
        "skills": ["sql"], "skip_agents": [], "min_severity": "Minor", "incremental": false,
    }))
    .unwrap()
}

fn call() -> ReviewCall {
    ReviewCall {
        phase: Phase::Quick,
        agent: "security-agent".into(),
        tier: ModelTier::Fast,
        model: None,
        outcome: CallOutcome::Completed,
        reason: None,
        answered: 3,
        admitted: 1,
        duration_ms: 40,
        input_tokens: 100,
        output_tokens: 20,
        cost_usd: Some(0.5),
    }
}

#[tokio::test]
async fn a_review_is_a_run_with_its_events_and_files() {
    let bench = Bench::new().await;
    let store = bench.store("/code/shop");
    let (review, change) = bench.review(&store).await;
    assert_eq!(store.load_review("last").await.unwrap(), review);
    assert_eq!(store.load_review(&review.id[..8]).await.unwrap(), review, "by its beginning");
    assert_eq!(store.load_change(&review.id[9..]).await.unwrap(), change, "and by its end");

    let run = bench.run(&review.id).await;
    assert_eq!(
        (run.status, run.kind.as_str(), run.attended),
        (RunStatus::Completed, "review", true)
    );
    assert_eq!((run.name.as_str(), run.reason.as_deref()), ("uncommitted changes", Some("clean")));
    assert_eq!((run.spent.cost_micro_usd, run.spent.total_tokens()), (500_000, 120));
    assert_eq!(run.request["skills"], json!(["sql"]));
    let steps = bench.journal.steps(&run.id).await.unwrap();
    let agents: Vec<&str> =
        steps.iter().map(|step| step.task.as_ref().unwrap().label.as_str()).collect();
    assert_eq!((agents, steps[0].status), (vec!["security-agent"], StepStatus::Finished));
    let events = bench.journal.events(&run.id, 0, 0).await.unwrap();
    let progress = ReviewProgress::replay(&events);
    assert_eq!(
        (progress.asked, progress.ended, progress.answered, progress.admitted),
        (1, 1, 3, 1)
    );
    assert_eq!(progress.result.unwrap().verdict, ReviewVerdict::Clean);
    assert_eq!(bench.journal.replay_run(&run.id).await.unwrap().differences, []);
}

#[tokio::test]
async fn reviews_of_a_workspace_are_listed_the_latest_first_and_no_others() {
    let bench = Bench::new().await;
    let (store, other) = (bench.store("/code/shop"), bench.store("/code/docs"));
    assert!(matches!(store.load_review("last").await, Err(ReviewStoreError::None { .. })));
    let (first, _) = bench.review(&store).await;
    let (second, _) = bench.review(&store).await;
    bench.review(&other).await;
    let ids = store.review_ids().await.unwrap();
    assert_eq!(ids, [second.id.as_str(), first.id.as_str()]);
    assert_eq!(store.load_review("last").await.unwrap().id, second.id);
    let shared = &first.id[..4];
    assert!(matches!(store.load_review(shared).await, Err(ReviewStoreError::Ambiguous { .. })));
    assert!(matches!(other.load_review(&first.id).await, Err(ReviewStoreError::NotFound { .. })));
}

#[tokio::test]
async fn a_file_that_was_changed_later_is_not_believed() {
    let bench = Bench::new().await;
    let store = bench.store("/code/shop");
    let (review, _) = bench.review(&store).await;
    let path = bench.folder(&review.id).path().join("review.json");
    let text = repertoire_text::fs::read_text(&path, 1 << 20).unwrap();
    let forged = text.replace("uncommitted changes", "everything, twice");
    repertoire_text::fs::write_atomic(&path, forged.as_bytes()).unwrap();
    assert!(matches!(store.load_review("last").await, Err(ReviewStoreError::Changed { .. })));
    assert!(store.load_change("last").await.is_ok(), "the other file is as it was");
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(store.load_review("last").await, Err(ReviewStoreError::Unreadable { .. })));
}

#[tokio::test]
async fn a_review_that_does_not_finish_has_no_record() {
    let bench = Bench::new().await;
    let store = bench.store("/code/shop");
    let interrupted = new_review_id();
    let recorder = store.start_review(&interrupted, &request()).await.unwrap();
    assert!(bench.folder(&interrupted).is_locked());
    drop(recorder);
    assert!(!bench.folder(&interrupted).is_locked());
    assert_eq!(bench.run(&interrupted).await.status, RunStatus::Running);

    let failed = new_review_id();
    let recorder = store.start_review(&failed, &request()).await.unwrap();
    recorder.fail_review("the terminal is gone".to_owned()).await.unwrap();
    let run = bench.run(&failed).await;
    assert_eq!(
        (run.status, run.reason.as_deref()),
        (RunStatus::Failed, Some("the terminal is gone"))
    );
    assert_eq!(store.review_ids().await.unwrap(), Vec::<String>::new());
}
