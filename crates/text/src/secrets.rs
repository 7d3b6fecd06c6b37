//! Detects and redacts secrets in text: by name, by the shape of tokens, and in the encoded forms of a known secret.
//!
//! Redaction by name and shape cannot catch every secret, so nothing relies on it alone.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

mod encoded;
mod patterns;
mod views;

pub use encoded::EncodedSecret;

/// The replacement for a secret.
pub const MARK: &str = "[redacted]";

/// Parts of names that only secrets have, in lower case and without `_` and `-`.
const NAME_PARTS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
];

/// Further parts that mark environment variables as secret. In other text these are ordinary words.
const VARIABLE_PARTS: &[&str] = &["key", "auth", "cookie", "dsn"];

/// Returns true if the name of an environment variable suggests that its value is a secret.
///
/// ```
/// use repertoire_text::secrets::is_secret_variable;
///
/// assert!(is_secret_variable("GITHUB_TOKEN") && is_secret_variable("ssh_auth_sock"));
/// assert!(!is_secret_variable("PATH"));
/// ```
pub fn is_secret_variable(name: &str) -> bool {
    let name = plain_name(name);
    NAME_PARTS.iter().chain(VARIABLE_PARTS).any(|part| name.contains(part))
}

/// Returns true if the name of a field, a setting or an argument suggests that its value is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = plain_name(name);
    NAME_PARTS.iter().any(|part| name.contains(part))
}

fn plain_name(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).collect::<String>().to_ascii_lowercase()
}

/// Tokens that are recognised by their shape.
static SHAPE: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
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

/// Contexts in which only secrets occur: an `Authorization` header, a bearer token and the password in a URL. The named
/// groups are the text before and after the secret.
static PLACE: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r#"(?xi)
        (?P<header> \bauthorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token)\s+)? ) [^\s"']{4,}
        | (?P<scheme> \bbearer\s+ ) [A-Za-z0-9._~+/-]{20,}=*
        | (?P<user> ://[^\s/:@]*: ) [^\s/@]+ (?P<at>@)"#,
    )
});

/// A value after a name. [`named`] decides whether the name is that of a secret.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r#"(?xi)
        (?P<key> [\w.-]{0,128}(?:token|secret|passw(?:or)?d|passphrase|credentials?|key)["']? )
        (?P<is> \s*[:=]\s*["']? ) (?P<value>[^\s"'`,;(){}\[\]<>]{4,})"#,
    )
});

fn compile_pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant, and a test compiles it")
}

/// Redacts everything that looks like a secret, by shape, context and name.
pub fn redact(text: &str) -> Cow<'_, str> {
    apply_to_cow(redact_tokens(text, MARK), |text| NAMED.replace_all(text, redact_named))
}

/// Redacts tokens by their shape and context alone, for text in which names of secrets are ordinary words.
pub fn redact_tokens<'t>(text: &'t str, mark: &str) -> Cow<'t, str> {
    let placed = |found: &Captures<'_>| {
        let part = |name| group_text(found, name);
        format!("{}{}{}{mark}{}", part("header"), part("scheme"), part("user"), part("at"))
    };
    let without_shapes = SHAPE.replace_all(text, regex::NoExpand(mark));
    apply_to_cow(without_shapes, |text| PLACE.replace_all(text, placed))
}

/// Returns true if a text contains a token, by its shape or context.
pub fn has_token(text: &str) -> bool {
    redact_tokens(text, MARK) != text
}

fn apply_to_cow<'t>(text: Cow<'t, str>, change: impl Fn(&str) -> Cow<'_, str>) -> Cow<'t, str> {
    let changed = match change(&text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(changed) => Some(changed),
    };
    changed.map_or(text, Cow::Owned)
}

/// Returns true if a text contains anything that looks like a secret.
pub fn has_secret(text: &str) -> bool {
    redact(text) != text
}

fn redact_named(found: &Captures<'_>) -> String {
    let (key, is) = (group_text(found, "key"), group_text(found, "is"));
    let value = group_text(found, "value");
    if is_secret_name(key) && is_secret_value(is, value) {
        format!("{key}{is}{MARK}")
    } else {
        part_of(found).to_owned()
    }
}

fn group_text<'a>(found: &Captures<'a>, name: &str) -> &'a str {
    found.name(name).map_or("", |part| part.as_str())
}

fn part_of<'a>(found: &Captures<'a>) -> &'a str {
    found.get(0).map_or("", |whole| whole.as_str())
}

/// Tells secrets from code: `token = parse(text)` and `password: String` are code; `password=hunter2` and `token:
/// "abc"` are not.
fn is_secret_value(is: &str, value: &str) -> bool {
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
    fn variables_with_secrets_are_known_by_their_names() {
        for name in [
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "aws_secret_access_key",
            "DB_PASSWORD",
            "PGPASSWD",
            "SSH_AUTH_SOCK",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "SENTRY_DSN",
        ] {
            assert!(is_secret_variable(name), "{name}");
        }
        for name in ["PATH", "HOME", "LANG", "CARGO_HOME", "SHELL"] {
            assert!(!is_secret_variable(name), "{name}");
        }
    }

    #[test]
    fn tokens_are_known_by_their_shape() {
        check("push with ghp_abcdefghijklmnop1234 failed", "push with [redacted] failed");
        check("github_pat_11AAAAAAA0123456789_abc", "[redacted]");
        check("key sk-ant-api03-abcdefghijkl, AKIAABCDEFGHIJKLMNOP", "key [redacted], [redacted]");
        check("-----BEGIN RSA PRIVATE KEY-----\nabc\n", "[redacted]");
        check("task-force and sk-short", "task-force and sk-short");
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        check("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]");
        check("curl -H 'Bearer abcdefghijklmnopqrst.x'", "curl -H 'Bearer [redacted]'");
        check("https://me:hunter@host/x", "https://me:[redacted]@host/x");
        check("DB_PASSWORD=correcthorse now", "DB_PASSWORD=[redacted] now");
        check(r#"{"api_key": "abcdef"}"#, r#"{"api_key": "[redacted]"}"#);
        check("access_token: a1b2c3d4e5", "access_token: [redacted]");
        check("signing-key='abcd1234'", "signing-key='[redacted]'");
    }

    #[test]
    fn code_that_speaks_of_secrets_is_left_as_it_is() {
        for text in [
            "let token = parse_token(text)?;",
            "expected token: String, found &str",
            "unexpected token: `}`",
            "TOKEN=$CI_TOKEN",
            "the password is wrong",
            "key=value monkey: 12345678 sort_key=\"name\"",
            "http://localhost:3000/a@b",
        ] {
            check(text, text);
        }
    }
}
