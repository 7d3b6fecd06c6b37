//! Fits a text into a number of characters and bytes, and marks the cut in the text.
//!
//! The marker counts towards the limit. If the limit is too small even for the marker, the result is the
//! marker alone, which is the only case that exceeds it.

use camino::Utf8Path;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The amount of a text that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextCut {
    /// The number of characters that were kept.
    pub kept_chars: usize,
    /// The number of characters of the complete text.
    pub total_chars: usize,
    /// The limit that applied, in characters; a token counts as four.
    pub limit: usize,
}

/// Estimates the number of tokens as a quarter of the bytes, rounded up. No tokenizer is involved.
pub fn estimate_tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// The remaining part of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextBudget {
    pub(crate) chars: usize,
    pub(crate) bytes: usize,
}

impl TextBudget {
    /// Creates a room from two limits, either of which may be missing.
    pub(crate) fn new(chars_max: Option<usize>, tokens_max: Option<usize>) -> Self {
        let bytes = tokens_max.map_or(usize::MAX, |tokens| tokens.saturating_mul(4));
        TextBudget { chars: chars_max.unwrap_or(usize::MAX), bytes }
    }

    /// Returns the tighter of two limits.
    pub(crate) fn tighten_by(self, other: TextBudget) -> Self {
        TextBudget { chars: self.chars.min(other.chars), bytes: self.bytes.min(other.bytes) }
    }

    /// Subtracts a text, in whole tokens.
    pub(crate) fn subtract_text(self, text: &str) -> Self {
        let bytes = estimate_tokens(text).saturating_mul(4);
        TextBudget {
            chars: self.chars.saturating_sub(text.chars().count()),
            bytes: self.bytes.saturating_sub(bytes),
        }
    }

    /// Returns true if a text fits without a cut.
    pub(crate) fn can_hold(self, text: &str) -> bool {
        text.len() <= self.bytes && (text.len() <= self.chars || text.chars().count() <= self.chars)
    }

    /// The limit in characters.
    pub(crate) fn char_limit(self) -> usize {
        self.chars.min(self.bytes)
    }

    /// Returns the length in bytes of the longest prefix of a text that fits.
    fn prefix_len(self, text: &str) -> usize {
        let by_chars = text.char_indices().nth(self.chars).map_or(text.len(), |(at, _)| at);
        let mut end = by_chars.min(self.bytes);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        end
    }
}

/// Returns the line that marks the cut in a text.
pub(crate) fn render_marker(kept_chars: usize, total_chars: usize, path: &Utf8Path) -> String {
    format!("[… cut: {kept_chars} of {total_chars} characters shown; read the rest in {path}]")
}

/// Fits a text into a room. `path` is the file that holds the complete text.
pub(crate) fn fit_text(
    text: String,
    room: TextBudget,
    path: &Utf8Path,
) -> (String, Option<TextCut>) {
    let total_chars = text.chars().count();
    fit_partial_text(text, total_chars, room, path)
}

/// Like [`fit`], for the start of a text that had `total_chars` characters before an earlier cut.
pub(crate) fn fit_partial_text(
    text: String,
    total_chars: usize,
    room: TextBudget,
    path: &Utf8Path,
) -> (String, Option<TextCut>) {
    if room.can_hold(&text) {
        return (text, None);
    }
    let (kept, closing) = keep_prefix(
        &text,
        room.subtract_text_exactly(&render_marker(total_chars, total_chars, path)),
    );
    let kept_chars = kept.chars().count();
    let mut out = kept.to_owned();
    ensure_line_break(&mut out);
    out.push_str(&closing);
    ensure_line_break(&mut out);
    out.push_str(&render_marker(kept_chars, total_chars, path));
    (out, Some(TextCut { kept_chars, total_chars, limit: room.char_limit() }))
}

impl TextBudget {
    /// Like [`Room::minus`], but counts exact bytes, plus a line break before and after the text.
    fn subtract_text_exactly(self, text: &str) -> Self {
        TextBudget {
            chars: self.chars.saturating_sub(text.chars().count() + 2),
            bytes: self.bytes.saturating_sub(text.len() + 2),
        }
    }
}

fn ensure_line_break(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Returns the longest start of a text that fits, and the fence that closes a code block left open in it.
fn keep_prefix(text: &str, room: TextBudget) -> (&str, String) {
    let kept = cut_at_line_end(text, room.prefix_len(text));
    let Some(open) = find_open_fence(kept) else { return (kept, String::new()) };
    let kept =
        cut_at_line_end(text, room.subtract_text_exactly(&open.closing_mark()).prefix_len(text));
    match find_open_fence(kept) {
        None => (kept, String::new()),
        Some(same) if same.start == open.start => (kept, same.closing_mark()),
        // The shorter prefix ends inside another fence, whose closing may need more room: stop before that
        // fence.
        Some(other) => (&text[..other.start], String::new()),
    }
}

/// Moves a cut back to the end of a line, if there is one in the last fifth of the kept text.
fn cut_at_line_end(text: &str, end: usize) -> &str {
    let kept = &text[..end];
    match kept.rfind('\n') {
        Some(at) if at >= end - end / 5 => &kept[..=at],
        _ => kept,
    }
}

struct OpenFence {
    start: usize,
    mark: char,
    count: usize,
}

impl OpenFence {
    fn closing_mark(&self) -> String {
        std::iter::repeat_n(self.mark, self.count).collect()
    }
}

/// Returns the code fence that is still open at the end of a text.
fn find_open_fence(text: &str) -> Option<OpenFence> {
    let mut open: Option<OpenFence> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let found = parse_fence_mark(line);
        match (&open, found) {
            (None, Some((mark, count, rest))) if mark == '~' || !rest.contains('`') => {
                open = Some(OpenFence { start, mark, count });
            }
            (Some(fence), Some((mark, count, rest)))
                if mark == fence.mark && count >= fence.count && rest.is_empty() =>
            {
                open = None;
            }
            _ => {}
        }
        start += line.len();
    }
    open
}

/// If a line starts with a code fence, returns its character, its length and the text after it. Fences in
/// lists are indented, so any indentation is accepted.
fn parse_fence_mark(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let count = line.chars().take_while(|c| *c == mark).count();
    (count >= 3).then(|| (mark, count, line[count..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, chars: usize, expect: &str) {
        let (out, _) =
            fit_text(text.to_owned(), TextBudget { chars, bytes: usize::MAX }, "p".into());
        assert_eq!(out, expect);
        assert!(out.chars().count() <= chars);
    }

    #[test]
    fn a_text_that_fits_is_kept_as_it_is() {
        check("ab", 2, "ab");
        assert_eq!(fit_text("øø".into(), TextBudget { chars: 2, bytes: 4 }, "p".into()).1, None);
    }

    #[test]
    fn a_long_text_is_cut_at_a_line_end_that_is_near() {
        let text = "aaaaaaaaaaaaaaaaaa\nbb\nccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc";
        check(
            text,
            80,
            "aaaaaaaaaaaaaaaaaa\nbb\n[… cut: 22 of 85 characters shown; read the rest in p]",
        );
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let text = "ø".repeat(100);
        let (out, cut) = fit_text(text, TextBudget { chars: 1000, bytes: 81 }, "p".into());
        assert_eq!(out, "øøøøøøøøøø\n[… cut: 10 of 100 characters shown; read the rest in p]");
        assert_eq!(cut, Some(TextCut { kept_chars: 10, total_chars: 100, limit: 81 }));
    }

    #[test]
    fn a_fence_that_the_cut_would_leave_open_is_closed() {
        let text = format!("intro\n````rust\n{}", "let x = 1;\n".repeat(20));
        check(
            &text,
            100,
            "intro\n````rust\nlet x = 1;\nlet x = 1;\n````\n[… cut: 36 of 235 characters shown; read the rest in p]",
        );
    }

    #[test]
    fn a_room_smaller_than_the_marker_gives_the_marker_alone() {
        let (out, cut) = fit_text("a".repeat(200), TextBudget { chars: 10, bytes: 10 }, "p".into());
        assert_eq!(out, "[… cut: 0 of 200 characters shown; read the rest in p]");
        assert_eq!(cut.unwrap().kept_chars, 0);
    }

    proptest! {
        #[test]
        fn a_cut_text_is_a_prefix_and_a_marker_within_the_room(
            text in "(```|~~~~|\n|`|x|ø| ){0,200}", chars in 60..200usize, bytes in 60..400usize,
        ) {
            let room = TextBudget { chars, bytes };
            let (out, cut) = fit_text(text.clone(), room, "p".into());
            let Some(cut) = cut else {
                prop_assert_eq!(out, text);
                return Ok(());
            };
            prop_assert!(room.can_hold(&out), "{} of {room:?}: {out:?}", out.len());
            let kept: String = text.chars().take(cut.kept_chars).collect();
            prop_assert!(out.starts_with(&kept));
            let marker = render_marker(cut.kept_chars, cut.total_chars, "p".into());
            prop_assert!(out.ends_with(&marker));
            let between = &out[kept.len()..out.len() - marker.len()];
            prop_assert!(between.trim().chars().all(|c| c == '`' || c == '~'));
            prop_assert!(find_open_fence(&out).is_none(), "{out:?}");
        }
    }
}
