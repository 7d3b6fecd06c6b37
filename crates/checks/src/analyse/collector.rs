//! The errors found so far, and the context that parsers keep from earlier lines.

use std::collections::{BTreeMap, BTreeSet};

use super::super::error::{ParsedError, ReportingTool};
use super::go::GoParserState;
use crate::limits::{ANALYSED_ERRORS_MAX, ERROR_MESSAGE_CHARS_MAX, ERROR_MESSAGE_LINES_MAX};

#[derive(Default)]
pub(super) struct ErrorCollector {
    errors: Vec<(ErrorWeight, ParsedError)>,
    seen: BTreeSet<String>,
    pub(super) warnings: u64,
    /// True after cargo's status lines: an `error:` without a location is then cargo's.
    pub(super) cargo: bool,
    /// True while a test runner runs: lines between its own were printed by the tests.
    pub(super) running: bool,
    /// Lint names by the wording of their messages. Rustc names a lint only at its first
    /// occurrence.
    pub(super) lints: BTreeMap<String, String>,
    /// The failed test file that Jest printed last.
    pub(super) suite: Option<String>,
    /// The state of Go's tests.
    pub(super) go: GoParserState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ErrorWeight {
    /// Always counts.
    Sure,
    /// Counts only if no tool reported an error, since any program may print a line with `error`.
    Weak,
}

impl ErrorCollector {
    /// Adds an error unless it is a duplicate.
    pub(super) fn add(&mut self, error: ParsedError) {
        self.push(ErrorWeight::Sure, error);
    }

    /// Adds an error that counts only if there is no other.
    pub(super) fn add_weak(&mut self, error: ParsedError) {
        self.push(ErrorWeight::Weak, error);
    }

    fn push(&mut self, weight: ErrorWeight, error: ParsedError) {
        // Keep one more than the limit, so that the caller can tell that there were more.
        if self.errors.len() > ANALYSED_ERRORS_MAX {
            return;
        }
        let error = ParsedError { message: shorten_message(&error.message), ..error };
        let place = (&error.file, error.line, error.column);
        let key =
            format!("{:?}{:?}{place:?}{:?}{}", error.source, error.code, error.test, error.message);
        if self.seen.insert(key) {
            self.errors.push((weight, error));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// The errors of one tool.
    pub(super) fn errors_of_tool(&self, tool: ReportingTool) -> impl Iterator<Item = &ParsedError> {
        self.errors.iter().map(|(_, error)| error).filter(move |error| error.source == tool)
    }

    /// The errors that count, and the number of warnings.
    pub(super) fn finish(self) -> (Vec<ParsedError>, u64) {
        let sure = self.errors.iter().any(|(weight, _)| *weight == ErrorWeight::Sure);
        let counts = |weight| weight == ErrorWeight::Sure || !sure;
        let errors = self.errors.into_iter().filter(|(weight, _)| counts(*weight));
        (errors.map(|(_, error)| error).collect(), self.warnings)
    }
}

/// Trims a message and limits its length.
pub(super) fn shorten_message(message: &str) -> String {
    let lines: Vec<&str> = message.trim().lines().map(str::trim_end).collect();
    let kept = lines.len().min(ERROR_MESSAGE_LINES_MAX);
    let mut text = lines[..kept].join("\n");
    if let Some((at, _)) = text.char_indices().nth(ERROR_MESSAGE_CHARS_MAX) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// The index of the first line from `from` on that does not fit.
pub(super) fn end_of_matching<'a>(
    lines: &'a [&'a str],
    from: usize,
    fits: impl Fn(&str) -> bool,
) -> usize {
    let rest = lines.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|line| fits(line)).count()
}
