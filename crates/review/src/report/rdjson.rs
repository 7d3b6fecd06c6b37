//! Renders a review in reviewdog's diagnostic format.

use crate::extract::ReviewSeverity;
use serde_json::{Value, json};

use super::fix::{self, FixEdit};
use super::limits::{NAME_CHARS_MAX, TEXT_CHARS_MAX};
use super::phrases;
use crate::change::{LineRange, ReviewChange};
use crate::finding::FindingFix;
use crate::record::{ReportedFinding, ReviewInsight, ReviewRecord};

/// Renders the review as indented `rdjson`.
pub fn render_rdjson(review: &ReviewRecord, change: &ReviewChange) -> String {
    let mut out = format!("{:#}", build_report(review, change));
    out.push('\n');
    out
}

/// The report as a JSON value.
pub fn build_report(review: &ReviewRecord, change: &ReviewChange) -> Value {
    let findings = review.findings.iter().map(|finding| finding_diagnostic(finding, change));
    let insights = review.insights.iter().map(insight_diagnostic);
    let diagnostics: Vec<Value> = findings.chain(insights).collect();
    let mut out = json!({ "source": { "name": "rep review" } });
    if let Some(worst) = review.worst_severity() {
        out["severity"] = severity_level(worst).into();
    }
    out["diagnostics"] = diagnostics.into();
    out
}

fn severity_level(severity: ReviewSeverity) -> &'static str {
    match severity {
        ReviewSeverity::Critical | ReviewSeverity::Major => "ERROR",
        ReviewSeverity::Minor => "WARNING",
        ReviewSeverity::Suggestion => "INFO",
    }
}

fn finding_diagnostic(finding: &ReportedFinding, change: &ReviewChange) -> Value {
    let mut out = json!({
        "message": finding_message(finding),
        "location": { "path": finding.file, "range": line_range(finding.lines) },
        "severity": severity_level(finding.severity),
        "code": { "value": phrases::visible(&finding.rule_id()) },
    });
    if let Some(edit) = fix::locate_fix(finding, change) {
        out["suggestions"] = json!([edit_suggestion(&edit)]);
    }
    out["original_output"] = phrases::visible(&finding_headline(finding)).into();
    out
}

fn insight_diagnostic(insight: &ReviewInsight) -> Value {
    let title = phrases::to_one_line(&insight.title, NAME_CHARS_MAX);
    let text = format!("{}: {title}\n\n{}", insight.severity, insight.insight.trim());
    json!({
        "message": phrases::clip_text(&phrases::visible(&text), TEXT_CHARS_MAX),
        "location": { "path": insight.file, "range": line_range(LineRange::from_line(insight.line)) },
        "severity": severity_level(insight.severity),
        "code": { "value": phrases::visible(&format!("insight/{}", insight.categories.join("+"))) },
    })
}

/// A range of whole lines. Without columns, rdjson includes both end lines.
fn line_range(lines: LineRange) -> Value {
    json!({ "start": { "line": lines.first.max(1) }, "end": { "line": lines.last.max(1) } })
}

/// A replacement of whole lines. To delete lines, the range extends to the start of the next line.
fn edit_suggestion(edit: &FixEdit) -> Value {
    if edit.replacement.is_empty() {
        json!({
            "range": {
                "start": { "line": edit.lines.first, "column": 1 },
                "end": { "line": edit.lines.last.saturating_add(1), "column": 1 },
            },
            "text": "",
        })
    } else {
        json!({ "range": line_range(edit.lines), "text": edit.replacement.join("\n") })
    }
}

fn finding_headline(finding: &ReportedFinding) -> String {
    let title = phrases::to_one_line(&finding.title, NAME_CHARS_MAX);
    format!("{}:{}: {}: {title}", finding.file, finding.lines, finding.severity)
}

fn finding_message(finding: &ReportedFinding) -> String {
    let title = phrases::to_one_line(&finding.title, NAME_CHARS_MAX);
    let badge = finding.agents_badge().map(|badge| format!(" [{badge}]")).unwrap_or_default();
    let mut parts = vec![
        format!("{}: {title}{badge}", finding.severity),
        finding.description.trim().to_owned(),
    ];
    if !finding.failure_scenario.trim().is_empty() {
        parts.push(format!("What goes wrong: {}", finding.failure_scenario.trim()));
    }
    parts.extend(finding.also.iter().map(super::sarif::describe_related));
    if let Some(FindingFix::Prompt(prompt)) = &finding.fix {
        parts.push(format!("Fix: {prompt}"));
    }
    parts.retain(|part| !part.is_empty());
    phrases::clip_text(&phrases::visible(&parts.join("\n\n")), TEXT_CHARS_MAX)
}
