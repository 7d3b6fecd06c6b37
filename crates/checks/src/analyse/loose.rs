//! Fallback for output that no parser understood: lines that contain a word for an error and some
//! more text.

use super::super::error::{Category, ParsedError, Tool};
use super::found::Found;
use super::{generic, go, signs};

/// Maximum number of lines taken as errors.
const LINES_MAX: usize = 20;

/// Finds lines that mention an error.
pub(super) fn find(lines: &[&str], found: &mut Found) {
    go::listed(lines, found);
    if !found.is_empty() {
        return;
    }
    for line in lines.iter().filter(|line| speaks(line)).take(LINES_MAX) {
        let line = line.trim();
        let category = signs::category(line).unwrap_or(Category::Unknown);
        found.add(ParsedError::new(Tool::Generic, category, line));
    }
}

/// Returns true if a line contains an error word on its own and more than two words, and is neither
/// a summary nor a file name.
fn speaks(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_quiet = signs::is_summary(line) || generic::is_quiet(line.trim_start());
    words.len() > 2 && words.iter().any(|word| is_error_word(word)) && !is_quiet
}

/// Returns true for `error` and similar words, and for names such as `ValueError`. Punctuation
/// around the word is ignored, but a path that contains such a word does not count.
fn is_error_word(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let whole = bare.len() == word.trim_matches(|c: char| "\"'`()[]{}:,.!*".contains(c)).len();
    let named = bare.ends_with("Error") || bare.ends_with("Exception");
    let plain = ["error", "fatal", "exception", "panic", "failed", "failure"];
    whole && (named || plain.iter().any(|one| bare.eq_ignore_ascii_case(one)))
}
