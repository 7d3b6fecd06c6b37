//! Reviews that were made, and the changes that they are about.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use repertoire_review::change::{Change, ChangedFile, LineKind};
use repertoire_review::record::{Depth, Review, Subject};
use repertoire_review::store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Api, Call, Page, blocking};
use crate::http::problem::Problem;

const TAG: &str = "reviews";

/// A review of a list.
#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    /// Its name.
    id: String,
    /// What kind of files it is for.
    subject: Subject,
    /// How deep it looked.
    depth: Depth,
    /// What was looked at, in words.
    scope: String,
    /// How many files.
    files: usize,
    /// How many findings.
    findings: usize,
    /// How many of each severity, in lower case.
    counts: BTreeMap<String, usize>,
    /// How many of earlier reviews nobody has mended.
    still_open: usize,
    /// Agents that gave no answer.
    failed_calls: usize,
    /// When it began, in milliseconds since 1970.
    started_ms: u64,
    /// How long it took.
    duration_ms: u64,
    /// Why it cannot be read, if so; the rest is empty then.
    broken: Option<String>,
}

/// A review.
#[derive(Debug, Deserialize, JsonSchema)]
struct ReviewPath {
    /// Its name, how it begins, or `last`.
    id: String,
}

/// What a review is about.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangeJson {
    /// The files.
    files: Vec<FileJson>,
    /// Files that were not reviewed.
    skipped: Vec<SkippedJson>,
}

/// A file that was reviewed.
#[derive(Debug, Serialize, JsonSchema)]
struct FileJson {
    /// Its path below the repository.
    path: String,
    /// Its path before, if it was renamed.
    old_path: Option<String>,
    /// The language, where the ending tells.
    language: Option<String>,
    /// Lines that came.
    added: usize,
    /// Lines that went.
    removed: usize,
    /// What has changed in it.
    hunks: Vec<HunkJson>,
}

/// A part of a file that has changed, with its surroundings.
#[derive(Debug, Serialize, JsonSchema)]
struct HunkJson {
    /// Its first line before.
    old_start: u32,
    /// Its first line now.
    new_start: u32,
    /// What it is in: a function, mostly.
    section: String,
    /// Its lines.
    lines: Vec<LineJson>,
}

/// A line.
#[derive(Debug, Serialize, JsonSchema)]
struct LineJson {
    /// What happened to it.
    kind: LineWord,
    /// Its number before.
    old: Option<u32>,
    /// Its number now.
    new: Option<u32>,
    /// Its text.
    text: String,
}

/// What happened to a line.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum LineWord {
    /// It is as it was.
    Context,
    /// It came.
    Added,
    /// It went.
    Removed,
}

/// A file that was not reviewed.
#[derive(Debug, Serialize, JsonSchema)]
struct SkippedJson {
    /// Its path.
    path: String,
    /// Why not.
    reason: String,
}

pub(super) fn add(api: Api) -> Api {
    let no = "It cannot be read, or more than one is called so.";
    api.list("/api/v1/reviews", TAG, "List reviews of the project, the latest first", list)
        .add(Method::GET, "/api/v1/reviews/{id}", TAG, "A review, with its findings", show)
        .refuses(StatusCode::CONFLICT, no)
        .add(
            Method::GET,
            "/api/v1/reviews/{id}/change",
            TAG,
            "The change that a review is about, line by line",
            change,
        )
        .refuses(StatusCode::CONFLICT, no)
}

async fn list(call: Call) -> Answer<Page<Row>> {
    blocking(move || {
        let reviews = call.house.reviews();
        let page = call.paging.cut(reviews.names().into_iter())?;
        let row = |name: &String| match reviews.load(name) {
            Ok(review) => row(&review),
            Err(error) => broken(name, &error),
        };
        let items = page.items.iter().map(row).collect();
        Ok(Page { items, next: page.next, total: page.total })
    })
    .await
}

async fn show(call: Call<ReviewPath>) -> Answer<Review> {
    blocking(move || call.house.reviews().load(&call.path.id).map_err(failed)).await
}

async fn change(call: Call<ReviewPath>) -> Answer<ChangeJson> {
    blocking(move || {
        let change = call.house.reviews().change(&call.path.id).map_err(failed)?;
        Ok(of_change(change))
    })
    .await
}

fn row(review: &Review) -> Row {
    let mut counts = BTreeMap::new();
    for found in &review.findings {
        *counts.entry(found.severity.to_string().to_lowercase()).or_default() += 1;
    }
    Row {
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

fn broken(name: &str, error: &StoreError) -> Row {
    Row {
        id: name.to_owned(),
        subject: Subject::default(),
        depth: Depth::default(),
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

fn of_change(change: Change) -> ChangeJson {
    let skipped = change
        .skipped
        .into_iter()
        .map(|file| SkippedJson { path: file.path.to_string(), reason: file.reason });
    ChangeJson {
        skipped: skipped.collect(),
        files: change.files.into_iter().map(of_file).collect(),
    }
}

fn of_file(file: ChangedFile) -> FileJson {
    let (added, removed) = (file.added(), file.removed());
    let line = |line: repertoire_review::change::Line| LineJson {
        kind: match line.kind {
            LineKind::Context => LineWord::Context,
            LineKind::Added => LineWord::Added,
            LineKind::Removed => LineWord::Removed,
        },
        old: line.old,
        new: line.new,
        text: line.text,
    };
    let hunks = file.hunks.into_iter().map(|hunk| HunkJson {
        old_start: hunk.old_start,
        new_start: hunk.new_start,
        section: hunk.section,
        lines: hunk.lines.into_iter().map(line).collect(),
    });
    FileJson {
        path: file.path.to_string(),
        old_path: file.old_path.map(|path| path.to_string()),
        language: file.language,
        added,
        removed,
        hunks: hunks.collect(),
    }
}

fn failed(error: StoreError) -> Problem {
    let status = match &error {
        StoreError::NotFound { .. } | StoreError::None { .. } => StatusCode::NOT_FOUND,
        StoreError::Write { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::CONFLICT,
    };
    let problem = Problem::new(status, error.to_string());
    match error {
        StoreError::None { .. } => problem.hint("`rep review` makes one."),
        StoreError::NotFound { .. } | StoreError::Ambiguous { .. } => {
            problem.hint("`GET /api/v1/reviews` lists them.")
        }
        _ => problem,
    }
}
