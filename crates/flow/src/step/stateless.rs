//! A step without a run: `rep workflow step NAME --step N --total-steps M`, compatible with the original scripts.
//!
//! No state is stored and nothing is recorded. The counter of a loop therefore travels in the command lines, a gate's
//! verdict is the caller's claim and is marked as such, and the outputs of earlier steps are named instead of quoted.
//! There is a single counter: nested loops share it, and so end earlier rather than later.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{GateView, NextStep, StepAddressing, StepView, ViewError, build_view};
use crate::check::CheckedWorkflow;
use crate::state::{
    GateReview, ReviewRound, STATE_VERSION, StepTransition, WorkflowRunId, WorkflowRunState,
    WorkflowRunStatus,
};
use crate::workflow::{
    EdgeTarget, Gate, ParameterType, StepDef, StepId, Workflow, WorkflowOutcome, WorkflowParameter,
};

mod options;

pub(super) use options::stateless_next_step;

/// The position of the caller, according to its command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatelessFlags {
    /// The number of the step, starting at 1.
    pub step: usize,
    /// The number of steps the caller expects.
    pub total: Option<usize>,
    /// The iteration of the loop, starting at 1.
    pub iteration: u32,
    /// True if the step repairs the findings of a review.
    pub fail: bool,
    /// The result of the review, for the step of a gate.
    pub status: Option<QrStatus>,
}

/// The claimed result of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QrStatus {
    /// No blocking findings.
    Pass,
    /// Blocking findings.
    Fail,
}

/// The reason why a step cannot be shown from its command line alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatelessError {
    #[error("there is no step {step}: steps are numbered from 1 to {total}")]
    NoSuchStep { step: usize, total: usize },
    /// The caller expects a different number of steps.
    #[error("the workflow has {total} steps, and --total-steps says {given}")]
    OtherTotal { given: usize, total: usize },
    #[error("--qr-iteration starts at 1")]
    BadIteration,
    #[error("step {step} ({title}) is a gate: say --qr-status pass or --qr-status fail")]
    StatusNeeded { step: usize, title: String },
    #[error("step {step} is no gate, so it takes no --qr-status; gates: {}", numbers(gates))]
    NotAGate {
        step: usize,
        /// The numbers of the gates.
        gates: Vec<usize>,
    },
    #[error(
        "no gate leads back to step {step}, so it takes no --qr-fail; it goes with: {}",
        numbers(repairing)
    )]
    NotRepairing {
        step: usize,
        /// The numbers of the steps that repair.
        repairing: Vec<usize>,
    },
    #[error("the workflow has no parameter `{0}`")]
    UnknownParameter(String),
    #[error("parameter `{name}`: {reason}")]
    BadValue { name: String, reason: String },
    #[error("{0}; a --param may be missing, or the step needs a run (`rep workflow start`)")]
    View(ViewError),
}

fn numbers(steps: &[usize]) -> String {
    match steps {
        [] => "none".to_owned(),
        some => some.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    }
}

impl StatelessFlags {
    /// The flags for the first visit of a step.
    pub fn at_step(step: usize) -> Self {
        StatelessFlags { step, total: None, iteration: 1, fail: false, status: None }
    }

    /// Returns true if the step was visited before.
    fn is_revisit(&self) -> bool {
        self.fail || self.iteration > 1
    }
}

impl QrStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            QrStatus::Pass => "pass",
            QrStatus::Fail => "fail",
        }
    }

    /// Parses a status, ignoring case.
    pub fn parse(word: &str) -> Option<Self> {
        [QrStatus::Pass, QrStatus::Fail]
            .into_iter()
            .find(|status| status.as_str().eq_ignore_ascii_case(word.trim()))
    }
}

/// Builds the step that a command line asks for.
pub fn stateless_view(
    checked: &CheckedWorkflow,
    flags: &StatelessFlags,
    parameters: &BTreeMap<String, String>,
) -> Result<StepView, StatelessError> {
    let workflow = checked.workflow();
    let step = find_requested_step(workflow, flags)?;
    let state = imagine_state(checked, step, flags, parameters)?;
    let addressing =
        StepAddressing::Stateless { flags: flags.clone(), parameters: parameters.clone() };
    let mut shown = build_view(checked, &state, &addressing).map_err(StatelessError::View)?;
    if let (Some(gate), Some(status)) = (step.decide.as_gate(), flags.status) {
        let stop = shown.gate.map(|shown| shown.stop).unwrap_or_default();
        shown.gate = Some(claimed_gate(gate, flags.iteration, status, stop));
        shown.review = None;
    }
    if matches!(shown.next, NextStep::Person { .. }) {
        shown.status = "waiting".to_owned();
    }
    Ok(shown)
}

fn find_requested_step<'a>(
    workflow: &'a Workflow,
    flags: &StatelessFlags,
) -> Result<&'a StepDef, StatelessError> {
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
    if flags.fail && find_failing_gate(workflow, &step.id).is_none() {
        let repairing = numbers(&|step| find_failing_gate(workflow, &step.id).is_some());
        return Err(StatelessError::NotRepairing { step: flags.step, repairing });
    }
    Ok(step)
}

/// The gate whose `fail` edge leads to a step.
fn find_failing_gate<'a>(workflow: &'a Workflow, step: &StepId) -> Option<&'a StepDef> {
    let leads = |gate: &StepDef| {
        gate.next.find_target(&WorkflowOutcome::Fail) == Some(EdgeTarget::Step(step.clone()))
    };
    workflow.gates().map(|(gate, _)| gate).find(|gate| leads(gate))
}

/// Constructs the state that a run would have at this point, as input for the step model.
fn imagine_state(
    checked: &CheckedWorkflow,
    step: &StepDef,
    flags: &StatelessFlags,
    given: &BTreeMap<String, String>,
) -> Result<WorkflowRunState, StatelessError> {
    let workflow = checked.workflow();
    let review = GateReview {
        iteration: flags.iteration,
        rounds: if flags.is_revisit() {
            vec![failed_round(flags.iteration.saturating_sub(1))]
        } else {
            Vec::new()
        },
        ..GateReview::default()
    };
    let failed = find_failing_gate(workflow, &step.id).filter(|_| flags.fail);
    let history = failed.map(|gate| StepTransition {
        turn: 0,
        step: gate.id.clone(),
        outcome: Some(WorkflowOutcome::Fail),
        to: EdgeTarget::Step(step.id.clone()),
        limited: false,
        error: None,
        report: String::new(),
    });
    Ok(WorkflowRunState {
        version: STATE_VERSION,
        run: WorkflowRunId::new("[no run]"),
        workflow: workflow.name.clone(),
        fingerprint: checked.fingerprint().clone(),
        status: WorkflowRunStatus::Active,
        step: step.id.clone(),
        turn: u32::try_from(flags.step).unwrap_or(u32::MAX),
        visits: BTreeMap::from([(step.id.clone(), flags.iteration)]),
        granted: BTreeMap::new(),
        parameters: parameter_values(workflow, flags, given)?,
        outputs: placeholder_outputs(workflow, flags),
        reviews: workflow.gates().map(|(gate, _)| (gate.id.clone(), review.clone())).collect(),
        waits_since: None,
        asked: 0,
        answers: Vec::new(),
        decisions: Vec::new(),
        history: history.into_iter().collect(),
    })
}

fn failed_round(iteration: u32) -> ReviewRound {
    ReviewRound { iteration, passed: false, items: Vec::new(), checks: BTreeMap::new() }
}

/// Placeholders for the outputs of earlier steps, which only the caller knows.
fn placeholder_outputs(workflow: &Workflow, flags: &StatelessFlags) -> BTreeMap<StepId, String> {
    let steps = workflow.steps.iter().zip(1..);
    let given = steps.filter(|(step, number)| {
        step.output.is_some() && (*number != flags.step || flags.is_revisit())
    });
    given
        .map(|(step, number)| {
            (step.id.clone(), format!("[what step {number}, {}, has given]", step.title))
        })
        .collect()
}

fn parameter_values(
    workflow: &Workflow,
    flags: &StatelessFlags,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Value>, StatelessError> {
    if let Some(name) = given.keys().find(|name| !workflow.parameters.contains_key(*name)) {
        return Err(StatelessError::UnknownParameter(name.clone()));
    }
    let mut values = BTreeMap::new();
    for (name, arg) in &workflow.parameters {
        let read = match (given.get(name), &arg.default) {
            (Some(text), _) => arg.parse_value(text).map(Some),
            (None, Some(default)) => arg.check_value(default.clone()).map(Some),
            (None, None) => Ok(placeholder_value(workflow, flags, name, arg)),
        };
        let read =
            read.map_err(|bad| StatelessError::BadValue { name: name.clone(), reason: bad.0 })?;
        values.extend(read.map(|value| (name.clone(), value)));
    }
    Ok(values)
}

/// A placeholder for a value that the caller knows but has not given: it was set at the start, or by an earlier step.
fn placeholder_value(
    workflow: &Workflow,
    flags: &StatelessFlags,
    name: &str,
    arg: &WorkflowParameter,
) -> Option<Value> {
    let gone_through =
        if flags.is_revisit() { workflow.steps.len() } else { flags.step.saturating_sub(1) };
    let mut before = workflow.steps.iter().take(gone_through);
    let is_set = arg.required || before.any(|step| step.sets.iter().any(|set| set == name));
    let described = |what: &str| match arg.description.as_str() {
        "" => format!("[{what}]"),
        description => format!("[{what}: {description}]"),
    };
    is_set.then(|| match arg.kind {
        ParameterType::Text | ParameterType::Integer | ParameterType::Number | ParameterType::Boolean => {
            Value::from(described(name))
        }
        ParameterType::List => json!([described(&format!("each of {name}"))]),
        ParameterType::Work => json!([{
            "id": format!("[each of {name}]"), "task": described("its task"), "files": [], "wave": 1,
        }]),
    })
}

/// The state of a gate whose verdict is the caller's claim.
fn claimed_gate(gate: &Gate, iteration: u32, status: QrStatus, stop: String) -> GateView {
    let limit = gate.iteration_limit();
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
        blocking_severity: gate.blocking_severity(iteration).to_string(),
        message,
        blocking: Vec::new(),
        passed_over: Vec::new(),
        stop,
    }
}

#[cfg(test)]
mod tests;
