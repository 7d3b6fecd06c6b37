//! Renders a review as SARIF 2.1.0, for code scanning.
//!
//! Code scanning recognises an alert by its rule, path and fingerprint, so rules are patterns and categories, never
//! titles. Insights have no stable fingerprint, and are properties of the run instead of results.

use crate::extract::ReviewSeverity;
use repertoire_text::sarif::{COLUMN_KIND, relative_uri, wrap_run};
use serde_json::{Map, Value, json};

use super::fix::{self, FixEdit};
use super::limits::{NAME_CHARS_MAX, SARIF_RESULTS_MAX, TEXT_CHARS_MAX};
use super::phrases;
use crate::change::{LineRange, ReviewChange};
use crate::record::{
    LeftOutFinding, LeftOutReason, RelatedFinding, ReportedFinding, ReviewDepth, ReviewRecord,
};
use crate::rules::IGNORE_FILE;

mod line_hash;
mod rules;

use line_hash::line_hash;
use rules::SarifRules;

/// Renders the review as indented SARIF.
pub fn render_sarif(review: &ReviewRecord, change: &ReviewChange) -> String {
    let mut out = format!("{:#}", build_report(review, change));
    out.push('\n');
    out
}

/// The report as a JSON value.
pub fn build_report(review: &ReviewRecord, change: &ReviewChange) -> Value {
    let rules = SarifRules::from_review(review);
    let found = review.findings.iter().map(|finding| finding_result(&rules, finding, change));
    let others =
        suppressed_and_known(review).map(|left_out| left_out_result(review, &rules, left_out));
    let mut results: Vec<Value> = found.chain(others).collect();
    if review.left_out.iter().any(|left_out| left_out.why == LeftOutReason::Known) {
        // Either all results of a run have a baseline state, or none.
        for result in &mut results {
            let state = result.get("baselineState").cloned().unwrap_or_else(|| "new".into());
            result["baselineState"] = state;
        }
    }
    let too_many = results.len().saturating_sub(SARIF_RESULTS_MAX);
    results.truncate(SARIF_RESULTS_MAX);
    let run = json!({
        "automationDetails": { "id": automation_id(review) },
        "invocations": [run_invocation(review, too_many)],
        "originalUriBaseIds": {
            "%SRCROOT%": { "description": { "text": "The root of the repository." } },
        },
        "columnKind": COLUMN_KIND,
        "results": results,
        "properties": run_properties(review),
    });
    wrap_run(env!("CARGO_PKG_VERSION"), rules.to_value(), run)
}

/// The id of the run. Code scanning treats the part up to the last slash as the kind of analysis.
fn automation_id(review: &ReviewRecord) -> String {
    let lane = if review.depth == ReviewDepth::Patterns { "patterns" } else { "agents" };
    format!("repertoire/review/{}/{lane}/{}", phrases::subject_name(review.subject), review.id)
}

fn run_properties(review: &ReviewRecord) -> Value {
    json!({
        "depth": phrases::depth_name(review.depth),
        "scope": review.scope,
        "insights": review.insights,
        "testRecommendations": review.test_recommendations,
    })
}

fn run_invocation(review: &ReviewRecord, too_many: usize) -> Value {
    let mut notes = Vec::new();
    if too_many > 0 {
        notes.push(format!(
            "{} more than {} are left out here: code scanning keeps no more",
            phrases::format_count(too_many, "result"),
            phrases::format_number(SARIF_RESULTS_MAX as u64)
        ));
    }
    for skill in &review.unresolved_skills {
        let source = phrases::to_one_line(&skill.source, NAME_CHARS_MAX);
        notes.push(format!(
            "the skill `{source}` could not be resolved and was skipped: {}",
            skill.reason
        ));
    }
    notes.extend(phrases::all_warnings(review));
    let notes: Vec<Value> = notes
        .iter()
        .map(|note| json!({ "level": "warning", "message": { "text": clean_text(note) } }))
        .collect();
    let mut out = json!({
        "executionSuccessful": is_complete(review),
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
fn is_complete(review: &ReviewRecord) -> bool {
    review.failed_calls().next().is_none() && !review.skipped.iter().any(|skipped| skipped.missed)
}

fn finding_result(rules: &SarifRules, finding: &ReportedFinding, change: &ReviewChange) -> Value {
    let id = clean_text(&finding.rule_id());
    let mut out = json!({
        "ruleId": id,
        "ruleIndex": rules.index_of(&id),
        "level": severity_level(finding.severity),
        "message": { "text": finding_message(finding) },
        "locations": [physical_location(finding.file.as_str(), finding.lines, cited_snippet(finding))],
        "partialFingerprints": partial_fingerprints(finding, change),
    });
    if let Some(edit) = fix::locate_fix(finding, change) {
        out["fixes"] = json!([fix_object(finding, &edit)]);
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

fn is_security(finding: &ReportedFinding) -> bool {
    finding.categories.iter().any(|category| category == "security")
}

fn severity_level(severity: ReviewSeverity) -> &'static str {
    match severity {
        ReviewSeverity::Critical | ReviewSeverity::Major => "error",
        ReviewSeverity::Minor => "warning",
        ReviewSeverity::Suggestion => "note",
    }
}

fn finding_message(finding: &ReportedFinding) -> String {
    let mut parts = vec![finding.title.trim(), finding.description.trim()];
    parts.push(finding.failure_scenario.trim());
    let also: Vec<String> = finding.also.iter().map(describe_related).collect();
    parts.extend(also.iter().map(String::as_str));
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() {
        parts.push("A finding without words.");
    }
    clean_text(&parts.join("\n\n"))
}

/// A finding of another category about the same lines, as text: it has no result of its own.
pub(super) fn describe_related(also: &RelatedFinding) -> String {
    let RelatedFinding { title, category, severity, description } = also;
    format!("Also ({category}, {severity}): {title}. {description}")
}

/// A text that a model wrote: truncated, with invisible characters made visible, and without SARIF's link syntax.
fn clean_text(text: &str) -> String {
    phrases::clip_text(&phrases::visible(text).replace("](", "] ("), TEXT_CHARS_MAX)
}

fn physical_location(path: &str, lines: LineRange, snippet: Option<String>) -> Value {
    let mut region = json!({
        "startLine": lines.first.clamp(1, LINE_MAX),
        "endLine": lines.last.clamp(lines.first.clamp(1, LINE_MAX), LINE_MAX),
    });
    if let Some(snippet) = snippet {
        region["snippet"] = json!({ "text": snippet });
    }
    json!({ "physicalLocation": { "artifactLocation": artifact_location(path), "region": region } })
}

/// The largest line number: many SARIF consumers use signed 32-bit integers.
const LINE_MAX: u32 = i32::MAX as u32;

fn artifact_location(path: &str) -> Value {
    json!({ "uri": relative_uri(path), "uriBaseId": "%SRCROOT%" })
}

fn cited_snippet(finding: &ReportedFinding) -> Option<String> {
    let cited = finding.excerpt.iter().filter(|line| line.cited);
    let lines: Vec<&str> = cited.map(|line| line.text.as_str()).collect();
    (!lines.is_empty()).then(|| phrases::clip_text(&lines.join("\n"), TEXT_CHARS_MAX))
}

fn partial_fingerprints(finding: &ReportedFinding, change: &ReviewChange) -> Value {
    let mut out = Map::new();
    out.insert("repertoireFinding/v1".to_owned(), finding.fingerprint.as_str().into());
    let file = change.find_file(&finding.file);
    if let Some(hash) = file.and_then(|file| line_hash(&file.text, finding.lines.first)) {
        out.insert("primaryLocationLineHash".to_owned(), hash.into());
    }
    Value::Object(out)
}

fn fix_object(finding: &ReportedFinding, edit: &FixEdit) -> Value {
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
        "description": { "text": clean_text(&finding.title) },
        "artifactChanges": [{
            "artifactLocation": artifact_location(finding.file.as_str()),
            "replacements": [replacement],
        }],
    })
}

/// Suppressed and known findings. They are included because code scanning takes an absent result for a fixed one.
fn suppressed_and_known(review: &ReviewRecord) -> impl Iterator<Item = &LeftOutFinding> {
    let said = review.left_out.iter();
    let said = said.filter(|left_out| {
        matches!(left_out.why, LeftOutReason::Suppressed | LeftOutReason::Known)
    });
    said.filter(|left_out| left_out.fingerprint.is_some())
}

fn left_out_result(review: &ReviewRecord, rules: &SarifRules, left_out: &LeftOutFinding) -> Value {
    let id = rules::rule_id_of_left_out(review, left_out);
    let mut out = json!({
        "ruleId": id,
        "ruleIndex": rules.index_of(&id),
        "level": left_out.severity.map_or("note", severity_level),
        "message": { "text": clean_text(match left_out.title.trim() {
            "" => "A finding without words.",
            title => title,
        }) },
        "partialFingerprints": { "repertoireFinding/v1": left_out.fingerprint },
    });
    match left_out.why {
        LeftOutReason::Known => out["baselineState"] = "unchanged".into(),
        _ => {
            out["suppressions"] = json!([{
                "kind": if left_out.reason.starts_with(IGNORE_FILE) { "external" } else { "inSource" },
                "status": "accepted",
                "justification": clean_text(&left_out.reason),
            }]);
        }
    }
    // An agent wrote the path: use it as a location only if the file was reviewed.
    if review.files.iter().any(|file| file.path.as_str() == left_out.file) {
        let lines = left_out.lines.unwrap_or(LineRange::from_line(1));
        out["locations"] = json!([physical_location(&left_out.file, lines, None)]);
    }
    out
}
