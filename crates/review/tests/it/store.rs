//! Reviews in a real journal, with their files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_journal::{
    Journal, JournalError, NewRun, Payload, Run, RunFolder, RunId, RunStatus, StepStatus, Target,
};
use repertoire_review::change::ReviewChange;
use repertoire_review::finding::Phase;
use repertoire_review::lineup::ModelTier;
use repertoire_review::pipeline::Progress;
use repertoire_review::record::{CallOutcome, ReviewCall, ReviewRecord};
use repertoire_review::run_event::{ReviewEvent, ReviewProgress, ReviewRequest, ReviewVerdict};
use repertoire_review::store::{ReviewStore, ReviewStoreError, new_review_id};
use serde_json::json;
use sqlx::Connection as _;

/// A journal in a folder of its own.
struct Bench {
    _keep: tempfile::TempDir,
    root: Utf8PathBuf,
    journal: Journal,
    /// The journal reads the clock for every event that it tries to store.
    now_ms: Arc<AtomicU64>,
}

impl Bench {
    async fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(keep.path()).unwrap().to_owned();
        let now_ms = Arc::new(AtomicU64::new(1_000));
        let counter = now_ms.clone();
        let clock = Arc::new(move || counter.fetch_add(1, Ordering::Relaxed));
        let target = Target::File(root.join("journal.sqlite"));
        let journal = Journal::open(&target, clock).await.unwrap();
        Bench { _keep: keep, root, journal, now_ms }
    }

    /// Changes the database behind the journal's back.
    async fn alter(&self, sql: &'static str) {
        let options = sqlx::sqlite::SqliteConnectOptions::new();
        let options = options.filename(self.root.join("journal.sqlite"));
        let mut connection = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Makes the journal refuse events, as on a full disk.
    async fn fill_disk(&self) {
        let full =
            "CREATE TRIGGER full BEFORE INSERT ON event BEGIN SELECT RAISE(ABORT, 'no room'); END";
        self.alter(full).await;
    }

    async fn free_disk(&self) {
        self.alter("DROP TRIGGER full").await;
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

#[tokio::test]
async fn a_review_keeps_its_result_although_an_event_could_not_be_stored_at_first() {
    let bench = Bench::new().await;
    let store = bench.store("/code/shop");
    let review = record(&new_review_id());
    let recorder = store.start_review(&review.id, &request()).await.unwrap();
    bench.fill_disk().await;
    let before = bench.now_ms.load(Ordering::Relaxed);
    recorder.note_progress(Progress::Asked(Phase::Quick, "security-agent"));
    while bench.now_ms.load(Ordering::Relaxed) == before {
        tokio::task::yield_now().await;
    }
    bench.free_disk().await;
    assert_eq!(bench.run(&review.id).await.seq, 1, "the attempt has failed");
    recorder.note_progress(Progress::Answered(&call()));
    let change = ReviewChange { files: Vec::new(), skipped: Vec::new() };
    recorder.finish_review(&review, &change).await.unwrap();
    assert_eq!(store.load_review("last").await.unwrap(), review);
    let events = bench.journal.events(&RunId::known(&review.id), 0, 0).await.unwrap();
    let progress = ReviewProgress::replay(&events);
    assert_eq!((progress.asked, progress.ended), (1, 1), "nothing is lost");
}

#[tokio::test]
async fn a_result_that_cannot_be_stored_at_first_is_tried_again() {
    let bench = Bench::new().await;
    let store = bench.store("/code/shop");
    let review = record(&new_review_id());
    let recorder = store.start_review(&review.id, &request()).await.unwrap();
    bench.fill_disk().await;
    let before = bench.now_ms.load(Ordering::Relaxed);
    let change = ReviewChange { files: Vec::new(), skipped: Vec::new() };
    let later = async {
        while bench.now_ms.load(Ordering::Relaxed) == before {
            tokio::task::yield_now().await;
        }
        bench.free_disk().await;
    };
    let (finished, ()) = tokio::join!(recorder.finish_review(&review, &change), later);
    finished.unwrap();
    assert_eq!(store.load_review("last").await.unwrap(), review);
}

#[tokio::test]
async fn events_whose_answer_was_lost_are_not_stored_twice() {
    let bench = Bench::new().await;
    let store = bench.store("/code/shop");
    let review = record(&new_review_id());
    let recorder = store.start_review(&review.id, &request()).await.unwrap();
    let agent = "security-agent".to_owned();
    let asked = ReviewEvent::AgentAsked { phase: Phase::Quick, agent: agent.clone() }.to_payload();
    let id = RunId::known(&review.id);
    bench.journal.append_attended(&id, 1, vec![asked]).await.unwrap();
    recorder.note_progress(Progress::Asked(Phase::Quick, &agent));
    let change = ReviewChange { files: Vec::new(), skipped: Vec::new() };
    recorder.finish_review(&review, &change).await.unwrap();
    let events = bench.journal.events(&id, 0, 0).await.unwrap();
    assert_eq!(ReviewProgress::replay(&events).asked, 1);
    assert_eq!(store.load_review("last").await.unwrap(), review);
}

#[tokio::test]
async fn a_review_whose_files_cannot_be_written_has_failed() {
    let bench = Bench::new().await;
    let store = bench.store("/code/shop");
    let review = record(&new_review_id());
    let recorder = store.start_review(&review.id, &request()).await.unwrap();
    std::fs::create_dir(bench.folder(&review.id).path().join("review.json")).unwrap();
    let change = ReviewChange { files: Vec::new(), skipped: Vec::new() };
    let finished = recorder.finish_review(&review, &change).await;
    assert!(matches!(finished, Err(ReviewStoreError::Write { .. })), "{finished:?}");
    let run = bench.run(&review.id).await;
    assert_eq!(run.status, RunStatus::Failed);
    assert!(run.reason.unwrap().contains("review.json cannot be written"));
}

#[tokio::test]
async fn an_id_that_is_taken_costs_its_review_nothing() {
    let bench = Bench::new().await;
    let store = bench.store("/code/shop");
    let (review, _) = bench.review(&store).await;
    let again = store.start_review(&review.id, &request()).await;
    assert!(matches!(again, Err(ReviewStoreError::Journal(JournalError::Exists { .. }))));
    assert_eq!(store.load_review(&review.id).await.unwrap(), review);
    bench.fill_disk().await;
    let other = new_review_id();
    assert!(store.start_review(&other, &request()).await.is_err());
    assert!(!bench.folder(&other).path().exists(), "a run that does not exist has no folder");
}

#[tokio::test]
async fn a_review_is_found_behind_more_than_a_thousand_later_ones() {
    let bench = Bench::new().await;
    let store = bench.store("/code/shop");
    let (first, _) = bench.review(&store).await;
    for number in 0..1_001 {
        let new = NewRun {
            id: RunId::known(format!("later-{number:04}")),
            kind: "review".to_owned(),
            name: "uncommitted changes".to_owned(),
            workspace: "/code/shop".to_owned(),
            labels: Default::default(),
            priority: 0,
            limits: Default::default(),
            request: json!(request()),
        };
        let completed = Payload::RunCompleted { summary: "clean".to_owned(), head: None };
        bench.journal.create_attended(new, vec![completed]).await.unwrap();
    }
    assert_eq!(store.load_review(&first.id).await.unwrap(), first);
    assert_eq!(store.load_review(&first.id[..3]).await.unwrap(), first, "by a short beginning");
    let named = store.load_review("uncommitted changes").await;
    assert!(matches!(named, Err(ReviewStoreError::NotFound { .. })), "names are no ids");
}
