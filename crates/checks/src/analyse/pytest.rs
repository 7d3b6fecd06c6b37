//! pytest: failures under their headings, and the summary with the full test names.
//!
//! Both are combined: a heading has reason and location, the summary has the full name. Depending
//! on the verbosity, only one of them is printed.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{Category, ParsedError, Tool};
use super::found::{Found, taken};
use super::place::{self, Place, is_foreign, pattern, tidy};
use super::traceback;
use crate::limits::ANALYSED_ERRORS_MAX;

/// Parses from a banner of pytest to its last line, or the message when pytest cannot start.
pub(super) fn block(lines: &[&str], at: usize, found: &mut Found) -> Option<usize> {
    let line = lines[at];
    if let Some(file) = line.strip_prefix("ImportError while loading conftest '") {
        let end = taken(lines, at + 1, |line| !line.is_empty());
        let failure = Failure::new(file.trim_end_matches("'."), &lines[at + 1..end]);
        found.add(failure.error(None, Stage::Collection));
        return Some(end);
    }
    if let Some(usage) = line.strip_prefix("ERROR: ").filter(|_| says_pytest(lines, at)) {
        return Some(refused(lines, at, usage, found));
    }
    BANNER.captures(line)?;
    let mut session = Session::default();
    let mut at = at;
    while at < lines.len() {
        if LAST.is_match(lines[at]) {
            at += 1;
            break;
        }
        at = match session.take(lines, at) {
            Step::On(next) => next,
            Step::Over(next) => {
                at = next;
                break;
            }
        };
    }
    session.end(found);
    Some(at)
}

static BANNER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^=+ (test session starts|ERRORS|FAILURES|PASSES|warnings summary.*|short test summary info|.*slowest.*durations.*) =+$",
    )
});
static LAST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:=+ )?(?:(?:\d+ \w+(?:, )?)+|no tests ran) in [\d.]+s(?: \([\d:]+\))?(?: =+)?$")
});
static HEADING: LazyLock<Regex> = LazyLock::new(|| pattern(r"^_+ (\S|\S.*\S) _+$"));
static SUMMARY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(FAILED|ERROR) (\S.*?)(?: - (.*))?$"));
static ONE_LINE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\S.*?\.py:\d+): (\S.*)$"));

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Collection,
    Test,
}

enum Step {
    On(usize),
    Over(usize),
}

/// The parts of a test session's output.
#[derive(Default)]
struct Session<'a> {
    part: &'a str,
    failures: Vec<(String, Failure)>,
    one_line: Vec<Failure>,
    summary: Vec<(&'a str, &'a str)>,
    timeout: Option<Failure>,
}

impl<'a> Session<'a> {
    fn take(&mut self, lines: &'a [&'a str], at: usize) -> Step {
        let line = lines[at];
        if let Some(banner) = BANNER.captures(line) {
            self.part = banner.get(1).map_or("", |part| part.as_str());
            return Step::On(at + 1);
        }
        if line.ends_with("++ Timeout ++++++++++++++++++++++++++++++++++++") {
            let end = taken(lines, at + 1, |line| !line.starts_with("+++++"));
            let failure = Failure::new("", &lines[at + 1..end]);
            let message = "the session was ended: a test took longer than its time limit";
            self.timeout = Some(Failure { message: message.to_owned(), ..failure });
            return Step::Over((end + 1).min(lines.len()));
        }
        match self.part {
            "ERRORS" | "FAILURES" if is_heading(line) => {
                let end = taken(lines, at + 1, |line| !is_heading(line) && !ends_part(line));
                let name = line.trim_matches('_').trim().to_owned();
                self.failures.push((name, Failure::new("", &lines[at + 1..end])));
                Step::On(end)
            }
            "FAILURES" => {
                if let Some(found) = ONE_LINE.captures(line) {
                    let (place, message) = (place::place(&found[1]), found[2].to_owned());
                    self.one_line.push(Failure { message, place });
                }
                Step::On(at + 1)
            }
            "short test summary info" => {
                if let Some(found) = SUMMARY.captures(line) {
                    let name = found.get(2).map_or("", |name| name.as_str());
                    self.summary.push((name, found.get(3).map_or("", |why| why.as_str())));
                }
                Step::On(at + 1)
            }
            _ => Step::On(at + 1),
        }
    }

    fn end(mut self, found: &mut Found) {
        // Limited, since each is searched in the other. One more than the limit shows that there
        // were more.
        self.failures.truncate(ANALYSED_ERRORS_MAX + 1);
        self.summary.truncate(ANALYSED_ERRORS_MAX + 1);
        if let Some(timeout) = self.timeout {
            let error = ParsedError::new(Tool::Pytest, Category::TestTimeout, timeout.message);
            found.add(place::put(timeout.place, error));
        }
        let mut summary = std::mem::take(&mut self.summary);
        let headed: Vec<(Option<String>, Stage, Failure)> = self
            .failures
            .into_iter()
            .map(|(heading, failure)| {
                let name = Name::of(&heading);
                let known = summary.iter().position(|(whole, _)| name.is(whole));
                let whole = known.map(|at| summary.remove(at).0.to_owned());
                (name.test(whole), name.stage, failure)
            })
            .collect();
        // With `--tb=line`, failures have one line each, in the order of the summary.
        let mut one_line = self.one_line.into_iter();
        let exact = one_line.len() == summary.len();
        let rest = summary.into_iter().map(|(name, why)| {
            let told = one_line.next().filter(|_| exact);
            let stage = if name.contains("::") { Stage::Test } else { Stage::Collection };
            let place = Some(Place {
                file: tidy(name.split("::").next().unwrap_or(name)),
                ..Place::default()
            });
            let failure = told.unwrap_or(Failure { message: why.to_owned(), place });
            (Some(name.to_owned()).filter(|_| stage == Stage::Test), stage, failure)
        });
        for (test, stage, failure) in headed.into_iter().chain(rest.collect::<Vec<_>>()) {
            found.add(failure.error(test, stage));
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
struct Name {
    text: String,
    stage: Stage,
}

impl Name {
    fn of(heading: &str) -> Name {
        if let Some(file) = heading.strip_prefix("ERROR collecting ") {
            return Name { text: file.to_owned(), stage: Stage::Collection };
        }
        let around = ["ERROR at setup of ", "ERROR at teardown of "];
        let text = around.iter().find_map(|words| heading.strip_prefix(words)).unwrap_or(heading);
        Name { text: text.to_owned(), stage: Stage::Test }
    }

    /// Returns true if a full name of the summary is this one: `a.py::Class::test` is `Class.test`
    /// in a heading.
    fn is(&self, whole: &str) -> bool {
        match (self.stage, whole.split_once("::")) {
            (Stage::Collection, None) => whole == self.text,
            (Stage::Test, Some((_, test))) => {
                test == self.text || test.replace("::", ".") == self.text
            }
            _ => false,
        }
    }

    fn test(&self, whole: Option<String>) -> Option<String> {
        match self.stage {
            Stage::Collection => None,
            Stage::Test => Some(whole.unwrap_or_else(|| self.text.clone())),
        }
    }
}

/// The reason and location of a failure.
struct Failure {
    message: String,
    place: Option<Place>,
}

impl Failure {
    /// Parses the lines under a heading. `file` is the location if they contain none.
    fn new(file: &str, body: &[&str]) -> Failure {
        let body_end =
            body.iter().position(|line| line.starts_with("---") && line.contains(" Captured "));
        let body = &body[..body_end.unwrap_or(body.len())];
        let reasons: Vec<&str> = body
            .iter()
            .filter_map(|line| line.strip_prefix("E ").or_else(|| (*line == "E").then_some("")))
            .collect();
        let native = traceback::last(body);
        // For a syntax error, Python prints the location first and the message last.
        let syntax_error = reasons.iter().rev().find(|line| is_syntax_error(line));
        let first = syntax_error.or_else(|| reasons.first());
        let message = first.map(|line| line.trim().to_owned());
        let message = message.or_else(|| native.as_ref().map(|native| native.message.clone()));
        let place = reasons.iter().find_map(|line| traceback::frame(line));
        let place =
            place.or_else(|| own_place(body)).or_else(|| native.and_then(|native| native.place));
        let file = Some(file).filter(|file| !file.is_empty());
        let place =
            place.or_else(|| file.map(|file| Place { file: tidy(file), ..Place::default() }));
        Failure { message: message.unwrap_or_else(|| "it failed".to_owned()), place }
    }

    fn error(self, test: Option<String>, stage: Stage) -> ParsedError {
        let category = match stage {
            Stage::Collection => collection(&self.message),
            Stage::Test
                if self.message.contains("from pytest-timeout")
                    || self.message.starts_with("Failed: Timeout") =>
            {
                Category::TestTimeout
            }
            Stage::Test => Category::TestFailure,
        };
        let error = ParsedError::new(Tool::Pytest, category, self.message);
        place::put(self.place, ParsedError { test, ..error })
    }
}

fn is_syntax_error(line: &str) -> bool {
    line.trim_start().starts_with("SyntaxError")
        || line.trim_start().starts_with("IndentationError")
}

fn collection(message: &str) -> Category {
    if message.starts_with("ModuleNotFoundError") || message.starts_with("ImportError") {
        return Category::Dependency;
    }
    if message.starts_with("PermissionError") || message.starts_with("FileNotFoundError") {
        return Category::Environment;
    }
    Category::Build
}

/// The last location in the project: `path:7: AssertionError`, or `path:7: in name`.
fn own_place(body: &[&str]) -> Option<Place> {
    static FRAME: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^(\S.*?:\d+): (?:in .+|[A-Za-z_][\w.]*)?$"));
    let places = body.iter().rev().filter_map(|line| FRAME.captures(line));
    let mut places = places.filter_map(|found| place::place(&found[1]));
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
fn refused(lines: &[&str], at: usize, usage: &str, found: &mut Found) -> usize {
    let said = lines.get(at + 1).filter(|_| usage.starts_with("usage: "));
    let said = said.and_then(|line| line.split_once(": error: ")).map(|(_, text)| text);
    found.add(ParsedError::new(Tool::Pytest, Category::Environment, said.unwrap_or(usage)));
    taken(lines, at + 1, |line| line.contains(": error: ") || line.starts_with("  "))
}
