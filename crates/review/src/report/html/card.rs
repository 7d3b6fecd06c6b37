//! The card of a finding.

use super::{esc, name, prose};
use crate::extract::Severity;
use crate::finding::Fix;
use crate::record::{Reported, Review, Validation};
use crate::report::limits::{FIX_LINES_MAX, LINE_CHARS_MAX};
use crate::report::words;

/// The CSS class of a severity.
pub(super) fn class(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::Major => "major",
        Severity::Minor => "minor",
        Severity::Suggestion => "suggestion",
    }
}

/// The label of a severity.
pub(super) fn severity(severity: Severity) -> String {
    format!("<span class=\"sev {}\">{severity}</span>", class(severity))
}

/// Renders a finding as a card. `at` is its index in the review; `order` lists the indexes of all findings in page
/// order.
pub(super) fn card(review: &Review, at: usize, order: &[usize]) -> String {
    let Some(finding) = review.findings.get(at) else { return String::new() };
    let number = at + 1;
    let badge = match finding.badge() {
        Some(badge) => format!("<span class=\"badge\">{badge}</span>"),
        None => String::new(),
    };
    let mut out = format!(
        "<article class=\"card {}\" id=\"f{number}\" aria-labelledby=\"t{number}\" tabindex=\"-1\">\n\
         <div class=\"top\">{}{badge}<span class=\"cats\">{}</span><a class=\"self\" href=\"#f{number}\" \
         aria-label=\"Link to this finding\">{}</a></div>\n<h3 id=\"t{number}\">{}</h3>\n\
         <p class=\"place\">{}:{}</p>\n<div class=\"prose\">{}</div>\n",
        class(finding.severity),
        severity(finding.severity),
        name(&words::categories(review, finding)),
        name(&finding.id),
        prose::inline(&words::one_line(&finding.title, super::super::limits::NAME_CHARS_MAX)),
        name(finding.file.as_str()),
        finding.lines,
        prose::block(&finding.description),
    );
    out.push_str(&points(review, finding));
    out.push_str(&fix(finding.fix.as_ref()));
    out.push_str(&foot(finding, at, order));
    out.push_str("</article>\n");
    out
}

/// The failure scenario and the additional fields.
fn points(review: &Review, finding: &Reported) -> String {
    let mut out = String::new();
    let mut point = |label: &str, text: &str, class: &str| {
        if !text.trim().is_empty() {
            out.push_str(&format!(
                "<div class=\"point{class}\"><dt>{}</dt><dd class=\"prose\">{}</dd></div>",
                name(label),
                prose::block(text)
            ));
        }
    };
    point("What goes wrong", &finding.failure_scenario, " harm");
    for (label, text) in words::points(review, finding) {
        point(&label, &text, "");
    }
    if out.is_empty() { out } else { format!("<dl class=\"points\">{out}</dl>\n") }
}

fn fix(fix: Option<&Fix>) -> String {
    match fix {
        None => String::new(),
        Some(Fix::Prompt(prompt)) => format!(
            "<div class=\"fix\"><h4>Fix</h4><div class=\"prose\">{}</div></div>\n",
            prose::block(prompt)
        ),
        Some(Fix::Diff(diff)) => {
            let mut rows: String = diff.lines().take(FIX_LINES_MAX).map(fix_line).collect();
            let more = diff.lines().count().saturating_sub(FIX_LINES_MAX);
            if more > 0 {
                rows.push_str(&format!("<span>… ({} more)</span>", words::count(more, "line")));
            }
            format!(
                "<div class=\"fix\"><h4>Fix</h4><pre class=\"patch\" tabindex=\"0\" aria-label=\"Fix as a \
                 diff\"><code>{rows}</code></pre></div>\n"
            )
        }
    }
}

fn fix_line(line: &str) -> String {
    let class = match line.as_bytes().first() {
        Some(b'+') => "add",
        Some(b'-') => "del",
        Some(b'@') => "at",
        _ => "ctx",
    };
    format!("<span class=\"{class}\">{}\n</span>", esc(&words::clip(line, LINE_CHARS_MAX)))
}

/// The agents, the validation, and links to the previous and next findings.
fn foot(finding: &Reported, at: usize, order: &[usize]) -> String {
    let agents: Vec<String> = finding.agents.iter().map(|agent| name(agent)).collect();
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
        believed(&finding.validation)
    )
}

/// The result of a validation, with a symbol.
pub(super) fn believed(validation: &Validation) -> String {
    let (class, mark) = match validation {
        Validation::Pattern | Validation::Valid { .. } => ("sure", "✓"),
        Validation::Downgraded { .. } => ("sure", "↓"),
        Validation::Accepted => ("open", "○"),
        Validation::Unverified { .. } => ("unsure", "?"),
    };
    let text = words::one_line(&words::believed(validation), LINE_CHARS_MAX);
    let mut chars = text.chars();
    let text = chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>());
    format!(
        "<span class=\"why {class}\"><span aria-hidden=\"true\">{mark}</span> {}</span>",
        prose::inline(&text.unwrap_or_default())
    )
}
