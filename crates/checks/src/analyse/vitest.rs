//! Vitest: ` FAIL  path > test` or ` FAIL  path [ path ]`, the reason, then ` ❯ path:1:2`.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{Category, ParsedError, Tool};
use super::found::{Found, taken};
use super::place::{self, Place, pattern};
use super::signs;

/// Parses a failure, or the start or end of a run.
pub(super) fn block(lines: &[&str], at: usize, found: &mut Found) -> Option<usize> {
    static RUN: LazyLock<Regex> = LazyLock::new(|| pattern(r"^ ?(?:RUN|DEV) +v\d+\.\d+\.\d+ "));
    static OVER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^ +Duration +\d"));
    static FAIL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^ FAIL  (\S.*(?: > .*| \[ .* \]))$"));
    static UNHANDLED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^⎯+ (Unhandled Rejection|Unhandled Error|Uncaught Exception) ⎯+$")
    });
    let line = lines[at];
    if RUN.is_match(line) || OVER.is_match(line) {
        found.running = RUN.is_match(line);
        return Some(at + 1);
    }
    if found.running && (line == "No test files found, exiting with code 1") {
        found.running = false;
        found.add(ParsedError::new(Tool::Vitest, Category::Environment, line));
        return Some(at + 1);
    }
    if UNHANDLED.is_match(line) {
        let (reason, next) = reason(lines, at + 1);
        let error =
            ParsedError::new(Tool::Vitest, signs::exception(&reason.message), reason.message);
        found.add(place::put(reason.place, error));
        return Some(next);
    }
    FAIL.captures(line)?;
    // Tests that fail for the same reason are listed together, followed by the reason.
    let names_end = taken(lines, at, |line| FAIL.is_match(line));
    let names = lines[at..names_end].iter().filter_map(|line| FAIL.captures(line));
    let names: Vec<String> = names.map(|name| name[1].to_owned()).collect();
    let (reason, next) = reason(lines, names_end);
    for name in names {
        found.add(failure(&name, &reason));
    }
    Some(next)
}

struct Reason {
    message: String,
    place: Option<Place>,
}

/// The reason that follows a heading, and the index after it.
fn reason(lines: &[&str], from: usize) -> (Reason, usize) {
    let end = taken(lines, from, |line| !line.starts_with('⎯') && !line.starts_with(" FAIL  "));
    let body = &lines[from..end];
    let told = body.iter().take_while(|line| {
        !line.trim().is_empty() && !line.starts_with(" ❯ ") && !line.starts_with("  File: ")
    });
    let message = told.copied().collect::<Vec<_>>().join("\n");
    let place = place::own_frame(body).or_else(|| named(&message));
    (Reason { message, place }, end)
}

/// Parses `At file: path:1:2`, printed for a file with a syntax error.
fn named(message: &str) -> Option<Place> {
    let line = message.lines().find_map(|line| line.strip_prefix("At file: "))?;
    place::place(line)
}

fn failure(name: &str, reason: &Reason) -> ParsedError {
    let message = reason.message.lines().filter(|line| !line.starts_with("At file: "));
    let message = message.collect::<Vec<_>>().join("\n");
    let (file, test) = match name.split_once(" > ") {
        Some((file, test)) => (file, Some(test.to_owned())),
        None => (name.split(" [ ").next().unwrap_or(name), None),
    };
    // Workspaces print `|project|` before the path.
    let file = file.rsplit_once("| ").map_or(file, |(_, file)| file).trim();
    let category = match &test {
        Some(_) if message.contains("timed out in ") => Category::TestTimeout,
        Some(_) => Category::TestFailure,
        None => suite(&message),
    };
    let place = reason.place.clone();
    let place = place.unwrap_or_else(|| Place { file: file.to_owned(), ..Place::default() });
    place.put(ParsedError { test, ..ParsedError::new(Tool::Vitest, category, message) })
}

/// The category of a test file whose tests could not run.
pub(super) fn suite(message: &str) -> Category {
    const SYNTAX: &[&str] =
        &["SyntaxError", "Parse failure", "Unexpected token", "Transform failed"];
    match signs::category(message) {
        Some(category) => category,
        None if SYNTAX.iter().any(|word| message.contains(word)) => Category::Build,
        None => Category::TestFailure,
    }
}
