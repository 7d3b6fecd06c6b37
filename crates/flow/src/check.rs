//! The workflow checker. Only a [`Checked`] workflow can be given to the engine.
//!
//! Every finding carries the path of the field it is about (`steps`, 3, `next`, `fail`); [`crate::file`] turns that
//! path into a span.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use repertoire_text::{Code, Severity};

use crate::codes;
use crate::limits::{FINDINGS_MAX, STEPS_MAX};
use crate::state::Fingerprint;
use crate::workflow::{FORMAT, Outcome, StepDef, StepId, Workflow};

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

/// A workflow that has passed the checker, either just now or before it was frozen.
#[derive(Clone, Debug)]
pub struct Checked {
    workflow: Workflow,
    fingerprint: Fingerprint,
    numbers: HashMap<StepId, usize>,
    /// Built when a bound is first reached: most runs never need it.
    graph: OnceLock<Graph>,
}

/// A problem found in a workflow.
#[derive(Clone, Debug)]
pub struct Finding {
    pub code: &'static Code,
    /// One sentence.
    pub message: String,
    pub place: Place,
    /// Set if there is more to say than the code's remedy.
    pub help: Option<String>,
    /// The name the finding is about, if that name is part of a longer text.
    pub name: Option<String>,
}

/// The path of a value in a workflow: keys and indices from the top.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub Vec<Part>);

/// A segment of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Key(String),
    /// The index of a list entry, starting at 0.
    Index(usize),
}

/// A workflow that did not pass the checker, with all its findings.
#[derive(Clone, Debug, thiserror::Error)]
#[error("workflow `{name}` cannot run: {}", first(findings))]
pub struct Rejected {
    pub name: String,
    /// Errors and warnings.
    pub findings: Vec<Finding>,
}

/// The reason why frozen bytes cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThawError {
    #[error("it is not the workflow that was frozen")]
    Changed,
    /// The digest matches, but this version of the crate cannot parse the bytes: another version wrote them.
    #[error("it was written by another version of this program: {0}")]
    OtherVersion(String),
}

/// The format version alone; it decides how the rest is parsed.
#[derive(serde::Deserialize)]
struct Version {
    format: u32,
}

fn first(findings: &[Finding]) -> String {
    let errors: Vec<&Finding> = findings.iter().filter(|found| found.is_error()).collect();
    match errors.as_slice() {
        [] => "it has findings".to_owned(),
        [one] => one.message.clone(),
        [one, rest @ ..] => format!("{} (and {} more)", one.message, rest.len()),
    }
}

/// Returns all errors and warnings, in the order of the workflow.
pub fn findings(workflow: &Workflow) -> Vec<Finding> {
    let mut out = Vec::new();
    if workflow.steps.len() > STEPS_MAX {
        // The other checks take quadratic time in the number of steps, so skip them.
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

/// Sorts findings in the order of the workflow and caps their number. Errors are kept in preference to warnings,
/// because callers decide from the remaining findings whether the workflow can run.
pub(crate) fn capped(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by(|a, b| b.is_error().cmp(&a.is_error()).then_with(|| by_place(a, b)));
    findings.truncate(FINDINGS_MAX);
    findings.sort_by(by_place);
    findings
}

fn by_place(a: &Finding, b: &Finding) -> Ordering {
    a.place.cmp(&b.place).then(a.code.id.cmp(b.code.id))
}

impl Checked {
    /// Checks a workflow. Warnings do not keep it from running.
    pub fn new(workflow: Workflow) -> Result<Self, Box<Rejected>> {
        Checked::with_warnings(workflow).map(|(checked, _)| checked)
    }

    /// Checks a workflow and returns its warnings as well if it can run.
    pub fn with_warnings(workflow: Workflow) -> Result<(Self, Vec<Finding>), Box<Rejected>> {
        let findings = findings(&workflow);
        if findings.iter().any(Finding::is_error) {
            return Err(Box::new(Rejected { name: workflow.name, findings }));
        }
        let fingerprint = Fingerprint::of(&frozen(&workflow));
        Ok((Checked::of(workflow, fingerprint), findings))
    }

    /// Serialises the workflow with everything it injects. A run keeps these bytes, so that it continues with the
    /// workflow it was started with.
    pub fn freeze(&self) -> Vec<u8> {
        frozen(&self.workflow)
    }

    /// Restores a frozen workflow, provided the digest matches. The workflow was checked before it was frozen, so it
    /// is not checked again.
    pub fn thaw(bytes: &[u8], expected: &Fingerprint) -> Result<Self, ThawError> {
        if Fingerprint::of(bytes) != *expected {
            return Err(ThawError::Changed);
        }
        let Version { format } = serde_json::from_slice(bytes).map_err(other_version)?;
        if format != FORMAT {
            let said = format!("format {format}, and {FORMAT} is known here");
            return Err(ThawError::OtherVersion(said));
        }
        let workflow = serde_json::from_slice(bytes).map_err(other_version)?;
        Ok(Checked::of(workflow, expected.clone()))
    }

    fn of(workflow: Workflow, fingerprint: Fingerprint) -> Self {
        let numbers =
            workflow.steps.iter().enumerate().map(|(at, step)| (step.id.clone(), at)).collect();
        Checked { workflow, fingerprint, numbers, graph: OnceLock::new() }
    }

    pub fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Returns the step with this id.
    pub fn step(&self, id: &StepId) -> Option<&StepDef> {
        self.numbers.get(id).and_then(|at| self.workflow.steps.get(*at))
    }

    /// Returns the number of a step, starting at 1.
    pub fn number(&self, id: &StepId) -> Option<usize> {
        self.numbers.get(id).map(|at| at + 1)
    }

    /// The maximum number of steps a run enters before it ends or waits for a person, unless a person extends a bound.
    pub fn turns_max(&self) -> u64 {
        self.graph().turns_max(&self.workflow)
    }

    fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| Graph::new(&self.workflow))
    }

    /// Returns true if the edge of an outcome (of an error if `None`) can lead back to the same step.
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

fn other_version(error: serde_json::Error) -> ThawError {
    ThawError::OtherVersion(error.to_string())
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

    /// Returns true if the finding prevents the workflow from running.
    pub fn is_error(&self) -> bool {
        self.code.severity == Severity::Error
    }
}

impl Place {
    /// The path of the step with this index.
    pub(crate) fn step(at: usize) -> Self {
        Place::default().key("steps").index(at)
    }

    /// The path of a key below this one.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        let mut parts = self.0.clone();
        parts.push(Part::Key(key.into()));
        Place(parts)
    }

    /// The path of a list entry below this one.
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
