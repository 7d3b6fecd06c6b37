//! The engine: [`start`] makes a run, [`next`] the state that follows from a state and what was reported.
//!
//! Both are pure. Counters, gates and the way through the graph are computed here and nowhere else, from what was recorded;
//! what an agent claims about them is refused if it is not so. A report that comes twice counts once.

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

/// What is reported about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The turn that it is about. With it, the same report twice counts once; without it, it is about the turn that the run
    /// is at, whatever that is.
    pub at: Option<u32>,
    /// What happened.
    pub action: Action,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The step is done.
    Leave(Report),
    /// The step could not be carried out.
    Error {
        /// Why.
        message: String,
    },
    /// A review has found something.
    Record {
        /// The gate that it is for; by default the one whose review is under way.
        gate: Option<StepId>,
        /// Items, new or known.
        items: Vec<ItemRecord>,
        /// Verdicts of declared checks.
        checks: Vec<CheckRecord>,
    },
    /// Somebody asks the user.
    Ask {
        /// The questions.
        questions: Vec<UserQuestion>,
    },
    /// The engine asks a person to accept the gate that the run is at.
    AskAcceptance,
    /// The user answers.
    Answer {
        /// The answers, by the names of the questions.
        answers: BTreeMap<String, String>,
    },
    /// A person decides how a run that has stopped goes on.
    Choose {
        /// What.
        choice: Choice,
        /// Why.
        note: String,
    },
}

/// What an agent reports when it leaves a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How it ended, where the agent has to say it.
    pub outcome: Option<Outcome>,
    /// How sure the agent is.
    pub confidence: Option<Confidence>,
    /// Answers to the step's questions of fact: `yes`, `partial` or `no`.
    pub facts: BTreeMap<String, String>,
    /// Parameters that the step sets, as they were typed.
    pub set: BTreeMap<String, String>,
    /// What the step hands over.
    pub output: Option<String>,
}

impl Input {
    /// About the turn that the run is at.
    pub fn now(action: Action) -> Self {
        Input { at: None, action }
    }

    /// The step is done, with this outcome.
    pub fn leave(outcome: impl Into<Outcome>) -> Self {
        let report = Report { outcome: Some(outcome.into()), ..Report::default() };
        Input::now(Action::Leave(report))
    }

    /// The step is done; the outcome is the engine's to find.
    pub fn done() -> Self {
        Input::now(Action::Leave(Report::default()))
    }
}

/// A run at its first step.
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

/// The state that follows. A refusal changes nothing, and says what is possible instead.
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

/// Whether this is the report that has ended the turn, or has made the run wait in it: then nothing happens again.
fn is_repeated(state: &State, at: u32, action: &Action) -> bool {
    let ended = state.history.iter().rev().find(|passage| passage.turn == at);
    let waits = state.waits_since.as_ref().filter(|_| at == state.turn);
    let known = [ended.map(|passage| &passage.report), waits];
    // Reports are short, and their digests seldom needed.
    known.iter().any(Option::is_some) && known.contains(&Some(&digest(action)))
}

fn digest(action: &Action) -> String {
    let bytes = serde_json::to_vec(action).unwrap_or_default();
    let mut text = repertoire_skill::skill::Digest::of(&bytes).to_string();
    // Enough to tell the reports of one run apart.
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
        let is_blank = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
        if let Some(value) = value.filter(|value| !arg.required || !is_blank(value)) {
            values.insert(name.clone(), value);
        } else if arg.required {
            let description = arg.description.clone();
            return Err(Refusal::MissingParameter { name: name.clone(), description });
        }
    }
    Ok(values)
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
