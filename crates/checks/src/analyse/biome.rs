//! Biome: a heading `path:1:2 lint/group/rule ━━━`, then `× text` for an error or `! text` for a
//! warning.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ErrorCategory, ErrorSeverity, ParsedError, ReportingTool};
use super::collector::{ErrorCollector, end_of_matching};
use super::keywords;
use super::location::{ErrorLocation, clean_path, compile_pattern};

/// Parses the block under one heading.
pub(super) fn parse_block(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"^(?:(.+?)(?::(\d+):(\d+))? )?([A-Za-z][\w/-]*)(?:\s+(?:FIXABLE|DEPRECATED|VERBOSE|FATAL))*\s+━+$",
        )
    });
    let head = HEAD.captures(lines[at])?;
    let end =
        end_of_matching(lines, at + 1, |line| line.trim().is_empty() || line.starts_with("  "));
    let Some((mark, message)) = first_advice(&lines[at + 1..end]) else { return Some(end) };
    if mark != '×' {
        found.warnings += u64::from(mark == '!');
        return Some(end);
    }
    // Without a file, it is a summary, or the reason why Biome could not start.
    let summary = head.get(1).is_none()
        && (message.starts_with("Some errors were emitted")
            || message.starts_with("Some warnings"));
    if !summary {
        found.add(build_error(&head, message));
    }
    Some(end)
}

fn build_error(head: &regex::Captures<'_>, message: String) -> ParsedError {
    let rule = &head[4];
    let category = match rule.split('/').next().unwrap_or_default() {
        "lint" => ErrorCategory::Lint,
        "format" | "assist" | "organizeImports" => ErrorCategory::Format,
        "parse" => ErrorCategory::Build,
        _ => keywords::find_category(&message).unwrap_or(ErrorCategory::Environment),
    };
    let error = ParsedError::new(ReportingTool::Biome, category, message);
    let severity =
        if category == ErrorCategory::Lint { ErrorSeverity::Medium } else { error.severity };
    let error = ParsedError { code: Some(rule.to_owned()), severity, ..error };
    let number = |at| head.get(at).and_then(|digits| digits.as_str().parse().ok());
    match head.get(1) {
        Some(file) => {
            ErrorLocation { file: clean_path(file.as_str()), line: number(2), column: number(3) }
                .set_on(error)
        }
        None => error,
    }
}

/// The first mark and its text, which may continue until a blank line.
fn first_advice(body: &[&str]) -> Option<(char, String)> {
    let (at, (mark, text)) =
        body.iter().enumerate().find_map(|(at, line)| Some((at, parse_mark(line)?)))?;
    let more = body[at + 1..]
        .iter()
        .take_while(|line| !line.trim().is_empty() && line.starts_with("    "));
    let text = [text.as_str()]
        .into_iter()
        .chain(more.map(|line| line.trim()))
        .collect::<Vec<_>>()
        .join(" ");
    Some((mark, text))
}

/// Splits a marked line into mark and text. Symbols of older versions are converted.
fn parse_mark(line: &str) -> Option<(char, String)> {
    let text = line.strip_prefix("  ")?;
    let mark = text.chars().next().filter(|mark| "×!i✖⚠ℹ".contains(*mark))?;
    let text = text[mark.len_utf8()..].strip_prefix(' ')?;
    let mark = match mark {
        '✖' => '×',
        '⚠' => '!',
        other => other,
    };
    Some((mark, text.trim().to_owned()))
}
