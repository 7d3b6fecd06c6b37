//! Takes secrets out of text before it is stored. It knows how common tokens look, and what names secrets have; it cannot
//! know every secret, so nothing relies on it alone.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

/// What stands where a secret stood.
pub const MARK: &str = "[redacted]";

/// Tokens that are known by how they look.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?x)
        \bgh[pousr]_[A-Za-z0-9]{16,}
        | \bgithub_pat_[A-Za-z0-9_]{16,}
        | \bglpat-[A-Za-z0-9_-]{16,}
        | \bsk-[A-Za-z0-9_-]{16,}
        | \bxox[abeoprs]-[A-Za-z0-9-]{10,}
        | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
        | \bAIza[A-Za-z0-9_-]{30,}
        | \bnpm_[A-Za-z0-9]{30,}
        | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}
        | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----[\s\S]*?(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\z)",
    )
});

/// What follows a name or a place that secrets have: the part before, the secret, the part after.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?xi)
        (?P<head> \bauthorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token)\s+)? ) (?P<header>[^\s"']{4,})
        | (?P<user> ://[^\s/:@]*: ) (?P<password>[^\s/@]+) (?P<at>@)
        | (?P<key> [\w.-]*(?:token|secret|password|passwd|api[_-]?key|access[_-]?key|private[_-]?key)["']? )
          (?P<is> \s*[:=]\s*["']? ) (?P<value>[^\s"'`,;(){}\[\]<>]{4,})"#,
    )
});

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant, and a test compiles it")
}

/// The text without what looks like a secret.
pub fn redact(text: &str) -> Cow<'_, str> {
    match TOKEN.replace_all(text, MARK) {
        Cow::Borrowed(text) => NAMED.replace_all(text, named),
        Cow::Owned(text) => Cow::Owned(NAMED.replace_all(&text, named).into_owned()),
    }
}

/// Whether there is something in it that looks like a secret.
pub fn has_secret(text: &str) -> bool {
    redact(text) != text
}

/// The same for every text in a value, and for whatever has the name of a secret.
pub fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = redact(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::String(text) if has_secret(&format!("{key}=\"{text}\"")) => {
                        *text = MARK.to_owned();
                    }
                    value => redact_value(value),
                }
            }
        }
        _ => {}
    }
}

fn named(found: &Captures<'_>) -> String {
    let part = |name| found.name(name).map_or("", |part| part.as_str());
    if found.name("header").is_some() {
        return format!("{}{MARK}", part("head"));
    }
    if found.name("password").is_some() {
        return format!("{}{MARK}@", part("user"));
    }
    let (key, is, value) = (part("key"), part("is"), part("value"));
    match is_secret(is, value) {
        true => format!("{key}{is}{MARK}"),
        false => part_of(found).to_owned(),
    }
}

fn part_of<'a>(found: &Captures<'a>) -> &'a str {
    found.get(0).map_or("", |whole| whole.as_str())
}

/// `token = parse(text)` and `password: String` are code; `password=hunter2` and `token: "abc"` are not.
fn is_secret(is: &str, value: &str) -> bool {
    let is_quoted = is.ends_with(['"', '\'']);
    let is_tight = !is.contains(char::is_whitespace) && is.starts_with('=');
    let has_digit = value.chars().any(|c| c.is_ascii_digit());
    value != MARK
        && !value.starts_with('$')
        && (is_quoted || is_tight || (has_digit && value.len() >= 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(redact(text), expected);
        assert_eq!(redact(expected), expected, "once is enough");
    }

    #[test]
    fn tokens_are_known_by_how_they_look() {
        check("push with ghp_abcdefghijklmnop1234 failed", "push with [redacted] failed");
        check("github_pat_11AAAAAAA0123456789_abc", "[redacted]");
        check("key sk-ant-api03-abcdefghijkl, AKIAABCDEFGHIJKLMNOP", "key [redacted], [redacted]");
        check("-----BEGIN RSA PRIVATE KEY-----\nabc\n", "[redacted]");
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        check("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]");
        check("https://me:hunter@host/x", "https://me:[redacted]@host/x");
        check("DB_PASSWORD=correcthorse now", "DB_PASSWORD=[redacted] now");
        check(r#"{"api_key": "abcdef"}"#, r#"{"api_key": "[redacted]"}"#);
        check("access_token: a1b2c3d4e5", "access_token: [redacted]");
    }

    #[test]
    fn code_that_speaks_of_secrets_is_left_as_it_is() {
        for text in [
            "let token = parse_token(text)?;",
            "expected token: String, found &str",
            "unexpected token: `}`",
            "TOKEN=$CI_TOKEN",
            "the password is wrong",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn values_lose_their_secrets_and_keep_their_shape() {
        let mut value = serde_json::json!({ "a": ["x ghp_abcdefghijklmnop1234"], "client_secret": "abcd", "n": 1 });
        redact_value(&mut value);
        let clean = serde_json::json!({ "a": ["x [redacted]"], "client_secret": MARK, "n": 1 });
        assert_eq!(value, clean);
    }
}
