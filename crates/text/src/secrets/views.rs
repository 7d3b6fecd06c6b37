//! Normalised views of a text, each with a way back to the positions in the text: without separators, as hexadecimal
//! digits, without line numbers, as the bytes of a hex dump, and decoded from Base64.

use std::ops::Range;

use memchr::memchr;

/// The length from which a run of Base64 or hexadecimal digits is decoded.
const RUN_BYTES_MIN: usize = 24;
/// The number of digits of an offset or of a group in a hex dump.
const DUMP_DIGITS: std::ops::RangeInclusive<usize> = 2..=16;
/// The number of words before a line of a hex dump.
const DUMP_WORDS_BEFORE_MAX: usize = 6;
/// The number of groups from which a line without an offset is a hex dump.
const DUMP_GROUPS_MIN: usize = 2;

/// What a view keeps of each byte; zero for separators.
type Kept = [u8; 256];

/// Letters in lower case and digits.
static PACKED: Kept = kept_bytes(b'z');
/// Hexadecimal digits in lower case.
static HEX: Kept = kept_bytes(b'f');

const fn kept_bytes(last: u8) -> Kept {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        let lower = byte.to_ascii_lowercase();
        if lower.is_ascii_alphanumeric() && lower <= last {
            table[byte as usize] = lower;
        }
        byte += 1;
    }
    table
}

/// Returns the letters and digits of a text, in lower case.
pub(super) fn pack(text: &[u8]) -> Vec<u8> {
    pack_parts(text, std::slice::from_ref(&(0..text.len())))
}

/// Returns the letters and digits of parts of a text, in lower case.
pub(super) fn pack_parts(text: &[u8], parts: &[Range<usize>]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(parts.iter().map(Range::len).sum());
    parts.iter().for_each(|part| keep_bytes(&text[part.clone()], &PACKED, &mut packed));
    packed
}

/// Returns the position in the text of each byte of [`pack_parts`].
pub(super) fn packed_positions(text: &[u8], parts: &[Range<usize>]) -> Vec<usize> {
    let is_kept = |at: &usize| PACKED[usize::from(text[*at])] != 0;
    parts.iter().cloned().flatten().filter(is_kept).collect()
}

/// Returns the hexadecimal digits of a packed text. All other letters separate digits.
pub(super) fn hex_digits(packed: &[u8]) -> Vec<u8> {
    let mut digits = Vec::with_capacity(packed.len());
    keep_bytes(packed, &HEX, &mut digits);
    digits
}

/// Returns the position in the packed text of each byte of [`hex_digits`].
pub(super) fn hex_positions(packed: &[u8]) -> Vec<usize> {
    (0..packed.len()).filter(|at| HEX[usize::from(packed[*at])] != 0).collect()
}

/// Returns true if `is_packed` holds for eight letters and digits of parts of a text in a row, or `is_hex` for eight
/// hexadecimal digits, the first being the highest byte. It tells nearly every text without a secret in one pass, without
/// making a view of it.
#[inline]
pub(super) fn has_window(
    text: &[u8],
    parts: &[Range<usize>],
    is_packed: impl Fn(u64) -> bool,
    is_hex: impl Fn(u64) -> bool,
) -> bool {
    let (mut packed, mut digits) = (0_u64, 0_u64);
    for part in parts {
        for byte in &text[part.clone()] {
            let (kept, digit) = (PACKED[usize::from(*byte)], HEX[usize::from(*byte)]);
            packed = if kept == 0 { packed } else { (packed << 8) | u64::from(kept) };
            digits = if digit == 0 { digits } else { (digits << 8) | u64::from(digit) };
            if is_packed(packed) || is_hex(digits) {
                return true;
            }
        }
    }
    false
}

/// Adds what a view keeps of a text. There is no branch for each byte: what follows overwrites separators.
fn keep_bytes(text: &[u8], table: &Kept, out: &mut Vec<u8>) {
    let mut length = out.len();
    out.resize(length + text.len(), 0);
    for byte in text {
        let kept = table[usize::from(*byte)];
        out[length] = kept;
        length += usize::from(kept != 0);
    }
    out.truncate(length);
}

/// Returns the ranges of the lines of a text, without line breaks.
fn line_ranges(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let start = next?;
        let end = memchr(b'\n', &text[start..]).map(|length| start + length);
        next = end.map(|end| end + 1);
        Some(start..end.unwrap_or(text.len()))
    })
}

/// Returns the end of the line that contains a position.
pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length)
}

/// Returns the parts of a text without the numbers and offsets at the start of its lines; `None` if fewer than two lines
/// have one.
pub(super) fn parts_without_numbers(text: &[u8]) -> Option<Vec<Range<usize>>> {
    let number_of = |line: &Range<usize>| length_of_number(&text[line.clone()]);
    let numbered = line_ranges(text).filter(|line| number_of(line) > 0).take(2).count();
    let without_number = |line: Range<usize>| line.start + number_of(&line)..line.end;
    (numbered > 1).then(|| line_ranges(text).map(without_number).collect())
}

/// Returns the length of a number or offset at the start of a line, with what surrounds it; 0 if there is none.
fn length_of_number(line: &[u8]) -> usize {
    let is_border = |byte: &&u8| !byte.is_ascii_alphanumeric();
    let before = line.iter().take_while(is_border).count();
    let number = &line[before..];
    let digits = number.iter().take(17).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let has_digit = number[..digits].iter().any(u8::is_ascii_digit);
    let is_ended = number.get(digits).is_some_and(|byte| !byte.is_ascii_alphanumeric());
    if (1..=16).contains(&digits) && has_digit && is_ended { before + digits } else { 0 }
}

/// Bytes that a text stands for, with a way back to the positions in the text.
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    /// The positions of the digits that the bytes were decoded from.
    digits: Vec<usize>,
    bits_per_digit: usize,
}

impl Decoded {
    fn new(bits_per_digit: usize) -> Self {
        Decoded { bytes: Vec::new(), digits: Vec::new(), bits_per_digit }
    }

    fn push_hex(&mut self, text: &[u8], digits: [usize; 2]) {
        let [high, low] = digits.map(|at| hex_value(text[at]));
        self.bytes.push((high << 4) | low);
        self.digits.extend(digits);
    }

    /// Returns the part of the text that a range of the bytes comes from.
    pub(super) fn source_of(&self, range: Range<usize>) -> Range<usize> {
        let first = range.start * 8 / self.bits_per_digit;
        let last = (range.end * 8).div_ceil(self.bits_per_digit);
        let digits = || self.digits[first..last].iter().copied();
        let start = digits().min().unwrap_or_default();
        start..digits().max().map_or(start, |last| last + 1)
    }
}

/// Decodes the hex dumps in a text, such as those of `xxd`, `hexdump -C` and `od -x`: as they stand, and with the bytes
/// of each group in reverse order. Offsets and columns of characters are left out.
pub(super) fn decode_dumps(text: &[u8]) -> Vec<Decoded> {
    let (mut straight, mut swapped) = (Decoded::new(4), Decoded::new(4));
    // The bytes of a text that can be read have a decimal digit each, so most lines of other text need no closer look.
    let has_digits = |line: &Range<usize>| {
        text[line.clone()].iter().filter(|byte| byte.is_ascii_digit()).count() >= DUMP_GROUPS_MIN
    };
    for line in line_ranges(text).filter(has_digits) {
        for group in dump_groups(&text[line.clone()]) {
            let pairs = || (line.start + group.start..line.start + group.end - 1).step_by(2);
            pairs().for_each(|at| straight.push_hex(text, [at, at + 1]));
            pairs().rev().for_each(|at| swapped.push_hex(text, [at, at + 1]));
        }
    }
    let is_swapped = swapped.bytes != straight.bytes;
    let mut dumps = vec![straight];
    if is_swapped {
        dumps.push(swapped);
    }
    dumps
}

/// Returns the groups of digits of a line that is shaped like one of a hex dump; none for any other line. These are the
/// first groups of the same length in a row, the last of which may be shorter: other words may stand around them.
fn dump_groups(line: &[u8]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut offset = OffsetLook::None;
    for (number, token) in tokens_of(line).enumerate() {
        let text = &line[token.clone()];
        let is_group = token.len() % 2 == 0 && is_hex(text);
        let goes_on = match (groups.first(), groups.last()) {
            (Some(first), Some(last)) => {
                // Two blanks come before the column of characters of `xxd`, and in the middle of `hexdump -C`.
                let is_apart = token.start - last.end > 1;
                let is_column = is_apart && (first.len() > 2 || offset == OffsetLook::Marked);
                is_group && !is_column && last.len() == first.len() && token.len() <= first.len()
            }
            _ => is_group,
        };
        if goes_on {
            groups.push(token);
            continue;
        }
        if groups.len() >= offset.groups_min() {
            break;
        }
        offset = match groups.pop() {
            // What looked like a group was an offset.
            Some(_) if is_group => OffsetLook::Digits,
            _ => OffsetLook::of(text),
        };
        groups.clear();
        if is_group {
            groups.push(token);
        } else if number >= DUMP_WORDS_BEFORE_MAX {
            return Vec::new();
        }
    }
    if groups.len() < offset.groups_min() { Vec::new() } else { groups }
}

/// What a word before the groups of a hex dump looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OffsetLook {
    /// Any other word.
    None,
    /// Digits, as before the groups of `hexdump` and `od`.
    Digits,
    /// Digits with a colon, as before those of `xxd`.
    Marked,
}

impl OffsetLook {
    fn of(token: &[u8]) -> Self {
        let digits = token.strip_suffix(b":").unwrap_or(token);
        let is_offset = is_hex(digits.strip_prefix(b"0x").unwrap_or(digits));
        match (is_offset, token.ends_with(b":")) {
            (true, true) => OffsetLook::Marked,
            (true, false) => OffsetLook::Digits,
            (false, _) => OffsetLook::None,
        }
    }

    /// Returns the number of groups from which a line is one of a hex dump.
    fn groups_min(self) -> usize {
        if self == OffsetLook::None { DUMP_GROUPS_MIN } else { 1 }
    }
}

/// Returns true for digits of an offset or a group.
fn is_hex(token: &[u8]) -> bool {
    DUMP_DIGITS.contains(&token.len()) && token.iter().all(u8::is_ascii_hexdigit)
}

/// Returns the ranges between blanks in a line. Marks of a quotation at its start are left out.
fn tokens_of(line: &[u8]) -> impl Iterator<Item = Range<usize>> + Clone {
    let quoted = line.iter().take_while(|byte| !byte.is_ascii_alphanumeric()).count();
    let mut at = quoted;
    std::iter::from_fn(move || {
        at += line[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let start = at;
        at += line[at..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        (start < at).then_some(start..at)
    })
}

/// Decodes the long runs of Base64 and hexadecimal digits in a text, in every alignment. Line breaks do not end a run.
pub(super) fn decode_runs(text: &[u8]) -> impl Iterator<Item = Decoded> {
    let in_base64 = runs_of(text, is_base64)
        .flat_map(move |digits| (0..4).map(move |skipped| decode_base64(text, &digits[skipped..])));
    let in_hex = runs_of(text, |byte| HEX[usize::from(byte)] != 0)
        .flat_map(move |digits| (0..2).map(move |skipped| decode_hex(text, &digits[skipped..])));
    in_base64.chain(in_hex)
}

/// Returns the positions of the digits of each long run.
fn runs_of(text: &[u8], is_digit: impl Fn(u8) -> bool + Copy) -> impl Iterator<Item = Vec<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let run = next_run(text, at, is_digit)?;
        at = run.end;
        Some(run.filter(|at| is_digit(text[*at])).collect())
    })
}

/// Returns the next run of digits: at least [`RUN_BYTES_MIN`] on the first line, and any number on further ones.
fn next_run(
    text: &[u8],
    mut from: usize,
    is_digit: impl Fn(u8) -> bool + Copy,
) -> Option<Range<usize>> {
    let is_digit = |at: &usize| is_digit(text[*at]);
    while from + RUN_BYTES_MIN <= text.len() {
        // Looking from the end skips most of ordinary text.
        let Some(other) = (from..from + RUN_BYTES_MIN).rev().find(|at| !is_digit(at)) else {
            return Some(from..end_of_run(text, from, is_digit));
        };
        from = other + 1;
    }
    None
}

fn end_of_run(text: &[u8], from: usize, is_digit: impl Fn(&usize) -> bool) -> usize {
    let mut end = from;
    loop {
        end += (end..text.len()).take_while(&is_digit).count();
        let next = end + text[end..].iter().take_while(|byte| is_wrap(**byte)).count();
        let is_wrapped = text[end..next].contains(&b'\n') && next < text.len();
        if !is_wrapped || !is_digit(&next) {
            return end;
        }
        end = next;
    }
}

fn is_wrap(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b' ' | b'\t')
}

fn decode_base64(text: &[u8], digits: &[usize]) -> Decoded {
    let mut decoded = Decoded::new(6);
    for four in digits.chunks(4) {
        let value = |at: usize| four.get(at).and_then(|at| base64_value(text[*at])).unwrap_or(0);
        let whole = (0..4).fold(0_u32, |whole, at| (whole << 6) | u32::from(value(at)));
        decoded.bytes.extend(&whole.to_be_bytes()[1..four.len()]);
    }
    decoded.digits.extend(digits);
    decoded
}

fn decode_hex(text: &[u8], digits: &[usize]) -> Decoded {
    let mut decoded = Decoded::new(4);
    let (pairs, _) = digits.as_chunks::<2>();
    pairs.iter().for_each(|pair| decoded.push_hex(text, *pair));
    decoded
}

fn is_base64(byte: u8) -> bool {
    PACKED[usize::from(byte)] != 0 || matches!(byte, b'+' | b'-' | b'/' | b'_')
}

/// Returns the value of a digit of Base64, of either alphabet.
fn base64_value(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

fn hex_value(digit: u8) -> u8 {
    char::from(digit).to_digit(16).map_or(0, |value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_dump(text: &str, expected: &[&str]) {
        let dumps = decode_dumps(text.as_bytes());
        let texts: Vec<_> = dumps.iter().map(|dump| String::from_utf8_lossy(&dump.bytes)).collect();
        assert_eq!(texts, expected, "{text}");
    }

    #[test]
    fn offsets_and_columns_of_characters_are_no_part_of_a_dump() {
        check_dump("00000000: 6162 6364  ab cd\n00000004: 65  ef", &["abcde", "badce"]);
        check_dump("00000000  61 62 63 64  65 66  |abcdef|\n00000006", &["abcdef"]);
        check_dump("> 0000000 6162 6364\n> 0000004", &["abcd", "badc"]);
        check_dump("0000000 61 62 63  >abc<", &["abc"]);
        check_dump("6162 6364 6566", &["abcdef", "badcfe"]);
        check_dump("log 7: face 00000000: 6162 6364  ab cd", &["abcd", "badc"]);
        check_dump("The facade is a decade old.", &[""]);
    }

    #[test]
    fn numbers_at_the_start_of_lines_are_left_out() {
        let parts = |text: &str| {
            let parts = parts_without_numbers(text.as_bytes())?;
            Some(parts.into_iter().map(|part| text[part].to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(parts("  1\tab\n 12: cd\nef").unwrap(), ["\tab", ": cd", "ef"]);
        assert!(parts("one\n2 two\nthree 3").is_none());
    }
}
