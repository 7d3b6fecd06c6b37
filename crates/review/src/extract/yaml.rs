//! Writes resolved skills as YAML, in the form of the review skills' documentation.

use repertoire_text::Span;
use repertoire_text::yaml::{
    Value, YamlEntry, YamlFlow, YamlMapping, YamlNode, YamlScalar, YamlStyle, emit,
};

use super::{FocusArea, ReviewKind, ReviewMethodology, ReviewPattern, ReviewSkill};

/// Writes resolved skills as YAML. Absent fields are left out, except for `primary_agent`, where null means all agents.
pub fn to_yaml(skills: &[ReviewSkill]) -> String {
    emit(&mapping_node(vec![("resolved_skills", list_node(skills, skill_node))]))
}

fn skill_node(skill: &ReviewSkill) -> YamlNode {
    let kind = match skill.kind {
        ReviewKind::Review => "review",
        ReviewKind::Methodology => "methodology",
        ReviewKind::Command => "command",
    };
    let mut entries = vec![
        ("name", text_node(&skill.name)),
        ("source", text_node(&skill.source)),
        ("type", text_node(kind)),
        (
            "primary_agent",
            skill.primary_agent.as_ref().map_or_else(null_node, |agent| text_node(agent)),
        ),
    ];
    push_list(&mut entries, "focus_areas", &skill.focus_areas, area_node);
    push_list(
        &mut entries,
        "auto_validated_patterns",
        &skill.auto_validated_patterns,
        pattern_node,
    );
    push_list(&mut entries, "false_positive_rules", &skill.false_positive_rules, |rule| {
        text_node(rule)
    });
    if let Some(files) = &skill.priority_files {
        let patterns = list_node(&files.patterns, |glob| text_node(glob));
        entries.push(("priority_files", mapping_node(vec![("patterns", patterns)])));
    }
    entries
        .extend(skill.methodology.as_ref().map(|found| ("methodology", methodology_node(found))));
    mapping_node(entries)
}

fn area_node(area: &FocusArea) -> YamlNode {
    let mut entries = vec![("name", text_node(&area.name))];
    entries.extend(area.severity.map(|severity| ("severity", text_node(severity.as_str()))));
    entries.push(("checks", list_node(&area.checks, |check| text_node(check))));
    mapping_node(entries)
}

fn pattern_node(pattern: &ReviewPattern) -> YamlNode {
    let mut entries = vec![("id", text_node(&pattern.id))];
    entries.extend(pattern.pattern.as_ref().map(|regex| ("pattern", text_node(regex))));
    entries.push(("description", text_node(&pattern.description)));
    entries.extend(pattern.severity.map(|severity| ("severity", text_node(severity.as_str()))));
    push_list(&mut entries, "files", &pattern.files, |glob| text_node(glob));
    entries.extend(pattern.unusable.as_ref().map(|reason| ("unusable", text_node(reason))));
    mapping_node(entries)
}

fn methodology_node(method: &ReviewMethodology) -> YamlNode {
    let mut entries = Vec::new();
    for (key, value) in [("approach", &method.approach), ("mindset", &method.mindset)] {
        if !value.is_empty() {
            entries.push((key, text_node(value)));
        }
    }
    push_list(&mut entries, "steps", &method.steps, |step| text_node(step));
    push_list(&mut entries, "questions", &method.questions, |question| text_node(question));
    mapping_node(entries)
}

fn push_list<T>(
    entries: &mut Vec<(&'static str, YamlNode)>,
    key: &'static str,
    items: &[T],
    node: impl Fn(&T) -> YamlNode,
) {
    if !items.is_empty() {
        entries.push((key, list_node(items, node)));
    }
}

fn list_node<T>(items: &[T], node: impl Fn(&T) -> YamlNode) -> YamlNode {
    YamlNode::without_span(Value::Sequence(items.iter().map(node).collect(), YamlFlow::Block))
}

fn mapping_node(entries: Vec<(&'static str, YamlNode)>) -> YamlNode {
    let entries = entries.into_iter().map(mapping_entry).collect();
    YamlNode::without_span(Value::Mapping(YamlMapping { entries, flow: YamlFlow::Block }))
}

fn mapping_entry((key, value): (&'static str, YamlNode)) -> YamlEntry {
    YamlEntry { key: key.to_owned(), key_span: Span::default(), value }
}

fn text_node(text: &str) -> YamlNode {
    YamlNode::without_span(Value::Scalar(YamlScalar {
        text: text.to_owned(),
        style: YamlStyle::Double,
    }))
}

fn null_node() -> YamlNode {
    YamlNode::from_text("null")
}
