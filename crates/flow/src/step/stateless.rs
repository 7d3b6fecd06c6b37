//! A step without a run: `rep workflow step NAME --step N --total-steps M`, as scripts of the seed take it.
//!
//! Nothing is kept and nothing recorded. So the counter of a loop travels in the command lines, all the way round; a
//! gate's verdict is what the caller claims, and is marked as such; and what earlier steps handed over is named, not
//! quoted. There is one counter: a loop inside another shares it, and so ends earlier rather than later.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Addressing, GateView, Next, StepView, ViewError, view};
use crate::check::Checked;
use crate::state::{Passage, Review, Round, RunId, STATE_VERSION, State, Status};
use crate::workflow::{Arg, ArgType, Gate, Outcome, StepDef, StepId, Target, Workflow};

mod ways;

pub(super) use ways::next;

/// What a command line says about where its caller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flags {
    /// The number of the step, which starts at 1.
    pub step: usize,
    /// How many steps the caller believes there are.
    pub total: Option<usize>,
    /// Which time round the loop this is; the first is 1.
    pub iteration: u32,
    /// Whether the step repairs what a review has found.
    pub fail: bool,
    /// What a review has found, for the step of a gate.
    pub status: Option<QrStatus>,
}

/// What a review is claimed to have found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QrStatus {
    /// Nothing that blocks.
    Pass,
    /// Something that blocks.
    Fail,
}

/// A step that cannot be shown from its command line alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatelessError {
    /// There is no such step.
    #[error("there is no step {step}: steps are numbered from 1 to {total}")]
    NoSuchStep {
        /// What was given.
        step: usize,
        /// How many there are.
        total: usize,
    },
    /// The caller believes in another workflow.
    #[error("the workflow has {total} steps, and --total-steps says {given}")]
    OtherTotal {
        /// What was given.
        given: usize,
        /// How many there are.
        total: usize,
    },
    /// Counting starts at 1.
    #[error("--qr-iteration starts at 1")]
    BadIteration,
    /// A gate has to be told what the review has found.
    #[error("step {step} ({title}) is a gate: say --qr-status pass or --qr-status fail")]
    StatusNeeded {
        /// The step.
        step: usize,
        /// Its title.
        title: String,
    },
    /// Only gates take a verdict.
    #[error("step {step} is no gate, so it takes no --qr-status; gates: {}", numbers(gates))]
    NotAGate {
        /// The step.
        step: usize,
        /// The gates.
        gates: Vec<usize>,
    },
    /// Only what a gate leads back to repairs.
    #[error(
        "no gate leads back to step {step}, so it takes no --qr-fail; it goes with: {}",
        numbers(repairing)
    )]
    NotRepairing {
        /// The step.
        step: usize,
        /// The steps that do.
        repairing: Vec<usize>,
    },
    /// There is no such parameter.
    #[error("the workflow has no parameter `{0}`")]
    UnknownParameter(String),
    /// A parameter has a value that it does not take.
    #[error("parameter `{name}`: {reason}")]
    BadValue {
        /// The parameter.
        name: String,
        /// Why not.
        reason: String,
    },
    /// The step cannot be filled in.
    #[error("{0}; a --param may be missing, or the step needs a run (`rep workflow start`)")]
    View(ViewError),
}

fn numbers(steps: &[usize]) -> String {
    match steps {
        [] => "none".to_owned(),
        some => some.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    }
}

impl Flags {
    /// The first time at a step.
    pub fn at(step: usize) -> Self {
        Flags { step, total: None, iteration: 1, fail: false, status: None }
    }
}

impl QrStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            QrStatus::Pass => "pass",
            QrStatus::Fail => "fail",
        }
    }

    /// Reads the word, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        [QrStatus::Pass, QrStatus::Fail]
            .into_iter()
            .find(|status| status.as_str().eq_ignore_ascii_case(word.trim()))
    }
}

/// The step that a command line asks for.
pub fn stateless(
    checked: &Checked,
    flags: &Flags,
    parameters: &BTreeMap<String, String>,
) -> Result<StepView, StatelessError> {
    let workflow = checked.workflow();
    let step = asked_for(workflow, flags)?;
    let state = imagined(checked, step, flags, parameters)?;
    let addressing = Addressing::Stateless { flags: flags.clone(), parameters: parameters.clone() };
    let mut shown = view(checked, &state, &addressing).map_err(StatelessError::View)?;
    if let (Some(gate), Some(status)) = (step.decide.as_gate(), flags.status) {
        let stop = shown.gate.map(|shown| shown.stop).unwrap_or_default();
        shown.gate = Some(claimed(gate, flags.iteration, status, stop));
        shown.review = None;
    }
    if matches!(shown.next, Next::Person { .. }) {
        shown.status = "waiting".to_owned();
    }
    Ok(shown)
}

fn asked_for<'a>(workflow: &'a Workflow, flags: &Flags) -> Result<&'a StepDef, StatelessError> {
    let total = workflow.steps.len();
    if let Some(given) = flags.total.filter(|given| *given != total) {
        return Err(StatelessError::OtherTotal { given, total });
    }
    let found = flags.step.checked_sub(1).and_then(|at| workflow.steps.get(at));
    let step = found.ok_or(StatelessError::NoSuchStep { step: flags.step, total })?;
    if flags.iteration == 0 {
        return Err(StatelessError::BadIteration);
    }
    let numbers = |belongs: &dyn Fn(&StepDef) -> bool| {
        let all = workflow.steps.iter().enumerate().filter(|(_, step)| belongs(step));
        all.map(|(at, _)| at + 1).collect()
    };
    match (step.decide.as_gate(), flags.status) {
        (Some(_), None) => {
            let title = step.title.clone();
            return Err(StatelessError::StatusNeeded { step: flags.step, title });
        }
        (None, Some(_)) => {
            let gates = numbers(&|step| step.decide.as_gate().is_some());
            return Err(StatelessError::NotAGate { step: flags.step, gates });
        }
        _ => {}
    }
    if flags.fail && gate_that_leads_to(workflow, &step.id).is_none() {
        let repairing = numbers(&|step| gate_that_leads_to(workflow, &step.id).is_some());
        return Err(StatelessError::NotRepairing { step: flags.step, repairing });
    }
    Ok(step)
}

/// The gate that leads to a step when it fails.
fn gate_that_leads_to<'a>(workflow: &'a Workflow, step: &StepId) -> Option<&'a StepDef> {
    let leads =
        |gate: &StepDef| gate.next.target(&Outcome::Fail) == Some(Target::Step(step.clone()));
    workflow.gates().map(|(gate, _)| gate).find(|gate| leads(gate))
}

/// A state of a run that would be at this point: what the step model is made from.
fn imagined(
    checked: &Checked,
    step: &StepDef,
    flags: &Flags,
    given: &BTreeMap<String, String>,
) -> Result<State, StatelessError> {
    let workflow = checked.workflow();
    let round =
        |iteration| Round { iteration, passed: false, items: Vec::new(), checks: BTreeMap::new() };
    let review = Review {
        iteration: flags.iteration,
        rounds: match flags.fail || flags.iteration > 1 {
            true => vec![round(flags.iteration.saturating_sub(1))],
            false => Vec::new(),
        },
        ..Review::default()
    };
    let failed = gate_that_leads_to(workflow, &step.id).filter(|_| flags.fail);
    let history = failed.map(|gate| Passage {
        turn: 0,
        step: gate.id.clone(),
        outcome: Some(Outcome::Fail),
        to: Target::Step(step.id.clone()),
        limited: false,
        error: None,
        report: String::new(),
    });
    Ok(State {
        version: STATE_VERSION,
        run: RunId::new("stateless"),
        workflow: workflow.name.clone(),
        fingerprint: checked.fingerprint().clone(),
        status: Status::Active,
        step: step.id.clone(),
        turn: u32::try_from(flags.step).unwrap_or(u32::MAX),
        visits: BTreeMap::from([(step.id.clone(), flags.iteration)]),
        granted: BTreeMap::new(),
        parameters: values(workflow, flags.step, given)?,
        outputs: outputs(workflow, step),
        reviews: workflow.gates().map(|(gate, _)| (gate.id.clone(), review.clone())).collect(),
        waits_since: None,
        asked: 0,
        answers: Vec::new(),
        decisions: Vec::new(),
        history: history.into_iter().collect(),
    })
}

/// What earlier steps handed over is in the caller's memory only, so it is named.
fn outputs(workflow: &Workflow, step: &StepDef) -> BTreeMap<StepId, String> {
    let others = workflow.steps.iter().enumerate().filter(|(_, other)| other.id != step.id);
    let with_output = others.filter(|(_, other)| other.output.is_some());
    with_output
        .map(|(at, other)| {
            (other.id.clone(), format!("[what step {}, {}, has given]", at + 1, other.title))
        })
        .collect()
}

fn values(
    workflow: &Workflow,
    number: usize,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Value>, StatelessError> {
    if let Some(name) = given.keys().find(|name| !workflow.parameters.contains_key(*name)) {
        return Err(StatelessError::UnknownParameter(name.clone()));
    }
    let mut values = BTreeMap::new();
    for (name, arg) in &workflow.parameters {
        let read = match (given.get(name), &arg.default) {
            (Some(text), _) => arg.parse(text).map(Some),
            (None, Some(default)) => arg.accept(default.clone()).map(Some),
            (None, None) => Ok(named(workflow, number, name, arg)),
        };
        let read =
            read.map_err(|bad| StatelessError::BadValue { name: name.clone(), reason: bad.0 })?;
        values.extend(read.map(|value| (name.clone(), value)));
    }
    Ok(values)
}

/// What stands for a text that the caller knows and has not given: it was there from the start, or an earlier step has
/// set it.
fn named(workflow: &Workflow, number: usize, name: &str, arg: &Arg) -> Option<Value> {
    let before = workflow.steps.iter().take(number.saturating_sub(1));
    let is_set =
        arg.required || before.into_iter().any(|step| step.sets.iter().any(|set| set == name));
    (is_set && arg.kind == ArgType::Text).then(|| match arg.description.as_str() {
        "" => Value::from(format!("[{name}]")),
        description => Value::from(format!("[{name}: {description}]")),
    })
}

/// What a gate says that has to believe its caller.
fn claimed(gate: &Gate, iteration: u32, status: QrStatus, stop: String) -> GateView {
    let limit = gate.limit();
    let (status, message) = match status {
        QrStatus::Pass if gate.checks.is_empty() => {
            ("pass", "Claimed, not recorded: passed.".to_owned())
        }
        QrStatus::Pass => {
            let checks = gate.checks.join(", ");
            ("pass", format!("Claimed, not recorded: passed, with these checks green: {checks}."))
        }
        QrStatus::Fail if iteration >= limit => (
            "limit",
            format!("Claimed, not recorded: failed {iteration} times, and {limit} is the limit."),
        ),
        QrStatus::Fail => {
            ("fail", format!("Claimed, not recorded: failed in iteration {iteration} of {limit}."))
        }
    };
    GateView {
        name: gate.name.clone(),
        status: status.to_owned(),
        iteration,
        limit,
        blocking_severity: gate.blocking(iteration).to_string(),
        message,
        blocking: Vec::new(),
        passed_over: Vec::new(),
        stop,
    }
}

#[cfg(test)]
mod tests;
