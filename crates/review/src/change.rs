//! The change under review: its files, hunks and lines.

use camino::{Utf8Path, Utf8PathBuf};
pub use repertoire_git::diff::{DiffHunk, HunkLine, LineKind};
use serde::{Deserialize, Serialize};

/// A range of lines on the new side of a file: inclusive at both ends, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineRange {
    pub first: u32,
    pub last: u32,
}

impl LineRange {
    /// The range of a single line.
    pub fn from_line(line: u32) -> Self {
        LineRange { first: line, last: line }
    }

    /// Returns true if the ranges have a line in common.
    pub fn overlaps(self, other: LineRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Extends the range by `by` lines on both sides, but not before line 1.
    #[must_use]
    pub fn widened_by(self, by: u32) -> Self {
        LineRange {
            first: self.first.saturating_sub(by).max(1),
            last: self.last.saturating_add(by),
        }
    }
}

impl std::fmt::Display for LineRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// The change under review. Files are sorted by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewChange {
    pub files: Vec<ReviewedFile>,
    /// Files that are not reviewed, with the reasons.
    pub skipped: Vec<SkippedFile>,
}

impl ReviewChange {
    /// Returns the reviewed file at a path.
    pub fn find_file(&self, path: &Utf8Path) -> Option<&ReviewedFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// A file that is not reviewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedFile {
    pub path: Utf8PathBuf,
    /// The reason, for people: `binary`, `deleted`, `12,345 lines (5,000 at most)`.
    pub reason: String,
    /// True if the file would have been reviewed but for a limit or its encoding. A report warns about these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missed: bool,
}

/// A file that is reviewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewedFile {
    /// The path, relative to the repository.
    pub path: Utf8PathBuf,
    /// The path before the change, if the file was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<Utf8PathBuf>,
    pub status: FileStatus,
    /// The changed hunks. If the whole file is reviewed, one hunk of added lines.
    pub hunks: Vec<DiffHunk>,
    /// The content of the file after the change.
    pub text: String,
    /// The lower-case name of the language, if the file name tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    pub tier: FilePromptTier,
}

/// The kind of change to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileStatus {
    Added,
    Modified,
    /// The file was moved, and may have been modified as well.
    Renamed,
    /// The file is reviewed as a whole, whether it changed or not.
    Whole,
}

/// The amount of a file that goes into a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilePromptTier {
    /// The diff and the whole file.
    Full,
    /// The diff and the beginning of the file; agents can read the rest.
    Preview,
}

impl ReviewedFile {
    /// The number of lines after the change.
    pub fn line_count(&self) -> u32 {
        u32::try_from(self.text.lines().count()).unwrap_or(u32::MAX)
    }

    /// The number of added lines.
    pub fn added_count(&self) -> usize {
        self.count_lines(LineKind::Added)
    }

    /// The number of removed lines.
    pub fn removed_count(&self) -> usize {
        self.count_lines(LineKind::Removed)
    }

    fn count_lines(&self, kind: LineKind) -> usize {
        self.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind).count()
    }

    /// Returns true if the change added this line.
    pub fn is_added_line(&self, line: u32) -> bool {
        let lines = self.hunks.iter().flat_map(|hunk| &hunk.lines);
        lines.into_iter().any(|known| known.kind == LineKind::Added && known.new == Some(line))
    }

    /// Maps a line number of the old side to the new side. Returns `None` if the line was removed.
    pub fn new_line_number(&self, old: u32) -> Option<u32> {
        let mut shift = 0;
        for line in self.hunks.iter().flat_map(|hunk| &hunk.lines) {
            match (line.old, line.new) {
                (Some(before), now) if before == old => return now,
                (Some(before), _) if before > old => break,
                (Some(before), Some(now)) => shift = i64::from(now) - i64::from(before),
                (Some(_), None) => shift -= 1,
                (None, _) => shift += 1,
            }
        }
        u32::try_from(i64::from(old) + shift).ok()
    }

    /// The text of the lines in a range. Lines beyond the end of the file are left out.
    pub fn lines_text(&self, range: LineRange) -> String {
        let count = (range.last as usize + 1).saturating_sub(range.first as usize);
        let lines = self.text.lines().skip(range.first.saturating_sub(1) as usize).take(count);
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns true if the range contains an added line, or is adjacent to removed lines.
    pub fn touches_range(&self, range: LineRange) -> bool {
        self.hunks.iter().any(|hunk| hunk_touches(hunk, range))
    }
}

fn hunk_touches(hunk: &DiffHunk, range: LineRange) -> bool {
    let within = |line: u32| range.first <= line && line <= range.last;
    // Removed lines have no number on the new side: they lie between `next - 1` and `next`.
    let mut next = hunk.new_start;
    for line in &hunk.lines {
        match (line.kind, line.new) {
            (LineKind::Removed, _) if within(next) || within(next.saturating_sub(1)) => {
                return true;
            }
            (LineKind::Added, Some(number)) if within(number) => return true,
            _ => {}
        }
        next = line.new.map_or(next, |number| number + 1);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(lines: &[(LineKind, &str)]) -> ReviewedFile {
        let (mut old, mut new) = (0, 0);
        let lines = lines.iter().map(|(kind, text)| {
            old += u32::from(*kind != LineKind::Added);
            new += u32::from(*kind != LineKind::Removed);
            HunkLine {
                kind: *kind,
                old: (*kind != LineKind::Added).then_some(old),
                new: (*kind != LineKind::Removed).then_some(new),
                text: (*text).to_owned(),
            }
        });
        ReviewedFile {
            path: "a.rs".into(),
            old_path: None,
            status: FileStatus::Modified,
            hunks: vec![DiffHunk {
                old_start: 1,
                new_start: 1,
                section: String::new(),
                lines: lines.collect(),
            }],
            text: String::new(),
            language: None,
            tier: FilePromptTier::Full,
        }
    }

    #[test]
    fn a_line_of_before_is_found_again() {
        use LineKind::{Added, Context, Removed};
        let file = file(&[
            (Context, "one"),
            (Added, "two"),
            (Context, "three"),
            (Removed, "gone"),
            (Removed, "gone too"),
            (Context, "five"),
        ]);
        let found: Vec<Option<u32>> = (1..=7).map(|line| file.new_line_number(line)).collect();
        assert_eq!(found, [Some(1), Some(3), None, None, Some(4), Some(5), Some(6)]);
        assert!(file.is_added_line(2) && !file.is_added_line(3));
    }

    #[test]
    fn a_range_touches_what_came_and_where_something_went() {
        use LineKind::{Added, Context, Removed};
        let file = file(&[
            (Context, "one"),
            (Added, "two"),
            (Context, "three"),
            (Context, "four"),
            (Removed, "gone"),
            (Context, "five"),
            (Context, "six"),
        ]);
        let touched: Vec<u32> =
            (1..=7).filter(|line| file.touches_range(LineRange::from_line(*line))).collect();
        assert_eq!(touched, [2, 4, 5]);
        assert!(file.touches_range(LineRange { first: 1, last: 9 }));
    }
}
