//! Jest: `FAIL path` (coloured, with surrounding spaces), then for each failure `● name`, the
//! reason and a stack.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ErrorCategory, ParsedError, ReportingTool};
use super::collector::{ErrorCollector, end_of_matching};
use super::location::{self, ErrorLocation, compile_pattern};
use super::vitest::suite_category;

/// Parses the line of a test file, or one of its failures.
pub(super) fn parse_block(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    static FILE: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(r"^ ?(FAIL|PASS)  ?(?:\S+ )?(\S.*?\.\w+)(?: \([\d.]+ m?s\))?$")
    });
    static BULLET: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^  ● (.+)$"));
    if let Some(file) = FILE.captures(lines[at]) {
        found.suite = (&file[1] == "FAIL").then(|| location::clean_path(&file[2]));
        return Some(at + 1);
    }
    if lines[at] == "No tests found, exiting with code 1" {
        found.add(ParsedError::new(ReportingTool::Jest, ErrorCategory::Environment, lines[at]));
        return Some(end_of_matching(lines, at + 1, |line| line.starts_with("  ")));
    }
    if lines[at].starts_with("● Validation Error") {
        let end = end_of_matching(lines, at + 1, |line| line.is_empty() || line.starts_with(' '));
        let told =
            lines[at + 1..end].iter().map(|line| line.trim()).filter(|line| !line.is_empty());
        let message = told.take(3).collect::<Vec<_>>().join("\n");
        found.add(ParsedError::new(ReportingTool::Jest, ErrorCategory::Environment, message));
        return Some(end);
    }
    let bullet = BULLET.captures(lines[at])?;
    let end = end_of_matching(lines, at + 1, |line| line.is_empty() || line.starts_with("    "));
    // Output of the tests has its own bullet.
    if &bullet[1] != "Console"
        && let Some(file) = found.suite.clone()
    {
        found.add(build_failure(&bullet[1], file, &lines[at + 1..end]));
    }
    Some(end)
}

fn build_failure(name: &str, file: String, body: &[&str]) -> ParsedError {
    let is_suite = name == "Test suite failed to run";
    let body = match body.iter().position(|line| line.trim() == "Details:") {
        Some(details) if is_suite => &body[details + 1..],
        _ => body,
    };
    let message = failure_message(body);
    let category = if is_suite {
        suite_category(&message)
    } else if message.contains("Exceeded timeout of") {
        ErrorCategory::TestTimeout
    } else {
        ErrorCategory::TestFailure
    };
    let place =
        syntax_error_location(&message).filter(|_| is_suite).or_else(|| location::own_frame(body));
    let place = place.unwrap_or(ErrorLocation { file, ..ErrorLocation::default() });
    let test = (!is_suite).then(|| name.to_owned());
    place.set_on(ParsedError { test, ..ParsedError::new(ReportingTool::Jest, category, message) })
}

/// The first paragraph, and the expected and received values.
fn failure_message(body: &[&str]) -> String {
    let told = body.iter().map(|line| line.trim()).skip_while(|line| line.is_empty());
    let first = told.take_while(|line| !line.is_empty());
    let mut lines: Vec<&str> = first.collect();
    let values = body.iter().map(|line| line.trim()).filter(|line| {
        line.starts_with("Expected") && line.contains(':')
            || line.starts_with("Received") && line.contains(':')
    });
    for value in values.take(4) {
        if !lines.contains(&value) {
            lines.push(value);
        }
    }
    lines.join("\n")
}

/// Parses the location in `SyntaxError: path: text (1:2)`.
fn syntax_error_location(message: &str) -> Option<ErrorLocation> {
    static PARSED: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"^SyntaxError: (.+?\.\w+): .* \((\d+):(\d+)\)$"));
    let found = PARSED.captures(message.lines().next()?)?;
    location::parse_location(&format!("{}:{}:{}", &found[1], &found[2], &found[3]))
}
