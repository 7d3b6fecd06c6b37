//! Lazily computed indexes of a file: its lines, which of them were added, and which are equal.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use camino::Utf8Path;

use crate::change::{LineKind, ReviewChange, ReviewedFile};

/// A changed file with fast access to its lines.
#[derive(Debug)]
pub struct FileIndex<'a> {
    file: &'a ReviewedFile,
    /// The byte range of each line, without its line break.
    lines: OnceLock<Vec<Range<usize>>>,
    came: OnceLock<HashSet<u32>>,
    /// For each line, the number of lines before it with the same text.
    alike: OnceLock<Vec<u32>>,
}

impl<'a> FileIndex<'a> {
    /// Creates an index. Its parts are computed on first use.
    pub fn new(file: &'a ReviewedFile) -> Self {
        FileIndex { file, lines: OnceLock::new(), came: OnceLock::new(), alike: OnceLock::new() }
    }

    pub fn file(&self) -> &'a ReviewedFile {
        self.file
    }

    pub fn path(&self) -> &'a Utf8Path {
        &self.file.path
    }

    /// The text of a line, by its index from 0.
    pub fn line_at(&self, at: usize) -> Option<&'a str> {
        let range = self.line_ranges().get(at)?;
        self.file.text.get(range.clone())
    }

    /// The number of lines.
    pub fn line_count(&self) -> usize {
        self.line_ranges().len()
    }

    fn line_ranges(&self) -> &[Range<usize>] {
        self.lines.get_or_init(|| {
            let mut next = 0;
            let lines = self.file.text.split_inclusive('\n').map(|line| {
                let start = next;
                next += line.len();
                let text = line.strip_suffix('\n').unwrap_or(line);
                let text =
                    text.strip_suffix('\r').filter(|_| text.len() < line.len()).unwrap_or(text);
                start..start + text.len()
            });
            lines.collect()
        })
    }

    /// Returns true if the change added this line, counted from 1.
    pub fn is_added_line(&self, line: u32) -> bool {
        let came = self.came.get_or_init(|| {
            let lines = self.file.hunks.iter().flat_map(|hunk| &hunk.lines);
            lines.filter(|line| line.kind == LineKind::Added).filter_map(|line| line.new).collect()
        });
        came.contains(&line)
    }

    /// The number of lines before a line (by its index from 0) with the same text, ignoring whitespace.
    pub(super) fn equal_lines_before(&self, at: usize) -> u32 {
        let alike = self.alike.get_or_init(|| {
            let mut seen: HashMap<String, u32> = HashMap::new();
            let count = |line: &Range<usize>| {
                let count =
                    seen.entry(without_whitespace(&self.file.text[line.clone()])).or_default();
                *count += 1;
                *count - 1
            };
            self.line_ranges().iter().map(count).collect()
        });
        alike.get(at).copied().unwrap_or_default()
    }
}

/// The indexed files of a change, by path.
#[derive(Debug)]
pub struct IndexedFiles<'a>(BTreeMap<&'a Utf8Path, FileIndex<'a>>);

impl<'a> IndexedFiles<'a> {
    /// Creates an index for each file of a change.
    pub fn from_change(change: &'a ReviewChange) -> Self {
        let files = change.files.iter();
        IndexedFiles(files.map(|file| (file.path.as_path(), FileIndex::new(file))).collect())
    }

    /// Returns the file at a path.
    pub fn get(&self, path: &Utf8Path) -> Option<&FileIndex<'a>> {
        self.0.get(path)
    }
}

/// Removes all whitespace from a line.
pub(super) fn without_whitespace(line: &str) -> String {
    line.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprints::tests::whole;

    #[test]
    fn an_index_says_what_the_file_says() {
        let mut file = whole("a.rs", "call(x);\nold();\n  call( x );\ncall(x);\n");
        file.hunks[0].lines[1].kind = LineKind::Context;
        let index = FileIndex::new(&file);
        let came: Vec<u32> = (0..9).filter(|line| index.is_added_line(*line)).collect();
        assert_eq!(came, (0..9).filter(|line| file.is_added_line(*line)).collect::<Vec<u32>>());
        assert_eq!(came, [1, 3, 4]);
        let alike: Vec<u32> = (0..5).map(|at| index.equal_lines_before(at)).collect();
        assert_eq!(alike, [0, 0, 1, 2, 0]);
        for text in ["", "\n", "a", "a\r\nb\r", "a\n\nb\r\n", "\r\n\n\r"] {
            let file = whole("a.rs", text);
            let index = FileIndex::new(&file);
            let lines: Vec<&str> =
                (0..index.line_count()).filter_map(|at| index.line_at(at)).collect();
            assert_eq!(lines, text.lines().collect::<Vec<&str>>(), "{text:?}");
        }
    }

    #[test]
    fn files_are_found_by_their_paths() {
        let change = ReviewChange {
            files: vec![whole("b.rs", "b\n"), whole("a.rs", "a\n")],
            skipped: Vec::new(),
        };
        let files = IndexedFiles::from_change(&change);
        assert_eq!(files.get("a.rs".into()).unwrap().line_at(0), Some("a"));
        assert!(files.get("c.rs".into()).is_none());
    }
}
