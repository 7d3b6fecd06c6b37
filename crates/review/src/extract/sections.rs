//! Recognises the purpose of a section by the words of its title.

use super::document::DocumentTitle;
use super::inline::{contains_words, normalise_words};

/// The headings of a review skill, for a message.
pub(super) const REVIEW_HEADINGS: &str = "a heading or bold label with a severity such as `Injection (Critical)`, `Categories Checked`, `Focus Areas`, \
     `Auto-Validated Patterns`, `False Positives` and `Scope Prioritization`";

/// The headings of a methodology skill, for a message.
pub(super) const METHOD_HEADINGS: &str =
    "a first paragraph, `Approach`, `Mindset`, numbered steps, `The Process` and questions";

/// Sections about when to use a skill, which are not instructions.
pub(super) fn is_left_out(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
    ["when to use", "when not to use", "process overview"]
        .iter()
        .any(|phrase| contains_words(&words, phrase))
}

/// `Categories Checked`, `Focus Areas`, `Additional Focus Areas`.
pub(super) fn is_focus(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
    ["categories checked", "focus areas", "focus area"]
        .iter()
        .any(|name| contains_words(&words, name))
}

/// Sections that list checks under another name. Used only if there are no focus areas.
pub(super) fn is_checklist(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
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
    names.iter().any(|name| contains_words(&words, name))
}

/// `Auto-Validated Patterns`, `Patterns (auto validated)`, `Autovalidation`.
pub(super) fn is_auto_validated(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
    words.contains("auto validat") || words.contains("autovalidat")
}

/// `False Positives`, `Do NOT flag`.
pub(super) fn is_false_positives(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
    let names = ["false positive", "false positives", "not flag", "not to flag", "dont flag"];
    names.iter().any(|name| contains_words(&words, name))
}

/// Titles within the false positives that introduce the opposite: `Only flag these when`.
pub(super) fn is_flagged(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
    ["only flag", "always flag", "still flag", "do flag", "flag", "except", "exceptions"]
        .iter()
        .any(|start| {
            words.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
}

/// `Scope Prioritization`, `Priority Files`.
pub(super) fn is_priority(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
    let names = ["scope prioritization", "scope prioritisation", "priority files", "file priority"];
    names.iter().any(|name| contains_words(&words, name))
}

/// Sections in which a severity is an example or a definition instead of a focus area.
pub(super) fn is_about_reports(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
    let first = words.split(' ').next().unwrap_or("");
    matches!(first, "example" | "examples" | "output" | "severity" | "report" | "reporting")
        || contains_words(&words, "output format")
}

/// Titles within a focus area that introduce its checks.
pub(super) fn is_introduction(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
    let first = words.split(' ').next().unwrap_or("");
    matches!(first, "check" | "checks" | "checklist" | "look" | "flag" | "verify" | "detect")
        || matches!(words.as_str(), "what to check" | "what to look for" | "red flags")
}

/// Titles within a focus area that contain no checks.
pub(super) fn is_aside(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
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
pub(super) fn is_approach(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
    contains_words(&words, "approach") || words == "core principle"
}

/// `Overview`.
pub(super) fn is_overview(title: &DocumentTitle) -> bool {
    matches!(normalise_words(&title.text).as_str(), "overview" | "introduction" | "purpose")
}

/// `Mindset`, `Key Principles`.
pub(super) fn is_mindset(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
    let is_technique = contains_words(&words, "first principles");
    contains_words(&words, "mindset") || contains_words(&words, "principles") && !is_technique
}

/// `Steps`, `Workflow`, `The Process`, `The Four Phases`, `Checklist`.
pub(super) fn is_steps(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
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
    !is_condition && names.iter().any(|name| contains_words(&words, name))
}

/// `Verification Checklist`, `Checklist before you are done`: describes a result instead of actions.
pub(super) fn is_verification(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
    let names = ["verification", "verify", "done", "completion", "complete", "final", "acceptance"];
    contains_words(&words, "checklist") && names.iter().any(|name| contains_words(&words, name))
}

/// `Questions to ask`.
pub(super) fn is_questions(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
    contains_words(&words, "questions") || contains_words(&words, "question")
}

/// Sections whose lists illustrate mistakes or output. They contain neither steps nor questions.
pub(super) fn is_illustration(title: &DocumentTitle) -> bool {
    let words = normalise_words(&title.text);
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
    names.iter().any(|name| contains_words(&words, name))
}

/// The words of a subject in the singular: `bug`, `technical debt`.
pub(super) fn word_stems(text: &str) -> Vec<String> {
    normalise_words(text).split(' ').filter(|word| !word.is_empty()).map(singular).collect()
}

fn singular(word: &str) -> String {
    match word.strip_suffix('s') {
        Some(one) if one.len() > 2 => one.to_owned(),
        _ => word.to_owned(),
    }
}

/// Returns true if the title contains all words of one of the subjects.
pub(super) fn names_subject(title: &DocumentTitle, subjects: &[Vec<String>]) -> bool {
    let words = word_stems(&title.text);
    subjects
        .iter()
        .any(|subject| !subject.is_empty() && subject.iter().all(|word| words.contains(word)))
}
