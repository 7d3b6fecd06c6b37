//! The checker: what must hold before a workflow can run. Only a [`Checked`] workflow can be given to the engine.
//!
//! A finding has a place in the workflow (`steps`, 3, `next`, `fail`); [`crate::file`] makes a span of it.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use repertoire_text::{Code, Severity};

use crate::codes;
use crate::limits::{FINDINGS_MAX, STEPS_MAX};
use crate::state::Fingerprint;
use crate::workflow::{Outcome, StepDef, StepId, Workflow};

mod gates;
mod graph;
mod names;
mod parameters;
#[cfg(test)]
mod tests;
mod texts;
mod work;

pub(crate) use graph::Graph;
pub(crate) use names::is_name;

/// A workflow that was checked, or was frozen after it was.
#[derive(Clone, Debug)]
pub struct Checked {
    workflow: Workflow,
    fingerprint: Fingerprint,
    numbers: HashMap<StepId, usize>,
    /// Made when a bound is first reached: most runs never need it.
    graph: OnceLock<Graph>,
}

/// A finding about a workflow.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What kind.
    pub code: &'static Code,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where.
    pub place: Place,
    /// What helps, if there is more to say than the code's remedy.
    pub help: Option<String>,
    /// The name that it is about, where that stands within a text.
    pub name: Option<String>,
}

/// A place in a workflow: keys and indices from the top.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub Vec<Part>);

/// One part of a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The value of a key.
    Key(String),
    /// An entry of a list, from 0.
    Index(usize),
}

/// A workflow that did not pass, with everything that was found.
#[derive(Clone, Debug, thiserror::Error)]
#[error("workflow `{name}` cannot run: {}", first(findings))]
pub struct Rejected {
    /// The workflow.
    pub name: String,
    /// Errors and warnings.
    pub findings: Vec<Finding>,
}

/// Frozen bytes that are not what was frozen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThawError {
    /// The digest differs.
    #[error("it is not the workflow that was frozen")]
    Changed,
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

fn first(findings: &[Finding]) -> String {
    let errors: Vec<&Finding> = findings.iter().filter(|found| found.is_error()).collect();
    match errors.as_slice() {
        [] => "it has findings".to_owned(),
        [one] => one.message.clone(),
        [one, rest @ ..] => format!("{} (and {} more)", one.message, rest.len()),
    }
}

/// Everything that is found, errors and warnings, in the order of the workflow.
pub fn findings(workflow: &Workflow) -> Vec<Finding> {
    let mut out = Vec::new();
    if workflow.steps.len() > STEPS_MAX {
        // Nothing else is looked at: what follows takes time with the square of the steps.
        let message =
            format!("there are {} steps, and {STEPS_MAX} is the limit", workflow.steps.len());
        return vec![Finding::new(&codes::BAD_BOUND, message, Place::default().key("steps"))];
    }
    names::check(workflow, &mut out);
    parameters::check(workflow, &mut out);
    let graph = Graph::new(workflow);
    graph::check(workflow, &graph, &mut out);
    gates::check(workflow, &graph, &mut out);
    texts::check(workflow, &mut out);
    work::check(workflow, &mut out);
    capped(out)
}

/// Findings in the order of the workflow. Where there are too many, errors stay rather than warnings: whether a workflow can
/// run is asked of what is left.
pub(crate) fn capped(mut findings: Vec<Finding>) -> Vec<Finding> {
    let order = |a: &Finding, b: &Finding| a.place.cmp(&b.place).then(a.code.id.cmp(b.code.id));
    findings.sort_by(|a, b| b.is_error().cmp(&a.is_error()).then_with(|| order(a, b)));
    findings.truncate(FINDINGS_MAX);
    findings.sort_by(order);
    findings
}

impl Checked {
    /// Checks a workflow. Warnings do not keep it from running.
    pub fn new(workflow: Workflow) -> Result<Self, Box<Rejected>> {
        Checked::with_warnings(workflow).map(|(checked, _)| checked)
    }

    /// Checks a workflow, and keeps what was found if it can run all the same.
    pub fn with_warnings(workflow: Workflow) -> Result<(Self, Vec<Finding>), Box<Rejected>> {
        let findings = findings(&workflow);
        if findings.iter().any(Finding::is_error) {
            return Err(Box::new(Rejected { name: workflow.name, findings }));
        }
        let fingerprint = Fingerprint::of(&frozen(&workflow));
        Ok((Checked::of(workflow, fingerprint), findings))
    }

    /// The workflow as bytes, with all that it injects: what a run keeps, so that it goes on as it was started.
    pub fn freeze(&self) -> Vec<u8> {
        frozen(&self.workflow)
    }

    /// A workflow that was frozen, if it is still the same. It was checked before it was frozen.
    pub fn thaw(bytes: &[u8], expected: &Fingerprint) -> Result<Self, ThawError> {
        if Fingerprint::of(bytes) != *expected {
            return Err(ThawError::Changed);
        }
        let workflow = serde_json::from_slice(bytes)
            .map_err(|error| ThawError::Unreadable(error.to_string()))?;
        Ok(Checked::of(workflow, expected.clone()))
    }

    fn of(workflow: Workflow, fingerprint: Fingerprint) -> Self {
        let numbers =
            workflow.steps.iter().enumerate().map(|(at, step)| (step.id.clone(), at)).collect();
        Checked { workflow, fingerprint, numbers, graph: OnceLock::new() }
    }

    /// The workflow.
    pub fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    /// Its digest.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// A step by its name.
    pub fn step(&self, id: &StepId) -> Option<&StepDef> {
        self.numbers.get(id).and_then(|at| self.workflow.steps.get(*at))
    }

    /// The number of a step, which starts at 1.
    pub fn number(&self, id: &StepId) -> Option<usize> {
        self.numbers.get(id).map(|at| at + 1)
    }

    /// The most steps that a run enters before it ends or waits for a person, if no person lets it on beyond a bound.
    pub fn turns_max(&self) -> u64 {
        self.graph().turns_max(&self.workflow)
    }

    fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| Graph::new(&self.workflow))
    }

    /// Whether the edge of an outcome, or of an error, can lead to the same step again.
    pub(crate) fn leads_back(&self, step: &StepDef, outcome: Option<&Outcome>) -> bool {
        let target = match outcome {
            Some(outcome) => step.next.target(outcome).and_then(|target| target.step().cloned()),
            None => step.on_error.clone(),
        };
        let index = |id: &StepId| self.numbers.get(id).copied();
        match (target.as_ref().and_then(index), index(&step.id)) {
            (Some(from), Some(to)) => self.graph().reaches(from, to),
            _ => false,
        }
    }
}

fn frozen(workflow: &Workflow) -> Vec<u8> {
    serde_json::to_vec(workflow).expect("a workflow has only text keys")
}

impl Finding {
    pub(crate) fn new(code: &'static Code, message: impl Into<String>, place: Place) -> Self {
        Finding { code, message: message.into(), place, help: None, name: None }
    }

    pub(crate) fn with_help(self, help: impl Into<String>) -> Self {
        Finding { help: Some(help.into()), ..self }
    }

    pub(crate) fn about_name(self, name: impl Into<String>) -> Self {
        Finding { name: Some(name.into()), ..self }
    }

    /// Whether it keeps the workflow from running.
    pub fn is_error(&self) -> bool {
        self.code.severity == Severity::Error
    }
}

impl Place {
    /// A step, by its index.
    pub(crate) fn step(at: usize) -> Self {
        Place::default().key("steps").index(at)
    }

    /// Below a key.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        let mut parts = self.0.clone();
        parts.push(Part::Key(key.into()));
        Place(parts)
    }

    /// Below an index.
    #[must_use]
    pub fn index(&self, at: usize) -> Self {
        let mut parts = self.0.clone();
        parts.push(Part::Index(at));
        Place(parts)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            match part {
                Part::Key(key) if at == 0 => f.write_str(key)?,
                Part::Key(key) => write!(f, ".{key}")?,
                Part::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
