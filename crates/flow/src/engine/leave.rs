//! Leaving a step: checks the report, determines the outcome, applies the bound and takes the edge.

use serde_json::Value;

use super::review::{self, Verdict, verdict};
use super::{Refusal, Report, bad_value};
use crate::check::{Checked, is_name};
use crate::limits::{NOTE_BYTES_MAX, OUTPUT_BYTES_MAX};
use crate::state::{Passage, State, Status, Waiting};
use crate::template::{Scope, holds};
use crate::workflow::{
    Confidence, ConfidenceLoop, Decide, Outcome, StepDef, StepId, Target, Workflow,
};

/// Moves the run to a step.
pub(super) fn enter(checked: &Checked, state: &mut State, step: StepId) {
    state.turn += 1;
    *state.visits.entry(step.clone()).or_default() += 1;
    state.waits_since = None;
    state.asked = 0;
    state.answers.clear();
    review::reopen_after_pass(checked.workflow(), state, &step);
    state.step = step;
    state.status = Status::Active;
}

/// Leaves the step as the report says.
pub(super) fn leave(
    checked: &Checked,
    state: &mut State,
    report: &Report,
    digest: String,
) -> Result<(), Refusal> {
    expect_active(state)?;
    let step = checked.step(&state.step).ok_or(Refusal::OtherWorkflow)?;
    expect_asked(step, report)?;
    take_values(checked.workflow(), state, step, report)?;
    take_output(state, step, report)?;
    if !report.set.is_empty() || report.output.is_some() {
        review::drop_stale(checked.workflow(), state);
    }
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
        Within::Yes => go(checked, state, Way::outcome(outcome, digest)),
        Within::Instead(forced) => {
            go(checked, state, Way { limited: true, ..Way::outcome(forced, digest) })
        }
        Within::No => {
            wait(state, Waiting::Bound { step: step.id.clone(), wanted: Some(outcome) }, digest);
            Ok(())
        }
    }
}

/// Makes the run wait for a person.
fn wait(state: &mut State, waiting: Waiting, digest: String) {
    state.status = Status::Waiting(waiting);
    state.waits_since = Some(digest);
}

/// Follows `on_error` after a step could not be carried out, or waits for a person.
pub(super) fn failed(
    checked: &Checked,
    state: &mut State,
    message: &str,
    digest: String,
) -> Result<(), Refusal> {
    let waiting = Waiting::Error { message: message.to_owned() };
    if matches!(&state.status, Status::Waiting(already) if *already == waiting) {
        return Ok(());
    }
    expect_active(state)?;
    expect_short("the error", message)?;
    let step = checked.step(&state.step).ok_or(Refusal::OtherWorkflow)?;
    if step.on_error.is_none() {
        wait(state, waiting, digest);
        return Ok(());
    }
    match within_bound(checked, state, step, None) {
        Within::Yes => go(checked, state, Way::error(message, digest)),
        Within::Instead(_) | Within::No => {
            wait(state, Waiting::Bound { step: step.id.clone(), wanted: None }, digest);
            Ok(())
        }
    }
}

/// The way a step is left.
pub(super) struct Way {
    /// `None` if the step could not be carried out.
    pub(super) outcome: Option<Outcome>,
    /// The reason, if the step could not be carried out.
    pub(super) error: Option<String>,
    /// True if a bound forced the outcome.
    pub(super) limited: bool,
    /// The digest of the report.
    pub(super) report: String,
}

impl Way {
    pub(super) fn outcome(outcome: Outcome, report: String) -> Self {
        Way { outcome: Some(outcome), error: None, limited: false, report }
    }

    pub(super) fn error(message: &str, report: String) -> Self {
        Way { outcome: None, error: Some(message.to_owned()), limited: false, report }
    }
}

/// Takes the edge of an outcome or of an error.
pub(super) fn go(checked: &Checked, state: &mut State, way: Way) -> Result<(), Refusal> {
    let step = checked.step(&state.step).ok_or(Refusal::OtherWorkflow)?;
    let Way { outcome, error, limited, report } = way;
    let target = match &outcome {
        Some(outcome) => step.next.target(outcome),
        None => step.on_error.clone().map(Target::Step),
    };
    // The checker guarantees an edge for every outcome; only an unchecked workflow gets here without one.
    let to = target.ok_or_else(|| Refusal::NoSuchOutcome {
        step: step.id.clone(),
        given: outcome.clone().unwrap_or(Outcome::Fail),
        possible: step.next.outcomes(),
    })?;
    let (turn, step, target) = (state.turn, step.id.clone(), to.clone());
    state.history.push(Passage { turn, step, outcome, to, limited, error, report });
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

/// Refuses a text longer than [`NOTE_BYTES_MAX`].
pub(super) fn expect_short(what: &'static str, text: &str) -> Result<(), Refusal> {
    if text.len() > NOTE_BYTES_MAX {
        Err(Refusal::TooLong { what, bytes: text.len() })
    } else {
        Ok(())
    }
}

/// Refuses a confidence or facts that the step does not ask for; accepting them would suggest that they count.
fn expect_asked(step: &StepDef, report: &Report) -> Result<(), Refusal> {
    let (confidence, questions) = match &step.decide {
        Decide::Confidence(confidence) => {
            (confidence.questions.is_empty(), Some(&confidence.questions))
        }
        Decide::Reported | Decide::Gate(_) | Decide::Cases(_) => (false, None),
    };
    let step = || step.id.clone();
    if report.confidence.is_some() && !confidence {
        return Err(Refusal::NotAsked { step: step(), what: "how sure you are".to_owned() });
    }
    let is_asked = |id: &str| questions.is_some_and(|questions| questions.contains_key(id));
    match report.facts.keys().find(|id| !is_asked(id)) {
        Some(id) => Err(Refusal::NotAsked { step: step(), what: format!("for fact `{id}`") }),
        None => Ok(()),
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
            // A default, or a value set on an earlier visit, need not be reported again.
            None if state.parameters.contains_key(name) => {}
            None => missing.push(name.clone()),
        }
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Refusal::NotSet { step: step.id.clone(), names: missing })
    }
}

fn take_output(state: &mut State, step: &StepDef, report: &Report) -> Result<(), Refusal> {
    let given = report.output.as_ref().filter(|text| !text.trim().is_empty());
    match (given, &step.output) {
        (Some(text), _) if text.len() > OUTPUT_BYTES_MAX => {
            Err(Refusal::OutputTooLong { bytes: text.len() })
        }
        (Some(text), Some(_)) => {
            state.outputs.insert(step.id.clone(), text.clone());
            Ok(())
        }
        (Some(_), None) => {
            Err(Refusal::NotAsked { step: step.id.clone(), what: "for an output".to_owned() })
        }
        (None, Some(what)) => Err(Refusal::NoOutput { step: step.id.clone(), what: what.clone() }),
        (None, None) => Ok(()),
    }
}

fn reported(step: &StepDef, report: &Report) -> Result<Outcome, Refusal> {
    let possible = step.possible_outcomes();
    let given = match &report.outcome {
        Some(outcome) => outcome.clone(),
        // With a single possible outcome, the agent need not name it.
        None if possible.len() == 1 => possible[0].clone(),
        None => return Err(Refusal::OutcomeNeeded { step: step.id.clone(), possible }),
    };
    // `default` matches outcomes that are not named, so it cannot be reported itself, but any other name can.
    let takes_all = possible.contains(&Outcome::Default);
    let is_other = takes_all && step.outcomes.is_empty() && is_name(given.as_str());
    if (possible.contains(&given) || is_other) && given != Outcome::Default {
        Ok(given)
    } else {
        Err(Refusal::NoSuchOutcome { step: step.id.clone(), given, possible })
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
    let scope = Scope::for_texts(state, cases.when.iter().map(|case| case.condition.as_str()));
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

/// The agent's confidence: computed from facts if the step asks for them, otherwise as reported.
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

/// The effect of a step's bound on an outcome.
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
            go(checked, state, Way::outcome(Outcome::Ok, digest))
        }
        Verdict::Fail { blocking, .. } => {
            expect_same(step, report, Outcome::Fail)?;
            let granted = state.granted.get(&step.id).copied().unwrap_or_default();
            if review.iteration >= gate.limit().saturating_add(granted) {
                wait(state, Waiting::Limit { gate: step.id.clone(), blocking }, digest);
                return Ok(());
            }
            review::fail(gate, review);
            go(checked, state, Way::outcome(Outcome::Fail, digest))
        }
    }
}
