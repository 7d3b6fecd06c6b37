//! ESLint's default output: a path, then rows of `line:column  error  text  rule` up to a blank
//! line.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ErrorCategory, ErrorSeverity, ParsedError, ReportingTool};
use super::collector::{ErrorCollector, end_of_matching};
use super::keywords;
use super::location::{self, ErrorLocation, compile_pattern};

/// Parses the rows of a file, or the reason why ESLint could not start.
pub(super) fn parse_block(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    if lines[at].starts_with("Oops! Something went wrong!") {
        return Some(parse_startup_error(lines, at + 1, found));
    }
    let is_path = !lines[at].is_empty() && !lines[at].starts_with(char::is_whitespace);
    let next = lines.get(at + 1).filter(|_| is_path)?;
    ROW.captures(next)?;
    let end = end_of_matching(lines, at + 1, |line| !line.is_empty());
    let mut rows: Vec<EslintRow> = Vec::new();
    for line in &lines[at + 1..end] {
        match ROW.captures(line) {
            Some(row) => rows.push(EslintRow::new(&row)),
            // Continuation of a message of several lines.
            None => rows.last_mut().into_iter().for_each(|row| row.add_continuation(line)),
        }
    }
    let strict = too_many_warnings(lines, end);
    let file = location::clean_path(lines[at]);
    for row in rows {
        if row.is_error || strict {
            found.add(row.into_error(&file));
        } else {
            found.warnings += 1;
        }
    }
    Some(end)
}

static ROW: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(r"^\s+(\d+):(\d+)\s+(error|warning)\s+(.*?)(?:\s{2,}(\S+))?\s*$")
});

struct EslintRow {
    line: Option<u32>,
    column: Option<u32>,
    is_error: bool,
    message: String,
    rule: Option<String>,
}

impl EslintRow {
    fn new(row: &regex::Captures<'_>) -> Self {
        EslintRow {
            line: row[1].parse().ok(),
            column: row[2].parse().ok(),
            is_error: &row[3] == "error",
            message: row[4].to_owned(),
            rule: row.get(5).map(|rule| rule.as_str().to_owned()),
        }
    }

    /// Adds a continuation line. The rule is at the end of the last one.
    fn add_continuation(&mut self, line: &str) {
        let line = line.trim();
        match line.rsplit_once("  ") {
            Some((text, rule)) if self.rule.is_none() && !rule.contains(' ') => {
                self.message.push_str(&format!("\n{}", text.trim()));
                self.rule = Some(rule.to_owned());
            }
            _ => self.message.push_str(&format!("\n{line}")),
        }
    }

    fn into_error(self, file: &str) -> ParsedError {
        let parsing = self.rule.is_none() && self.message.starts_with("Parsing error");
        let category = if parsing { ErrorCategory::Build } else { ErrorCategory::Lint };
        let error = ParsedError::new(ReportingTool::Eslint, category, self.message);
        let severity = match (category, self.is_error) {
            (ErrorCategory::Lint, true) => ErrorSeverity::Medium,
            _ => error.severity,
        };
        let place = ErrorLocation { file: file.to_owned(), line: self.line, column: self.column };
        place.set_on(ParsedError { code: self.rule, severity, ..error })
    }
}

/// Returns true if the run failed because of its warnings. The message is printed once, a few lines
/// after the last file, so look at the next lines and at the end of the output, but never at all
/// lines.
fn too_many_warnings(lines: &[&str], from: usize) -> bool {
    let last = lines.len().min(from + 12);
    let near = &lines[from.min(last)..last];
    let end = &lines[lines.len().saturating_sub(12)..];
    near.iter().chain(end).any(|line| line.starts_with("ESLint found too many warnings"))
}

/// Parses why ESLint did not start: the first paragraph after its version.
fn parse_startup_error(lines: &[&str], from: usize, found: &mut ErrorCollector) -> usize {
    let start =
        end_of_matching(lines, from, |line| line.is_empty() || line.starts_with("ESLint: "));
    let end = end_of_matching(lines, start, |line| !line.is_empty());
    let told = lines[start..end].iter().take_while(|line| !line.trim_start().starts_with("at "));
    let message = told.copied().collect::<Vec<_>>().join("\n");
    let category = keywords::find_category(&message).unwrap_or(ErrorCategory::Environment);
    found.add(ParsedError::new(ReportingTool::Eslint, category, message));
    // Skip the hints that follow.
    end_of_matching(lines, end, |line| {
        line.is_empty()
            || line.starts_with("Common causes")
            || line.starts_with(|c: char| c.is_ascii_digit())
    })
}
