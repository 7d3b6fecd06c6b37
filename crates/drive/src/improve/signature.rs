//! When two failures are the same one: a short name made of what does not change from one occurrence to the next.
//!
//! Kind, code and wording count. Names in quotes, numbers, paths, addresses and times do not, and neither does the place:
//! the same mistake in another file should be recognised.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::ParsedError;
use crate::limits::ERROR_MESSAGE_CHARS_MAX;

/// The name of a failure: 16 hexadecimal digits.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct Signature(u64);

/// A text that is no signature.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no signature: it has 16 hexadecimal digits, as `rep verify --json` prints them")]
pub struct NoSignature(String);

/// The name of a failure.
pub fn signature(error: &ParsedError) -> Signature {
    let parts =
        [error.category.as_str(), error.code.as_deref().unwrap_or(""), &normalised(&error.message)];
    let digest = Sha256::digest(parts.join("\n"));
    Signature(digest.iter().take(8).fold(0, |all, byte| (all << 8) | u64::from(*byte)))
}

/// A message without what differs from one occurrence to the next.
pub fn normalised(message: &str) -> String {
    let message: String = message.chars().take(ERROR_MESSAGE_CHARS_MAX).collect();
    let same = VARYING.replace_all(&message, |found: &Captures<'_>| {
        let kind = KINDS.iter().find(|(name, _)| found.name(name).is_some());
        kind.map_or("", |(_, shown)| *shown).to_owned()
    });
    same.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

const KINDS: &[(&str, &str)] = &[
    ("quoted", "\"*\""),
    ("addr", "<addr>"),
    ("time", "<time>"),
    ("path", "<path>"),
    ("number", "#"),
];

/// What varies. The first alternative that fits at a place wins, so the wider ones come first.
static VARYING: LazyLock<Regex> = LazyLock::new(|| {
    // An apostrophe within a word opens nothing: `can't find 'x'`.
    let quoted = r#"`[^`\n]*`|"[^"\n]*"|\B'(?:[^'\n]|\b'\b)*'\B|‘[^’\n]*’|“[^”\n]*”"#;
    let addr = r"[a-z][a-z0-9+.-]*://[^\s<>\x22'`)\]]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\blocalhost(?::\d+)?\b|\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|org|net|io|dev|local|internal)(?::\d+)?\b";
    let time = r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?|\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b|\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?|milliseconds?|days?)\b";
    let path = r"(?:\b[a-z]:[\\/]|\\\\)[^\s:*?\x22<>|'`,;()]+(?::\d+){0,2}|(?:~|\.{1,2})?(?:/[\w@%+=.~-]+)+/?(?::\d+){0,2}|\b[\w@+.-]+(?:[\\/][\w@%+=.~-]+)+(?::\d+){0,2}|\b[\w@+-]+(?:\.[\w-]+)*\.[a-z][a-z0-9]{0,4}(?::\d+){1,2}\b";
    let number = r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b0x[0-9a-f_]+\b|\b[0-9a-f]*[0-9][0-9a-f]{6,}\b|\b[0-9a-f]{6,}[0-9][0-9a-f]*\b|(?:\B-)?\b\d[\d_]*(?:[.,]\d+)*(?:e[+-]?\d+)?\b";
    let all = [quoted, addr, time, path, number];
    let named = KINDS.iter().zip(all).map(|((name, _), what)| format!("(?P<{name}>{what})"));
    let all = named.collect::<Vec<_>>().join("|");
    Regex::new(&format!("(?i){all}")).expect("the pattern is fixed and tested")
});

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Signature {
    type Err = NoSignature;

    fn from_str(text: &str) -> Result<Self, NoSignature> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u64::from_str_radix(text, 16) {
            Ok(value) if digits => Ok(Signature(value)),
            _ => Err(NoSignature(text.chars().take(40).collect())),
        }
    }
}

impl From<Signature> for String {
    fn from(signature: Signature) -> String {
        signature.to_string()
    }
}

impl TryFrom<String> for Signature {
    type Error = NoSignature;

    fn try_from(text: String) -> Result<Self, NoSignature> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::improve::error::{Category, Tool};

    fn of(code: &str, message: &str) -> Signature {
        let error = ParsedError::new(Tool::Rustc, Category::Type, message);
        signature(&ParsedError { code: Some(code.to_owned()), ..error })
    }

    #[test]
    fn what_differs_between_occurrences_is_taken_out() {
        for (message, expected) in [
            ("cannot find value `foo` in this scope", "cannot find value \"*\" in this scope"),
            ("Can't resolve 'a b' and \"c\"", "can't resolve \"*\" and \"*\""),
            ("it's the user's 'don't' that's wrong", "it's the user's \"*\" that's wrong"),
            ("expected 3 arguments, found 12", "expected # arguments, found #"),
            ("assert -1 == 2.50", "assert # == #"),
            ("at 0x7ffee3a0, commit 4be1c07a9", "at #, commit #"),
            ("id 123e4567-e89b-12d3-a456-426614174000", "id #"),
            ("no file /home/me/.cache/x-1/a.rs:3:4", "no file <path>"),
            ("no file C:\\Users\\me\\a.ts:3", "no file <path>"),
            ("see ./src/a.rs and src/b.rs:7", "see <path> and <path>"),
            ("thrown in main.go:12:3", "thrown in <path>"),
            ("GET https://api.example.com/x?y=1 failed", "get <addr> failed"),
            ("connect ECONNREFUSED 127.0.0.1:5432", "connect econnrefused <addr>"),
            ("mail to a.b@example.org bounced", "mail to <addr> bounced"),
            ("took 3.2s at 2026-11-16T18:39:43.123Z", "took <time> at <time>"),
            ("timeout of 5000ms, or 5 seconds", "timeout of <time>, or <time>"),
            ("  two\n  lines\t here ", "two lines here"),
            ("expected i32, found u64", "expected i32, found u64"),
            ("utf8 and a/b tests", "utf8 and <path> tests"),
        ] {
            assert_eq!(normalised(message), expected, "{message}");
        }
    }

    #[test]
    fn the_same_failure_has_one_signature_and_unlike_ones_have_two() {
        let same = [
            ("no field `retries` on type `Policy`", "no field `limit` on type `Run`"),
            ("line 3 of /tmp/a1/b.rs", "line 44 of /var/tmp/zz/c.rs"),
            ("Test timed out in 5000ms.", "Test timed out in 20 ms."),
        ];
        for (one, other) in same {
            assert_eq!(of("E1", one), of("E1", other), "{one} / {other}");
        }
        let different = [
            ("no field `a` on type `B`", "no method `a` on type `B`"),
            ("expected `a`, found `b`", "expected one of `a`, found `b`"),
            ("connection refused", "connection reset"),
        ];
        for (one, other) in different {
            assert_ne!(of("E1", one), of("E1", other), "{one} / {other}");
        }
        assert_ne!(of("E1", "expected `a`, found `b`"), of("E2", "expected `a`, found `b`"));
        let lint = ParsedError::new(Tool::Rustc, Category::Lint, "x");
        let build = ParsedError { category: Category::Build, ..lint.clone() };
        assert_ne!(signature(&lint), signature(&build));
        let elsewhere = ParsedError { file: Some("b.rs".into()), line: Some(9), ..lint.clone() };
        assert_eq!(signature(&lint), signature(&elsewhere));
    }

    #[test]
    fn a_signature_is_written_and_read_as_sixteen_digits() {
        let one = of("E0609", "no field `retries` on type `Policy`");
        let text = one.to_string();
        assert_eq!((text.len(), text.parse()), (16, Ok(one)));
        assert_eq!(serde_json::to_string(&one).unwrap(), format!("\"{text}\""));
        for bad in
            ["", "9f2c41d07ab3e65", "9f2c41d07ab3e6555", "9f2c41d07ab3e65g", "+f2c41d07ab3e655"]
        {
            assert!(bad.parse::<Signature>().is_err(), "{bad}");
            assert!(serde_json::from_str::<Signature>(&format!("{bad:?}")).is_err());
        }
    }

    proptest! {
        #[test]
        fn numbers_names_and_paths_do_not_matter(
            n in 0u64..100_000_000, m in 0u64..100_000_000,
            a in "[A-Za-z_ ]{1,12}", b in "[A-Za-z_ .:/]{1,12}",
            p in "(/[a-z0-9_-]{1,8}){1,5}\\.rs", q in "(/[a-z0-9_.-]{1,8}){1,5}",
        ) {
            let one = format!("found {n} of `{a}` in {p} by \"{a}\" and '{a}'");
            let other = format!("found {m} of `{b}` in {q} by \"{b}\" and '{b}'");
            prop_assert_eq!(of("E1", &one), of("E1", &other));
        }

        #[test]
        fn letter_case_and_white_space_do_not_matter(text in "[ -~]{0,200}") {
            let loud = format!("  {}\n", text.to_ascii_uppercase());
            prop_assert_eq!(of("E1", &loud), of("E1", &text), "{}", text);
        }

        #[test]
        fn any_text_has_a_signature(text in "(?s).{0,200}") {
            of("E1", &text);
        }
    }
}
