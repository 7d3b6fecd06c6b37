//! Invisible characters: the table of them, and functions that find, remove or show them.
//!
//! A model reads characters that people do not see, so text from others can carry instructions past every reviewer.
//! Every crate uses this module for text that reaches a model, a terminal, a file or a person. Characters that emoji
//! and scripts need (a joiner inside a family emoji, a selector after an ideograph) are allowed in these places.
//!
//! Clean text costs one pass over its bytes and no allocation.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::source::Span;

mod context;
mod escape;
mod scan;
mod table;

pub use escape::without_terminal_control;
pub use table::InvisibleKind;

/// The longest run of invisible characters that [`shown`] spells out; the rest of the run is only counted.
const RUN_SHOWN_MAX: usize = 8;

/// An invisible character in a text, or a terminal escape sequence that starts with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvisibleCharacter {
    /// The bytes of the character, or of the whole escape sequence.
    pub span: Span,
    /// The character, or the first one of the sequence.
    pub char: char,
    pub kind: InvisibleKind,
}

/// Finds invisible characters that are out of place.
///
/// ```
/// use repertoire_text::invisible::{InvisibleKind, find};
///
/// assert_eq!(find("naïve 👩\u{200d}🔬, می\u{200c}خواهم").count(), 0);
/// let found = find("a\u{202e}b").next().unwrap();
/// assert_eq!((found.span.start, found.kind), (1, InvisibleKind::BidirectionalControl));
/// ```
pub fn find(text: &str) -> impl Iterator<Item = InvisibleCharacter> {
    InvisibleFinder::new(text, EscapeSequences::Whole)
}

/// The treatment of escape sequences: as a whole, or only the invisible characters in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EscapeSequences {
    Whole,
    ByCharacter,
}

/// Finds invisible characters in linear time: every lookahead remembers how far it has looked.
struct InvisibleFinder<'a> {
    text: &'a str,
    at: usize,
    sequences: EscapeSequences,
    scanner: escape::SequenceScanner,
    braille: context::BrailleRun,
}

impl<'a> InvisibleFinder<'a> {
    fn new(text: &'a str, sequences: EscapeSequences) -> Self {
        let (scanner, braille) = Default::default();
        InvisibleFinder { text, at: 0, sequences, scanner, braille }
    }
}

impl Iterator for InvisibleFinder<'_> {
    type Item = InvisibleCharacter;

    fn next(&mut self) -> Option<InvisibleCharacter> {
        while let Some(start) = scan::next_suspicious(self.text, self.at) {
            let c = self.text[start..].chars().next()?;
            self.at = start + c.len_utf8();
            let Some(kind) = InvisibleKind::of_char(c) else { continue };
            let proper = context::end_of_proper_use(self.text, start, c, &mut self.braille);
            if let Some(end) = proper {
                self.at = end;
                continue;
            }
            let sequence = match self.sequences {
                EscapeSequences::Whole => self.scanner.end_of_sequence(self.text, start),
                EscapeSequences::ByCharacter => None,
            };
            let (kind, end) = match sequence {
                Some(end) => (InvisibleKind::TerminalEscape, end),
                None => (kind, self.at),
            };
            self.at = end;
            return Some(InvisibleCharacter { span: Span::new(start, end), char: c, kind });
        }
        None
    }
}

/// Returns true if a text has no invisible character out of place.
pub fn is_clean(text: &str) -> bool {
    find(text).next().is_none()
}

/// Returns true if a character is invisible or moves the cursor, wherever it stands. Includes line breaks and tabs.
///
/// For names and other short texts that need no joiners. For prose use [`find`], which knows where a character is
/// allowed.
pub fn is_invisible(c: char) -> bool {
    InvisibleKind::of_char(c).is_some()
}

/// Ranges of code points that are invisible wherever they stand, in order. For programs in other languages, which
/// cannot use [`find`].
pub fn ranges_never_proper() -> Vec<(u32, u32)> {
    context::ranges_never_proper()
}

/// Removes invisible characters, and counts them by kind.
///
/// ```
/// use repertoire_text::invisible::removed;
///
/// let (text, summary) = removed("Fix\u{e0041}\u{e0042} the\u{202e} login");
/// assert_eq!(text, "Fix the login");
/// assert_eq!(summary.to_string(), "2 tag characters, 1 bidirectional control");
/// ```
pub fn removed(text: &str) -> (Cow<'_, str>, InvisibleSummary) {
    let mut summary = InvisibleSummary::default();
    let text = replace_invisible(text, EscapeSequences::Whole, |found, _, out| {
        summary.add(found.kind);
        out.extend(blank_of(found.char));
    });
    (text, summary)
}

/// Shows invisible characters for a report that quotes the text: as [`shown`], with `\r\n` as `\n` and a byte order mark, which
/// is proper only at the start of a file, shown as well.
pub fn shown_in_report(text: &str) -> String {
    const BYTE_ORDER_MARK: char = '\u{feff}';
    let text = text.replace("\r\n", "\n");
    shown(&text).replace(BYTE_ORDER_MARK, &marker_of(BYTE_ORDER_MARK))
}

/// Shows invisible characters by their code points, as `⟨U+E0041⟩`. Line breaks and tabs stay.
///
/// ```
/// use repertoire_text::invisible::shown;
///
/// assert_eq!(shown("a\u{e0041}b\u{1b}[2J"), "a⟨U+E0041⟩b⟨U+001B⟩[2J");
/// ```
pub fn shown(text: &str) -> Cow<'_, str> {
    shown_with(text, EscapeSequences::Whole)
}

fn shown_with(text: &str, sequences: EscapeSequences) -> Cow<'_, str> {
    let (mut run, mut last) = (0_usize, 0_usize);
    let mut out = replace_invisible(text, sequences, |found, rest, out| {
        let start = found.span.start as usize;
        if start != last {
            finish_run(out, run, start - last);
            run = 0;
        }
        run += 1;
        last = found.span.end as usize;
        if run <= RUN_SHOWN_MAX {
            out.push_str(&marker_of(found.char));
            // The printable part of an escape sequence stays readable. A byte order mark is never allowed there.
            let rest = shown_with(rest, EscapeSequences::ByCharacter);
            out.push_str(&rest.replace('\u{feff}', "⟨U+FEFF⟩"));
        }
    });
    if run > RUN_SHOWN_MAX {
        finish_run(out.to_mut(), run, text.len() - last);
    }
    out
}

/// Like [`shown`], on one line: line breaks and tabs are shown as `\n` and `\t`.
pub fn shown_on_one_line(text: &str) -> String {
    // A part of a line is never the start of a file, where a byte order mark is allowed.
    let shown = shown(text).replace('\u{feff}', "⟨U+FEFF⟩");
    if shown.contains(['\n', '\t', '\r']) {
        shown.replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r")
    } else {
        shown
    }
}

/// Writes invisible characters in JSON text as `\u` escapes, which every parser reads back as the same characters.
pub fn escaped_in_json(json: &str) -> Cow<'_, str> {
    escaped_with(json, EscapeSequences::Whole)
}

fn escaped_with(json: &str, sequences: EscapeSequences) -> Cow<'_, str> {
    replace_invisible(json, sequences, |found, rest, out| {
        for unit in found.char.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
        out.push_str(&escaped_with(rest, EscapeSequences::ByCharacter));
    })
}

/// Removes invisible characters from all strings of a JSON value, including field names, and counts them.
pub fn remove_in_json(value: &mut Value) -> InvisibleSummary {
    let mut summary = InvisibleSummary::default();
    match value {
        Value::String(text) => summary = remove_in(text),
        Value::Array(items) => {
            items.iter_mut().for_each(|item| summary.merge(&remove_in_json(item)));
        }
        Value::Object(fields) => {
            if !fields.keys().all(|name| is_clean(name)) {
                let named = std::mem::take(fields).into_iter().map(|(mut name, value)| {
                    summary.merge(&remove_in(&mut name));
                    (name, value)
                });
                *fields = named.collect();
            }
            fields.values_mut().for_each(|value| summary.merge(&remove_in_json(value)));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    summary
}

fn remove_in(text: &mut String) -> InvisibleSummary {
    let (visible, summary) = removed(text);
    if let Cow::Owned(visible) = visible {
        *text = visible;
    }
    summary
}

/// The marker for a character, as `⟨U+E0041⟩`.
pub fn marker_of(c: char) -> String {
    format!("⟨U+{:04X}⟩", u32::from(c))
}

/// Returns true if a text contains a marker as [`shown`] writes it.
pub fn has_marker(text: &str) -> bool {
    text.match_indices("⟨U+").any(|(at, start)| {
        let rest = &text[at + start.len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        (4..=6).contains(&digits) && rest[digits..].starts_with('⟩')
    })
}

/// Inserts the count of a long run before the `text_after` bytes that followed it.
fn finish_run(out: &mut String, run: usize, text_after: usize) {
    if run > RUN_SHOWN_MAX {
        let at = out.len() - text_after;
        out.insert_str(at, &format!("⟨{} more⟩", run - RUN_SHOWN_MAX));
    }
}

/// Copies a text, calling `replace` to write the replacement of each invisible character. `replace` also gets the rest
/// of an escape sequence, which is empty for a single character.
fn replace_invisible(
    text: &str,
    sequences: EscapeSequences,
    mut replace: impl FnMut(InvisibleCharacter, &str, &mut String),
) -> Cow<'_, str> {
    let mut found = InvisibleFinder::new(text, sequences).peekable();
    if found.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut last = 0;
    for one in found {
        let (start, end) = (one.span.start as usize, one.span.end as usize);
        out.push_str(&text[last..start]);
        replace(one, &text[start + one.char.len_utf8()..end], &mut out);
        last = end;
    }
    out.push_str(&text[last..]);
    Cow::Owned(out)
}

/// The blank that replaces a removed character, so that two lines or words do not become one.
fn blank_of(c: char) -> Option<char> {
    match c {
        '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
        '\u{2800}' | '\u{3164}' | '\u{ffa0}' => Some(' '),
        _ => None,
    }
}

/// The number of invisible characters of each kind, displayed as "12 tag characters, 1 soft hyphen".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvisibleSummary(BTreeMap<InvisibleKind, usize>);

impl InvisibleSummary {
    /// Counts the invisible characters of a text.
    pub fn count_in(text: &str) -> Self {
        let mut summary = InvisibleSummary::default();
        find(text).for_each(|found| summary.add(found.kind));
        summary
    }

    /// Counts one character.
    pub fn add(&mut self, kind: InvisibleKind) {
        *self.0.entry(kind).or_default() += 1;
    }

    /// Adds the counts of another summary.
    pub fn merge(&mut self, other: &InvisibleSummary) {
        for (kind, count) in &other.0 {
            *self.0.entry(*kind).or_default() += count;
        }
    }

    /// The number of characters of all kinds.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The kinds with their counts, in the order of the table.
    pub fn kinds(&self) -> impl Iterator<Item = (InvisibleKind, usize)> + '_ {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }
}

impl fmt::Display for InvisibleSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (kind, count)) in self.kinds().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let plural = if count == 1 { "" } else { "s" };
            write!(f, "{separator}{count} {}{plural}", kind.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod invisible_tests;
