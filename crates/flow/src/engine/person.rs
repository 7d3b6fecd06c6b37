//! Actions of people: answering questions, and deciding how a stopped run continues.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::leave::{StepExit, enter_step, expect_active, expect_short, take_edge};
use super::review::{self, GateVerdict, compute_verdict, compute_verdict_at, is_id};
use super::{CheckedWorkflow, EngineRefusal};
use crate::limits::{
    ASKS_PER_VISIT_MAX, ID_BYTES_MAX, ITEM_TEXT_BYTES_MAX, OPTIONS, QUESTIONS_MAX,
};
use crate::state::{
    ItemStatus, PersonDecision, StepTransition, UserAnswer, UserQuestion, WaitReason,
    WorkflowRunState, WorkflowRunStatus,
};
use crate::workflow::{EdgeTarget, ItemSeverity, StepDef, StepId, WorkflowOutcome};

/// A person's decision about how a stopped run continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonChoice {
    /// Try once more.
    Continue,
    /// Only MUST items block; the rest is accepted.
    MustOnly,
    /// Accept the failures as they are, except those of declared checks.
    Skip,
    Abort,
    /// End the step with this outcome.
    Take(WorkflowOutcome),
}

impl PersonChoice {
    /// Parses `continue`, `must-only`, `skip`, `abort`, or an outcome after `take:`.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "continue" | "retry" => PersonChoice::Continue,
            "must-only" => PersonChoice::MustOnly,
            "skip" => PersonChoice::Skip,
            "abort" => PersonChoice::Abort,
            other => PersonChoice::Take(other.strip_prefix("take:")?.into()),
        })
    }

    /// The choices available for what the run is waiting for.
    pub fn possible_choices(checked: &CheckedWorkflow, waiting: &WaitReason) -> Vec<PersonChoice> {
        match waiting {
            WaitReason::Limit { .. } => {
                vec![
                    PersonChoice::Continue,
                    PersonChoice::MustOnly,
                    PersonChoice::Skip,
                    PersonChoice::Abort,
                ]
            }
            WaitReason::Bound { step, wanted } => {
                // A gate is passed by recorded items only, so its outcome cannot be chosen.
                let step = checked.find_step(step).filter(|step| step.decide.as_gate().is_none());
                let outcomes = step.map(|step| step.possible_outcomes());
                let others = outcomes.unwrap_or_default().into_iter().filter(|outcome| {
                    Some(outcome) != wanted.as_ref() && *outcome != WorkflowOutcome::Default
                });
                let mut all = vec![PersonChoice::Continue];
                all.extend(others.map(PersonChoice::Take));
                all.push(PersonChoice::Abort);
                all
            }
            WaitReason::Error { .. } => vec![PersonChoice::Continue, PersonChoice::Abort],
            WaitReason::Questions { .. } => vec![PersonChoice::Abort],
        }
    }
}

impl fmt::Display for PersonChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PersonChoice::Continue => f.write_str("continue"),
            PersonChoice::MustOnly => f.write_str("must-only"),
            PersonChoice::Skip => f.write_str("skip"),
            PersonChoice::Abort => f.write_str("abort"),
            PersonChoice::Take(outcome) => write!(f, "take:{outcome}"),
        }
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitReason::Limit { gate, blocking } => {
                write!(f, "gate `{gate}` has failed as often as it may ({})", blocking.join(", "))
            }
            WaitReason::Bound { step, .. } => {
                write!(f, "step `{step}` was gone through as often as it may")
            }
            WaitReason::Questions { questions } => {
                let ids: Vec<&str> = questions.iter().map(|asked| asked.id.as_str()).collect();
                write!(f, "questions are open ({})", ids.join(", "))
            }
            WaitReason::Error { message } => {
                write!(f, "the step could not be carried out: {message}")
            }
        }
    }
}

/// Prefix of the ids of the engine's own questions about gates.
const ACCEPTANCE_PREFIX: &str = "accept-";

/// The answer that accepts a gate.
const ACCEPTED: &str = "accept";

/// The question to a person about a gate that no declared check has confirmed.
fn acceptance_question(gate: &StepId, name: &str) -> UserQuestion {
    UserQuestion {
        id: format!("{ACCEPTANCE_PREFIX}{gate}"),
        ask: format!(
            "Gate \"{name}\" would be passed by what was recorded in this run alone: no declared check has confirmed it. \
             Look at the work. Do you accept it?"
        ),
        options: vec![ACCEPTED.to_owned(), "reject".to_owned()],
    }
}

/// Returns true if a person has accepted the gate the run is at, `None` if the question was not asked during this
/// visit. Only an answer to the engine's own question counts.
pub fn gate_acceptance(checked: &CheckedWorkflow, state: &WorkflowRunState) -> Option<bool> {
    let question = current_acceptance(checked, state)?;
    let is_about = |given: &&UserAnswer| given.id == question.id && given.ask == question.ask;
    let given = state.answers.iter().rev().find(is_about)?;
    Some(given.answer.trim().eq_ignore_ascii_case(ACCEPTED))
}

fn current_acceptance(checked: &CheckedWorkflow, state: &WorkflowRunState) -> Option<UserQuestion> {
    let gate = checked.find_step(&state.step)?.decide.as_gate()?;
    Some(acceptance_question(&state.step, &gate.name))
}

/// Asks a person to accept the gate the run is at. This does not count as a question of the worker.
pub(super) fn ask_acceptance(
    checked: &CheckedWorkflow,
    state: &mut WorkflowRunState,
) -> Result<(), EngineRefusal> {
    expect_active(state)?;
    let question = current_acceptance(checked, state)
        .ok_or_else(|| EngineRefusal::NoSuchGate { gate: state.step.clone() })?;
    state.status = WorkflowRunStatus::Waiting(WaitReason::Questions { questions: vec![question] });
    Ok(())
}

/// Puts the agent's questions to the user.
pub(super) fn ask_user(
    state: &mut WorkflowRunState,
    questions: &[UserQuestion],
) -> Result<(), EngineRefusal> {
    if let WorkflowRunStatus::Waiting(WaitReason::Questions { questions: open }) = &state.status
        && open == questions
    {
        return Ok(());
    }
    expect_active(state)?;
    let is_answered = |asked: &UserQuestion| {
        state.answers.iter().any(|answer| answer.id == asked.id && answer.ask == asked.ask)
    };
    // Questions answered during this visit are not asked again: the answers are in the state.
    if !questions.is_empty() && questions.iter().all(is_answered) {
        return Ok(());
    }
    if state.asked >= ASKS_PER_VISIT_MAX {
        return Err(EngineRefusal::AskedOften);
    }
    check_questions(questions)?;
    if let Some(asked) = questions.iter().find(|asked| asked.id.starts_with(ACCEPTANCE_PREFIX)) {
        let id = &asked.id;
        return Err(EngineRefusal::BadQuestions(format!(
            "question `{id}`: names that begin with `{ACCEPTANCE_PREFIX}` are reserved for the engine; choose another name"
        )));
    }
    state.asked += 1;
    state.status =
        WorkflowRunStatus::Waiting(WaitReason::Questions { questions: questions.to_vec() });
    Ok(())
}

fn check_questions(questions: &[UserQuestion]) -> Result<(), EngineRefusal> {
    let bad = |said: String| Err(EngineRefusal::BadQuestions(said));
    if questions.is_empty() || questions.len() > QUESTIONS_MAX {
        return bad(format!("ask 1 to {QUESTIONS_MAX} questions at once, not {}", questions.len()));
    }
    let mut ids = BTreeSet::new();
    for question in questions {
        let id = &question.id;
        if !is_id(id) {
            return Err(EngineRefusal::BadId { id: id.chars().take(ID_BYTES_MAX).collect() });
        }
        if !ids.insert(id) {
            return bad(format!("question `{id}` is there twice"));
        }
        if question.ask.trim().is_empty() {
            return bad(format!("question `{id}` asks nothing"));
        }
        if !OPTIONS.contains(&question.options.len()) {
            let (least, most) = (OPTIONS.start(), OPTIONS.end());
            return bad(format!(
                "question `{id}` has {} options; give {least} or {most}",
                question.options.len()
            ));
        }
        let texts = question.options.iter().chain([&question.ask]);
        if texts.into_iter().any(|text| text.len() > ITEM_TEXT_BYTES_MAX) {
            return bad(format!("question `{id}` is longer than {ITEM_TEXT_BYTES_MAX} bytes"));
        }
    }
    Ok(())
}

/// Takes the user's answers: the run continues at the same step with them.
pub(super) fn take_answers(
    state: &mut WorkflowRunState,
    answers: &BTreeMap<String, String>,
) -> Result<(), EngineRefusal> {
    let WorkflowRunStatus::Waiting(WaitReason::Questions { questions }) = &state.status else {
        let known = |(id, text): (&String, &String)| {
            state.answers.iter().any(|given| given.id == *id && given.answer == *text)
        };
        // Repeating the same answers has no effect.
        return if !answers.is_empty() && answers.iter().all(known) {
            Ok(())
        } else {
            Err(EngineRefusal::NotWaiting)
        };
    };
    let missing: Vec<String> = questions
        .iter()
        .filter(|asked| answers.get(&asked.id).is_none_or(|answer| answer.trim().is_empty()))
        .map(|asked| asked.id.clone())
        .collect();
    if !missing.is_empty() {
        return Err(EngineRefusal::Unanswered { missing });
    }
    if let Some(id) = answers.keys().find(|id| questions.iter().all(|asked| asked.id != **id)) {
        return Err(EngineRefusal::BadQuestions(format!("there is no open question `{id}`")));
    }
    for text in answers.values() {
        expect_short("an answer", text)?;
    }
    let given = questions.iter().map(|asked| UserAnswer {
        id: asked.id.clone(),
        ask: asked.ask.clone(),
        answer: answers[&asked.id].clone(),
    });
    let given: Vec<UserAnswer> = given.collect();
    state.answers.extend(given);
    state.status = WorkflowRunStatus::Active;
    Ok(())
}

/// Applies a person's decision.
pub(super) fn apply_choice(
    checked: &CheckedWorkflow,
    state: &mut WorkflowRunState,
    choice: &PersonChoice,
    note: &str,
    report: String,
) -> Result<(), EngineRefusal> {
    expect_short("the note", note)?;
    let WorkflowRunStatus::Waiting(waiting) = state.status.clone() else {
        return match (&state.status, choice) {
            // A person who may decide how a run continues may also end one that is active.
            (WorkflowRunStatus::Active, PersonChoice::Abort) => {
                record_decision(state, choice, note, Vec::new());
                state.status = WorkflowRunStatus::Aborted;
                Ok(())
            }
            (WorkflowRunStatus::Aborted, PersonChoice::Abort) => Ok(()),
            _ => Err(EngineRefusal::NotWaiting),
        };
    };
    let possible = PersonChoice::possible_choices(checked, &waiting);
    if !possible.contains(choice) {
        let possible = possible.iter().map(PersonChoice::to_string).collect();
        return Err(EngineRefusal::NoSuchChoice { given: choice.to_string(), possible });
    }
    if *choice == PersonChoice::Abort {
        record_decision(state, choice, note, Vec::new());
        state.status = WorkflowRunStatus::Aborted;
        return Ok(());
    }
    match waiting {
        WaitReason::Limit { gate, .. } => decide_gate(checked, state, &gate, choice, note, report),
        WaitReason::Bound { step, wanted } => {
            record_decision(state, choice, note, Vec::new());
            match choice {
                PersonChoice::Take(outcome) => {
                    take_edge(checked, state, StepExit::with_outcome(outcome.clone(), report))
                }
                _ => {
                    *state.granted.entry(step).or_default() += 1;
                    let way = match wanted {
                        Some(outcome) => StepExit::with_outcome(outcome, report),
                        None => StepExit::with_error("it could not be carried out", report),
                    };
                    take_edge(checked, state, way)
                }
            }
        }
        WaitReason::Error { message } => {
            record_decision(state, choice, note, Vec::new());
            let (turn, step) = (state.turn, state.step.clone());
            state.history.push(StepTransition {
                turn,
                step: step.clone(),
                outcome: None,
                to: EdgeTarget::Step(step.clone()),
                limited: false,
                error: Some(message),
                report,
            });
            // Retrying a failed step is not a new round of its loop, so extend the bound. A gate counts iterations,
            // not visits.
            let def = checked.find_step(&step).filter(|step| step.decide.as_gate().is_none());
            if def.is_some_and(is_bounded) {
                *state.granted.entry(step.clone()).or_default() += 1;
            }
            enter_step(checked, state, step);
            Ok(())
        }
        WaitReason::Questions { .. } => Err(EngineRefusal::NotWaiting),
    }
}

fn is_bounded(step: &StepDef) -> bool {
    step.bound.is_some() || !step.decide.is_reported()
}

/// Applies a person's decision about a gate that has reached its limit.
fn decide_gate(
    checked: &CheckedWorkflow,
    state: &mut WorkflowRunState,
    id: &StepId,
    choice: &PersonChoice,
    note: &str,
    report: String,
) -> Result<(), EngineRefusal> {
    let gate = checked.find_step(id).and_then(|step| step.decide.as_gate());
    let (Some(gate), Some(review)) = (gate, state.reviews.get_mut(id)) else {
        return Err(EngineRefusal::NoSuchGate { gate: id.clone() });
    };
    if *choice == PersonChoice::Continue {
        review::start_next_round(gate, review);
        *state.granted.entry(id.clone()).or_default() += 1;
        record_decision(state, choice, note, Vec::new());
        return take_edge(checked, state, StepExit::with_outcome(WorkflowOutcome::Fail, report));
    }
    // A failed check cannot be accepted.
    if let GateVerdict::Fail { checks, .. } = compute_verdict(gate, review)
        && !checks.is_empty()
    {
        return Err(EngineRefusal::NotAcceptable { blocking: checks });
    }
    let failed = review.items.iter().filter(|item| item.status == ItemStatus::Fail);
    let failed: Vec<String> = failed.map(|item| item.id.clone()).collect();
    if *choice == PersonChoice::MustOnly
        && let GateVerdict::Fail { blocking, .. } =
            compute_verdict_at(gate, review, ItemSeverity::Must)
    {
        return Err(EngineRefusal::NotAcceptable { blocking });
    }
    review::archive_round(review, true);
    record_decision(state, choice, note, failed);
    take_edge(checked, state, StepExit::with_outcome(WorkflowOutcome::Ok, report))
}

fn record_decision(
    state: &mut WorkflowRunState,
    choice: &PersonChoice,
    note: &str,
    accepted: Vec<String>,
) {
    state.decisions.push(PersonDecision {
        turn: state.turn,
        step: state.step.clone(),
        choice: choice.to_string(),
        note: note.to_owned(),
        accepted,
    });
}
