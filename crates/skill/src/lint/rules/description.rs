//! Checks descriptions: their length, angle brackets for Claude, and whether they say when to use the skill.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use repertoire_text::{Diagnostic, DiagnosticCode};

use crate::codes;
use crate::lint::{LintRule, LintSubject};

const CHARS_MAX: usize = 1024;

pub(in crate::lint) static LENGTH: LintRule = LintRule { check: check_length, claude: true };
pub(in crate::lint) static ANGLE_BRACKETS: LintRule =
    LintRule { check: check_angle_brackets, claude: true };
pub(in crate::lint) static WHEN: LintRule = LintRule { check: check_when, claude: true };

/// Phrases by which real descriptions say when to use the skill, in several languages.
const WHEN_WORDS: &[&str] = &[
    "when",
    "use this",
    "use for",
    "use to",
    "use it",
    "used for",
    "used to",
    "whenever",
    "if the",
    "if you",
    "after ",
    "before ",
    "trigger",
    "invoke",
    "asks",
    "asked",
    "during",
    "while ",
    "for tasks",
    "should be used",
    "needs to",
    "wants to",
    "activate",
    "apply",
    "brug",
    "når",
    "bei ",
    "wenn",
    "lorsque",
    "cuando",
    "quando",
    "als ",
];

static WHEN_SEARCH: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(WHEN_WORDS).ok());

fn description_diagnostic(
    subject: &LintSubject<'_>,
    code: &'static DiagnosticCode,
    message: String,
) -> Diagnostic {
    let found = Diagnostic::new(code, message).help(code.remedy);
    match subject.skill.frontmatter.get("description") {
        Some(node) => found.at(&subject.skill.source, node.span),
        None => found.in_file(subject.skill.source.path()),
    }
}

fn check_length(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let text = &subject.skill.description;
    // Every character has at least one byte, so most descriptions need no counting.
    if text.len() <= CHARS_MAX {
        return;
    }
    let chars = text.chars().count();
    if chars > CHARS_MAX {
        let message = format!("the description has {chars} characters; the limit is {CHARS_MAX}");
        out.push(description_diagnostic(subject, &codes::DESCRIPTION_LENGTH, message));
    }
}

fn check_angle_brackets(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    if subject.skill.description.contains(['<', '>']) {
        let message = "the description holds `<` or `>`".to_owned();
        out.push(description_diagnostic(subject, &codes::ANGLE_BRACKETS, message));
    }
}

fn check_when(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let skill = subject.skill;
    let triggers = &skill.triggers;
    let told_elsewhere = skill.claude.when_to_use.is_some()
        || skill.claude.disable_model_invocation
        || !(triggers.keywords.is_empty()
            && triggers.patterns.is_empty()
            && triggers.events.is_empty());
    let text = &skill.description;
    // Descriptions in other scripts are not checked, since the list has no words for them.
    let mostly_ascii = text.bytes().filter(u8::is_ascii).count() * 10 > text.len() * 8;
    if told_elsewhere || !mostly_ascii {
        return;
    }
    if WHEN_SEARCH.as_ref().is_some_and(|search| !search.is_match(text.as_str())) {
        let message = "the description does not say when to use the skill".to_owned();
        out.push(description_diagnostic(subject, &codes::DESCRIPTION_WHEN, message));
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::rules::testing::findings;

    fn described(description: &str) -> String {
        format!("---\nname: a\ndescription: {description}\n---\n")
    }

    #[test]
    fn a_description_that_says_nothing_about_when_is_found() {
        let check = |text: &str, count: usize| {
            assert_eq!(findings("RS206", &described(text)).len(), count, "{text}");
        };
        check("Formats dates", 1);
        check("Formats dates. Use when a date is shown.", 0);
        check("PDF-dokumenter. Brug den til udbud.", 0);
        check("日付を整形する", 0);
    }

    #[test]
    fn a_description_over_the_limit_is_found() {
        assert_eq!(findings("RS104", &described(&"x".repeat(1024))).len(), 0);
        assert_eq!(findings("RS104", &described(&"ø".repeat(1024))).len(), 0);
        assert_eq!(
            findings("RS104", &described(&"x".repeat(1025))),
            ["3:14 the description has 1025 characters; the limit is 1024"]
        );
    }

    #[test]
    fn angle_brackets_are_found() {
        assert_eq!(findings("RS211", &described("Use when <b>")).len(), 1);
    }
}
