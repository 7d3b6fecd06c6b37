//! Checks that trigger patterns compile within the limits and are specific enough.

use regex::RegexBuilder;
use repertoire_text::{Diagnostic, DiagnosticCode, Span};

use crate::codes;
use crate::limits::{PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX};
use crate::lint::{LintRule, LintSubject};

pub(in crate::lint) static RULE: LintRule = LintRule { check, claude: false };

/// Ordinary requests that no specific pattern should match.
const ORDINARY: &[&str] = &[
    "hello",
    "please summarise this document for me",
    "fix the failing test in the login module",
    "what is the weather like in Lisbon today?",
];

fn check(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    for pattern in &subject.skill.triggers.patterns {
        if let Some((code, message)) = find_problem(pattern) {
            let found = Diagnostic::new(code, message).help(code.remedy);
            out.push(found.at(&subject.skill.source, pattern_span(subject, pattern)));
        }
    }
}

fn pattern_span(subject: &LintSubject<'_>, pattern: &str) -> Span {
    let triggers = subject.skill.frontmatter.get("triggers");
    let list = triggers.and_then(|node| node.as_mapping()?.get("patterns"));
    let item = list
        .and_then(|list| list.as_sequence()?.iter().find(|item| item.as_str() == Some(pattern)));
    item.or(list).or(triggers).map_or(subject.skill.yaml, |node| node.span)
}

fn find_problem(pattern: &str) -> Option<(&'static DiagnosticCode, String)> {
    if pattern.len() > PATTERN_BYTES_MAX {
        let message =
            format!("the pattern has {} bytes; the limit is {PATTERN_BYTES_MAX}", pattern.len());
        return Some((&codes::PATTERN_INVALID, message));
    }
    let compiled = RegexBuilder::new(pattern)
        .case_insensitive(true)
        .size_limit(PATTERN_COMPILED_BYTES_MAX)
        .build();
    let regex = match compiled {
        Ok(regex) => regex,
        Err(regex::Error::CompiledTooBig(limit)) => {
            let message = format!("the pattern needs more than {limit} bytes, the limit");
            return Some((&codes::PATTERN_INVALID, message));
        }
        Err(error) => {
            // The last line of the library's message names the problem; the lines before illustrate it.
            let text = error.to_string();
            let why = text.lines().last().unwrap_or("").trim_start_matches("error: ").to_owned();
            return Some((&codes::PATTERN_INVALID, format!("the pattern does not compile: {why}")));
        }
    };
    if regex.is_match("") {
        return Some((&codes::PATTERN_BROAD, "the pattern matches the empty text".to_owned()));
    }
    if let Some(text) = ORDINARY.iter().find(|text| regex.is_match(text)) {
        return Some((&codes::PATTERN_BROAD, format!("the pattern matches \"{text}\"")));
    }
    find_loose_word(pattern).map(|word| {
        let message = format!("because of the `|`, the word `{word}` alone is enough to match");
        (&codes::PATTERN_BROAD, message)
    })
}

/// Finds a branch that is one plain word beside a more specific branch, as in `tender.*denmark|danish`.
fn find_loose_word(pattern: &str) -> Option<&str> {
    let branches = split_branches(pattern);
    let asks_for_more =
        branches.iter().any(|branch| branch.contains(".*") || branch.contains(".{"));
    if !asks_for_more {
        return None;
    }
    branches.into_iter().find(|branch| branch.len() > 1 && branch.chars().all(char::is_alphabetic))
}

/// Splits a pattern at each `|` outside of groups and classes.
fn split_branches(pattern: &str) -> Vec<&str> {
    let (mut depth, mut class, mut escaped, mut start) = (0_i32, false, false, 0);
    let mut out = Vec::new();
    for (at, c) in pattern.char_indices() {
        match c {
            _ if escaped => {
                escaped = false;
                continue;
            }
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            '(' if !class => depth += 1,
            ')' if !class => depth -= 1,
            '|' if !class && depth == 0 => {
                out.push(&pattern[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(&pattern[start..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, expect: Option<&str>) {
        assert_eq!(find_problem(pattern).map(|(code, _)| code.id), expect, "{pattern}");
    }

    #[test]
    fn patterns_that_cannot_run_are_found() {
        check(r"analy[sz]e.*tender", None);
        check(r"(?=look)ahead", Some("RS207"));
        check(r"(unclosed", Some("RS207"));
        check(r"\pL{1000}", Some("RS207"));
        check(&"x".repeat(1025), Some("RS207"));
    }

    #[test]
    fn patterns_that_match_anything_are_found() {
        check(".*", Some("RS208"));
        check("x?", Some("RS208"));
        check("this|that", Some("RS208"));
        check("tender.*denmark|danish", Some("RS208"));
        check("tender.*(denmark|danish)", None);
        check("udbud|tilbudsgivning", None);
    }
}
