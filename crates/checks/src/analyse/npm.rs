//! npm: consecutive `npm error …` lines are one error, or none if they only report a failed script.

use super::super::error::{ErrorCategory, ParsedError, ReportingTool};
use super::collector::{ErrorCollector, end_of_matching};
use super::keywords;

/// Parses consecutive lines of npm.
pub(super) fn parse_block(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    npm_text(lines[at])?;
    let end = end_of_matching(lines, at, |line| npm_text(line).is_some());
    let told: Vec<&str> = lines[at..end].iter().filter_map(|line| npm_text(line)).collect();
    let code = told.iter().find_map(|line| line.strip_prefix("code ")).map(str::trim);
    let text = told.iter().copied().find(|line| is_informative(line));
    let script = ["Lifecycle script", "command failed", "Test failed.", "Failed at the "];
    let failed = |line: &&str| script.iter().any(|words| line.starts_with(words));
    // A failed script has printed its own errors before.
    let is_echo = code == Some("ELIFECYCLE") || told.iter().any(failed);
    if let Some(text) = text.filter(|_| !is_echo) {
        let all = told.join("\n");
        let category = match code {
            Some("E404" | "ETARGET" | "ERESOLVE" | "EUSAGE" | "EINTEGRITY") => {
                ErrorCategory::Dependency
            }
            _ => keywords::find_category(&all).unwrap_or(ErrorCategory::Environment),
        };
        let error = ParsedError::new(ReportingTool::Generic, category, text);
        found.add(ParsedError { code: code.map(str::to_owned), ..error });
    }
    Some(end)
}

fn npm_text(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("npm error").or_else(|| line.strip_prefix("npm ERR!"))?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim())
}

fn is_informative(line: &str) -> bool {
    let about =
        ["code ", "errno ", "syscall ", "path ", "A complete log", "workspace ", "location "];
    !line.is_empty() && !about.iter().any(|words| line.starts_with(words))
}
