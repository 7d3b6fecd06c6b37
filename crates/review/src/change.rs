//! What is reviewed: files, their hunks, and which line is which.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

/// Lines of the new side of a file, both ends included, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineRange {
    /// The first.
    pub first: u32,
    /// The last.
    pub last: u32,
}

impl LineRange {
    /// One line.
    pub fn line(line: u32) -> Self {
        LineRange { first: line, last: line }
    }

    /// Whether they have a line in common.
    pub fn overlaps(self, other: LineRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// With so many lines more on both sides.
    #[must_use]
    pub fn widened(self, by: u32) -> Self {
        LineRange {
            first: self.first.saturating_sub(by).max(1),
            last: self.last.saturating_add(by),
        }
    }
}

impl std::fmt::Display for LineRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

/// All that is reviewed, in the order of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The files.
    pub files: Vec<ChangedFile>,
    /// Files that are not reviewed, and why.
    pub skipped: Vec<Skipped>,
}

impl Change {
    /// The file at a path.
    pub fn file(&self, path: &Utf8Path) -> Option<&ChangedFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// A file that is not reviewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its path.
    pub path: Utf8PathBuf,
    /// Why not, for people: `binary`, `deleted`, `12,345 lines (5,000 at most)`.
    pub reason: String,
    /// Whether it should have been looked at: nothing but a limit, or the way it is written, kept us from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missed: bool,
}

/// A file that is reviewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Its path below the repository.
    pub path: Utf8PathBuf,
    /// Its path before, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<Utf8PathBuf>,
    /// What happened to it.
    pub status: FileStatus,
    /// What has changed in it. Where the whole file is reviewed, one hunk of added lines.
    pub hunks: Vec<Hunk>,
    /// All of it, as it is now.
    pub text: String,
    /// The language, by its name in lower case, where the ending tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// How much of it goes into a prompt.
    pub tier: Tier,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileStatus {
    /// It is new.
    Added,
    /// It has changed.
    Modified,
    /// It is somewhere else, and may have changed.
    Renamed,
    /// Nothing; all of it is reviewed.
    Whole,
}

/// How much of a file goes into a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// The diff and all of it.
    Full,
    /// The diff and its beginning; the rest can be read.
    Preview,
}

/// A part of a file that has changed, with its surroundings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// Its first line before.
    pub old_start: u32,
    /// Its first line now.
    pub new_start: u32,
    /// What git says it is in: a function, mostly.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub section: String,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// What happened to it.
    pub kind: LineKind,
    /// Its number before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<u32>,
    /// Its number now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<u32>,
    /// Its text, without the line break.
    pub text: String,
}

/// What happened to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    /// It is as it was.
    Context,
    /// It came.
    Added,
    /// It went.
    Removed,
}

impl ChangedFile {
    /// How many lines it has now.
    pub fn line_count(&self) -> u32 {
        u32::try_from(self.text.lines().count()).unwrap_or(u32::MAX)
    }

    /// Lines that came.
    pub fn added(&self) -> usize {
        self.count(LineKind::Added)
    }

    /// Lines that went.
    pub fn removed(&self) -> usize {
        self.count(LineKind::Removed)
    }

    fn count(&self, kind: LineKind) -> usize {
        self.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind).count()
    }

    /// Whether the change brought a line.
    pub fn came(&self, line: u32) -> bool {
        let lines = self.hunks.iter().flat_map(|hunk| &hunk.lines);
        lines.into_iter().any(|known| known.kind == LineKind::Added && known.new == Some(line))
    }

    /// Which line a line of before is now; `None` if it went.
    pub fn new_line(&self, old: u32) -> Option<u32> {
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

    /// The text of lines, as far as there are such.
    pub fn lines_text(&self, range: LineRange) -> String {
        let count = (range.last as usize + 1).saturating_sub(range.first as usize);
        let lines = self.text.lines().skip(range.first.saturating_sub(1) as usize).take(count);
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Whether a range has a line that came, or stands where lines went.
    pub fn touches(&self, range: LineRange) -> bool {
        self.hunks.iter().any(|hunk| hunk.touches(range))
    }
}

impl Hunk {
    fn touches(&self, range: LineRange) -> bool {
        let within = |line: u32| range.first <= line && line <= range.last;
        // What went is between two lines that are still there.
        let mut next = self.new_start;
        for line in &self.lines {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(lines: &[(LineKind, &str)]) -> ChangedFile {
        let (mut old, mut new) = (0, 0);
        let lines = lines.iter().map(|(kind, text)| {
            old += u32::from(*kind != LineKind::Added);
            new += u32::from(*kind != LineKind::Removed);
            Line {
                kind: *kind,
                old: (*kind != LineKind::Added).then_some(old),
                new: (*kind != LineKind::Removed).then_some(new),
                text: (*text).to_owned(),
            }
        });
        ChangedFile {
            path: "a.rs".into(),
            old_path: None,
            status: FileStatus::Modified,
            hunks: vec![Hunk {
                old_start: 1,
                new_start: 1,
                section: String::new(),
                lines: lines.collect(),
            }],
            text: String::new(),
            language: None,
            tier: Tier::Full,
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
        let found: Vec<Option<u32>> = (1..=7).map(|line| file.new_line(line)).collect();
        assert_eq!(found, [Some(1), Some(3), None, None, Some(4), Some(5), Some(6)]);
        assert!(file.came(2) && !file.came(3));
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
            (1..=7).filter(|line| file.touches(LineRange::line(*line))).collect();
        assert_eq!(touched, [2, 4, 5]);
        assert!(file.touches(LineRange { first: 1, last: 9 }));
    }
}
