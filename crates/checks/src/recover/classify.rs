//! Classification of failures by how they can be resolved.

use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CheckFailure;
use crate::error::{ErrorCategory, ErrorSeverity, ParsedError};

/// The classes of failures, by how they can be resolved.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// May pass by itself: nothing is changed.
    Transient,
    /// A deterministic command fixes it.
    Mechanical,
    /// The memory has a fix that may be applied.
    Known,
    /// Needs an agent or a person to work on it.
    Substantive,
    /// Cannot be recovered automatically: needs a person.
    Permanent,
}

impl FailureClass {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureClass::Transient => "transient",
            FailureClass::Mechanical => "mechanical",
            FailureClass::Known => "known",
            FailureClass::Substantive => "substantive",
            FailureClass::Permanent => "permanent",
        }
    }
}

static TRANSIENT: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?xi)
        \b(?:http|status|error|code|response)\W{0,4}(?:\w+\W{1,3}){0,2}(?:408|429|500|502|503|504)\b
        | too\ many\ requests | rate[\ -]?limit | retry-after
        | bad\ gateway | service\ unavailable | gateway\ time-?out | internal\ server\ error
        | connection\ (?:was\ )?(?:reset|refused|closed|timed\ out|aborted)
        | \b(?:econnreset|econnrefused|etimedout|eai_again|epipe)\b
        | temporary\ failure\ in\ name\ resolution | could\ not\ resolve\ host | operation\ timed\ out
        | could\ not\ (?:get|acquire)\ (?:the\ )?lock | database\ is\ locked | resource\ temporarily\ unavailable";
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

static PERMANENT: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?xi)
        \b(?:http|status|error|code|response)\W{0,4}(?:\w+\W{1,3}){0,2}(?:401|403)\b
        | permission\ denied | access\ (?:is\ )?denied | \bunauthori[sz]ed\b | \bforbidden\b
        | authentication\ (?:failed|required) | (?:invalid|bad|expired)\ (?:credentials|api[\ -]key|token)
        | could\ not\ read\ (?:username|password) | insufficient[\ _]quota | budget\ is\ used\ up
        | no\ space\ left | \benospc\b | disk\ quota | read-only\ file\ system | cannot\ allocate\ memory";
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

/// Errors that the agent can fix although they match [`PERMANENT`] or [`TRANSIENT`]: a script of
/// the project that is not executable, and a package that does not exist.
static OURS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?xi)
        ^\S*\b(?:ba|da|k|z)?sh:\ (?:(?:line\ )?\d+:\ )?(?:[^/\s:][^:]*|\./[^:]*):\ permission\ denied$
        | \b(?:http|status|error|code|response)\W{0,4}(?:\w+\W{1,3}){0,2}e?404\b";
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

/// Classifies an error by its own text. `output` is the whole output of the check, since rate
/// limits are often mentioned elsewhere than in the error.
pub fn classify_error(error: &ParsedError, output: &str) -> FailureClass {
    use ErrorCategory::{
        Dependency, Environment, Format, Git, Lint, Network, TestTimeout, Unknown,
    };
    // A printed secret is not the reason for the failure.
    if error.severity == ErrorSeverity::Critical {
        return FailureClass::Substantive;
    }
    match error.category {
        Format | Lint => FailureClass::Mechanical,
        // Only in these categories is a status code a real one, and not part of the tested code.
        Network | Environment | Git | Dependency | Unknown => {
            environment_class(error, output).unwrap_or(match error.category {
                Network => FailureClass::Transient,
                // A missing file, variable or script is more often a mistake in the work than in
                // the machine.
                Environment => FailureClass::Substantive,
                Dependency => FailureClass::Mechanical,
                _ => FailureClass::Substantive,
            })
        }
        TestTimeout => FailureClass::Transient,
        _ => FailureClass::Substantive,
    }
}

/// Permanent takes precedence over transient if both match.
fn environment_class(error: &ParsedError, output: &str) -> Option<FailureClass> {
    if OURS.is_match(&error.message) {
        return Some(FailureClass::Substantive);
    }
    if PERMANENT.is_match(&error.message) {
        return Some(FailureClass::Permanent);
    }
    if TRANSIENT.is_match(&error.message) {
        return Some(FailureClass::Transient);
    }
    let is_vague = matches!(error.category, ErrorCategory::Network | ErrorCategory::Unknown);
    (is_vague && TRANSIENT.is_match(output) && !PERMANENT.is_match(output))
        .then_some(FailureClass::Transient)
}

/// The first failure, if all failures are permanent. Otherwise there is still something to fix. A
/// printed secret is not the reason for a failure, and is ignored.
pub(super) fn first_if_all_permanent(found: &[CheckFailure]) -> Option<&CheckFailure> {
    let mut failures = found.iter().filter(|found| found.error.severity != ErrorSeverity::Critical);
    let first = failures.next()?;
    let is_permanent = |found: &CheckFailure| found.class == FailureClass::Permanent;
    (is_permanent(first) && failures.all(is_permanent)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ReportingTool;

    #[track_caller]
    fn check(category: ErrorCategory, message: &str, class: FailureClass) {
        let error = ParsedError::new(ReportingTool::Generic, category, message);
        assert_eq!(classify_error(&error, ""), class, "{message}");
    }

    #[test]
    fn failures_are_classed_by_what_can_be_done_about_them() {
        check(ErrorCategory::Network, "HTTP error 503", FailureClass::Transient);
        check(ErrorCategory::Network, "error: 429 Too Many Requests", FailureClass::Transient);
        check(ErrorCategory::Network, "read ECONNRESET", FailureClass::Transient);
        check(ErrorCategory::Network, "something odd", FailureClass::Transient);
        check(ErrorCategory::Git, "remote: HTTP status 403", FailureClass::Permanent);
        check(ErrorCategory::Git, "fatal: Authentication failed for 'x'", FailureClass::Permanent);
        check(
            ErrorCategory::Environment,
            "Permission denied (os error 13)",
            FailureClass::Permanent,
        );
        check(
            ErrorCategory::Environment,
            "write a.o: No space left on device",
            FailureClass::Permanent,
        );
        check(
            ErrorCategory::Environment,
            "mkdir: a: Read-only file system",
            FailureClass::Permanent,
        );
        check(
            ErrorCategory::Environment,
            "cat: a.csv: No such file or directory",
            FailureClass::Substantive,
        );
        check(ErrorCategory::Environment, "Missing script: \"lint\"", FailureClass::Substantive);
        check(
            ErrorCategory::Environment,
            "ENOENT: no such file, open 'a.csv'",
            FailureClass::Substantive,
        );
        check(
            ErrorCategory::Environment,
            "bash: x.sh: Permission denied",
            FailureClass::Substantive,
        );
        check(
            ErrorCategory::Environment,
            "bash: line 1: /usr/sbin/x: Permission denied",
            FailureClass::Permanent,
        );
        check(ErrorCategory::Dependency, "npm error code E404", FailureClass::Substantive);
        check(
            ErrorCategory::Git,
            "git@x.example: Permission denied (publickey).",
            FailureClass::Permanent,
        );
        check(ErrorCategory::Git, "cannot lock ref", FailureClass::Substantive);
        check(ErrorCategory::Format, "would reformat", FailureClass::Mechanical);
        check(ErrorCategory::Dependency, "Cannot find module 'x'", FailureClass::Mechanical);
        check(ErrorCategory::TestTimeout, "exceeded 5s", FailureClass::Transient);
        check(ErrorCategory::TypeMismatch, "expected i32", FailureClass::Substantive);
    }

    #[test]
    fn what_a_test_says_of_a_status_is_no_status_of_ours() {
        check(
            ErrorCategory::TestFailure,
            "expected HTTP status 200, got HTTP status 403",
            FailureClass::Substantive,
        );
        check(ErrorCategory::Runtime, "error: rate limit not set", FailureClass::Substantive);
    }

    #[test]
    fn a_limit_that_is_named_elsewhere_counts_for_what_is_vague() {
        let error =
            ParsedError::new(ReportingTool::Generic, ErrorCategory::Unknown, "the command failed");
        assert_eq!(classify_error(&error, "x\nretry-after: 30\n"), FailureClass::Transient);
        assert_eq!(classify_error(&error, "HTTP 403: rate limit"), FailureClass::Substantive);
    }

    /// Classifies the output of a check, from the analyser to the decision.
    #[track_caller]
    fn waits_for_a_person(output: &str, expected: bool) {
        let errors = crate::analyse::analyse_output(output, Some(1), &|_| None).errors;
        let found: Vec<CheckFailure> = errors
            .into_iter()
            .map(|error| CheckFailure::new("check", "x", error, output))
            .collect();
        assert_eq!(first_if_all_permanent(&found).is_some(), expected, "{output}: {found:?}");
    }

    #[test]
    fn only_what_nobody_here_can_mend_waits_for_a_person() {
        waits_for_a_person("fatal: Authentication failed for 'https://x.example/y'", true);
        waits_for_a_person("cp: cannot create 'a': No space left on device", true);
        for mistake in [
            "cat: missing.txt: No such file or directory",
            "FileNotFoundError: [Errno 2] No such file or directory: 'dat.csv'",
            "npm error Missing script: \"lint\"",
            "bash: scripts/x.sh: No such file or directory",
            "bash: line 1: ./x.sh: Permission denied",
            "x: line 3: HOME_DIR: unbound variable",
            "error: expected 1, got 2 at postgres://postgres:postgres@localhost/test",
        ] {
            waits_for_a_person(mistake, false);
        }
    }

    #[test]
    fn as_long_as_one_failure_can_be_mended_nobody_is_asked() {
        let refused = "fatal: Authentication failed for 'https://x.example/y'\n";
        waits_for_a_person(&format!("{refused}a.c:1:2: error: 'x' undeclared"), false);
        waits_for_a_person(
            &format!("{refused}mkdir: cannot create directory /x: Permission denied"),
            true,
        );
        // A printed secret does not change the class.
        let secret = format!("token ghp_{}\n", "a1B2".repeat(9));
        waits_for_a_person(&format!("{secret}{refused}"), true);
        waits_for_a_person(&secret, false);
    }
}
