//! Finds a known secret in its encoded forms: plain, reversed, percent-encoded, escaped, hexadecimal or Base64, also
//! wrapped, grouped, with separators, in a hex dump, and encoded several times.
//!
//! The forms are searched for in views of the text from which separators are removed, so no kind of separator has to be
//! known. What nobody can undo without a key or a program (encryption, compression) is not found.

use std::ops::Range;

use memchr::memmem::Finder;

use super::patterns::{PATTERN_BYTES_MIN, PatternSet};
use super::views;

/// Shorter secrets are not searched for: they would match in the middle of ordinary words.
const SECRET_BYTES_MIN: usize = 6;
/// The minimum length of an encoded form that is searched for.
const FORM_BYTES_MIN: usize = PATTERN_BYTES_MIN;
/// Forms with fewer letters and digits must stand alone if they are separated: `late-st test` contains no `testtest`.
const FORM_INSIDE_BYTES_MIN: usize = 16;
/// The number of encodings inside of each other that are undone.
const LAYERS_MAX: usize = 3;
/// The number of passes after which a text is replaced as a whole. Each removal may join parts of another secret.
const PASSES_MAX: usize = 8;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A secret with its encoded forms, to be found in text.
#[derive(Clone)]
pub struct EncodedSecret {
    /// Forms that are compared exactly.
    exact: Vec<String>,
    /// Forms that are compared case-insensitively.
    in_lower_case: Vec<String>,
    /// The letters and digits of forms, in lower case.
    packed: PatternSet,
    /// Hexadecimal digits.
    hex: PatternSet,
}

impl EncodedSecret {
    /// Prepares the forms of a secret. Returns `None` if it is too short to be told from ordinary text.
    pub fn new(secret: &str) -> Option<Self> {
        let secret = secret.trim();
        if secret.len() < SECRET_BYTES_MIN {
            return None;
        }
        let reversed: String = secret.chars().rev().collect();
        let mut exact = vec![secret.to_owned(), reversed.clone(), json_escaped(secret)];
        for alphabet in [STANDARD, URL_SAFE] {
            exact.extend((0..3).flat_map(|offset| base64_at(secret.as_bytes(), offset, alphabet)));
        }
        let mut in_lower_case = vec![percent_encoded(secret)];
        let reversed_in_base64 =
            (0..3).flat_map(|offset| base64_at(reversed.as_bytes(), offset, STANDARD));
        let spread = exact.iter().cloned().chain(reversed_in_base64);
        let spread = spread.filter(|form| form.len() >= FORM_BYTES_MIN);
        let packed =
            PatternSet::new(with_reversed(spread.map(|form| views::pack(form.as_bytes()))));
        let hex = PatternSet::new(with_reversed(hex_forms(secret)));
        for forms in [&mut exact, &mut in_lower_case] {
            forms.retain(|form| form.len() >= FORM_BYTES_MIN || form == secret);
            forms.retain(|form| !is_found_packed(form));
            forms.sort();
            forms.dedup();
        }
        Some(EncodedSecret { exact, in_lower_case, packed, hex })
    }

    /// Replaces every form of the secret with a mark.
    ///
    /// ```
    /// use repertoire_text::secrets::EncodedSecret;
    ///
    /// let token = EncodedSecret::new("ghs_16C7e42F292c6912E7").unwrap();
    /// assert_eq!(token.hide("x Z2hzXzE2QzdlNDJGMjkyYzY5MTJFNw== y", "***"), "x *** y");
    /// assert_eq!(token.hide("x Z2hz-XzE2-QzdlNDJGMj\nkyYzY5MTJFNw== y", "***"), "x *** y");
    /// ```
    pub fn hide(&self, text: &str, mark: &str) -> String {
        let mut out = text.to_owned();
        for _ in 0..PASSES_MAX {
            let found = self.find(out.as_bytes(), LAYERS_MAX);
            if found.is_empty() {
                return out;
            }
            out = replace_ranges(&out, found, mark);
        }
        mark.to_owned()
    }

    /// Returns true if a text contains any form of the secret.
    pub fn is_in(&self, text: &str) -> bool {
        !self.find(text.as_bytes(), LAYERS_MAX).is_empty()
    }

    /// Returns where forms of the secret are, in no order. They may overlap.
    fn find(&self, text: &[u8], layers: usize) -> Vec<Range<usize>> {
        let mut found = self.find_exact(text);
        found.extend(self.find_packed(text, std::slice::from_ref(&(0..text.len()))));
        if let Some(parts) = views::parts_without_numbers(text) {
            found.extend(self.find_packed(text, &parts));
        }
        let Some(layers) = layers.checked_sub(1) else { return found };
        for dump in views::decode_dumps(text) {
            let inside = self.find(&dump.bytes, layers).into_iter();
            // The column of characters at the end of the line shows the same bytes.
            found.extend(inside.map(|range| {
                let source = dump.source_of(range);
                source.start..views::line_end(text, source.end)
            }));
        }
        for run in views::decode_runs(text) {
            let inside = self.find(&run.bytes, layers).into_iter();
            found.extend(inside.map(|range| with_padding(text, run.source_of(range))));
        }
        found
    }

    fn find_exact(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut find_in = |searched: &[u8], form: &str| {
            let finder = Finder::new(form);
            let places = finder.find_iter(searched);
            found.extend(places.map(|at| with_padding(text, at..at + form.len())));
        };
        self.exact.iter().for_each(|form| find_in(text, form));
        if !self.in_lower_case.is_empty() {
            let lower = text.to_ascii_lowercase();
            self.in_lower_case.iter().for_each(|form| find_in(&lower, form));
        }
        found
    }

    /// Returns where forms are in parts of a text if everything but letters and digits is left out.
    fn find_packed(&self, text: &[u8], parts: &[Range<usize>]) -> Vec<Range<usize>> {
        let is_packed = |first| self.packed.begins_with(first);
        if !views::has_window(text, parts, is_packed, |first| self.hex.begins_with(first)) {
            return Vec::new();
        }
        let packed = views::pack_parts(text, parts);
        let digits = views::hex_digits(&packed);
        let (plain, hex) = (self.packed.find(&packed), self.hex.find(&digits));
        if plain.is_empty() && hex.is_empty() {
            return Vec::new();
        }
        let positions = views::packed_positions(text, parts);
        let indexes = views::hex_positions(&packed);
        let plain = plain.into_iter().filter_map(|range| {
            let source = positions[range.start]..positions[range.end - 1] + 1;
            let is_whole = range.len() >= FORM_INSIDE_BYTES_MIN || stands_alone(text, &source);
            is_whole.then_some(source)
        });
        let hex = hex
            .into_iter()
            .map(|range| positions[indexes[range.start]]..positions[indexes[range.end - 1]] + 1);
        plain.chain(hex).map(|source| with_padding(text, source)).collect()
    }
}

impl std::fmt::Debug for EncodedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Returns forms, and each of them read from the end.
fn with_reversed(forms: impl IntoIterator<Item = Vec<u8>>) -> impl Iterator<Item = Vec<u8>> {
    forms.into_iter().flat_map(|form| {
        let reversed = form.iter().rev().copied().collect();
        [form, reversed]
    })
}

/// Returns the digits of a secret and of its characters in reverse order, with the zeros that UTF-16 and the prefixes of
/// bytes and words (`\u00`, `\U000000`, `0x`) leave between them.
fn hex_forms(secret: &str) -> Vec<Vec<u8>> {
    let reversed: String = secret.chars().rev().collect();
    let forms = [secret, &reversed].into_iter().flat_map(|text| {
        let bytes: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        let bytewise = ["", "0", "00", "000000"].map(|zeros| bytes.join(zeros));
        let words =
            [2, 4, 8].into_iter().flat_map(|size| (0..size).map(move |first| (size, first)));
        let wordwise = words.map(|(size, first)| hex_in_words(&bytes, size, first));
        bytewise.into_iter().chain(wordwise).map(String::into_bytes).collect::<Vec<_>>()
    });
    forms.collect()
}

/// Joins digits with a zero before each word, the first of which has only the last `first` bytes of one.
fn hex_in_words(bytes: &[String], size: usize, first: usize) -> String {
    let (head, rest) = bytes.split_at(first.min(bytes.len()));
    let words = std::iter::once(head).filter(|head| !head.is_empty()).chain(rest.chunks(size));
    words.map(<[String]>::concat).collect::<Vec<_>>().join("0")
}

/// Returns true if a form is found without separators wherever it occurs, with all of its characters.
fn is_found_packed(form: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = form.as_bytes();
    let is_percent_encoded = form.contains('%');
    views::pack(bytes).len() >= FORM_INSIDE_BYTES_MIN
        && is_edge(bytes.first())
        && is_edge(bytes.last())
        && !is_percent_encoded
}

/// Returns true if no letter or digit is beside a part of a text, and its groups of letters and digits are equally long
/// except for the last. Ordinary words and times are not.
fn stands_alone(text: &[u8], part: &Range<usize>) -> bool {
    let before = part.start.checked_sub(1).and_then(|at| text.get(at));
    let mut beside = [before, text.get(part.end)].into_iter().flatten();
    let groups = text[part.clone()].split(|byte| !byte.is_ascii_alphanumeric());
    let lengths: Vec<usize> = groups.map(<[u8]>::len).filter(|length| *length > 0).collect();
    let is_even = lengths.windows(2).rev().enumerate().all(|(from_end, pair)| {
        if from_end == 0 { pair[1] <= pair[0] } else { pair[1] == pair[0] }
    });
    beside.all(|byte| !byte.is_ascii_alphanumeric()) && is_even
}

/// Adds the padding of Base64 to a part of a text.
fn with_padding(text: &[u8], part: Range<usize>) -> Range<usize> {
    let padding = text[part.end..].iter().take(2).take_while(|byte| **byte == b'=').count();
    part.start..part.end + padding
}

/// Replaces parts of a text by a mark each. A part inside of another one is left out.
fn replace_ranges(text: &str, mut ranges: Vec<Range<usize>>, mark: &str) -> String {
    ranges.sort_by_key(|range| (range.start, usize::MAX - range.end));
    let (mut out, mut last) = (String::with_capacity(text.len()), 0);
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        if range.end <= last {
            continue;
        }
        out.push_str(text.get(last..range.start).unwrap_or_default());
        out.push_str(mark);
        last = range.end;
    }
    out.push_str(text.get(last..).unwrap_or_default());
    out
}

/// The Base64 characters that depend only on the secret, if `offset` bytes of other text precede it: in the middle of
/// other text, and at its end.
fn base64_at(secret: &[u8], offset: usize, alphabet: &[u8; 64]) -> [String; 2] {
    let padded: Vec<u8> = std::iter::repeat_n(0, offset).chain(secret.iter().copied()).collect();
    let digit = |at: usize| {
        let bit = at * 6;
        let pair =
            u16::from_be_bytes([padded[bit / 8], padded.get(bit / 8 + 1).copied().unwrap_or(0)]);
        char::from(alphabet[usize::from(pair >> (10 - bit % 8)) & 63])
    };
    let bits = padded.len() * 8;
    let first = (offset * 8).div_ceil(6);
    [bits / 6, bits.div_ceil(6)].map(|last| (first..last).map(digit).collect())
}

fn percent_encoded(secret: &str) -> String {
    let mut out = String::new();
    for byte in secret.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte.to_ascii_lowercase()));
            }
            byte => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

fn json_escaped(secret: &str) -> String {
    let quoted = serde_json::to_string(secret).unwrap_or_default();
    let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or_default().to_owned()
}

#[cfg(test)]
#[path = "encoded_tests.rs"]
mod tests;
