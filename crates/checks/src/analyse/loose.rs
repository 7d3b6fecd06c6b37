//! Output of which no tool's words were found: any line that speaks of an error, if it says more than that.

use super::super::error::{Category, ParsedError, Tool};
use super::found::Found;
use super::{generic, go, signs};

/// Most lines that are taken so; output that says it more often is told by its first lines.
const LINES_MAX: usize = 20;

/// Looks for lines that speak of an error.
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

/// Whether a line has a word of error as a word of its own, and more words than that. A count is none, and neither is the
/// name of a file.
fn speaks(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_error = |word: &&str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let whole = bare.len() == word.trim_matches(|c: char| "\"'`()[]{}:,.!*".contains(c)).len();
        let named = bare.ends_with("Error") || bare.ends_with("Exception");
        let plain = ["error", "fatal", "exception", "panic", "failed", "failure"];
        whole && (named || plain.iter().any(|one| bare.eq_ignore_ascii_case(one)))
    };
    let is_quiet = signs::is_summary(line) || generic::is_quiet(line.trim_start());
    words.len() > 2 && words.iter().any(is_error) && !is_quiet
}
