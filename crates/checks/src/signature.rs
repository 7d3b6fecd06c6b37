//! Signatures of failures: a short hash of the parts of an error that do not change between
//! occurrences.
//!
//! Category, code and wording are part of the signature. Quoted names, numbers, paths, addresses
//! and times are not, and neither is the location: the same mistake in another file should be
//! recognised. Where the wording is not specific, the subject is part of it as well: the test of a
//! failed test, and the command of an unknown error.
//!
//! Signatures find fixes that worked before. To decide if a failure is gone or new, fingerprints
//! are compared, which include the location.

use repertoire_text::layout::one_line;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::{ErrorCategory, ParsedError};
use crate::limits::ERROR_MESSAGE_CHARS_MAX;

/// The signature of a failure: 16 hexadecimal digits.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct FailureSignature(u64);

/// The error for a text that is not a signature.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no signature: it has 16 hexadecimal digits, as `rep verify --json` prints them")]
pub struct SignatureParseError(String);

/// A failure at its location: two mistakes of one kind have the same signature and different
/// fingerprints. Does not contain lines, since these move with every change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailureFingerprint {
    /// The check that reports the failure.
    pub check: String,
    pub signature: FailureSignature,
    pub test: Option<String>,
    pub file: Option<String>,
}

/// Computes the signature of an error.
pub fn compute_signature(error: &ParsedError) -> FailureSignature {
    let mut text = signature_text(error);
    if let Some(what) = failed_subject(error) {
        text.push('\n');
        text.push_str(what);
    }
    let digest = Sha256::digest(text);
    FailureSignature(digest.iter().take(8).fold(0, |all, byte| (all << 8) | u64::from(*byte)))
}

/// The part of the signature that is independent of the subject: category, code and normalised
/// message.
pub(super) fn signature_text(error: &ParsedError) -> String {
    let code = error.code.as_deref().unwrap_or("");
    [error.category.as_str(), code, &normalise_message(&error.message)].join("\n")
}

/// The subject of an error whose wording is not specific, such as `left == right`.
fn failed_subject(error: &ParsedError) -> Option<&str> {
    match error.category {
        ErrorCategory::TestFailure | ErrorCategory::TestTimeout => error.test.as_deref(),
        ErrorCategory::Unknown => error.command.as_deref(),
        _ => None,
    }
}

/// Counts the occurrences of each failure. The items are names of checks with their errors.
pub fn count_fingerprints<'a>(
    errors: impl IntoIterator<Item = (&'a str, &'a ParsedError)>,
) -> BTreeMap<FailureFingerprint, usize> {
    let mut all = BTreeMap::new();
    for (check, error) in errors {
        let fingerprint = FailureFingerprint {
            check: check.to_owned(),
            signature: compute_signature(error),
            test: error.test.clone(),
            file: error.file.clone(),
        };
        *all.entry(fingerprint).or_default() += 1;
    }
    all
}

/// The failures that occur more often than before. These are new, whatever else was fixed.
pub fn new_fingerprints(
    before: &BTreeMap<FailureFingerprint, usize>,
    after: &BTreeMap<FailureFingerprint, usize>,
) -> Vec<FailureFingerprint> {
    let is_new =
        |(one, count): &(&FailureFingerprint, &usize)| before.get(one).unwrap_or(&0) < *count;
    after.iter().filter(is_new).map(|(one, _)| one.clone()).collect()
}

/// Replaces the parts of a message that differ between occurrences.
pub fn normalise_message(message: &str) -> String {
    let message: String = message.chars().take(ERROR_MESSAGE_CHARS_MAX).collect();
    let same = VARYING.replace_all(&message, |found: &Captures<'_>| {
        let kind = KINDS.iter().find(|(name, _)| found.name(name).is_some());
        kind.map_or("", |(_, shown)| *shown).to_owned()
    });
    one_line(&same).to_lowercase()
}

const KINDS: &[(&str, &str)] = &[
    ("quoted", "\"*\""),
    ("addr", "<addr>"),
    ("time", "<time>"),
    ("path", "<path>"),
    ("number", "#"),
];

/// The varying parts. The first alternative that matches wins, so the wider ones come first.
static VARYING: LazyLock<Regex> = LazyLock::new(|| {
    // An apostrophe within a word is not a quotation mark: `can't find 'x'`.
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

impl fmt::Display for FailureSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for FailureSignature {
    type Err = SignatureParseError;

    fn from_str(text: &str) -> Result<Self, SignatureParseError> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u64::from_str_radix(text, 16) {
            Ok(value) if digits => Ok(FailureSignature(value)),
            _ => Err(SignatureParseError(text.chars().take(40).collect())),
        }
    }
}

impl From<FailureSignature> for String {
    fn from(signature: FailureSignature) -> String {
        signature.to_string()
    }
}

impl TryFrom<String> for FailureSignature {
    type Error = SignatureParseError;

    fn try_from(text: String) -> Result<Self, SignatureParseError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::{ErrorCategory, ReportingTool};

    fn of(code: &str, message: &str) -> FailureSignature {
        let error = ParsedError::new(ReportingTool::Rustc, ErrorCategory::Type, message);
        compute_signature(&ParsedError { code: Some(code.to_owned()), ..error })
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
            assert_eq!(normalise_message(message), expected, "{message}");
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
        let lint = ParsedError::new(ReportingTool::Rustc, ErrorCategory::Lint, "x");
        let build = ParsedError { category: ErrorCategory::Build, ..lint.clone() };
        assert_ne!(compute_signature(&lint), compute_signature(&build));
        let elsewhere = ParsedError { file: Some("b.rs".into()), line: Some(9), ..lint.clone() };
        assert_eq!(compute_signature(&lint), compute_signature(&elsewhere));
    }

    fn of_test(test: &str, message: &str) -> ParsedError {
        let error = ParsedError::new(ReportingTool::Cargo, ErrorCategory::TestFailure, message);
        ParsedError { test: Some(test.to_owned()), ..error }
    }

    #[test]
    fn tests_that_fail_in_the_same_words_are_two_failures() {
        let words = "assertion `left == right` failed\n  left: 1\n right: 2";
        let (one, other) = (of_test("a::adds", words), of_test("b::parses", words));
        assert_ne!(compute_signature(&one), compute_signature(&other));
        let slow = |error: &ParsedError| {
            compute_signature(&ParsedError {
                category: ErrorCategory::TestTimeout,
                ..error.clone()
            })
        };
        assert_ne!(slow(&one), slow(&other));
        let moved = ParsedError { file: Some("src/b.rs".into()), line: Some(7), ..one.clone() };
        assert_eq!(compute_signature(&one), compute_signature(&moved));
        // A compiler error has the same signature whichever test it was built for.
        let build = |error: &ParsedError| {
            compute_signature(&ParsedError { category: ErrorCategory::Build, ..error.clone() })
        };
        assert_eq!(build(&one), build(&other));
    }

    #[test]
    fn silent_commands_are_told_apart_by_what_was_run() {
        let silent = |command: Option<&str>| {
            let message = "the command said nothing and ended with exit code 1";
            let error = ParsedError::new(ReportingTool::Generic, ErrorCategory::Unknown, message);
            compute_signature(&ParsedError { command: command.map(str::to_owned), ..error })
        };
        assert_ne!(silent(Some("test -f a")), silent(Some("grep -q b c")));
        assert_eq!(silent(Some("test -f a")), silent(Some("test -f a")));
    }

    #[test]
    fn what_is_new_is_seen_although_its_words_were_there_before() {
        let words = "unused import: `x`";
        let lint = |file: &str| {
            let error = ParsedError::new(ReportingTool::Rustc, ErrorCategory::Lint, words);
            ParsedError { file: Some(file.to_owned()), ..error }
        };
        let (a, b) = (lint("a.rs"), lint("b.rs"));
        assert_eq!(compute_signature(&a), compute_signature(&b));
        let before = count_fingerprints([("lint", &a), ("lint", &a)]);
        assert_eq!(before.values().copied().collect::<Vec<_>>(), [2]);
        let files = |after: &[(&str, &ParsedError)]| -> Vec<Option<String>> {
            let new = new_fingerprints(&before, &count_fingerprints(after.iter().copied()));
            new.into_iter().map(|one| one.file).collect()
        };
        assert!(files(&[("lint", &a)]).is_empty() && files(&[]).is_empty());
        assert_eq!(files(&[("lint", &b)]), [Some("b.rs".to_owned())]);
        assert_eq!(files(&[("lint", &a), ("lint", &a), ("lint", &a)]), [Some("a.rs".to_owned())]);
        assert_eq!(files(&[("other", &a)]), [Some("a.rs".to_owned())]);
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
            assert!(bad.parse::<FailureSignature>().is_err(), "{bad}");
            assert!(serde_json::from_str::<FailureSignature>(&format!("{bad:?}")).is_err());
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
