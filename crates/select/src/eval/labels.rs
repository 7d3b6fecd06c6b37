//! Labelled queries, in the forms in which people write them: a list of `query` and `should_trigger` beside a
//! skill, the `evals.json` of skill-creator, or a line of JSON for each query with the skills that are right.
//! What cannot be understood is a problem with its line, and costs nothing else.

use std::collections::BTreeMap;
use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::metrics::Gold;
use crate::Task;
use crate::limits::{LABEL_PROBLEMS_MAX, LABELS_MAX};

const TEXT_KEYS: [&str; 5] = ["query", "prompt", "input", "text", "task"];
const SKILL_KEYS: [&str; 2] = ["skill", "skill_name"];
const TRIGGER_KEYS: [&str; 3] = ["should_trigger", "trigger", "expected"];
/// Lists in an object, with what standing in such a list means.
const LIST_KEYS: [(&str, Option<bool>); 6] = [
    ("evals", None),
    ("queries", None),
    ("cases", None),
    ("tests", None),
    ("should_trigger", Some(true)),
    ("should_not_trigger", Some(false)),
];

const NO_QUERIES: &str = "Expected a list of `{\"query\": \"…\", \"should_trigger\": true}`, or an object with such a list under `evals`.";
const NO_TEXT: &str = "Add `\"query\": \"what a user would say\"`.";
const NO_LABEL: &str = "Add `\"gold\": [\"skill-name\"]`, or `\"gold\": []` where no skill fits.";
const NO_SKILL: &str =
    "Add `\"skill\": \"skill-name\"`, or keep the file in the skill's folder as `evals/….json`.";

/// A text with labels, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct LabelFile<'a> {
    /// The file, for messages. One that ends in `.jsonl` has an object a line.
    pub path: &'a Utf8Path,
    /// Its text.
    pub text: &'a str,
    /// The skill in whose folder it lies.
    pub skill: Option<&'a str>,
}

/// A line of a file.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Place {
    /// The file.
    #[schemars(with = "String")]
    pub file: Utf8PathBuf,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A task with what is right for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// What is to be done.
    pub task: Task,
    /// The skills that are right, with grades above 0.
    pub gold: Gold,
    /// Skills that must not be picked.
    pub not: Vec<String>,
    /// Where it is written.
    pub place: Place,
}

impl Query {
    /// Whether nothing at all should be picked.
    pub fn should_abstain(&self) -> bool {
        self.gold.is_empty() && self.not.is_empty()
    }

    /// Whether a skill is right; nothing where the query only says that others are wrong.
    pub fn is_right(&self, skill: &str) -> Option<bool> {
        if self.gold.contains_key(skill) {
            return Some(true);
        }
        let is_known = !self.gold.is_empty()
            || self.should_abstain()
            || self.not.iter().any(|name| name == skill);
        is_known.then_some(false)
    }
}

/// Something in a file of labels that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelProblem {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl fmt::Display for LabelProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Labels {
    /// Its queries, in their order.
    pub queries: Vec<Query>,
    /// What could not be understood.
    pub problems: Vec<LabelProblem>,
    /// Whether it looks like a file of labels at all.
    pub is_labelled: bool,
}

/// Reads labelled queries.
///
/// ```
/// use repertoire_select::eval::labels::{LabelFile, parse};
///
/// let text = r#"[{"query": "fill in this form", "should_trigger": true}]"#;
/// let labels = parse(&LabelFile { path: "evals.json".into(), text, skill: Some("pdf") });
/// assert!(labels.queries[0].gold.contains_key("pdf"));
/// ```
pub fn parse(file: &LabelFile<'_>) -> Labels {
    let text = file.text.trim_start_matches('\u{feff}');
    let mut reader = Reader::new(file.path, text);
    match file.path.extension() {
        Some("jsonl" | "ndjson") => reader.lines(file.skill),
        _ => reader.whole(file.skill),
    }
    if reader.skipped > 0 {
        let (skipped, line) = (reader.skipped, text.lines().count());
        let place = Place { file: file.path.to_owned(), line: line.max(1) };
        let message = format!("{skipped} more problems in this file");
        let help = "Mend those above first.".to_owned();
        reader.labels.problems.push(LabelProblem { place, message, help });
    }
    reader.labels
}

/// Sets aside the queries that name a skill which is not there: they would measure the labels, not selection.
/// The others get the names that `resolve` gives.
pub fn known(
    queries: Vec<Query>,
    resolve: impl Fn(&str) -> Option<String>,
) -> (Vec<Query>, Vec<LabelProblem>) {
    let mut kept = Vec::with_capacity(queries.len());
    let mut problems = Vec::new();
    for mut query in queries {
        let name = |name: &String| resolve(name).ok_or_else(|| name.clone());
        let gold: Result<Gold, String> =
            query.gold.iter().map(|(skill, grade)| Ok((name(skill)?, *grade))).collect();
        let not: Result<Vec<String>, String> = query.not.iter().map(name).collect();
        match (gold, not) {
            (Ok(gold), Ok(not)) => {
                (query.gold, query.not) = (gold, not);
                kept.push(query);
            }
            (Err(unknown), _) | (_, Err(unknown)) => problems.push(LabelProblem {
                place: query.place,
                message: format!("unknown skill `{unknown}`; the query is not counted"),
                help: "`rep list` shows every skill; correct the name or add the skill.".to_owned(),
            }),
        }
    }
    (kept, problems)
}

/// How deep lists of queries may lie in each other.
const NESTING_MAX: usize = 3;

/// Why an element is no query: what is wrong, and what to do.
type Wrong = (String, &'static str);

struct Reader<'a> {
    path: &'a Utf8Path,
    text: &'a str,
    /// Where lines end.
    line_ends: Vec<usize>,
    nesting: usize,
    skipped: usize,
    labels: Labels,
}

impl<'a> Reader<'a> {
    fn new(path: &'a Utf8Path, text: &'a str) -> Self {
        let line_ends = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
        Reader { path, text, line_ends, nesting: 0, skipped: 0, labels: Labels::default() }
    }

    fn whole(&mut self, skill: Option<&str>) {
        let raw: &'a RawValue = match serde_json::from_str(self.text) {
            Ok(raw) => raw,
            Err(error) => {
                // Who writes one object a line finds out sooner if it works under any name.
                if self.text.lines().next().is_some_and(is_object) {
                    return self.lines(skill);
                }
                self.labels.is_labelled = true;
                return self.problem(error.line().max(1), invalid_json(&error));
            }
        };
        match raw.get().bytes().next() {
            Some(b'[') => {
                self.labels.is_labelled = true;
                self.list(raw, skill, None);
            }
            Some(b'{') => self.object(raw, skill, None),
            _ => self.problem(1, ("there are no queries in it".to_owned(), NO_QUERIES)),
        }
    }

    fn lines(&mut self, skill: Option<&str>) {
        self.labels.is_labelled = true;
        let text = self.text;
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match serde_json::from_str::<&'a RawValue>(line) {
                Ok(raw) => self.element(raw, skill, None),
                Err(error) => self.problem(at + 1, invalid_json(&error)),
            }
        }
    }

    fn list(&mut self, raw: &'a RawValue, skill: Option<&str>, trigger: Option<bool>) {
        match serde_json::from_str::<Vec<&'a RawValue>>(raw.get()) {
            Ok(elements) => {
                elements.into_iter().for_each(|element| self.element(element, skill, trigger));
            }
            Err(_) => self.wrong(raw, ("this should be a list of queries".to_owned(), NO_QUERIES)),
        }
    }

    fn element(&mut self, raw: &'a RawValue, skill: Option<&str>, trigger: Option<bool>) {
        match raw.get().bytes().next() {
            Some(b'{') => self.object(raw, skill, trigger),
            Some(b'"') => {
                let text = serde_json::from_str(raw.get()).unwrap_or_default();
                let map = Map::from_iter([("query".to_owned(), Value::String(text))]);
                self.query(raw, &map, skill, trigger);
            }
            _ => self.wrong(raw, ("this is not a query".to_owned(), NO_QUERIES)),
        }
    }

    /// A query, or an object around lists of them.
    fn object(&mut self, raw: &'a RawValue, skill: Option<&str>, trigger: Option<bool>) {
        let fields = serde_json::from_str::<BTreeMap<String, &'a RawValue>>(raw.get());
        let map = serde_json::from_str::<Map<String, Value>>(raw.get());
        let (fields, map) = match (fields, map) {
            (Ok(fields), Ok(map)) => (fields, map),
            (Err(error), _) | (_, Err(error)) => return self.wrong(raw, invalid_json(&error)),
        };
        let named = SKILL_KEYS.iter().find_map(|key| map.get(*key).and_then(Value::as_str));
        let skill = named.or(skill);
        let is_query = TEXT_KEYS.iter().any(|key| map.contains_key(*key));
        let lists: Vec<_> = LIST_KEYS
            .iter()
            .filter_map(|(key, trigger)| Some((*fields.get(*key)?, *trigger)))
            .filter(|(raw, _)| raw.get().starts_with('['))
            .collect();
        let is_whole_file = !self.labels.is_labelled;
        if is_whole_file && lists.is_empty() && !is_query {
            return self.problem(1, ("there are no queries in it".to_owned(), NO_QUERIES));
        }
        // Around lists a `task` is a remark; within one, `tests` belong to the query.
        if lists.is_empty() || (is_query && !is_whole_file) {
            self.labels.is_labelled = true;
            return self.query(raw, &map, skill, trigger);
        }
        self.labels.is_labelled = true;
        if self.nesting == NESTING_MAX {
            return self.wrong(raw, ("lists lie too deep in each other".to_owned(), NO_QUERIES));
        }
        self.nesting += 1;
        for (list, trigger) in lists {
            self.list(list, skill, trigger);
        }
        self.nesting -= 1;
    }

    fn query(
        &mut self,
        raw: &RawValue,
        map: &Map<String, Value>,
        skill: Option<&str>,
        trigger: Option<bool>,
    ) {
        let place = self.place(raw);
        if self.labels.queries.len() >= LABELS_MAX {
            let message = format!("more than {LABELS_MAX} queries; the rest is not read");
            return self.problem(place.line, (message, "Divide the file."));
        }
        match query(map, skill, trigger, place) {
            Ok(query) => self.labels.queries.push(query),
            Err(wrong) => self.wrong(raw, wrong),
        }
    }

    /// Where a value stands. It is a part of the text, so that its address says so.
    fn place(&self, raw: &RawValue) -> Place {
        let offset = raw.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        let line = self.line_ends.partition_point(|end| *end < offset) + 1;
        Place { file: self.path.to_owned(), line }
    }

    fn wrong(&mut self, raw: &RawValue, wrong: Wrong) {
        let line = self.place(raw).line;
        self.problem(line, wrong);
    }

    fn problem(&mut self, line: usize, (message, help): Wrong) {
        if self.labels.problems.len() >= LABEL_PROBLEMS_MAX {
            self.skipped += 1;
            return;
        }
        let place = Place { file: self.path.to_owned(), line };
        self.labels.problems.push(LabelProblem { place, message, help: help.to_owned() });
    }
}

fn query(
    map: &Map<String, Value>,
    skill: Option<&str>,
    trigger: Option<bool>,
    place: Place,
) -> Result<Query, Wrong> {
    let text = TEXT_KEYS.iter().find_map(|key| map.get(*key)).and_then(Value::as_str);
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Err(("there is no text to select for".to_owned(), NO_TEXT));
    };
    let task = Task {
        hints: strings(map, "hints")?,
        paths: strings(map, "paths")?.into_iter().map(Utf8PathBuf::from).collect(),
        event: string(map, "event")?,
        agent: string(map, "agent")?,
        conversation: strings(map, "conversation")?,
        ..Task::new(text)
    };
    let (gold, not) = labels(map, skill, trigger)?;
    if let Some(both) = not.iter().find(|name| gold.contains_key(*name)) {
        let message = format!("`{both}` is both right and wrong");
        return Err((message, "Take it out of `gold` or out of `not`."));
    }
    Ok(Query { task, gold, not, place })
}

/// What is right, and what is not.
fn labels(
    map: &Map<String, Value>,
    skill: Option<&str>,
    trigger: Option<bool>,
) -> Result<(Gold, Vec<String>), Wrong> {
    let mut not = strings(map, "not")?;
    not.extend(string(map, "neg_of")?);
    if let Some(value) = map.get("gold").or_else(|| map.get("rel")) {
        return Ok((gold(value)?, not));
    }
    let said = TRIGGER_KEYS.iter().find_map(|key| map.get(*key).and_then(Value::as_bool));
    match (said.or(trigger), skill) {
        (Some(false), Some(skill)) => not.push(skill.to_owned()),
        (Some(true), Some(skill)) => return Ok(([(skill.to_owned(), 1.0)].into(), not)),
        (Some(_), None) => {
            let message = "nothing says which skill `should_trigger` is about".to_owned();
            return Err((message, NO_SKILL));
        }
        (None, _) if !not.is_empty() => {}
        (None, Some(skill)) => return Ok(([(skill.to_owned(), 1.0)].into(), not)),
        (None, None) => return Err(("nothing says which skill is right".to_owned(), NO_LABEL)),
    }
    Ok((Gold::new(), not))
}

fn gold(value: &Value) -> Result<Gold, Wrong> {
    let wrong = || ("`gold` is not a list of skills".to_owned(), NO_LABEL);
    match value {
        Value::String(name) => Ok([(name.clone(), 1.0)].into()),
        Value::Array(names) => names
            .iter()
            .map(|name| Ok((name.as_str().ok_or_else(wrong)?.to_owned(), 1.0)))
            .collect(),
        Value::Object(grades) => {
            let graded: Result<Vec<(String, f64)>, Wrong> = grades
                .iter()
                .map(|(name, grade)| Ok((name.clone(), grade.as_f64().ok_or_else(wrong)?)))
                .collect();
            Ok(graded?.into_iter().filter(|(_, grade)| *grade > 0.0).collect())
        }
        _ => Err(wrong()),
    }
}

fn strings(map: &Map<String, Value>, key: &str) -> Result<Vec<String>, Wrong> {
    let wrong = || (format!("`{key}` is not a list of texts"), "Write it as `[\"…\", \"…\"]`.");
    match map.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        Some(Value::Array(list)) => {
            list.iter().map(|one| one.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

fn string(map: &Map<String, Value>, key: &str) -> Result<Option<String>, Wrong> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err((format!("`{key}` is not a text"), "Write it as `\"…\"`.")),
    }
}

fn is_object(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('{') && serde_json::from_str::<&RawValue>(line).is_ok()
}

fn invalid_json(error: &serde_json::Error) -> Wrong {
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    let message = match error.column() {
        0 => format!("this is not JSON: {said}"),
        column => format!("this is not JSON: {said} (column {column})"),
    };
    (message, "Check quotes, commas and brackets.")
}

#[cfg(test)]
#[path = "labels_tests.rs"]
mod tests;
