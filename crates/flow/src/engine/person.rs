//! Actions of people: answering questions, and deciding how a stopped run continues.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::leave::{Way, enter, expect_active, expect_short, go};
use super::review::{self, Verdict, is_id, verdict, verdict_at};
use super::{Checked, Refusal};
use crate::limits::{
    ASKS_PER_VISIT_MAX, ID_BYTES_MAX, ITEM_TEXT_BYTES_MAX, OPTIONS, QUESTIONS_MAX,
};
use crate::state::{Answer, Decision, ItemStatus, Passage, State, Status, UserQuestion, Waiting};
use crate::workflow::{Outcome, Severity, StepDef, StepId, Target};

/// A person's decision about how a stopped run continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Try once more.
    Continue,
    /// Only MUST items block; the rest is accepted.
    MustOnly,
    /// Accept the failures as they are, except those of declared checks.
    Skip,
    Abort,
    /// End the step with this outcome.
    Take(Outcome),
}

impl Choice {
    /// Parses `continue`, `must-only`, `skip`, `abort`, or an outcome after `take:`.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "continue" | "retry" => Choice::Continue,
            "must-only" => Choice::MustOnly,
            "skip" => Choice::Skip,
            "abort" => Choice::Abort,
            other => Choice::Take(other.strip_prefix("take:")?.into()),
        })
    }

    /// The choices available for what the run is waiting for.
    pub fn possible(checked: &Checked, waiting: &Waiting) -> Vec<Choice> {
        match waiting {
            Waiting::Limit { .. } => {
                vec![Choice::Continue, Choice::MustOnly, Choice::Skip, Choice::Abort]
            }
            Waiting::Bound { step, wanted } => {
                // A gate is passed by recorded items only, so its outcome cannot be chosen.
                let step = checked.step(step).filter(|step| step.decide.as_gate().is_none());
                let outcomes = step.map(|step| step.possible_outcomes());
                let others = outcomes.unwrap_or_default().into_iter().filter(|outcome| {
                    Some(outcome) != wanted.as_ref() && *outcome != Outcome::Default
                });
                let mut all = vec![Choice::Continue];
                all.extend(others.map(Choice::Take));
                all.push(Choice::Abort);
                all
            }
            Waiting::Error { .. } => vec![Choice::Continue, Choice::Abort],
            Waiting::Questions { .. } => vec![Choice::Abort],
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Continue => f.write_str("continue"),
            Choice::MustOnly => f.write_str("must-only"),
            Choice::Skip => f.write_str("skip"),
            Choice::Abort => f.write_str("abort"),
            Choice::Take(outcome) => write!(f, "take:{outcome}"),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Waiting::Limit { gate, blocking } => {
                write!(f, "gate `{gate}` has failed as often as it may ({})", blocking.join(", "))
            }
            Waiting::Bound { step, .. } => {
                write!(f, "step `{step}` was gone through as often as it may")
            }
            Waiting::Questions { questions } => {
                let ids: Vec<&str> = questions.iter().map(|asked| asked.id.as_str()).collect();
                write!(f, "questions are open ({})", ids.join(", "))
            }
            Waiting::Error { message } => write!(f, "the step could not be carried out: {message}"),
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
pub fn gate_acceptance(checked: &Checked, state: &State) -> Option<bool> {
    let question = current_acceptance(checked, state)?;
    let is_about = |given: &&Answer| given.id == question.id && given.ask == question.ask;
    let given = state.answers.iter().rev().find(is_about)?;
    Some(given.answer.trim().eq_ignore_ascii_case(ACCEPTED))
}

fn current_acceptance(checked: &Checked, state: &State) -> Option<UserQuestion> {
    let gate = checked.step(&state.step)?.decide.as_gate()?;
    Some(acceptance_question(&state.step, &gate.name))
}

/// Asks a person to accept the gate the run is at. This does not count as a question of the worker.
pub(super) fn ask_acceptance(checked: &Checked, state: &mut State) -> Result<(), Refusal> {
    expect_active(state)?;
    let question = current_acceptance(checked, state)
        .ok_or_else(|| Refusal::NoSuchGate { gate: state.step.clone() })?;
    state.status = Status::Waiting(Waiting::Questions { questions: vec![question] });
    Ok(())
}

/// Puts the agent's questions to the user.
pub(super) fn ask(state: &mut State, questions: &[UserQuestion]) -> Result<(), Refusal> {
    if let Status::Waiting(Waiting::Questions { questions: open }) = &state.status
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
        return Err(Refusal::AskedOften);
    }
    check_questions(questions)?;
    if let Some(asked) = questions.iter().find(|asked| asked.id.starts_with(ACCEPTANCE_PREFIX)) {
        let id = &asked.id;
        return Err(Refusal::BadQuestions(format!(
            "question `{id}`: names that begin with `{ACCEPTANCE_PREFIX}` are reserved for the engine; choose another name"
        )));
    }
    state.asked += 1;
    state.status = Status::Waiting(Waiting::Questions { questions: questions.to_vec() });
    Ok(())
}

fn check_questions(questions: &[UserQuestion]) -> Result<(), Refusal> {
    let bad = |said: String| Err(Refusal::BadQuestions(said));
    if questions.is_empty() || questions.len() > QUESTIONS_MAX {
        return bad(format!("ask 1 to {QUESTIONS_MAX} questions at once, not {}", questions.len()));
    }
    let mut ids = BTreeSet::new();
    for question in questions {
        let id = &question.id;
        if !is_id(id) {
            return Err(Refusal::BadId { id: id.chars().take(ID_BYTES_MAX).collect() });
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
pub(super) fn answer(state: &mut State, answers: &BTreeMap<String, String>) -> Result<(), Refusal> {
    let Status::Waiting(Waiting::Questions { questions }) = &state.status else {
        let known = |(id, text): (&String, &String)| {
            state.answers.iter().any(|given| given.id == *id && given.answer == *text)
        };
        // Repeating the same answers has no effect.
        return if !answers.is_empty() && answers.iter().all(known) {
            Ok(())
        } else {
            Err(Refusal::NotWaiting)
        };
    };
    let missing: Vec<String> = questions
        .iter()
        .filter(|asked| answers.get(&asked.id).is_none_or(|answer| answer.trim().is_empty()))
        .map(|asked| asked.id.clone())
        .collect();
    if !missing.is_empty() {
        return Err(Refusal::Unanswered { missing });
    }
    if let Some(id) = answers.keys().find(|id| questions.iter().all(|asked| asked.id != **id)) {
        return Err(Refusal::BadQuestions(format!("there is no open question `{id}`")));
    }
    for text in answers.values() {
        expect_short("an answer", text)?;
    }
    let given = questions.iter().map(|asked| Answer {
        id: asked.id.clone(),
        ask: asked.ask.clone(),
        answer: answers[&asked.id].clone(),
    });
    let given: Vec<Answer> = given.collect();
    state.answers.extend(given);
    state.status = Status::Active;
    Ok(())
}

/// Applies a person's decision.
pub(super) fn choose(
    checked: &Checked,
    state: &mut State,
    choice: &Choice,
    note: &str,
    report: String,
) -> Result<(), Refusal> {
    expect_short("the note", note)?;
    let Status::Waiting(waiting) = state.status.clone() else {
        return match (&state.status, choice) {
            // A person who may decide how a run continues may also end one that is active.
            (Status::Active, Choice::Abort) => {
                decided(state, choice, note, Vec::new());
                state.status = Status::Aborted;
                Ok(())
            }
            (Status::Aborted, Choice::Abort) => Ok(()),
            _ => Err(Refusal::NotWaiting),
        };
    };
    let possible = Choice::possible(checked, &waiting);
    if !possible.contains(choice) {
        let possible = possible.iter().map(Choice::to_string).collect();
        return Err(Refusal::NoSuchChoice { given: choice.to_string(), possible });
    }
    if *choice == Choice::Abort {
        decided(state, choice, note, Vec::new());
        state.status = Status::Aborted;
        return Ok(());
    }
    match waiting {
        Waiting::Limit { gate, .. } => at_gate(checked, state, &gate, choice, note, report),
        Waiting::Bound { step, wanted } => {
            decided(state, choice, note, Vec::new());
            match choice {
                Choice::Take(outcome) => go(checked, state, Way::outcome(outcome.clone(), report)),
                _ => {
                    *state.granted.entry(step).or_default() += 1;
                    let way = match wanted {
                        Some(outcome) => Way::outcome(outcome, report),
                        None => Way::error("it could not be carried out", report),
                    };
                    go(checked, state, way)
                }
            }
        }
        Waiting::Error { message } => {
            decided(state, choice, note, Vec::new());
            let (turn, step) = (state.turn, state.step.clone());
            state.history.push(Passage {
                turn,
                step: step.clone(),
                outcome: None,
                to: Target::Step(step.clone()),
                limited: false,
                error: Some(message),
                report,
            });
            // Retrying a failed step is not a new round of its loop, so extend the bound. A gate counts iterations,
            // not visits.
            let def = checked.step(&step).filter(|step| step.decide.as_gate().is_none());
            if def.is_some_and(is_bounded) {
                *state.granted.entry(step.clone()).or_default() += 1;
            }
            enter(checked, state, step);
            Ok(())
        }
        Waiting::Questions { .. } => Err(Refusal::NotWaiting),
    }
}

fn is_bounded(step: &StepDef) -> bool {
    step.bound.is_some() || !step.decide.is_reported()
}

/// Applies a person's decision about a gate that has reached its limit.
fn at_gate(
    checked: &Checked,
    state: &mut State,
    id: &StepId,
    choice: &Choice,
    note: &str,
    report: String,
) -> Result<(), Refusal> {
    let gate = checked.step(id).and_then(|step| step.decide.as_gate());
    let (Some(gate), Some(review)) = (gate, state.reviews.get_mut(id)) else {
        return Err(Refusal::NoSuchGate { gate: id.clone() });
    };
    if *choice == Choice::Continue {
        review::fail(gate, review);
        *state.granted.entry(id.clone()).or_default() += 1;
        decided(state, choice, note, Vec::new());
        return go(checked, state, Way::outcome(Outcome::Fail, report));
    }
    // A failed check cannot be accepted.
    if let Verdict::Fail { checks, .. } = verdict(gate, review)
        && !checks.is_empty()
    {
        return Err(Refusal::NotAcceptable { blocking: checks });
    }
    let failed = review.items.iter().filter(|item| item.status == ItemStatus::Fail);
    let failed: Vec<String> = failed.map(|item| item.id.clone()).collect();
    if *choice == Choice::MustOnly
        && let Verdict::Fail { blocking, .. } = verdict_at(gate, review, Severity::Must)
    {
        return Err(Refusal::NotAcceptable { blocking });
    }
    review::close(review, true);
    decided(state, choice, note, failed);
    go(checked, state, Way::outcome(Outcome::Ok, report))
}

fn decided(state: &mut State, choice: &Choice, note: &str, accepted: Vec<String>) {
    state.decisions.push(Decision {
        turn: state.turn,
        step: state.step.clone(),
        choice: choice.to_string(),
        note: note.to_owned(),
        accepted,
    });
}
