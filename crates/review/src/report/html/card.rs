//! The card of a finding.

use super::{esc, escape_name, prose};
use crate::extract::ReviewSeverity;
use crate::finding::FindingFix;
use crate::record::{FindingValidation, ReportedFinding, ReviewRecord};
use crate::report::limits::{FIX_LINES_MAX, LINE_CHARS_MAX};
use crate::report::phrases;

/// The CSS class of a severity.
pub(super) fn severity_class(severity: ReviewSeverity) -> &'static str {
    match severity {
        ReviewSeverity::Critical => "critical",
        ReviewSeverity::Major => "major",
        ReviewSeverity::Minor => "minor",
        ReviewSeverity::Suggestion => "suggestion",
    }
}

/// The label of a severity.
pub(super) fn severity_label(severity: ReviewSeverity) -> String {
    format!("<span class=\"sev {}\">{severity}</span>", severity_class(severity))
}

/// Renders a finding as a card. `at` is its index in the review; `order` lists the indexes of all findings in page
/// order.
pub(super) fn render_card(review: &ReviewRecord, at: usize, order: &[usize]) -> String {
    let Some(finding) = review.findings.get(at) else { return String::new() };
    let number = at + 1;
    let badge = match finding.agents_badge() {
        Some(badge) => format!("<span class=\"badge\">{badge}</span>"),
        None => String::new(),
    };
    let mut out = format!(
        "<article class=\"card {}\" id=\"f{number}\" aria-labelledby=\"t{number}\" tabindex=\"-1\">\n\
         <div class=\"top\">{}{badge}<span class=\"cats\">{}</span><a class=\"self\" href=\"#f{number}\" \
         aria-label=\"Link to this finding\">{}</a></div>\n<h3 id=\"t{number}\">{}</h3>\n\
         <p class=\"place\">{}:{}</p>\n<div class=\"prose\">{}</div>\n",
        severity_class(finding.severity),
        severity_label(finding.severity),
        escape_name(&phrases::category_titles(review, finding)),
        escape_name(&finding.id),
        prose::render_inline(&phrases::to_one_line(
            &finding.title,
            super::super::limits::NAME_CHARS_MAX
        )),
        escape_name(finding.file.as_str()),
        finding.lines,
        prose::render_block(&finding.description),
    );
    out.push_str(&render_points(review, finding));
    out.push_str(&render_fix(finding.fix.as_ref()));
    out.push_str(&render_foot(finding, at, order));
    out.push_str("</article>\n");
    out
}

/// The failure scenario and the additional fields.
fn render_points(review: &ReviewRecord, finding: &ReportedFinding) -> String {
    let mut out = String::new();
    let mut point = |label: &str, text: &str, class: &str| {
        if !text.trim().is_empty() {
            out.push_str(&format!(
                "<div class=\"point{class}\"><dt>{}</dt><dd class=\"prose\">{}</dd></div>",
                escape_name(label),
                prose::render_block(text)
            ));
        }
    };
    point("What goes wrong", &finding.failure_scenario, " harm");
    for (label, text) in phrases::labelled_texts(review, finding) {
        point(&label, &text, "");
    }
    if out.is_empty() { out } else { format!("<dl class=\"points\">{out}</dl>\n") }
}

fn render_fix(fix: Option<&FindingFix>) -> String {
    match fix {
        None => String::new(),
        Some(FindingFix::Prompt(prompt)) => format!(
            "<div class=\"fix\"><h4>Fix</h4><div class=\"prose\">{}</div></div>\n",
            prose::render_block(prompt)
        ),
        Some(FindingFix::Diff(diff)) => {
            let mut rows: String = diff.lines().take(FIX_LINES_MAX).map(render_fix_line).collect();
            let more = diff.lines().count().saturating_sub(FIX_LINES_MAX);
            if more > 0 {
                rows.push_str(&format!(
                    "<span>… ({} more)</span>",
                    phrases::format_count(more, "line")
                ));
            }
            format!(
                "<div class=\"fix\"><h4>Fix</h4><pre class=\"patch\" tabindex=\"0\" aria-label=\"Fix as a \
                 diff\"><code>{rows}</code></pre></div>\n"
            )
        }
    }
}

fn render_fix_line(line: &str) -> String {
    let class = match line.as_bytes().first() {
        Some(b'+') => "add",
        Some(b'-') => "del",
        Some(b'@') => "at",
        _ => "ctx",
    };
    format!("<span class=\"{class}\">{}\n</span>", esc(&phrases::clip_text(line, LINE_CHARS_MAX)))
}

/// The agents, the validation, and links to the previous and next findings.
fn render_foot(finding: &ReportedFinding, at: usize, order: &[usize]) -> String {
    let agents: Vec<String> = finding.agents.iter().map(|agent| escape_name(agent)).collect();
    let by = if agents.is_empty() {
        String::new()
    } else {
        format!("<span>Found by {}</span>", agents.join(", "))
    };
    let here = order.iter().position(|other| *other == at);
    let before = here.and_then(|here| order.get(here.checked_sub(1)?));
    let after = here.and_then(|here| order.get(here + 1));
    let mut links = String::new();
    for (other, word) in [(before, "Previous"), (after, "Next")] {
        if let Some(other) = other {
            links.push_str(&format!("<a href=\"#f{}\">{word}</a>", other + 1));
        }
    }
    format!(
        "<div class=\"foot\">{}{by}<span class=\"steps\">{links}</span></div>\n",
        render_validation(&finding.validation)
    )
}

/// The result of a validation, with a symbol.
pub(super) fn render_validation(validation: &FindingValidation) -> String {
    let (class, mark) = match validation {
        FindingValidation::Pattern | FindingValidation::Valid { .. } => ("sure", "✓"),
        FindingValidation::Downgraded { .. } => ("sure", "↓"),
        FindingValidation::Accepted => ("open", "○"),
        FindingValidation::Unverified { .. } => ("unsure", "?"),
    };
    let text = phrases::to_one_line(&phrases::describe_validation(validation), LINE_CHARS_MAX);
    let mut chars = text.chars();
    let text = chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>());
    format!(
        "<span class=\"why {class}\"><span aria-hidden=\"true\">{mark}</span> {}</span>",
        prose::render_inline(&text.unwrap_or_default())
    )
}
