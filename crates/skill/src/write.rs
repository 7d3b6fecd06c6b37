//! Writes a record back as a file. The result is read back as the same record, field by field; comments,
//! quotes and the layout of the frontmatter are not kept.

use repertoire_text::yaml::{
    Value, YamlEntry, YamlFlow, YamlMapping, YamlNode, YamlScalar, YamlStyle, emit,
};

use crate::skill::Skill;

/// Renders the skill as Markdown with block-style frontmatter.
///
/// ```
/// use repertoire_skill::{load::load_skill, skill::SkillOrigin, write::to_markdown};
/// use repertoire_text::{Limits, Source};
///
/// let text = "---\nname: pdf\nx: {a: [1, 'b']}\ndescription: \"d\"\n---\n\nBody.\n";
/// let loaded = load_skill(Source::new("pdf/SKILL.md", text), SkillOrigin::from_file("pdf/SKILL.md"), &Limits::default());
/// assert_eq!(
///     to_markdown(&loaded.skill.unwrap()),
///     "---\nname: pdf\nx:\n  a:\n    - 1\n    - \"b\"\ndescription: \"d\"\n---\n\nBody.\n",
/// );
/// ```
pub fn to_markdown(skill: &Skill) -> String {
    let body = skill.body.slice(skill.source.text());
    let entries: Vec<YamlEntry> =
        skill.frontmatter.entries.iter().map(|entry| normalise_field(skill, entry)).collect();
    let yaml = if entries.is_empty() {
        String::new()
    } else {
        emit(&YamlNode::without_span(Value::Mapping(YamlMapping {
            entries,
            flow: YamlFlow::Block,
        })))
    };
    format!("---\n{yaml}---\n{body}")
}

/// Normalises a field whose meaning depends on how it is written: `argument-hint: [file]` is text whose
/// brackets are part of it.
fn normalise_field(skill: &Skill, entry: &YamlEntry) -> YamlEntry {
    match (&skill.claude.argument_hint, &entry.value.value) {
        (Some(hint), Value::Sequence(..) | Value::Mapping(_)) if entry.key == "argument-hint" => {
            let scalar = YamlScalar { text: hint.clone(), style: YamlStyle::Double };
            YamlEntry { value: YamlNode::without_span(Value::Scalar(scalar)), ..entry.clone() }
        }
        _ => entry.clone(),
    }
}
