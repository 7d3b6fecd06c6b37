//! The engine: [`start`] creates a run, and [`advance_run`] computes the state that follows from a state and a report.
//!
//! Both are pure functions. Counters, gates and routes are computed only here, from recorded facts; a report that
//! contradicts them is refused. A report that arrives twice counts once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::check::CheckedWorkflow;
use crate::state::{
    STATE_VERSION, UserQuestion, WorkflowRunId, WorkflowRunState, WorkflowRunStatus,
};
use crate::workflow::{
    BadParameterValue, ConfidenceLevel, StepId, Workflow, WorkflowOutcome, WorkflowParameter,
};

mod leave;
mod person;
mod refusal;
mod review;

pub use person::{PersonChoice, gate_acceptance};
pub use refusal::EngineRefusal;
pub use review::{
    CheckRecord, GateVerdict, ItemRecord, compute_verdict, is_id, is_proven, outdated_checks,
};

/// A report about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineInput {
    /// The turn the report is about. If set, a repeated report has no effect. If `None`, the report applies to the
    /// run's current turn, whichever that is.
    pub at: Option<u32>,
    pub action: EngineAction,
}

/// A reported action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineAction {
    /// The step is done.
    Leave(StepReport),
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
        choice: PersonChoice,
        /// The reason.
        note: String,
    },
}

/// An agent's report when it leaves a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// The outcome, where the agent has to choose it.
    pub outcome: Option<WorkflowOutcome>,
    /// The agent's confidence.
    pub confidence: Option<ConfidenceLevel>,
    /// Answers to the step's questions of fact: `yes`, `partial` or `no`.
    pub facts: BTreeMap<String, String>,
    /// Values for the parameters the step sets, unparsed.
    pub set: BTreeMap<String, String>,
    /// The output the step hands over.
    pub output: Option<String>,
}

impl EngineInput {
    /// A report about the current turn.
    pub fn about_now(action: EngineAction) -> Self {
        EngineInput { at: None, action }
    }

    /// Reports the step as done with this outcome.
    pub fn leave_with(outcome: impl Into<WorkflowOutcome>) -> Self {
        let report = StepReport { outcome: Some(outcome.into()), ..StepReport::default() };
        EngineInput::about_now(EngineAction::Leave(report))
    }

    /// Reports the step as done; the engine determines the outcome.
    pub fn leave_step() -> Self {
        EngineInput::about_now(EngineAction::Leave(StepReport::default()))
    }
}

/// Creates a run at its first step.
pub fn start(
    checked: &CheckedWorkflow,
    run: WorkflowRunId,
    given: &BTreeMap<String, String>,
) -> Result<WorkflowRunState, EngineRefusal> {
    let workflow = checked.workflow();
    let entry = workflow.entry_step().ok_or(EngineRefusal::NoSteps)?.clone();
    let mut state = WorkflowRunState {
        version: STATE_VERSION,
        run,
        workflow: workflow.name.clone(),
        fingerprint: checked.fingerprint().clone(),
        status: WorkflowRunStatus::Active,
        step: entry.clone(),
        turn: 0,
        visits: BTreeMap::new(),
        granted: BTreeMap::new(),
        parameters: initial_parameters(workflow, given)?,
        outputs: BTreeMap::new(),
        reviews: BTreeMap::new(),
        waits_since: None,
        asked: 0,
        answers: Vec::new(),
        decisions: Vec::new(),
        history: Vec::new(),
    };
    leave::enter_step(checked, &mut state, entry);
    Ok(state)
}

/// Returns the state that follows. A [`EngineRefusal`] leaves the run unchanged and says what is possible instead.
pub fn advance_run(
    checked: &CheckedWorkflow,
    state: &WorkflowRunState,
    input: &EngineInput,
) -> Result<WorkflowRunState, EngineRefusal> {
    let mut state = state.clone();
    advance_in_place(checked, &mut state, input)?;
    Ok(state)
}

/// Like [`advance_run`], without a copy: a replay applies many inputs to a state that may be large. After a refusal the
/// state must be dropped, because it may have changed in part.
pub(crate) fn advance_in_place(
    checked: &CheckedWorkflow,
    state: &mut WorkflowRunState,
    input: &EngineInput,
) -> Result<(), EngineRefusal> {
    if state.fingerprint != *checked.fingerprint() {
        return Err(EngineRefusal::OtherWorkflow);
    }
    if let Some(at) = input.at {
        if is_repeated(state, at, &input.action) {
            return Ok(());
        }
        if at != state.turn {
            return Err(EngineRefusal::OtherTurn { at, now: state.turn, step: state.step.clone() });
        }
    }
    match &input.action {
        EngineAction::Leave(report) => {
            leave::leave_step(checked, state, report, digest_action(&input.action))
        }
        EngineAction::Error { message } => {
            leave::fail_step(checked, state, message, digest_action(&input.action))
        }
        EngineAction::Record { gate, items, checks } => {
            review::record_review(checked, state, gate.as_ref(), items, checks)
        }
        EngineAction::Ask { questions } => person::ask_user(state, questions),
        EngineAction::AskAcceptance => person::ask_acceptance(checked, state),
        EngineAction::Answer { answers } => person::take_answers(state, answers),
        EngineAction::Choose { choice, note } => {
            person::apply_choice(checked, state, choice, note, digest_action(&input.action))
        }
    }
}

/// Returns true if this same report already ended the turn, or made the run wait in it, so that it must have no
/// further effect.
fn is_repeated(state: &WorkflowRunState, at: u32, action: &EngineAction) -> bool {
    let ended = state.history.iter().rev().find(|passage| passage.turn == at);
    let waits = state.waits_since.as_ref().filter(|_| at == state.turn);
    let known = [ended.map(|passage| &passage.report), waits];
    // Only compute the digest if there is one to compare it with.
    known.iter().any(Option::is_some) && known.contains(&Some(&digest_action(action)))
}

fn digest_action(action: &EngineAction) -> String {
    let bytes = serde_json::to_vec(action).unwrap_or_default();
    let mut text = repertoire_skill::skill::ContentDigest::hash_bytes(&bytes).to_string();
    // A prefix is enough to tell the reports of one run apart.
    text.truncate("sha256:".len() + 16);
    text
}

fn initial_parameters(
    workflow: &Workflow,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Value>, EngineRefusal> {
    if let Some(name) = given.keys().find(|name| !workflow.parameters.contains_key(*name)) {
        let known = workflow.parameters.keys().cloned().collect();
        return Err(EngineRefusal::UnknownParameter { name: name.clone(), known });
    }
    let mut values = BTreeMap::new();
    for (name, arg) in &workflow.parameters {
        let value = initial_value(arg, given.get(name)).map_err(|bad| bad_value(name, bad))?;
        if let Some(value) = value.filter(|value| !arg.required || !is_blank(value)) {
            values.insert(name.clone(), value);
        } else if arg.required {
            let description = arg.description.clone();
            return Err(EngineRefusal::MissingParameter { name: name.clone(), description });
        }
    }
    Ok(values)
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
}

fn initial_value(
    arg: &WorkflowParameter,
    given: Option<&String>,
) -> Result<Option<Value>, BadParameterValue> {
    match (given, &arg.default) {
        (Some(text), _) => arg.parse_value(text).map(Some),
        (None, Some(default)) => arg.check_value(default.clone()).map(Some),
        (None, None) => Ok(None),
    }
}

fn bad_value(name: &str, bad: BadParameterValue) -> EngineRefusal {
    EngineRefusal::BadValue { name: name.to_owned(), reason: bad.0 }
}
