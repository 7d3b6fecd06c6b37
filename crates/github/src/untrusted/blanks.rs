//! Empty space that moves text out of sight: blanks in lines of code, which do not wrap, and empty paragraphs and lines.

use std::sync::LazyLock;

use regex::Regex;

use super::markup::{MarkdownRanges, range_containing};
use super::{HiddenKind, RemovalCounts, replace_all};

/// The number of blanks of a line of code up to which its long runs of blanks stay.
const BLANKS_MAX: usize = 120;

/// The length from which a run of blanks counts as long.
const LONG_RUN: usize = 16;

/// Matches a long run of blanks.
static BLANKS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(r"[^\S\n]{{{LONG_RUN},}}")).expect("the pattern is written right")
});

/// Matches more than 30 empty paragraphs or line breaks in a row.
static EMPTY_PARAGRAPHS: LazyLock<Regex> = LazyLock::new(|| {
    let part = concat!(
        r"(?:&nbsp;?|&#0*160;?|&#x0*a0;?|&[a-z]{0,9}(?:sp|space);|\x{a0}|\\\r?\n",
        r"|<(?:br|p|div|hr|pre)(?:\s[^<>]*)?/?>)",
    );
    let between = r"(?:[\s>*+\-|\\_#]|</(?:p|div|pre)>)*";
    Regex::new(&format!("(?i){part}(?:{between}{part}){{30,}}"))
        .expect("the pattern is written right")
});

/// Matches more than 40 empty lines in a row.
static EMPTY_LINES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\n(?:[ \t>]*\n){40,}").expect("the pattern is written right"));

/// Shortens empty space, and says how much there was.
pub(super) fn shorten_empty_space(text: &str, counts: &mut RemovalCounts) -> String {
    let text = shorten_blanks(text, counts);
    let text = shorten_matches(&text, &EMPTY_LINES, IN_CODE, counts);
    shorten_matches(&text, &EMPTY_PARAGRAPHS, OUTSIDE_OF_CODE, counts)
}

/// Where matches count.
type Place = fn(&MarkdownRanges, usize) -> bool;

const IN_CODE: Place = |ranges, at| range_containing(&ranges.blocks, at).is_some();
const OUTSIDE_OF_CODE: Place = |ranges, at| !ranges.is_code(at);

fn shorten_matches(
    text: &str,
    pattern: &Regex,
    is_place: Place,
    counts: &mut RemovalCounts,
) -> String {
    if !pattern.is_match(text) {
        return text.to_owned();
    }
    let ranges = MarkdownRanges::find_ranges(text);
    replace_all(text, pattern, |found| {
        let whole = found.get(0).expect("a match has a whole");
        is_place(&ranges, whole.start()).then(|| {
            counts.add(HiddenKind::EmptySpace);
            "\n(… empty space …)\n".to_owned()
        })
    })
}

/// Shortens long runs of blanks in lines of code that have too many of them.
fn shorten_blanks(text: &str, counts: &mut RemovalCounts) -> String {
    let is_too_long = |line: &str| {
        BLANKS.find_iter(line).map(|run| run.as_str().chars().count()).sum::<usize>() > BLANKS_MAX
    };
    if !text.lines().any(is_too_long) {
        return text.to_owned();
    }
    let ranges = MarkdownRanges::find_ranges(text);
    let mut out = String::with_capacity(text.len());
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let next = ranges.blocks.partition_point(|block| block.end <= start);
        let is_code = ranges.blocks.get(next).is_some_and(|block| block.start < end);
        if is_code && is_too_long(line) {
            out.push_str(&replace_all(line, &BLANKS, |run| {
                counts.add(HiddenKind::EmptySpace);
                Some(format!(" (… {} blanks …) ", run[0].chars().count()))
            }));
        } else {
            out.push_str(line);
        }
        start = end;
    }
    out
}
