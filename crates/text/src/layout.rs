//! Lays out text for people: on one line, or wrapped to a number of columns.

use unicode_width::UnicodeWidthChar;

use crate::terminal::printable_line;

/// Collapses all whitespace, so that the text stands on one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the width of a text, in columns.
pub fn text_width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Returns the start of a text that is at most this wide.
pub fn prefix_of_width(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += char_width(*c);
        used > columns
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// Wraps a text at its words, with invisible characters shown. A word that is wider than the line has a line of its
/// own. Returns at least one line.
pub fn wrap_words(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace().map(printable_line) {
        let width = text_width(&word);
        if used > 0 && used + 1 + width > columns {
            lines.push(String::new());
            used = 0;
        }
        let Some(line) = lines.last_mut() else { continue };
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(&word);
        used += width;
    }
    lines
}

fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_put_on_one_line() {
        assert_eq!(one_line(" a \n b\t c "), "a b c");
        assert_eq!(one_line("\n"), "");
    }

    #[test]
    fn wide_characters_count_twice_and_marks_not_at_all() {
        assert_eq!(text_width("a日e\u{301}"), 4);
        assert_eq!(prefix_of_width("a日b", 2), "a");
        assert_eq!(prefix_of_width("a日b", 3), "a日");
        assert_eq!(prefix_of_width("ab", 9), "ab");
    }

    #[test]
    fn lines_break_between_words_and_hidden_characters_are_seen() {
        assert_eq!(wrap_words("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_words("a verylongword b", 4), ["a", "verylongword", "b"]);
        assert_eq!(wrap_words("日本 日本", 5), ["日本", "日本"]);
        assert_eq!(wrap_words("a\u{202e}b", 80), ["a⟨U+202E⟩b"]);
        assert_eq!(wrap_words(" ", 80), [""]);
    }
}
