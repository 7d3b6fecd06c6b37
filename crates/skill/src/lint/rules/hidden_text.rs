//! Characters that people cannot see but models read: tags, direction overrides, zero-width spaces.

use repertoire_text::{Diagnostic, Severity, Span};

use crate::codes;
use crate::lint::{Rule, Subject};

pub(in crate::lint) static RULE: Rule = Rule { check, claude: true };

fn check(subject: &Subject<'_>, out: &mut Vec<Diagnostic>) {
    let text = subject.skill.text();
    if text.is_ascii() {
        return;
    }
    // The hidden characters all start with one of two bytes, so most text is skipped.
    let places: Vec<(usize, char)> = memchr::memchr2_iter(0xe2, 0xf3, text.as_bytes())
        .filter(|at| matches!(text.as_bytes().get(at + 1), Some(0x80 | 0x81 | 0xa0)))
        .filter_map(|at| text[at..].chars().next().map(|c| (at, c)))
        .filter(|(at, c)| is_hidden(*c) && !is_flag(text, *at, *c))
        .collect();
    let Some(&(at, c)) = places.first() else { return };
    let count = match places.len() {
        1 => "a hidden character".to_owned(),
        n => format!("{n} hidden characters"),
    };
    let message = format!("the file holds {count}; the first is U+{:04X}", u32::from(c));
    let code = &codes::HIDDEN_TEXT;
    let worst = if places.iter().any(|(_, c)| !is_zero_width(*c)) {
        Severity::Error
    } else {
        Severity::Warning
    };
    let span = Span::new(at, at + c.len_utf8());
    out.push(
        Diagnostic::new(code, message)
            .at(&subject.skill.source, span)
            .help(code.remedy)
            .severity(worst),
    );
}

fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{2060}')
}

fn is_hidden(c: char) -> bool {
    is_zero_width(c)
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

/// Flags of England, Scotland and Wales are a black flag followed by tag characters.
fn is_flag(text: &str, at: usize, c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e007f}')
        && text[..at]
            .chars()
            .rev()
            .take(7)
            .find(|before| !matches!(before, '\u{e0000}'..='\u{e007f}'))
            == Some('\u{1f3f4}')
}

#[cfg(test)]
mod tests {
    use crate::lint::rules::testing::{findings, skill};

    #[test]
    fn hidden_characters_are_found_and_emoji_left_alone() {
        let check = |body: &str, count: usize| {
            assert_eq!(findings("RS209", &skill("", body)).len(), count, "{body:?}");
        };
        check("plain — “quotes” … 👩‍👩‍👧 ✔️", 0);
        check("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", 0);
        check("x\u{e0069}\u{e0067}", 1);
        check("a\u{202e}b", 1);
        check("a\u{200b}b", 1);
        check("\u{200d}", 0);
    }
}
