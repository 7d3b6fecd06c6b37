//! The section about planned and actual calls, and their cost.

use super::escape::{cell, line};
use crate::finding::Phase;
use crate::record::{Call, CallOutcome, Review};
use crate::report::limits::NAME_CHARS_MAX;
use crate::report::words;

pub(super) fn render(review: &Review) -> String {
    let mut parts = vec!["## Agent Calls".to_owned(), overview(review)];
    if !words::phases(review).is_empty() {
        parts.push(phase_table(review));
    }
    if !review.calls.is_empty() {
        parts.push(call_table(review));
    }
    parts.join("\n\n")
}

fn overview(review: &Review) -> String {
    let planned: u64 = review.planned.iter().map(|phase| u64::from(phase.calls)).sum();
    let cost = words::cost(review).unwrap_or_else(|| "nothing".to_owned());
    let text = format!(
        "{} planned, {} made, {} failed. Duration: {}. Cost: {cost}.",
        words::thousands(planned),
        review.calls_made(),
        review.failed_calls().count(),
        words::time(review.duration_ms),
    );
    line(&text)
}

fn phase_table(review: &Review) -> String {
    let mut rows = vec![
        "| Phase | Planned | Made | Failed | Skipped | Answers | Let in | Tokens in | Tokens out | Cost |"
            .to_owned(),
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|".to_owned(),
    ];
    rows.extend(words::phases(review).into_iter().map(|phase| phase_row(review, phase)));
    rows.join("\n")
}

fn phase_row(review: &Review, phase: Phase) -> String {
    let calls: Vec<&Call> = review.calls.iter().filter(|call| call.phase == phase).collect();
    let number = |outcome| calls.iter().filter(|call| call.outcome == outcome).count();
    let skipped = number(CallOutcome::Skipped);
    let planned = review.planned.iter().find(|planned| planned.phase == phase);
    let sum = |of: fn(&Call) -> u64| calls.iter().map(|call| of(call)).sum::<u64>();
    let is_known = calls.iter().any(|call| words::tokens(call) > 0);
    let tokens = |sum: u64| match (is_known, calls.len() == skipped) {
        (true, _) => words::thousands(sum),
        (false, true) => "–".to_owned(),
        (false, false) => "unknown".to_owned(),
    };
    let cells = [
        phase.to_string(),
        planned.map_or_else(|| "unknown".to_owned(), |planned| planned.calls.to_string()),
        (calls.len() - skipped).to_string(),
        number(CallOutcome::Failed).to_string(),
        skipped.to_string(),
        sum(|call| u64::from(call.answered)).to_string(),
        sum(|call| u64::from(call.admitted)).to_string(),
        tokens(sum(|call| call.input_tokens)),
        tokens(sum(|call| call.output_tokens)),
        words::cost_of(&calls).unwrap_or_else(|| "–".to_owned()),
    ];
    format!("| {} |", cells.join(" | "))
}

fn call_table(review: &Review) -> String {
    let mut rows = vec![
        "| Phase | Agent | Tier | Model | Duration | Findings | Status | Cost |".to_owned(),
        "|---|---|---|---|---:|---:|---|---:|".to_owned(),
    ];
    rows.extend(review.calls.iter().map(call_row));
    rows.join("\n")
}

fn call_row(call: &Call) -> String {
    let made = call.outcome != CallOutcome::Skipped;
    let unless_skipped = |text: String| if made { text } else { "–".to_owned() };
    let unknown = || "unknown".to_owned();
    let duration = match call.duration_ms {
        0 => unknown(),
        ms => words::time(ms),
    };
    let findings = match call.outcome {
        CallOutcome::Completed => format!("{} ({} let in)", call.answered, call.admitted),
        CallOutcome::Failed => unknown(),
        CallOutcome::Skipped | CallOutcome::Unasked => "–".to_owned(),
    };
    let status = match &call.reason {
        Some(reason) => format!("{}: {}", words::outcome(call.outcome), name_cell(reason)),
        None => words::outcome(call.outcome).to_owned(),
    };
    let cells = [
        call.phase.to_string(),
        name_cell(&call.agent),
        call.tier.as_str().to_owned(),
        call.model.as_deref().map_or_else(|| unless_skipped(unknown()), name_cell),
        unless_skipped(duration),
        findings,
        status,
        unless_skipped(call.cost_usd.map_or_else(unknown, words::dollars)),
    ];
    format!("| {} |", cells.join(" | "))
}

fn name_cell(text: &str) -> String {
    cell(&words::one_line(text, NAME_CHARS_MAX))
}
