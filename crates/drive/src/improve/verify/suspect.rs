//! Passes that may be none. Only what the values say is told; nobody's intentions are guessed.

use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CheckOutcome, CheckReport, State, Verification};
use crate::limits::TESTS_PERCENT_MIN;

/// A pass that may be none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suspicion {
    /// What it is.
    pub kind: SuspicionKind,
    /// The check, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// What was seen.
    pub message: String,
}

/// The kinds of suspicions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SuspicionKind {
    /// No test ran.
    NoTests,
    /// Far fewer tests ran than before.
    FewerTests,
    /// More tests are left out than before.
    MoreSkipped,
    /// Tests failed by the output, and the command ended well.
    HiddenFailure,
    /// The command ends well whatever happens.
    SwallowedStatus,
    /// A check of before is not declared any more, or its command is another one.
    ChangedCheck,
    /// What was verified changed while it was.
    ChangedState,
}

/// What is suspicious about checks that passed.
pub(super) fn suspicions(checks: &[CheckReport], before: Option<&Verification>) -> Vec<Suspicion> {
    let passed = checks.iter().filter(|check| check.result == CheckOutcome::Passed);
    let mut found: Vec<Suspicion> = passed.flat_map(|check| of_one(check, before)).collect();
    found.extend(before.into_iter().flat_map(|before| missing(checks, before)));
    found
}

/// What was verified has to be what is there afterwards.
pub(super) fn changed(before: &State, after: &State) -> Option<Suspicion> {
    let message = match (before.commit == after.commit, before.clean == after.clean) {
        (true, true) => return None,
        (false, _) => "another commit is checked out than when the checks began",
        (true, false) => "a check has changed files that git knows of, or left new ones",
    };
    let message = message.to_owned();
    Some(Suspicion { kind: SuspicionKind::ChangedState, check: None, message })
}

fn of_one(check: &CheckReport, before: Option<&Verification>) -> Vec<Suspicion> {
    let mut found = Vec::new();
    let mut tell = |kind, message: String| {
        found.push(Suspicion { kind, check: Some(check.name.clone()), message });
    };
    if let Some(why) = swallows(&check.command) {
        tell(SuspicionKind::SwallowedStatus, why);
    }
    let earlier = before.and_then(|before| same(&before.checks, &check.name));
    if let Some(earlier) = earlier.filter(|earlier| earlier.command != check.command) {
        let message = format!("its command was `{}` before", earlier.command);
        tell(SuspicionKind::ChangedCheck, message);
    }
    let then = earlier.and_then(|earlier| earlier.tests);
    let Some(now) = check.tests else {
        if let Some(then) = then.filter(|then| then.run > 0) {
            let message =
                format!("{} tests ran before, and now nothing says that any did", then.run);
            tell(SuspicionKind::FewerTests, message);
        }
        return found;
    };
    if now.run == 0 {
        tell(SuspicionKind::NoTests, "no test ran".to_owned());
    }
    if now.failed > 0 {
        let message = format!("{} tests failed, and the command ended with 0", now.failed);
        tell(SuspicionKind::HiddenFailure, message);
    }
    let Some(then) = then else { return found };
    if now.run > 0 && now.run.saturating_mul(100) < then.run.saturating_mul(TESTS_PERCENT_MIN) {
        let message = format!("{} tests ran, and {} before", now.run, then.run);
        tell(SuspicionKind::FewerTests, message);
    }
    if now.skipped > then.skipped && now.run < then.run {
        let message = format!("{} tests were left out, and {} before", now.skipped, then.skipped);
        tell(SuspicionKind::MoreSkipped, message);
    }
    found
}

fn same<'a>(checks: &'a [CheckReport], name: &str) -> Option<&'a CheckReport> {
    checks.iter().find(|check| check.name == name)
}

/// Critical checks of before that are not declared any more.
fn missing<'a>(
    checks: &'a [CheckReport],
    before: &'a Verification,
) -> impl Iterator<Item = Suspicion> + 'a {
    let earlier = before.checks.iter().filter(|earlier| earlier.critical);
    earlier.filter(|earlier| same(checks, &earlier.name).is_none()).map(|earlier| Suspicion {
        kind: SuspicionKind::ChangedCheck,
        check: Some(earlier.name.clone()),
        message: "it was declared before, and is not any more".to_owned(),
    })
}

/// Why a command ends well whatever happens, if it does.
fn swallows(command: &str) -> Option<String> {
    static ALWAYS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?:\|\||;|&&|\n|&)\s*(?:true|:|exit 0|/bin/true)\s*(?:#.*)?$|--exit-zero\b|--passWithNoTests\b|--pass-with-no-tests\b",
        )
    });
    static PIPE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"[^|]\|\s*(tee|cat|head|tail|sort)\b[^|;&()]*$"));
    let command = command.trim();
    if let Some(found) = ALWAYS.find(command) {
        // `a && true` ends as `a` does.
        let text = found.as_str().trim();
        return (!text.starts_with("&&"))
            .then(|| format!("`{text}` makes the command end well whatever happens"));
    }
    let piped = PIPE.captures(command).filter(|_| !command.contains("pipefail"))?;
    Some(format!("its status is that of `{}`, not of what is before the `|`", &piped[1]))
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are fixed, and used by tests")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_cannot_fail_is_told() {
        for command in [
            "cargo test || true",
            "cargo test; exit 0",
            "npm test || :",
            "cargo test ||true # for now",
            "ruff check --exit-zero .",
            "jest --passWithNoTests",
            "cargo test 2>&1 | tee log.txt",
            "cargo test\ntrue",
        ] {
            assert!(swallows(command).is_some(), "{command}");
        }
        for command in [
            "cargo test",
            "test -f a || echo no",
            "cargo build && true",
            "set -o pipefail; cargo test | tee log.txt",
            "git ls-files | xargs shellcheck",
            "test -z \"$(gofmt -l . | tee /dev/stderr)\"",
            "./true",
            "echo '|| true' | grep true",
        ] {
            assert_eq!(swallows(command), None, "{command}");
        }
    }
}
