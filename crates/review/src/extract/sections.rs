//! What a section is for, by the words of its title.

use super::inline::{has_words, words};
use super::tree::Title;

/// Headings that are looked for in a skill for reviews, as a person would write them.
pub(super) const REVIEW_HEADINGS: &str = "a heading or bold label with a severity such as `Injection (Critical)`, `Categories Checked`, `Focus Areas`, \
     `Auto-Validated Patterns`, `False Positives` and `Scope Prioritization`";

/// Parts of a method that are looked for, as a person would write them.
pub(super) const METHOD_HEADINGS: &str =
    "a first paragraph, `Approach`, `Mindset`, numbered steps, `The Process` and questions";

/// Sections that speak to whoever chooses a skill, not to whoever follows it.
pub(super) fn is_left_out(title: &Title) -> bool {
    let words = words(&title.text);
    ["when to use", "when not to use", "process overview"]
        .iter()
        .any(|phrase| has_words(&words, phrase))
}

/// `Categories Checked`, `Focus Areas`, `Additional Focus Areas`.
pub(super) fn is_focus(title: &Title) -> bool {
    let words = words(&title.text);
    ["categories checked", "focus areas", "focus area"].iter().any(|name| has_words(&words, name))
}

/// Sections that list what to look for under another name: read where there is nothing else.
pub(super) fn is_checklist(title: &Title) -> bool {
    let words = words(&title.text);
    let names = [
        "checklist",
        "what to check",
        "what to look for",
        "what to review",
        "look for",
        "review areas",
        "review criteria",
        "review dimensions",
        "check for",
    ];
    names.iter().any(|name| has_words(&words, name))
}

/// `Auto-Validated Patterns`, `Patterns (auto validated)`, `Autovalidation`.
pub(super) fn is_auto_validated(title: &Title) -> bool {
    let words = words(&title.text);
    words.contains("auto validat") || words.contains("autovalidat")
}

/// `False Positives`, `Do NOT flag`.
pub(super) fn is_false_positives(title: &Title) -> bool {
    let words = words(&title.text);
    let names = ["false positive", "false positives", "not flag", "not to flag", "dont flag"];
    names.iter().any(|name| has_words(&words, name))
}

/// Titles among the false positives below which the opposite stands: `Only flag these when`.
pub(super) fn is_flagged(title: &Title) -> bool {
    let words = words(&title.text);
    ["only flag", "always flag", "still flag", "do flag", "flag", "except", "exceptions"]
        .iter()
        .any(|start| {
            words.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
}

/// `Scope Prioritization`, `Priority Files`.
pub(super) fn is_priority(title: &Title) -> bool {
    let words = words(&title.text);
    let names = ["scope prioritization", "scope prioritisation", "priority files", "file priority"];
    names.iter().any(|name| has_words(&words, name))
}

/// Sections below which a severity is an example or a definition, not something to look for.
pub(super) fn is_about_reports(title: &Title) -> bool {
    let words = words(&title.text);
    let first = words.split(' ').next().unwrap_or("");
    matches!(first, "example" | "examples" | "output" | "severity" | "report" | "reporting")
        || has_words(&words, "output format")
}

/// Titles inside a focus area that only introduce its checks.
pub(super) fn is_introduction(title: &Title) -> bool {
    let words = words(&title.text);
    let first = words.split(' ').next().unwrap_or("");
    matches!(first, "check" | "checks" | "checklist" | "look" | "flag" | "verify" | "detect")
        || matches!(words.as_str(), "what to check" | "what to look for" | "red flags")
}

/// Titles inside a focus area below which no checks stand.
pub(super) fn is_aside(title: &Title) -> bool {
    let words = words(&title.text);
    let first = words.split(' ').next().unwrap_or("");
    matches!(
        first,
        "example"
            | "examples"
            | "fix"
            | "fixes"
            | "good"
            | "bad"
            | "note"
            | "notes"
            | "why"
            | "remediation"
            | "reference"
            | "references"
            | "resources"
            | "see"
            | "output"
    )
}

/// `Approach`, `Core principle`.
pub(super) fn is_approach(title: &Title) -> bool {
    let words = words(&title.text);
    has_words(&words, "approach") || words == "core principle"
}

/// `Overview`.
pub(super) fn is_overview(title: &Title) -> bool {
    matches!(words(&title.text).as_str(), "overview" | "introduction" | "purpose")
}

/// `Mindset`, `Key Principles`.
pub(super) fn is_mindset(title: &Title) -> bool {
    let words = words(&title.text);
    let is_technique = has_words(&words, "first principles");
    has_words(&words, "mindset") || has_words(&words, "principles") && !is_technique
}

/// `Steps`, `Workflow`, `The Process`, `The Four Phases`, `Checklist`.
pub(super) fn is_steps(title: &Title) -> bool {
    let words = words(&title.text);
    let names = [
        "steps",
        "workflow",
        "process",
        "phases",
        "procedure",
        "method",
        "methodology",
        "checklist",
    ];
    let is_condition = words.starts_with("when ") || words.starts_with("if ");
    !is_condition && names.iter().any(|name| has_words(&words, name))
}

/// `Verification Checklist`, `Checklist before you are done`: what holds at the end, not what to do.
pub(super) fn is_verification(title: &Title) -> bool {
    let words = words(&title.text);
    let names = ["verification", "verify", "done", "completion", "complete", "final", "acceptance"];
    has_words(&words, "checklist") && names.iter().any(|name| has_words(&words, name))
}

/// `Questions to ask`.
pub(super) fn is_questions(title: &Title) -> bool {
    let words = words(&title.text);
    has_words(&words, "questions") || has_words(&words, "question")
}

/// Sections whose lists show what goes wrong, or how something looks: no steps and no questions.
pub(super) fn is_illustration(title: &Title) -> bool {
    let words = words(&title.text);
    let names = [
        "example",
        "examples",
        "red flags",
        "rationalizations",
        "rationalisations",
        "anti pattern",
        "anti patterns",
        "common mistakes",
        "output",
        "output format",
        "template",
        "references",
        "resources",
        "signals",
        "troubleshooting",
        "tips",
        "usage",
    ];
    names.iter().any(|name| has_words(&words, name))
}

/// Words of what a skill reviews, with plurals made singular: `bug`, `technical debt`.
pub(super) fn stems(text: &str) -> Vec<String> {
    let stem = |word: &str| match word.strip_suffix('s') {
        Some(one) if one.len() > 2 => one.to_owned(),
        _ => word.to_owned(),
    };
    words(text).split(' ').filter(|word| !word.is_empty()).map(stem).collect()
}

/// Whether a title names one of several subjects, each of which is all of its words.
pub(super) fn names_subject(title: &Title, subjects: &[Vec<String>]) -> bool {
    let words = stems(&title.text);
    subjects
        .iter()
        .any(|subject| !subject.is_empty() && subject.iter().all(|word| words.contains(word)))
}
