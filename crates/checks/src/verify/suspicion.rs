//! Detection of suspicious passes (possible false positives). Reports only facts from the results,
//! without guessing at intentions.

use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    CheckOutcome, CheckReport, TestCounts, VerificationReport, VerifiedState, test_counts,
};
use crate::declared::{CheckRunResult, CheckStatus};
use crate::limits::TESTS_PERCENT_MIN;

/// A suspicious pass (possible false positive).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassSuspicion {
    /// The kind of suspicion.
    pub kind: SuspicionKind,
    /// The check it is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The observation, as a sentence.
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
    /// More tests were skipped than before.
    MoreSkipped,
    /// The output reports failed tests, but the command exited with 0.
    HiddenFailure,
    /// The command exits with 0 whatever happens.
    SwallowedStatus,
    /// A check is no longer declared, or its command has changed.
    ChangedCheck,
    /// The files changed during the verification.
    ChangedState,
}

/// Finds suspicious passes, compared with earlier results if there are any.
pub fn find_suspicions(
    checks: &[CheckRunResult],
    before: Option<&[CheckRunResult]>,
) -> Vec<PassSuspicion> {
    let before = before.map(|before| before.iter().map(SuspectCheck::from).collect::<Vec<_>>());
    find_in_checks(&checks.iter().map(SuspectCheck::from).collect::<Vec<_>>(), before.as_deref())
}

/// Finds the suspicions that are new after a change. What was suspicious before was not caused by
/// it.
pub fn new_suspicions(before: &[CheckRunResult], after: &[CheckRunResult]) -> Vec<PassSuspicion> {
    let old = find_suspicions(before, None);
    let mut found = find_suspicions(after, Some(before));
    found.retain(|one| {
        let was_there = old.iter().any(|old| old.kind == one.kind && old.check == one.check);
        // A command that cannot fail on its own may still have failed before, for instance by a
        // signal.
        let is_same_command = one.kind == SuspicionKind::SwallowedStatus
            && command_of(before, one) == command_of(after, one);
        !was_there && !is_same_command
    });
    found
}

fn command_of<'a>(checks: &'a [CheckRunResult], suspicion: &PassSuspicion) -> Option<&'a str> {
    let check = checks.iter().find(|check| Some(&check.name) == suspicion.check.as_ref());
    check.map(|check| check.command.as_str())
}

/// Finds suspicious passes in the checks of a verification.
pub(super) fn of_reports(
    checks: &[CheckReport],
    before: Option<&VerificationReport>,
) -> Vec<PassSuspicion> {
    let before =
        before.map(|before| before.checks.iter().map(SuspectCheck::from).collect::<Vec<_>>());
    find_in_checks(&checks.iter().map(SuspectCheck::from).collect::<Vec<_>>(), before.as_deref())
}

/// A suspicion if files or commit changed during the verification.
pub(super) fn state_suspicion(
    before: &VerifiedState,
    after: &VerifiedState,
) -> Option<PassSuspicion> {
    // Files that already had changes may change further, which only the tree shows.
    let same_files = match (&before.tree, &after.tree) {
        (Some(before), Some(after)) => before == after,
        _ => before.clean == after.clean,
    };
    let message = match (before.commit == after.commit, same_files) {
        (true, true) => return None,
        (false, _) => "another commit is checked out than when the checks began",
        (true, false) => "a check has changed files that git knows of, or left new ones",
    };
    let message = message.to_owned();
    Some(PassSuspicion { kind: SuspicionKind::ChangedState, check: None, message })
}

/// The parts of a check's result that are examined.
struct SuspectCheck<'a> {
    name: &'a str,
    command: &'a str,
    critical: bool,
    passed: bool,
    tests: Option<TestCounts>,
}

impl<'a> From<&'a CheckReport> for SuspectCheck<'a> {
    fn from(check: &'a CheckReport) -> Self {
        SuspectCheck {
            name: &check.name,
            command: &check.command,
            critical: check.critical,
            passed: check.result == CheckOutcome::Passed,
            tests: check.tests,
        }
    }
}

impl<'a> From<&'a CheckRunResult> for SuspectCheck<'a> {
    fn from(check: &'a CheckRunResult) -> Self {
        SuspectCheck {
            name: &check.name,
            command: &check.command,
            critical: check.critical,
            passed: check.status == CheckStatus::Passed,
            tests: test_counts::count_tests(check.available_output()),
        }
    }
}

fn find_in_checks(
    checks: &[SuspectCheck<'_>],
    before: Option<&[SuspectCheck<'_>]>,
) -> Vec<PassSuspicion> {
    let before = before.unwrap_or_default();
    let passed = checks.iter().filter(|check| check.passed);
    let mut found: Vec<PassSuspicion> =
        passed.flat_map(|check| suspicions_of_check(check, before)).collect();
    found.extend(missing_checks(checks, before));
    found
}

fn suspicions_of_check(
    check: &SuspectCheck<'_>,
    before: &[SuspectCheck<'_>],
) -> Vec<PassSuspicion> {
    let mut found = Vec::new();
    let mut tell = |kind, message: String| {
        found.push(PassSuspicion { kind, check: Some(check.name.to_owned()), message });
    };
    if let Some(why) = swallowed_status(check.command) {
        tell(SuspicionKind::SwallowedStatus, why);
    }
    let earlier = before.iter().find(|earlier| earlier.name == check.name);
    if let Some(earlier) = earlier.filter(|earlier| earlier.command != check.command) {
        let message = format!("its command was `{}` before", earlier.command);
        tell(SuspicionKind::ChangedCheck, message);
    }
    let then = earlier.and_then(|earlier| earlier.tests);
    for (kind, message) in of_tests(check.tests, then) {
        tell(kind, message);
    }
    found
}

/// Compares the numbers of tests that ran now and before.
fn of_tests(now: Option<TestCounts>, then: Option<TestCounts>) -> Vec<(SuspicionKind, String)> {
    let mut found = Vec::new();
    let Some(now) = now else {
        if let Some(then) = then.filter(|then| then.run > 0) {
            let message =
                format!("{} tests ran before, and now nothing says that any did", then.run);
            found.push((SuspicionKind::FewerTests, message));
        }
        return found;
    };
    if now.run == 0 {
        found.push((SuspicionKind::NoTests, "no test ran".to_owned()));
    }
    if now.failed > 0 {
        let message = format!("{} tests failed, and the command ended with 0", now.failed);
        found.push((SuspicionKind::HiddenFailure, message));
    }
    let Some(then) = then else { return found };
    if now.run > 0 && now.run.saturating_mul(100) < then.run.saturating_mul(TESTS_PERCENT_MIN) {
        let message = format!("{} tests ran, and {} before", now.run, then.run);
        found.push((SuspicionKind::FewerTests, message));
    }
    if now.skipped > then.skipped && now.run < then.run {
        let message = format!("{} tests were left out, and {} before", now.skipped, then.skipped);
        found.push((SuspicionKind::MoreSkipped, message));
    }
    found
}

/// Critical checks that are no longer declared.
fn missing_checks<'a>(
    checks: &'a [SuspectCheck<'a>],
    before: &'a [SuspectCheck<'a>],
) -> impl Iterator<Item = PassSuspicion> + 'a {
    let gone = before.iter().filter(move |earlier| {
        earlier.critical && !checks.iter().any(|check| check.name == earlier.name)
    });
    gone.map(|earlier| PassSuspicion {
        kind: SuspicionKind::ChangedCheck,
        check: Some(earlier.name.to_owned()),
        message: "it was declared before, and is not any more".to_owned(),
    })
}

/// The reason why a command always exits with 0, if it does.
fn swallowed_status(command: &str) -> Option<String> {
    static ALWAYS: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"(?:\|\||;|&&|\n|&)\s*(?:true|:|exit 0|/bin/true)\s*(?:#.*)?$|--exit-zero\b|--passWithNoTests\b|--pass-with-no-tests\b",
        )
    });
    static PIPE: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"[^|]\|\s*(tee|cat|head|tail|sort)\b[^|;&()]*$"));
    let command = command.trim();
    if let Some(found) = ALWAYS.find(command) {
        // `a && true` has the exit code of `a`.
        let text = found.as_str().trim();
        return (!text.starts_with("&&"))
            .then(|| format!("`{text}` makes the command end well whatever happens"));
    }
    let piped = PIPE.captures(command).filter(|_| !command.contains("pipefail"))?;
    Some(format!("its status is that of `{}`, not of what is before the `|`", &piped[1]))
}

fn compile_pattern(text: &str) -> Regex {
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
            assert!(swallowed_status(command).is_some(), "{command}");
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
            assert_eq!(swallowed_status(command), None, "{command}");
        }
    }

    fn result(command: &str, status: CheckStatus, output: &str) -> CheckRunResult {
        CheckRunResult {
            name: "test".to_owned(),
            command: command.to_owned(),
            critical: true,
            status,
            exit_code: None,
            exceeded: None,
            attempts: 1,
            flaky: false,
            duration_ms: 1,
            output: output.to_owned(),
            telling: Vec::new(),
            bytes_total: 1,
            heard: std::sync::Arc::default(),
        }
    }

    fn kinds(before: &CheckRunResult, after: &CheckRunResult) -> Vec<SuspicionKind> {
        let found = new_suspicions(std::slice::from_ref(before), std::slice::from_ref(after));
        found.into_iter().map(|one| one.kind).collect()
    }

    #[test]
    fn a_change_that_leaves_no_test_to_run_is_told_from_one_that_mends() {
        let red = result("pytest", CheckStatus::Failed, "1 failed, 7 passed in 0.1s");
        let passed = |output| result("pytest", CheckStatus::Passed, output);
        assert_eq!(kinds(&red, &passed("8 passed in 0.1s")), []);
        assert_eq!(kinds(&red, &passed("no tests ran in 0.1s")), [SuspicionKind::NoTests]);
        assert_eq!(kinds(&red, &passed("2 passed in 0.1s")), [SuspicionKind::FewerTests]);
        assert_eq!(kinds(&red, &passed("fine")), [SuspicionKind::FewerTests]);
        assert_eq!(
            kinds(&red, &passed("7 passed, 1 skipped in 0.1s")),
            [SuspicionKind::MoreSkipped]
        );
        assert_eq!(
            kinds(&red, &passed("1 failed, 7 passed in 0.1s")),
            [SuspicionKind::HiddenFailure]
        );
        // A failed check is not suspicious.
        assert_eq!(kinds(&red, &red), []);
    }

    #[test]
    fn what_was_odd_before_is_not_the_changes_doing() {
        let passed = |command, output| result(command, CheckStatus::Passed, output);
        let piped = passed("pytest | tee log", "2 passed in 0.1s");
        let red = result("pytest | tee log", CheckStatus::Failed, "2 passed in 0.1s");
        assert_eq!(kinds(&piped, &piped), []);
        assert_eq!(kinds(&red, &piped), []);
        let empty = passed("pytest", "no tests ran in 0.1s");
        assert_eq!(kinds(&empty, &empty), []);
        assert_eq!(find_suspicions(&[empty], None)[0].kind, SuspicionKind::NoTests);
        let other = passed("pytest || true", "2 passed in 0.1s");
        let expected = [SuspicionKind::SwallowedStatus, SuspicionKind::ChangedCheck];
        assert_eq!(kinds(&passed("pytest", "2 passed in 0.1s"), &other), expected);
    }
}
