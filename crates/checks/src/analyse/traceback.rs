//! Uncaught exceptions: Python tracebacks, and stack traces of JavaScript and Java.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ParsedError, Tool};
use super::found::{Found, taken};
use super::place::{self, Place, is_foreign, own_frame, pattern, tidy};
use super::signs;

/// Parses a traceback, or an error with its stack trace.
pub(super) fn block(lines: &[&str], at: usize, found: &mut Found) -> Option<usize> {
    if found.running {
        return None;
    }
    if lines[at] == BEGIN {
        return Some(python(lines, at, found));
    }
    javascript(lines, at, found)
}

const BEGIN: &str = "Traceback (most recent call last):";

/// The exception at the end of a traceback.
pub(super) struct Died {
    /// The name and message of the exception.
    pub(super) message: String,
    /// The last location in the project.
    pub(super) place: Option<Place>,
}

/// Parses `File "path", line 7`.
pub(super) fn frame(line: &str) -> Option<Place> {
    static FRAME: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#"^\s*File "(.+)", line (\d+)(?:, in .*)?$"#));
    let found = FRAME.captures(line)?;
    Some(Place { file: tidy(&found[1]), line: found[2].parse().ok(), column: None })
}

/// The last exception in some lines, with the last location in the project.
pub(super) fn last(lines: &[&str]) -> Option<Died> {
    let frames: Vec<Place> = lines.iter().filter_map(|line| frame(line)).collect();
    if frames.is_empty() {
        return None;
    }
    let exception = lines.iter().rev().find(|line| EXCEPTION.is_match(line));
    let message = exception.map(|line| (*line).to_owned());
    let place = frames.into_iter().rev().find(|place| !is_foreign(&place.file));
    Some(Died { message: message.unwrap_or_else(|| "the program died".to_owned()), place })
}

static EXCEPTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[A-Za-z_][\w.]*(?:: .*)?$"));

/// Parses a traceback and those chained to it. The last exception is the one that ended the
/// program.
fn python(lines: &[&str], at: usize, found: &mut Found) -> usize {
    let mut start = at;
    loop {
        let end = taken(lines, start + 1, |line| line.starts_with(' '));
        let more = taken(lines, end + 1, |line| line.starts_with("  ") || line.starts_with('\t'));
        let end = more.min(lines.len());
        match chained(lines, end) {
            Some(next) => start = next,
            None => {
                let died = last(&lines[start..end]);
                if let Some(died) = died {
                    let category = signs::exception(&died.message);
                    let error = ParsedError::new(Tool::Generic, category, died.message);
                    found.add(place::put(died.place, error));
                }
                return end.max(at + 1);
            }
        }
    }
}

fn chained(lines: &[&str], end: usize) -> Option<usize> {
    let link = lines.get(end + 1).filter(|_| lines.get(end).is_some_and(|line| line.is_empty()))?;
    let is_link = link.starts_with("During handling of the above exception")
        || link.starts_with("The above exception was the direct cause");
    (is_link && lines.get(end + 3).is_some_and(|line| *line == BEGIN)).then_some(end + 3)
}

/// Parses an uncaught error with its stack trace.
fn javascript(lines: &[&str], at: usize, found: &mut Found) -> Option<usize> {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"^(?:Uncaught |Exception in thread "[^"]*" )?((?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)|Error)(?: \[\w+\])?(?:: (.*))?$"#,
        )
    });
    HEAD.captures(lines[at])?;
    // There may be a few lines between the message and the stack.
    let window = lines.get(at + 1..lines.len().min(at + 6)).unwrap_or_default();
    let first = at + 1 + window.iter().position(|line| is_stack_frame(line))?;
    let end = taken(lines, first, is_stack_frame);
    let message = lines[at].trim_start_matches("Uncaught ").to_owned();
    let category = signs::exception(&message);
    let place = own_frame(&lines[first..end]).or_else(|| java(&lines[first..end]));
    found.add(place::put(place, ParsedError::new(Tool::Generic, category, message)));
    Some(taken(lines, end, |line| {
        line.starts_with("  ")
            || line == "}"
            || line.starts_with("Emitted 'error' event")
            || line.starts_with("Node.js v")
    }))
}

/// Returns true for an indented line that starts with `at `.
fn is_stack_frame(line: &str) -> bool {
    let text = line.trim_start();
    text.len() < line.len() && text.starts_with("at ")
}

/// Parses `at package.Class.method(File.java:7)`. Only the file name is known.
fn java(stack: &[&str]) -> Option<Place> {
    stack.iter().find_map(|line| {
        let inner = line.rsplit_once('(')?.1.strip_suffix(')')?;
        place::place(inner).filter(|place| place.file.ends_with(".java"))
    })
}
