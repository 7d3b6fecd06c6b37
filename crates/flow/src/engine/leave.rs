//! Leaving a step: what was reported, the outcome, the bound, the edge.

use serde_json::Value;

use super::review::{self, Verdict, verdict};
use super::{Refusal, Report, bad_value};
use crate::check::Checked;
use crate::limits::OUTPUT_BYTES_MAX;
use crate::state::{Passage, State, Status, Waiting};
use crate::template::{Scope, holds};
use crate::workflow::{
    Confidence, ConfidenceLoop, Decide, Outcome, StepDef, StepId, Target, Workflow,
};

/// The run goes to a step.
pub(super) fn enter(checked: &Checked, state: &mut State, step: StepId) {
    state.turn += 1;
    *state.visits.entry(step.clone()).or_default() += 1;
    state.asked = 0;
    state.answers.clear();
    review::reopen_after_pass(checked.workflow(), state, &step);
    state.step = step;
    state.status = Status::Active;
}

/// The step is done.
pub(super) fn leave(
    checked: &Checked,
    state: &mut State,
    report: &Report,
    digest: String,
) -> Result<(), Refusal> {
    expect_active(state)?;
    let step = checked.step(&state.step).ok_or(Refusal::OtherWorkflow)?;
    take_values(checked.workflow(), state, step, report)?;
    take_output(state, step, report)?;
    let outcome = match &step.decide {
        Decide::Reported => reported(step, report)?,
        Decide::Gate(_) => return through_gate(checked, state, step, report, digest),
        Decide::Confidence(confidence) => {
            let sure = measured(confidence, report)? >= confidence.until;
            expect_same(step, report, if sure { Outcome::Ok } else { Outcome::Iterate })?
        }
        Decide::Cases(_) => expect_same(step, report, by_case(state, step)?)?,
    };
    match within_bound(checked, state, step, Some(&outcome)) {
        Within::Yes => go(checked, state, Some(outcome), false, digest),
        Within::Instead(forced) => go(checked, state, Some(forced), true, digest),
        Within::No => {
            state.status =
                Status::Waiting(Waiting::Bound { step: step.id.clone(), wanted: Some(outcome) });
            Ok(())
        }
    }
}

/// The step could not be carried out.
pub(super) fn failed(
    checked: &Checked,
    state: &mut State,
    message: &str,
    digest: String,
) -> Result<(), Refusal> {
    let waiting = Status::Waiting(Waiting::Error { message: message.to_owned() });
    if state.status == waiting {
        return Ok(());
    }
    expect_active(state)?;
    let step = checked.step(&state.step).ok_or(Refusal::OtherWorkflow)?;
    if step.on_error.is_none() {
        state.status = waiting;
        return Ok(());
    }
    match within_bound(checked, state, step, None) {
        Within::Yes => go(checked, state, None, false, digest),
        Within::Instead(_) | Within::No => {
            state.status = Status::Waiting(Waiting::Bound { step: step.id.clone(), wanted: None });
            Ok(())
        }
    }
}

/// Takes the edge of an outcome, or that of an error.
pub(super) fn go(
    checked: &Checked,
    state: &mut State,
    outcome: Option<Outcome>,
    limited: bool,
    report: String,
) -> Result<(), Refusal> {
    let step = checked.step(&state.step).ok_or(Refusal::OtherWorkflow)?;
    let target = match &outcome {
        Some(outcome) => step.next.target(outcome),
        None => step.on_error.clone().map(Target::Step),
    };
    // The checker lets no outcome be without an edge; a workflow that was not checked stops here.
    let target = target.ok_or_else(|| Refusal::NoSuchOutcome {
        step: step.id.clone(),
        given: outcome.clone().unwrap_or(Outcome::Fail),
        possible: step.next.outcomes(),
    })?;
    let (turn, from) = (state.turn, step.id.clone());
    state.history.push(Passage { turn, step: from, outcome, to: target.clone(), limited, report });
    match target {
        Target::Step(to) => enter(checked, state, to),
        Target::End => state.status = Status::Done,
    }
    Ok(())
}

pub(super) fn expect_active(state: &State) -> Result<(), Refusal> {
    match &state.status {
        Status::Active => Ok(()),
        Status::Waiting(waiting) => Err(Refusal::WaitsForPerson { what: waiting.to_string() }),
        Status::Done => Err(Refusal::Over { how: "it is complete" }),
        Status::Aborted => Err(Refusal::Over { how: "a person has ended it" }),
    }
}

fn take_values(
    workflow: &Workflow,
    state: &mut State,
    step: &StepDef,
    report: &Report,
) -> Result<(), Refusal> {
    if let Some(name) = report.set.keys().find(|name| !step.sets.contains(name)) {
        return Err(Refusal::NotItsParameter { step: step.id.clone(), name: name.clone() });
    }
    let mut missing = Vec::new();
    for name in &step.sets {
        let Some(arg) = workflow.parameters.get(name) else { continue };
        match report.set.get(name) {
            Some(text) => {
                let value: Value = arg.parse(text).map_err(|bad| bad_value(name, bad))?;
                state.parameters.insert(name.clone(), value);
            }
            // What a default says, or an earlier visit has set, need not be said again.
            None if state.parameters.contains_key(name) => {}
            None => missing.push(name.clone()),
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Refusal::NotSet { step: step.id.clone(), names: missing }),
    }
}

fn take_output(state: &mut State, step: &StepDef, report: &Report) -> Result<(), Refusal> {
    let given = report.output.as_ref().filter(|text| !text.trim().is_empty());
    match (given, &step.output) {
        (Some(text), _) if text.len() > OUTPUT_BYTES_MAX => {
            Err(Refusal::OutputTooLong { bytes: text.len() })
        }
        (Some(text), _) => {
            state.outputs.insert(step.id.clone(), text.clone());
            Ok(())
        }
        (None, Some(what)) => Err(Refusal::NoOutput { step: step.id.clone(), what: what.clone() }),
        (None, None) => Ok(()),
    }
}

fn reported(step: &StepDef, report: &Report) -> Result<Outcome, Refusal> {
    let possible = step.possible_outcomes();
    let given = match &report.outcome {
        Some(outcome) => outcome.clone(),
        // One way is the only way.
        None if possible.len() == 1 => possible[0].clone(),
        None => return Err(Refusal::OutcomeNeeded { step: step.id.clone(), possible }),
    };
    // `default` is an edge for what is not named, so it is never what happened; anything else may be.
    let takes_all = possible.contains(&Outcome::Default);
    let is_known = possible.contains(&given) || (takes_all && step.outcomes.is_empty());
    match is_known && given != Outcome::Default {
        true => Ok(given),
        false => Err(Refusal::NoSuchOutcome { step: step.id.clone(), given, possible }),
    }
}

fn expect_same(step: &StepDef, report: &Report, computed: Outcome) -> Result<Outcome, Refusal> {
    match &report.outcome {
        Some(given) if *given != computed => {
            let (step, given) = (step.id.clone(), given.clone());
            Err(Refusal::Computed { step, given, computed })
        }
        _ => Ok(computed),
    }
}

fn by_case(state: &State, step: &StepDef) -> Result<Outcome, Refusal> {
    let Decide::Cases(cases) = &step.decide else { return Ok(Outcome::Ok) };
    let scope = Scope::new(state);
    for case in &cases.when {
        let what = || format!("the condition `{}` of step `{}`", case.condition, step.id);
        let holds = holds(&case.condition, &scope)
            .map_err(|error| Refusal::Template { what: what(), error })?;
        if holds {
            return Ok(case.outcome.clone());
        }
    }
    Ok(cases.otherwise.clone())
}

/// How sure the agent is: computed from facts where the step asks for them, otherwise what it says.
fn measured(confidence: &ConfidenceLoop, report: &Report) -> Result<Confidence, Refusal> {
    if confidence.questions.is_empty() {
        return report.confidence.ok_or(Refusal::ConfidenceNeeded);
    }
    let missing: Vec<String> =
        confidence.questions.keys().filter(|id| !report.facts.contains_key(*id)).cloned().collect();
    if !missing.is_empty() {
        return Err(Refusal::FactsNeeded { missing });
    }
    let mut sum = 0.0;
    for (id, question) in &confidence.questions {
        let answer = report.facts[id].trim().to_lowercase();
        sum += match answer.as_str() {
            "yes" => 1.0,
            "partial" if question.partial => 0.5,
            "no" => 0.0,
            _ => {
                let possible = if question.partial { "yes, partial, no" } else { "yes, no" };
                return Err(Refusal::BadFact { id: id.clone(), answer, possible });
            }
        };
    }
    let reached = confidence.levels.iter().filter(|(_, least)| sum >= **least);
    Ok(reached.map(|(level, _)| *level).max().unwrap_or(Confidence::Exploring))
}

/// Whether a step's bound lets an outcome be.
enum Within {
    Yes,
    Instead(Outcome),
    No,
}

fn within_bound(
    checked: &Checked,
    state: &State,
    step: &StepDef,
    outcome: Option<&Outcome>,
) -> Within {
    let granted = state.granted.get(&step.id).copied().unwrap_or_default();
    let exhausted = |max: u32| state.visit() >= max.saturating_add(granted);
    let (max, at_limit) = match (&step.decide, &step.bound) {
        (Decide::Confidence(confidence), _) => (confidence.max, Some(Outcome::Ok)),
        (Decide::Gate(gate), _) => (gate.limit(), None),
        (_, Some(bound)) => (bound.max, bound.at_limit.clone()),
        (_, None) => return Within::Yes,
    };
    if !exhausted(max) || outcome.is_some() && outcome == at_limit.as_ref() {
        return Within::Yes;
    }
    if !checked.leads_back(step, outcome) {
        return Within::Yes;
    }
    match (outcome, at_limit) {
        (Some(_), Some(forced)) => Within::Instead(forced),
        _ => Within::No,
    }
}

fn through_gate(
    checked: &Checked,
    state: &mut State,
    step: &StepDef,
    report: &Report,
    digest: String,
) -> Result<(), Refusal> {
    let Some(gate) = step.decide.as_gate() else { return Err(Refusal::OtherWorkflow) };
    let review = state.reviews.entry(step.id.clone()).or_default();
    match verdict(gate, review) {
        Verdict::Open { todo, checks } => {
            Err(Refusal::GateOpen { gate: step.id.clone(), todo, checks })
        }
        Verdict::Pass { .. } => {
            expect_same(step, report, Outcome::Ok)?;
            review::close(review, true);
            go(checked, state, Some(Outcome::Ok), false, digest)
        }
        Verdict::Fail { blocking, .. } => {
            expect_same(step, report, Outcome::Fail)?;
            let granted = state.granted.get(&step.id).copied().unwrap_or_default();
            if review.iteration >= gate.limit().saturating_add(granted) {
                let waiting = Waiting::Limit { gate: step.id.clone(), blocking };
                state.status = Status::Waiting(waiting);
                return Ok(());
            }
            review::fail(gate, review);
            go(checked, state, Some(Outcome::Fail), false, digest)
        }
    }
}
