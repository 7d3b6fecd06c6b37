//! Go: the compiler, vet, the formatter, and tests.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{Category, ParsedError, Tool};
use super::found::{Found, taken};
use super::place::{self, Place, is_foreign, pattern, tidy};
use super::signs;
use crate::limits::ANALYSED_ERRORS_MAX;

/// State between lines about the current package and test.
#[derive(Default)]
pub(super) struct Go {
    heading: Heading,
    test: Option<(String, Mood)>,
    pending: Vec<ParsedError>,
    failed: Vec<String>,
}

/// The kind of section that a line is in.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Heading {
    #[default]
    None,
    /// `# package`: output of the compiler.
    Compiler,
    /// `# [package]`: output of vet.
    Vet,
}

/// The result of a test so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Runs,
    Failed,
    Fine,
}

/// Parses the output of the compiler, vet, gofmt and tests.
pub(super) fn block(lines: &[&str], at: usize, found: &mut Found) -> Option<usize> {
    let line = lines[at];
    if let Some(heading) = HEADING.captures(line) {
        found.go.heading = if heading.get(1).is_some() { Heading::Vet } else { Heading::Compiler };
        return Some(at + 1);
    }
    if PACKAGE.is_match(line) {
        settle(found);
        found.go.heading = Heading::None;
        return Some(at + 1);
    }
    if let Some(test) = TEST.captures(line) {
        turn(&test[1], &test[2], found);
        return Some(at + 1);
    }
    let readers = [compiled, said, panic, difference];
    readers.into_iter().find_map(|read| read(lines, at, found))
}

/// Reports what is left at the end of the output.
pub(super) fn finish(found: &mut Found) {
    settle(found);
}

static HEADING: LazyLock<Regex> = LazyLock::new(|| pattern(r"^# (\[)?[\w./~-]+\]?(?: \[.+\])?$"));
static PACKAGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:FAIL|ok  |\?   )\t\S+"));
static TEST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^\s*(=== RUN|=== CONT|=== NAME|=== PAUSE|--- FAIL:|--- PASS:|--- SKIP:) +(\S+)")
});
static COMPILED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(vet: )?(\S.*?\.go:\d+(?::\d+)?): (.+)$"));
/// A location as tools print it. Package `log` prints locations too, but after a date or without a
/// column.
static PLAIN: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:[A-Za-z]:)?[^\s:]+\.go:\d+:\d+$"));
static SAID: LazyLock<Regex> = LazyLock::new(|| pattern(r"^( +)(\S+\.go:\d+): (.*)$"));

/// Handles the line at which a test starts, continues or ends.
fn turn(mark: &str, name: &str, found: &mut Found) {
    let name = name.to_owned();
    let mine = |error: &ParsedError| error.test.as_deref() == Some(&name);
    match mark {
        "--- FAIL:" => {
            let (pending, rest): (Vec<_>, Vec<_>) =
                std::mem::take(&mut found.go.pending).into_iter().partition(mine);
            found.go.pending = rest;
            pending.into_iter().for_each(|error| found.add(error));
            found.go.failed.push(name.clone());
            found.go.test = Some((name, Mood::Failed));
        }
        "--- PASS:" | "--- SKIP:" => {
            found.go.pending.retain(|error| !mine(error));
            found.go.test = Some((name, Mood::Fine));
        }
        _ => found.go.test = Some((name, Mood::Runs)),
    }
}

/// Parses a message of a test. With `-v` it comes before the test's result, otherwise after it.
fn said(lines: &[&str], at: usize, found: &mut Found) -> Option<usize> {
    let line = SAID.captures(lines[at])?;
    let (test, mood) = found.go.test.clone()?;
    let deep = line[1].len();
    let deeper = |line: &str| {
        line.len() - line.trim_start_matches(' ').len() > deep
            && !SAID.is_match(line)
            && !TEST.is_match(line)
    };
    let end = taken(lines, at + 1, deeper);
    let message = [&line[3]].into_iter().chain(lines[at + 1..end].iter().map(|line| line.trim()));
    let message = message.collect::<Vec<_>>().join("\n");
    let error = ParsedError::new(Tool::Go, Category::TestFailure, message);
    let error = place::put(place::place(&line[2]), ParsedError { test: Some(test), ..error });
    match mood {
        Mood::Failed => found.add(error),
        // Limited, since each end of a test scans all of them.
        Mood::Runs if found.go.pending.len() < ANALYSED_ERRORS_MAX => found.go.pending.push(error),
        Mood::Runs => {}
        Mood::Fine => {}
    }
    Some(end)
}

/// Reports failed tests without a message and without a failed subtest.
fn settle(found: &mut Found) {
    let failed = std::mem::take(&mut found.go.failed);
    found.go.pending.clear();
    found.go.test = None;
    if failed.is_empty() {
        return;
    }
    let mut covered: BTreeSet<String> = BTreeSet::new();
    let spoken = found.of(Tool::Go).filter_map(|error| error.test.clone());
    for name in spoken.chain(failed.iter().filter_map(|name| parent(name))) {
        let mut name = Some(name);
        while let Some(one) = name.filter(|one| !covered.contains(one)) {
            name = parent(&one);
            covered.insert(one);
        }
    }
    for name in failed.into_iter().filter(|name| !covered.contains(name)) {
        let error = ParsedError::new(Tool::Go, Category::TestFailure, "the test failed");
        found.add(ParsedError { test: Some(name), ..error });
    }
}

fn parent(test: &str) -> Option<String> {
    test.rsplit_once('/').map(|(parent, _)| parent.to_owned())
}

/// Parses `path.go:1:2: text` of the compiler, vet or a linter.
fn compiled(lines: &[&str], at: usize, found: &mut Found) -> Option<usize> {
    let line = COMPILED.captures(lines[at])?;
    let is_headed = line.get(1).is_some() || found.go.heading != Heading::None;
    if !is_headed && !PLAIN.is_match(&line[2]) {
        return None;
    }
    let place = place::place(&line[2])?;
    let text = &line[3];
    if text.starts_with("error: ") || text.starts_with("warning: ") {
        return None;
    }
    let end = taken(lines, at + 1, |line| line.starts_with('\t'));
    let message = [text].into_iter().chain(lines[at + 1..end].iter().map(|line| line.trim()));
    let message = message.collect::<Vec<_>>().join("\n");
    let heading = if line.get(1).is_some() { Heading::Compiler } else { found.go.heading };
    let category = category(&message, heading);
    found.add(place.put(ParsedError::new(Tool::Go, category, message)));
    Some(end)
}

fn category(message: &str, heading: Heading) -> Category {
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    match heading {
        Heading::Vet => return Category::Lint,
        Heading::None
            if message.starts_with("expected ") || message.starts_with("syntax error") =>
        {
            return Category::Build;
        }
        Heading::None => return signs::category(message).unwrap_or(Category::Lint),
        Heading::Compiler => {}
    }
    if has(&["syntax error", "imported and not used", "declared and not used"]) {
        return Category::Build;
    }
    if has(&["could not import", "no required module", "cannot find package"]) {
        return Category::Dependency;
    }
    if has(&["undefined", "has no field or method", "unknown field"]) {
        return Category::TypeMissing;
    }
    if has(&[
        "cannot use",
        "mismatched types",
        "cannot convert",
        "not enough arguments",
        "too many arguments",
    ]) {
        return Category::TypeMismatch;
    }
    Category::Type
}

/// Parses a panic with its goroutines, or a test timeout.
fn panic(lines: &[&str], at: usize, found: &mut Found) -> Option<usize> {
    let text =
        lines[at].strip_prefix("panic: ").or_else(|| lines[at].strip_prefix("fatal error: "))?;
    let window = &lines[at..lines.len().min(at + 40)];
    if !window.iter().any(|line| line.starts_with("goroutine ")) {
        return None;
    }
    let end = taken(lines, at + 1, |line| {
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
            let place = frames(body)
                .find(|(call, _)| call.contains(&format!(".{name}(")))
                .map(|(_, place)| place);
            let error = ParsedError::new(Tool::Go, Category::TestTimeout, message);
            found.add(place::put(place, ParsedError { test: Some((*name).to_owned()), ..error }));
        }
        if names.is_empty() {
            found.add(ParsedError::new(Tool::Go, Category::TestTimeout, message));
        }
        return Some(end);
    }
    let test = match &found.go.test {
        Some((name, Mood::Failed | Mood::Runs)) => Some(name.clone()),
        _ => None,
    };
    let category = match &test {
        Some(_) => Category::TestFailure,
        None if message.contains("nil pointer") || message.contains("nil map") => {
            Category::RuntimeReference
        }
        None => Category::Runtime,
    };
    let place = frames(body).map(|(_, place)| place).next();
    let error = ParsedError::new(Tool::Go, category, message);
    found.add(place::put(place, ParsedError { test, ..error }));
    Some(end)
}

/// The stack frames in the project: a call, followed by `\tpath.go:7 +0x5f`.
fn frames<'a>(body: &'a [&'a str]) -> impl Iterator<Item = (&'a str, Place)> {
    body.windows(2).filter_map(|pair| {
        let place = pair[1].strip_prefix('\t')?.split(" +0x").next()?;
        let place = place::place(place).filter(|place| place.file.ends_with(".go"))?;
        (!is_foreign(&place.file)).then_some((pair[0], place))
    })
}

/// Parses a diff of `gofmt -d`.
fn difference(lines: &[&str], at: usize, found: &mut Found) -> Option<usize> {
    static DIFF: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^diff (?:-u )?(.+\.go)\.orig (.+\.go)$"));
    let diff = DIFF.captures(lines[at])?;
    let error = ParsedError::new(Tool::Go, Category::Format, "gofmt would change this file");
    found.add(ParsedError { file: Some(tidy(&diff[2])), ..error });
    Some(taken(lines, at + 1, |line| line.starts_with([' ', '+', '-', '@', '\t', '\\'])))
}

/// Parses `gofmt -l`, whose whole output is a list of file names.
pub(super) fn listed(lines: &[&str], found: &mut Found) {
    let is_name =
        |line: &&str| line.ends_with(".go") && !line.contains(": ") && !line.starts_with(' ');
    let told: Vec<&&str> = lines.iter().filter(|line| !line.trim().is_empty()).collect();
    if told.is_empty() || !told.iter().all(|line| is_name(line)) {
        return;
    }
    for name in told {
        let error = ParsedError::new(Tool::Go, Category::Format, "gofmt would change this file");
        found.add(ParsedError { file: Some(tidy(name)), ..error });
    }
}
