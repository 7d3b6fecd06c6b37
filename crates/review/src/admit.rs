//! Turns an agent's JSON answer into findings.
//!
//! A finding that is malformed, lacks a failure scenario, or does not cite changed lines is rejected; the rejection is
//! recorded with its reason.

use std::collections::BTreeMap;

use crate::extract::Severity;
use camino::Utf8Path;
use serde_json::{Value, json};

use super::change::{Change, ChangedFile, LineRange};
use super::finding::{Finding, Fix, Phase};
use super::lineup::Agent;
use super::prompt::shown;
use super::record::{LeftOut, Why};
use super::surroundings::enclosing;
use crate::limits::{
    REVIEW_ANSWER_FINDINGS_MAX, REVIEW_FIX_LINES_MAX, REVIEW_GAPS_FINDINGS_MAX,
    REVIEW_TEXT_CHARS_MAX, REVIEW_TITLE_CHARS_MAX, REVIEW_ZONE_LINES,
};

/// The JSON Schema of an agent's answer. Written by hand because some backends accept only a small subset of JSON
/// Schema.
pub fn schema(agent: &Agent) -> Value {
    let details: serde_json::Map<String, Value> = agent
        .details
        .iter()
        .map(|detail| (detail.name.clone(), json!({ "type": "string", "description": detail.ask })))
        .collect();
    let names: Vec<&String> = details.keys().collect();
    let details = json!({
        "type": "object", "properties": details, "required": names, "additionalProperties": false,
    });
    let line = json!({ "type": "integer" });
    let finding = json!({
        "type": "object",
        "properties": {
            "title": string_property("What is wrong, in at most ten words"),
            "file": string_property("The path, as the prompt writes it"),
            "line_start": line,
            "line_end": line,
            "function": nullable_string_property("The function or type that the lines are in"),
            "category": string_property(&format!("Always `{}`", agent.category)),
            "severity": { "type": "string", "enum": ["Critical", "Major", "Minor", "Suggestion"] },
            "description": string_property("What is wrong, and why"),
            "failure_scenario": string_property("Which input or event leads to which harm, step by step"),
            "confidence": { "type": "number", "description": "From 0 to 1" },
            "fix_type": { "type": "string", "enum": ["diff", "prompt", "none"] },
            "fix": nullable_string_property(
                "A diff of at most 10 lines at one place, or what to tell an agent that mends it"
            ),
            "pattern": nullable_string_property("The id out of `auto_validate`, only if the cited lines show it"),
            "details": details,
        },
        "required": [
            "title", "file", "line_start", "line_end", "function", "category", "severity", "description",
            "failure_scenario", "confidence", "fix_type", "fix", "pattern", "details"
        ],
        "additionalProperties": false,
    });
    let test = json!({
        "type": "object",
        "properties": {
            "test": string_property("What to test"),
            "file": nullable_string_property("Where the test belongs"),
            "finding": { "type": "integer", "description": "The finding that it would have caught, counted from 1" },
        },
        "required": ["test", "file", "finding"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {
            "findings": { "type": "array", "items": finding },
            "tests": { "type": "array", "items": test },
        },
        "required": ["findings", "tests"],
        "additionalProperties": false,
    })
}

fn string_property(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn nullable_string_property(description: &str) -> Value {
    json!({ "type": ["string", "null"], "description": description })
}

/// The agent call whose answer is being read, and the earlier findings.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub agent: &'a Agent,
    pub phase: Phase,
    pub change: &'a Change,
    /// The folder in which agents read the files; absolute paths in an answer are resolved against it.
    pub root: &'a Utf8Path,
    /// Findings of earlier phases. Only the gaps phase rejects findings that are near one of them.
    pub before: &'a [Finding],
}

/// The findings of one answer, accepted and rejected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admitted {
    /// Accepted findings, with ids assigned from the next free number.
    pub findings: Vec<Finding>,
    pub left_out: Vec<LeftOut>,
    /// Recommended tests, each with the id of the finding that it would have caught.
    pub tests: Vec<(String, Test)>,
    /// The number of findings in the answer, including rejected ones.
    pub answered: u32,
}

/// A recommended test that would have caught a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// A description of the test.
    pub test: String,
    /// The file in which the test belongs, if the agent named one.
    pub file: Option<String>,
}

/// Reads an answer. `next` is the number for the id of the first accepted finding. Returns `None` if the answer has no
/// list of findings.
pub fn admit(answer: &Value, asked: Asked<'_>, next: usize) -> Option<Admitted> {
    let said = answer.get("findings")?.as_array()?;
    let mut out = Admitted { answered: said.len() as u32, ..Admitted::default() };
    // Maps the position of a finding in the answer (from 1) to its assigned id.
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    for (at, raw) in said.iter().enumerate() {
        let result = if at < REVIEW_ANSWER_FINDINGS_MAX {
            one(raw, asked, &out.findings)
        } else {
            Err((
                Why::TooMany,
                format!("an answer has at most {REVIEW_ANSWER_FINDINGS_MAX} findings"),
            ))
        };
        match result {
            Ok(mut finding) => {
                finding.id = format!("F{}", next + out.findings.len());
                names.insert(at + 1, finding.id.clone());
                out.findings.push(finding);
            }
            Err((why, reason)) => out.left_out.push(turned_away(raw, asked, why, reason)),
        }
    }
    let tests = answer.get("tests").and_then(Value::as_array).into_iter().flatten();
    for test in tests.take(REVIEW_ANSWER_FINDINGS_MAX) {
        let at = test.get("finding").and_then(Value::as_u64).unwrap_or_default() as usize;
        let words = words(test, "test", REVIEW_TEXT_CHARS_MAX);
        if let (Some(id), false) = (names.get(&at), words.is_empty()) {
            let file = Some(self::words(test, "file", 400)).filter(|file| !file.is_empty());
            out.tests.push((id.clone(), Test { test: words, file }));
        }
    }
    Some(out)
}

type Refusal = (Why, String);

fn one(raw: &Value, asked: Asked<'_>, own: &[Finding]) -> Result<Finding, Refusal> {
    let finding = shape(raw, asked)?;
    placed(&finding, asked.change)?;
    repeated(&finding, own)?;
    if asked.phase == Phase::Gaps {
        gap(&finding, asked, own)?;
    }
    Ok(finding)
}

/// Reads the fields of one finding, without checking its place in the change.
fn shape(raw: &Value, asked: Asked<'_>) -> Result<Finding, Refusal> {
    if !raw.is_object() {
        return Err(malformed("it is no object"));
    }
    let title = words(raw, "title", REVIEW_TITLE_CHARS_MAX);
    let description = words(raw, "description", REVIEW_TEXT_CHARS_MAX);
    if title.is_empty() || description.is_empty() {
        return Err(malformed("it has no title or no description"));
    }
    let severity = raw.get("severity").and_then(Value::as_str).and_then(Severity::from_word);
    let severity = severity
        .ok_or_else(|| malformed("its severity is none of Critical, Major, Minor, Suggestion"))?;
    let lines = lines(raw).ok_or_else(|| malformed("it has no lines"))?;
    let failure_scenario = words(raw, "failure_scenario", REVIEW_TEXT_CHARS_MAX);
    // Ten letters or digits exclude placeholders such as "n/a".
    if failure_scenario.chars().filter(|char| char.is_alphanumeric()).count() < 10 {
        return Err((Why::NoFailureScenario, "it does not say what goes wrong".to_owned()));
    }
    let confidence = raw.get("confidence").and_then(Value::as_f64).unwrap_or(0.5);
    let pattern = words(raw, "pattern", 100);
    let said = raw.get("file").and_then(Value::as_str).unwrap_or_default();
    let inside = meant(said, asked);
    let said = words(raw, "file", 1_000);
    let file = inside.map_or(Utf8Path::new(&said), |inside| &inside.path);
    // The function found in the source is more reliable than the one that the agent named.
    let known = inside.and_then(|inside| enclosing(&inside.text, lines.first));
    let said = Some(words(raw, "function", 200)).filter(|name| !name.is_empty());
    Ok(Finding {
        id: String::new(),
        agent: asked.agent.name.clone(),
        phase: asked.phase,
        title,
        file: file.to_owned(),
        lines,
        function: known.or(said),
        category: asked.agent.category.clone(),
        severity,
        description,
        failure_scenario,
        confidence: confidence.clamp(0.0, 1.0),
        fix: fix(raw),
        pattern: Some(pattern).filter(|pattern| !pattern.is_empty() && pattern != "null"),
        details: details(raw, asked.agent),
    })
}

fn malformed(what: &str) -> Refusal {
    (Why::Malformed, what.to_owned())
}

/// Finds the changed file that an agent means. Besides the exact path, accepts an absolute path, a `./`, `a/` or `b/`
/// prefix, and the path as the prompt displays it.
fn meant<'a>(said: &str, asked: Asked<'a>) -> Option<&'a ChangedFile> {
    let trimmed = said.trim();
    let root = asked.root.as_str();
    let below = trimmed.strip_prefix(root).map(|rest| rest.trim_start_matches('/'));
    let starts = ["./", "a/", "b/"];
    let bare = starts.into_iter().filter_map(|start| trimmed.strip_prefix(start));
    let mut ways = [said, trimmed].into_iter().chain(below).chain(bare);
    let exact = ways.find_map(|way| asked.change.file(Utf8Path::new(way)));
    exact.or_else(|| asked.change.files.iter().find(|file| shown(&file.path) == trimmed))
}

/// Checks that the cited lines exist and touch the change.
fn placed(finding: &Finding, change: &Change) -> Result<(), Refusal> {
    let path = &finding.file;
    let Some(file) = change.file(path) else {
        let skipped = change.skipped.iter().find(|skipped| skipped.path == *path);
        let why = match skipped {
            Some(skipped) => format!("`{path}` was not looked at: {}", skipped.reason),
            None => format!("`{path}` is not part of the change"),
        };
        return Err((Why::NotInTheChange, why));
    };
    let count = file.line_count();
    if finding.lines.last > count {
        return Err((
            Why::NoSuchLines,
            format!("`{path}` has {count} lines, and this is about {}", finding.lines),
        ));
    }
    if file.touches(finding.lines) {
        Ok(())
    } else {
        Err((Why::OutsideTheDiff, format!("lines {} of `{path}` have not changed", finding.lines)))
    }
}

fn repeated(finding: &Finding, own: &[Finding]) -> Result<(), Refusal> {
    let same = |other: &&Finding| {
        other.file == finding.file
            && other.lines == finding.lines
            && other.title.eq_ignore_ascii_case(&finding.title)
    };
    match own.iter().find(same) {
        Some(other) => Err((Why::Repeated, format!("{} says the same", other.id))),
        None => Ok(()),
    }
}

/// Applies the stricter rules of the gaps phase: a minimum severity, no overlap with earlier findings, and a maximum
/// count.
fn gap(finding: &Finding, asked: Asked<'_>, own: &[Finding]) -> Result<(), Refusal> {
    if finding.severity < Severity::Major {
        let reason = format!("{} is less than what is looked for in gaps", finding.severity);
        return Err((Why::TooMild, reason));
    }
    if let Some((other, why)) = zone(finding, asked.before) {
        return Err((Why::SkipZone, format!("{} {why}", other.id)));
    }
    if own.len() < REVIEW_GAPS_FINDINGS_MAX {
        Ok(())
    } else {
        Err((Why::TooMany, format!("an agent may add {REVIEW_GAPS_FINDINGS_MAX} findings in gaps")))
    }
}

/// Returns the first earlier finding that covers this one, and the reason: it is within [`REVIEW_ZONE_LINES`] lines, or
/// has the same category and function.
pub fn zone<'a>(finding: &Finding, before: &'a [Finding]) -> Option<(&'a Finding, &'static str)> {
    before.iter().filter(|other| other.file == finding.file).find_map(|other| {
        if other.lines.widened(REVIEW_ZONE_LINES).overlaps(finding.lines) {
            return Some((other, "is about these lines already"));
        }
        let same_function = other.function.is_some() && other.function == finding.function;
        (same_function && other.category == finding.category)
            .then_some((other, "is of the same kind and about the same function"))
    })
}

fn turned_away(raw: &Value, asked: Asked<'_>, why: Why, reason: String) -> LeftOut {
    LeftOut {
        title: words(raw, "title", REVIEW_TITLE_CHARS_MAX),
        file: words(raw, "file", 1_000),
        lines: lines(raw),
        severity: raw.get("severity").and_then(Value::as_str).and_then(Severity::from_word),
        agent: asked.agent.name.clone(),
        phase: asked.phase,
        fingerprint: None,
        rule: None,
        why,
        reason,
    }
}

/// Reads the cited lines. Agents sometimes write `line` for a single line, or swap the two ends.
fn lines(raw: &Value) -> Option<LineRange> {
    let first = line_number(raw, "line_start").or_else(|| line_number(raw, "line"))?;
    let last = line_number(raw, "line_end").unwrap_or(first);
    Some(LineRange { first: first.min(last), last: first.max(last) })
}

fn line_number(raw: &Value, key: &str) -> Option<u32> {
    raw.get(key)
        .and_then(Value::as_u64)
        .and_then(|line| u32::try_from(line).ok())
        .filter(|line| *line > 0)
}

/// Reads the suggested fix. A diff longer than [`REVIEW_FIX_LINES_MAX`] lines is kept as a prompt.
fn fix(raw: &Value) -> Option<Fix> {
    let text = words(raw, "fix", REVIEW_TEXT_CHARS_MAX);
    if text.is_empty() {
        return None;
    }
    let fix_type = raw.get("fix_type").and_then(Value::as_str);
    if fix_type == Some("diff") && text.lines().count() <= REVIEW_FIX_LINES_MAX {
        Some(Fix::Diff(text))
    } else if fix_type == Some("none") {
        None
    } else {
        Some(Fix::Prompt(text))
    }
}

fn details(raw: &Value, agent: &Agent) -> BTreeMap<String, String> {
    let said = raw.get("details").unwrap_or(&Value::Null);
    let one = |name: &String| (name.clone(), words(said, name, REVIEW_TEXT_CHARS_MAX));
    let all = agent.details.iter().map(|detail| &detail.name).map(one);
    all.filter(|(_, text)| !text.is_empty()).collect()
}

/// Reads a string field of an answer, truncated to `chars_max` characters. A truncated text ends with `…`.
pub(super) fn words(value: &Value, key: &str, chars_max: usize) -> String {
    let text = value.get(key).and_then(Value::as_str).unwrap_or_default().trim();
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{ChangedFile, FileStatus, Hunk, Line, LineKind, Tier};
    use crate::lineup::{Detail, ModelTier};

    /// A file of twenty lines, of which 5 to 8 came with the change.
    fn change() -> Change {
        let text: String = (1..=20)
            .map(|line| match line {
                1 => "fn load() {\n".to_owned(),
                10 => "fn save() {\n".to_owned(),
                line => format!("    line {line};\n"),
            })
            .collect();
        let line = |number: u32| Line {
            kind: if (5..=8).contains(&number) || number == 18 {
                LineKind::Added
            } else {
                LineKind::Context
            },
            old: None,
            new: Some(number),
            text: String::new(),
        };
        let file = ChangedFile {
            path: "src/a.rs".into(),
            old_path: None,
            status: FileStatus::Modified,
            hunks: vec![Hunk {
                old_start: 2,
                new_start: 2,
                section: String::new(),
                lines: (2..=20).map(line).collect(),
            }],
            text,
            language: None,
            tier: Tier::Full,
        };
        Change { files: vec![file], skipped: Vec::new() }
    }

    fn agent() -> Agent {
        Agent {
            name: "security-agent".to_owned(),
            category: "security".to_owned(),
            title: "Security".to_owned(),
            instructions: String::new(),
            thorough: None,
            gaps: None,
            quick: None,
            validator: ModelTier::Strong,
            receives: Vec::new(),
            false_positives: Vec::new(),
            details: vec![Detail { name: "impact".to_owned(), ask: "How bad".to_owned() }],
        }
    }

    fn said(file: &str, first: u32, last: u32) -> Value {
        json!({
            "title": "A query is built from input", "file": file, "line_start": first, "line_end": last,
            "function": null, "category": "security", "severity": "Major",
            "description": "The name goes into the query as it is.",
            "failure_scenario": "A name with a quote ends the query and starts another one.",
            "confidence": 0.9, "fix_type": "none", "fix": null, "pattern": null, "details": { "impact": "all data" },
        })
    }

    fn read(findings: Value, phase: Phase, before: &[Finding]) -> Admitted {
        let (agent, change) = (agent(), change());
        let asked =
            Asked { agent: &agent, phase, change: &change, root: Utf8Path::new("/repo"), before };
        admit(&json!({ "findings": findings, "tests": [] }), asked, 1).unwrap()
    }

    fn why(finding: Value, phase: Phase, before: &[Finding]) -> Vec<Why> {
        read(json!([finding]), phase, before).left_out.iter().map(|out| out.why).collect()
    }

    #[test]
    fn a_finding_needs_a_place_in_the_change() {
        let of = |file: &str, first, last| why(said(file, first, last), Phase::Thorough, &[]);
        assert_eq!(of("src/a.rs", 5, 6), []);
        assert_eq!(of("./src/a.rs", 4, 5), []);
        assert_eq!(of("/repo/src/a.rs", 4, 5), []);
        assert_eq!(of("b/src/a.rs", 4, 5), []);
        assert_eq!(of("src/b.rs", 5, 6), [Why::NotInTheChange]);
        assert_eq!(of("src/a.rs", 19, 40), [Why::NoSuchLines]);
        assert_eq!(of("src/a.rs", 11, 12), [Why::OutsideTheDiff]);
    }

    #[test]
    fn a_finding_needs_a_failure_scenario_and_a_shape() {
        let with = |key: &str, value: Value| {
            let mut raw = said("src/a.rs", 5, 5);
            raw[key] = value;
            why(raw, Phase::Thorough, &[])
        };
        assert_eq!(with("failure_scenario", json!("")), [Why::NoFailureScenario]);
        assert_eq!(with("failure_scenario", json!("n/a")), [Why::NoFailureScenario]);
        assert_eq!(with("severity", json!("Blocker")), [Why::Malformed]);
        assert_eq!(with("line_start", json!("five")), [Why::Malformed]);
        assert_eq!(with("title", json!(7)), [Why::Malformed]);
        assert_eq!(why(json!("text"), Phase::Thorough, &[]), [Why::Malformed]);
        let (agent, change) = (agent(), change());
        let asked = Asked {
            agent: &agent,
            phase: Phase::Thorough,
            change: &change,
            root: Utf8Path::new("/repo"),
            before: &[],
        };
        assert_eq!(admit(&json!({ "issues": [] }), asked, 1), None);
    }

    #[test]
    fn the_same_finding_twice_is_one() {
        let twice =
            read(json!([said("src/a.rs", 5, 5), said("src/a.rs", 5, 5)]), Phase::Thorough, &[]);
        assert_eq!((twice.findings.len(), twice.left_out[0].why), (1, Why::Repeated));
    }

    #[test]
    fn gaps_are_outside_the_zones_of_what_was_found() {
        let before = read(json!([said("src/a.rs", 5, 5)]), Phase::Thorough, &[]).findings;
        assert_eq!(before[0].function.as_deref(), Some("load"));
        let near = said("src/a.rs", 8, 8);
        assert_eq!(why(near, Phase::Gaps, &before), [Why::SkipZone]);
        let far = said("src/a.rs", 18, 18);
        assert_eq!(why(far.clone(), Phase::Gaps, &before), []);
        // Of the same kind in the same function, however far away.
        let elsewhere = Finding { function: Some("save".to_owned()), ..before[0].clone() };
        assert_eq!(
            why(far.clone(), Phase::Gaps, std::slice::from_ref(&elsewhere)),
            [Why::SkipZone]
        );
        let other_kind = Finding { category: "bugs".to_owned(), ..elsewhere };
        assert_eq!(why(far, Phase::Gaps, &[other_kind]), []);
    }

    #[test]
    fn gaps_are_bad_and_few() {
        let mut mild = said("src/a.rs", 18, 18);
        mild["severity"] = json!("Minor");
        assert_eq!(why(mild, Phase::Gaps, &[]), [Why::TooMild]);
        let many: Vec<Value> = (0..8)
            .map(|at| {
                let mut raw = said("src/a.rs", 18, 18);
                raw["title"] = json!(format!("Number {at}"));
                raw
            })
            .collect();
        let read = read(json!(many), Phase::Gaps, &[]);
        assert_eq!((read.findings.len(), read.left_out.len()), (5, 3));
        assert!(read.left_out.iter().all(|out| out.why == Why::TooMany));
    }

    #[test]
    fn a_long_diff_is_a_prompt() {
        let mut raw = said("src/a.rs", 5, 5);
        raw["fix_type"] = json!("diff");
        raw["fix"] = json!("-a\n+b");
        let fix = |raw: &Value| read(json!([raw]), Phase::Thorough, &[]).findings[0].fix.clone();
        assert_eq!(fix(&raw), Some(Fix::Diff("-a\n+b".to_owned())));
        raw["fix"] = json!("+x\n".repeat(11));
        assert!(matches!(fix(&raw), Some(Fix::Prompt(_))));
    }

    #[test]
    fn tests_go_with_findings_that_were_let_in() {
        let (agent, change) = (agent(), change());
        let asked = Asked {
            agent: &agent,
            phase: Phase::Quick,
            change: &change,
            root: Utf8Path::new("/repo"),
            before: &[],
        };
        let answer = json!({
            "findings": [said("src/b.rs", 5, 5), said("src/a.rs", 5, 5)],
            "tests": [
                { "test": "a name with a quote", "file": "tests/a.rs", "finding": 2 },
                { "test": "of nothing", "file": null, "finding": 1 },
            ],
        });
        let read = admit(&answer, asked, 4).unwrap();
        assert_eq!(read.findings[0].id, "F4");
        assert_eq!(read.tests.len(), 1);
        assert_eq!(read.tests[0].0, "F4");
    }

    #[test]
    fn an_answer_as_it_is_asked_for_fits_the_schema() {
        let schema = schema(&agent());
        let answer = json!({
            "findings": [said("src/a.rs", 5, 6)],
            "tests": [{ "test": "t", "file": null, "finding": 1 }],
        });
        assert!(jsonschema::is_valid(&schema, &answer));
        assert!(!jsonschema::is_valid(&schema, &json!({ "findings": [{}], "tests": [] })));
    }
}
