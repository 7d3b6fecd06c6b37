//! Sources and positions in them. Spans are byte offsets into the whole file; lines and columns are computed only when
//! they are displayed.

use std::ops::{Deref, Range};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

/// A half-open range of byte offsets into a file's text.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// A span from byte offsets. Offsets beyond 4 GiB are clamped, since no file that large is read.
    pub fn new(start: usize, end: usize) -> Self {
        Span { start: clamp_offset(start), end: clamp_offset(end.max(start)) }
    }

    /// The span as a range for slicing.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Number of bytes covered.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The text under the span; empty if the span does not fit the text.
    pub fn slice(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or("")
    }
}

fn clamp_offset(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// A position for people: both numbers count from 1, columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TextPosition {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl TextPosition {
    /// The position of a byte offset in `text`.
    pub fn of_offset(text: &str, offset: usize) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line_start = memchr::memrchr(b'\n', before.as_bytes()).map_or(0, |at| at + 1);
        let lines = memchr::memchr_iter(b'\n', before.as_bytes()).count();
        let columns = before[line_start..].chars().count();
        TextPosition {
            line: u32::try_from(lines + 1).unwrap_or(u32::MAX),
            column: u32::try_from(columns + 1).unwrap_or(u32::MAX),
        }
    }
}

/// A shared text. Created from a `String` without copying, and cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedText(Arc<String>);

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        SharedText(Arc::new(text))
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        SharedText::from(text.to_owned())
    }
}

/// A file's text with the path under which it is displayed. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    path: Utf8PathBuf,
    text: SharedText,
}

impl Source {
    pub fn new(path: impl Into<Utf8PathBuf>, text: impl Into<SharedText>) -> Self {
        Source { path: path.into(), text: text.into() }
    }

    /// The path shown in diagnostics.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The whole text, shared.
    pub fn shared_text(&self) -> SharedText {
        self.text.clone()
    }

    /// The same text under another path, for example one relative to the user's current folder.
    pub fn with_path(&self, path: impl Into<Utf8PathBuf>) -> Self {
        Source { path: path.into(), text: self.text.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "ab\nøæx\n";
        assert_eq!(TextPosition::of_offset(text, 0), TextPosition { line: 1, column: 1 });
        assert_eq!(TextPosition::of_offset(text, 3), TextPosition { line: 2, column: 1 });
        assert_eq!(TextPosition::of_offset(text, 7), TextPosition { line: 2, column: 3 });
        assert_eq!(TextPosition::of_offset(text, 99), TextPosition { line: 3, column: 1 });
    }

    #[test]
    fn an_offset_inside_a_character_counts_as_its_start() {
        assert_eq!(TextPosition::of_offset("ø", 1), TextPosition { line: 1, column: 1 });
    }
}
