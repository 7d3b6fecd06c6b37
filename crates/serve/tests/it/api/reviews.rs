//! Reviews and the changes that they are about.

use repertoire_review::change::{
    DiffHunk, FilePromptTier, FileStatus, HunkLine, LineKind, ReviewChange, ReviewedFile,
};
use repertoire_review::record::ReviewRecord;
use repertoire_review::run_event::ReviewRequest;
use serde_json::json;

use crate::serve_state::{Field, Served, each};

/// A daemon with one review of one file.
async fn served() -> Served {
    let served = Field::with_skills().serve().await;
    store_review(&served, "20260101-000000-abcd").await;
    served
}

async fn store_review(served: &Served, id: &str) {
    let review: ReviewRecord = serde_json::from_value(json!({
        "version": 1, "id": id, "subject": "code", "depth": "patterns",
        "scope": { "words": "uncommitted changes" }, "started_ms": 5, "duration_ms": 7,
        "files": [{ "path": "a.rs", "status": "modified", "added": 1, "removed": 1, "digest": "d" }],
        "categories": [], "findings": [], "calls": [], "planned": [],
    }))
    .unwrap();
    let line = |kind, old, new, text: &str| HunkLine { kind, old, new, text: text.into() };
    let hunk = DiffHunk {
        old_start: 1,
        new_start: 1,
        section: String::new(),
        lines: vec![
            line(LineKind::Context, Some(1), Some(1), "fn a() {"),
            line(LineKind::Removed, Some(2), None, "    b()"),
            line(LineKind::Added, None, Some(2), "    c()"),
        ],
    };
    let file = ReviewedFile {
        path: "a.rs".into(),
        old_path: None,
        status: FileStatus::Modified,
        hunks: vec![hunk],
        text: "fn a() {\n    c()\n".into(),
        language: Some("rust".into()),
        tier: FilePromptTier::Full,
    };
    let change = ReviewChange { files: vec![file], skipped: Vec::new() };
    let reviews = served.serve_state.reviews().await.unwrap();
    let request = ReviewRequest {
        scope: review.scope.clone(),
        subject: review.subject,
        depth: review.depth,
        files: 1,
        skills: Vec::new(),
        skip_agents: Vec::new(),
        min_severity: review.min_severity,
        incremental: false,
    };
    let recorder = reviews.start_review(id, &request).await.unwrap();
    recorder.finish_review(&review, &change).await.unwrap();
}

#[tokio::test]
async fn reviews_are_listed_and_shown_with_their_change() {
    let served = served().await;
    let page = served.get("/api/v1/reviews").await.ok();
    assert_eq!(each(&page, "scope"), ["uncommitted changes"]);
    assert_eq!((&page["items"][0]["files"], &page["items"][0]["counts"]), (&json!(1), &json!({})));
    let review = served.get("/api/v1/reviews/last").await.ok();
    assert_eq!(review["id"], "20260101-000000-abcd");
    let change = served.get("/api/v1/reviews/2026/change").await.ok();
    let lines = change["files"][0]["hunks"][0]["lines"].as_array().unwrap();
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["context", "removed", "added"]);
    assert_eq!((&lines[2]["old"], &lines[2]["new"]), (&json!(null), &json!(2)));
    served.get("/api/v1/reviews/1999").await.refused(404);
    served.get("/api/v1/reviews/..%2f..%2f/change").await.refused(404);
}

#[tokio::test]
async fn a_project_without_reviews_says_so() {
    let served = Field::with_skills().serve().await;
    assert_eq!(served.get("/api/v1/reviews").await.ok()["items"], json!([]));
    let problem = served.get("/api/v1/reviews/last").await.refused(404);
    assert!(problem["hint"].as_str().unwrap().contains("rep review"), "{problem}");
}

#[tokio::test]
async fn a_review_that_is_damaged_hides_no_other() {
    let served = served().await;
    store_review(&served, "20270101-000000-dead").await;
    let record = served.field.root.join("data/runs/20270101-000000-dead/review.json");
    std::fs::File::create(record).unwrap();
    let page = served.get("/api/v1/reviews").await.ok();
    assert_eq!(each(&page, "id"), ["20270101-000000-dead", "20260101-000000-abcd"]);
    assert!(page["items"][0]["broken"].is_string(), "{page}");
    served.get("/api/v1/reviews/2027").await.refused(409);
}

#[tokio::test]
async fn a_review_is_a_run_of_its_kind() {
    let served = served().await;
    let page = served.get("/api/v1/runs?kind=review").await.ok();
    assert_eq!(each(&page, "id"), ["20260101-000000-abcd"]);
    assert_eq!(page["items"][0]["interrupted"], json!(false));
    assert_eq!(served.get("/api/v1/runs?kind=plan").await.ok()["items"], json!([]));
    let problem = served.get("/api/v1/runs?kind=reviews").await.refused(400);
    assert!(problem.to_string().contains("`review`, `plan`"), "{problem}");
}
