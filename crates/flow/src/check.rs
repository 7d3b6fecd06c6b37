//! The workflow checker. Only a [`CheckedWorkflow`] workflow can be given to the engine.
//!
//! Every finding carries the path of the field it is about (`steps`, 3, `next`, `fail`); [`crate::file`] turns that
//! path into a span.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use repertoire_text::{DiagnosticCode, Severity};

use crate::codes;
use crate::limits::{FINDINGS_MAX, STEPS_MAX};
use crate::state::WorkflowFingerprint;
use crate::workflow::{FORMAT, StepDef, StepId, Workflow, WorkflowOutcome};

mod dispatches;
mod gates;
mod graph;
mod names;
mod parameters;
#[cfg(test)]
mod tests;
mod texts;

pub(crate) use graph::StepGraph;
pub(crate) use names::is_name;

/// A workflow that has passed the checker, either just now or before it was frozen.
#[derive(Clone, Debug)]
pub struct CheckedWorkflow {
    workflow: Workflow,
    fingerprint: WorkflowFingerprint,
    numbers: HashMap<StepId, usize>,
    /// Built when a bound is first reached: most runs never need it.
    graph: OnceLock<StepGraph>,
}

/// A problem found in a workflow.
#[derive(Clone, Debug)]
pub struct WorkflowFinding {
    pub code: &'static DiagnosticCode,
    /// One sentence.
    pub message: String,
    pub place: FieldPath,
    /// Set if there is more to say than the code's remedy.
    pub help: Option<String>,
    /// The name the finding is about, if that name is part of a longer text.
    pub name: Option<String>,
}

/// The path of a value in a workflow: keys and indices from the top.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(pub Vec<FieldPathSegment>);

/// A segment of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldPathSegment {
    Key(String),
    /// The index of a list entry, starting at 0.
    Index(usize),
}

/// A workflow that did not pass the checker, with all its findings.
#[derive(Clone, Debug, thiserror::Error)]
#[error("workflow `{name}` cannot run: {}", first(findings))]
pub struct WorkflowRejection {
    pub name: String,
    /// Errors and warnings.
    pub findings: Vec<WorkflowFinding>,
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
struct FormatVersion {
    format: u32,
}

fn first(findings: &[WorkflowFinding]) -> String {
    let errors: Vec<&WorkflowFinding> = findings.iter().filter(|found| found.is_error()).collect();
    match errors.as_slice() {
        [] => "it has findings".to_owned(),
        [one] => one.message.clone(),
        [one, rest @ ..] => format!("{} (and {} more)", one.message, rest.len()),
    }
}

/// Returns all errors and warnings, in the order of the workflow.
pub fn find_problems(workflow: &Workflow) -> Vec<WorkflowFinding> {
    let mut out = Vec::new();
    if workflow.steps.len() > STEPS_MAX {
        // The other checks take quadratic time in the number of steps, so skip them.
        let message =
            format!("there are {} steps, and {STEPS_MAX} is the limit", workflow.steps.len());
        return vec![WorkflowFinding::new(
            &codes::BAD_BOUND,
            message,
            FieldPath::default().key("steps"),
        )];
    }
    names::check_names(workflow, &mut out);
    parameters::check_parameters(workflow, &mut out);
    let graph = StepGraph::new(workflow);
    graph::check_graph(workflow, &graph, &mut out);
    gates::check_gates(workflow, &graph, &mut out);
    texts::check_texts(workflow, &mut out);
    dispatches::check_dispatches(workflow, &mut out);
    sort_and_cap(out)
}

/// Sorts findings in the order of the workflow and caps their number. Errors are kept in preference to warnings,
/// because callers decide from the remaining findings whether the workflow can run.
pub(crate) fn sort_and_cap(mut findings: Vec<WorkflowFinding>) -> Vec<WorkflowFinding> {
    findings.sort_by(|a, b| b.is_error().cmp(&a.is_error()).then_with(|| compare_by_place(a, b)));
    findings.truncate(FINDINGS_MAX);
    findings.sort_by(compare_by_place);
    findings
}

fn compare_by_place(a: &WorkflowFinding, b: &WorkflowFinding) -> Ordering {
    a.place.cmp(&b.place).then(a.code.id.cmp(b.code.id))
}

impl CheckedWorkflow {
    /// Checks a workflow. Warnings do not keep it from running.
    pub fn new(workflow: Workflow) -> Result<Self, Box<WorkflowRejection>> {
        CheckedWorkflow::with_warnings(workflow).map(|(checked, _)| checked)
    }

    /// Checks a workflow and returns its warnings as well if it can run.
    pub fn with_warnings(
        workflow: Workflow,
    ) -> Result<(Self, Vec<WorkflowFinding>), Box<WorkflowRejection>> {
        let findings = find_problems(&workflow);
        if findings.iter().any(WorkflowFinding::is_error) {
            return Err(Box::new(WorkflowRejection { name: workflow.name, findings }));
        }
        let fingerprint = WorkflowFingerprint::from_bytes(&freeze_workflow(&workflow));
        Ok((CheckedWorkflow::from_parts(workflow, fingerprint), findings))
    }

    /// Serialises the workflow with everything it injects. A run keeps these bytes, so that it continues with the
    /// workflow it was started with.
    pub fn freeze(&self) -> Vec<u8> {
        freeze_workflow(&self.workflow)
    }

    /// Restores a frozen workflow, provided the digest matches. The workflow was checked before it was frozen, so it
    /// is not checked again.
    pub fn thaw(bytes: &[u8], expected: &WorkflowFingerprint) -> Result<Self, ThawError> {
        if WorkflowFingerprint::from_bytes(bytes) != *expected {
            return Err(ThawError::Changed);
        }
        let FormatVersion { format } =
            serde_json::from_slice(bytes).map_err(other_version_error)?;
        if format != FORMAT {
            let said = format!("format {format}, and {FORMAT} is known here");
            return Err(ThawError::OtherVersion(said));
        }
        let workflow = serde_json::from_slice(bytes).map_err(other_version_error)?;
        Ok(CheckedWorkflow::from_parts(workflow, expected.clone()))
    }

    fn from_parts(workflow: Workflow, fingerprint: WorkflowFingerprint) -> Self {
        let numbers =
            workflow.steps.iter().enumerate().map(|(at, step)| (step.id.clone(), at)).collect();
        CheckedWorkflow { workflow, fingerprint, numbers, graph: OnceLock::new() }
    }

    pub fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    pub fn fingerprint(&self) -> &WorkflowFingerprint {
        &self.fingerprint
    }

    /// Returns the step with this id.
    pub fn find_step(&self, id: &StepId) -> Option<&StepDef> {
        self.numbers.get(id).and_then(|at| self.workflow.steps.get(*at))
    }

    /// Returns the number of a step, starting at 1.
    pub fn step_number(&self, id: &StepId) -> Option<usize> {
        self.numbers.get(id).map(|at| at + 1)
    }

    /// The maximum number of steps a run enters before it ends or waits for a person, unless a person extends a bound.
    pub fn turns_max(&self) -> u64 {
        self.step_graph().turns_max(&self.workflow)
    }

    fn step_graph(&self) -> &StepGraph {
        self.graph.get_or_init(|| StepGraph::new(&self.workflow))
    }

    /// Returns true if the edge of an outcome (of an error if `None`) can lead back to the same step.
    pub(crate) fn leads_back(&self, step: &StepDef, outcome: Option<&WorkflowOutcome>) -> bool {
        let target = match outcome {
            Some(outcome) => {
                step.next.find_target(outcome).and_then(|target| target.as_step().cloned())
            }
            None => step.on_error.clone(),
        };
        let index = |id: &StepId| self.numbers.get(id).copied();
        match (target.as_ref().and_then(index), index(&step.id)) {
            (Some(from), Some(to)) => self.step_graph().reaches(from, to),
            _ => false,
        }
    }
}

fn freeze_workflow(workflow: &Workflow) -> Vec<u8> {
    serde_json::to_vec(workflow).expect("a workflow has only text keys")
}

fn other_version_error(error: serde_json::Error) -> ThawError {
    ThawError::OtherVersion(error.to_string())
}

impl WorkflowFinding {
    pub(crate) fn new(
        code: &'static DiagnosticCode,
        message: impl Into<String>,
        place: FieldPath,
    ) -> Self {
        WorkflowFinding { code, message: message.into(), place, help: None, name: None }
    }

    pub(crate) fn with_help(self, help: impl Into<String>) -> Self {
        WorkflowFinding { help: Some(help.into()), ..self }
    }

    pub(crate) fn about_name(self, name: impl Into<String>) -> Self {
        WorkflowFinding { name: Some(name.into()), ..self }
    }

    /// Returns true if the finding prevents the workflow from running.
    pub fn is_error(&self) -> bool {
        self.code.severity == Severity::Error
    }
}

impl FieldPath {
    /// The path of the step with this index.
    pub(crate) fn for_step(at: usize) -> Self {
        FieldPath::default().key("steps").index(at)
    }

    /// The path of a key below this one.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        let mut parts = self.0.clone();
        parts.push(FieldPathSegment::Key(key.into()));
        FieldPath(parts)
    }

    /// The path of a list entry below this one.
    #[must_use]
    pub fn index(&self, at: usize) -> Self {
        let mut parts = self.0.clone();
        parts.push(FieldPathSegment::Index(at));
        FieldPath(parts)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            match part {
                FieldPathSegment::Key(key) if at == 0 => f.write_str(key)?,
                FieldPathSegment::Key(key) => write!(f, ".{key}")?,
                FieldPathSegment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
