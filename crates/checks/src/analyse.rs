//! Analysis of a failed command's output: finds every error in it, without false positives.
//!
//! The tool is detected for each block of lines, since one command may run several tools. Lines
//! that only count or summarise errors, or only name a file, are not errors. The analysis runs and
//! changes nothing, and accepts any input: output that no parser understands becomes one `unknown`
//! error with the last lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ErrorCategory, ErrorSeverity, ParsedError, ReportingTool};
use crate::declared::{CheckRunResult, LEFT_OUT};
use crate::limits::{
    ANALYSED_BYTES_MAX, ANALYSED_ERRORS_MAX, ANALYSED_LINE_BYTES_MAX, UNKNOWN_LINES_SHOWN,
};

mod biome;
mod cargo;
mod collector;
mod context;
mod eslint;
mod fallback;
mod generic;
mod go;
mod group;
mod jest;
mod keywords;
mod location;
mod npm;
mod pytest;
mod rustc;
mod secrets;
#[cfg(test)]
mod tests;
mod traceback;
mod tsc;
mod vitest;

use self::collector::ErrorCollector;
pub use self::secrets::redact_secrets;

/// The errors in an output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutputAnalysis {
    /// Every error once, in the order of the output.
    pub errors: Vec<ParsedError>,
    /// The number of warnings; for a successful command, also lines that look like errors.
    pub warnings: u64,
    /// The errors grouped by probable cause, in the order in which they should be fixed.
    pub groups: Vec<ErrorGroup>,
    /// True if part of the output is missing, which may contain the first error.
    pub truncated: bool,
    /// The index of the group to fix first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix_first: Option<usize>,
}

/// Errors that probably have one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorGroup {
    /// The probable cause; absent if it is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The confidence in the cause, from 0 to 1.
    pub confidence: f64,
    /// The category of the first error.
    pub category: ErrorCategory,
    /// The highest severity of the errors.
    pub severity: ErrorSeverity,
    /// The indices of the errors in the list of all errors.
    pub errors: Vec<usize>,
}

/// Analyses the output of a command that has ended. `exit_code` is `None` if the command was
/// stopped, which counts as a failure. `read` returns the text of a project file, for the lines
/// around an error.
pub fn analyse_output(
    output: &str,
    exit_code: Option<i32>,
    read: &dyn Fn(&str) -> Option<String>,
) -> OutputAnalysis {
    let mut analysis = find_errors(output, read);
    if exit_code == Some(0) {
        let warnings = analysis.warnings + analysis.errors.len() as u64;
        return OutputAnalysis {
            warnings,
            truncated: analysis.truncated,
            ..OutputAnalysis::default()
        };
    }
    // A printed secret is not the reason for a failure.
    if analysis.errors.iter().all(|error| error.severity == ErrorSeverity::Critical) {
        analysis.errors.insert(0, unknown_error(output, exit_code));
        analysis.groups = group::group_errors(&analysis.errors);
        analysis.fix_first = Some(0);
    }
    analysis
}

/// Analyses the output of a check. Unknown errors get the check's command, since their message
/// identifies nothing.
pub fn analyse_check(
    result: &CheckRunResult,
    read: &dyn Fn(&str) -> Option<String>,
) -> OutputAnalysis {
    let mut analysis = analyse_output(result.available_output(), result.exit_code, read);
    if let Some(limit) = &result.exceeded {
        // The exceeded limit is the cause, whatever else the output contains.
        analysis.errors.retain(|error| error.category != ErrorCategory::Unknown);
        let error = ParsedError::new(
            ReportingTool::Generic,
            ErrorCategory::Environment,
            collector::shorten_message(limit),
        );
        analysis.errors.insert(0, error);
        analysis.groups = group::group_errors(&analysis.errors);
        analysis.fix_first = Some(0);
    }
    for error in &mut analysis.errors {
        if error.category == ErrorCategory::Unknown {
            error.command = Some(result.command.clone());
        }
    }
    analysis
}

/// Finds the errors in an output, if the exit code of its command is unknown.
pub fn find_errors(output: &str, read: &dyn Fn(&str) -> Option<String>) -> OutputAnalysis {
    let (text, truncated) = bound_output(output);
    let mut found = ErrorCollector::default();
    let secret = secrets::secret_error(&text);
    let text = redact_secrets(&text);
    let lines: Vec<&str> = text.lines().map(cut_line).collect();
    let mut at = 0;
    while at < lines.len() {
        let next = PARSERS.iter().find_map(|parser| parser(&lines, at, &mut found));
        at = next.unwrap_or(at + 1).max(at + 1);
    }
    go::finish_tests(&mut found);
    if found.is_empty() {
        fallback::find_error_lines(&lines, &mut found);
    }
    let (mut errors, warnings) = found.finish();
    let truncated = truncated || errors.len() > ANALYSED_ERRORS_MAX;
    errors.truncate(ANALYSED_ERRORS_MAX);
    errors.extend(secret);
    context::add_context(&mut errors, read);
    let groups = group::group_errors(&errors);
    let fix_first = (!groups.is_empty()).then_some(0);
    OutputAnalysis { errors, warnings, groups, truncated, fix_first }
}

/// Parses the block that starts at a line and returns the index after it; `None` if it is not this
/// parser's block. A parser looks ahead only as far as it consumes, or a fixed number of lines, so
/// that all of them together run in linear time.
type BlockParser = fn(&[&str], usize, &mut ErrorCollector) -> Option<usize>;

/// Parsers whose blocks have the most distinctive first lines come first.
const PARSERS: &[BlockParser] = &[
    pytest::parse_block,
    cargo::parse_block,
    rustc::parse_block,
    vitest::parse_block,
    jest::parse_block,
    biome::parse_block,
    eslint::parse_block,
    tsc::parse_block,
    go::parse_block,
    npm::parse_block,
    traceback::parse_block,
    generic::parse_block,
];

/// The text without colours, limited to its start and end if it is too long, and whether something
/// is missing.
fn bound_output(output: &str) -> (String, bool) {
    // The mark that checks leave in shortened output.
    let cut_before = output.contains(LEFT_OUT);
    if output.len() <= ANALYSED_BYTES_MAX {
        return (repertoire_text::invisible::without_terminal_control(output), cut_before);
    }
    let half = ANALYSED_BYTES_MAX / 2;
    // Cut at line breaks: half a line would be parsed as a different failure.
    let head = &output[..output.floor_char_boundary(half)];
    let head = head.rfind('\n').map_or(head, |at| &head[..at]);
    let tail = &output[output.ceil_char_boundary(output.len() - half)..];
    let tail = tail.find('\n').map_or(tail, |at| &tail[at + 1..]);
    let both = format!("{head}\n{tail}");
    (repertoire_text::invisible::without_terminal_control(&both), true)
}

fn cut_line(line: &str) -> &str {
    &line[..line.floor_char_boundary(ANALYSED_LINE_BYTES_MAX)]
}

fn unknown_error(output: &str, exit_code: Option<i32>) -> ParsedError {
    let (text, _) = bound_output(output);
    let text = redact_secrets(&text);
    let lines: Vec<&str> = text.lines().map(|line| cut_line(line).trim_end()).collect();
    let last = lines.len().saturating_sub(UNKNOWN_LINES_SHOWN);
    let said = lines[last..].join("\n");
    let message = match (said.trim(), exit_code) {
        ("", Some(code)) => format!("the command said nothing and ended with exit code {code}"),
        ("", None) => "the command said nothing and was stopped".to_owned(),
        _ => said.trim_matches('\n').to_owned(),
    };
    ParsedError::new(
        ReportingTool::Generic,
        ErrorCategory::Unknown,
        collector::shorten_message(&message),
    )
}
