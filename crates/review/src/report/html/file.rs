//! The files with their diffs and findings.

use crate::extract::ReviewSeverity;
use camino::Utf8Path;

use super::card::{render_card, severity_class};
use super::diff::{self, PagePart, PageRow};
use super::{esc, escape_name};
use crate::change::{FileStatus, LineKind, ReviewChange};
use crate::record::{ReportedFinding, ReviewRecord};
use crate::report::limits::{LINE_CHARS_MAX, PAGE_LINES_MAX};
use crate::report::phrases;

/// A file of the page.
pub(super) struct FileView {
    pub(super) path: String,
    old_path: Option<String>,
    status: Option<FileStatus>,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// The indexes of its findings in the review.
    pub(super) found: Vec<usize>,
    parts: Vec<PagePart>,
}

impl FileView {
    /// The number of findings with this severity.
    pub(super) fn count_with_severity(
        &self,
        review: &ReviewRecord,
        severity: ReviewSeverity,
    ) -> usize {
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

/// Renders the files. Files without findings are collapsed.
pub(super) fn render_files(review: &ReviewRecord, files: &[FileView]) -> String {
    let mut out = "<section aria-labelledby=\"files\">\n<h2 id=\"files\">Files</h2>\n".to_owned();
    let order = findings_in_page_order(files);
    for (at, file) in files.iter().enumerate() {
        out.push_str(&render_file(review, file, at, &order));
    }
    out.push_str("</section>\n");
    out
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

fn render_file(review: &ReviewRecord, file: &FileView, at: usize, order: &[usize]) -> String {
    let open = if file.found.is_empty() { "" } else { " open=\"\"" };
    let mut out = format!(
        "<details class=\"file\" id=\"file{}\"{open}>\n<summary>{}</summary>\n",
        at + 1,
        render_summary(review, file)
    );
    let new = matches!(file.status, Some(FileStatus::Added | FileStatus::Whole));
    out.push_str(&format!("<div class=\"diff{}\">\n", if new { " new" } else { "" }));
    if file.parts.is_empty() {
        out.push_str("<p class=\"gap\">There is nothing to show.</p>\n");
    }
    for part in &file.parts {
        out.push_str(&render_part(review, part, order));
    }
    out.push_str("</div>\n</details>\n");
    out
}

fn render_summary(review: &ReviewRecord, file: &FileView) -> String {
    let (folder, base) = match file.path.rsplit_once('/') {
        Some((folder, base)) => (format!("{folder}/"), base),
        None => (String::new(), file.path.as_str()),
    };
    let mut out = format!(
        "<span class=\"path\"><span>{}</span>{}</span>",
        escape_name(&folder),
        escape_name(base)
    );
    if let Some(old) = &file.old_path {
        out.push_str(&format!("<span class=\"was\">was {}</span>", escape_name(old)));
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
    out.push_str(&render_severity_dots(review, file));
    out.push_str(&format!(
        "<span class=\"delta\"><span class=\"plus\">+{}</span> <span class=\"minus\">−{}</span></span>",
        file.added, file.removed
    ));
    out
}

/// The number of findings by severity.
pub(super) fn render_severity_dots(review: &ReviewRecord, file: &FileView) -> String {
    let mut out = String::new();
    for severity in ReviewSeverity::ALL {
        let number = file.count_with_severity(review, severity);
        if number > 0 {
            let word = severity.as_str().to_lowercase();
            out.push_str(&format!(
                "<span class=\"dot {}\" title=\"{number} {word}\" aria-label=\"{number} {word}\">{number}</span>",
                severity_class(severity)
            ));
        }
    }
    if out.is_empty() { out } else { format!("<span class=\"dots\">{out}</span>") }
}

fn render_part(review: &ReviewRecord, part: &PagePart, order: &[usize]) -> String {
    match part {
        PagePart::Lines(rows) => render_lines(rows),
        PagePart::Fold(rows) => format!(
            "<details class=\"fold\"><summary>{} without findings</summary>{}</details>\n",
            phrases::format_count(rows.len(), "line"),
            render_lines(rows)
        ),
        PagePart::Gap(number) => {
            format!("<p class=\"gap\">{} unchanged</p>\n", phrases::format_count(*number, "line"))
        }
        PagePart::Cut(number) => format!(
            "<p class=\"gap cut\">{} more: there is no room for them in this page</p>\n",
            phrases::format_count(*number, "changed line")
        ),
        PagePart::Findings(found) => {
            let cards: String = found.iter().map(|at| render_card(review, *at, order)).collect();
            format!("<div class=\"cards\">{cards}</div>\n")
        }
    }
}

fn render_lines(rows: &[PageRow]) -> String {
    let rows: String = rows.iter().map(render_line).collect();
    format!(
        "<div class=\"lines\" tabindex=\"0\" role=\"region\" aria-label=\"Code\"><div>{rows}</div></div>\n"
    )
}

fn render_line(row: &PageRow) -> String {
    let (kind, mark) = match row.kind {
        LineKind::Added => ("a", "+"),
        LineKind::Removed => ("d", "−"),
        LineKind::Context => ("c", " "),
    };
    let cited =
        row.cited.map(|severity| format!(" on {}", severity_class(severity))).unwrap_or_default();
    format!(
        "<div class=\"r {kind}{cited}\"><i class=\"o\">{}</i><i>{}</i><b>{mark}</b><code>{}</code></div>\n",
        line_number(row.old),
        line_number(row.new),
        esc(&phrases::clip_text(&row.text.replace('\n', "\\n"), LINE_CHARS_MAX))
    )
}

fn line_number(number: Option<u32>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}
