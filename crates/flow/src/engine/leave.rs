//! Leaving a step: checks the report, determines the outcome, applies the bound and takes the edge.

use serde_json::Value;

use super::review::{self, GateVerdict, compute_verdict};
use super::{EngineRefusal, StepReport, bad_value};
use crate::check::{CheckedWorkflow, is_name};
use crate::limits::{NOTE_BYTES_MAX, OUTPUT_BYTES_MAX};
use crate::state::{StepTransition, WaitReason, WorkflowRunState, WorkflowRunStatus};
use crate::template::{TemplateScope, evaluate_condition};
use crate::workflow::{
    ConfidenceLevel, ConfidenceLoop, Decide, EdgeTarget, StepDef, StepId, Workflow, WorkflowOutcome,
};

/// Moves the run to a step.
pub(super) fn enter_step(checked: &CheckedWorkflow, state: &mut WorkflowRunState, step: StepId) {
    state.turn += 1;
    *state.visits.entry(step.clone()).or_default() += 1;
    state.waits_since = None;
    state.asked = 0;
    state.answers.clear();
    review::reopen_after_pass(checked.workflow(), state, &step);
    state.step = step;
    state.status = WorkflowRunStatus::Active;
}

/// Leaves the step as the report says.
pub(super) fn leave_step(
    checked: &CheckedWorkflow,
    state: &mut WorkflowRunState,
    report: &StepReport,
    digest: String,
) -> Result<(), EngineRefusal> {
    expect_active(state)?;
    let step = checked.find_step(&state.step).ok_or(EngineRefusal::OtherWorkflow)?;
    refuse_unasked(step, report)?;
    take_values(checked.workflow(), state, step, report)?;
    take_output(state, step, report)?;
    if !report.set.is_empty() || report.output.is_some() {
        review::drop_stale_checks(checked.workflow(), state);
    }
    let outcome = match &step.decide {
        Decide::Reported => reported_outcome(step, report)?,
        Decide::Gate(_) => return leave_gate(checked, state, step, report, digest),
        Decide::Confidence(confidence) => {
            let sure = measure_confidence(confidence, report)? >= confidence.until;
            expect_same(
                step,
                report,
                if sure { WorkflowOutcome::Ok } else { WorkflowOutcome::Iterate },
            )?
        }
        Decide::Cases(_) => expect_same(step, report, evaluate_cases(state, step)?)?,
    };
    match apply_bound(checked, state, step, Some(&outcome)) {
        BoundEffect::Yes => take_edge(checked, state, StepExit::with_outcome(outcome, digest)),
        BoundEffect::Instead(forced) => take_edge(
            checked,
            state,
            StepExit { limited: true, ..StepExit::with_outcome(forced, digest) },
        ),
        BoundEffect::No => {
            wait_for_person(
                state,
                WaitReason::Bound { step: step.id.clone(), wanted: Some(outcome) },
                digest,
            );
            Ok(())
        }
    }
}

/// Makes the run wait for a person.
fn wait_for_person(state: &mut WorkflowRunState, waiting: WaitReason, digest: String) {
    state.status = WorkflowRunStatus::Waiting(waiting);
    state.waits_since = Some(digest);
}

/// Follows `on_error` after a step could not be carried out, or waits for a person.
pub(super) fn fail_step(
    checked: &CheckedWorkflow,
    state: &mut WorkflowRunState,
    message: &str,
    digest: String,
) -> Result<(), EngineRefusal> {
    let waiting = WaitReason::Error { message: message.to_owned() };
    if matches!(&state.status, WorkflowRunStatus::Waiting(already) if *already == waiting) {
        return Ok(());
    }
    expect_active(state)?;
    expect_short("the error", message)?;
    let step = checked.find_step(&state.step).ok_or(EngineRefusal::OtherWorkflow)?;
    if step.on_error.is_none() {
        wait_for_person(state, waiting, digest);
        return Ok(());
    }
    match apply_bound(checked, state, step, None) {
        BoundEffect::Yes => take_edge(checked, state, StepExit::with_error(message, digest)),
        BoundEffect::Instead(_) | BoundEffect::No => {
            wait_for_person(
                state,
                WaitReason::Bound { step: step.id.clone(), wanted: None },
                digest,
            );
            Ok(())
        }
    }
}

/// The way a step is left.
pub(super) struct StepExit {
    /// `None` if the step could not be carried out.
    pub(super) outcome: Option<WorkflowOutcome>,
    /// The reason, if the step could not be carried out.
    pub(super) error: Option<String>,
    /// True if a bound forced the outcome.
    pub(super) limited: bool,
    /// The digest of the report.
    pub(super) report: String,
}

impl StepExit {
    pub(super) fn with_outcome(outcome: WorkflowOutcome, report: String) -> Self {
        StepExit { outcome: Some(outcome), error: None, limited: false, report }
    }

    pub(super) fn with_error(message: &str, report: String) -> Self {
        StepExit { outcome: None, error: Some(message.to_owned()), limited: false, report }
    }
}

/// Takes the edge of an outcome or of an error.
pub(super) fn take_edge(
    checked: &CheckedWorkflow,
    state: &mut WorkflowRunState,
    way: StepExit,
) -> Result<(), EngineRefusal> {
    let step = checked.find_step(&state.step).ok_or(EngineRefusal::OtherWorkflow)?;
    let StepExit { outcome, error, limited, report } = way;
    let target = match &outcome {
        Some(outcome) => step.next.find_target(outcome),
        None => step.on_error.clone().map(EdgeTarget::Step),
    };
    // The checker guarantees an edge for every outcome; only an unchecked workflow gets here without one.
    let to = target.ok_or_else(|| EngineRefusal::NoSuchOutcome {
        step: step.id.clone(),
        given: outcome.clone().unwrap_or(WorkflowOutcome::Fail),
        possible: step.next.routed_outcomes(),
    })?;
    let (turn, step, target) = (state.turn, step.id.clone(), to.clone());
    state.history.push(StepTransition { turn, step, outcome, to, limited, error, report });
    match target {
        EdgeTarget::Step(to) => enter_step(checked, state, to),
        EdgeTarget::End => state.status = WorkflowRunStatus::Done,
    }
    Ok(())
}

pub(super) fn expect_active(state: &WorkflowRunState) -> Result<(), EngineRefusal> {
    match &state.status {
        WorkflowRunStatus::Active => Ok(()),
        WorkflowRunStatus::Waiting(waiting) => {
            Err(EngineRefusal::WaitsForPerson { what: waiting.to_string() })
        }
        WorkflowRunStatus::Done => Err(EngineRefusal::Over { how: "it is complete" }),
        WorkflowRunStatus::Aborted => Err(EngineRefusal::Over { how: "a person has ended it" }),
    }
}

/// Refuses a text longer than [`NOTE_BYTES_MAX`].
pub(super) fn expect_short(what: &'static str, text: &str) -> Result<(), EngineRefusal> {
    if text.len() > NOTE_BYTES_MAX {
        Err(EngineRefusal::TooLong { what, bytes: text.len() })
    } else {
        Ok(())
    }
}

/// Refuses a confidence or facts that the step does not ask for; accepting them would suggest that they count.
fn refuse_unasked(step: &StepDef, report: &StepReport) -> Result<(), EngineRefusal> {
    let (confidence, questions) = match &step.decide {
        Decide::Confidence(confidence) => {
            (confidence.questions.is_empty(), Some(&confidence.questions))
        }
        Decide::Reported | Decide::Gate(_) | Decide::Cases(_) => (false, None),
    };
    let step = || step.id.clone();
    if report.confidence.is_some() && !confidence {
        return Err(EngineRefusal::NotAsked { step: step(), what: "how sure you are".to_owned() });
    }
    let is_asked = |id: &str| questions.is_some_and(|questions| questions.contains_key(id));
    match report.facts.keys().find(|id| !is_asked(id)) {
        Some(id) => Err(EngineRefusal::NotAsked { step: step(), what: format!("for fact `{id}`") }),
        None => Ok(()),
    }
}

fn take_values(
    workflow: &Workflow,
    state: &mut WorkflowRunState,
    step: &StepDef,
    report: &StepReport,
) -> Result<(), EngineRefusal> {
    if let Some(name) = report.set.keys().find(|name| !step.sets.contains(name)) {
        return Err(EngineRefusal::NotItsParameter { step: step.id.clone(), name: name.clone() });
    }
    let mut missing = Vec::new();
    for name in &step.sets {
        let Some(arg) = workflow.parameters.get(name) else { continue };
        match report.set.get(name) {
            Some(text) => {
                let value: Value = arg.parse_value(text).map_err(|bad| bad_value(name, bad))?;
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
        Err(EngineRefusal::NotSet { step: step.id.clone(), names: missing })
    }
}

fn take_output(
    state: &mut WorkflowRunState,
    step: &StepDef,
    report: &StepReport,
) -> Result<(), EngineRefusal> {
    let given = report.output.as_ref().filter(|text| !text.trim().is_empty());
    match (given, &step.output) {
        (Some(text), _) if text.len() > OUTPUT_BYTES_MAX => {
            Err(EngineRefusal::OutputTooLong { bytes: text.len() })
        }
        (Some(text), Some(_)) => {
            state.outputs.insert(step.id.clone(), text.clone());
            Ok(())
        }
        (Some(_), None) => {
            Err(EngineRefusal::NotAsked { step: step.id.clone(), what: "for an output".to_owned() })
        }
        (None, Some(what)) => {
            Err(EngineRefusal::NoOutput { step: step.id.clone(), what: what.clone() })
        }
        (None, None) => Ok(()),
    }
}

fn reported_outcome(step: &StepDef, report: &StepReport) -> Result<WorkflowOutcome, EngineRefusal> {
    let possible = step.possible_outcomes();
    let given = match &report.outcome {
        Some(outcome) => outcome.clone(),
        // With a single possible outcome, the agent need not name it.
        None if possible.len() == 1 => possible[0].clone(),
        None => return Err(EngineRefusal::OutcomeNeeded { step: step.id.clone(), possible }),
    };
    // `default` matches outcomes that are not named, so it cannot be reported itself, but any other name can.
    let takes_all = possible.contains(&WorkflowOutcome::Default);
    let is_other = takes_all && step.outcomes.is_empty() && is_name(given.as_str());
    if (possible.contains(&given) || is_other) && given != WorkflowOutcome::Default {
        Ok(given)
    } else {
        Err(EngineRefusal::NoSuchOutcome { step: step.id.clone(), given, possible })
    }
}

fn expect_same(
    step: &StepDef,
    report: &StepReport,
    computed: WorkflowOutcome,
) -> Result<WorkflowOutcome, EngineRefusal> {
    match &report.outcome {
        Some(given) if *given != computed => {
            let (step, given) = (step.id.clone(), given.clone());
            Err(EngineRefusal::Computed { step, given, computed })
        }
        _ => Ok(computed),
    }
}

fn evaluate_cases(
    state: &WorkflowRunState,
    step: &StepDef,
) -> Result<WorkflowOutcome, EngineRefusal> {
    let Decide::Cases(cases) = &step.decide else { return Ok(WorkflowOutcome::Ok) };
    let scope =
        TemplateScope::for_texts(state, cases.when.iter().map(|case| case.condition.as_str()));
    for case in &cases.when {
        let what = || format!("the condition `{}` of step `{}`", case.condition, step.id);
        let holds = evaluate_condition(&case.condition, &scope)
            .map_err(|error| EngineRefusal::Template { what: what(), error })?;
        if holds {
            return Ok(case.outcome.clone());
        }
    }
    Ok(cases.otherwise.clone())
}

/// The agent's confidence: computed from facts if the step asks for them, otherwise as reported.
fn measure_confidence(
    confidence: &ConfidenceLoop,
    report: &StepReport,
) -> Result<ConfidenceLevel, EngineRefusal> {
    if confidence.questions.is_empty() {
        return report.confidence.ok_or(EngineRefusal::ConfidenceNeeded);
    }
    let missing: Vec<String> =
        confidence.questions.keys().filter(|id| !report.facts.contains_key(*id)).cloned().collect();
    if !missing.is_empty() {
        return Err(EngineRefusal::FactsNeeded { missing });
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
                return Err(EngineRefusal::BadFact { id: id.clone(), answer, possible });
            }
        };
    }
    let reached = confidence.levels.iter().filter(|(_, least)| sum >= **least);
    Ok(reached.map(|(level, _)| *level).max().unwrap_or(ConfidenceLevel::Exploring))
}

/// The effect of a step's bound on an outcome.
enum BoundEffect {
    Yes,
    Instead(WorkflowOutcome),
    No,
}

fn apply_bound(
    checked: &CheckedWorkflow,
    state: &WorkflowRunState,
    step: &StepDef,
    outcome: Option<&WorkflowOutcome>,
) -> BoundEffect {
    let granted = state.granted.get(&step.id).copied().unwrap_or_default();
    let exhausted = |max: u32| state.visit_count() >= max.saturating_add(granted);
    let (max, at_limit) = match (&step.decide, &step.bound) {
        (Decide::Confidence(confidence), _) => (confidence.max, Some(WorkflowOutcome::Ok)),
        (Decide::Gate(gate), _) => (gate.iteration_limit(), None),
        (_, Some(bound)) => (bound.max, bound.at_limit.clone()),
        (_, None) => return BoundEffect::Yes,
    };
    if !exhausted(max) || outcome.is_some() && outcome == at_limit.as_ref() {
        return BoundEffect::Yes;
    }
    if !checked.leads_back(step, outcome) {
        return BoundEffect::Yes;
    }
    match (outcome, at_limit) {
        (Some(_), Some(forced)) => BoundEffect::Instead(forced),
        _ => BoundEffect::No,
    }
}

fn leave_gate(
    checked: &CheckedWorkflow,
    state: &mut WorkflowRunState,
    step: &StepDef,
    report: &StepReport,
    digest: String,
) -> Result<(), EngineRefusal> {
    let Some(gate) = step.decide.as_gate() else { return Err(EngineRefusal::OtherWorkflow) };
    let review = state.reviews.entry(step.id.clone()).or_default();
    match compute_verdict(gate, review) {
        GateVerdict::Open { todo, checks } => {
            Err(EngineRefusal::GateOpen { gate: step.id.clone(), todo, checks })
        }
        GateVerdict::Pass { .. } => {
            expect_same(step, report, WorkflowOutcome::Ok)?;
            review::archive_round(review, true);
            take_edge(checked, state, StepExit::with_outcome(WorkflowOutcome::Ok, digest))
        }
        GateVerdict::Fail { blocking, .. } => {
            expect_same(step, report, WorkflowOutcome::Fail)?;
            let granted = state.granted.get(&step.id).copied().unwrap_or_default();
            if review.iteration >= gate.iteration_limit().saturating_add(granted) {
                wait_for_person(
                    state,
                    WaitReason::Limit { gate: step.id.clone(), blocking },
                    digest,
                );
                return Ok(());
            }
            review::start_next_round(gate, review);
            take_edge(checked, state, StepExit::with_outcome(WorkflowOutcome::Fail, digest))
        }
    }
}
