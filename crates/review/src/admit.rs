//! Turns an agent's JSON answer into findings.
//!
//! A finding that is malformed, lacks a failure scenario, or does not cite changed lines is rejected; the rejection is
//! recorded with its reason.

use std::collections::BTreeMap;

use crate::extract::ReviewSeverity;
use camino::Utf8Path;
use serde_json::{Value, json};

use super::change::{LineRange, ReviewChange, ReviewedFile};
use super::enclosing::enclosing_definition;
use super::finding::{FindingFix, Phase, ReviewFinding};
use super::lineup::ReviewAgent;
use super::prompt::display_path;
use super::record::{LeftOutFinding, LeftOutReason};
use crate::limits::{
    REVIEW_ANSWER_FINDINGS_MAX, REVIEW_FIX_LINES_MAX, REVIEW_GAPS_FINDINGS_MAX,
    REVIEW_TEXT_CHARS_MAX, REVIEW_TITLE_CHARS_MAX, REVIEW_ZONE_LINES,
};

/// The JSON Schema of an agent's answer. Written by hand because some backends accept only a small subset of JSON
/// Schema.
pub fn findings_schema(agent: &ReviewAgent) -> Value {
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
    pub agent: &'a ReviewAgent,
    pub phase: Phase,
    pub change: &'a ReviewChange,
    /// The folder in which agents read the files; absolute paths in an answer are resolved against it.
    pub root: &'a Utf8Path,
    /// Findings of earlier phases. Only the gaps phase rejects findings that are near one of them.
    pub before: &'a [ReviewFinding],
}

/// The findings of one answer, accepted and rejected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdmittedFindings {
    /// Accepted findings, with ids assigned from the next free number.
    pub findings: Vec<ReviewFinding>,
    pub left_out: Vec<LeftOutFinding>,
    /// Recommended tests, each with the id of the finding that it would have caught.
    pub tests: Vec<(String, ProposedTest)>,
    /// The number of findings in the answer, including rejected ones.
    pub answered: u32,
}

/// A recommended test that would have caught a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedTest {
    /// A description of the test.
    pub test: String,
    /// The file in which the test belongs, if the agent named one.
    pub file: Option<String>,
}

/// Reads an answer. `next` is the number for the id of the first accepted finding. Returns `None` if the answer has no
/// list of findings.
pub fn admit_findings(answer: &Value, asked: Asked<'_>, next: usize) -> Option<AdmittedFindings> {
    let said = answer.get("findings")?.as_array()?;
    let mut out = AdmittedFindings { answered: said.len() as u32, ..AdmittedFindings::default() };
    // Maps the position of a finding in the answer (from 1) to its assigned id.
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    for (at, raw) in said.iter().enumerate() {
        let result = if at < REVIEW_ANSWER_FINDINGS_MAX {
            admit_finding(raw, asked, &out.findings)
        } else {
            Err((
                LeftOutReason::TooMany,
                format!("an answer has at most {REVIEW_ANSWER_FINDINGS_MAX} findings"),
            ))
        };
        match result {
            Ok(mut finding) => {
                finding.id = format!("F{}", next + out.findings.len());
                names.insert(at + 1, finding.id.clone());
                out.findings.push(finding);
            }
            Err((why, reason)) => out.left_out.push(reject_finding(raw, asked, why, reason)),
        }
    }
    let tests = answer.get("tests").and_then(Value::as_array).into_iter().flatten();
    for test in tests.take(REVIEW_ANSWER_FINDINGS_MAX) {
        let at = test.get("finding").and_then(Value::as_u64).unwrap_or_default() as usize;
        let words = read_text_field(test, "test", REVIEW_TEXT_CHARS_MAX);
        if let (Some(id), false) = (names.get(&at), words.is_empty()) {
            let file =
                Some(self::read_text_field(test, "file", 400)).filter(|file| !file.is_empty());
            out.tests.push((id.clone(), ProposedTest { test: words, file }));
        }
    }
    Some(out)
}

type FindingRejection = (LeftOutReason, String);

fn admit_finding(
    raw: &Value,
    asked: Asked<'_>,
    own: &[ReviewFinding],
) -> Result<ReviewFinding, FindingRejection> {
    let finding = parse_finding(raw, asked)?;
    check_place(&finding, asked.change)?;
    check_repeated(&finding, own)?;
    if asked.phase == Phase::Gaps {
        check_gap_rules(&finding, asked, own)?;
    }
    Ok(finding)
}

/// Reads the fields of one finding, without checking its place in the change.
fn parse_finding(raw: &Value, asked: Asked<'_>) -> Result<ReviewFinding, FindingRejection> {
    if !raw.is_object() {
        return Err(reject_malformed("it is no object"));
    }
    let title = read_text_field(raw, "title", REVIEW_TITLE_CHARS_MAX);
    let description = read_text_field(raw, "description", REVIEW_TEXT_CHARS_MAX);
    if title.is_empty() || description.is_empty() {
        return Err(reject_malformed("it has no title or no description"));
    }
    let severity = raw.get("severity").and_then(Value::as_str).and_then(ReviewSeverity::from_word);
    let severity = severity.ok_or_else(|| {
        reject_malformed("its severity is none of Critical, Major, Minor, Suggestion")
    })?;
    let lines = parse_lines(raw).ok_or_else(|| reject_malformed("it has no lines"))?;
    let failure_scenario = read_text_field(raw, "failure_scenario", REVIEW_TEXT_CHARS_MAX);
    // Ten letters or digits exclude placeholders such as "n/a".
    if failure_scenario.chars().filter(|char| char.is_alphanumeric()).count() < 10 {
        return Err((
            LeftOutReason::NoFailureScenario,
            "it does not say what goes wrong".to_owned(),
        ));
    }
    let confidence = raw.get("confidence").and_then(Value::as_f64).unwrap_or(0.5);
    let pattern = read_text_field(raw, "pattern", 100);
    let said = raw.get("file").and_then(Value::as_str).unwrap_or_default();
    let inside = find_changed_file(said, asked);
    let said = read_text_field(raw, "file", 1_000);
    let file = inside.map_or(Utf8Path::new(&said), |inside| &inside.path);
    // The function found in the source is more reliable than the one that the agent named.
    let known = inside.and_then(|inside| enclosing_definition(&inside.text, lines.first));
    let said = Some(read_text_field(raw, "function", 200)).filter(|name| !name.is_empty());
    Ok(ReviewFinding {
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
        fix: parse_fix(raw),
        pattern: Some(pattern).filter(|pattern| !pattern.is_empty() && pattern != "null"),
        details: parse_details(raw, asked.agent),
    })
}

fn reject_malformed(what: &str) -> FindingRejection {
    (LeftOutReason::Malformed, what.to_owned())
}

/// Finds the changed file that an agent means. Besides the exact path, accepts an absolute path, a `./`, `a/` or `b/`
/// prefix, and the path as the prompt displays it.
fn find_changed_file<'a>(said: &str, asked: Asked<'a>) -> Option<&'a ReviewedFile> {
    let trimmed = said.trim();
    let root = asked.root.as_str();
    let below = trimmed.strip_prefix(root).map(|rest| rest.trim_start_matches('/'));
    let starts = ["./", "a/", "b/"];
    let bare = starts.into_iter().filter_map(|start| trimmed.strip_prefix(start));
    let mut ways = [said, trimmed].into_iter().chain(below).chain(bare);
    let exact = ways.find_map(|way| asked.change.find_file(Utf8Path::new(way)));
    exact.or_else(|| asked.change.files.iter().find(|file| display_path(&file.path) == trimmed))
}

/// Checks that the cited lines exist and touch the change.
fn check_place(finding: &ReviewFinding, change: &ReviewChange) -> Result<(), FindingRejection> {
    let path = &finding.file;
    let Some(file) = change.find_file(path) else {
        let skipped = change.skipped.iter().find(|skipped| skipped.path == *path);
        let why = match skipped {
            Some(skipped) => format!("`{path}` was not looked at: {}", skipped.reason),
            None => format!("`{path}` is not part of the change"),
        };
        return Err((LeftOutReason::NotInTheChange, why));
    };
    let count = file.line_count();
    if finding.lines.last > count {
        return Err((
            LeftOutReason::NoSuchLines,
            format!("`{path}` has {count} lines, and this is about {}", finding.lines),
        ));
    }
    if file.touches_range(finding.lines) {
        Ok(())
    } else {
        Err((
            LeftOutReason::OutsideTheDiff,
            format!("lines {} of `{path}` have not changed", finding.lines),
        ))
    }
}

fn check_repeated(finding: &ReviewFinding, own: &[ReviewFinding]) -> Result<(), FindingRejection> {
    let same = |other: &&ReviewFinding| {
        other.file == finding.file
            && other.lines == finding.lines
            && other.title.eq_ignore_ascii_case(&finding.title)
    };
    match own.iter().find(same) {
        Some(other) => Err((LeftOutReason::Repeated, format!("{} says the same", other.id))),
        None => Ok(()),
    }
}

/// Applies the stricter rules of the gaps phase: a minimum severity, no overlap with earlier findings, and a maximum
/// count.
fn check_gap_rules(
    finding: &ReviewFinding,
    asked: Asked<'_>,
    own: &[ReviewFinding],
) -> Result<(), FindingRejection> {
    if finding.severity < ReviewSeverity::Major {
        let reason = format!("{} is less than what is looked for in gaps", finding.severity);
        return Err((LeftOutReason::TooMild, reason));
    }
    if let Some((other, why)) = find_covering_finding(finding, asked.before) {
        return Err((LeftOutReason::SkipZone, format!("{} {why}", other.id)));
    }
    if own.len() < REVIEW_GAPS_FINDINGS_MAX {
        Ok(())
    } else {
        Err((
            LeftOutReason::TooMany,
            format!("an agent may add {REVIEW_GAPS_FINDINGS_MAX} findings in gaps"),
        ))
    }
}

/// Returns the first earlier finding that covers this one, and the reason: it is within [`REVIEW_ZONE_LINES`] lines, or
/// has the same category and function.
pub fn find_covering_finding<'a>(
    finding: &ReviewFinding,
    before: &'a [ReviewFinding],
) -> Option<(&'a ReviewFinding, &'static str)> {
    before.iter().filter(|other| other.file == finding.file).find_map(|other| {
        if other.lines.widened_by(REVIEW_ZONE_LINES).overlaps(finding.lines) {
            return Some((other, "is about these lines already"));
        }
        let same_function = other.function.is_some() && other.function == finding.function;
        (same_function && other.category == finding.category)
            .then_some((other, "is of the same kind and about the same function"))
    })
}

fn reject_finding(
    raw: &Value,
    asked: Asked<'_>,
    why: LeftOutReason,
    reason: String,
) -> LeftOutFinding {
    LeftOutFinding {
        title: read_text_field(raw, "title", REVIEW_TITLE_CHARS_MAX),
        file: read_text_field(raw, "file", 1_000),
        lines: parse_lines(raw),
        severity: raw.get("severity").and_then(Value::as_str).and_then(ReviewSeverity::from_word),
        agent: asked.agent.name.clone(),
        phase: asked.phase,
        fingerprint: None,
        rule: None,
        why,
        reason,
    }
}

/// Reads the cited lines. Agents sometimes write `line` for a single line, or swap the two ends.
fn parse_lines(raw: &Value) -> Option<LineRange> {
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
fn parse_fix(raw: &Value) -> Option<FindingFix> {
    let text = read_text_field(raw, "fix", REVIEW_TEXT_CHARS_MAX);
    if text.is_empty() {
        return None;
    }
    let fix_type = raw.get("fix_type").and_then(Value::as_str);
    if fix_type == Some("diff") && text.lines().count() <= REVIEW_FIX_LINES_MAX {
        Some(FindingFix::Diff(text))
    } else if fix_type == Some("none") {
        None
    } else {
        Some(FindingFix::Prompt(text))
    }
}

fn parse_details(raw: &Value, agent: &ReviewAgent) -> BTreeMap<String, String> {
    let said = raw.get("details").unwrap_or(&Value::Null);
    let one = |name: &String| (name.clone(), read_text_field(said, name, REVIEW_TEXT_CHARS_MAX));
    let all = agent.details.iter().map(|detail| &detail.name).map(one);
    all.filter(|(_, text)| !text.is_empty()).collect()
}

/// Reads a string field of an answer, truncated to `chars_max` characters. A truncated text ends with `…`.
pub(super) fn read_text_field(value: &Value, key: &str, chars_max: usize) -> String {
    let text = value.get(key).and_then(Value::as_str).unwrap_or_default().trim();
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{DiffHunk, FilePromptTier, FileStatus, HunkLine, LineKind, ReviewedFile};
    use crate::lineup::{FindingDetail, ModelTier};

    /// A file of twenty lines, of which 5 to 8 came with the change.
    fn change() -> ReviewChange {
        let text: String = (1..=20)
            .map(|line| match line {
                1 => "fn load() {\n".to_owned(),
                10 => "fn save() {\n".to_owned(),
                line => format!("    line {line};\n"),
            })
            .collect();
        let line = |number: u32| HunkLine {
            kind: if (5..=8).contains(&number) || number == 18 {
                LineKind::Added
            } else {
                LineKind::Context
            },
            old: None,
            new: Some(number),
            text: String::new(),
        };
        let file = ReviewedFile {
            path: "src/a.rs".into(),
            old_path: None,
            status: FileStatus::Modified,
            hunks: vec![DiffHunk {
                old_start: 2,
                new_start: 2,
                section: String::new(),
                lines: (2..=20).map(line).collect(),
            }],
            text,
            language: None,
            tier: FilePromptTier::Full,
        };
        ReviewChange { files: vec![file], skipped: Vec::new() }
    }

    fn agent() -> ReviewAgent {
        ReviewAgent {
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
            details: vec![FindingDetail { name: "impact".to_owned(), ask: "How bad".to_owned() }],
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

    fn read(findings: Value, phase: Phase, before: &[ReviewFinding]) -> AdmittedFindings {
        let (agent, change) = (agent(), change());
        let asked =
            Asked { agent: &agent, phase, change: &change, root: Utf8Path::new("/repo"), before };
        admit_findings(&json!({ "findings": findings, "tests": [] }), asked, 1).unwrap()
    }

    fn why(finding: Value, phase: Phase, before: &[ReviewFinding]) -> Vec<LeftOutReason> {
        read(json!([finding]), phase, before).left_out.iter().map(|out| out.why).collect()
    }

    #[test]
    fn a_finding_needs_a_place_in_the_change() {
        let of = |file: &str, first, last| why(said(file, first, last), Phase::Thorough, &[]);
        assert_eq!(of("src/a.rs", 5, 6), []);
        assert_eq!(of("./src/a.rs", 4, 5), []);
        assert_eq!(of("/repo/src/a.rs", 4, 5), []);
        assert_eq!(of("b/src/a.rs", 4, 5), []);
        assert_eq!(of("src/b.rs", 5, 6), [LeftOutReason::NotInTheChange]);
        assert_eq!(of("src/a.rs", 19, 40), [LeftOutReason::NoSuchLines]);
        assert_eq!(of("src/a.rs", 11, 12), [LeftOutReason::OutsideTheDiff]);
    }

    #[test]
    fn a_finding_needs_a_failure_scenario_and_a_shape() {
        let with = |key: &str, value: Value| {
            let mut raw = said("src/a.rs", 5, 5);
            raw[key] = value;
            why(raw, Phase::Thorough, &[])
        };
        assert_eq!(with("failure_scenario", json!("")), [LeftOutReason::NoFailureScenario]);
        assert_eq!(with("failure_scenario", json!("n/a")), [LeftOutReason::NoFailureScenario]);
        assert_eq!(with("severity", json!("Blocker")), [LeftOutReason::Malformed]);
        assert_eq!(with("line_start", json!("five")), [LeftOutReason::Malformed]);
        assert_eq!(with("title", json!(7)), [LeftOutReason::Malformed]);
        assert_eq!(why(json!("text"), Phase::Thorough, &[]), [LeftOutReason::Malformed]);
        let (agent, change) = (agent(), change());
        let asked = Asked {
            agent: &agent,
            phase: Phase::Thorough,
            change: &change,
            root: Utf8Path::new("/repo"),
            before: &[],
        };
        assert_eq!(admit_findings(&json!({ "issues": [] }), asked, 1), None);
    }

    #[test]
    fn the_same_finding_twice_is_one() {
        let twice =
            read(json!([said("src/a.rs", 5, 5), said("src/a.rs", 5, 5)]), Phase::Thorough, &[]);
        assert_eq!((twice.findings.len(), twice.left_out[0].why), (1, LeftOutReason::Repeated));
    }

    #[test]
    fn gaps_are_outside_the_zones_of_what_was_found() {
        let before = read(json!([said("src/a.rs", 5, 5)]), Phase::Thorough, &[]).findings;
        assert_eq!(before[0].function.as_deref(), Some("load"));
        let near = said("src/a.rs", 8, 8);
        assert_eq!(why(near, Phase::Gaps, &before), [LeftOutReason::SkipZone]);
        let far = said("src/a.rs", 18, 18);
        assert_eq!(why(far.clone(), Phase::Gaps, &before), []);
        // Of the same kind in the same function, however far away.
        let elsewhere = ReviewFinding { function: Some("save".to_owned()), ..before[0].clone() };
        assert_eq!(
            why(far.clone(), Phase::Gaps, std::slice::from_ref(&elsewhere)),
            [LeftOutReason::SkipZone]
        );
        let other_kind = ReviewFinding { category: "bugs".to_owned(), ..elsewhere };
        assert_eq!(why(far, Phase::Gaps, &[other_kind]), []);
    }

    #[test]
    fn gaps_are_bad_and_few() {
        let mut mild = said("src/a.rs", 18, 18);
        mild["severity"] = json!("Minor");
        assert_eq!(why(mild, Phase::Gaps, &[]), [LeftOutReason::TooMild]);
        let many: Vec<Value> = (0..8)
            .map(|at| {
                let mut raw = said("src/a.rs", 18, 18);
                raw["title"] = json!(format!("Number {at}"));
                raw
            })
            .collect();
        let read = read(json!(many), Phase::Gaps, &[]);
        assert_eq!((read.findings.len(), read.left_out.len()), (5, 3));
        assert!(read.left_out.iter().all(|out| out.why == LeftOutReason::TooMany));
    }

    #[test]
    fn a_long_diff_is_a_prompt() {
        let mut raw = said("src/a.rs", 5, 5);
        raw["fix_type"] = json!("diff");
        raw["fix"] = json!("-a\n+b");
        let fix = |raw: &Value| read(json!([raw]), Phase::Thorough, &[]).findings[0].fix.clone();
        assert_eq!(fix(&raw), Some(FindingFix::Diff("-a\n+b".to_owned())));
        raw["fix"] = json!("+x\n".repeat(11));
        assert!(matches!(fix(&raw), Some(FindingFix::Prompt(_))));
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
        let read = admit_findings(&answer, asked, 4).unwrap();
        assert_eq!(read.findings[0].id, "F4");
        assert_eq!(read.tests.len(), 1);
        assert_eq!(read.tests[0].0, "F4");
    }

    #[test]
    fn an_answer_as_it_is_asked_for_fits_the_schema() {
        let schema = findings_schema(&agent());
        let answer = json!({
            "findings": [said("src/a.rs", 5, 6)],
            "tests": [{ "test": "t", "file": null, "finding": 1 }],
        });
        assert!(jsonschema::is_valid(&schema, &answer));
        assert!(!jsonschema::is_valid(&schema, &json!({ "findings": [{}], "tests": [] })));
    }
}
