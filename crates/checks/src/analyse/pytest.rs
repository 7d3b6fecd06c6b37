//! pytest: failures under their headings, and the summary with the full test names.
//!
//! Both are combined: a heading has reason and location, the summary has the full name. Depending
//! on the verbosity, only one of them is printed.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ErrorCategory, ParsedError, ReportingTool};
use super::collector::{ErrorCollector, end_of_matching};
use super::location::{self, ErrorLocation, clean_path, compile_pattern, is_foreign};
use super::traceback;
use crate::limits::ANALYSED_ERRORS_MAX;

/// Parses from a banner of pytest to its last line, or the message when pytest cannot start.
pub(super) fn parse_block(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    let line = lines[at];
    if let Some(file) = line.strip_prefix("ImportError while loading conftest '") {
        let end = end_of_matching(lines, at + 1, |line| !line.is_empty());
        let failure = PytestFailure::new(file.trim_end_matches("'."), &lines[at + 1..end]);
        found.add(failure.into_error(None, PytestStage::Collection));
        return Some(end);
    }
    if let Some(usage) = line.strip_prefix("ERROR: ").filter(|_| says_pytest(lines, at)) {
        return Some(parse_usage_error(lines, at, usage, found));
    }
    BANNER.captures(line)?;
    let mut session = PytestSession::default();
    let mut at = at;
    while at < lines.len() {
        if LAST.is_match(lines[at]) {
            at += 1;
            break;
        }
        at = match session.take_line(lines, at) {
            PytestSessionStep::On(next) => next,
            PytestSessionStep::Over(next) => {
                at = next;
                break;
            }
        };
    }
    session.finish(found);
    Some(at)
}

static BANNER: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"^=+ (test session starts|ERRORS|FAILURES|PASSES|warnings summary.*|short test summary info|.*slowest.*durations.*) =+$",
    )
});
static LAST: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"^(?:=+ )?(?:(?:\d+ \w+(?:, )?)+|no tests ran) in [\d.]+s(?: \([\d:]+\))?(?: =+)?$",
    )
});
static HEADING: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^_+ (\S|\S.*\S) _+$"));
static SUMMARY: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"^(FAILED|ERROR) (\S.*?)(?: - (.*))?$"));
static ONE_LINE: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^(\S.*?\.py:\d+): (\S.*)$"));

#[derive(Clone, Copy, PartialEq, Eq)]
enum PytestStage {
    Collection,
    Test,
}

enum PytestSessionStep {
    On(usize),
    Over(usize),
}

/// The parts of a test session's output.
#[derive(Default)]
struct PytestSession<'a> {
    part: &'a str,
    failures: Vec<(String, PytestFailure)>,
    one_line: Vec<PytestFailure>,
    summary: Vec<(&'a str, &'a str)>,
    timeout: Option<PytestFailure>,
}

impl<'a> PytestSession<'a> {
    fn take_line(&mut self, lines: &'a [&'a str], at: usize) -> PytestSessionStep {
        let line = lines[at];
        if let Some(banner) = BANNER.captures(line) {
            self.part = banner.get(1).map_or("", |part| part.as_str());
            return PytestSessionStep::On(at + 1);
        }
        if line.ends_with("++ Timeout ++++++++++++++++++++++++++++++++++++") {
            let end = end_of_matching(lines, at + 1, |line| !line.starts_with("+++++"));
            let failure = PytestFailure::new("", &lines[at + 1..end]);
            let message = "the session was ended: a test took longer than its time limit";
            self.timeout = Some(PytestFailure { message: message.to_owned(), ..failure });
            return PytestSessionStep::Over((end + 1).min(lines.len()));
        }
        match self.part {
            "ERRORS" | "FAILURES" if is_heading(line) => {
                let end =
                    end_of_matching(lines, at + 1, |line| !is_heading(line) && !ends_part(line));
                let name = line.trim_matches('_').trim().to_owned();
                self.failures.push((name, PytestFailure::new("", &lines[at + 1..end])));
                PytestSessionStep::On(end)
            }
            "FAILURES" => {
                if let Some(found) = ONE_LINE.captures(line) {
                    let (place, message) =
                        (location::parse_location(&found[1]), found[2].to_owned());
                    self.one_line.push(PytestFailure { message, place });
                }
                PytestSessionStep::On(at + 1)
            }
            "short test summary info" => {
                if let Some(found) = SUMMARY.captures(line) {
                    let name = found.get(2).map_or("", |name| name.as_str());
                    self.summary.push((name, found.get(3).map_or("", |why| why.as_str())));
                }
                PytestSessionStep::On(at + 1)
            }
            _ => PytestSessionStep::On(at + 1),
        }
    }

    fn finish(mut self, found: &mut ErrorCollector) {
        // Limited, since each is searched in the other. One more than the limit shows that there
        // were more.
        self.failures.truncate(ANALYSED_ERRORS_MAX + 1);
        self.summary.truncate(ANALYSED_ERRORS_MAX + 1);
        if let Some(timeout) = self.timeout {
            let error = ParsedError::new(
                ReportingTool::Pytest,
                ErrorCategory::TestTimeout,
                timeout.message,
            );
            found.add(location::set_location(timeout.place, error));
        }
        let mut summary = std::mem::take(&mut self.summary);
        let headed: Vec<(Option<String>, PytestStage, PytestFailure)> = self
            .failures
            .into_iter()
            .map(|(heading, failure)| {
                let name = PytestHeading::from_heading(&heading);
                let known = summary.iter().position(|(whole, _)| name.matches_name(whole));
                let whole = known.map(|at| summary.remove(at).0.to_owned());
                (name.test_name(whole), name.stage, failure)
            })
            .collect();
        // With `--tb=line`, failures have one line each, in the order of the summary.
        let mut one_line = self.one_line.into_iter();
        let exact = one_line.len() == summary.len();
        let rest = summary.into_iter().map(|(name, why)| {
            let told = one_line.next().filter(|_| exact);
            let stage =
                if name.contains("::") { PytestStage::Test } else { PytestStage::Collection };
            let place = Some(ErrorLocation {
                file: clean_path(name.split("::").next().unwrap_or(name)),
                ..ErrorLocation::default()
            });
            let failure = told.unwrap_or(PytestFailure { message: why.to_owned(), place });
            (Some(name.to_owned()).filter(|_| stage == PytestStage::Test), stage, failure)
        });
        for (test, stage, failure) in headed.into_iter().chain(rest.collect::<Vec<_>>()) {
            found.add(failure.into_error(test, stage));
        }
    }
}

fn is_heading(line: &str) -> bool {
    HEADING.is_match(line) && !line.chars().all(|c| c == '_' || c == ' ')
}

fn ends_part(line: &str) -> bool {
    BANNER.is_match(line) || LAST.is_match(line)
}

/// The test or file that a heading names.
struct PytestHeading {
    text: String,
    stage: PytestStage,
}

impl PytestHeading {
    fn from_heading(heading: &str) -> PytestHeading {
        if let Some(file) = heading.strip_prefix("ERROR collecting ") {
            return PytestHeading { text: file.to_owned(), stage: PytestStage::Collection };
        }
        let around = ["ERROR at setup of ", "ERROR at teardown of "];
        let text = around.iter().find_map(|words| heading.strip_prefix(words)).unwrap_or(heading);
        PytestHeading { text: text.to_owned(), stage: PytestStage::Test }
    }

    /// Returns true if a full name of the summary is this one: `a.py::Class::test` is `Class.test`
    /// in a heading.
    fn matches_name(&self, whole: &str) -> bool {
        match (self.stage, whole.split_once("::")) {
            (PytestStage::Collection, None) => whole == self.text,
            (PytestStage::Test, Some((_, test))) => {
                test == self.text || test.replace("::", ".") == self.text
            }
            _ => false,
        }
    }

    fn test_name(&self, whole: Option<String>) -> Option<String> {
        match self.stage {
            PytestStage::Collection => None,
            PytestStage::Test => Some(whole.unwrap_or_else(|| self.text.clone())),
        }
    }
}

/// The reason and location of a failure.
struct PytestFailure {
    message: String,
    place: Option<ErrorLocation>,
}

impl PytestFailure {
    /// Parses the lines under a heading. `file` is the location if they contain none.
    fn new(file: &str, body: &[&str]) -> PytestFailure {
        let body_end =
            body.iter().position(|line| line.starts_with("---") && line.contains(" Captured "));
        let body = &body[..body_end.unwrap_or(body.len())];
        let reasons: Vec<&str> = body
            .iter()
            .filter_map(|line| line.strip_prefix("E ").or_else(|| (*line == "E").then_some("")))
            .collect();
        let native = traceback::last_exception(body);
        // For a syntax error, Python prints the location first and the message last.
        let syntax_error = reasons.iter().rev().find(|line| is_syntax_error(line));
        let first = syntax_error.or_else(|| reasons.first());
        let message = first.map(|line| line.trim().to_owned());
        let message = message.or_else(|| native.as_ref().map(|native| native.message.clone()));
        let place = reasons.iter().find_map(|line| traceback::parse_python_frame(line));
        let place =
            place.or_else(|| own_location(body)).or_else(|| native.and_then(|native| native.place));
        let file = Some(file).filter(|file| !file.is_empty());
        let place = place.or_else(|| {
            file.map(|file| ErrorLocation { file: clean_path(file), ..ErrorLocation::default() })
        });
        PytestFailure { message: message.unwrap_or_else(|| "it failed".to_owned()), place }
    }

    fn into_error(self, test: Option<String>, stage: PytestStage) -> ParsedError {
        let category = match stage {
            PytestStage::Collection => collection_category(&self.message),
            PytestStage::Test
                if self.message.contains("from pytest-timeout")
                    || self.message.starts_with("Failed: Timeout") =>
            {
                ErrorCategory::TestTimeout
            }
            PytestStage::Test => ErrorCategory::TestFailure,
        };
        let error = ParsedError::new(ReportingTool::Pytest, category, self.message);
        location::set_location(self.place, ParsedError { test, ..error })
    }
}

fn is_syntax_error(line: &str) -> bool {
    line.trim_start().starts_with("SyntaxError")
        || line.trim_start().starts_with("IndentationError")
}

fn collection_category(message: &str) -> ErrorCategory {
    if message.starts_with("ModuleNotFoundError") || message.starts_with("ImportError") {
        return ErrorCategory::Dependency;
    }
    if message.starts_with("PermissionError") || message.starts_with("FileNotFoundError") {
        return ErrorCategory::Environment;
    }
    ErrorCategory::Build
}

/// The last location in the project: `path:7: AssertionError`, or `path:7: in name`.
fn own_location(body: &[&str]) -> Option<ErrorLocation> {
    static FRAME: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"^(\S.*?:\d+): (?:in .+|[A-Za-z_][\w.]*)?$"));
    let places = body.iter().rev().filter_map(|line| FRAME.captures(line));
    let mut places = places.filter_map(|found| location::parse_location(&found[1]));
    places.find(|place| !is_foreign(&place.file))
}

/// Returns true if an `ERROR:` line was probably printed by pytest.
fn says_pytest(lines: &[&str], at: usize) -> bool {
    let near = &lines[at.saturating_sub(3)..lines.len().min(at + 3)];
    near.iter().any(|line| {
        line.contains("pytest") || LAST.is_match(line) || line.trim_start().starts_with("rootdir: ")
    })
}

/// Parses the message for invalid arguments of pytest.
fn parse_usage_error(lines: &[&str], at: usize, usage: &str, found: &mut ErrorCollector) -> usize {
    let said = lines.get(at + 1).filter(|_| usage.starts_with("usage: "));
    let said = said.and_then(|line| line.split_once(": error: ")).map(|(_, text)| text);
    found.add(ParsedError::new(
        ReportingTool::Pytest,
        ErrorCategory::Environment,
        said.unwrap_or(usage),
    ));
    end_of_matching(lines, at + 1, |line| line.contains(": error: ") || line.starts_with("  "))
}
