//! What was found so far, and what parsers know about the lines before theirs.

use std::collections::{BTreeMap, BTreeSet};

use super::super::error::{ParsedError, Tool};
use super::go::Go;
use crate::limits::{ANALYSED_ERRORS_MAX, ERROR_MESSAGE_CHARS_MAX, ERROR_MESSAGE_LINES_MAX};

/// What was found so far.
#[derive(Default)]
pub(super) struct Found {
    errors: Vec<(Weight, ParsedError)>,
    seen: BTreeSet<String>,
    /// Warnings so far.
    pub(super) warnings: u64,
    /// Whether cargo has said what it is doing: an `error:` without a place is then cargo's.
    pub(super) cargo: bool,
    /// Whether a test runner is at work: what stands between its own lines was printed by the tests.
    pub(super) running: bool,
    /// The lints whose names are known, by the wording of their messages: rustc names one only where it first meets it.
    pub(super) lints: BTreeMap<String, String>,
    /// The last file that Jest has named.
    pub(super) suite: Option<String>,
    /// What is known of Go's tests.
    pub(super) go: Go,
}

/// How much a finding counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// It stands for itself.
    Sure,
    /// It counts if no tool has said anything: a line with the word `error` may be anybody's.
    Weak,
}

impl Found {
    /// Adds an error, once.
    pub(super) fn add(&mut self, error: ParsedError) {
        self.push(Weight::Sure, error);
    }

    /// Adds an error that counts if nothing else is found.
    pub(super) fn add_weak(&mut self, error: ParsedError) {
        self.push(Weight::Weak, error);
    }

    fn push(&mut self, weight: Weight, error: ParsedError) {
        // One more than is kept shows that there were more.
        if self.errors.len() > ANALYSED_ERRORS_MAX {
            return;
        }
        let error = ParsedError { message: short(&error.message), ..error };
        let place = (&error.file, error.line, error.column);
        let key =
            format!("{:?}{:?}{place:?}{:?}{}", error.source, error.code, error.test, error.message);
        if self.seen.insert(key) {
            self.errors.push((weight, error));
        }
    }

    /// Whether nothing was found.
    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// The errors of one tool.
    pub(super) fn of(&self, tool: Tool) -> impl Iterator<Item = &ParsedError> {
        self.errors.iter().map(|(_, error)| error).filter(move |error| error.source == tool)
    }

    /// The errors that count, and how many warnings there were.
    pub(super) fn end(self) -> (Vec<ParsedError>, u64) {
        let sure = self.errors.iter().any(|(weight, _)| *weight == Weight::Sure);
        let counts = |weight| weight == Weight::Sure || !sure;
        let errors = self.errors.into_iter().filter(|(weight, _)| counts(*weight));
        (errors.map(|(_, error)| error).collect(), self.warnings)
    }
}

/// A message of bounded length, without white space around it.
pub(super) fn short(message: &str) -> String {
    let lines: Vec<&str> = message.trim().lines().map(str::trim_end).collect();
    let kept = lines.len().min(ERROR_MESSAGE_LINES_MAX);
    let mut text = lines[..kept].join("\n");
    if let Some((at, _)) = text.char_indices().nth(ERROR_MESSAGE_CHARS_MAX) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// The lines from one on that belong together: as long as they fit.
pub(super) fn taken<'a>(lines: &'a [&'a str], from: usize, fits: impl Fn(&str) -> bool) -> usize {
    let rest = lines.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|line| fits(line)).count()
}
