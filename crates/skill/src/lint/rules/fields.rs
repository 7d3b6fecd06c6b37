//! Checks fields: values in range, and unknown names with a suggestion.

use repertoire_text::{Diagnostic, DiagnosticCode, Severity};

use crate::codes;
use crate::dialect::fields_of;
use crate::lint::{LintRule, LintSubject};
use crate::name::nearest_name;
use crate::skill::SkillKind;

const COMPATIBILITY_CHARS_MAX: usize = 500;
const TIMEOUT_MS: std::ops::RangeInclusive<u64> = 1_000..=300_000;
/// Types beyond the flat dialect's own that other parts of Repertoire read.
const OTHER_KINDS: &[&str] = &["workflow", "review", "skill", "methodology", "command"];

pub(in crate::lint) static COMPATIBILITY: LintRule =
    LintRule { check: check_compatibility, claude: true };
pub(in crate::lint) static UNKNOWN: LintRule = LintRule { check: check_unknown, claude: true };
pub(in crate::lint) static VERSION: LintRule = LintRule { check: check_version, claude: false };
pub(in crate::lint) static TIMEOUT: LintRule = LintRule { check: check_timeout, claude: false };
pub(in crate::lint) static TYPE: LintRule = LintRule { check: check_kind, claude: false };
pub(in crate::lint) static EVENTS: LintRule = LintRule { check: check_events, claude: false };

fn field_diagnostic(
    subject: &LintSubject<'_>,
    key: &str,
    code: &'static DiagnosticCode,
    message: String,
) -> Diagnostic {
    let found = Diagnostic::new(code, message).help(code.remedy);
    match subject.skill.frontmatter.get(key) {
        Some(node) => found.at(&subject.skill.source, node.span),
        None => found.in_file(subject.skill.source.path()),
    }
}

fn check_compatibility(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let length = subject.skill.spec.compatibility.as_ref().map_or(0, |text| text.chars().count());
    if length > COMPATIBILITY_CHARS_MAX {
        let message = format!(
            "the compatibility text has {length} characters; the limit is {COMPATIBILITY_CHARS_MAX}"
        );
        out.push(field_diagnostic(subject, "compatibility", &codes::COMPATIBILITY_LENGTH, message));
    }
}

fn check_unknown(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    for entry in subject.skill.unknown_fields() {
        let near = nearest_name(&entry.key, fields_of(subject.skill.dialect));
        let message = format!("the field `{}` is not known", entry.key);
        let found = Diagnostic::new(&codes::FIELD_UNKNOWN, message)
            .at(&subject.skill.source, entry.key_span);
        out.push(match near {
            // A similar name suggests a typo, which would make the field silently ineffective.
            Some(near) => found.help(format!("did you mean `{near}`?")).severity(Severity::Warning),
            None => found.help(codes::FIELD_UNKNOWN.remedy),
        });
    }
}

fn check_version(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let Some(node) = subject.skill.frontmatter.get("version").filter(|node| !node.is_null()) else {
        return;
    };
    let text = node.as_str().unwrap_or("").trim();
    if semver::Version::parse(text).is_err() {
        let message = format!("`{text}` is not a semantic version");
        out.push(field_diagnostic(subject, "version", &codes::VERSION_FORMAT, message));
    }
}

fn check_timeout(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let timeout = subject.skill.execution.timeout_ms;
    if !TIMEOUT_MS.contains(&timeout) {
        let message = format!("`timeout_ms` is {timeout}; it should be from 1000 to 300000");
        out.push(field_diagnostic(subject, "timeout_ms", &codes::TIMEOUT_RANGE, message));
    }
}

fn check_kind(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    if let SkillKind::Other(word) = &subject.skill.kind
        && !OTHER_KINDS.contains(&word.as_str())
    {
        let message = format!("`{word}` is not a known type");
        out.push(field_diagnostic(subject, "type", &codes::TYPE_UNKNOWN, message));
    }
}

/// Reports skills of a type that only events start, but that declare none and so never run.
fn check_events(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let skill = subject.skill;
    let started = matches!(skill.kind, SkillKind::SelfImprovement | SkillKind::Mode);
    if started && skill.triggers.events.is_empty() {
        let message =
            format!("a skill of type `{}` lists no events that start it", skill.kind.as_str());
        out.push(field_diagnostic(subject, "type", &codes::TRIGGERS_MISSING, message));
    }
}

#[cfg(test)]
mod tests {
    use crate::dialect::AGENT;
    use crate::lint::LintRuleSet;
    use crate::lint::rules::testing::{findings, findings_at, skill};

    #[track_caller]
    fn check(code: &str, fields: &str, expect: &[&str]) {
        assert_eq!(findings(code, &skill(fields, "")), expect);
    }

    #[test]
    fn versions_types_and_timeouts_out_of_range_are_found() {
        check("RS110", "version: 1.0.0\n", &[]);
        check("RS110", "version: latest\n", &["4:10 `latest` is not a semantic version"]);
        check("RS110", "version: 1.0\n", &["4:10 `1.0` is not a semantic version"]);
        check("RS111", "timeout_ms: 300000\n", &[]);
        check(
            "RS111",
            "timeout_ms: 500\n",
            &["4:13 `timeout_ms` is 500; it should be from 1000 to 300000"],
        );
        check("RS114", "type: wizard\n", &["4:7 `wizard` is not a known type"]);
        check(
            "RS115",
            "type: mode\n",
            &["4:7 a skill of type `mode` lists no events that start it"],
        );
        check("RS115", "type: mode\ntriggers:\n  - manual\n", &[]);
    }

    #[test]
    fn a_misspelt_field_is_named() {
        check("RS107", "user-invokable: false\n", &["4:1 the field `user-invokable` is not known"]);
    }

    #[test]
    fn fields_of_agents_are_known_in_agents_only() {
        for field in AGENT {
            let text = skill(&format!("{field}: 1\n"), "");
            let at = |path| findings_at("RS107", path, &text, &[], LintRuleSet::Repertoire);
            assert_eq!(at("agents/a.md"), [""; 0], "{field}");
            assert_eq!(at("a/SKILL.md"), [format!("4:1 the field `{field}` is not known")]);
        }
    }

    #[test]
    fn a_misspelt_field_of_an_agent_is_named() {
        let text = skill("temperatur: 0.2\n", "");
        let found = findings_at("RS107", "agents/a.md", &text, &[], LintRuleSet::Repertoire);
        assert_eq!(found, ["4:1 the field `temperatur` is not known"]);
    }

    #[test]
    fn a_long_compatibility_text_is_found() {
        let text = format!("compatibility: {}\n", "x".repeat(501));
        assert_eq!(findings("RS108", &skill(&text, "")).len(), 1);
    }
}
