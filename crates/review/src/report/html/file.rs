//! The files with their diffs and findings.

use crate::extract::Severity;
use camino::Utf8Path;

use super::card::{card, class};
use super::diff::{self, Part, Row};
use super::{esc, name};
use crate::change::{Change, FileStatus, LineKind};
use crate::record::{Reported, Review};
use crate::report::limits::{LINE_CHARS_MAX, PAGE_LINES_MAX};
use crate::report::words;

/// A file of the page.
pub(super) struct FileView {
    pub(super) path: String,
    old_path: Option<String>,
    status: Option<FileStatus>,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// The indexes of its findings in the review.
    pub(super) found: Vec<usize>,
    parts: Vec<Part>,
}

impl FileView {
    /// The number of findings with this severity.
    pub(super) fn with_severity(&self, review: &Review, severity: Severity) -> usize {
        let found = self.found.iter().filter_map(|at| review.findings.get(*at));
        found.filter(|finding| finding.severity == severity).count()
    }
}

/// All reviewed files, and files that only findings name.
pub(super) fn views(review: &Review, change: &Change) -> Vec<FileView> {
    let mut paths: Vec<&Utf8Path> = review.files.iter().map(|file| file.path.as_path()).collect();
    paths.extend(change.files.iter().map(|file| file.path.as_path()));
    paths.extend(review.findings.iter().map(|finding| finding.file.as_path()));
    paths.sort_unstable();
    paths.dedup();
    let mut room = PAGE_LINES_MAX;
    paths.into_iter().map(|path| view(review, change, path, &mut room)).collect()
}

fn view(review: &Review, change: &Change, path: &Utf8Path, room: &mut usize) -> FileView {
    let found: Vec<(usize, &Reported)> =
        review.findings.iter().enumerate().filter(|(_, finding)| finding.file == path).collect();
    let record = review.files.iter().find(|file| file.path == path);
    let changed = change.file(path);
    let parts = match changed {
        Some(file) => diff::of_change(file, &found, *room),
        None => diff::of_excerpts(&found),
    };
    let lines = parts.iter().map(|part| match part {
        Part::Lines(rows) | Part::Fold(rows) => rows.len(),
        Part::Gap(_) | Part::Cut(_) | Part::Findings(_) => 0,
    });
    *room = room.saturating_sub(lines.sum());
    let old_path = changed.map(|file| &file.old_path).or(record.map(|file| &file.old_path));
    FileView {
        path: path.to_string(),
        old_path: old_path.and_then(|old| old.as_ref()).map(ToString::to_string),
        status: changed.map(|file| file.status).or(record.map(|file| file.status)),
        added: record.map(|file| file.added).or(changed.map(|file| file.added())).unwrap_or(0),
        removed: record
            .map(|file| file.removed)
            .or(changed.map(|file| file.removed()))
            .unwrap_or(0),
        found: found.iter().map(|(at, _)| *at).collect(),
        parts,
    }
}

/// Renders the files. Files without findings are collapsed.
pub(super) fn sections(review: &Review, files: &[FileView]) -> String {
    let mut out = "<section aria-labelledby=\"files\">\n<h2 id=\"files\">Files</h2>\n".to_owned();
    let order = order(files);
    for (at, file) in files.iter().enumerate() {
        out.push_str(&section(review, file, at, &order));
    }
    out.push_str("</section>\n");
    out
}

/// The indexes of all findings, in page order.
fn order(files: &[FileView]) -> Vec<usize> {
    let parts = files.iter().flat_map(|file| &file.parts);
    let found = parts.filter_map(|part| match part {
        Part::Findings(found) => Some(found),
        Part::Lines(_) | Part::Fold(_) | Part::Gap(_) | Part::Cut(_) => None,
    });
    found.flatten().copied().collect()
}

fn section(review: &Review, file: &FileView, at: usize, order: &[usize]) -> String {
    let open = if file.found.is_empty() { "" } else { " open=\"\"" };
    let mut out = format!(
        "<details class=\"file\" id=\"file{}\"{open}>\n<summary>{}</summary>\n",
        at + 1,
        summary(review, file)
    );
    let new = matches!(file.status, Some(FileStatus::Added | FileStatus::Whole));
    out.push_str(&format!("<div class=\"diff{}\">\n", if new { " new" } else { "" }));
    if file.parts.is_empty() {
        out.push_str("<p class=\"gap\">There is nothing to show.</p>\n");
    }
    for part in &file.parts {
        out.push_str(&show(review, part, order));
    }
    out.push_str("</div>\n</details>\n");
    out
}

fn summary(review: &Review, file: &FileView) -> String {
    let (folder, base) = match file.path.rsplit_once('/') {
        Some((folder, base)) => (format!("{folder}/"), base),
        None => (String::new(), file.path.as_str()),
    };
    let mut out =
        format!("<span class=\"path\"><span>{}</span>{}</span>", name(&folder), name(base));
    if let Some(old) = &file.old_path {
        out.push_str(&format!("<span class=\"was\">was {}</span>", name(old)));
    }
    let status = match file.status {
        Some(FileStatus::Added) => "new",
        Some(FileStatus::Renamed) => "renamed",
        Some(FileStatus::Whole) => "whole file",
        Some(FileStatus::Modified) | None => "",
    };
    if !status.is_empty() {
        out.push_str(&format!("<span class=\"tag\">{status}</span>"));
    }
    out.push_str(&dots(review, file));
    out.push_str(&format!(
        "<span class=\"delta\"><span class=\"plus\">+{}</span> <span class=\"minus\">−{}</span></span>",
        file.added, file.removed
    ));
    out
}

/// The number of findings by severity.
pub(super) fn dots(review: &Review, file: &FileView) -> String {
    let mut out = String::new();
    for severity in Severity::ALL {
        let number = file.with_severity(review, severity);
        if number > 0 {
            let word = severity.as_str().to_lowercase();
            out.push_str(&format!(
                "<span class=\"dot {}\" title=\"{number} {word}\" aria-label=\"{number} {word}\">{number}</span>",
                class(severity)
            ));
        }
    }
    if out.is_empty() { out } else { format!("<span class=\"dots\">{out}</span>") }
}

fn show(review: &Review, part: &Part, order: &[usize]) -> String {
    match part {
        Part::Lines(rows) => lines(rows),
        Part::Fold(rows) => format!(
            "<details class=\"fold\"><summary>{} without findings</summary>{}</details>\n",
            words::count(rows.len(), "line"),
            lines(rows)
        ),
        Part::Gap(number) => {
            format!("<p class=\"gap\">{} unchanged</p>\n", words::count(*number, "line"))
        }
        Part::Cut(number) => format!(
            "<p class=\"gap cut\">{} more: there is no room for them in this page</p>\n",
            words::count(*number, "changed line")
        ),
        Part::Findings(found) => {
            let cards: String = found.iter().map(|at| card(review, *at, order)).collect();
            format!("<div class=\"cards\">{cards}</div>\n")
        }
    }
}

fn lines(rows: &[Row]) -> String {
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"lines\" tabindex=\"0\" role=\"region\" aria-label=\"Code\"><div>{rows}</div></div>\n"
    )
}

fn row(row: &Row) -> String {
    let (kind, mark) = match row.kind {
        LineKind::Added => ("a", "+"),
        LineKind::Removed => ("d", "−"),
        LineKind::Context => ("c", " "),
    };
    let cited = row.cited.map(|severity| format!(" on {}", class(severity))).unwrap_or_default();
    format!(
        "<div class=\"r {kind}{cited}\"><i class=\"o\">{}</i><i>{}</i><b>{mark}</b><code>{}</code></div>\n",
        line_number(row.old),
        line_number(row.new),
        esc(&words::clip(&row.text.replace('\n', "\\n"), LINE_CHARS_MAX))
    )
}

fn line_number(number: Option<u32>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}
