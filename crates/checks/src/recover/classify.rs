//! What kind of failure it is, and so which way leads out of it.

use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Found;
use crate::error::{Category, ParsedError, Severity};

/// The kinds of failures, by what can be done about them.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It may pass by itself: nothing is changed.
    Transient,
    /// A deterministic command mends it.
    Mechanical,
    /// The memory has a fix that may be applied.
    Known,
    /// Somebody has to think.
    Substantive,
    /// It cannot be recovered: a person is asked.
    Permanent,
}

impl Class {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Transient => "transient",
            Class::Mechanical => "mechanical",
            Class::Known => "known",
            Class::Substantive => "substantive",
            Class::Permanent => "permanent",
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

/// What whoever does the work can mend, although it sounds as if nobody could: a script of the project that may not be run,
/// and a name that nobody has.
static OURS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?xi)
        ^\S*\b(?:ba|da|k|z)?sh:\ (?:(?:line\ )?\d+:\ )?(?:[^/\s:][^:]*|\./[^:]*):\ permission\ denied$
        | \b(?:http|status|error|code|response)\W{0,4}(?:\w+\W{1,3}){0,2}e?404\b";
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

/// What kind of failure an error is, as far as the error alone says it. `output` is what the check said in all: limits are
/// often named elsewhere than in the error.
pub fn classify(error: &ParsedError, output: &str) -> Class {
    use Category::{Dependency, Environment, Format, Git, Lint, Network, TestTimeout, Unknown};
    // That a secret was printed says nothing of what failed.
    if error.severity == Severity::Critical {
        return Class::Substantive;
    }
    match error.category {
        Format | Lint => Class::Mechanical,
        // What code says of a status is no status of ours.
        Network | Environment | Git | Dependency | Unknown => {
            outside(error, output).unwrap_or(match error.category {
                Network => Class::Transient,
                // A file, a variable or a script that is not there is a mistake in the work more often than in the machine.
                Environment => Class::Substantive,
                Dependency => Class::Mechanical,
                _ => Class::Substantive,
            })
        }
        TestTimeout => Class::Transient,
        _ => Class::Substantive,
    }
}

/// When both are said, what is refused stays refused.
fn outside(error: &ParsedError, output: &str) -> Option<Class> {
    if OURS.is_match(&error.message) {
        return Some(Class::Substantive);
    }
    if PERMANENT.is_match(&error.message) {
        return Some(Class::Permanent);
    }
    if TRANSIENT.is_match(&error.message) {
        return Some(Class::Transient);
    }
    let is_vague = matches!(error.category, Category::Network | Category::Unknown);
    (is_vague && TRANSIENT.is_match(output) && !PERMANENT.is_match(output))
        .then_some(Class::Transient)
}

/// The failure that only a person can help with: the first one, if that is so of all of them. As long as there is another,
/// there is something to do. That a secret was printed is not why anything failed, and decides nothing.
pub(super) fn only_for_a_person(found: &[Found]) -> Option<&Found> {
    let mut failures = found.iter().filter(|found| found.error.severity != Severity::Critical);
    let first = failures.next()?;
    let is_permanent = |found: &Found| found.class == Class::Permanent;
    (is_permanent(first) && failures.all(is_permanent)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Tool;

    #[track_caller]
    fn check(category: Category, message: &str, class: Class) {
        let error = ParsedError::new(Tool::Generic, category, message);
        assert_eq!(classify(&error, ""), class, "{message}");
    }

    #[test]
    fn failures_are_classed_by_what_can_be_done_about_them() {
        check(Category::Network, "HTTP error 503", Class::Transient);
        check(Category::Network, "error: 429 Too Many Requests", Class::Transient);
        check(Category::Network, "read ECONNRESET", Class::Transient);
        check(Category::Network, "something odd", Class::Transient);
        check(Category::Git, "remote: HTTP status 403", Class::Permanent);
        check(Category::Git, "fatal: Authentication failed for 'x'", Class::Permanent);
        check(Category::Environment, "Permission denied (os error 13)", Class::Permanent);
        check(Category::Environment, "write a.o: No space left on device", Class::Permanent);
        check(Category::Environment, "mkdir: a: Read-only file system", Class::Permanent);
        check(Category::Environment, "cat: a.csv: No such file or directory", Class::Substantive);
        check(Category::Environment, "Missing script: \"lint\"", Class::Substantive);
        check(Category::Environment, "ENOENT: no such file, open 'a.csv'", Class::Substantive);
        check(Category::Environment, "bash: x.sh: Permission denied", Class::Substantive);
        check(
            Category::Environment,
            "bash: line 1: /usr/sbin/x: Permission denied",
            Class::Permanent,
        );
        check(Category::Dependency, "npm error code E404", Class::Substantive);
        check(Category::Git, "git@x.example: Permission denied (publickey).", Class::Permanent);
        check(Category::Git, "cannot lock ref", Class::Substantive);
        check(Category::Format, "would reformat", Class::Mechanical);
        check(Category::Dependency, "Cannot find module 'x'", Class::Mechanical);
        check(Category::TestTimeout, "exceeded 5s", Class::Transient);
        check(Category::TypeMismatch, "expected i32", Class::Substantive);
    }

    #[test]
    fn what_a_test_says_of_a_status_is_no_status_of_ours() {
        check(
            Category::TestFailure,
            "expected HTTP status 200, got HTTP status 403",
            Class::Substantive,
        );
        check(Category::Runtime, "error: rate limit not set", Class::Substantive);
    }

    #[test]
    fn a_limit_that_is_named_elsewhere_counts_for_what_is_vague() {
        let error = ParsedError::new(Tool::Generic, Category::Unknown, "the command failed");
        assert_eq!(classify(&error, "x\nretry-after: 30\n"), Class::Transient);
        assert_eq!(classify(&error, "HTTP 403: rate limit"), Class::Substantive);
    }

    /// What is made of the output of a check, from the analyser to the decision.
    #[track_caller]
    fn waits_for_a_person(output: &str, expected: bool) {
        let errors = crate::analyse::analyse(output, Some(1), &|_| None).errors;
        let found: Vec<Found> =
            errors.into_iter().map(|error| Found::new("check", "x", error, output)).collect();
        assert_eq!(only_for_a_person(&found).is_some(), expected, "{output}: {found:?}");
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
        // A secret beside it does not make it anybody else's.
        let secret = format!("token ghp_{}\n", "a1B2".repeat(9));
        waits_for_a_person(&format!("{secret}{refused}"), true);
        waits_for_a_person(&secret, false);
    }
}
