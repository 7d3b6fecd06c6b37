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
pub struct Arg {
    /// The type of its values.
    #[serde(default, rename = "type")]
    pub kind: ArgType,
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
pub enum ArgType {
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
pub struct BadValue(pub String);

impl Arg {
    /// Parses and checks a typed value.
    pub fn parse(&self, text: &str) -> Result<Value, BadValue> {
        if text.len() > VALUE_BYTES_MAX {
            let said = format!("it has {} bytes, and {VALUE_BYTES_MAX} is the limit", text.len());
            return Err(BadValue(said));
        }
        let value = match self.kind {
            ArgType::Text => Value::from(text),
            ArgType::Integer => text
                .trim()
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| BadValue(format!("`{text}` is not a whole number")))?,
            ArgType::Number => text
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite())
                .map(Value::from)
                .ok_or_else(|| BadValue(format!("`{text}` is not a number")))?,
            ArgType::Boolean => match text.trim() {
                "true" | "yes" | "1" => Value::from(true),
                "false" | "no" | "0" => Value::from(false),
                _ => return Err(BadValue(format!("`{text}` is neither `true` nor `false`"))),
            },
            ArgType::List => list(text)?,
            ArgType::Work => serde_json::from_str(text)
                .map_err(|error| BadValue(format!("this is no JSON list of work: {error}")))?,
        };
        self.accept(value)
    }

    /// Checks a value that was already parsed, from a file or as JSON.
    pub fn accept(&self, value: Value) -> Result<Value, BadValue> {
        if let Value::Array(entries) = &value
            && entries.len() > ENTRIES_MAX
        {
            return Err(BadValue(format!(
                "it has {} entries, and {ENTRIES_MAX} is the limit",
                entries.len()
            )));
        }
        match (self.kind, &value) {
            (ArgType::Text, Value::String(_)) | (ArgType::Boolean, Value::Bool(_)) => {}
            (ArgType::Integer, Value::Number(number)) if number.is_i64() => {}
            (ArgType::Number, Value::Number(_)) => {}
            (ArgType::List, Value::Array(entries)) if entries.iter().all(Value::is_string) => {}
            (ArgType::Work, Value::Array(_)) => {
                let work = Vec::<WorkItem>::deserialize(&value)
                    .map_err(|error| BadValue(format!("this is no list of work: {error}")))?;
                disjoint(&work)?;
            }
            (kind, _) => return Err(BadValue(format!("it has to be {}", kind.described()))),
        }
        self.in_choices(&value)?;
        self.in_range(&value)?;
        Ok(value)
    }

    fn in_choices(&self, value: &Value) -> Result<(), BadValue> {
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
            Err(BadValue(format!("it has to be one of {}", self.choices.join(", "))))
        }
    }

    fn in_range(&self, value: &Value) -> Result<(), BadValue> {
        let (size, what) = match value {
            Value::Number(number) => (number.as_f64().unwrap_or_default(), "it"),
            Value::Array(entries) => (entries.len() as f64, "the number of its entries"),
            _ => return Ok(()),
        };
        if let Some(min) = self.min.filter(|min| size < *min) {
            return Err(BadValue(format!("{what} has to be at least {min}")));
        }
        if let Some(max) = self.max.filter(|max| size > *max) {
            return Err(BadValue(format!("{what} has to be at most {max}")));
        }
        Ok(())
    }
}

impl ArgType {
    /// A description for people.
    pub fn described(self) -> &'static str {
        match self {
            ArgType::Text => "text",
            ArgType::Integer => "a whole number",
            ArgType::Number => "a number",
            ArgType::Boolean => "`true` or `false`",
            ArgType::List => "a list of texts",
            ArgType::Work => "a list of work",
        }
    }
}

/// Parses a JSON list, or one text per line. Commas don't separate entries: values with commas are common, and lists
/// on one line are not.
fn list(text: &str) -> Result<Value, BadValue> {
    if text.trim_start().starts_with('[') {
        let entries: Vec<String> = serde_json::from_str(text)
            .map_err(|error| BadValue(format!("this is no JSON list of texts: {error}")))?;
        return Ok(entries.into());
    }
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).collect())
}

/// Refuses duplicate and invalid ids, and files that two items of one wave would change at the same time.
fn disjoint(work: &[WorkItem]) -> Result<(), BadValue> {
    let mut names = BTreeSet::new();
    for (at, item) in work.iter().enumerate() {
        if !is_id(&item.id) {
            let said =
                "an id has letters, digits, `.`, `_` and `-`, and begins with a letter or digit";
            return Err(BadValue(format!("piece {} has no good id: {said}", at + 1)));
        }
        if !names.insert(&item.id) {
            return Err(BadValue(format!("`{}` is there twice", item.id)));
        }
    }
    let mut waves: BTreeMap<u32, Vec<(&str, &[String])>> = BTreeMap::new();
    for item in work {
        waves.entry(item.wave).or_default().push((&item.id, &item.files));
    }
    for (wave, pieces) in &waves {
        if let Some(shared) = shared_files(pieces).first() {
            let Shared { first, second, file } = shared;
            return Err(BadValue(format!(
                "`{first}` and `{second}` of wave {wave} both change `{file}`; put one of them into a later wave"
            )));
        }
    }
    Ok(())
}

/// A file that two sub-agents would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shared {
    pub(crate) first: String,
    pub(crate) second: String,
    pub(crate) file: String,
}

/// Finds files that two of these would change at the same time, comparing normalised paths. A folder includes
/// everything below it.
pub(crate) fn shared_files(pieces: &[(&str, &[String])]) -> Vec<Shared> {
    let mut owned: Vec<(String, &str)> = pieces
        .iter()
        .flat_map(|(id, files)| files.iter().map(|file| (normal(file), *id)))
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
            shared.push(Shared { first, second, file: file.clone() });
        }
        above.push((file, id));
    }
    shared
}

/// Normalises a path: removes empty components and `.`, and resolves `..`.
fn normal(path: &str) -> String {
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

    fn arg(kind: ArgType) -> Arg {
        Arg { kind, ..Arg::default() }
    }

    #[test]
    fn values_are_read_by_type() {
        assert_eq!(arg(ArgType::Integer).parse("7"), Ok(json!(7)));
        assert_eq!(arg(ArgType::Boolean).parse("yes"), Ok(json!(true)));
        assert_eq!(arg(ArgType::List).parse("a, b\nc\n"), Ok(json!(["a, b", "c"])));
        assert_eq!(arg(ArgType::List).parse(r#"["a"]"#), Ok(json!(["a"])));
        assert!(arg(ArgType::Integer).parse("7.5").is_err());
        assert!(arg(ArgType::Number).parse("NaN").is_err());
    }

    #[test]
    fn choices_and_ranges_hold() {
        let mode = Arg { choices: vec!["quick".into(), "full".into()], ..Arg::default() };
        assert!(mode.parse("quick").is_ok());
        assert_eq!(mode.parse("slow").unwrap_err().0, "it has to be one of quick, full");
        let depth = Arg { min: Some(1.0), max: Some(3.0), ..arg(ArgType::Integer) };
        assert!(depth.parse("3").is_ok());
        assert_eq!(depth.parse("4").unwrap_err().0, "it has to be at most 3");
    }

    #[test]
    fn two_pieces_of_one_wave_may_not_share_a_file() {
        let work = arg(ArgType::Work);
        let list = |wave: u32| {
            format!(
                r#"[{{"id":"a","files":["x.rs"]}},{{"id":"b","files":["./x.rs"],"wave":{wave}}}]"#
            )
        };
        assert!(work.parse(&list(2)).is_ok());
        assert_eq!(
            work.parse(&list(1)).unwrap_err().0,
            "`a` and `b` of wave 1 both change `x.rs`; put one of them into a later wave"
        );
    }

    #[test]
    fn values_that_do_not_fit_say_why() {
        let says = |arg: &Arg, text: &str| arg.parse(text).expect_err("it does not fit").0;
        assert_eq!(
            says(&arg(ArgType::Integer), "9223372036854775808"),
            "`9223372036854775808` is not a whole number"
        );
        assert_eq!(says(&arg(ArgType::Number), "1e999"), "`1e999` is not a number");
        assert_eq!(says(&arg(ArgType::Boolean), "maybe"), "`maybe` is neither `true` nor `false`");
        assert!(says(&arg(ArgType::List), "[1]").starts_with("this is no JSON list of texts"));
        assert!(says(&arg(ArgType::Work), "{}").starts_with("it has to be a list of work"));
        assert!(says(&arg(ArgType::Work), r#"[{"id":"a","extra":1}]"#).contains("extra"));
        assert!(says(&arg(ArgType::Work), &"[".repeat(60_000)).starts_with("this is no JSON"));
        let long = "x".repeat(VALUE_BYTES_MAX + 1);
        assert_eq!(says(&arg(ArgType::Text), &long), "it has 65537 bytes, and 65536 is the limit");
        assert_eq!(
            says(&arg(ArgType::List), &"a\n".repeat(1001)),
            "it has 1001 entries, and 1000 is the limit"
        );
    }

    #[test]
    fn the_entries_of_a_list_are_counted_and_chosen() {
        let list = Arg {
            choices: vec!["a".into(), "b, c".into()],
            min: Some(1.0),
            max: Some(2.0),
            ..arg(ArgType::List)
        };
        assert_eq!(list.parse("a\nb, c"), Ok(json!(["a", "b, c"])));
        assert_eq!(list.parse("d").unwrap_err().0, "it has to be one of a, b, c");
        assert_eq!(list.parse("").unwrap_err().0, "the number of its entries has to be at least 1");
        assert_eq!(
            list.parse("a\na\na").unwrap_err().0,
            "the number of its entries has to be at most 2"
        );
        let number = Arg { choices: vec!["1".into(), "2.5".into()], ..arg(ArgType::Number) };
        assert_eq!(number.parse("1"), Ok(json!(1.0)));
        assert_eq!(number.parse("2.50"), Ok(json!(2.5)));
        assert!(number.parse("2").is_err());
    }

    #[test]
    fn names_of_work_are_names_and_come_once() {
        let work = arg(ArgType::Work);
        for id in ["", "a b", "a\\n## next step", "-x", "<x>"] {
            let said = work.parse(&format!(r#"[{{"id":"{id}"}}]"#)).unwrap_err().0;
            assert!(said.starts_with("piece 1 has no good id"), "{id}: {said}");
        }
        assert_eq!(work.parse(r#"[{"id":"a"},{"id":"a"}]"#).unwrap_err().0, "`a` is there twice");
        assert_eq!(work.parse(r#"[{"id":"a.1"}]"#), Ok(json!([{"id":"a.1"}])));
    }

    #[test]
    fn a_file_is_the_same_however_its_path_is_written() {
        let shared = |first: &str, second: &str| {
            let (first, second) = ([first.to_owned()], [second.to_owned()]);
            !shared_files(&[("a", &first), ("b", &second)]).is_empty()
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
        assert!(shared_files(&[("a", &one)]).is_empty());
    }
}
