//! The files with their diffs and findings.

use camino::Utf8Path;
use minijinja::{Value, context};

use super::card::card_values;
use super::diff::{self, PagePart, PageRow};
use super::{severity_class, short_name};
use crate::change::{FileStatus, LineKind, ReviewChange};
use crate::extract::ReviewSeverity;
use crate::record::{ReportedFinding, ReviewRecord};
use crate::report::limits::{LINE_CHARS_MAX, PAGE_LINES_MAX};
use crate::report::phrases;

/// A file of the page.
pub(super) struct FileView {
    path: String,
    old_path: Option<String>,
    status: Option<FileStatus>,
    added: usize,
    removed: usize,
    /// The indexes of its findings in the review.
    found: Vec<usize>,
    parts: Vec<PagePart>,
}

impl FileView {
    /// The number of findings with this severity.
    fn count_with_severity(&self, review: &ReviewRecord, severity: ReviewSeverity) -> usize {
        let found = self.found.iter().filter_map(|at| review.findings.get(*at));
        found.filter(|finding| finding.severity == severity).count()
    }
}

/// All reviewed files, and files that only findings name.
pub(super) fn file_views(review: &ReviewRecord, change: &ReviewChange) -> Vec<FileView> {
    let mut paths: Vec<&Utf8Path> = review.files.iter().map(|file| file.path.as_path()).collect();
    paths.extend(change.files.iter().map(|file| file.path.as_path()));
    paths.extend(review.findings.iter().map(|finding| finding.file.as_path()));
    paths.sort_unstable();
    paths.dedup();
    let mut room = PAGE_LINES_MAX;
    paths.into_iter().map(|path| file_view(review, change, path, &mut room)).collect()
}

fn file_view(
    review: &ReviewRecord,
    change: &ReviewChange,
    path: &Utf8Path,
    room: &mut usize,
) -> FileView {
    let found: Vec<(usize, &ReportedFinding)> =
        review.findings.iter().enumerate().filter(|(_, finding)| finding.file == path).collect();
    let record = review.files.iter().find(|file| file.path == path);
    let changed = change.find_file(path);
    let parts = match changed {
        Some(file) => diff::parts_of_change(file, &found, *room),
        None => diff::parts_of_excerpts(&found),
    };
    let lines = parts.iter().map(|part| match part {
        PagePart::Lines(rows) | PagePart::Fold(rows) => rows.len(),
        PagePart::Gap(_) | PagePart::Cut(_) | PagePart::Findings(_) => 0,
    });
    *room = room.saturating_sub(lines.sum());
    let old_path = changed.map(|file| &file.old_path).or(record.map(|file| &file.old_path));
    FileView {
        path: path.to_string(),
        old_path: old_path.and_then(|old| old.as_ref()).map(ToString::to_string),
        status: changed.map(|file| file.status).or(record.map(|file| file.status)),
        added: record
            .map(|file| file.added)
            .or(changed.map(|file| file.added_count()))
            .unwrap_or(0),
        removed: record
            .map(|file| file.removed)
            .or(changed.map(|file| file.removed_count()))
            .unwrap_or(0),
        found: found.iter().map(|(at, _)| *at).collect(),
        parts,
    }
}

/// The values of all files, with the cards of their findings.
pub(super) fn file_values(review: &ReviewRecord, files: &[FileView]) -> Vec<Value> {
    let order = findings_in_page_order(files);
    let files = files.iter().enumerate();
    files.map(|(at, file)| one_file_values(review, file, at, &order)).collect()
}

/// The indexes of all findings, in page order.
fn findings_in_page_order(files: &[FileView]) -> Vec<usize> {
    let parts = files.iter().flat_map(|file| &file.parts);
    let found = parts.filter_map(|part| match part {
        PagePart::Findings(found) => Some(found),
        PagePart::Lines(_) | PagePart::Fold(_) | PagePart::Gap(_) | PagePart::Cut(_) => None,
    });
    found.flatten().copied().collect()
}

fn one_file_values(review: &ReviewRecord, file: &FileView, at: usize, order: &[usize]) -> Value {
    let (folder, name) = match file.path.rsplit_once('/') {
        Some((folder, name)) => (format!("{folder}/"), name),
        None => (String::new(), file.path.as_str()),
    };
    context! {
        number => at + 1,
        path => short_name(&file.path),
        folder => short_name(&folder),
        name => short_name(name),
        old_path => file.old_path.as_deref().map(short_name),
        status => match file.status {
            Some(FileStatus::Added) => Some("new"),
            Some(FileStatus::Renamed) => Some("renamed"),
            Some(FileStatus::Whole) => Some("whole file"),
            Some(FileStatus::Modified) | None => None,
        },
        is_new => matches!(file.status, Some(FileStatus::Added | FileStatus::Whole)),
        dots => severity_dots(review, file),
        added => file.added,
        removed => file.removed,
        parts => file.parts.iter().map(|part| part_values(review, part, order)).collect::<Vec<Value>>(),
    }
}

/// The number of findings by severity; empty if the file has none.
fn severity_dots(review: &ReviewRecord, file: &FileView) -> Vec<Value> {
    let counts = ReviewSeverity::ALL
        .into_iter()
        .map(|severity| (severity, file.count_with_severity(review, severity)));
    let counts = counts.filter(|(_, number)| *number > 0);
    counts
        .map(|(severity, number)| {
            let title = format!("{number} {}", severity.as_str().to_lowercase());
            context! { class => severity_class(severity), number, title }
        })
        .collect()
}

fn part_values(review: &ReviewRecord, part: &PagePart, order: &[usize]) -> Value {
    let row_list = |rows: &[PageRow]| rows.iter().map(row_values).collect::<Vec<Value>>();
    match part {
        PagePart::Lines(rows) => context! { kind => "lines", rows => row_list(rows) },
        PagePart::Fold(rows) => context! {
            kind => "fold",
            count => phrases::format_count(rows.len(), "line"),
            rows => row_list(rows),
        },
        PagePart::Gap(number) => {
            context! { kind => "gap", count => phrases::format_count(*number, "line") }
        }
        PagePart::Cut(number) => {
            context! { kind => "cut", count => phrases::format_count(*number, "changed line") }
        }
        PagePart::Findings(found) => {
            let cards = found.iter().filter_map(|at| card_values(review, *at, order));
            context! { kind => "findings", cards => cards.collect::<Vec<Value>>() }
        }
    }
}

fn row_values(row: &PageRow) -> Value {
    let (kind, mark) = match row.kind {
        LineKind::Added => ("a", "+"),
        LineKind::Removed => ("d", "−"),
        LineKind::Context => ("c", " "),
    };
    context! {
        kind,
        mark,
        cited => row.cited.map(severity_class),
        old => line_number(row.old),
        new => line_number(row.new),
        text => phrases::clip_text(&row.text.replace('\n', "\\n"), LINE_CHARS_MAX),
    }
}

fn line_number(number: Option<u32>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}
