//! Writes a record back as a file. The result is read back as the same record, field by field; comments,
//! quotes and the layout of the frontmatter are not kept.

use repertoire_text::yaml::{Entry, Flow, Mapping, Node, Scalar, Style, Value, emit};

use crate::skill::Skill;

/// Renders the skill as Markdown with block-style frontmatter.
///
/// ```
/// use repertoire_skill::{load::load, skill::Origin, write::to_markdown};
/// use repertoire_text::{Limits, Source};
///
/// let text = "---\nname: pdf\nx: {a: [1, 'b']}\ndescription: \"d\"\n---\n\nBody.\n";
/// let loaded = load(Source::new("pdf/SKILL.md", text), Origin::file("pdf/SKILL.md"), &Limits::default());
/// assert_eq!(
///     to_markdown(&loaded.skill.unwrap()),
///     "---\nname: pdf\nx:\n  a:\n    - 1\n    - \"b\"\ndescription: \"d\"\n---\n\nBody.\n",
/// );
/// ```
pub fn to_markdown(skill: &Skill) -> String {
    let body = skill.body.slice(skill.source.text());
    let entries: Vec<Entry> =
        skill.frontmatter.entries.iter().map(|entry| settled(skill, entry)).collect();
    let yaml = if entries.is_empty() {
        String::new()
    } else {
        emit(&Node::made(Value::Mapping(Mapping { entries, flow: Flow::Block })))
    };
    format!("---\n{yaml}---\n{body}")
}

/// Normalises a field whose meaning depends on how it is written: `argument-hint: [file]` is text whose
/// brackets are part of it.
fn settled(skill: &Skill, entry: &Entry) -> Entry {
    match (&skill.claude.argument_hint, &entry.value.value) {
        (Some(hint), Value::Sequence(..) | Value::Mapping(_)) if entry.key == "argument-hint" => {
            let scalar = Scalar { text: hint.clone(), style: Style::Double };
            Entry { value: Node::made(Value::Scalar(scalar)), ..entry.clone() }
        }
        _ => entry.clone(),
    }
}
