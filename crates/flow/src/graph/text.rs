//! Text in pictures: cleaned, measured and wrapped without a font at hand.

/// The text on one line, without characters that no XML may hold and without those that turn text round.
pub(super) fn clean(text: &str) -> String {
    let shown = |c: char| match c {
        c if c.is_whitespace() || c.is_control() => ' ',
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => ' ',
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' => ' ',
        c => c,
    };
    let text: String = text.chars().map(shown).collect();
    text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
