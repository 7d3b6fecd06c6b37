//! ESLint's default output: a path, then rows of `line:column  error  text  rule` up to a blank
//! line.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{Category, ParsedError, Severity, Tool};
use super::found::{Found, taken};
use super::place::{self, Place, pattern};
use super::signs;

/// Parses the rows of a file, or the reason why ESLint could not start.
pub(super) fn block(lines: &[&str], at: usize, found: &mut Found) -> Option<usize> {
    if lines[at].starts_with("Oops! Something went wrong!") {
        return Some(broken(lines, at + 1, found));
    }
    let is_path = !lines[at].is_empty() && !lines[at].starts_with(char::is_whitespace);
    let next = lines.get(at + 1).filter(|_| is_path)?;
    ROW.captures(next)?;
    let end = taken(lines, at + 1, |line| !line.is_empty());
    let mut rows: Vec<Row> = Vec::new();
    for line in &lines[at + 1..end] {
        match ROW.captures(line) {
            Some(row) => rows.push(Row::new(&row)),
            // Continuation of a message of several lines.
            None => rows.last_mut().into_iter().for_each(|row| row.go_on(line)),
        }
    }
    let strict = too_many_warnings(lines, end);
    let file = place::tidy(lines[at]);
    for row in rows {
        if row.is_error || strict {
            found.add(row.error(&file));
        } else {
            found.warnings += 1;
        }
    }
    Some(end)
}

static ROW: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s+(\d+):(\d+)\s+(error|warning)\s+(.*?)(?:\s{2,}(\S+))?\s*$"));

struct Row {
    line: Option<u32>,
    column: Option<u32>,
    is_error: bool,
    message: String,
    rule: Option<String>,
}

impl Row {
    fn new(row: &regex::Captures<'_>) -> Self {
        Row {
            line: row[1].parse().ok(),
            column: row[2].parse().ok(),
            is_error: &row[3] == "error",
            message: row[4].to_owned(),
            rule: row.get(5).map(|rule| rule.as_str().to_owned()),
        }
    }

    /// Adds a continuation line. The rule is at the end of the last one.
    fn go_on(&mut self, line: &str) {
        let line = line.trim();
        match line.rsplit_once("  ") {
            Some((text, rule)) if self.rule.is_none() && !rule.contains(' ') => {
                self.message.push_str(&format!("\n{}", text.trim()));
                self.rule = Some(rule.to_owned());
            }
            _ => self.message.push_str(&format!("\n{line}")),
        }
    }

    fn error(self, file: &str) -> ParsedError {
        let parsing = self.rule.is_none() && self.message.starts_with("Parsing error");
        let category = if parsing { Category::Build } else { Category::Lint };
        let error = ParsedError::new(Tool::Eslint, category, self.message);
        let severity = match (category, self.is_error) {
            (Category::Lint, true) => Severity::Medium,
            _ => error.severity,
        };
        let place = Place { file: file.to_owned(), line: self.line, column: self.column };
        place.put(ParsedError { code: self.rule, severity, ..error })
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
fn broken(lines: &[&str], from: usize, found: &mut Found) -> usize {
    let start = taken(lines, from, |line| line.is_empty() || line.starts_with("ESLint: "));
    let end = taken(lines, start, |line| !line.is_empty());
    let told = lines[start..end].iter().take_while(|line| !line.trim_start().starts_with("at "));
    let message = told.copied().collect::<Vec<_>>().join("\n");
    let category = signs::category(&message).unwrap_or(Category::Environment);
    found.add(ParsedError::new(Tool::Eslint, category, message));
    // Skip the hints that follow.
    taken(lines, end, |line| {
        line.is_empty()
            || line.starts_with("Common causes")
            || line.starts_with(|c: char| c.is_ascii_digit())
    })
}
