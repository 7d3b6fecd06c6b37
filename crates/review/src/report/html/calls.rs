//! The section about planned and actual calls, and their cost.

use minijinja::{Value, context};

use super::short_name;
use crate::finding::Phase;
use crate::record::{CallOutcome, ReviewCall, ReviewRecord};
use crate::report::phrases;

pub(super) fn calls_values(review: &ReviewRecord) -> Option<Value> {
    if review.calls.is_empty() && review.planned.is_empty() {
        return None;
    }
    let planned: u64 = review.planned.iter().map(|phase| u64::from(phase.calls)).sum();
    let cost = phrases::review_cost(review).unwrap_or_else(|| "nothing".to_owned());
    let phases = phrases::all_phases(review).into_iter().map(|phase| phase_row(review, phase));
    Some(context! {
        summary => format!("{planned} planned, {} made, cost {cost}", review.calls_made()),
        phases => phases.map(Value::from).collect::<Vec<Value>>(),
        made => review.calls.iter().map(call_values).collect::<Vec<Value>>(),
    })
}

/// The cells of a phase, in the order of the columns.
fn phase_row(review: &ReviewRecord, phase: Phase) -> Vec<String> {
    let calls: Vec<&ReviewCall> = review.calls.iter().filter(|call| call.phase == phase).collect();
    let number = |outcome| calls.iter().filter(|call| call.outcome == outcome).count();
    let made = calls.iter().filter(|call| call.outcome.is_made()).count();
    let planned = review.planned.iter().find(|planned| planned.phase == phase);
    let answered: u64 = calls.iter().map(|call| u64::from(call.answered)).sum();
    let admitted: u64 = calls.iter().map(|call| u64::from(call.admitted)).sum();
    let tokens: u64 = calls.iter().map(|call| phrases::total_tokens(call)).sum();
    vec![
        phase.to_string(),
        planned.map_or_else(|| "unknown".to_owned(), |planned| planned.calls.to_string()),
        made.to_string(),
        number(CallOutcome::Failed).to_string(),
        number(CallOutcome::Skipped).to_string(),
        format!("{admitted} of {answered}"),
        if tokens > 0 { phrases::format_number(tokens) } else { "unknown".to_owned() },
        phrases::calls_cost(&calls).unwrap_or_else(|| "–".to_owned()),
    ]
}

fn call_values(call: &ReviewCall) -> Value {
    let is_made = call.outcome.is_made();
    let if_made = |text: String| if is_made { text } else { "–".to_owned() };
    let unknown = || "unknown".to_owned();
    let duration =
        if call.duration_ms == 0 { unknown() } else { phrases::format_duration(call.duration_ms) };
    context! {
        agent => short_name(&call.agent),
        phase => call.phase.to_string(),
        model => if_made(call.model.as_deref().map_or_else(unknown, short_name)),
        tier => is_made.then(|| call.tier.as_str()),
        duration => if_made(duration),
        findings => match call.outcome {
            CallOutcome::Completed => format!("{} of {} let in", call.admitted, call.answered),
            CallOutcome::Failed => unknown(),
            CallOutcome::Skipped | CallOutcome::Unasked => "–".to_owned(),
        },
        status => phrases::outcome_name(call.outcome),
        reason => call.reason.as_deref().map(short_name),
        cost => if_made(call.cost_usd.map_or_else(unknown, phrases::format_dollars)),
    }
}
