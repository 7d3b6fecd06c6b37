//! Fallback for output that no parser understood: lines that contain a word for an error and some
//! more text.

use super::super::error::{ErrorCategory, ParsedError, ReportingTool};
use super::collector::ErrorCollector;
use super::{generic, go, keywords};

/// Maximum number of lines taken as errors.
const LINES_MAX: usize = 20;

/// Finds lines that mention an error.
pub(super) fn find_error_lines(lines: &[&str], found: &mut ErrorCollector) {
    go::parse_gofmt_list(lines, found);
    if !found.is_empty() {
        return;
    }
    for line in lines.iter().filter(|line| mentions_error(line)).take(LINES_MAX) {
        let line = line.trim();
        let category = keywords::find_category(line).unwrap_or(ErrorCategory::Unknown);
        found.add(ParsedError::new(ReportingTool::Generic, category, line));
    }
}

/// Returns true if a line contains an error word on its own and more than two words, and is neither
/// a summary nor a file name.
fn mentions_error(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_quiet = keywords::is_summary(line) || generic::is_quiet(line.trim_start());
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
