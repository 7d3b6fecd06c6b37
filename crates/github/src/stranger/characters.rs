//! Characters that nobody sees.

use super::{Counts, Hidden};

/// Whether a character has no width, turns the direction of text or controls something. Some of these are right in
/// their place; see `without_invisible`.
pub fn is_invisible(c: char) -> bool {
    let layout = matches!(c, '\n' | '\t');
    (c.is_control() && !layout)
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}')
        || matches!(c, '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}')
        || matches!(c, '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
        || matches!(c, '\u{e0000}'..='\u{e0fff}')
}

/// Takes these characters out, but for those that make one picture of two, or join letters in scripts that need it.
pub(super) fn without_invisible(text: &str, counts: &mut Counts) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if is_invisible(c) && !is_in_place(before, c, chars.peek().copied()) {
            counts.add(Hidden::Character);
            // What breaks a line for some readers must not join two words.
            if matches!(c, '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}') {
                out.push('\n');
                before = Some('\n');
            }
            continue;
        }
        out.push(c);
        before = Some(c);
    }
    out
}

fn is_in_place(before: Option<char>, c: char, after: Option<char>) -> bool {
    let (Some(before), Some(after)) = (before, after.or(Some(' '))) else { return false };
    let script = |c: char| matches!(c, '\u{600}'..='\u{dff}') && !is_invisible(c);
    match c {
        '\u{fe0e}' | '\u{fe0f}' => is_picture(before) || is_key(before, after),
        '\u{200d}' => {
            (is_picture(before) || before == '\u{fe0f}') && is_picture(after)
                || script(before) && script(after)
        }
        '\u{200c}' => script(before) && script(after),
        _ => false,
    }
}

fn is_picture(c: char) -> bool {
    matches!(c, '\u{203c}'..='\u{27ff}' | '\u{2900}'..='\u{2bff}' | '\u{3030}' | '\u{303d}')
        || matches!(c, '\u{3297}' | '\u{3299}' | '\u{a9}' | '\u{ae}' | '\u{1f000}'..='\u{1faff}')
            && !is_invisible(c)
}

fn is_key(before: char, after: char) -> bool {
    (before.is_ascii_digit() || matches!(before, '#' | '*')) && after == '\u{20e3}'
}
