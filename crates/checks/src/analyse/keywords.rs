//! Words that reveal the category of an error, whatever tool printed them.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::ErrorCategory;
use super::location::compile_pattern;

/// The first category with a matching word wins, so the narrower ones come first.
const SIGNS: &[(ErrorCategory, &[&str])] = &[
    (
        ErrorCategory::MergeConflict,
        &[
            "merge conflict",
            "unmerged",
            "unresolved conflict",
            "automatic merge failed",
            "conflict (",
        ],
    ),
    (
        ErrorCategory::Network,
        &[
            "rate limit",
            "too many requests",
            "connection refused",
            "ECONNREFUSED",
            "connection reset",
            "ECONNRESET",
            "could not resolve host",
            "name resolution",
            "ENOTFOUND",
            "getaddrinfo",
            "EAI_AGAIN",
            "no such host",
            "ETIMEDOUT",
            "connection timed out",
            "network is unreachable",
            "bad gateway",
            "service unavailable",
            "gateway timeout",
            "gateway time-out",
            "tls handshake",
            "couldn't connect to server",
            "failed to connect to",
            "spurious network error",
            "dial tcp",
            "max retries exceeded with url",
        ],
    ),
    (
        ErrorCategory::Git,
        &[
            "[rejected]",
            "[remote rejected]",
            "failed to push some refs",
            "not a git repository",
            "did not match any file(s) known to git",
            "index.lock",
            "non-fast-forward",
            "would be overwritten by",
            "not something we can merge",
            "unknown revision",
            "authentication failed for '",
            "could not read username for",
            "could not read password for",
        ],
    ),
    (
        ErrorCategory::Dependency,
        &[
            "cannot find module",
            "cannot find package",
            "could not find package",
            "no module named",
            "module not found",
            "can't resolve",
            "failed to resolve import",
            "failed to load url",
            "no required module provides package",
            "no matching package",
            "no matching version",
            "can't find crate",
            "unresolved module or unlinked crate",
            "undeclared crate or module",
            "could not find a version that satisfies",
            "no matching distribution",
            "lock file",
            "lockfile",
            "ERESOLVE",
            "is not in std",
            "missing go.sum entry",
        ],
    ),
    (
        ErrorCategory::Environment,
        &[
            "command not found",
            ": not found",
            "is not recognized as an internal",
            "permission denied",
            "operation not permitted",
            "EACCES",
            "EPERM",
            "no space left on device",
            "ENOSPC",
            "disk quota exceeded",
            "read-only file system",
            "address already in use",
            "EADDRINUSE",
            "too many open files",
            "EMFILE",
            "cannot allocate memory",
            "out of memory",
            "no such file or directory",
            "missing script",
            "no such command",
            "no such subcommand",
            "environment variable",
            "unbound variable",
            "requires rustc",
            "could not find plugin",
        ],
    ),
];

/// The category of a text, by the words in it.
pub(super) fn find_category(text: &str) -> Option<ErrorCategory> {
    let lower = text.to_lowercase();
    let speaks = |words: &[&str]| words.iter().any(|word| contains_sign(text, &lower, word));
    SIGNS.iter().find(|(_, words)| speaks(words)).map(|(category, _)| *category)
}

/// Codes such as `EPERM` are matched with their case, since in lower case they are parts of other
/// words.
fn contains_sign(text: &str, lower: &str, sign: &str) -> bool {
    if sign.starts_with('E') { text.contains(sign) } else { lower.contains(sign) }
}

/// The category of an uncaught exception, by its name and message.
pub(super) fn exception_category(message: &str) -> ErrorCategory {
    let name = message.split([':', ' ', '[']).next().unwrap_or_default();
    match name {
        "SyntaxError" | "IndentationError" | "TabError" => ErrorCategory::Build,
        "NameError" | "UnboundLocalError" | "ReferenceError" => ErrorCategory::RuntimeReference,
        "AttributeError" if message.contains("NoneType") => ErrorCategory::RuntimeReference,
        "TypeError" if mentions_null(message) => ErrorCategory::RuntimeReference,
        _ => find_category(message).unwrap_or(ErrorCategory::Runtime),
    }
}

fn mentions_null(message: &str) -> bool {
    ["of undefined", "of null", "undefined is not", "null is not", "NoneType"]
        .iter()
        .any(|words| message.contains(words))
}

/// Returns true if a line only summarises or counts errors, or shows a command that is being run.
pub(super) fn is_summary(line: &str) -> bool {
    static SUMMARY: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"(?xi)
            ^\s*(?:
                (?:error|fatal)(?:\[\w+\])?:?\s+(?:
                    could\ not\ compile | aborting\ due\ to | (?:doc)?test\ failed,\ to\ rerun
                    | \d+\ targets?\ failed | build\ failed | process\ didn't\ exit\ successfully
                    | failed\ to\ push\ some\ refs | exiting\ because\ of
                    | recipe\ `.*`\ failed | command\ failed\ with\ exit\ code
                    | script\ .*\ exited\ with\ code | process\ completed\ with\ exit\ code
                    | could\ not\ exec | task\ .*\ failed
                )
                | \S*make(?:\[\d+\])?:\ \*\*\*
                | collect2:\ error:
                | automatic\ merge\ failed
                | exit\ (?:status|code):?\ \d+
                | error:?\ (?:exit\ (?:status|code)|code)\ \d+
                | (?:ELIFECYCLE|npm\ ERR!|npm\ error)\b
                | [>$+]\ \S
                | Found\ \d+\ (?:error|warning|problem)
                | errors?:?\s+\d+\s*$
                | compilation\ terminated
            )",
        )
    });
    static COUNT: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"(?i)\b(?:\d+|no|zero|without|any|some|many)\s+(?:\w+\s+)?(?:errors?|failures?|failed|fatal|exceptions?|panics?|problems?)\b|\b(?:errors?|failures?|failed|exceptions?|problems?)\s*[:=]\s*\d+\b",
        )
    });
    SUMMARY.is_match(line) || COUNT.is_match(line)
}
