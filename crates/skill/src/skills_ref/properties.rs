//! The output of `agentskills read-properties`: the fields of a skill as JSON, as Python formats it.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

use camino::Utf8Path;
use regex::Regex;
use repertoire_text::fs;
use repertoire_text::yaml::{Value, YamlMapping, YamlNode};

use super::frontmatter::parse_frontmatter;
use super::validate::{
    Field, SpecFinding, SpecFindingKind, find_field, missing_field, read_skill_md, required_text,
    shown_path, skill_dir, unreadable_finding,
};

/// The fields of a skill that skills-ref knows.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillProperties {
    /// The name, trimmed.
    pub name: String,
    /// The description, trimmed.
    pub description: String,
    /// The field `license`, of any shape.
    pub license: Option<YamlNode>,
    /// The field `compatibility`, of any shape.
    pub compatibility: Option<YamlNode>,
    /// The field `allowed-tools`, of any shape.
    pub allowed_tools: Option<YamlNode>,
    /// The field `metadata`, of any shape.
    pub metadata: Option<YamlNode>,
}

/// Reads the skill at a path, its folder or its `SKILL.md`, with the checks that skills-ref makes.
pub fn read_properties(path: &Utf8Path) -> Result<SkillProperties, SpecFinding> {
    read_with_file_name(skill_dir(path)).map(|(properties, _)| properties)
}

/// Returns the properties of the skill in a folder, and whether its file is `SKILL.md` or `skill.md`.
pub(super) fn read_with_file_name(
    dir: &Utf8Path,
) -> Result<(SkillProperties, &'static str), SpecFinding> {
    let (text, file_name) = match read_skill_md(dir) {
        Ok(found) => found,
        Err(fs::ReadError::NotFound) => return Err(skill_md_missing(dir)),
        Err(_) if !dir.is_dir() => return Err(skill_md_missing(dir)),
        Err(error) => return Err(unreadable_finding(&error)),
    };
    Ok((SkillProperties::parse(&text)?, file_name))
}

/// The message of `read-properties` about a folder without a skill.
pub(super) fn skill_md_missing(dir: &Utf8Path) -> SpecFinding {
    let message = format!("SKILL.md not found in {}", shown_path(dir));
    SpecFinding::new(SpecFindingKind::SkillMdMissing, message)
}

impl SkillProperties {
    /// Parses the text of a `SKILL.md`. Returns only the first problem, as skills-ref does.
    pub fn parse(text: &str) -> Result<Self, SpecFinding> {
        let fields = parse_frontmatter(text)?.fields;
        let find =
            |field: Field| find_field(&fields, field.as_str()).ok_or_else(|| missing_field(field));
        let (name, description) = (find(Field::Name)?, find(Field::Description)?);
        let name = required_text(name, Field::Name)?.to_owned();
        let description = required_text(description, Field::Description)?.to_owned();
        Ok(SkillProperties {
            name,
            description,
            license: fields.get("license").cloned(),
            compatibility: fields.get("compatibility").cloned(),
            allowed_tools: fields.get("allowed-tools").cloned(),
            metadata: fields.get("metadata").cloned(),
        })
    }

    /// Renders the JSON that skills-ref prints, without the final line break.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{");
        let mut separator = "\n  ";
        let mut field = |key: &str, write_value: &dyn Fn(&mut String)| {
            out.push_str(separator);
            separator = ",\n  ";
            write_json_text(&mut out, key);
            out.push_str(": ");
            write_value(&mut out);
        };
        field("name", &|out| write_json_text(out, &self.name));
        field("description", &|out| write_json_text(out, &self.description));
        let others = [
            ("license", &self.license),
            ("compatibility", &self.compatibility),
            ("allowed-tools", &self.allowed_tools),
        ];
        for (key, value) in others {
            if let Some(node) = value {
                field(key, &|out| write_json(out, node, 1));
            }
        }
        match &self.metadata {
            Some(YamlNode { value: Value::Mapping(mapping), .. }) => {
                field("metadata", &|out| write_flat_mapping(out, mapping));
            }
            Some(node) if node.as_str() != Some("") => {
                field("metadata", &|out| write_json(out, node, 1));
            }
            _ => {}
        }
        out.push_str("\n}");
        out
    }
}

/// Writes the entries of `metadata`, converting every value to text as Python's `str()` does.
fn write_flat_mapping(out: &mut String, mapping: &YamlMapping) {
    write_json_items(out, ['{', '}'], 1, mapping.entries.iter(), |out, entry| {
        write_json_text(out, &entry.key);
        out.push_str(": ");
        write_json_text(out, &python_str(&entry.value));
    });
}

/// Python's `json.dumps(value, indent=2)`.
fn write_json(out: &mut String, node: &YamlNode, depth: usize) {
    match &node.value {
        Value::Scalar(scalar) => write_json_text(out, &scalar.text),
        Value::Sequence(items, _) => {
            write_json_items(out, ['[', ']'], depth, items.iter(), |out, item| {
                write_json(out, item, depth + 1);
            });
        }
        Value::Mapping(mapping) => {
            write_json_items(out, ['{', '}'], depth, mapping.entries.iter(), |out, entry| {
                write_json_text(out, &entry.key);
                out.push_str(": ");
                write_json(out, &entry.value, depth + 1);
            });
        }
    }
}

fn write_json_items<T>(
    out: &mut String,
    [open, close]: [char; 2],
    depth: usize,
    items: impl Iterator<Item = T>,
    mut write_item: impl FnMut(&mut String, T),
) {
    out.push(open);
    for (index, item) in items.enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        write_indent(out, depth + 1);
        write_item(out, item);
    }
    out.push('\n');
    write_indent(out, depth);
    out.push(close);
}

fn write_indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Python's `json.dumps(text)`: ASCII only, with surrogate pairs beyond the basic plane.
fn write_json_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    push_formatted(out, format_args!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

/// Python's `str()`: strings as they are, anything else as its `repr`.
fn python_str(node: &YamlNode) -> Cow<'_, str> {
    node.as_str().map_or_else(|| Cow::Owned(python_repr(node)), Cow::Borrowed)
}

/// Python's `repr` of nested dictionaries, lists and strings.
fn python_repr(node: &YamlNode) -> String {
    let mut out = String::new();
    write_repr(&mut out, node);
    out
}

fn write_repr(out: &mut String, node: &YamlNode) {
    match &node.value {
        Value::Scalar(scalar) => write_repr_text(out, &scalar.text),
        Value::Sequence(items, _) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_repr(out, item);
            }
            out.push(']');
        }
        Value::Mapping(mapping) => {
            out.push('{');
            for (index, entry) in mapping.entries.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_repr_text(out, &entry.key);
                out.push_str(": ");
                write_repr(out, &entry.value);
            }
            out.push('}');
        }
    }
}

/// Python's `repr(text)`: single quotes unless only those occur inside, and escapes for unprintable
/// characters.
fn write_repr_text(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                match code {
                    0..=0xff => push_formatted(out, format_args!("\\x{code:02x}")),
                    0x100..=0xffff => push_formatted(out, format_args!("\\u{code:04x}")),
                    _ => push_formatted(out, format_args!("\\U{code:08x}")),
                }
            }
        }
    }
    out.push(quote);
}

/// Python's `str.isprintable` for one character.
fn is_printable(c: char) -> bool {
    static OTHER_OR_SEPARATOR: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^[\p{C}\p{Z}]$").expect("the pattern is constant"));
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    !OTHER_OR_SEPARATOR.is_match(c.encode_utf8(&mut [0; 4]))
}

fn push_formatted(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(frontmatter: &str) -> String {
        SkillProperties::parse(&format!("---\n{frontmatter}\n---\nBody\n")).unwrap().to_json()
    }

    #[track_caller]
    fn check_error(text: &str, expect: &str) {
        assert_eq!(SkillProperties::parse(text).unwrap_err().message, expect);
    }

    #[test]
    fn fields_stand_in_a_fixed_order_and_only_if_present() {
        insta::assert_snapshot!(json("description: ' d '\nname: x"), @r#"
        {
          "name": "x",
          "description": "d"
        }
        "#);
        let all = "metadata:\n  version: 1.0\nallowed-tools:\n- Read\n- Bash(git:*)\n\
                   compatibility: any\nlicense:\nextra: 1\ndescription: d\nname: x";
        insta::assert_snapshot!(json(all), @r#"
        {
          "name": "x",
          "description": "d",
          "license": "",
          "compatibility": "any",
          "allowed-tools": [
            "Read",
            "Bash(git:*)"
          ],
          "metadata": {
            "version": "1.0"
          }
        }
        "#);
    }

    #[test]
    fn texts_are_escaped_to_ascii() {
        let text = r#"name: x
description: "\"q\" \\ \t\b\f\r\n\e\x7f é 日 😀""#;
        insta::assert_snapshot!(json(text), @r#"
        {
          "name": "x",
          "description": "\"q\" \\ \t\b\f\r\n\u001b\u007f \u00e9 \u65e5 \ud83d\ude00"
        }
        "#);
        insta::assert_snapshot!(json("name: x\ndescription: \"\\ud83d\\ude00\""), @r#"
        {
          "name": "x",
          "description": "\ud83d\ude00"
        }
        "#);
    }

    #[test]
    fn nested_metadata_becomes_a_python_repr() {
        let text = r#"name: x
description: d
metadata:
  flat: true
  list:
    - it's
    - '"'
    - 'both '' and "'
    - "tab\t nbsp\xa0 bell\a sep\u2028 é \U000e0001 \\"
  map:
    inner:
      - 1
    empty:"#;
        insta::assert_snapshot!(json(text), @r#"
        {
          "name": "x",
          "description": "d",
          "metadata": {
            "flat": "true",
            "list": "[\"it's\", '\"', 'both \\' and \"', 'tab\\t nbsp\\xa0 bell\\x07 sep\\u2028 \u00e9 \\U000e0001 \\\\']",
            "map": "{'inner': ['1'], 'empty': ''}"
          }
        }
        "#);
    }

    #[test]
    fn metadata_that_is_no_mapping_is_kept_and_empty_metadata_is_not() {
        insta::assert_snapshot!(json("name: x\ndescription: d\nmetadata: text"), @r#"
        {
          "name": "x",
          "description": "d",
          "metadata": "text"
        }
        "#);
        insta::assert_snapshot!(json("name: x\ndescription: d\nmetadata:"), @r#"
        {
          "name": "x",
          "description": "d"
        }
        "#);
        insta::assert_snapshot!(json("name: x\ndescription: d\nlicense:\n  a:\n  - b: c"), @r#"
        {
          "name": "x",
          "description": "d",
          "license": {
            "a": [
              {
                "b": "c"
              }
            ]
          }
        }
        "#);
    }

    #[test]
    fn only_the_first_problem_is_told() {
        check_error("Body", "SKILL.md must start with YAML frontmatter (---)");
        check_error("---\nname: x\n", "SKILL.md frontmatter not properly closed with ---");
        check_error("---\n- a\n---", "SKILL.md frontmatter must be a YAML mapping");
        check_error("---\nlicense: MIT\n---", "Missing required field in frontmatter: name");
        check_error("---\nname:\n---", "Missing required field in frontmatter: description");
        let both_empty = "---\nname: \ndescription: ' '\n---";
        check_error(both_empty, "Field 'name' must be a non-empty string");
        let list = "---\nname: x\ndescription:\n- a\n---";
        check_error(list, "Field 'description' must be a non-empty string");
    }

    #[test]
    fn a_folder_without_a_skill_has_no_properties() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let message = read_properties(&dir.join("./none/")).unwrap_err().message;
        assert_eq!(message, format!("SKILL.md not found in {dir}/none"));
    }
}
