//! What kind of failure it is, and so which way leads out of it.

use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::improve::error::{Category, ParsedError};

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
        \b(?:http|status|error|code|response)\W{0,4}(?:\w+\W{1,3}){0,2}(?:401|403|404)\b
        | permission\ denied | access\ (?:is\ )?denied | \bunauthori[sz]ed\b | \bforbidden\b
        | authentication\ (?:failed|required) | (?:invalid|bad|expired)\ (?:credentials|api[\ -]key|token)
        | could\ not\ read\ (?:username|password) | insufficient[\ _]quota | budget\ is\ used\ up";
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

/// What kind of failure an error is, as far as the error alone says it. `output` is what the check said in all: limits are
/// often named elsewhere than in the error.
pub fn classify(error: &ParsedError, output: &str) -> Class {
    use Category::{Dependency, Environment, Format, Git, Lint, Network, TestTimeout, Unknown};
    match error.category {
        Format | Lint => Class::Mechanical,
        // What code says of a status is no status of ours.
        Network | Environment | Git | Dependency | Unknown => {
            outside(error, output).unwrap_or(match error.category {
                Network => Class::Transient,
                Environment => Class::Permanent,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::improve::error::Tool;

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
}
