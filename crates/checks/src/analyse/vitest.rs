//! Vitest: ` FAIL  path > test` or ` FAIL  path [ path ]`, the reason, then ` ❯ path:1:2`.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ErrorCategory, ParsedError, ReportingTool};
use super::collector::{ErrorCollector, end_of_matching};
use super::keywords;
use super::location::{self, ErrorLocation, compile_pattern};

/// Parses a failure, or the start or end of a run.
pub(super) fn parse_block(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    static RUN: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"^ ?(?:RUN|DEV) +v\d+\.\d+\.\d+ "));
    static OVER: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^ +Duration +\d"));
    static FAIL: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"^ FAIL  (\S.*(?: > .*| \[ .* \]))$"));
    static UNHANDLED: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(r"^⎯+ (Unhandled Rejection|Unhandled Error|Uncaught Exception) ⎯+$")
    });
    let line = lines[at];
    if RUN.is_match(line) || OVER.is_match(line) {
        found.running = RUN.is_match(line);
        return Some(at + 1);
    }
    if found.running && (line == "No test files found, exiting with code 1") {
        found.running = false;
        found.add(ParsedError::new(ReportingTool::Vitest, ErrorCategory::Environment, line));
        return Some(at + 1);
    }
    if UNHANDLED.is_match(line) {
        let (reason, next) = parse_reason(lines, at + 1);
        let error = ParsedError::new(
            ReportingTool::Vitest,
            keywords::exception_category(&reason.message),
            reason.message,
        );
        found.add(location::set_location(reason.place, error));
        return Some(next);
    }
    FAIL.captures(line)?;
    // Tests that fail for the same reason are listed together, followed by the reason.
    let names_end = end_of_matching(lines, at, |line| FAIL.is_match(line));
    let names = lines[at..names_end].iter().filter_map(|line| FAIL.captures(line));
    let names: Vec<String> = names.map(|name| name[1].to_owned()).collect();
    let (reason, next) = parse_reason(lines, names_end);
    for name in names {
        found.add(build_failure(&name, &reason));
    }
    Some(next)
}

struct VitestFailureReason {
    message: String,
    place: Option<ErrorLocation>,
}

/// The reason that follows a heading, and the index after it.
fn parse_reason(lines: &[&str], from: usize) -> (VitestFailureReason, usize) {
    let end =
        end_of_matching(lines, from, |line| !line.starts_with('⎯') && !line.starts_with(" FAIL  "));
    let body = &lines[from..end];
    let told = body.iter().take_while(|line| {
        !line.trim().is_empty() && !line.starts_with(" ❯ ") && !line.starts_with("  File: ")
    });
    let message = told.copied().collect::<Vec<_>>().join("\n");
    let place = location::own_frame(body).or_else(|| syntax_error_location(&message));
    (VitestFailureReason { message, place }, end)
}

/// Parses `At file: path:1:2`, printed for a file with a syntax error.
fn syntax_error_location(message: &str) -> Option<ErrorLocation> {
    let line = message.lines().find_map(|line| line.strip_prefix("At file: "))?;
    location::parse_location(line)
}

fn build_failure(name: &str, reason: &VitestFailureReason) -> ParsedError {
    let message = reason.message.lines().filter(|line| !line.starts_with("At file: "));
    let message = message.collect::<Vec<_>>().join("\n");
    let (file, test) = match name.split_once(" > ") {
        Some((file, test)) => (file, Some(test.to_owned())),
        None => (name.split(" [ ").next().unwrap_or(name), None),
    };
    // Workspaces print `|project|` before the path.
    let file = file.rsplit_once("| ").map_or(file, |(_, file)| file).trim();
    let category = match &test {
        Some(_) if message.contains("timed out in ") => ErrorCategory::TestTimeout,
        Some(_) => ErrorCategory::TestFailure,
        None => suite_category(&message),
    };
    let place = reason.place.clone();
    let place = place
        .unwrap_or_else(|| ErrorLocation { file: file.to_owned(), ..ErrorLocation::default() });
    place.set_on(ParsedError { test, ..ParsedError::new(ReportingTool::Vitest, category, message) })
}

/// The category of a test file whose tests could not run.
pub(super) fn suite_category(message: &str) -> ErrorCategory {
    const SYNTAX: &[&str] =
        &["SyntaxError", "Parse failure", "Unexpected token", "Transform failed"];
    match keywords::find_category(message) {
        Some(category) => category,
        None if SYNTAX.iter().any(|word| message.contains(word)) => ErrorCategory::Build,
        None => ErrorCategory::TestFailure,
    }
}
