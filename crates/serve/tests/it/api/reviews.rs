//! Reviews and the changes that they are about.

use repertoire_review::change::{
    DiffHunk, FilePromptTier, FileStatus, HunkLine, LineKind, ReviewChange, ReviewedFile,
};
use repertoire_review::record::ReviewRecord;
use serde_json::json;

use crate::house::{Field, Served, each};

/// A daemon with one review of one file.
async fn served() -> Served {
    let served = Field::with_skills().serve().await;
    let review: ReviewRecord = serde_json::from_value(json!({
        "version": 1, "id": "20260101-000000-abcd", "subject": "code", "depth": "patterns",
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
    served.house.reviews().save_review(&review, &change).unwrap();
    served
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
    let dir = served.field.root.join("data/reviews");
    let place = std::fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    let broken = place.join("20270101-000000-dead");
    std::fs::create_dir_all(&broken).unwrap();
    std::fs::File::create(broken.join("review.json")).unwrap();
    let page = served.get("/api/v1/reviews").await.ok();
    assert_eq!(each(&page, "id"), ["20270101-000000-dead", "20260101-000000-abcd"]);
    assert!(page["items"][0]["broken"].is_string(), "{page}");
    served.get("/api/v1/reviews/2027").await.refused(409);
}
