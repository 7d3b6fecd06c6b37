//! Parses labelled queries in the formats that are in use: a list of `query` and `should_trigger` beside a
//! skill, the `evals.json` of skill-creator, or JSON Lines with the right skills of each query. A query that
//! cannot be parsed becomes a problem with its line number; the others are still used.

use std::collections::BTreeMap;
use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::metrics::GoldSkills;
use crate::Task;
use crate::limits::{LABEL_PROBLEMS_MAX, LABELS_MAX};

const TEXT_KEYS: [&str; 5] = ["query", "prompt", "input", "text", "task"];
const SKILL_KEYS: [&str; 2] = ["skill", "skill_name"];
const TRIGGER_KEYS: [&str; 3] = ["should_trigger", "trigger", "expected"];
/// Keys whose value may be a list of queries, each with the label that it gives to them.
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

/// The text of a label file, and its origin.
#[derive(Clone, Copy, Debug)]
pub struct LabelFile<'a> {
    /// The path, for messages and for the format: `.jsonl` and `.ndjson` files have one object per line.
    pub path: &'a Utf8Path,
    pub text: &'a str,
    /// The skill whose folder contains the file.
    pub skill: Option<&'a str>,
}

/// A line of a file.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct LabelPosition {
    /// The path of the file.
    #[schemars(with = "String")]
    pub file: Utf8PathBuf,
    /// The line number, from 1.
    pub line: usize,
}

impl fmt::Display for LabelPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A task with the skills that are right and wrong for it.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledQuery {
    pub task: Task,
    /// The skills that are right, with grades above 0.
    pub gold: GoldSkills,
    /// Skills that must not be picked.
    pub not: Vec<String>,
    pub place: LabelPosition,
}

impl LabelledQuery {
    /// Returns true if no skill at all should be picked.
    pub fn should_abstain(&self) -> bool {
        self.gold.is_empty() && self.not.is_empty()
    }

    /// Returns whether a skill is right, or `None` if the query only excludes other skills.
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

/// A part of a label file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelProblem {
    /// The file and line of the problem.
    pub place: LabelPosition,
    /// The description of the problem.
    pub message: String,
    /// The suggested fix.
    pub help: String,
}

impl fmt::Display for LabelProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// The contents of a label file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryLabels {
    /// The queries, in file order.
    pub queries: Vec<LabelledQuery>,
    pub problems: Vec<LabelProblem>,
    /// True if the file looks like a label file at all.
    pub is_labelled: bool,
}

/// Parses a label file. Parts that cannot be parsed become problems.
///
/// ```
/// use repertoire_select::eval::labels::{LabelFile, parse_labels};
///
/// let text = r#"[{"query": "fill in this form", "should_trigger": true}]"#;
/// let labels = parse_labels(&LabelFile { path: "evals.json".into(), text, skill: Some("pdf") });
/// assert!(labels.queries[0].gold.contains_key("pdf"));
/// ```
pub fn parse_labels(file: &LabelFile<'_>) -> QueryLabels {
    let text = file.text.trim_start_matches('\u{feff}');
    let mut reader = LabelReader::new(file.path, text);
    match file.path.extension() {
        Some("jsonl" | "ndjson") => reader.read_lines(file.skill),
        _ => reader.read_whole(file.skill),
    }
    if reader.skipped > 0 {
        let (skipped, line) = (reader.skipped, text.lines().count());
        let place = LabelPosition { file: file.path.to_owned(), line: line.max(1) };
        let message = format!("{skipped} more problems in this file");
        let help = "Mend those above first.".to_owned();
        reader.labels.problems.push(LabelProblem { place, message, help });
    }
    reader.labels
}

/// Splits off the queries that name an unknown skill, because they would measure the labels rather than the
/// selector. The skill names of the others are replaced with those that `resolve` returns.
pub fn resolve_names(
    queries: Vec<LabelledQuery>,
    resolve: impl Fn(&str) -> Option<String>,
) -> (Vec<LabelledQuery>, Vec<LabelProblem>) {
    let mut kept = Vec::with_capacity(queries.len());
    let mut problems = Vec::new();
    for mut query in queries {
        let name = |name: &String| resolve(name).ok_or_else(|| name.clone());
        let gold: Result<GoldSkills, String> =
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

/// The maximum nesting depth of query lists.
const NESTING_MAX: usize = 3;

/// The message and the help text for an element that is not a valid query.
type LabelError = (String, &'static str);

struct LabelReader<'a> {
    path: &'a Utf8Path,
    text: &'a str,
    /// The byte offsets of the newlines.
    line_ends: Vec<usize>,
    nesting: usize,
    skipped: usize,
    labels: QueryLabels,
}

impl<'a> LabelReader<'a> {
    fn new(path: &'a Utf8Path, text: &'a str) -> Self {
        let line_ends = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
        LabelReader {
            path,
            text,
            line_ends,
            nesting: 0,
            skipped: 0,
            labels: QueryLabels::default(),
        }
    }

    fn read_whole(&mut self, skill: Option<&str>) {
        let raw: &'a RawValue = match serde_json::from_str(self.text) {
            Ok(raw) => raw,
            Err(error) => {
                // Also accept JSON Lines in a file with another extension.
                if self.text.lines().next().is_some_and(is_object) {
                    return self.read_lines(skill);
                }
                self.labels.is_labelled = true;
                return self.report_line(error.line().max(1), invalid_json(&error));
            }
        };
        match raw.get().bytes().next() {
            Some(b'[') => {
                self.labels.is_labelled = true;
                self.read_list(raw, skill, None);
            }
            Some(b'{') => self.read_object(raw, skill, None),
            _ => self.report_line(1, ("there are no queries in it".to_owned(), NO_QUERIES)),
        }
    }

    fn read_lines(&mut self, skill: Option<&str>) {
        self.labels.is_labelled = true;
        let text = self.text;
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match serde_json::from_str::<&'a RawValue>(line) {
                Ok(raw) => self.read_element(raw, skill, None),
                Err(error) => self.report_line(at + 1, invalid_json(&error)),
            }
        }
    }

    fn read_list(&mut self, raw: &'a RawValue, skill: Option<&str>, trigger: Option<bool>) {
        match serde_json::from_str::<Vec<&'a RawValue>>(raw.get()) {
            Ok(elements) => {
                elements.into_iter().for_each(|element| self.read_element(element, skill, trigger));
            }
            Err(_) => self
                .report_element(raw, ("this should be a list of queries".to_owned(), NO_QUERIES)),
        }
    }

    fn read_element(&mut self, raw: &'a RawValue, skill: Option<&str>, trigger: Option<bool>) {
        match raw.get().bytes().next() {
            Some(b'{') => self.read_object(raw, skill, trigger),
            Some(b'"') => {
                let text = serde_json::from_str(raw.get()).unwrap_or_default();
                let map = Map::from_iter([("query".to_owned(), Value::String(text))]);
                self.read_query(raw, &map, skill, trigger);
            }
            _ => self.report_element(raw, ("this is not a query".to_owned(), NO_QUERIES)),
        }
    }

    /// Parses either a single query or an object that contains lists of queries.
    fn read_object(&mut self, raw: &'a RawValue, skill: Option<&str>, trigger: Option<bool>) {
        let fields = serde_json::from_str::<BTreeMap<String, &'a RawValue>>(raw.get());
        let map = serde_json::from_str::<Map<String, Value>>(raw.get());
        let (fields, map) = match (fields, map) {
            (Ok(fields), Ok(map)) => (fields, map),
            (Err(error), _) | (_, Err(error)) => {
                return self.report_element(raw, invalid_json(&error));
            }
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
            return self.report_line(1, ("there are no queries in it".to_owned(), NO_QUERIES));
        }
        // Beside lists, a `task` key is only a remark; within a list, a `tests` key belongs to the query.
        if lists.is_empty() || (is_query && !is_whole_file) {
            self.labels.is_labelled = true;
            return self.read_query(raw, &map, skill, trigger);
        }
        self.labels.is_labelled = true;
        if self.nesting == NESTING_MAX {
            return self
                .report_element(raw, ("lists lie too deep in each other".to_owned(), NO_QUERIES));
        }
        self.nesting += 1;
        for (list, trigger) in lists {
            self.read_list(list, skill, trigger);
        }
        self.nesting -= 1;
    }

    fn read_query(
        &mut self,
        raw: &RawValue,
        map: &Map<String, Value>,
        skill: Option<&str>,
        trigger: Option<bool>,
    ) {
        let place = self.position_of(raw);
        if self.labels.queries.len() >= LABELS_MAX {
            let message = format!("more than {LABELS_MAX} queries; the rest is not read");
            return self.report_line(place.line, (message, "Divide the file."));
        }
        match parse_query(map, skill, trigger, place) {
            Ok(query) => self.labels.queries.push(query),
            Err(wrong) => self.report_element(raw, wrong),
        }
    }

    /// Returns the line of a value. `raw` borrows from `self.text`, so its address gives the offset.
    fn position_of(&self, raw: &RawValue) -> LabelPosition {
        let offset = raw.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        let line = self.line_ends.partition_point(|end| *end < offset) + 1;
        LabelPosition { file: self.path.to_owned(), line }
    }

    fn report_element(&mut self, raw: &RawValue, wrong: LabelError) {
        let line = self.position_of(raw).line;
        self.report_line(line, wrong);
    }

    fn report_line(&mut self, line: usize, (message, help): LabelError) {
        if self.labels.problems.len() >= LABEL_PROBLEMS_MAX {
            self.skipped += 1;
            return;
        }
        let place = LabelPosition { file: self.path.to_owned(), line };
        self.labels.problems.push(LabelProblem { place, message, help: help.to_owned() });
    }
}

fn parse_query(
    map: &Map<String, Value>,
    skill: Option<&str>,
    trigger: Option<bool>,
    place: LabelPosition,
) -> Result<LabelledQuery, LabelError> {
    let text = TEXT_KEYS.iter().find_map(|key| map.get(*key)).and_then(Value::as_str);
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Err(("there is no text to select for".to_owned(), NO_TEXT));
    };
    let task = Task {
        hints: get_strings(map, "hints")?,
        paths: get_strings(map, "paths")?.into_iter().map(Utf8PathBuf::from).collect(),
        event: get_string(map, "event")?,
        agent: get_string(map, "agent")?,
        conversation: get_strings(map, "conversation")?,
        ..Task::new(text)
    };
    let (gold, not) = parse_gold_and_not(map, skill, trigger)?;
    if let Some(both) = not.iter().find(|name| gold.contains_key(*name)) {
        let message = format!("`{both}` is both right and wrong");
        return Err((message, "Take it out of `gold` or out of `not`."));
    }
    Ok(LabelledQuery { task, gold, not, place })
}

/// Returns the right skills and the excluded ones.
fn parse_gold_and_not(
    map: &Map<String, Value>,
    skill: Option<&str>,
    trigger: Option<bool>,
) -> Result<(GoldSkills, Vec<String>), LabelError> {
    let mut not = get_strings(map, "not")?;
    not.extend(get_string(map, "neg_of")?);
    if let Some(value) = map.get("gold").or_else(|| map.get("rel")) {
        return Ok((parse_gold(value)?, not));
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
    Ok((GoldSkills::new(), not))
}

fn parse_gold(value: &Value) -> Result<GoldSkills, LabelError> {
    match value {
        Value::String(name) => Ok([(name.clone(), 1.0)].into()),
        Value::Array(names) => names
            .iter()
            .map(|name| Ok((name.as_str().ok_or_else(invalid_gold)?.to_owned(), 1.0)))
            .collect(),
        Value::Object(grades) => {
            let graded: Result<Vec<(String, f64)>, LabelError> = grades
                .iter()
                .map(|(name, grade)| Ok((name.clone(), grade.as_f64().ok_or_else(invalid_gold)?)))
                .collect();
            Ok(graded?.into_iter().filter(|(_, grade)| *grade > 0.0).collect())
        }
        _ => Err(invalid_gold()),
    }
}

fn invalid_gold() -> LabelError {
    ("`gold` is not a list of skills".to_owned(), NO_LABEL)
}

fn get_strings(map: &Map<String, Value>, key: &str) -> Result<Vec<String>, LabelError> {
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

fn get_string(map: &Map<String, Value>, key: &str) -> Result<Option<String>, LabelError> {
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

fn invalid_json(error: &serde_json::Error) -> LabelError {
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
