//! Selects the lines of a file that the page shows: changed lines, lines around findings, and the findings between
//! them.

use crate::extract::ReviewSeverity;

use crate::change::{LineKind, LineRange, ReviewedFile};
use crate::record::ReportedFinding;
use crate::report::limits::{PAGE_CONTEXT_LINES, PAGE_FILE_LINES_MAX, PAGE_FOLD_LINES_MIN};

/// A line of the diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageRow {
    pub(super) kind: LineKind,
    pub(super) old: Option<u32>,
    pub(super) new: Option<u32>,
    pub(super) text: String,
    /// The highest severity of the findings that cite the line.
    pub(super) cited: Option<ReviewSeverity>,
}

/// A part of a file, in the order of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PagePart {
    Lines(Vec<PageRow>),
    /// Lines without findings nearby, which are collapsed.
    Fold(Vec<PageRow>),
    /// A number of unchanged lines that are not shown.
    Gap(usize),
    /// A number of changed lines that exceed the limit.
    Cut(usize),
    /// Findings, by their index in the review.
    Findings(Vec<usize>),
}

/// A line with a flag that is true near a finding, or a count of hidden lines.
enum PageItem {
    Row(PageRow, bool),
    Gap(usize),
    Cut(usize),
}

/// The findings of one file, with their indexes in the review.
pub(super) type FileFindings<'a> = [(usize, &'a ReportedFinding)];

/// The parts of a changed file.
pub(super) fn parts_of_change(
    file: &ReviewedFile,
    found: &FileFindings<'_>,
    lines_max: usize,
) -> Vec<PagePart> {
    let items = cap_items(collect_items(file, found), lines_max.min(PAGE_FILE_LINES_MAX));
    assemble_parts(items, found)
}

/// The parts of a file whose content is unknown, from the excerpts of its findings.
pub(super) fn parts_of_excerpts(found: &FileFindings<'_>) -> Vec<PagePart> {
    let mut rows: Vec<PageRow> = Vec::new();
    for line in found.iter().flat_map(|(_, finding)| &finding.excerpt) {
        let kind = if line.added { LineKind::Added } else { LineKind::Context };
        let number = Some(line.number);
        if !rows.iter().any(|row| row.new == number) {
            rows.push(PageRow {
                kind,
                old: None,
                new: number,
                text: line.text.clone(),
                cited: None,
            });
        }
    }
    rows.sort_by_key(|row| row.new);
    let mut items = Vec::new();
    let mut next = None;
    for mut row in rows {
        if let (Some(next), Some(new)) = (next, row.new)
            && new > next
        {
            items.push(PageItem::Gap((new - next) as usize));
        }
        next = row.new.map(|new| new.saturating_add(1));
        row.cited = cited_severity(found, row.new);
        items.push(PageItem::Row(row, true));
    }
    assemble_parts(items, found)
}

fn cited_severity(found: &FileFindings<'_>, line: Option<u32>) -> Option<ReviewSeverity> {
    let line = LineRange::from_line(line?);
    let about = found.iter().filter(|(_, finding)| finding.lines.overlaps(line));
    about.map(|(_, finding)| finding.severity).max()
}

fn is_near(found: &FileFindings<'_>, line: u32) -> bool {
    let line = LineRange::from_line(line);
    found.iter().any(|(_, finding)| finding.lines.widened_by(PAGE_CONTEXT_LINES).overlaps(line))
}

/// All lines of the hunks, the lines around findings, and the number of lines between them.
fn collect_items(file: &ReviewedFile, found: &FileFindings<'_>) -> Vec<PageItem> {
    let text: Vec<&str> = file.text.lines().collect();
    let mut items = Vec::new();
    let mut next = NextLines { new: 1, old: 1 };
    for hunk in &file.hunks {
        add_unchanged_lines(&mut items, &text, &mut next, hunk.new_start, found);
        next.old = hunk.old_start.max(next.old);
        for line in &hunk.lines {
            let near = is_near(found, line.new.unwrap_or(next.new));
            let row = PageRow {
                kind: line.kind,
                old: line.old,
                new: line.new,
                text: line.text.clone(),
                cited: cited_severity(found, line.new),
            };
            items.push(PageItem::Row(row, near));
            next.new = line.new.map_or(next.new, |new| new.saturating_add(1));
            next.old = line.old.map_or(next.old, |old| old.saturating_add(1));
        }
    }
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX).saturating_add(1);
    add_unchanged_lines(&mut items, &text, &mut next, end, found);
    items
}

/// The numbers of the next line on both sides.
struct NextLines {
    new: u32,
    old: u32,
}

/// Adds the unchanged lines up to `until` that are near a finding, and the gaps between them.
fn add_unchanged_lines(
    items: &mut Vec<PageItem>,
    text: &[&str],
    next: &mut NextLines,
    until: u32,
    found: &FileFindings<'_>,
) {
    let mut unseen = 0;
    while next.new < until {
        let line = text.get(next.new as usize - 1);
        match line.filter(|_| is_near(found, next.new)) {
            Some(line) => {
                if unseen > 0 {
                    items.push(PageItem::Gap(std::mem::take(&mut unseen)));
                }
                let row = PageRow {
                    kind: LineKind::Context,
                    old: Some(next.old),
                    new: Some(next.new),
                    text: (*line).to_owned(),
                    cited: cited_severity(found, Some(next.new)),
                };
                items.push(PageItem::Row(row, true));
            }
            None => unseen += 1,
        }
        next.new += 1;
        next.old = next.old.saturating_add(1);
    }
    if unseen > 0 {
        items.push(PageItem::Gap(unseen));
    }
}

/// Drops lines beyond the limit. Lines near findings are kept.
fn cap_items(items: Vec<PageItem>, lines_max: usize) -> Vec<PageItem> {
    let mut out = Vec::new();
    let mut room = lines_max;
    let mut cut = 0;
    for item in items {
        match item {
            PageItem::Row(_, false) if room == 0 => cut += 1,
            item => {
                if cut > 0 {
                    out.push(PageItem::Cut(std::mem::take(&mut cut)));
                }
                room = room.saturating_sub(1);
                out.push(item);
            }
        }
    }
    if cut > 0 {
        out.push(PageItem::Cut(cut));
    }
    out
}

/// Groups lines into parts, with each finding after its last line. Findings whose line is not shown come first.
fn assemble_parts(items: Vec<PageItem>, found: &FileFindings<'_>) -> Vec<PagePart> {
    let mut parts = Vec::new();
    let mut waiting: Vec<(usize, u32)> = Vec::new();
    let mut homeless = Vec::new();
    let is_there = |line: u32| {
        items.iter().any(|item| matches!(item, PageItem::Row(row, _) if row.new == Some(line)))
    };
    for (at, finding) in found {
        if is_there(finding.lines.last) {
            waiting.push((*at, finding.lines.last));
        } else {
            homeless.push(*at);
        }
    }
    if !homeless.is_empty() {
        parts.push(PagePart::Findings(homeless));
    }
    let mut run = RowRun::default();
    for item in items {
        match item {
            PageItem::Row(row, near) => {
                let line = row.new;
                run.push(&mut parts, row, near, found.is_empty());
                let here: Vec<usize> = waiting
                    .iter()
                    .filter(|(_, last)| Some(*last) == line)
                    .map(|(at, _)| *at)
                    .collect();
                if !here.is_empty() {
                    run.end_run(&mut parts);
                    parts.push(PagePart::Findings(here));
                }
            }
            PageItem::Gap(number) => {
                run.end_run(&mut parts);
                parts.push(PagePart::Gap(number));
            }
            PageItem::Cut(number) => {
                run.end_run(&mut parts);
                parts.push(PagePart::Cut(number));
            }
        }
    }
    run.end_run(&mut parts);
    parts
}

/// Consecutive lines that are all near findings, or all far from them.
#[derive(Default)]
struct RowRun {
    rows: Vec<PageRow>,
    is_near: bool,
}

impl RowRun {
    /// Adds a line. In a file without findings (`is_plain`), no lines are folded: the whole file is collapsed already.
    fn push(&mut self, parts: &mut Vec<PagePart>, row: PageRow, near: bool, is_plain: bool) {
        let near = near || is_plain;
        if near != self.is_near {
            self.end_run(parts);
        }
        self.is_near = near;
        self.rows.push(row);
    }

    fn end_run(&mut self, parts: &mut Vec<PagePart>) {
        if self.rows.is_empty() {
            return;
        }
        let mut rows = std::mem::take(&mut self.rows);
        match (self.is_near || rows.len() < PAGE_FOLD_LINES_MIN, parts.last_mut()) {
            (true, Some(PagePart::Lines(before))) => before.append(&mut rows),
            (true, _) => parts.push(PagePart::Lines(rows)),
            (false, _) => parts.push(PagePart::Fold(rows)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{DiffHunk, FilePromptTier, FileStatus, HunkLine};
    use crate::finding::FindingFix;
    use crate::record::FindingValidation;

    /// A file with this number of lines, some of them added.
    fn file(lines: u32, added: LineRange) -> ReviewedFile {
        let rows = added.first..=added.last;
        let line = |number: u32| HunkLine {
            kind: LineKind::Added,
            old: None,
            new: Some(number),
            text: format!("line {number}"),
        };
        ReviewedFile {
            path: "a.rs".into(),
            old_path: None,
            status: FileStatus::Modified,
            hunks: vec![DiffHunk {
                old_start: added.first,
                new_start: added.first,
                section: String::new(),
                lines: rows.map(line).collect(),
            }],
            text: (1..=lines).map(|number| format!("line {number}\n")).collect(),
            language: None,
            tier: FilePromptTier::Full,
        }
    }

    fn finding(first: u32, last: u32) -> ReportedFinding {
        ReportedFinding {
            id: "R1".into(),
            fingerprint: String::new(),
            line_prints: Vec::new(),
            title: String::new(),
            file: "a.rs".into(),
            lines: LineRange { first, last },
            categories: Vec::new(),
            severity: ReviewSeverity::Minor,
            description: String::new(),
            failure_scenario: String::new(),
            confidence: 1.0,
            fix: Some(FindingFix::Prompt(String::new())),
            pattern: None,
            details: Default::default(),
            also: Vec::new(),
            agents: Vec::new(),
            validation: FindingValidation::Pattern,
            members: Vec::new(),
            excerpt: Vec::new(),
        }
    }

    /// The parts in short: `=9` gap, `4-8` lines, `(9-20)` folded, `!1` finding, `x7` cut.
    #[track_caller]
    fn check(file: &ReviewedFile, lines: &[(u32, u32)], lines_max: usize, expect: &str) {
        let found: Vec<ReportedFinding> =
            lines.iter().map(|(first, last)| finding(*first, *last)).collect();
        let found: Vec<(usize, &ReportedFinding)> = found.iter().enumerate().collect();
        let span = |rows: &[PageRow]| {
            let numbers: Vec<u32> = rows.iter().filter_map(|row| row.new).collect();
            format!("{}-{}", numbers[0], numbers[numbers.len() - 1])
        };
        let words = parts_of_change(file, &found, lines_max).into_iter().map(|part| match part {
            PagePart::Lines(rows) => span(&rows),
            PagePart::Fold(rows) => format!("({})", span(&rows)),
            PagePart::Gap(number) => format!("={number}"),
            PagePart::Cut(number) => format!("x{number}"),
            PagePart::Findings(found) => format!("!{found:?}"),
        });
        assert_eq!(words.collect::<Vec<_>>().join(" "), expect);
    }

    #[test]
    fn what_changed_is_shown_and_the_rest_is_counted() {
        check(&file(100, LineRange { first: 40, last: 50 }), &[], 999, "=39 40-50 =50");
    }

    #[test]
    fn findings_come_after_their_last_line_and_what_is_far_is_folded() {
        let file = file(100, LineRange { first: 1, last: 100 });
        check(&file, &[(50, 52), (51, 52)], 999, "(1-43) 44-52 ![0, 1] 53-58 (59-100)");
        check(&file, &[(4, 4), (100, 100)], 999, "1-4 ![0] 5-10 (11-93) 94-100 ![1]");
    }

    #[test]
    fn lines_around_a_finding_are_shown_where_nothing_changed() {
        let file = file(100, LineRange { first: 40, last: 41 });
        check(&file, &[(80, 80)], 999, "=39 40-41 =32 74-80 ![0] 81-86 =14");
    }

    #[test]
    fn a_finding_without_a_line_comes_first() {
        let file = file(10, LineRange { first: 1, last: 3 });
        check(&file, &[(4_000_000_000, u32::MAX), (0, 0)], 999, "![0, 1] 1-6 =4");
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_but_findings_stay() {
        let file = file(100, LineRange { first: 1, last: 100 });
        check(&file, &[(50, 50)], 20, "(1-20) x23 44-50 ![0] 51-56 x44");
    }
}
