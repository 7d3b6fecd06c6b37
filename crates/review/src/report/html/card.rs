//! The card of a finding.

use minijinja::{Value, context};

use super::prose::{block_values, line_values};
use super::{severity_values, short_name};
use crate::finding::FindingFix;
use crate::record::{FindingValidation, ReportedFinding, ReviewRecord};
use crate::report::limits::{FIX_LINES_MAX, LINE_CHARS_MAX, NAME_CHARS_MAX};
use crate::report::phrases;

/// The values of a finding's card. `at` is its index in the review; `order` lists the indexes of all findings in page
/// order.
pub(super) fn card_values(review: &ReviewRecord, at: usize, order: &[usize]) -> Option<Value> {
    let finding = review.findings.get(at)?;
    let agents: Vec<String> = finding.agents.iter().map(|agent| short_name(agent)).collect();
    let here = order.iter().position(|other| *other == at);
    let before = here.and_then(|here| order.get(here.checked_sub(1)?));
    let after = here.and_then(|here| order.get(here + 1));
    Some(context! {
        severity => severity_values(finding.severity),
        number => at + 1,
        badge => finding.agents_badge(),
        categories => short_name(&phrases::category_titles(review, finding)),
        id => short_name(&finding.id),
        title => line_values(&finding.title, NAME_CHARS_MAX),
        place => format!("{}:{}", short_name(finding.file.as_str()), finding.lines),
        description => block_values(&finding.description),
        points => point_values(review, finding),
        fix => finding.fix.as_ref().map(fix_values),
        validation => validation_values(&finding.validation),
        agents => agents.join(", "),
        previous => before.map(|before| before + 1),
        next => after.map(|after| after + 1),
    })
}

/// The failure scenario and the additional fields.
fn point_values(review: &ReviewRecord, finding: &ReportedFinding) -> Vec<Value> {
    let harm = ("What goes wrong".to_owned(), finding.failure_scenario.clone());
    let points = std::iter::once(harm).chain(phrases::labelled_texts(review, finding));
    let points = points.enumerate().filter(|(_, (_, text))| !text.trim().is_empty());
    points
        .map(|(at, (label, text))| {
            context! { is_harm => at == 0, label => short_name(&label), text => block_values(&text) }
        })
        .collect()
}

fn fix_values(fix: &FindingFix) -> Value {
    match fix {
        FindingFix::Prompt(prompt) => context! { kind => "prompt", text => block_values(prompt) },
        FindingFix::Diff(diff) => {
            let more = diff.lines().count().saturating_sub(FIX_LINES_MAX);
            context! {
                kind => "diff",
                lines => diff.lines().take(FIX_LINES_MAX).map(fix_line_values).collect::<Vec<Value>>(),
                more => (more > 0).then(|| phrases::format_count(more, "line")),
            }
        }
    }
}

fn fix_line_values(line: &str) -> Value {
    let class = match line.as_bytes().first() {
        Some(b'+') => "add",
        Some(b'-') => "del",
        Some(b'@') => "at",
        _ => "ctx",
    };
    context! { class, text => phrases::clip_text(line, LINE_CHARS_MAX) }
}

/// The result of a validation, with a symbol.
pub(super) fn validation_values(validation: &FindingValidation) -> Value {
    let (class, mark) = match validation {
        FindingValidation::Pattern | FindingValidation::Valid { .. } => ("sure", "✓"),
        FindingValidation::Downgraded { .. } => ("sure", "↓"),
        FindingValidation::Accepted => ("open", "○"),
        FindingValidation::Unverified { .. } => ("unsure", "?"),
    };
    let text = phrases::describe_validation(validation);
    let mut chars = text.trim_start().chars();
    let text = chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>());
    context! { class, mark, spans => line_values(&text.unwrap_or_default(), LINE_CHARS_MAX) }
}
