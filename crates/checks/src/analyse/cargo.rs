//! Cargo: test runs, panics, and rustfmt's diffs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ErrorCategory, ParsedError, ReportingTool};
use super::collector::{ErrorCollector, end_of_matching};
use super::location::{self, ErrorLocation, compile_pattern};
use super::rustc;

/// Parses a test run, a panic, or a diff of rustfmt.
pub(super) fn parse_block(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    if RUNNING.is_match(lines[at]) {
        return Some(parse_tests(lines, at + 1, found));
    }
    if let Some(diff) = DIFF.captures(lines[at]) {
        let place = location::parse_location(&format!("{}:{}", &diff[1], &diff[2]));
        let error = ParsedError::new(
            ReportingTool::Cargo,
            ErrorCategory::Format,
            "rustfmt would change this",
        );
        found.add(location::set_location(place, error));
        return Some(end_of_matching(lines, at + 1, |line| line.starts_with([' ', '+', '-'])));
    }
    let panic = parse_panic(lines, at)?;
    if !found.running {
        let error = ParsedError::new(ReportingTool::Cargo, ErrorCategory::Runtime, panic.message);
        found.add(location::set_location(panic.place, error));
    }
    Some(panic.next)
}

static RUNNING: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^running \d+ tests?$"));
static RESULT: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"^test result: (?:ok|FAILED)\. "));
static DIFF: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"^Diff in (.+?)(?::| at line )(\d+):$"));
static SECTION: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^---- (.+) stdout ----$"));
static FAILED: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^test (.+) \.\.\. FAILED"));
static PANIC: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"^thread '(.*)'(?: \(\d+\))? panicked at (.+?)(:?)$"));
static OLD_PANIC: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^'(.*)', (.+:\d+:\d+)$"));
static DOC_TEST: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"^(.+\.\w+) - .*\(line (\d+)\)$"));

struct RustPanic {
    thread: String,
    message: String,
    place: Option<ErrorLocation>,
    next: usize,
}

/// Parses a panic, in the current format or in the one before Rust 1.73.
fn parse_panic(lines: &[&str], at: usize) -> Option<RustPanic> {
    let head = PANIC.captures(lines[at])?;
    let thread = head[1].to_owned();
    if let Some(old) = OLD_PANIC.captures(&head[2]) {
        let (message, place) = (old[1].to_owned(), location::parse_location(&old[2]));
        return Some(RustPanic { thread, message, place, next: at + 1 });
    }
    let place = location::parse_location(&head[2])?;
    let next = end_of_matching(lines, at + 1, goes_on);
    let message = lines[at + 1..next].join("\n");
    Some(RustPanic { thread, message, place: Some(place), next })
}

fn goes_on(line: &str) -> bool {
    let ends = ["note: ", "stack backtrace:", "FAILED", "ok", "thread '", "test ", "---- "];
    !line.is_empty() && !ends.iter().any(|word| line.starts_with(word))
}

/// Parses a test run up to its result line. Only tests in the list of failures count as failed,
/// whatever was printed.
fn parse_tests(lines: &[&str], from: usize, found: &mut ErrorCollector) -> usize {
    // A test binary that crashed prints no result. Its run ends at the line of the next binary.
    let end = end_of_matching(lines, from, |line| !ends_run(line));
    let mut run = CargoTestRun::default();
    let mut at = from;
    while at < end {
        at = run.take_line(lines, at, end);
    }
    for name in run.failed_tests() {
        for error in run.errors_of_test(&name, found) {
            found.add(error);
        }
    }
    match lines.get(end) {
        Some(line) if RESULT.is_match(line) => end + 1,
        _ => end,
    }
}

fn ends_run(line: &str) -> bool {
    let begins_next = line.starts_with("     Running ") || line.starts_with("   Doc-tests ");
    RESULT.is_match(line) || RUNNING.is_match(line) || begins_next
}

/// The parts of a test run's output.
#[derive(Default)]
struct CargoTestRun<'a> {
    listed: Vec<String>,
    marked: Vec<String>,
    sections: BTreeMap<String, Vec<&'a str>>,
    panics: BTreeMap<String, Vec<RustPanic>>,
    current: Option<String>,
}

impl<'a> CargoTestRun<'a> {
    fn take_line(&mut self, lines: &'a [&'a str], at: usize, end: usize) -> usize {
        let line = lines[at];
        if let Some(section) = SECTION.captures(line) {
            let next = end_of_matching(&lines[..end], at + 1, |line| {
                !SECTION.is_match(line) && line != "failures:"
            });
            self.sections.insert(section[1].to_owned(), lines[at + 1..next].to_vec());
            return next;
        }
        if line == "failures:" {
            let next = end_of_matching(&lines[..end], at + 1, |line| line.starts_with("    "));
            self.listed.extend(lines[at + 1..next].iter().map(|name| name.trim().to_owned()));
            return next;
        }
        if let Some(panic) = parse_panic(lines, at) {
            let next = panic.next;
            self.panics.entry(panic.thread.clone()).or_default().push(panic);
            return next;
        }
        if let Some(failed) = FAILED.captures(line) {
            self.marked.push(strip_should_panic(&failed[1]).to_owned());
        } else if let Some((name, _)) =
            line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
        {
            self.current = Some(strip_should_panic(name).to_owned());
        } else if line == "FAILED" {
            self.marked.extend(self.current.take());
        }
        at + 1
    }

    /// The names of the failed tests: from the list at the end, or from the individual results if
    /// the list is missing.
    fn failed_tests(&self) -> Vec<String> {
        let names = if self.listed.is_empty() { &self.marked } else { &self.listed };
        let mut seen = BTreeSet::new();
        names.iter().filter(|name| seen.insert(name.as_str())).cloned().collect()
    }

    fn errors_of_test(&self, name: &str, found: &mut ErrorCollector) -> Vec<ParsedError> {
        let section = self.sections.get(name).map(Vec::as_slice).unwrap_or_default();
        let test = Some(name.to_owned());
        let compiled = compile_errors(section, found);
        if !compiled.is_empty() {
            let compiled = compiled.into_iter();
            return compiled.map(|error| ParsedError { test: test.clone(), ..error }).collect();
        }
        let inside = (0..section.len()).find_map(|at| parse_panic(section, at));
        let panic = inside.as_ref().or_else(|| self.panics.get(name).and_then(|all| all.first()));
        let message = panic.map(|panic| panic.message.clone()).filter(|words| !words.is_empty());
        let message = message
            .or_else(|| failure_message(section))
            .unwrap_or_else(|| "the test failed".to_owned());
        let place = panic.and_then(|panic| panic.place.clone());
        let place = place.or_else(|| noted_location(section)).or_else(|| doc_test_location(name));
        let error = ParsedError::new(ReportingTool::Cargo, ErrorCategory::TestFailure, message);
        vec![location::set_location(place, ParsedError { test, ..error })]
    }
}

/// Removes the suffix that the test harness adds to a name.
fn strip_should_panic(name: &str) -> &str {
    name.strip_suffix(" - should panic").unwrap_or(name)
}

/// The compiler errors of a documentation test that does not compile.
fn compile_errors(section: &[&str], found: &mut ErrorCollector) -> Vec<ParsedError> {
    let compiled = section.iter().any(|line| line.starts_with("Couldn't compile the test"));
    let mut errors = Vec::new();
    for at in (0..section.len()).filter(|_| compiled) {
        let Some((code, text)) = rustc::parse_head(section[at]) else { continue };
        if !super::keywords::is_summary(section[at]) {
            let end = end_of_matching(section, at + 1, rustc::belongs_to_block);
            errors.push(rustc::build_error(code, text, &section[at + 1..end], found));
        }
    }
    errors
}

/// The message of a test that did not panic: the error it returned, or that it should have
/// panicked.
fn failure_message(section: &[&str]) -> Option<String> {
    let line = section
        .iter()
        .rev()
        .find(|line| line.starts_with("Error: ") || line.starts_with("note: test did not panic"))?;
    let text = line.strip_prefix("note: ").unwrap_or(line);
    Some(text.split(" at ").next().unwrap_or(text).to_owned()).filter(|text| !text.is_empty())
}

/// The location of a test that should have panicked.
fn noted_location(section: &[&str]) -> Option<ErrorLocation> {
    let line = section.iter().find(|line| line.starts_with("note: test did not panic"))?;
    line.rsplit_once(" at ").and_then(|(_, text)| location::parse_location(text))
}

fn doc_test_location(name: &str) -> Option<ErrorLocation> {
    let found = DOC_TEST.captures(name)?;
    location::parse_location(&format!("{}:{}", &found[1], &found[2]))
}
