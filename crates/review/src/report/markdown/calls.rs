//! The section about planned and actual calls, and their cost.

use super::escape::{escape_cell, escape_line};
use crate::finding::Phase;
use crate::record::{CallOutcome, ReviewCall, ReviewRecord};
use crate::report::limits::NAME_CHARS_MAX;
use crate::report::phrases;

pub(super) fn render_calls(review: &ReviewRecord) -> String {
    let mut parts = vec!["## Agent Calls".to_owned(), render_overview(review)];
    if !phrases::all_phases(review).is_empty() {
        parts.push(phase_table(review));
    }
    if !review.calls.is_empty() {
        parts.push(call_table(review));
    }
    parts.join("\n\n")
}

fn render_overview(review: &ReviewRecord) -> String {
    let planned: u64 = review.planned.iter().map(|phase| u64::from(phase.calls)).sum();
    let cost = phrases::review_cost(review).unwrap_or_else(|| "nothing".to_owned());
    let text = format!(
        "{} planned, {} made, {} failed. Duration: {}. Cost: {cost}.",
        phrases::format_number(planned),
        review.calls_made(),
        review.failed_calls().count(),
        phrases::format_duration(review.duration_ms),
    );
    escape_line(&text)
}

fn phase_table(review: &ReviewRecord) -> String {
    let mut rows = vec![
        "| Phase | Planned | Made | Failed | Skipped | Answers | Let in | Tokens in | Tokens out | Cost |"
            .to_owned(),
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|".to_owned(),
    ];
    rows.extend(phrases::all_phases(review).into_iter().map(|phase| phase_row(review, phase)));
    rows.join("\n")
}

fn phase_row(review: &ReviewRecord, phase: Phase) -> String {
    let calls: Vec<&ReviewCall> = review.calls.iter().filter(|call| call.phase == phase).collect();
    let number = |outcome| calls.iter().filter(|call| call.outcome == outcome).count();
    let made = calls.iter().filter(|call| call.outcome.is_made()).count();
    let planned = review.planned.iter().find(|planned| planned.phase == phase);
    let sum = |of: fn(&ReviewCall) -> u64| calls.iter().map(|call| of(call)).sum::<u64>();
    let is_known = calls.iter().any(|call| phrases::total_tokens(call) > 0);
    let tokens = |sum: u64| match (is_known, made == 0) {
        (true, _) => phrases::format_number(sum),
        (false, true) => "–".to_owned(),
        (false, false) => "unknown".to_owned(),
    };
    let cells = [
        phase.to_string(),
        planned.map_or_else(|| "unknown".to_owned(), |planned| planned.calls.to_string()),
        made.to_string(),
        number(CallOutcome::Failed).to_string(),
        number(CallOutcome::Skipped).to_string(),
        sum(|call| u64::from(call.answered)).to_string(),
        sum(|call| u64::from(call.admitted)).to_string(),
        tokens(sum(|call| call.input_tokens)),
        tokens(sum(|call| call.output_tokens)),
        phrases::calls_cost(&calls).unwrap_or_else(|| "–".to_owned()),
    ];
    format!("| {} |", cells.join(" | "))
}

fn call_table(review: &ReviewRecord) -> String {
    let mut rows = vec![
        "| Phase | Agent | Tier | Model | Duration | Findings | Status | Cost |".to_owned(),
        "|---|---|---|---|---:|---:|---|---:|".to_owned(),
    ];
    rows.extend(review.calls.iter().map(call_row));
    rows.join("\n")
}

fn call_row(call: &ReviewCall) -> String {
    let made = call.outcome.is_made();
    let if_made = |text: String| if made { text } else { "–".to_owned() };
    let unknown = || "unknown".to_owned();
    let duration = match call.duration_ms {
        0 => unknown(),
        ms => phrases::format_duration(ms),
    };
    let findings = match call.outcome {
        CallOutcome::Completed => format!("{} ({} let in)", call.answered, call.admitted),
        CallOutcome::Failed => unknown(),
        CallOutcome::Skipped | CallOutcome::Unasked => "–".to_owned(),
    };
    let status = match &call.reason {
        Some(reason) => format!("{}: {}", phrases::outcome_name(call.outcome), name_cell(reason)),
        None => phrases::outcome_name(call.outcome).to_owned(),
    };
    let cells = [
        call.phase.to_string(),
        name_cell(&call.agent),
        call.tier.as_str().to_owned(),
        call.model.as_deref().map_or_else(|| if_made(unknown()), name_cell),
        if_made(duration),
        findings,
        status,
        if_made(call.cost_usd.map_or_else(unknown, phrases::format_dollars)),
    ];
    format!("| {} |", cells.join(" | "))
}

fn name_cell(text: &str) -> String {
    escape_cell(&phrases::to_one_line(text, NAME_CHARS_MAX))
}
