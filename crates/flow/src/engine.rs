//! The engine: [`start`] creates a run, and [`next`] computes the state that follows from a state and a report.
//!
//! Both are pure functions. Counters, gates and routes are computed only here, from recorded facts; a report that
//! contradicts them is refused. A report that arrives twice counts once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::check::Checked;
use crate::state::{RunId, STATE_VERSION, State, Status, UserQuestion};
use crate::workflow::{Arg, BadValue, Confidence, Outcome, StepId, Workflow};

mod leave;
mod person;
mod refusal;
mod review;

pub use person::{Choice, gate_acceptance};
pub use refusal::Refusal;
pub use review::{CheckRecord, ItemRecord, Verdict, is_id, is_proven, verdict};

/// A report about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The turn the report is about. If set, a repeated report has no effect. If `None`, the report applies to the
    /// run's current turn, whichever that is.
    pub at: Option<u32>,
    pub action: Action,
}

/// A reported action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The step is done.
    Leave(Report),
    /// The step could not be carried out.
    Error { message: String },
    /// A review has found something.
    Record {
        /// The gate the review is for; by default the one whose review is in progress.
        gate: Option<StepId>,
        /// New items, or updates of known ones.
        items: Vec<ItemRecord>,
        checks: Vec<CheckRecord>,
    },
    /// The agent asks the user.
    Ask { questions: Vec<UserQuestion> },
    /// The engine asks a person to accept the gate that the run is at.
    AskAcceptance,
    /// The user answers.
    Answer {
        /// The answers, by question id.
        answers: BTreeMap<String, String>,
    },
    /// A person decides how a run that has stopped goes on.
    Choose {
        choice: Choice,
        /// The reason.
        note: String,
    },
}

/// An agent's report when it leaves a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The outcome, where the agent has to choose it.
    pub outcome: Option<Outcome>,
    /// The agent's confidence.
    pub confidence: Option<Confidence>,
    /// Answers to the step's questions of fact: `yes`, `partial` or `no`.
    pub facts: BTreeMap<String, String>,
    /// Values for the parameters the step sets, unparsed.
    pub set: BTreeMap<String, String>,
    /// The output the step hands over.
    pub output: Option<String>,
}

impl Input {
    /// A report about the current turn.
    pub fn now(action: Action) -> Self {
        Input { at: None, action }
    }

    /// Reports the step as done with this outcome.
    pub fn leave(outcome: impl Into<Outcome>) -> Self {
        let report = Report { outcome: Some(outcome.into()), ..Report::default() };
        Input::now(Action::Leave(report))
    }

    /// Reports the step as done; the engine determines the outcome.
    pub fn done() -> Self {
        Input::now(Action::Leave(Report::default()))
    }
}

/// Creates a run at its first step.
pub fn start(
    checked: &Checked,
    run: RunId,
    given: &BTreeMap<String, String>,
) -> Result<State, Refusal> {
    let workflow = checked.workflow();
    let entry = workflow.entry().ok_or(Refusal::NoSteps)?.clone();
    let mut state = State {
        version: STATE_VERSION,
        run,
        workflow: workflow.name.clone(),
        fingerprint: checked.fingerprint().clone(),
        status: Status::Active,
        step: entry.clone(),
        turn: 0,
        visits: BTreeMap::new(),
        granted: BTreeMap::new(),
        parameters: parameters(workflow, given)?,
        outputs: BTreeMap::new(),
        reviews: BTreeMap::new(),
        waits_since: None,
        asked: 0,
        answers: Vec::new(),
        decisions: Vec::new(),
        history: Vec::new(),
    };
    leave::enter(checked, &mut state, entry);
    Ok(state)
}

/// Returns the state that follows. A [`Refusal`] leaves the run unchanged and says what is possible instead.
pub fn next(checked: &Checked, state: &State, input: &Input) -> Result<State, Refusal> {
    if state.fingerprint != *checked.fingerprint() {
        return Err(Refusal::OtherWorkflow);
    }
    if let Some(at) = input.at {
        if is_repeated(state, at, &input.action) {
            return Ok(state.clone());
        }
        if at != state.turn {
            return Err(Refusal::OtherTurn { at, now: state.turn, step: state.step.clone() });
        }
    }
    let mut state = state.clone();
    match &input.action {
        Action::Leave(report) => leave::leave(checked, &mut state, report, digest(&input.action))?,
        Action::Error { message } => {
            leave::failed(checked, &mut state, message, digest(&input.action))?;
        }
        Action::Record { gate, items, checks } => {
            review::record(checked, &mut state, gate.as_ref(), items, checks)?;
        }
        Action::Ask { questions } => person::ask(&mut state, questions)?,
        Action::AskAcceptance => person::ask_acceptance(checked, &mut state)?,
        Action::Answer { answers } => person::answer(&mut state, answers)?,
        Action::Choose { choice, note } => {
            person::choose(checked, &mut state, choice, note, digest(&input.action))?;
        }
    }
    Ok(state)
}

/// Returns true if this same report already ended the turn, or made the run wait in it, so that it must have no
/// further effect.
fn is_repeated(state: &State, at: u32, action: &Action) -> bool {
    let ended = state.history.iter().rev().find(|passage| passage.turn == at);
    let waits = state.waits_since.as_ref().filter(|_| at == state.turn);
    let known = [ended.map(|passage| &passage.report), waits];
    // Only compute the digest if there is one to compare it with.
    known.iter().any(Option::is_some) && known.contains(&Some(&digest(action)))
}

fn digest(action: &Action) -> String {
    let bytes = serde_json::to_vec(action).unwrap_or_default();
    let mut text = repertoire_skill::skill::Digest::of(&bytes).to_string();
    // A prefix is enough to tell the reports of one run apart.
    text.truncate("sha256:".len() + 16);
    text
}

fn parameters(
    workflow: &Workflow,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Value>, Refusal> {
    if let Some(name) = given.keys().find(|name| !workflow.parameters.contains_key(*name)) {
        let known = workflow.parameters.keys().cloned().collect();
        return Err(Refusal::UnknownParameter { name: name.clone(), known });
    }
    let mut values = BTreeMap::new();
    for (name, arg) in &workflow.parameters {
        let value = initial(arg, given.get(name)).map_err(|bad| bad_value(name, bad))?;
        if let Some(value) = value.filter(|value| !arg.required || !is_blank(value)) {
            values.insert(name.clone(), value);
        } else if arg.required {
            let description = arg.description.clone();
            return Err(Refusal::MissingParameter { name: name.clone(), description });
        }
    }
    Ok(values)
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
}

fn initial(arg: &Arg, given: Option<&String>) -> Result<Option<Value>, BadValue> {
    match (given, &arg.default) {
        (Some(text), _) => arg.parse(text).map(Some),
        (None, Some(default)) => arg.accept(default.clone()).map(Some),
        (None, None) => Ok(None),
    }
}

fn bad_value(name: &str, bad: BadValue) -> Refusal {
    Refusal::BadValue { name: name.to_owned(), reason: bad.0 }
}
