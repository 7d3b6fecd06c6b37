//! Explains why a text is not in a file: finds the nearest match and the difference.

use repertoire_text::invisible;
use repertoire_text::layout::one_line;

/// The maximum number of lines that are compared character by character, if no line is equal.
const LINES_COMPARED_MAX: usize = 5_000;
/// The maximum length of a line that is compared character by character.
const LINE_BYTES_MAX: usize = 400;
/// The maximum number of line comparisons.
const COMPARISONS_MAX: usize = 20_000_000;
/// The minimum similarity of two lines.
const ALIKE_MIN: f32 = 0.6;
/// The maximum number of quoted lines.
const QUOTED_LINES_MAX: usize = 12;
/// The maximum number of quoted characters of a line.
const QUOTED_CHARS_MAX: usize = 200;

/// Explains why `old` is not in `text`, and points to the nearest match.
pub(super) fn explain_mismatch(text: &str, old: &str) -> String {
    if invisible::has_marker(old) {
        return "`old` has a marker such as ⟨U+200B⟩, which `read` shows in place of an invisible character of the file. \
                Leave the marker and its line out of `old`, or replace the whole file with `write`; `bash` can remove \
                the character"
            .to_owned();
    }
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.trim_matches('\n').lines().collect();
    if let Some(at) = same_but_for_white_space(&lines, &wanted) {
        let there = quote_lines(&lines[at..(at + wanted.len()).min(lines.len())]);
        return format!(
            "`old` is not there, but line {} on differs only in white space; the file has exactly:\n{there}",
            at + 1
        );
    }
    if let Some((at, offset)) = most_lines_alike(&lines, &wanted) {
        let (number, there) = (at + offset + 1, lines.get(at + offset).copied().unwrap_or(""));
        return format!(
            "`old` is not there; the nearest place begins at line {}, and differs first at line {number}, where the \
             file has `{}` and `old` has `{}`",
            at + 1,
            shorten_line(there),
            shorten_line(wanted[offset])
        );
    }
    match most_alike(&lines, &wanted) {
        Some(at) => {
            format!(
                "`old` is not there; line {} is the most alike: `{}`",
                at + 1,
                shorten_line(lines[at])
            )
        }
        None => "`old` is not there, nor anything like it; read the file again".to_owned(),
    }
}

fn same_but_for_white_space(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let wanted: Vec<String> = wanted.iter().map(|line| one_line(line)).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<String> = lines.iter().map(|line| one_line(line)).collect();
    lines.windows(wanted.len()).position(|window| window == wanted)
}

/// Finds the position with the most equal lines, and the first line there that differs. Empty lines and brackets do not
/// count as equal.
fn most_lines_alike(lines: &[&str], wanted: &[&str]) -> Option<(usize, usize)> {
    if wanted.len() < 2 || lines.len().saturating_mul(wanted.len()) > COMPARISONS_MAX {
        return None;
    }
    let count = |at: usize| {
        let pairs = wanted.iter().enumerate();
        pairs.filter(|(i, line)| is_telling(line) && is_same_line(lines.get(at + i), line)).count()
    };
    let best = (0..lines.len()).map(|at| (count(at), std::cmp::Reverse(at))).max()?;
    let (matches, std::cmp::Reverse(at)) = best;
    let first_other = (0..wanted.len()).find(|i| !is_same_line(lines.get(at + i), wanted[*i]));
    (matches > 0).then(|| (at, first_other.unwrap_or(0)))
}

fn is_same_line(there: Option<&&str>, line: &str) -> bool {
    there.is_some_and(|there| there.trim() == line.trim())
}

fn is_telling(line: &str) -> bool {
    line.chars().filter(|c| c.is_alphanumeric()).count() >= 3
}

fn most_alike(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let first = wanted.iter().map(|line| line.trim()).find(|line| !line.is_empty())?;
    if !is_comparable(first) {
        return None;
    }
    let mut best: Option<(f32, usize)> = None;
    for (at, line) in lines.iter().enumerate().take(LINES_COMPARED_MAX) {
        let line = line.trim();
        if !is_comparable(line) || line.len().abs_diff(first.len()) > first.len() {
            continue;
        }
        let ratio = if line.contains(first) || first.contains(line) && line.len() > 8 {
            0.99
        } else {
            similar::TextDiff::from_chars(line, first).ratio()
        };
        if ratio >= ALIKE_MIN && best.is_none_or(|(highest, _)| ratio > highest) {
            best = Some((ratio, at));
        }
    }
    best.map(|(_, at)| at)
}

fn is_comparable(line: &str) -> bool {
    !line.is_empty() && line.len() <= LINE_BYTES_MAX
}

fn quote_lines(lines: &[&str]) -> String {
    let shown: Vec<String> =
        lines.iter().take(QUOTED_LINES_MAX).map(|line| shorten_line(line)).collect();
    let more = if lines.len() > QUOTED_LINES_MAX { "\n…" } else { "" };
    format!("{}{more}", shown.join("\n"))
}

fn shorten_line(line: &str) -> String {
    let cut: String = line.chars().take(QUOTED_CHARS_MAX).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}
