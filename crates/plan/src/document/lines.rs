//! Parses the lines of a plan: indentation, bullets, boxes, headings and fences. Edits must preserve every other byte,
//! so lines are kept with their positions, and nothing is rewritten.

use std::ops::Range;

use super::TaskMark;

/// A line without its line break.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanLine<'a> {
    /// Byte offset in the file.
    pub(super) start: usize,
    /// The text without `\n` or `\r\n`.
    pub(super) text: &'a str,
}

impl PlanLine<'_> {
    /// Byte offset of the end of the line, before its line break.
    pub(super) fn end_offset(&self) -> usize {
        self.start + self.text.len()
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

/// Splits a text into lines, without a leading byte order mark.
pub(super) fn split_lines(text: &str) -> Vec<PlanLine<'_>> {
    let mut start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut out = Vec::new();
    for piece in text[start..].split_inclusive('\n') {
        let line = piece.strip_suffix('\n').unwrap_or(piece);
        out.push(PlanLine { start, text: line.strip_suffix('\r').unwrap_or(line) });
        start += piece.len();
    }
    out
}

/// The columns and bytes of leading whitespace of a text that starts at `column`.
pub(super) fn measure_indent(text: &str, column: usize) -> (usize, usize) {
    let mut columns = column;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4 - columns % 4,
            _ => return (columns, at),
        }
    }
    (columns, text.len())
}

/// The marker of a list item.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListBullet {
    /// The column of the marker.
    pub(super) column: usize,
    /// The column of the content.
    pub(super) content_column: usize,
    /// The byte offset of the content in the line.
    pub(super) content: usize,
}

impl ListBullet {
    /// The column from which a line belongs to the item. Two columns are enough, even for `1.`, which many authors
    /// indent by two.
    pub(super) fn content_margin(&self) -> usize {
        self.content_column.min(self.column + 2)
    }
}

/// Parses a bullet at a byte and column of a line.
pub(super) fn parse_bullet(line: &str, at: usize, column: usize) -> Option<ListBullet> {
    let rest = line.get(at..)?;
    let sign = match rest.bytes().next()? {
        b'-' | b'*' | b'+' => 1,
        b'0'..=b'9' => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let ends = matches!(rest.as_bytes().get(digits), Some(b'.' | b')'));
            (digits <= 9 && ends).then_some(digits + 1)?
        }
        _ => return None,
    };
    let after = &rest[sign..];
    let (content_column, blanks) = measure_indent(after, column + sign);
    if blanks == 0 {
        return None;
    }
    let content_column = match content_column - column - sign {
        1..=4 => content_column,
        _ => column + sign + 1,
    };
    Some(ListBullet { column, content_column, content: at + sign + blanks })
}

/// A checkbox at the start of an item.
#[derive(Clone, Debug)]
pub(super) struct CheckBox {
    pub(super) mark: TaskMark,
    /// True if the character in the box is a known mark.
    pub(super) known: bool,
    /// True if the box is ticked, no matter what follows it.
    pub(super) ticked: bool,
    /// True if a `*` after the box marks it as optional.
    pub(super) optional: bool,
    /// The length in bytes, with `?`.
    pub(super) bytes: usize,
}

/// Parses a checkbox at the start of a text. `[link](to)`, `[note]` and `[1]` are not boxes; `[y]` and `[]` are boxes
/// with an unknown mark.
pub(super) fn parse_check_box(text: &str) -> Option<CheckBox> {
    let inner = text.strip_prefix('[')?;
    let close = inner.char_indices().take(4).find(|(_, c)| *c == ']').map(|(at, _)| at)?;
    let (sign, after) = (&inner[..close], &inner[close + 1..]);
    let question = after.starts_with('?');
    let after = after.strip_prefix('?').unwrap_or(after);
    let optional = after.starts_with('*');
    let after = after.strip_prefix('*').unwrap_or(after);
    if !after.is_empty() && !after.starts_with(char::is_whitespace) {
        return None;
    }
    let mark = match sign {
        " " => Some(TaskMark::Open),
        "x" | "X" => Some(TaskMark::Implemented),
        "R" | "r" => Some(TaskMark::Reviewed),
        "~" => Some(TaskMark::Blocked),
        "!" => Some(TaskMark::Failed),
        _ => None,
    };
    let trimmed = sign.trim();
    if mark.is_none()
        && (trimmed.chars().count() > 1 || trimmed.chars().any(|c| c.is_ascii_digit() || c == '['))
    {
        return None;
    }
    Some(CheckBox {
        optional,
        known: mark.is_some(),
        ticked: mark.is_some_and(TaskMark::is_done),
        mark: match (question, mark) {
            (true, Some(_)) => TaskMark::ManualQa,
            (_, Some(mark)) => mark,
            (_, None) => TaskMark::Blocked,
        },
        bytes: 1 + close + 1 + usize::from(question),
    })
}

/// The level of a heading `## Title ##`, and the range of its text in the line.
pub(super) fn parse_heading(line: &str) -> Option<(u8, Range<usize>)> {
    let (columns, at) = measure_indent(line, 0);
    let level = line[at..].bytes().take_while(|byte| *byte == b'#').count();
    if columns > 3 || !(1..=6).contains(&level) {
        return None;
    }
    let rest = &line[at + level..];
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return None;
    }
    let start = line.len() - rest.trim_start().len();
    let closed = rest.trim_end().trim_end_matches('#');
    let text = if closed.ends_with([' ', '\t']) || closed.is_empty() {
        closed.trim()
    } else {
        rest.trim()
    };
    Some((level as u8, start..start + text.len()))
}

/// The level of an underlined heading: `===` or `---`.
pub(super) fn underline_level(line: &str) -> Option<u8> {
    let text = line.trim();
    let (columns, _) = measure_indent(line, 0);
    let only = |sign: char| text.chars().all(|c| c == sign);
    if text.len() < 2 || columns > 3 {
        return None;
    }
    if only('=') {
        Some(1)
    } else if only('-') {
        Some(2)
    } else {
        None
    }
}

/// A code fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeFence {
    sign: u8,
    length: usize,
}

impl CodeFence {
    /// Parses the fence that an unindented text opens.
    pub(super) fn opened_by(text: &str) -> Option<Self> {
        let sign = text.bytes().next().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let length = text.bytes().take_while(|byte| *byte == sign).count();
        let info = &text[length..];
        (length >= 3 && (sign == b'~' || !info.contains('`'))).then_some(CodeFence { sign, length })
    }

    /// Returns true if an unindented text closes the fence.
    pub(super) fn is_closed_by(self, text: &str) -> bool {
        let length = text.bytes().take_while(|byte| *byte == self.sign).count();
        length >= self.length && text[length..].trim().is_empty()
    }
}

/// The number of frontmatter lines at the start: 0 unless they look like YAML and contain no box.
pub(super) fn count_frontmatter_lines(lines: &[PlanLine<'_>]) -> usize {
    if lines.first().is_none_or(|line| line.text.trim_end() != "---") {
        return 0;
    }
    if lines.get(1).is_none_or(|line| !is_field(line.text)) {
        return 0;
    }
    for (at, line) in lines.iter().enumerate().skip(1) {
        if matches!(line.text.trim_end(), "---" | "...") {
            return at + 1;
        }
        if has_box(line.text) {
            return 0;
        }
    }
    0
}

fn is_field(text: &str) -> bool {
    let key = text.split(':').next().unwrap_or_default();
    text.contains(':')
        && !key.is_empty()
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// Returns true if the line would be a task where tasks are allowed.
pub(super) fn has_box(line: &str) -> bool {
    let (column, at) = measure_indent(line, 0);
    parse_bullet(line, at, column)
        .is_some_and(|bullet| parse_check_box(&line[bullet.content..]).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_told_from_links_and_notes() {
        let mark = |text: &str| parse_check_box(text).map(|found| (found.mark, found.known));
        for (text, expect) in [
            ("[ ] a", TaskMark::Open),
            ("[x] a", TaskMark::Implemented),
            ("[X]\ta", TaskMark::Implemented),
            ("[R] a", TaskMark::Reviewed),
            ("[r]", TaskMark::Reviewed),
            ("[~] a", TaskMark::Blocked),
            ("[!] a", TaskMark::Failed),
            ("[ ]? a", TaskMark::ManualQa),
            ("[x]? a", TaskMark::ManualQa),
            ("[ ]* a", TaskMark::Open),
        ] {
            assert_eq!(mark(text), Some((expect, true)), "{text}");
        }
        for text in ["[y] a", "[] a", "[  ] a", "[x ] a", "[-] a", "[é] a", "[y]? a"] {
            assert_eq!(mark(text), Some((TaskMark::Blocked, false)), "{text}");
        }
        for text in [
            "[x](to) a",
            "[1] a",
            "[ok] a",
            "[x]a",
            "[x",
            "[",
            "",
            "[x][y] a",
            "[[a]] b",
            "[ ]** a",
        ] {
            assert_eq!(mark(text), None, "{text}");
        }
    }

    #[test]
    fn headings_are_read_with_and_without_closing_signs() {
        let text =
            |line: &str| parse_heading(line).map(|(level, range)| (level, line[range].to_owned()));
        assert_eq!(text("## A b"), Some((2, "A b".into())));
        assert_eq!(text("  # A ##  "), Some((1, "A".into())));
        assert_eq!(text("# C#"), Some((1, "C#".into())));
        assert_eq!(text("###"), Some((3, String::new())));
        assert_eq!(text("# ##"), Some((1, String::new())));
        assert_eq!(text("#no"), None);
        assert_eq!(text("    # code"), None);
        assert_eq!(text("####### seven"), None);
    }

    #[test]
    fn a_fence_is_closed_by_its_own_sign_at_least_as_long() {
        let fence = CodeFence::opened_by("````md").unwrap();
        assert!(!fence.is_closed_by("```") && !fence.is_closed_by("~~~~"));
        assert!(fence.is_closed_by("`````  ") && !fence.is_closed_by("```` x"));
        assert_eq!(CodeFence::opened_by("``` a`b"), None);
        assert_eq!(CodeFence::opened_by("``"), None);
        assert!(CodeFence::opened_by("~~~ a`b").is_some());
    }

    #[test]
    fn tabs_and_numbers_are_bullets_too() {
        let of = |line: &str| {
            let (column, at) = measure_indent(line, 0);
            parse_bullet(line, at, column).map(|found| (found.column, found.content_column))
        };
        assert_eq!(of("- a"), Some((0, 2)));
        assert_eq!(of("\t- a"), Some((4, 6)));
        assert_eq!(of("12) a"), Some((0, 4)));
        assert_eq!(of("-      a"), Some((0, 2)));
        assert_eq!(of("-\ta"), Some((0, 4)));
        assert_eq!(of("-a"), None);
        assert_eq!(of("1234567890. a"), None);
        assert_eq!(of("-"), None);
    }

    #[test]
    fn a_rule_at_the_top_hides_no_tasks() {
        assert_eq!(count_frontmatter_lines(&split_lines("---\na: b\n---\n- [ ] x\n")), 3);
        assert_eq!(count_frontmatter_lines(&split_lines("---\n- [ ] x\n---\n")), 0);
        assert_eq!(count_frontmatter_lines(&split_lines("---\nNote: x\n- [ ] x\n---\n")), 0);
        assert_eq!(count_frontmatter_lines(&split_lines("---\na: b\n")), 0);
    }
}
