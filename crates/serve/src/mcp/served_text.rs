//! The `SKILL.md` that is served to a client: the file itself where the extension allows it.
//! Otherwise (the name is invalid or taken, the YAML had to be repaired, a required field is
//! missing), the same file with a rewritten frontmatter, which says so under `metadata`. Lists,
//! contents and digests are all based on this one text.

use repertoire_skill::skill::{ContentDigest, Skill};
use repertoire_text::yaml::{
    self, Limits, ScalarKind, Value, YamlEntry, YamlFlow, YamlMapping, YamlNode, YamlScalar,
    YamlStyle,
};
use repertoire_text::{SharedText, Span};
use serde_json::Map;

/// The key under `metadata` for the original name.
const ORIGINAL_NAME: &str = "repertoire-original-name";
/// The key under `metadata` for the list of corrections.
const MENDED: &str = "repertoire-mended";
/// The key under `metadata` for an original `metadata` that was not a mapping.
const ORIGINAL_METADATA: &str = "repertoire-original-metadata";

/// A skill's file as it is served.
#[derive(Debug)]
pub(super) struct ServedSkillText {
    pub(super) text: SharedText,
    pub(super) frontmatter: Map<String, serde_json::Value>,
    /// The digest of the text.
    pub(super) digest: ContentDigest,
}

impl ServedSkillText {
    /// The file of a skill that is served under this name.
    pub(super) fn from_skill(skill: &Skill, name: &str) -> Self {
        let faults = find_faults(skill, name);
        if faults.is_empty() {
            let frontmatter = mapping_to_json(&skill.frontmatter);
            return ServedSkillText {
                text: skill.shared_text(),
                frontmatter,
                digest: skill.digest(),
            };
        }
        let mapping = corrected_frontmatter(skill, name, &faults);
        let frontmatter = mapping_to_json(&mapping);
        let yaml = yaml::emit(&YamlNode::without_span(Value::Mapping(mapping)));
        let text = format!("---\n{yaml}---\n{}", skill.body.slice(skill.text()));
        let digest = ContentDigest::hash_bytes(text.as_bytes());
        ServedSkillText { text: text.into(), frontmatter, digest }
    }

    /// A text field of the frontmatter.
    pub(super) fn text_field(&self, key: &str) -> &str {
        self.frontmatter.get(key).and_then(serde_json::Value::as_str).unwrap_or_default()
    }
}

/// The reasons why a file cannot be served unchanged.
fn find_faults(skill: &Skill, name: &str) -> Vec<&'static str> {
    let text = skill.text();
    let mut faults = Vec::new();
    if text_of(skill, "name") != Some(name) {
        faults.push("name");
    }
    if text_of(skill, "description").is_none_or(|text| text.trim().is_empty()) {
        faults.push("description");
    }
    let opens = text.starts_with("---\n") || text.starts_with("---\r\n");
    if !opens || yaml::parse(text, skill.yaml, &Limits::default()).is_err() {
        faults.push("yaml");
    }
    faults
}

fn text_of<'s>(skill: &'s Skill, key: &str) -> Option<&'s str> {
    match &skill.frontmatter.get(key)?.value {
        Value::Scalar(scalar) if matches!(scalar.kind(), ScalarKind::Text(_)) => Some(&scalar.text),
        _ => None,
    }
}

fn mapping_to_json(mapping: &YamlMapping) -> Map<String, serde_json::Value> {
    mapping.entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect()
}

fn corrected_frontmatter(skill: &Skill, name: &str, faults: &[&str]) -> YamlMapping {
    let mut mapping =
        YamlMapping { entries: skill.frontmatter.entries.clone(), flow: YamlFlow::Block };
    if faults.contains(&"description") {
        set_entry(&mut mapping, "description", quoted_scalar(&skill.description));
        let at = mapping.entries.iter().position(|entry| entry.key == "description");
        if let Some(at) = at {
            mapping.entries[..=at].rotate_right(1);
        }
    }
    if mapping.get("name").is_none() {
        mapping.entries.insert(0, new_entry("name", quoted_scalar(name)));
    }
    set_entry(&mut mapping, "name", quoted_scalar(name));
    let mut metadata = match mapping.get("metadata").map(|node| (&node.value, node.is_null())) {
        None | Some((_, true)) => YamlMapping { entries: Vec::new(), flow: YamlFlow::Block },
        Some((Value::Mapping(known), _)) => known.clone(),
        Some((other, _)) => {
            let kept = new_entry(ORIGINAL_METADATA, YamlNode::without_span(other.clone()));
            YamlMapping { entries: vec![kept], flow: YamlFlow::Block }
        }
    };
    if skill.name_original != name {
        set_entry(&mut metadata, ORIGINAL_NAME, quoted_scalar(&skill.name_original));
    }
    set_entry(&mut metadata, MENDED, quoted_scalar(&faults.join(", ")));
    set_entry(&mut mapping, "metadata", YamlNode::without_span(Value::Mapping(metadata)));
    mapping
}

fn set_entry(mapping: &mut YamlMapping, key: &str, value: YamlNode) {
    match mapping.entries.iter_mut().find(|entry| entry.key == key) {
        Some(entry) => entry.value = value,
        None => mapping.entries.push(new_entry(key, value)),
    }
}

fn new_entry(key: &str, value: YamlNode) -> YamlEntry {
    YamlEntry { key: key.to_owned(), key_span: Span::default(), value }
}

/// A double-quoted scalar, so that it stays text whatever it looks like.
fn quoted_scalar(text: &str) -> YamlNode {
    YamlNode::without_span(Value::Scalar(YamlScalar {
        text: text.to_owned(),
        style: YamlStyle::Double,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use repertoire_skill::load::{MissingDescription, load_skill_with};
    use repertoire_skill::skill::SkillOrigin;
    use repertoire_text::Source;

    fn skill(text: &str) -> Skill {
        let origin = SkillOrigin::from_file("/s/a/SKILL.md");
        let source = Source::new("/s/a/SKILL.md", text);
        let limits = repertoire_text::Limits::default();
        load_skill_with(source, origin, &limits, MissingDescription::FirstParagraph).skill.unwrap()
    }

    /// The listed frontmatter equals what a standard YAML parser reads from the text.
    #[track_caller]
    fn check(text: &str, name: &str, expect: &str) {
        let copy = ServedSkillText::from_skill(&skill(text), name);
        assert_eq!(&*copy.text, expect);
        assert_eq!(copy.digest, ContentDigest::hash_bytes(copy.text.as_bytes()));
        let end = copy.text[4..].find("---\n").unwrap() + 4;
        let node = yaml::parse(&copy.text, Span::new(4, end), &Limits::default()).unwrap();
        assert_eq!(node.to_json(), serde_json::Value::Object(copy.frontmatter));
    }

    #[test]
    fn a_file_that_keeps_the_rules_is_served_as_it_is() {
        let text = "---\n# Why not.\nname: a\ndescription: \"Does: a\"\nx: [1, y]\n---\nBody.\n";
        check(text, "a", text);
    }

    #[test]
    fn a_wrong_name_is_corrected_and_the_right_one_kept() {
        check(
            "---\nname: My Skill\ndescription: d\nmetadata:\n  author: me\n---\n\nBody.\n",
            "my-skill",
            "---\nname: \"my-skill\"\ndescription: d\nmetadata:\n  author: me\n  \
             repertoire-original-name: \"My Skill\"\n  repertoire-mended: \"name\"\n---\n\nBody.\n",
        );
    }

    #[test]
    fn what_is_missing_or_broken_is_mended() {
        check(
            "---\nname: a\ndescription: Use when: always\n---\nBody.\n",
            "a",
            "---\nname: \"a\"\ndescription: \"Use when: always\"\nmetadata:\n  repertoire-mended: \"yaml\"\n---\nBody.\n",
        );
        check(
            "---\nversion: 1\nmetadata: old\n---\nThe body.\n",
            "a",
            "---\nname: \"a\"\ndescription: \"The body.\"\nversion: 1\nmetadata:\n  \
             repertoire-original-metadata: old\n  repertoire-mended: \"name, description\"\n---\nThe body.\n",
        );
    }
}
