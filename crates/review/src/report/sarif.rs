//! Renders a review as SARIF 2.1.0, for code scanning.
//!
//! Code scanning recognises an alert by its rule, path and fingerprint, so rules are patterns and categories, never
//! titles. Insights have no stable fingerprint, and are properties of the run instead of results.

use crate::extract::Severity;
use serde_json::{Map, Value, json};

use super::fix::{self, Edit};
use super::limits::{NAME_CHARS_MAX, SARIF_RESULTS_MAX, TEXT_CHARS_MAX};
use super::words;
use crate::change::{Change, LineRange};
use crate::record::{Also, Depth, LeftOut, Reported, Review, Why};
use crate::rules::IGNORE_FILE;

mod line_hash;
mod rules;

use line_hash::line_hash;
use rules::Rules;

/// Renders the review as indented SARIF.
pub fn render(review: &Review, change: &Change) -> String {
    let mut out = format!("{:#}", report(review, change));
    out.push('\n');
    out
}

/// The report as a JSON value.
pub fn report(review: &Review, change: &Change) -> Value {
    let rules = Rules::of(review);
    let found = review.findings.iter().map(|finding| result(&rules, finding, change));
    let others = told_of(review).map(|left_out| other(review, &rules, left_out));
    let mut results: Vec<Value> = found.chain(others).collect();
    if review.left_out.iter().any(|left_out| left_out.why == Why::Known) {
        // Either all results of a run have a baseline state, or none.
        for result in &mut results {
            let state = result.get("baselineState").cloned().unwrap_or_else(|| "new".into());
            result["baselineState"] = state;
        }
    }
    let too_many = results.len().saturating_sub(SARIF_RESULTS_MAX);
    results.truncate(SARIF_RESULTS_MAX);
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "rep",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.to_value(),
            }},
            "automationDetails": { "id": automation_id(review) },
            "invocations": [invocation(review, too_many)],
            "originalUriBaseIds": {
                "%SRCROOT%": { "description": { "text": "The root of the repository." } },
            },
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": properties(review),
        }],
    })
}

/// The id of the run. Code scanning treats the part up to the last slash as the kind of analysis.
fn automation_id(review: &Review) -> String {
    let lane = if review.depth == Depth::Patterns { "patterns" } else { "agents" };
    format!("repertoire/review/{}/{lane}/{}", words::subject(review.subject), review.id)
}

fn properties(review: &Review) -> Value {
    json!({
        "depth": words::depth(review.depth),
        "scope": review.scope,
        "insights": review.insights,
        "testRecommendations": review.test_recommendations,
    })
}

fn invocation(review: &Review, too_many: usize) -> Value {
    let mut notes = Vec::new();
    if too_many > 0 {
        notes.push(format!(
            "{} more than {} are left out here: code scanning keeps no more",
            words::count(too_many, "result"),
            words::thousands(SARIF_RESULTS_MAX as u64)
        ));
    }
    for skill in &review.unresolved_skills {
        let source = words::one_line(&skill.source, NAME_CHARS_MAX);
        notes.push(format!(
            "the skill `{source}` could not be resolved and was skipped: {}",
            skill.reason
        ));
    }
    notes.extend(words::warnings(review));
    let notes: Vec<Value> = notes
        .iter()
        .map(|note| json!({ "level": "warning", "message": { "text": text(note) } }))
        .collect();
    let mut out = json!({
        "executionSuccessful": is_success(review),
        "toolExecutionNotifications": notes,
    });
    let end = review.started_ms.checked_add(review.duration_ms);
    let times = [("startTimeUtc", Some(review.started_ms)), ("endTimeUtc", end)];
    for (key, ms) in times {
        let stamp = ms.and_then(|ms| i64::try_from(ms).ok());
        if let Some(at) = stamp.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok()) {
            out[key] = at.to_string().into();
        }
    }
    out
}

/// Returns true if the whole change was reviewed. Otherwise code scanning must not take a missing result for a fixed
/// one.
fn is_success(review: &Review) -> bool {
    review.failed_calls().next().is_none() && !review.skipped.iter().any(|skipped| skipped.missed)
}

fn result(rules: &Rules, finding: &Reported, change: &Change) -> Value {
    let id = text(&finding.rule());
    let mut out = json!({
        "ruleId": id,
        "ruleIndex": rules.index(&id),
        "level": level(finding.severity),
        "message": { "text": message(finding) },
        "locations": [location(finding.file.as_str(), finding.lines, snippet(finding))],
        "partialFingerprints": fingerprints(finding, change),
    });
    if let Some(edit) = fix::edit(finding, change) {
        out["fixes"] = json!([fix(finding, &edit)]);
    }
    let mut properties = json!({
        "severity": finding.severity,
        "id": finding.id,
        "categories": finding.categories,
        "agents": finding.agents,
        "confidence": finding.confidence,
        "validation": finding.validation,
    });
    if is_security(finding) {
        properties["security-severity"] = rules::security_severity(finding.severity).into();
    }
    out["properties"] = properties;
    out
}

fn is_security(finding: &Reported) -> bool {
    finding.categories.iter().any(|category| category == "security")
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::Major => "error",
        Severity::Minor => "warning",
        Severity::Suggestion => "note",
    }
}

fn message(finding: &Reported) -> String {
    let mut parts = vec![finding.title.trim(), finding.description.trim()];
    parts.push(finding.failure_scenario.trim());
    let also: Vec<String> = finding.also.iter().map(also).collect();
    parts.extend(also.iter().map(String::as_str));
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() {
        parts.push("A finding without words.");
    }
    text(&parts.join("\n\n"))
}

/// A finding of another category about the same lines, as text: it has no result of its own.
pub(super) fn also(also: &Also) -> String {
    let Also { title, category, severity, description } = also;
    format!("Also ({category}, {severity}): {title}. {description}")
}

/// A text that a model wrote: truncated, with invisible characters made visible, and without SARIF's link syntax.
fn text(text: &str) -> String {
    words::clip(&words::visible(text).replace("](", "] ("), TEXT_CHARS_MAX)
}

fn location(path: &str, lines: LineRange, snippet: Option<String>) -> Value {
    let mut region = json!({
        "startLine": lines.first.clamp(1, LINE_MAX),
        "endLine": lines.last.clamp(lines.first.clamp(1, LINE_MAX), LINE_MAX),
    });
    if let Some(snippet) = snippet {
        region["snippet"] = json!({ "text": snippet });
    }
    json!({ "physicalLocation": { "artifactLocation": artifact(path), "region": region } })
}

/// The largest line number: many SARIF consumers use signed 32-bit integers.
const LINE_MAX: u32 = i32::MAX as u32;

fn artifact(path: &str) -> Value {
    json!({ "uri": uri(path), "uriBaseId": "%SRCROOT%" })
}

/// A path as a relative URI reference: everything but unreserved characters and `/` is percent-encoded.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.trim_start_matches("./").trim_start_matches('/').bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn snippet(finding: &Reported) -> Option<String> {
    let cited = finding.excerpt.iter().filter(|line| line.cited);
    let lines: Vec<&str> = cited.map(|line| line.text.as_str()).collect();
    (!lines.is_empty()).then(|| words::clip(&lines.join("\n"), TEXT_CHARS_MAX))
}

fn fingerprints(finding: &Reported, change: &Change) -> Value {
    let mut out = Map::new();
    out.insert("repertoireFinding/v1".to_owned(), finding.fingerprint.as_str().into());
    let file = change.file(&finding.file);
    if let Some(hash) = file.and_then(|file| line_hash(&file.text, finding.lines.first)) {
        out.insert("primaryLocationLineHash".to_owned(), hash.into());
    }
    Value::Object(out)
}

fn fix(finding: &Reported, edit: &Edit) -> Value {
    // Whole lines. Deleted lines include their line break, unless they end the file.
    let mut region = json!({ "startLine": edit.lines.first, "endLine": edit.lines.last });
    if edit.replacement.is_empty() && edit.has_next {
        region = json!({
            "startLine": edit.lines.first,
            "startColumn": 1,
            "endLine": edit.lines.last.saturating_add(1),
            "endColumn": 1,
        });
    }
    let replacement = json!({
        "deletedRegion": region,
        "insertedContent": { "text": edit.replacement.join("\n") },
    });
    json!({
        "description": { "text": text(&finding.title) },
        "artifactChanges": [{
            "artifactLocation": artifact(finding.file.as_str()),
            "replacements": [replacement],
        }],
    })
}

/// Suppressed and known findings. They are included because code scanning takes an absent result for a fixed one.
fn told_of(review: &Review) -> impl Iterator<Item = &LeftOut> {
    let said = review.left_out.iter();
    let said = said.filter(|left_out| matches!(left_out.why, Why::Suppressed | Why::Known));
    said.filter(|left_out| left_out.fingerprint.is_some())
}

fn other(review: &Review, rules: &Rules, left_out: &LeftOut) -> Value {
    let id = rules::of_left_out(review, left_out);
    let mut out = json!({
        "ruleId": id,
        "ruleIndex": rules.index(&id),
        "level": left_out.severity.map_or("note", level),
        "message": { "text": text(match left_out.title.trim() {
            "" => "A finding without words.",
            title => title,
        }) },
        "partialFingerprints": { "repertoireFinding/v1": left_out.fingerprint },
    });
    match left_out.why {
        Why::Known => out["baselineState"] = "unchanged".into(),
        _ => {
            out["suppressions"] = json!([{
                "kind": if left_out.reason.starts_with(IGNORE_FILE) { "external" } else { "inSource" },
                "status": "accepted",
                "justification": text(&left_out.reason),
            }]);
        }
    }
    // An agent wrote the path: use it as a location only if the file was reviewed.
    if review.files.iter().any(|file| file.path.as_str() == left_out.file) {
        let lines = left_out.lines.unwrap_or(LineRange::line(1));
        out["locations"] = json!([location(&left_out.file, lines, None)]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_relative_reference() {
        assert_eq!(uri("./a b/ü:c.rs"), "a%20b/%C3%BC%3Ac.rs");
        assert_eq!(uri("/etc/passwd"), "etc/passwd");
    }
}
