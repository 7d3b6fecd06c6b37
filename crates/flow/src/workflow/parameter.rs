//! Parameters of workflows: accepted values, and parsing them from a command line.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::is_id;
use crate::limits::{ENTRIES_MAX, VALUE_BYTES_MAX};

/// A parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowParameter {
    /// The type of its values.
    #[serde(default, rename = "type")]
    pub kind: ParameterType,
    /// The meaning, in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The value if none is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only values it accepts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The minimum value, or the minimum number of entries of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The maximum value, or the maximum number of entries of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// True if a run cannot start without a value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// The type of a parameter's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ParameterType {
    /// Any text.
    #[default]
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list of texts: a JSON list, or one text per line.
    List,
    /// Work to dispatch: a JSON list of [`WorkItem`]s.
    Work,
}

/// A piece of work for a sub-agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkItem {
    /// The id of the item.
    pub id: String,
    /// The task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// The files it may change. Two items of one wave never share a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The wave: items of one wave run at the same time, waves one after another.
    #[serde(default = "first_wave")]
    pub wave: u32,
}

fn first_wave() -> u32 {
    1
}

/// The reason why a parameter does not accept a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadParameterValue(pub String);

impl WorkflowParameter {
    /// Parses and checks a typed value.
    pub fn parse_value(&self, text: &str) -> Result<Value, BadParameterValue> {
        if text.len() > VALUE_BYTES_MAX {
            let said = format!("it has {} bytes, and {VALUE_BYTES_MAX} is the limit", text.len());
            return Err(BadParameterValue(said));
        }
        let value = match self.kind {
            ParameterType::Text => Value::from(text),
            ParameterType::Integer => text
                .trim()
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| BadParameterValue(format!("`{text}` is not a whole number")))?,
            ParameterType::Number => text
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite())
                .map(Value::from)
                .ok_or_else(|| BadParameterValue(format!("`{text}` is not a number")))?,
            ParameterType::Boolean => match text.trim() {
                "true" | "yes" | "1" => Value::from(true),
                "false" | "no" | "0" => Value::from(false),
                _ => {
                    return Err(BadParameterValue(format!(
                        "`{text}` is neither `true` nor `false`"
                    )));
                }
            },
            ParameterType::List => parse_list(text)?,
            ParameterType::Work => serde_json::from_str(text).map_err(|error| {
                BadParameterValue(format!("this is no JSON list of work: {error}"))
            })?,
        };
        self.check_value(value)
    }

    /// Checks a value that was already parsed, from a file or as JSON.
    pub fn check_value(&self, value: Value) -> Result<Value, BadParameterValue> {
        if let Value::Array(entries) = &value
            && entries.len() > ENTRIES_MAX
        {
            return Err(BadParameterValue(format!(
                "it has {} entries, and {ENTRIES_MAX} is the limit",
                entries.len()
            )));
        }
        match (self.kind, &value) {
            (ParameterType::Text, Value::String(_)) | (ParameterType::Boolean, Value::Bool(_)) => {}
            (ParameterType::Integer, Value::Number(number)) if number.is_i64() => {}
            (ParameterType::Number, Value::Number(_)) => {}
            (ParameterType::List, Value::Array(entries))
                if entries.iter().all(Value::is_string) => {}
            (ParameterType::Work, Value::Array(_)) => {
                let work = Vec::<WorkItem>::deserialize(&value).map_err(|error| {
                    BadParameterValue(format!("this is no list of work: {error}"))
                })?;
                check_work_items(&work)?;
            }
            (kind, _) => {
                return Err(BadParameterValue(format!("it has to be {}", kind.described())));
            }
        }
        self.in_choices(&value)?;
        self.in_range(&value)?;
        Ok(value)
    }

    fn in_choices(&self, value: &Value) -> Result<(), BadParameterValue> {
        if self.choices.is_empty() {
            return Ok(());
        }
        let allowed = |value: &Value| match value {
            Value::String(text) => self.choices.contains(text),
            Value::Number(number) => self.choices.iter().any(|choice| {
                choice.trim().parse().is_ok_and(|choice: f64| Some(choice) == number.as_f64())
            }),
            other => self.choices.contains(&other.to_string()),
        };
        let fits = match value {
            Value::Array(entries) => entries.iter().all(allowed),
            one => allowed(one),
        };
        if fits {
            Ok(())
        } else {
            Err(BadParameterValue(format!("it has to be one of {}", self.choices.join(", "))))
        }
    }

    fn in_range(&self, value: &Value) -> Result<(), BadParameterValue> {
        let (size, what) = match value {
            Value::Number(number) => (number.as_f64().unwrap_or_default(), "it"),
            Value::Array(entries) => (entries.len() as f64, "the number of its entries"),
            _ => return Ok(()),
        };
        if let Some(min) = self.min.filter(|min| size < *min) {
            return Err(BadParameterValue(format!("{what} has to be at least {min}")));
        }
        if let Some(max) = self.max.filter(|max| size > *max) {
            return Err(BadParameterValue(format!("{what} has to be at most {max}")));
        }
        Ok(())
    }
}

impl ParameterType {
    /// A description for people.
    pub fn described(self) -> &'static str {
        match self {
            ParameterType::Text => "text",
            ParameterType::Integer => "a whole number",
            ParameterType::Number => "a number",
            ParameterType::Boolean => "`true` or `false`",
            ParameterType::List => "a list of texts",
            ParameterType::Work => "a list of work",
        }
    }
}

/// Parses a JSON list, or one text per line. Commas don't separate entries: values with commas are common, and lists
/// on one line are not.
fn parse_list(text: &str) -> Result<Value, BadParameterValue> {
    if text.trim_start().starts_with('[') {
        let entries: Vec<String> = serde_json::from_str(text).map_err(|error| {
            BadParameterValue(format!("this is no JSON list of texts: {error}"))
        })?;
        return Ok(entries.into());
    }
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).collect())
}

/// Refuses duplicate and invalid ids, and files that two items of one wave would change at the same time.
fn check_work_items(work: &[WorkItem]) -> Result<(), BadParameterValue> {
    let mut names = BTreeSet::new();
    for (at, item) in work.iter().enumerate() {
        if !is_id(&item.id) {
            let said =
                "an id has letters, digits, `.`, `_` and `-`, and begins with a letter or digit";
            return Err(BadParameterValue(format!("piece {} has no good id: {said}", at + 1)));
        }
        if !names.insert(&item.id) {
            return Err(BadParameterValue(format!("`{}` is there twice", item.id)));
        }
    }
    let mut waves: BTreeMap<u32, Vec<(&str, &[String])>> = BTreeMap::new();
    for item in work {
        waves.entry(item.wave).or_default().push((&item.id, &item.files));
    }
    for (wave, pieces) in &waves {
        if let Some(shared) = find_shared_files(pieces).first() {
            let SharedFile { first, second, file } = shared;
            return Err(BadParameterValue(format!(
                "`{first}` and `{second}` of wave {wave} both change `{file}`; put one of them into a later wave"
            )));
        }
    }
    Ok(())
}

/// A file that two sub-agents would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedFile {
    pub(crate) first: String,
    pub(crate) second: String,
    pub(crate) file: String,
}

/// Finds files that two of these would change at the same time, comparing normalised paths. A folder includes
/// everything below it.
pub(crate) fn find_shared_files(pieces: &[(&str, &[String])]) -> Vec<SharedFile> {
    let mut owned: Vec<(String, &str)> = pieces
        .iter()
        .flat_map(|(id, files)| files.iter().map(|file| (normalise_path(file), *id)))
        .collect();
    // Compare component by component, so that a folder directly precedes its contents.
    owned.sort_by(|a, b| a.0.split('/').cmp(b.0.split('/')));
    let mut shared = Vec::new();
    let mut above: Vec<(&str, &str)> = Vec::new();
    for (file, id) in &owned {
        above.retain(|(folder, _)| {
            let below = file.strip_prefix(folder);
            folder.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if let Some((_, other)) = above.iter().find(|(_, other)| other != id) {
            let (first, second) = ((*other).to_owned(), (*id).to_owned());
            shared.push(SharedFile { first, second, file: file.clone() });
        }
        above.push((file, id));
    }
    shared
}

/// Normalises a path: removes empty components and `.`, and resolves `..`.
fn normalise_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.trim().split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arg(kind: ParameterType) -> WorkflowParameter {
        WorkflowParameter { kind, ..WorkflowParameter::default() }
    }

    #[test]
    fn values_are_read_by_type() {
        assert_eq!(arg(ParameterType::Integer).parse_value("7"), Ok(json!(7)));
        assert_eq!(arg(ParameterType::Boolean).parse_value("yes"), Ok(json!(true)));
        assert_eq!(arg(ParameterType::List).parse_value("a, b\nc\n"), Ok(json!(["a, b", "c"])));
        assert_eq!(arg(ParameterType::List).parse_value(r#"["a"]"#), Ok(json!(["a"])));
        assert!(arg(ParameterType::Integer).parse_value("7.5").is_err());
        assert!(arg(ParameterType::Number).parse_value("NaN").is_err());
    }

    #[test]
    fn choices_and_ranges_hold() {
        let mode = WorkflowParameter {
            choices: vec!["quick".into(), "full".into()],
            ..WorkflowParameter::default()
        };
        assert!(mode.parse_value("quick").is_ok());
        assert_eq!(mode.parse_value("slow").unwrap_err().0, "it has to be one of quick, full");
        let depth =
            WorkflowParameter { min: Some(1.0), max: Some(3.0), ..arg(ParameterType::Integer) };
        assert!(depth.parse_value("3").is_ok());
        assert_eq!(depth.parse_value("4").unwrap_err().0, "it has to be at most 3");
    }

    #[test]
    fn two_pieces_of_one_wave_may_not_share_a_file() {
        let work = arg(ParameterType::Work);
        let list = |wave: u32| {
            format!(
                r#"[{{"id":"a","files":["x.rs"]}},{{"id":"b","files":["./x.rs"],"wave":{wave}}}]"#
            )
        };
        assert!(work.parse_value(&list(2)).is_ok());
        assert_eq!(
            work.parse_value(&list(1)).unwrap_err().0,
            "`a` and `b` of wave 1 both change `x.rs`; put one of them into a later wave"
        );
    }

    #[test]
    fn values_that_do_not_fit_say_why() {
        let says = |arg: &WorkflowParameter, text: &str| {
            arg.parse_value(text).expect_err("it does not fit").0
        };
        assert_eq!(
            says(&arg(ParameterType::Integer), "9223372036854775808"),
            "`9223372036854775808` is not a whole number"
        );
        assert_eq!(says(&arg(ParameterType::Number), "1e999"), "`1e999` is not a number");
        assert_eq!(
            says(&arg(ParameterType::Boolean), "maybe"),
            "`maybe` is neither `true` nor `false`"
        );
        assert!(
            says(&arg(ParameterType::List), "[1]").starts_with("this is no JSON list of texts")
        );
        assert!(says(&arg(ParameterType::Work), "{}").starts_with("it has to be a list of work"));
        assert!(says(&arg(ParameterType::Work), r#"[{"id":"a","extra":1}]"#).contains("extra"));
        assert!(
            says(&arg(ParameterType::Work), &"[".repeat(60_000)).starts_with("this is no JSON")
        );
        let long = "x".repeat(VALUE_BYTES_MAX + 1);
        assert_eq!(
            says(&arg(ParameterType::Text), &long),
            "it has 65537 bytes, and 65536 is the limit"
        );
        assert_eq!(
            says(&arg(ParameterType::List), &"a\n".repeat(1001)),
            "it has 1001 entries, and 1000 is the limit"
        );
    }

    #[test]
    fn the_entries_of_a_list_are_counted_and_chosen() {
        let list = WorkflowParameter {
            choices: vec!["a".into(), "b, c".into()],
            min: Some(1.0),
            max: Some(2.0),
            ..arg(ParameterType::List)
        };
        assert_eq!(list.parse_value("a\nb, c"), Ok(json!(["a", "b, c"])));
        assert_eq!(list.parse_value("d").unwrap_err().0, "it has to be one of a, b, c");
        assert_eq!(
            list.parse_value("").unwrap_err().0,
            "the number of its entries has to be at least 1"
        );
        assert_eq!(
            list.parse_value("a\na\na").unwrap_err().0,
            "the number of its entries has to be at most 2"
        );
        let number = WorkflowParameter {
            choices: vec!["1".into(), "2.5".into()],
            ..arg(ParameterType::Number)
        };
        assert_eq!(number.parse_value("1"), Ok(json!(1.0)));
        assert_eq!(number.parse_value("2.50"), Ok(json!(2.5)));
        assert!(number.parse_value("2").is_err());
    }

    #[test]
    fn names_of_work_are_names_and_come_once() {
        let work = arg(ParameterType::Work);
        for id in ["", "a b", "a\\n## next step", "-x", "<x>"] {
            let said = work.parse_value(&format!(r#"[{{"id":"{id}"}}]"#)).unwrap_err().0;
            assert!(said.starts_with("piece 1 has no good id"), "{id}: {said}");
        }
        assert_eq!(
            work.parse_value(r#"[{"id":"a"},{"id":"a"}]"#).unwrap_err().0,
            "`a` is there twice"
        );
        assert_eq!(work.parse_value(r#"[{"id":"a.1"}]"#), Ok(json!([{"id":"a.1"}])));
    }

    #[test]
    fn a_file_is_the_same_however_its_path_is_written() {
        let shared = |first: &str, second: &str| {
            let (first, second) = ([first.to_owned()], [second.to_owned()]);
            !find_shared_files(&[("a", &first), ("b", &second)]).is_empty()
        };
        for (first, second) in [
            ("a/b", "./a/b"),
            ("a/b", "a//b/"),
            ("a/b", "a/c/../b"),
            ("a", "a/b/c"),
            (".", "a/b"),
            (" a", "a"),
            ("../a", "../b/../a"),
        ] {
            assert!(shared(first, second) && shared(second, first), "{first} {second}");
        }
        for (first, second) in [("a/b", "a/bc"), ("a-b", "a"), ("a/b", "../a/b"), ("a.rs", "a")] {
            assert!(!shared(first, second) && !shared(second, first), "{first} {second}");
        }
        let one = ["a".to_owned(), "a/b".to_owned(), "a".to_owned()];
        assert!(find_shared_files(&[("a", &one)]).is_empty());
    }
}
