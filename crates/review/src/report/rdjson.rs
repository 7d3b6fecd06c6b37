//! Renders a review in reviewdog's diagnostic format.

use crate::extract::Severity;
use serde_json::{Value, json};

use super::fix::{self, Edit};
use super::limits::{NAME_CHARS_MAX, TEXT_CHARS_MAX};
use super::words;
use crate::change::{Change, LineRange};
use crate::finding::Fix;
use crate::record::{Insight, Reported, Review};

/// Renders the review as indented `rdjson`.
pub fn render(review: &Review, change: &Change) -> String {
    let mut out = format!("{:#}", report(review, change));
    out.push('\n');
    out
}

/// The report as a JSON value.
pub fn report(review: &Review, change: &Change) -> Value {
    let findings = review.findings.iter().map(|finding| diagnostic(finding, change));
    let insights = review.insights.iter().map(insight);
    let diagnostics: Vec<Value> = findings.chain(insights).collect();
    let mut out = json!({ "source": { "name": "rep review" } });
    if let Some(worst) = review.worst() {
        out["severity"] = level(worst).into();
    }
    out["diagnostics"] = diagnostics.into();
    out
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::Major => "ERROR",
        Severity::Minor => "WARNING",
        Severity::Suggestion => "INFO",
    }
}

fn diagnostic(finding: &Reported, change: &Change) -> Value {
    let mut out = json!({
        "message": message(finding),
        "location": { "path": finding.file, "range": range(finding.lines) },
        "severity": level(finding.severity),
        "code": { "value": words::visible(&finding.rule()) },
    });
    if let Some(edit) = fix::edit(finding, change) {
        out["suggestions"] = json!([suggestion(&edit)]);
    }
    out["original_output"] = words::visible(&headline(finding)).into();
    out
}

fn insight(insight: &Insight) -> Value {
    let title = words::one_line(&insight.title, NAME_CHARS_MAX);
    let text = format!("{}: {title}\n\n{}", insight.severity, insight.insight.trim());
    json!({
        "message": words::clip(&words::visible(&text), TEXT_CHARS_MAX),
        "location": { "path": insight.file, "range": range(LineRange::line(insight.line)) },
        "severity": level(insight.severity),
        "code": { "value": words::visible(&format!("insight/{}", insight.categories.join("+"))) },
    })
}

/// A range of whole lines. Without columns, rdjson includes both end lines.
fn range(lines: LineRange) -> Value {
    json!({ "start": { "line": lines.first.max(1) }, "end": { "line": lines.last.max(1) } })
}

/// A replacement of whole lines. To delete lines, the range extends to the start of the next line.
fn suggestion(edit: &Edit) -> Value {
    if edit.replacement.is_empty() {
        json!({
            "range": {
                "start": { "line": edit.lines.first, "column": 1 },
                "end": { "line": edit.lines.last.saturating_add(1), "column": 1 },
            },
            "text": "",
        })
    } else {
        json!({ "range": range(edit.lines), "text": edit.replacement.join("\n") })
    }
}

fn headline(finding: &Reported) -> String {
    let title = words::one_line(&finding.title, NAME_CHARS_MAX);
    format!("{}:{}: {}: {title}", finding.file, finding.lines, finding.severity)
}

fn message(finding: &Reported) -> String {
    let title = words::one_line(&finding.title, NAME_CHARS_MAX);
    let badge = finding.badge().map(|badge| format!(" [{badge}]")).unwrap_or_default();
    let mut parts = vec![
        format!("{}: {title}{badge}", finding.severity),
        finding.description.trim().to_owned(),
    ];
    if !finding.failure_scenario.trim().is_empty() {
        parts.push(format!("What goes wrong: {}", finding.failure_scenario.trim()));
    }
    parts.extend(finding.also.iter().map(super::sarif::also));
    if let Some(Fix::Prompt(prompt)) = &finding.fix {
        parts.push(format!("Fix: {prompt}"));
    }
    parts.retain(|part| !part.is_empty());
    words::clip(&words::visible(&parts.join("\n\n")), TEXT_CHARS_MAX)
}
