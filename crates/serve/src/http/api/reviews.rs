//! Stored reviews, and the changes they are about.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use repertoire_review::change::{LineKind, ReviewChange, ReviewedFile};
use repertoire_review::record::{ReviewDepth, ReviewRecord, ReviewSubject};
use repertoire_review::store::ReviewStoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::runs::journal_problem;
use super::{ApiBuilder, ApiCall, ApiResult, ListPage};
use crate::http::problem::HttpProblem;

const TAG: &str = "reviews";

/// An entry of the list of reviews.
#[derive(Debug, Serialize, JsonSchema)]
struct ReviewRow {
    /// The id of the review.
    id: String,
    /// The kind of files it is for.
    subject: ReviewSubject,
    /// The depth of the review.
    depth: ReviewDepth,
    /// A description of what was reviewed.
    scope: String,
    /// The number of files.
    files: usize,
    /// The number of findings.
    findings: usize,
    /// The number of findings by severity, in lower case.
    counts: BTreeMap<String, usize>,
    /// The number of findings of earlier reviews that are still open.
    still_open: usize,
    /// The number of agent calls that failed.
    failed_calls: usize,
    /// The start time, in milliseconds since 1970.
    started_ms: u64,
    /// The duration, in milliseconds.
    duration_ms: u64,
    /// The reason why the review cannot be read, if so; all other fields are empty then.
    broken: Option<String>,
}

/// The path of a review.
#[derive(Debug, Deserialize, JsonSchema)]
struct ReviewPath {
    /// The id of the review, a prefix of it, or `last`.
    id: String,
}

/// The change a review is about.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangeJson {
    /// The reviewed files.
    files: Vec<ReviewedFileJson>,
    /// Files that were not reviewed.
    skipped: Vec<SkippedFileJson>,
}

/// A reviewed file.
#[derive(Debug, Serialize, JsonSchema)]
struct ReviewedFileJson {
    /// The path below the repository.
    path: String,
    /// The previous path, if the file was renamed.
    old_path: Option<String>,
    /// The language, if it is known from the file extension.
    language: Option<String>,
    /// The number of added lines.
    added: usize,
    /// The number of removed lines.
    removed: usize,
    /// The changed parts.
    hunks: Vec<HunkJson>,
}

/// A changed part of a file, with context.
#[derive(Debug, Serialize, JsonSchema)]
struct HunkJson {
    /// The first line in the old file.
    old_start: u32,
    /// The first line in the new file.
    new_start: u32,
    /// The enclosing section, usually a function.
    section: String,
    /// The lines.
    lines: Vec<LineJson>,
}

/// A line of a change.
#[derive(Debug, Serialize, JsonSchema)]
struct LineJson {
    /// The kind of change.
    kind: LineChangeKind,
    /// The line number in the old file.
    old: Option<u32>,
    /// The line number in the new file.
    new: Option<u32>,
    /// The text of the line.
    text: String,
}

/// The kind of change of a line.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum LineChangeKind {
    /// Unchanged.
    Context,
    /// Added.
    Added,
    /// Removed.
    Removed,
}

/// A file that was not reviewed.
#[derive(Debug, Serialize, JsonSchema)]
struct SkippedFileJson {
    /// The path of the file.
    path: String,
    /// The reason.
    reason: String,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    let no = "It cannot be read, or more than one is called so.";
    api.list("/api/v1/reviews", TAG, "List reviews of the project, the latest first", list_reviews)
        .add(Method::GET, "/api/v1/reviews/{id}", TAG, "A review, with its findings", show_review)
        .refuses(StatusCode::CONFLICT, no)
        .add(
            Method::GET,
            "/api/v1/reviews/{id}/change",
            TAG,
            "The change that a review is about, line by line",
            show_change,
        )
        .refuses(StatusCode::CONFLICT, no)
}

async fn list_reviews(call: ApiCall) -> ApiResult<ListPage<ReviewRow>> {
    let reviews = call.serve_state.reviews().await.map_err(journal_problem)?;
    let ids = reviews.review_ids().await.map_err(store_problem)?;
    let page = call.paging.cut_page(ids.into_iter())?;
    let mut items = Vec::new();
    for id in &page.items {
        items.push(match reviews.load_review(id).await {
            Ok(review) => review_row(&review),
            Err(error) => broken_review(id, &error),
        });
    }
    Ok(ListPage { items, next: page.next, total: page.total })
}

async fn show_review(call: ApiCall<ReviewPath>) -> ApiResult<ReviewRecord> {
    let reviews = call.serve_state.reviews().await.map_err(journal_problem)?;
    reviews.load_review(&call.path.id).await.map_err(store_problem)
}

async fn show_change(call: ApiCall<ReviewPath>) -> ApiResult<ChangeJson> {
    let reviews = call.serve_state.reviews().await.map_err(journal_problem)?;
    let change = reviews.load_change(&call.path.id).await.map_err(store_problem)?;
    Ok(change_json(change))
}

fn review_row(review: &ReviewRecord) -> ReviewRow {
    let mut counts = BTreeMap::new();
    for found in &review.findings {
        *counts.entry(found.severity.to_string().to_lowercase()).or_default() += 1;
    }
    ReviewRow {
        id: review.id.clone(),
        subject: review.subject,
        depth: review.depth,
        scope: review.scope.words.clone(),
        files: review.files.len(),
        findings: review.findings.len(),
        counts,
        still_open: review.still_open.len(),
        failed_calls: review.failed_calls().count(),
        started_ms: review.started_ms,
        duration_ms: review.duration_ms,
        broken: None,
    }
}

fn broken_review(name: &str, error: &ReviewStoreError) -> ReviewRow {
    ReviewRow {
        id: name.to_owned(),
        subject: ReviewSubject::default(),
        depth: ReviewDepth::default(),
        scope: String::new(),
        files: 0,
        findings: 0,
        counts: BTreeMap::new(),
        still_open: 0,
        failed_calls: 0,
        started_ms: 0,
        duration_ms: 0,
        broken: Some(error.to_string()),
    }
}

fn change_json(change: ReviewChange) -> ChangeJson {
    let skipped = change
        .skipped
        .into_iter()
        .map(|file| SkippedFileJson { path: file.path.to_string(), reason: file.reason });
    ChangeJson {
        skipped: skipped.collect(),
        files: change.files.into_iter().map(file_json).collect(),
    }
}

fn file_json(file: ReviewedFile) -> ReviewedFileJson {
    let (added, removed) = (file.added_count(), file.removed_count());
    let hunks = file.hunks.into_iter().map(|hunk| HunkJson {
        old_start: hunk.old_start,
        new_start: hunk.new_start,
        section: hunk.section,
        lines: hunk.lines.into_iter().map(line_json).collect(),
    });
    ReviewedFileJson {
        path: file.path.to_string(),
        old_path: file.old_path.map(|path| path.to_string()),
        language: file.language,
        added,
        removed,
        hunks: hunks.collect(),
    }
}

fn line_json(line: repertoire_review::change::HunkLine) -> LineJson {
    LineJson {
        kind: match line.kind {
            LineKind::Context => LineChangeKind::Context,
            LineKind::Added => LineChangeKind::Added,
            LineKind::Removed => LineChangeKind::Removed,
        },
        old: line.old,
        new: line.new,
        text: line.text,
    }
}

fn store_problem(error: ReviewStoreError) -> HttpProblem {
    let status = match &error {
        ReviewStoreError::NotFound { .. } | ReviewStoreError::None { .. } => StatusCode::NOT_FOUND,
        ReviewStoreError::Write { .. }
        | ReviewStoreError::Folder(_)
        | ReviewStoreError::Journal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::CONFLICT,
    };
    let problem = HttpProblem::new(status, error.to_string());
    match error {
        ReviewStoreError::None { .. } => problem.hint("`rep review` makes one."),
        ReviewStoreError::NotFound { .. } | ReviewStoreError::Ambiguous { .. } => {
            problem.hint("`GET /api/v1/reviews` lists them.")
        }
        _ => problem,
    }
}
