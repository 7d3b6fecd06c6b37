//! npm: consecutive `npm error …` lines are one error, or none if they only report a failed script.

use super::super::error::{Category, ParsedError, Tool};
use super::found::{Found, taken};
use super::signs;

/// Parses consecutive lines of npm.
pub(super) fn block(lines: &[&str], at: usize, found: &mut Found) -> Option<usize> {
    said(lines[at])?;
    let end = taken(lines, at, |line| said(line).is_some());
    let told: Vec<&str> = lines[at..end].iter().filter_map(|line| said(line)).collect();
    let code = told.iter().find_map(|line| line.strip_prefix("code ")).map(str::trim);
    let text = told.iter().copied().find(|line| tells(line));
    let script = ["Lifecycle script", "command failed", "Test failed.", "Failed at the "];
    let failed = |line: &&str| script.iter().any(|words| line.starts_with(words));
    // A failed script has printed its own errors before.
    let is_echo = code == Some("ELIFECYCLE") || told.iter().any(failed);
    if let Some(text) = text.filter(|_| !is_echo) {
        let all = told.join("\n");
        let category = match code {
            Some("E404" | "ETARGET" | "ERESOLVE" | "EUSAGE" | "EINTEGRITY") => Category::Dependency,
            _ => signs::category(&all).unwrap_or(Category::Environment),
        };
        let error = ParsedError::new(Tool::Generic, category, text);
        found.add(ParsedError { code: code.map(str::to_owned), ..error });
    }
    Some(end)
}

fn said(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("npm error").or_else(|| line.strip_prefix("npm ERR!"))?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim())
}

fn tells(line: &str) -> bool {
    let about =
        ["code ", "errno ", "syscall ", "path ", "A complete log", "workspace ", "location "];
    !line.is_empty() && !about.iter().any(|words| line.starts_with(words))
}
