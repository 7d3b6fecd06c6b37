//! The section about planned and actual calls, and their cost.

use super::escape_name;
use crate::finding::Phase;
use crate::record::{CallOutcome, ReviewCall, ReviewRecord};
use crate::report::phrases;

pub(super) fn render_calls(review: &ReviewRecord) -> String {
    if review.calls.is_empty() && review.planned.is_empty() {
        return String::new();
    }
    let planned: u64 = review.planned.iter().map(|phase| u64::from(phase.calls)).sum();
    let cost = phrases::review_cost(review).unwrap_or_else(|| "nothing".to_owned());
    let phases: String = phrases::all_phases(review)
        .into_iter()
        .map(|phase| render_phase_row(review, phase))
        .collect();
    let calls: String = review.calls.iter().map(render_call_row).collect();
    format!(
        "<details class=\"more\">\n<summary><h2>Calls and cost</h2><span>{planned} planned, {} made, cost {cost}</span>\
         </summary>\n{}{}</details>\n",
        review.calls_made(),
        render_table(
            "Calls by phase",
            &["Phase", "Planned", "Made", "Failed", "Skipped", "Let in", "Tokens", "Cost"],
            &phases
        ),
        render_table(
            "Calls",
            &["Agent", "Phase", "Model", "Duration", "Findings", "Status", "Cost"],
            &calls
        )
    )
}

fn render_table(label: &str, columns: &[&str], rows: &str) -> String {
    let head: String =
        columns.iter().map(|column| format!("<th scope=\"col\">{column}</th>")).collect();
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n"
    )
}

fn render_row(cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<tr>{cells}</tr>\n")
}

fn render_phase_row(review: &ReviewRecord, phase: Phase) -> String {
    let calls: Vec<&ReviewCall> = review.calls.iter().filter(|call| call.phase == phase).collect();
    let number = |outcome| calls.iter().filter(|call| call.outcome == outcome).count();
    let made = calls.iter().filter(|call| call.outcome.is_made()).count();
    let planned = review.planned.iter().find(|planned| planned.phase == phase);
    let answered: u64 = calls.iter().map(|call| u64::from(call.answered)).sum();
    let admitted: u64 = calls.iter().map(|call| u64::from(call.admitted)).sum();
    let tokens: u64 = calls.iter().map(|call| phrases::total_tokens(call)).sum();
    render_row(&[
        phase.to_string(),
        planned.map_or_else(|| "unknown".to_owned(), |planned| planned.calls.to_string()),
        made.to_string(),
        number(CallOutcome::Failed).to_string(),
        number(CallOutcome::Skipped).to_string(),
        format!("{admitted} of {answered}"),
        if tokens > 0 { phrases::format_number(tokens) } else { "unknown".to_owned() },
        phrases::calls_cost(&calls).unwrap_or_else(|| "–".to_owned()),
    ])
}

fn render_call_row(call: &ReviewCall) -> String {
    let is_made = call.outcome.is_made();
    let if_made = |text: String| if is_made { text } else { "–".to_owned() };
    let unknown = || "unknown".to_owned();
    let status = match &call.reason {
        Some(reason) => {
            format!("{}<small>{}</small>", phrases::outcome_name(call.outcome), escape_name(reason))
        }
        None => phrases::outcome_name(call.outcome).to_owned(),
    };
    let model = call.model.as_deref().map_or_else(unknown, escape_name);
    render_row(&[
        escape_name(&call.agent),
        call.phase.to_string(),
        if_made(format!("{model}<small>{}</small>", call.tier.as_str())),
        if_made(if call.duration_ms == 0 {
            unknown()
        } else {
            phrases::format_duration(call.duration_ms)
        }),
        match call.outcome {
            CallOutcome::Completed => format!("{} of {} let in", call.admitted, call.answered),
            CallOutcome::Failed => unknown(),
            CallOutcome::Skipped | CallOutcome::Unasked => "–".to_owned(),
        },
        format!("<span class=\"status {}\">{status}</span>", phrases::outcome_name(call.outcome)),
        if_made(call.cost_usd.map_or_else(unknown, phrases::format_dollars)),
    ])
}
