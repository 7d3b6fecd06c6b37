//! Terminal escape sequences: finds their ends, and removes them from text.

const ESCAPE: char = '\u{1b}';

/// The maximum length of a string such as a window title or a link. A longer one is not treated as a sequence, since it
/// would hide text.
const STRING_BYTES_MAX: usize = 4096;

/// Finds the ends of escape sequences in one text. Positions have to increase from call to call, so that no byte is
/// searched twice.
#[derive(Debug, Default)]
pub(super) struct SequenceScanner {
    /// The position up to which no string terminator was found, counted from the last string.
    searched_to: usize,
}

impl SequenceScanner {
    /// The end of the complete escape sequence that starts at a position; `None` if there is none.
    pub(super) fn end_of_sequence(&mut self, text: &str, start: usize) -> Option<usize> {
        let mut chars = text[start..].char_indices().map(|(at, c)| (start + at, c));
        let (_, introducer) = chars.next()?;
        let command = match introducer {
            ESCAPE => chars.next()?.1,
            // The same commands as single characters (C1).
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
            ']' | 'P' | 'X' | '^' | '_' => {
                let (inside, _) = chars.next()?;
                self.end_of_string(text.as_bytes(), inside)
            }
            '\u{20}'..='\u{2f}' => end_of_command(chars, '\u{20}'..='\u{2f}', '\u{30}'..='\u{7e}'),
            '\u{30}'..='\u{7e}' => Some(start + 2),
            _ => None,
        }
    }

    /// Finds the end of a string: BEL, U+009C or `ESC \`. A string never extends past its line.
    fn end_of_string(&mut self, bytes: &[u8], inside: usize) -> Option<usize> {
        let limit = bytes.len().min(inside + STRING_BYTES_MAX);
        let from = self.searched_to.max(inside);
        let last = (from..limit).find(|at| may_end_string(bytes, *at));
        self.searched_to = last.unwrap_or(limit).max(from);
        let last = last?;
        match bytes[last] {
            b'\n' => None,
            b'\x1b' => (bytes.get(last + 1) == Some(&b'\\')).then_some(last + 2),
            0xc2 => Some(last + 2),
            _ => Some(last + 1),
        }
    }
}

fn may_end_string(bytes: &[u8], at: usize) -> bool {
    match bytes[at] {
        b'\x07' | b'\x1b' | b'\n' => true,
        0xc2 => bytes.get(at + 1) == Some(&0x9c),
        _ => false,
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

/// Removes escape sequences and control characters from the output of a program; line breaks and tabs stay. A carriage
/// return becomes a line break, so that each state of a progress bar gets its own line.
pub fn without_terminal_control(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut at, mut scanner) = (0, SequenceScanner::default());
    while let Some(c) = text[at..].chars().next() {
        if let Some(end) = scanner.end_of_sequence(text, at) {
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
