//! Turns an agent's diff into an edit by locating it in the file.
//!
//! Tools apply edits without further checks, so a diff becomes an edit only if its old side occurs in the file verbatim
//! and at one place.

use crate::change::{LineRange, ReviewChange};
use crate::finding::FindingFix;
use crate::record::ReportedFinding;

use super::limits::FIX_LINES_MAX;

/// A replacement of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FixEdit {
    pub(super) lines: LineRange,
    /// The new lines, without line breaks; empty if the lines are deleted.
    pub(super) replacement: Vec<String>,
    /// True if a line follows the replaced ones.
    pub(super) has_next: bool,
}

/// Returns the edit for a finding's fix. Returns `None` if the fix is not a diff or its place is ambiguous.
pub(super) fn locate_fix(finding: &ReportedFinding, change: &ReviewChange) -> Option<FixEdit> {
    let Some(FindingFix::Diff(diff)) = &finding.fix else { return None };
    let file: Vec<(u32, &str)> = match change.find_file(&finding.file) {
        Some(file) => (1..).zip(file.text.lines()).collect(),
        None => finding.excerpt.iter().map(|line| (line.number, line.text.as_str())).collect(),
    };
    let sides = DiffSides::parse(diff)?;
    // Some agents write a space after the `+` or `-`.
    sides
        .locate_edit(&file, finding.lines)
        .or_else(|| sides.without_mark_space()?.locate_edit(&file, finding.lines))
}

/// The old and new lines of a diff with a single hunk.
struct DiffSides {
    old: Vec<String>,
    new: Vec<String>,
}

impl DiffSides {
    /// Parses a diff. Returns `None` if it is none, has several hunks or files, or is too long: half of a change must
    /// not become an edit.
    fn parse(diff: &str) -> Option<Self> {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        let mut hunks = 0;
        for line in without_headers(diff).filter(|line| !line.starts_with("```")) {
            if line.starts_with("@@") {
                hunks += 1;
                continue;
            }
            match line.split_at_checked(1) {
                Some(("+", text)) => new.push(text.to_owned()),
                Some(("-", text)) => old.push(text.to_owned()),
                Some((" ", text)) => {
                    old.push(text.to_owned());
                    new.push(text.to_owned());
                }
                None => {
                    old.push(String::new());
                    new.push(String::new());
                }
                Some(("\\", _)) => {}
                Some(_) => return None,
            }
            if hunks > 1 || old.len().max(new.len()) > FIX_LINES_MAX {
                return None;
            }
        }
        (!old.is_empty() && old != new).then_some(DiffSides { old, new })
    }

    /// Removes one space from the start of every line. Returns `None` if a non-empty line has none.
    fn without_mark_space(&self) -> Option<Self> {
        Some(DiffSides { old: without_space(&self.old)?, new: without_space(&self.new)? })
    }

    /// Locates the old side in the file: at the cited lines, or else at the only place where it occurs.
    fn locate_edit(&self, file: &[(u32, &str)], cited: LineRange) -> Option<FixEdit> {
        let is_here = |window: &&[(u32, &str)]| {
            let same = window.iter().zip(&self.old).all(|((_, text), old)| text == old);
            let follows = window.windows(2).all(|pair| pair[0].0.checked_add(1) == Some(pair[1].0));
            same && follows
        };
        let places: Vec<u32> =
            file.windows(self.old.len()).filter(is_here).map(|window| window[0].0).collect();
        let length = u32::try_from(self.old.len()).ok()?;
        let near: Vec<u32> = places
            .iter()
            .copied()
            .filter(|first| {
                let last = first.saturating_add(length - 1);
                LineRange { first: *first, last }.overlaps(cited)
            })
            .collect();
        let first = match (near.as_slice(), places.as_slice()) {
            ([one], _) | ([], [one]) => *one,
            _ => return None,
        };
        Some(self.trim_edit(first, file))
    }

    /// Trims lines that are equal on both sides. Keeps one old line, since an edit cannot replace zero lines.
    fn trim_edit(&self, first: u32, file: &[(u32, &str)]) -> FixEdit {
        let same_start = self.old.iter().zip(&self.new).take_while(|(old, new)| old == new).count();
        let start = same_start.min(self.old.len() - 1);
        let (old, new) = (&self.old[start..], &self.new[start..]);
        let same_end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new);
        let end = same_end.count().min(old.len() - 1);
        let first = first.saturating_add(u32::try_from(start).unwrap_or_default());
        let last = first.saturating_add(u32::try_from(old.len() - end - 1).unwrap_or_default());
        FixEdit {
            lines: LineRange { first, last },
            replacement: new[..new.len() - end].to_vec(),
            has_next: file.iter().any(|(number, _)| last.checked_add(1) == Some(*number)),
        }
    }
}

fn without_space(lines: &[String]) -> Option<Vec<String>> {
    let stripped = lines.iter().map(|line| {
        if line.is_empty() {
            Some(String::new())
        } else {
            line.strip_prefix(' ').map(str::to_owned)
        }
    });
    stripped.collect()
}

/// Returns the lines of a diff after its header. A header precedes the first change, and names files in a pair of lines;
/// a single `--- ` line is a removed comment, for instance of SQL.
fn without_headers(diff: &str) -> impl Iterator<Item = &str> {
    let mut lines: Vec<&str> = diff.lines().collect();
    let start = lines.iter().take_while(|line| is_before_header(line)).count();
    let names_files = |line: &str| line.contains('/') || line.contains('.');
    let is_pair = match lines.get(start..start + 2) {
        Some([old, new]) => {
            let marks = old.starts_with("--- ") && new.starts_with("+++ ");
            marks && names_files(old) && names_files(new)
        }
        _ => false,
    };
    lines.drain(..start + if is_pair { 2 } else { 0 });
    lines.into_iter()
}

fn is_before_header(line: &str) -> bool {
    ["diff --git ", "index ", "```"].iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "one\n  two\nthree\n  two\nfive";

    #[track_caller]
    fn check(diff: &str, cited: u32, expect: Option<(u32, u32, &[&str])>) {
        let file: Vec<(u32, &str)> = (1..).zip(FILE.lines()).collect();
        let edit = DiffSides::parse(diff).and_then(|sides| {
            let cited = LineRange::from_line(cited);
            sides
                .locate_edit(&file, cited)
                .or_else(|| sides.without_mark_space()?.locate_edit(&file, cited))
        });
        let lines: Vec<String>;
        let got = match &edit {
            Some(edit) => {
                lines = edit.replacement.clone();
                Some((edit.lines.first, edit.lines.last, lines))
            }
            None => None,
        };
        let expect = expect.map(|(first, last, lines)| {
            (first, last, lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
        });
        assert_eq!(got, expect, "{diff}");
    }

    #[test]
    fn a_diff_is_found_where_the_finding_is() {
        check("-  two\n+  zwei", 4, Some((4, 4, &["  zwei"])));
        check("-  two\n+  zwei", 2, Some((2, 2, &["  zwei"])));
        check(
            "--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@\n one\n-  two\n+  2",
            1,
            Some((2, 2, &["  2"])),
        );
        check("-three", 1, Some((3, 3, &[])));
    }

    #[test]
    fn a_place_that_is_not_certain_is_none() {
        check("-  two\n+  zwei", 5, None);
        check("-four\n+vier", 1, None);
        check("+vier", 1, None);
        check("@@ -1 +1 @@\n-one\n+1\n@@ -3 +3 @@\n-three\n+3", 1, None);
        check("use `zwei` instead", 2, None);
        check("", 2, None);
    }

    #[test]
    fn lines_that_stay_are_not_part_of_an_edit() {
        check(" one\n-  two\n+  2\n three", 2, Some((2, 2, &["  2"])));
        check(" one\n+one and a half\n   two", 1, Some((2, 2, &["one and a half", "  two"])));
    }

    #[test]
    fn a_blank_after_the_mark_is_understood() {
        check("- three\n+ drei", 3, Some((3, 3, &["drei"])));
    }

    #[test]
    fn a_change_with_too_many_lines_is_no_edit_rather_than_half_of_one() {
        let file: Vec<String> = (0..120).map(|line| format!("line {line}")).collect();
        let numbered: Vec<(u32, &str)> = (1..).zip(file.iter().map(String::as_str)).collect();
        let replace_all = |added: usize| {
            let old: String = file.iter().map(|line| format!("-{line}\n")).collect();
            let new: String = (0..added).map(|line| format!("+new {line}\n")).collect();
            DiffSides::parse(&format!("{old}{new}"))
                .and_then(|sides| sides.locate_edit(&numbered, LineRange::from_line(1)))
                .map(|edit| (edit.lines.last, edit.replacement.len()))
        };
        assert_eq!(replace_all(120), Some((120, 120)));
        assert_eq!(replace_all(FIX_LINES_MAX), Some((120, FIX_LINES_MAX)));
        assert_eq!(replace_all(FIX_LINES_MAX + 1), None);
        assert_eq!(replace_all(FIX_LINES_MAX * 3), None);
    }

    #[test]
    fn a_removed_comment_that_looks_like_a_header_is_part_of_the_edit() {
        let file = [(1, "-- see x.y"), (2, "select 1;"), (3, "++ a.b")];
        let locate = |diff: &str| {
            let edit = DiffSides::parse(diff)?.locate_edit(&file, LineRange::from_line(1))?;
            Some((edit.lines.first, edit.lines.last, edit.replacement))
        };
        let header = "--- a/x.sql\n+++ b/x.sql\n";
        let removal = "--- see x.y\n-select 1;\n+select 2;";
        let expected = Some((1, 2, vec!["select 2;".to_owned()]));
        assert_eq!(locate(removal), expected);
        assert_eq!(locate(&format!("{header}{removal}")), expected);
        assert_eq!(locate(&format!("```diff\n{header}@@ -1,2 +1 @@\n{removal}\n```")), expected);
        let addition = " select 1;\n--- see x.y\n+++ a.b\n";
        assert_eq!(locate(addition), None);
        let last = "-select 1;\n-++ a.b\n+++ c.d";
        assert_eq!(locate(last), Some((2, 3, vec!["++ c.d".to_owned()])));
    }

    #[test]
    fn a_diff_of_two_files_is_no_edit() {
        let two = "--- a/x\n+++ b/x\n-one\n+1\n--- a/y\n+++ b/y\n-three\n+3";
        check(two, 1, None);
        check("diff --git a/x b/x\n-one\n+1\ndiff --git a/y b/y\n-  two\n+2", 1, None);
    }
}
