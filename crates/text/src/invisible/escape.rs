//! Escape sequences for terminals: how long one is, and text without them.

const ESCAPE: char = '\u{1b}';

/// The end of the complete escape sequence that starts at a position; `None` if none does.
pub(super) fn end_of_sequence(text: &str, start: usize) -> Option<usize> {
    let mut chars = text[start..].char_indices().map(|(at, c)| (start + at, c));
    let (_, introducer) = chars.next()?;
    let command = match introducer {
        ESCAPE => chars.next()?.1,
        // The same commands as one character.
        '\u{90}' => 'P',
        '\u{98}' => 'X',
        '\u{9b}' => '[',
        '\u{9d}' => ']',
        '\u{9e}' => '^',
        '\u{9f}' => '_',
        _ => return None,
    };
    match command {
        '[' => end_of_command(chars, '\u{20}'..='\u{3f}', '\u{40}'..='\u{7e}'),
        ']' | 'P' | 'X' | '^' | '_' => end_of_string(chars),
        '\u{20}'..='\u{2f}' => end_of_command(chars, '\u{20}'..='\u{2f}', '\u{30}'..='\u{7e}'),
        '\u{30}'..='\u{7e}' => Some(start + 2),
        _ => None,
    }
}

fn end_of_command(
    chars: impl Iterator<Item = (usize, char)>,
    inner: std::ops::RangeInclusive<char>,
    last: std::ops::RangeInclusive<char>,
) -> Option<usize> {
    let mut rest = chars.skip_while(|(_, c)| inner.contains(c));
    rest.next().filter(|(_, c)| last.contains(c)).map(|(at, c)| at + c.len_utf8())
}

/// A string such as a window title or a link ends with BEL or `ESC \`, and never goes past its line.
fn end_of_string(mut chars: impl Iterator<Item = (usize, char)>) -> Option<usize> {
    let (at, last) = chars.find(|(_, c)| matches!(*c, '\u{7}' | '\u{9c}' | ESCAPE | '\n'))?;
    match last {
        '\n' => None,
        ESCAPE => chars.next().filter(|(_, c)| *c == '\\').map(|(at, _)| at + 1),
        last => Some(at + last.len_utf8()),
    }
}

/// Removes escape sequences and control characters from the output of a program; line breaks and tabs stay. A carriage
/// return becomes a line break, so that each state of a progress bar has its line.
pub fn without_terminal_control(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if let Some(end) = end_of_sequence(text, at) {
            at = end;
            continue;
        }
        at += c.len_utf8();
        match c {
            '\r' if text[at..].starts_with('\n') => {}
            '\r' => out.push('\n'),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}
