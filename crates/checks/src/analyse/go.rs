//! Go: the compiler, vet, the formatter, and tests.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ErrorCategory, ParsedError, ReportingTool};
use super::collector::{ErrorCollector, end_of_matching};
use super::keywords;
use super::location::{self, ErrorLocation, clean_path, compile_pattern, is_foreign};
use crate::limits::ANALYSED_ERRORS_MAX;

/// State between lines about the current package and test.
#[derive(Default)]
pub(super) struct GoParserState {
    heading: GoSection,
    test: Option<(String, GoTestResult)>,
    pending: Vec<ParsedError>,
    failed: Vec<String>,
}

/// The kind of section that a line is in.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum GoSection {
    #[default]
    None,
    /// `# package`: output of the compiler.
    Compiler,
    /// `# [package]`: output of vet.
    Vet,
}

/// The result of a test so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GoTestResult {
    Runs,
    Failed,
    Fine,
}

/// Parses the output of the compiler, vet, gofmt and tests.
pub(super) fn parse_block(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    let line = lines[at];
    if let Some(heading) = HEADING.captures(line) {
        found.go.heading =
            if heading.get(1).is_some() { GoSection::Vet } else { GoSection::Compiler };
        return Some(at + 1);
    }
    if PACKAGE.is_match(line) {
        report_silent_failures(found);
        found.go.heading = GoSection::None;
        return Some(at + 1);
    }
    if let Some(test) = TEST.captures(line) {
        handle_test_line(&test[1], &test[2], found);
        return Some(at + 1);
    }
    let readers = [parse_compiler_line, parse_test_message, parse_panic, parse_gofmt_diff];
    readers.into_iter().find_map(|read| read(lines, at, found))
}

/// Reports what is left at the end of the output.
pub(super) fn finish_tests(found: &mut ErrorCollector) {
    report_silent_failures(found);
}

static HEADING: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"^# (\[)?[\w./~-]+\]?(?: \[.+\])?$"));
static PACKAGE: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^(?:FAIL|ok  |\?   )\t\S+"));
static TEST: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"^\s*(=== RUN|=== CONT|=== NAME|=== PAUSE|--- FAIL:|--- PASS:|--- SKIP:) +(\S+)",
    )
});
static COMPILED: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"^(vet: )?(\S.*?\.go:\d+(?::\d+)?): (.+)$"));
/// A location as tools print it. Package `log` prints locations too, but after a date or without a
/// column.
static PLAIN: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"^(?:[A-Za-z]:)?[^\s:]+\.go:\d+:\d+$"));
static SAID: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^( +)(\S+\.go:\d+): (.*)$"));

/// Handles the line at which a test starts, continues or ends.
fn handle_test_line(mark: &str, name: &str, found: &mut ErrorCollector) {
    let name = name.to_owned();
    let mine = |error: &ParsedError| error.test.as_deref() == Some(&name);
    match mark {
        "--- FAIL:" => {
            let (pending, rest): (Vec<_>, Vec<_>) =
                std::mem::take(&mut found.go.pending).into_iter().partition(mine);
            found.go.pending = rest;
            pending.into_iter().for_each(|error| found.add(error));
            found.go.failed.push(name.clone());
            found.go.test = Some((name, GoTestResult::Failed));
        }
        "--- PASS:" | "--- SKIP:" => {
            found.go.pending.retain(|error| !mine(error));
            found.go.test = Some((name, GoTestResult::Fine));
        }
        _ => found.go.test = Some((name, GoTestResult::Runs)),
    }
}

/// Parses a message of a test. With `-v` it comes before the test's result, otherwise after it.
fn parse_test_message(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    let line = SAID.captures(lines[at])?;
    let (test, mood) = found.go.test.clone()?;
    let deep = line[1].len();
    let deeper = |line: &str| {
        line.len() - line.trim_start_matches(' ').len() > deep
            && !SAID.is_match(line)
            && !TEST.is_match(line)
    };
    let end = end_of_matching(lines, at + 1, deeper);
    let message = [&line[3]].into_iter().chain(lines[at + 1..end].iter().map(|line| line.trim()));
    let message = message.collect::<Vec<_>>().join("\n");
    let error = ParsedError::new(ReportingTool::Go, ErrorCategory::TestFailure, message);
    let error = location::set_location(
        location::parse_location(&line[2]),
        ParsedError { test: Some(test), ..error },
    );
    match mood {
        GoTestResult::Failed => found.add(error),
        // Limited, since each end of a test scans all of them.
        GoTestResult::Runs if found.go.pending.len() < ANALYSED_ERRORS_MAX => {
            found.go.pending.push(error)
        }
        GoTestResult::Runs => {}
        GoTestResult::Fine => {}
    }
    Some(end)
}

/// Reports failed tests without a message and without a failed subtest.
fn report_silent_failures(found: &mut ErrorCollector) {
    let failed = std::mem::take(&mut found.go.failed);
    found.go.pending.clear();
    found.go.test = None;
    if failed.is_empty() {
        return;
    }
    let mut covered: BTreeSet<String> = BTreeSet::new();
    let spoken = found.errors_of_tool(ReportingTool::Go).filter_map(|error| error.test.clone());
    for name in spoken.chain(failed.iter().filter_map(|name| parent_test(name))) {
        let mut name = Some(name);
        while let Some(one) = name.filter(|one| !covered.contains(one)) {
            name = parent_test(&one);
            covered.insert(one);
        }
    }
    for name in failed.into_iter().filter(|name| !covered.contains(name)) {
        let error =
            ParsedError::new(ReportingTool::Go, ErrorCategory::TestFailure, "the test failed");
        found.add(ParsedError { test: Some(name), ..error });
    }
}

fn parent_test(test: &str) -> Option<String> {
    test.rsplit_once('/').map(|(parent, _)| parent.to_owned())
}

/// Parses `path.go:1:2: text` of the compiler, vet or a linter.
fn parse_compiler_line(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    let line = COMPILED.captures(lines[at])?;
    let is_headed = line.get(1).is_some() || found.go.heading != GoSection::None;
    if !is_headed && !PLAIN.is_match(&line[2]) {
        return None;
    }
    let place = location::parse_location(&line[2])?;
    let text = &line[3];
    if text.starts_with("error: ") || text.starts_with("warning: ") {
        return None;
    }
    let end = end_of_matching(lines, at + 1, |line| line.starts_with('\t'));
    let message = [text].into_iter().chain(lines[at + 1..end].iter().map(|line| line.trim()));
    let message = message.collect::<Vec<_>>().join("\n");
    let heading = if line.get(1).is_some() { GoSection::Compiler } else { found.go.heading };
    let category = category_of(&message, heading);
    found.add(place.set_on(ParsedError::new(ReportingTool::Go, category, message)));
    Some(end)
}

fn category_of(message: &str, heading: GoSection) -> ErrorCategory {
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    match heading {
        GoSection::Vet => return ErrorCategory::Lint,
        GoSection::None
            if message.starts_with("expected ") || message.starts_with("syntax error") =>
        {
            return ErrorCategory::Build;
        }
        GoSection::None => return keywords::find_category(message).unwrap_or(ErrorCategory::Lint),
        GoSection::Compiler => {}
    }
    if has(&["syntax error", "imported and not used", "declared and not used"]) {
        return ErrorCategory::Build;
    }
    if has(&["could not import", "no required module", "cannot find package"]) {
        return ErrorCategory::Dependency;
    }
    if has(&["undefined", "has no field or method", "unknown field"]) {
        return ErrorCategory::TypeMissing;
    }
    if has(&[
        "cannot use",
        "mismatched types",
        "cannot convert",
        "not enough arguments",
        "too many arguments",
    ]) {
        return ErrorCategory::TypeMismatch;
    }
    ErrorCategory::Type
}

/// Parses a panic with its goroutines, or a test timeout.
fn parse_panic(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    let text =
        lines[at].strip_prefix("panic: ").or_else(|| lines[at].strip_prefix("fatal error: "))?;
    let window = &lines[at..lines.len().min(at + 40)];
    if !window.iter().any(|line| line.starts_with("goroutine ")) {
        return None;
    }
    let end = end_of_matching(lines, at + 1, |line| {
        !PACKAGE.is_match(line) && !line.starts_with("exit status ") && line != "FAIL"
    });
    let body = &lines[at + 1..end];
    let message = text.split(" [recovered").next().unwrap_or(text);
    if message.starts_with("test timed out after ") {
        let tests = body.iter().filter_map(|line| line.strip_prefix("\t\t"));
        let names: Vec<&str> = tests
            .filter_map(|line| line.split(' ').next())
            .filter(|name| name.starts_with("Test"))
            .collect();
        for name in &names {
            let place = project_frames(body)
                .find(|(call, _)| call.contains(&format!(".{name}(")))
                .map(|(_, place)| place);
            let error = ParsedError::new(ReportingTool::Go, ErrorCategory::TestTimeout, message);
            found.add(location::set_location(
                place,
                ParsedError { test: Some((*name).to_owned()), ..error },
            ));
        }
        if names.is_empty() {
            found.add(ParsedError::new(ReportingTool::Go, ErrorCategory::TestTimeout, message));
        }
        return Some(end);
    }
    let test = match &found.go.test {
        Some((name, GoTestResult::Failed | GoTestResult::Runs)) => Some(name.clone()),
        _ => None,
    };
    let category = match &test {
        Some(_) => ErrorCategory::TestFailure,
        None if message.contains("nil pointer") || message.contains("nil map") => {
            ErrorCategory::RuntimeReference
        }
        None => ErrorCategory::Runtime,
    };
    let place = project_frames(body).map(|(_, place)| place).next();
    let error = ParsedError::new(ReportingTool::Go, category, message);
    found.add(location::set_location(place, ParsedError { test, ..error }));
    Some(end)
}

/// The stack frames in the project: a call, followed by `\tpath.go:7 +0x5f`.
fn project_frames<'a>(body: &'a [&'a str]) -> impl Iterator<Item = (&'a str, ErrorLocation)> {
    body.windows(2).filter_map(|pair| {
        let place = pair[1].strip_prefix('\t')?.split(" +0x").next()?;
        let place = location::parse_location(place).filter(|place| place.file.ends_with(".go"))?;
        (!is_foreign(&place.file)).then_some((pair[0], place))
    })
}

/// Parses a diff of `gofmt -d`.
fn parse_gofmt_diff(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    static DIFF: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"^diff (?:-u )?(.+\.go)\.orig (.+\.go)$"));
    let diff = DIFF.captures(lines[at])?;
    let error =
        ParsedError::new(ReportingTool::Go, ErrorCategory::Format, "gofmt would change this file");
    found.add(ParsedError { file: Some(clean_path(&diff[2])), ..error });
    Some(end_of_matching(lines, at + 1, |line| line.starts_with([' ', '+', '-', '@', '\t', '\\'])))
}

/// Parses `gofmt -l`, whose whole output is a list of file names.
pub(super) fn parse_gofmt_list(lines: &[&str], found: &mut ErrorCollector) {
    let is_name =
        |line: &&str| line.ends_with(".go") && !line.contains(": ") && !line.starts_with(' ');
    let told: Vec<&&str> = lines.iter().filter(|line| !line.trim().is_empty()).collect();
    if told.is_empty() || !told.iter().all(|line| is_name(line)) {
        return;
    }
    for name in told {
        let error = ParsedError::new(
            ReportingTool::Go,
            ErrorCategory::Format,
            "gofmt would change this file",
        );
        found.add(ParsedError { file: Some(clean_path(name)), ..error });
    }
}
