//! A text buffer that indents, and wraps where that does no harm.

use crate::step::ShellCommand;

/// The minimum width of wrapped text, however deep its indentation.
const NARROWEST: usize = 24;

/// The output of the text form.
pub(super) struct TextPage {
    text: String,
    columns: usize,
}

impl TextPage {
    /// Creates an empty page; our own sentences, headings and lists are wrapped at this width.
    pub(super) fn new(columns: usize) -> Self {
        TextPage { text: String::new(), columns }
    }

    /// Returns the text with a single line break at the end.
    pub(super) fn into_text(self) -> String {
        let mut text = self.text.trim_end().to_owned();
        text.push('\n');
        text
    }

    /// Adds a line as it is.
    pub(super) fn push_line(&mut self, indent: usize, text: &str) {
        self.push_indent(indent);
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Adds a blank line unless there is one already.
    pub(super) fn push_gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Adds a heading after a blank line, wrapped if it is long.
    pub(super) fn push_heading(&mut self, text: &str) {
        self.push_gap();
        self.push_paragraph(0, text);
    }

    /// Adds text whose lines are only indented, not wrapped.
    pub(super) fn push_verbatim(&mut self, indent: usize, text: &str) {
        for line in text.trim_end().lines() {
            match line.trim_end() {
                "" => self.text.push('\n'),
                line => self.push_line(indent, line),
            }
        }
    }

    /// Adds text with long lines wrapped.
    pub(super) fn push_paragraph(&mut self, indent: usize, text: &str) {
        self.push_item(indent, "", text);
    }

    /// Adds a list entry; continuation lines are indented as far as its text.
    pub(super) fn push_item(&mut self, indent: usize, marker: &str, text: &str) {
        let hang = indent + marker.chars().count();
        let mut start = marker;
        for line in text.trim_end().lines() {
            let own = line.len() - line.trim_start().len();
            let room = self.columns.saturating_sub(hang + own).max(NARROWEST);
            for part in wrap_line(line.trim(), room) {
                match (start, part) {
                    ("", "") => self.text.push('\n'),
                    ("", part) => self.push_line(hang + own, part),
                    (marker, part) => self.push_line(indent, format!("{marker}{part}").trim_end()),
                }
                start = "";
            }
        }
        if !start.is_empty() {
            self.push_line(indent, start.trim_end());
        }
    }

    /// Adds a list with dashes.
    pub(super) fn push_list(&mut self, indent: usize, entries: &[String]) {
        for entry in entries {
            self.push_item(indent, "- ", entry);
        }
    }

    /// Adds a command, never wrapped. Only its first line is indented: the following lines may be inside quotes.
    pub(super) fn push_command(&mut self, indent: usize, command: &ShellCommand) {
        self.push_line(indent, &command.line);
    }

    fn push_indent(&mut self, indent: usize) {
        self.text.extend(std::iter::repeat_n(' ', indent));
    }
}

/// Splits a line into pieces at most `width` wide, unless a single word is wider.
fn wrap_line(line: &str, width: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some(at) = break_position(rest, width) {
        parts.push(rest[..at].trim_end());
        rest = rest[at..].trim_start();
    }
    parts.push(rest);
    parts
}

/// The position at which a line has to be broken: the last space within the width, else the first one after it.
fn break_position(line: &str, width: usize) -> Option<usize> {
    let (end, at_end) = line.char_indices().nth(width)?;
    let within = match at_end {
        ' ' => Some(end),
        _ => line[..end].rfind(' '),
    };
    let within = within.filter(|at| *at > 0);
    within.or_else(|| line[end..].find(' ').map(|at| end + at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_entries_hang_and_long_words_stay_whole() {
        let word = "x".repeat(120);
        let mut page = TextPage::new(96);
        page.push_list(2, &["one two ".repeat(15), word.clone(), "a\n  b".to_owned()]);
        let text = page.into_text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("  - one two") && lines[0].len() <= 96, "{text}");
        assert!(lines[1].starts_with("    one") || lines[1].starts_with("    two"), "{text}");
        assert_eq!(lines[2], format!("  - {word}"));
        assert_eq!(lines[3..], ["  - a", "      b"]);
    }

    #[test]
    fn wrapping_breaks_at_spaces_and_never_inside_a_character() {
        assert_eq!(wrap_line("ää öö üü", 5), ["ää öö", "üü"]);
        assert_eq!(wrap_line("äääääääää b", 3), ["äääääääää", "b"]);
        assert_eq!(wrap_line("", 3), [""]);
    }
}
