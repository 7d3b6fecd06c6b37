//! The shapes of `rep workflow … --json`. A step is printed in the shape of the step model itself.

use std::collections::BTreeMap;

use repertoire_drive::workflow::Run;
use repertoire_flow::engine::Verdict;
use repertoire_flow::state::{Decision, Item, Passage, Review, Status};
use repertoire_flow::workflow::{Arg, Gate, StepId, Workflow};
use repertoire_skill::skill::Scope;
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::Serialize;

/// `rep workflow list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkflowsJson {
    /// The workflows, by name.
    pub workflows: Vec<WorkflowRow>,
}

/// One workflow of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkflowRow {
    /// The name to start it by.
    pub name: String,
    /// How many steps it has.
    pub steps: usize,
    /// What it is for.
    pub description: String,
    /// The file.
    pub path: String,
    /// Where its root belongs.
    pub scope: Scope,
    /// `data` for a workflow.yaml, `script` for a skill that prints its steps.
    pub kind: &'static str,
    /// How many gates it has.
    pub gates: usize,
    /// The parameters that a run cannot start without.
    pub required: Vec<String>,
    /// The workflows that its sub-agents go through.
    pub sub_workflows: Vec<String>,
    /// Whether it passes the checker.
    pub can_run: bool,
}

/// `rep workflow show --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkflowJson {
    /// The workflow, with what it injects.
    pub workflow: Workflow,
    /// The file.
    pub path: String,
    /// Its digest, which every run of it carries.
    pub fingerprint: Option<String>,
    /// Whether it passes the checker.
    pub can_run: bool,
    /// The parameters, as they are declared.
    pub parameters: BTreeMap<String, Arg>,
}

/// `rep workflow check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckJson {
    /// What was checked.
    pub workflows: Vec<CheckedJson>,
    /// Errors in all of them.
    pub errors: usize,
    /// Warnings in all of them.
    pub warnings: usize,
}

/// One workflow that was checked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckedJson {
    /// Its name.
    pub name: String,
    /// The file.
    pub path: String,
    /// Whether it can run.
    pub can_run: bool,
    /// What was found.
    pub diagnostics: Vec<DiagnosticJson>,
}

/// `rep workflow gate --json`, and what `rep workflow record --json` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GateJson {
    /// The run.
    pub run: String,
    /// The gate.
    pub gate: String,
    /// What is reviewed.
    pub name: String,
    /// `pass`, `fail` or `open`.
    pub verdict: &'static str,
    /// Which iteration.
    pub iteration: u32,
    /// After how many the run stops for a person.
    pub limit: u32,
    /// The least severity that blocks in this iteration.
    pub blocking_severity: &'static str,
    /// What blocks, or has no verdict yet.
    pub blocking: Vec<String>,
    /// What failed and does not block.
    pub passed_over: Vec<String>,
    /// The items.
    pub items: Vec<Item>,
    /// The declared checks.
    pub checks: BTreeMap<String, repertoire_flow::state::CheckResult>,
}

/// `rep workflow status --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StatusJson {
    /// The run.
    pub run: RunRow,
    /// The parameters that have a value.
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// How often each step was entered.
    pub visits: BTreeMap<StepId, u32>,
    /// What steps have handed over.
    pub outputs: BTreeMap<StepId, String>,
    /// What was recorded, by gate; findings of earlier iterations only with `--findings`.
    pub reviews: BTreeMap<StepId, Review>,
    /// What people have decided.
    pub decisions: Vec<Decision>,
    /// The way so far.
    pub history: Vec<Passage>,
    /// The digest of the workflow that it was started with.
    pub fingerprint: String,
    /// What it waits for.
    pub status: Status,
}

/// `rep workflow runs --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunsJson {
    /// The runs, the latest first.
    pub runs: Vec<RunRow>,
    /// Folders that cannot be read.
    pub broken: Vec<BrokenRun>,
}

/// One run of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunRow {
    /// The run.
    pub run: String,
    /// The workflow.
    pub workflow: String,
    /// `active`, `waiting`, `done` or `aborted`.
    pub state: &'static str,
    /// The step that it is at.
    pub step: String,
    /// The turn.
    pub turn: u32,
    /// What it waits for.
    pub waiting_for: Option<String>,
    /// The project that it was started in.
    pub folder: String,
    /// The run whose sub-agent has started it.
    pub parent: Option<String>,
    /// When it was started, in milliseconds since 1970.
    pub begun_ms: u64,
    /// When it was changed last.
    pub updated_ms: u64,
}

/// A run that cannot be read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BrokenRun {
    /// Its name.
    pub run: String,
    /// Why.
    pub reason: String,
}

impl GateJson {
    pub(crate) fn new(
        run: &Run,
        id: &StepId,
        gate: &Gate,
        review: &Review,
        verdict: &Verdict,
    ) -> Self {
        let (word, blocking, passed_over) = match verdict {
            Verdict::Pass { passed_over } => ("pass", Vec::new(), passed_over.clone()),
            Verdict::Fail { blocking, .. } => ("fail", blocking.clone(), Vec::new()),
            Verdict::Open { todo, checks } => {
                ("open", [todo.as_slice(), checks].concat(), Vec::new())
            }
        };
        GateJson {
            run: run.state.run.to_string(),
            gate: id.to_string(),
            name: gate.name.clone(),
            verdict: word,
            iteration: review.iteration,
            limit: gate.limit(),
            blocking_severity: gate.blocking(review.iteration).as_str(),
            blocking,
            passed_over,
            items: review.items.clone(),
            checks: review.checks.clone(),
        }
    }
}
