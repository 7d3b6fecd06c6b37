//! Secrets that a command has printed: they are not repeated, and that they were printed is an error of its own.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{Category, ParsedError, Severity, Tool};
use super::place::pattern;

const HIDDEN: &str = "[redacted]";

/// What keys and passwords look like where they have a form of their own.
static SECRET: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?x)
        \b gh[pousr]_[A-Za-z0-9]{30,}
        | \b github_pat_[A-Za-z0-9_]{30,}
        | \b glpat-[A-Za-z0-9_-]{20,}
        | \b sk-[A-Za-z0-9_-]{20,}
        | \b (?:AKIA|ASIA)[0-9A-Z]{16}\b
        | \b xox[abeprs]-[A-Za-z0-9-]{10,}
        | \b npm_[A-Za-z0-9]{36}\b
        | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----[A-Za-z0-9+/=\s]*
        | \b [Bb]earer\ [A-Za-z0-9._~+/-]{20,}
        | :// [^\s/:@]+ : [^\s/@]{3,} @
        ",
    )
});

/// A text without the secrets in it.
pub fn redacted(text: &str) -> Cow<'_, str> {
    SECRET.replace_all(text, |found: &regex::Captures<'_>| {
        // What is around a password in an address says whose it is.
        let address = found[0].strip_prefix("://").and_then(|inner| inner.split_once(':'));
        match address {
            Some((user, _)) => format!("://{user}:{HIDDEN}@"),
            None => HIDDEN.to_owned(),
        }
    })
}

/// Says in which line of some output a secret stands, if one does.
pub(super) fn told(text: &str) -> Option<ParsedError> {
    let secret = SECRET.find(text)?;
    let line = text[..secret.start()].matches('\n').count() + 1;
    let message =
        format!("the output shows a secret, first in its line {line}; it has to be replaced");
    let error = ParsedError::new(Tool::Generic, Category::Environment, message);
    Some(ParsedError { severity: Severity::Critical, ..error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_key_is_not_repeated() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        for (text, expected) in [
            (format!("token {token}."), "token [redacted].".to_owned()),
            (
                "fetch https://me:hunter22@example.com/x".to_owned(),
                "fetch https://me:[redacted]@example.com/x".to_owned(),
            ),
            ("sk-ant-api03-abcdefghijklmnop".to_owned(), "[redacted]".to_owned()),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----"
                    .to_owned(),
                "[redacted]-----END RSA PRIVATE KEY-----".to_owned(),
            ),
            ("task-force and sk-short".to_owned(), "task-force and sk-short".to_owned()),
            ("http://localhost:3000/a@b".to_owned(), "http://localhost:3000/a@b".to_owned()),
        ] {
            assert_eq!(redacted(&text), expected);
        }
    }
}
