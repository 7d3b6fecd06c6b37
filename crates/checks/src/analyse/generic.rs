//! All other tools: `path:1:2: error: text`, linter codes, and lines that start with a program's
//! name or `error:`.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ErrorCategory, ErrorSeverity, ParsedError, ReportingTool};
use super::collector::ErrorCollector;
use super::keywords;
use super::location::{self, compile_pattern};

/// Parses one or two lines.
pub(super) fn parse_block(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    let line = lines[at];
    if found.running || line.starts_with(char::is_whitespace) && !line.starts_with(" ! [") {
        return None;
    }
    if let Some(level) = LEVEL.captures(line) {
        found.warnings += u64::from(level[1].to_lowercase().starts_with("warn"));
        return Some(at + 1);
    }
    let readers = [parse_located, parse_coded, parse_linker, parse_conflict];
    if let Some(next) = readers.into_iter().find_map(|read| read(lines, at, found)) {
        return Some(next);
    }
    if !keywords::is_summary(line) {
        parse_program_line(line, found);
    }
    None
}

/// A line with an explicit level below error, such as `warning: … Permission denied`.
static LEVEL: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"^(?:[\w./+-]+(?:\[\d+\])?: )?\[?(?i:(warn(?:ing)?|info|debug|notice|trace|hint|note))(?:[\]:) ]|$)",
    )
});

/// Returns true if the line has an explicit level below error.
pub(super) fn is_quiet(line: &str) -> bool {
    LEVEL.is_match(line)
}

/// Parses `path:1:2: error: text`, as printed by C compilers, javac and mypy.
fn parse_located(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    static PLACED: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"^(.+?:\d+(?::\d+)?):? (fatal error|error|warning)(?: [A-Z]+\d+)?: (.+?)(?:  \[([\w-]+)\])?$",
        )
    });
    let line = PLACED.captures(lines[at])?;
    let place = location::parse_location(&line[1])?;
    if &line[2] == "warning" {
        found.warnings += 1;
        return Some(at + 1);
    }
    let text = &line[3];
    let is_python = place.file.ends_with(".py");
    let category = match () {
        () if is_python => type_category(text).unwrap_or(ErrorCategory::Type),
        () if &line[2] == "fatal error" && text.ends_with("No such file or directory") => {
            ErrorCategory::Dependency
        }
        () => type_category(text).unwrap_or(ErrorCategory::Build),
    };
    let code = line.get(4).map(|code| code.as_str().to_owned());
    let error = ParsedError::new(ReportingTool::Generic, category, text);
    found.add(place.set_on(ParsedError { code, ..error }));
    Some(at + 1)
}

fn type_category(text: &str) -> Option<ErrorCategory> {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&[
        "undeclared",
        "has no member",
        "unknown type name",
        "cannot find symbol",
        "is not defined",
        "has no attribute",
        "was not declared",
    ]) {
        return Some(ErrorCategory::TypeMissing);
    }
    let mismatch = ["ncompatible", "cannot convert", "invalid conversion"];
    has(&mismatch).then_some(ErrorCategory::TypeMismatch)
}

/// Parses `path:1:2: F401 text`, as printed by linters, or `F401 text` followed by ` --> path:1:2`.
fn parse_coded(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    static CODED: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(r"^(.+?:\d+:\d+):? ([A-Z]{1,5}\d{3,4})(?: \[\*\])? (.+)$")
    });
    static HEAD: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"^([A-Z]{1,5}\d{3,4})(?: \[\*\])? (.+)$"));
    if let Some(line) = CODED.captures(lines[at]) {
        let place = location::parse_location(&line[1])?;
        found.add(place.set_on(lint_error(&line[2], &line[3])));
        return Some(at + 1);
    }
    let line = HEAD.captures(lines[at])?;
    let below = lines.get(at + 1)?.trim_start().strip_prefix("--> ")?;
    found.add(location::parse_location(below)?.set_on(lint_error(&line[1], &line[2])));
    Some(at + 2)
}

fn lint_error(code: &str, text: &str) -> ParsedError {
    let error = ParsedError::new(ReportingTool::Generic, ErrorCategory::Lint, text);
    ParsedError { code: Some(code.to_owned()), severity: ErrorSeverity::Medium, ..error }
}

/// Parses the linker's `undefined reference to`.
fn parse_linker(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    let (_, name) = lines[at].split_once(": undefined reference to ")?;
    let message = format!("undefined reference to {name}");
    found.add(ParsedError::new(ReportingTool::Generic, ErrorCategory::Build, message));
    Some(at + 1)
}

/// Parses git's `CONFLICT (content): Merge conflict in path`.
fn parse_conflict(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    let text = lines[at].strip_prefix("CONFLICT (").and_then(|rest| rest.split_once("): "))?.1;
    let file = text.rsplit_once(" in ").map(|(_, file)| location::clean_path(file));
    let error = ParsedError::new(ReportingTool::Generic, ErrorCategory::MergeConflict, text);
    found.add(ParsedError { file, ..error });
    Some(at + 1)
}

/// Parses a line that starts like an error message of a program. If its words reveal a category, it
/// always counts; with nothing but the word `error`, it counts only if no tool's error was found.
fn parse_program_line(line: &str, found: &mut ErrorCollector) {
    static PREFIX: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(r"^(?:[\w./+-]+(?:\[\d+\])?: (?:line \d+: |\d+: )?|remote: | ! )")
    });
    static WORD: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"^(?i:\[?(?:error|fatal|panic|exception)\]?(?:[ \[(][\w-]+[\])])?: ?|error |\[error\] |fatal |uncaught )(\S.*)$",
        )
    });
    let message = match WORD.captures(line) {
        Some(word) => word[1].to_owned(),
        None => line.to_owned(),
    };
    let spoken = WORD.is_match(line);
    match keywords::find_category(line) {
        Some(category) if spoken || PREFIX.is_match(line) => {
            found.add(ParsedError::new(ReportingTool::Generic, category, message));
        }
        None if spoken => {
            found.add_weak(ParsedError::new(
                ReportingTool::Generic,
                ErrorCategory::Runtime,
                message,
            ));
        }
        _ => {}
    }
}
