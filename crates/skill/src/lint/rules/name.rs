//! Checks names: 1 to 64 lower-case letters, digits and single hyphens, and the same as the folder's.

use repertoire_text::{Diagnostic, DiagnosticFix, Span, SpanEdit};

use crate::codes;
use crate::lint::{LintRule, LintSubject};
use crate::name::{NAME_CHARS_MAX, normalise_name};

pub(in crate::lint) static FORMAT: LintRule = LintRule { check: check_format, claude: true };
pub(in crate::lint) static FOLDER: LintRule = LintRule { check: check_folder, claude: true };

fn name_span(subject: &LintSubject<'_>) -> Option<Span> {
    subject.skill.frontmatter.get("name").filter(|node| !node.is_null()).map(|node| node.span)
}

fn check_format(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let Some(span) = name_span(subject) else { return };
    let given = subject.skill.name_original.trim();
    let length = given.chars().count();
    let right = &subject.skill.name;
    if length > NAME_CHARS_MAX {
        let message = format!("the name has {length} characters; the limit is {NAME_CHARS_MAX}");
        let found = Diagnostic::new(&codes::NAME_FORMAT, message).at(&subject.skill.source, span);
        out.push(found.help("choose a shorter name"));
    }
    if given != right {
        let message = format!("`{given}` is not a valid name");
        let fix = DiagnosticFix {
            title: format!("it is known as `{right}`"),
            edits: vec![SpanEdit { span, text: right.clone() }],
        };
        let found = Diagnostic::new(&codes::NAME_FORMAT, message).at(&subject.skill.source, span);
        out.push(found.help("use lower-case letters, digits and single hyphens").fix(fix));
    }
}

fn check_folder(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let Some(span) = name_span(subject) else { return };
    let stem = subject.skill.origin.stem();
    if normalise_name(stem) == subject.skill.name || stem.is_empty() {
        return;
    }
    let what = if subject.skill.origin.is_folder() { "folder" } else { "file" };
    let message = format!("the {what} is called `{stem}`, but the skill `{}`", subject.skill.name);
    out.push(
        Diagnostic::new(&codes::NAME_FOLDER, message)
            .at(&subject.skill.source, span)
            .help(format!("rename the {what} or the skill, so that clients find it by either")),
    );
}

#[cfg(test)]
mod tests {
    use crate::lint::LintRuleSet;
    use crate::lint::rules::testing::{findings, findings_at};

    fn named(name: &str) -> String {
        format!("---\nname: {name}\ndescription: d\n---\n")
    }

    #[test]
    fn names_that_break_the_rule_are_found() {
        let check = |name: &str, count: usize| {
            assert_eq!(findings("RS101", &named(name)).len(), count, "{name}");
        };
        check("good-name-2", 0);
        check("日本語", 0);
        check("Upper", 1);
        check("under_score", 1);
        check("-edge-", 1);
        check("a--b", 1);
        check(&"x".repeat(65), 1);
    }

    #[test]
    fn a_folder_of_another_name_is_found() {
        assert_eq!(
            findings("RS102", &named("b")),
            ["2:7 the folder is called `a`, but the skill `b`"]
        );
        let flat = findings_at("RS102", "x/c.md", &named("b"), &[], LintRuleSet::Repertoire);
        assert_eq!(flat, ["2:7 the file is called `c`, but the skill `b`"]);
    }
}
