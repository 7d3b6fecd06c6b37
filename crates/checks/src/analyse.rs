//! What a failed command's output says: every error in it, and none that is not.
//!
//! Which tool spoke is decided for each block, since one command may run several. Lines that only count, that sum up or
//! that name a file are no errors. Nothing here runs or changes anything, and any bytes are fine: what is not understood
//! is one `unknown` error with the last lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{Category, ParsedError, Severity, Tool};
use crate::declared::{CheckResult, LEFT_OUT};
use crate::limits::{ANALYSED_BYTES_MAX, ANALYSED_ERRORS_MAX, ANALYSED_LINE_BYTES_MAX, UNKNOWN_LINES_SHOWN};

mod biome;
mod cargo;
mod context;
mod eslint;
mod found;
mod generic;
mod go;
mod group;
mod jest;
mod loose;
mod npm;
mod place;
mod pytest;
mod rustc;
mod secrets;
mod signs;
#[cfg(test)]
mod tests;
mod traceback;
mod tsc;
mod vitest;

use self::found::Found;
pub use self::secrets::redacted;

/// What output says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Analysis {
    /// Every error once, in the order of the output.
    pub errors: Vec<ParsedError>,
    /// How many warnings there were; for a command that went well, lines that look like errors are counted here.
    pub warnings: u64,
    /// The errors by what probably causes them, in the order in which they should be mended.
    pub groups: Vec<Group>,
    /// Whether a part of the output was not seen. The first error may be there.
    pub truncated: bool,
    /// Which group to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix_first: Option<usize>,
}

/// Errors that probably have one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// What may be behind them. Absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
    /// What kind the first of them is.
    pub category: Category,
    /// How bad the worst of them is.
    pub severity: Severity,
    /// Which errors, as positions in the list of all.
    pub errors: Vec<usize>,
}

/// Analyses the output of a command that has ended. Without an exit code it was stopped, which is no success. `read` gives
/// the text of a project's file, for the lines around an error.
pub fn analyse(
    output: &str,
    exit_code: Option<i32>,
    read: &dyn Fn(&str) -> Option<String>,
) -> Analysis {
    let mut analysis = find(output, read);
    if exit_code == Some(0) {
        let warnings = analysis.warnings + analysis.errors.len() as u64;
        return Analysis { warnings, truncated: analysis.truncated, ..Analysis::default() };
    }
    // That a secret was printed is not why a command failed.
    if analysis.errors.iter().all(|error| error.severity == Severity::Critical) {
        analysis.errors.insert(0, unknown(output, exit_code));
        analysis.groups = group::groups(&analysis.errors);
        analysis.fix_first = Some(0);
    }
    analysis
}

/// Analyses what a check said. What was not understood has the check's command, since its words say nothing.
pub fn analyse_check(result: &CheckResult, read: &dyn Fn(&str) -> Option<String>) -> Analysis {
    let mut analysis = analyse(result.said(), result.exit_code, read);
    if let Some(limit) = &result.exceeded {
        // Whatever else it said, it was stopped for this.
        analysis.errors.retain(|error| error.category != Category::Unknown);
        let error = ParsedError::new(Tool::Generic, Category::Environment, found::short(limit));
        analysis.errors.insert(0, error);
        analysis.groups = group::groups(&analysis.errors);
        analysis.fix_first = Some(0);
    }
    for error in &mut analysis.errors {
        if error.category == Category::Unknown {
            error.command = Some(result.command.clone());
        }
    }
    analysis
}

/// Finds the errors in output of which nobody knows how the command ended.
pub fn find(output: &str, read: &dyn Fn(&str) -> Option<String>) -> Analysis {
    let (text, truncated) = bounded(output);
    let mut found = Found::default();
    let secret = secrets::told(&text);
    let text = redacted(&text);
    let lines: Vec<&str> = text.lines().map(cut).collect();
    let mut at = 0;
    while at < lines.len() {
        let next = PARSERS.iter().find_map(|parser| parser(&lines, at, &mut found));
        at = next.unwrap_or(at + 1).max(at + 1);
    }
    go::finish(&mut found);
    if found.is_empty() {
        loose::find(&lines, &mut found);
    }
    let (mut errors, warnings) = found.end();
    let truncated = truncated || errors.len() > ANALYSED_ERRORS_MAX;
    errors.truncate(ANALYSED_ERRORS_MAX);
    errors.extend(secret);
    context::add(&mut errors, read);
    let groups = group::groups(&errors);
    let fix_first = (!groups.is_empty()).then_some(0);
    Analysis { errors, warnings, groups, truncated, fix_first }
}

/// Reads a block that begins at a line and says where the next one does; `None` if none of its blocks begins there. A
/// parser looks ahead only as far as it takes, or a fixed number of lines, so that all of them together are linear.
type Parser = fn(&[&str], usize, &mut Found) -> Option<usize>;

/// Those with the most telling beginnings come first.
const PARSERS: &[Parser] = &[
    pytest::block,
    cargo::block,
    rustc::block,
    vitest::block,
    jest::block,
    biome::block,
    eslint::block,
    tsc::block,
    go::block,
    npm::block,
    traceback::block,
    generic::block,
];

/// The text without colours, its start and its end if it is too long; and whether something is missing.
fn bounded(output: &str) -> (String, bool) {
    // What keeps the output of checks leaves this mark.
    let cut_before = output.contains(LEFT_OUT);
    if output.len() <= ANALYSED_BYTES_MAX {
        return (repertoire_text::invisible::without_terminal_control(output), cut_before);
    }
    let half = ANALYSED_BYTES_MAX / 2;
    // Half a line would be half a message, and another failure.
    let head = &output[..output.floor_char_boundary(half)];
    let head = head.rfind('\n').map_or(head, |at| &head[..at]);
    let tail = &output[output.ceil_char_boundary(output.len() - half)..];
    let tail = tail.find('\n').map_or(tail, |at| &tail[at + 1..]);
    let both = format!("{head}\n{tail}");
    (repertoire_text::invisible::without_terminal_control(&both), true)
}

fn cut(line: &str) -> &str {
    &line[..line.floor_char_boundary(ANALYSED_LINE_BYTES_MAX)]
}

fn unknown(output: &str, exit_code: Option<i32>) -> ParsedError {
    let (text, _) = bounded(output);
    let text = redacted(&text);
    let lines: Vec<&str> = text.lines().map(|line| cut(line).trim_end()).collect();
    let last = lines.len().saturating_sub(UNKNOWN_LINES_SHOWN);
    let said = lines[last..].join("\n");
    let message = match (said.trim(), exit_code) {
        ("", Some(code)) => format!("the command said nothing and ended with exit code {code}"),
        ("", None) => "the command said nothing and was stopped".to_owned(),
        _ => said.trim_matches('\n').to_owned(),
    };
    ParsedError::new(Tool::Generic, Category::Unknown, found::short(&message))
}
