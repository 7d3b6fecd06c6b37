//! Writes resolved skills as YAML, in the form of the review skills' documentation.

use repertoire_text::Span;
use repertoire_text::yaml::{Entry, Flow, Mapping, Node, Scalar, Style, Value, emit};

use super::{FocusArea, Methodology, Pattern, ReviewKind, ReviewSkill};

/// Writes resolved skills as YAML. Absent fields are left out, except for `primary_agent`, where null means all agents.
pub fn to_yaml(skills: &[ReviewSkill]) -> String {
    emit(&mapping(vec![("resolved_skills", list(skills, skill))]))
}

fn skill(skill: &ReviewSkill) -> Node {
    let kind = match skill.kind {
        ReviewKind::Review => "review",
        ReviewKind::Methodology => "methodology",
        ReviewKind::Command => "command",
    };
    let mut entries = vec![
        ("name", text(&skill.name)),
        ("source", text(&skill.source)),
        ("type", text(kind)),
        ("primary_agent", skill.primary_agent.as_ref().map_or_else(null, |agent| text(agent))),
    ];
    push_list(&mut entries, "focus_areas", &skill.focus_areas, area);
    push_list(&mut entries, "auto_validated_patterns", &skill.auto_validated_patterns, pattern);
    push_list(&mut entries, "false_positive_rules", &skill.false_positive_rules, |rule| text(rule));
    if let Some(files) = &skill.priority_files {
        let patterns = list(&files.patterns, |glob| text(glob));
        entries.push(("priority_files", mapping(vec![("patterns", patterns)])));
    }
    entries.extend(skill.methodology.as_ref().map(|found| ("methodology", methodology(found))));
    mapping(entries)
}

fn area(area: &FocusArea) -> Node {
    let mut entries = vec![("name", text(&area.name))];
    entries.extend(area.severity.map(|severity| ("severity", text(severity.as_str()))));
    entries.push(("checks", list(&area.checks, |check| text(check))));
    mapping(entries)
}

fn pattern(pattern: &Pattern) -> Node {
    let mut entries = vec![("id", text(&pattern.id))];
    entries.extend(pattern.pattern.as_ref().map(|regex| ("pattern", text(regex))));
    entries.push(("description", text(&pattern.description)));
    entries.extend(pattern.severity.map(|severity| ("severity", text(severity.as_str()))));
    push_list(&mut entries, "files", &pattern.files, |glob| text(glob));
    entries.extend(pattern.unusable.as_ref().map(|reason| ("unusable", text(reason))));
    mapping(entries)
}

fn methodology(method: &Methodology) -> Node {
    let mut entries = Vec::new();
    for (key, value) in [("approach", &method.approach), ("mindset", &method.mindset)] {
        if !value.is_empty() {
            entries.push((key, text(value)));
        }
    }
    push_list(&mut entries, "steps", &method.steps, |step| text(step));
    push_list(&mut entries, "questions", &method.questions, |question| text(question));
    mapping(entries)
}

fn push_list<T>(
    entries: &mut Vec<(&'static str, Node)>,
    key: &'static str,
    items: &[T],
    node: impl Fn(&T) -> Node,
) {
    if !items.is_empty() {
        entries.push((key, list(items, node)));
    }
}

fn list<T>(items: &[T], node: impl Fn(&T) -> Node) -> Node {
    Node::made(Value::Sequence(items.iter().map(node).collect(), Flow::Block))
}

fn mapping(entries: Vec<(&'static str, Node)>) -> Node {
    let entries = entries.into_iter().map(mapping_entry).collect();
    Node::made(Value::Mapping(Mapping { entries, flow: Flow::Block }))
}

fn mapping_entry((key, value): (&'static str, Node)) -> Entry {
    Entry { key: key.to_owned(), key_span: Span::default(), value }
}

fn text(text: &str) -> Node {
    Node::made(Value::Scalar(Scalar { text: text.to_owned(), style: Style::Double }))
}

fn null() -> Node {
    Node::text("null")
}
