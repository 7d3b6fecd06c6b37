//! The list of rules. A new rule is a new file and one line here.

use super::LintRule;

mod body_size;
mod code_fence;
mod comment_cut;
mod description;
mod fields;
mod hidden_text;
mod links;
mod name;
mod patterns;
mod shell_substitution;
mod tools;
pub(super) mod trigger_duplicate;

pub(super) static ALL: &[&LintRule] = &[
    &name::FORMAT,
    &name::FOLDER,
    &description::LENGTH,
    &description::ANGLE_BRACKETS,
    &description::WHEN,
    &comment_cut::RULE,
    &fields::COMPATIBILITY,
    &fields::UNKNOWN,
    &fields::VERSION,
    &fields::TIMEOUT,
    &fields::TYPE,
    &fields::EVENTS,
    &tools::RULE,
    &patterns::RULE,
    &body_size::RULE,
    &code_fence::RULE,
    &links::RULE,
    &hidden_text::RULE,
    &shell_substitution::RULE,
];

/// Helpers for the tests of the rules: format the findings about a text, one per line.
#[cfg(test)]
pub(super) mod testing {
    use crate::lint::{LintRuleSet, check_skill};
    use crate::load::load_skill;
    use crate::skill::SkillOrigin;
    use repertoire_text::{Limits, Source};

    /// Formats every finding of the given code about a `SKILL.md` in folder `a` as `3:7 message`.
    pub(crate) fn findings(code: &str, text: &str) -> Vec<String> {
        findings_at(code, "a/SKILL.md", text, &["SKILL.md".to_owned()], LintRuleSet::Repertoire)
    }

    pub(crate) fn findings_at(
        code: &str,
        path: &str,
        text: &str,
        siblings: &[String],
        rules: LintRuleSet,
    ) -> Vec<String> {
        let loaded =
            load_skill(Source::new(path, text), SkillOrigin::from_file(path), &Limits::default());
        let skill = loaded.skill.expect("the fixture must load");
        check_skill(&skill, siblings, rules)
            .iter()
            .filter(|found| found.code.id == code)
            .map(|found| match found.position {
                Some(at) => format!("{}:{} {}", at.line, at.column, found.message),
                None => found.message.clone(),
            })
            .collect()
    }

    /// Builds the text of a skill with additional fields and a body.
    pub(crate) fn skill(fields: &str, body: &str) -> String {
        format!("---\nname: a\ndescription: Does things. Use when asked.\n{fields}---\n{body}")
    }
}
