//! Uncaught exceptions: Python tracebacks, and stack traces of JavaScript and Java.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ParsedError, ReportingTool};
use super::collector::{ErrorCollector, end_of_matching};
use super::keywords;
use super::location::{self, ErrorLocation, clean_path, compile_pattern, is_foreign, own_frame};

/// Parses a traceback, or an error with its stack trace.
pub(super) fn parse_block(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    if found.running {
        return None;
    }
    if lines[at] == BEGIN {
        return Some(parse_python(lines, at, found));
    }
    parse_stack_trace(lines, at, found)
}

const BEGIN: &str = "Traceback (most recent call last):";

/// The exception at the end of a traceback.
pub(super) struct UncaughtException {
    /// The name and message of the exception.
    pub(super) message: String,
    /// The last location in the project.
    pub(super) place: Option<ErrorLocation>,
}

/// Parses `File "path", line 7`.
pub(super) fn parse_python_frame(line: &str) -> Option<ErrorLocation> {
    static FRAME: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r#"^\s*File "(.+)", line (\d+)(?:, in .*)?$"#));
    let found = FRAME.captures(line)?;
    Some(ErrorLocation { file: clean_path(&found[1]), line: found[2].parse().ok(), column: None })
}

/// The last exception in some lines, with the last location in the project.
pub(super) fn last_exception(lines: &[&str]) -> Option<UncaughtException> {
    let frames: Vec<ErrorLocation> =
        lines.iter().filter_map(|line| parse_python_frame(line)).collect();
    if frames.is_empty() {
        return None;
    }
    let exception = lines.iter().rev().find(|line| EXCEPTION.is_match(line));
    let message = exception.map(|line| (*line).to_owned());
    let place = frames.into_iter().rev().find(|place| !is_foreign(&place.file));
    Some(UncaughtException {
        message: message.unwrap_or_else(|| "the program died".to_owned()),
        place,
    })
}

static EXCEPTION: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"^[A-Za-z_][\w.]*(?:: .*)?$"));

/// Parses a traceback and those chained to it. The last exception is the one that ended the
/// program.
fn parse_python(lines: &[&str], at: usize, found: &mut ErrorCollector) -> usize {
    let mut start = at;
    loop {
        let end = end_of_matching(lines, start + 1, |line| line.starts_with(' '));
        let more = end_of_matching(lines, end + 1, |line| {
            line.starts_with("  ") || line.starts_with('\t')
        });
        let end = more.min(lines.len());
        match find_chained(lines, end) {
            Some(next) => start = next,
            None => {
                let died = last_exception(&lines[start..end]);
                if let Some(died) = died {
                    let category = keywords::exception_category(&died.message);
                    let error = ParsedError::new(ReportingTool::Generic, category, died.message);
                    found.add(location::set_location(died.place, error));
                }
                return end.max(at + 1);
            }
        }
    }
}

fn find_chained(lines: &[&str], end: usize) -> Option<usize> {
    let link = lines.get(end + 1).filter(|_| lines.get(end).is_some_and(|line| line.is_empty()))?;
    let is_link = link.starts_with("During handling of the above exception")
        || link.starts_with("The above exception was the direct cause");
    (is_link && lines.get(end + 3).is_some_and(|line| *line == BEGIN)).then_some(end + 3)
}

/// Parses an uncaught error with its stack trace.
fn parse_stack_trace(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r#"^(?:Uncaught |Exception in thread "[^"]*" )?((?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)|Error)(?: \[\w+\])?(?:: (.*))?$"#,
        )
    });
    HEAD.captures(lines[at])?;
    // There may be a few lines between the message and the stack.
    let window = lines.get(at + 1..lines.len().min(at + 6)).unwrap_or_default();
    let first = at + 1 + window.iter().position(|line| is_stack_frame(line))?;
    let end = end_of_matching(lines, first, is_stack_frame);
    let message = lines[at].trim_start_matches("Uncaught ").to_owned();
    let category = keywords::exception_category(&message);
    let place = own_frame(&lines[first..end]).or_else(|| java_location(&lines[first..end]));
    found.add(location::set_location(
        place,
        ParsedError::new(ReportingTool::Generic, category, message),
    ));
    Some(end_of_matching(lines, end, |line| {
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
fn java_location(stack: &[&str]) -> Option<ErrorLocation> {
    stack.iter().find_map(|line| {
        let inner = line.rsplit_once('(')?.1.strip_suffix(')')?;
        location::parse_location(inner).filter(|place| place.file.ends_with(".java"))
    })
}
