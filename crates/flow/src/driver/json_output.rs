//! The JSON output for workflows and their runs, with published schemas.

use std::collections::BTreeMap;

use crate::engine::GateVerdict;
use crate::external::StepScript;
use crate::file::{self, LoadedWorkflow};
use crate::state::{
    GateCheckResult, GateItem, GateReview, PersonDecision, StepTransition, WorkflowRunState,
    WorkflowRunStatus,
};
use crate::step::NextStep;
use crate::workflow::{Gate, StepDef, StepId, Workflow, WorkflowParameter};
use repertoire_journal::{Run, RunStatus};
use repertoire_skill::catalog::CatalogEntry;
use repertoire_skill::skill::Scope;
use repertoire_skill::trust::TrustLevel;
use schemars::JsonSchema;
use serde::Serialize;

use super::events::ReachedState;
use super::find::script_of;
use super::{ScriptRun, StoredWorkflowRun, WorkflowRunMetadata};

/// A workflow in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkflowRow {
    /// The name to start the workflow by.
    pub name: String,
    /// The number of steps.
    pub steps: usize,
    /// The description of the workflow.
    pub description: String,
    /// The file of the workflow.
    pub path: String,
    /// The scope of the root it was found in.
    pub scope: Scope,
    /// `data` for a workflow.yaml, `script` for a skill that prints its steps.
    pub kind: &'static str,
    /// The number of gates.
    pub gates: usize,
    /// The required parameters.
    pub required: Vec<String>,
    /// The workflows that its sub-agents go through.
    pub sub_workflows: Vec<String>,
    /// True if the workflow passes the checker; for a script, if it is trusted.
    pub can_run: bool,
}

/// The output of `rep workflow show --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkflowJson {
    /// The workflow, including what it injects.
    pub workflow: Workflow,
    /// The file of the workflow.
    pub path: String,
    /// The digest of the workflow, which every run of it carries.
    pub fingerprint: Option<String>,
    /// True if the workflow passes the checker.
    pub can_run: bool,
    /// The declared parameters.
    pub parameters: BTreeMap<String, WorkflowParameter>,
}

/// The output of `rep workflow gate --json` and `rep workflow record --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GateJson {
    /// The run.
    pub run: String,
    /// The gate.
    pub gate: String,
    /// The subject of the review.
    pub name: String,
    /// `pass`, `fail` or `open`.
    pub verdict: &'static str,
    /// The number of the iteration.
    pub iteration: u32,
    /// The number of iterations after which the run stops for a person.
    pub limit: u32,
    /// The lowest severity that blocks in this iteration.
    pub blocking_severity: &'static str,
    /// The items and checks that block, or have no verdict yet.
    pub blocking: Vec<String>,
    /// The items that failed but do not block.
    pub passed_over: Vec<String>,
    /// The items.
    pub items: Vec<GateItem>,
    /// The declared checks.
    pub checks: BTreeMap<String, GateCheckResult>,
}

/// The output of `rep workflow status --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatusJson {
    /// The run.
    pub run: WorkflowRunListRow,
    /// The parameters that have a value.
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// The number of times each step was entered.
    pub visits: BTreeMap<StepId, u32>,
    /// The outputs of steps.
    pub outputs: BTreeMap<StepId, String>,
    /// The recorded results, by gate; findings of earlier iterations only with `--findings`.
    pub reviews: BTreeMap<StepId, GateReview>,
    /// The decisions of people.
    pub decisions: Vec<PersonDecision>,
    /// The steps taken so far.
    pub history: Vec<StepTransition>,
    /// The digest of the workflow the run was started with.
    pub fingerprint: String,
    /// The status of the run, and what it waits for.
    pub status: WorkflowRunStatus,
}

/// A run in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkflowRunListRow {
    /// The run.
    pub run: String,
    /// The workflow.
    pub workflow: String,
    /// `active`, `waiting`, `done` or `aborted`.
    pub state: &'static str,
    /// The current step.
    pub step: String,
    /// The current turn.
    pub turn: u32,
    /// The decision or answer the run waits for.
    pub waiting_for: Option<String>,
    /// The project the run was started in.
    pub folder: String,
    /// The run whose sub-agent started it.
    pub parent: Option<String>,
    /// The time it was started, in milliseconds since 1970.
    pub begun_ms: u64,
    /// The time of the last change, in milliseconds since 1970.
    pub updated_ms: u64,
}

impl StatusJson {
    /// Returns the status of a run.
    pub fn from_run(run: &StoredWorkflowRun) -> Self {
        let state = run.state.clone();
        StatusJson {
            run: WorkflowRunListRow::new(&run.head, &run.state),
            parameters: state.parameters,
            visits: state.visits,
            outputs: state.outputs,
            reviews: state.reviews,
            decisions: state.decisions,
            history: state.history,
            fingerprint: state.fingerprint.as_str().to_owned(),
            status: state.status,
        }
    }
}

impl WorkflowRunListRow {
    /// Creates the row of a run in the journal.
    pub(super) fn from_journal(run: Run, reached: ReachedState) -> Self {
        let parent = run.request["parent"].as_str().map(str::to_owned);
        WorkflowRunListRow {
            state: match run.status {
                RunStatus::Queued | RunStatus::Running | RunStatus::Paused => "active",
                RunStatus::Waiting => "waiting",
                RunStatus::Completed => "done",
                RunStatus::Failed | RunStatus::Cancelled => "aborted",
            },
            waiting_for: run.reason.filter(|_| run.status == RunStatus::Waiting),
            run: run.id.to_string(),
            workflow: run.name,
            step: reached.step,
            turn: reached.turn,
            folder: run.workspace,
            parent,
            begun_ms: run.created_ms,
            updated_ms: run.updated_ms,
        }
    }

    /// Creates the row of a script run.
    pub fn of_script(run: &ScriptRun) -> Self {
        let view = run.view();
        WorkflowRunListRow {
            run: run.run.to_string(),
            workflow: run.workflow.clone(),
            state: run.status(),
            step: view.step.to_string(),
            turn: view.turn,
            waiting_for: match view.next {
                NextStep::Person { about, .. } => Some(about),
                _ => None,
            },
            folder: run.head.folder.to_string(),
            parent: run.head.parent.clone(),
            begun_ms: run.head.begun_ms,
            updated_ms: run.head.updated_ms,
        }
    }

    /// Creates the row of a workflow run.
    pub fn new(head: &WorkflowRunMetadata, state: &WorkflowRunState) -> Self {
        let (word, waiting_for) = match &state.status {
            WorkflowRunStatus::Active => ("active", None),
            WorkflowRunStatus::Waiting(waiting) => ("waiting", Some(waiting.to_string())),
            WorkflowRunStatus::Done => ("done", None),
            WorkflowRunStatus::Aborted => ("aborted", None),
        };
        WorkflowRunListRow {
            run: state.run.to_string(),
            workflow: state.workflow.clone(),
            state: word,
            step: state.step.to_string(),
            turn: state.turn,
            waiting_for,
            folder: head.folder.to_string(),
            parent: head.parent.clone(),
            begun_ms: head.begun_ms,
            updated_ms: head.updated_ms,
        }
    }
}

impl GateJson {
    /// Returns the state of a gate.
    pub fn new(
        run: &StoredWorkflowRun,
        id: &StepId,
        gate: &Gate,
        review: &GateReview,
        verdict: &GateVerdict,
    ) -> Self {
        let (word, blocking, passed_over) = match verdict {
            GateVerdict::Pass { passed_over } => ("pass", Vec::new(), passed_over.clone()),
            GateVerdict::Fail { blocking, .. } => ("fail", blocking.clone(), Vec::new()),
            GateVerdict::Open { todo, checks } => {
                ("open", [todo.as_slice(), checks].concat(), Vec::new())
            }
        };
        GateJson {
            run: run.state.run.to_string(),
            gate: id.to_string(),
            name: gate.name.clone(),
            verdict: word,
            iteration: review.iteration,
            limit: gate.iteration_limit() + run.state.granted.get(id).copied().unwrap_or_default(),
            blocking_severity: gate.blocking_severity(review.iteration).as_str(),
            blocking,
            passed_over,
            items: review.items.clone(),
            checks: review.checks.clone(),
        }
    }
}

/// Returns the gate a command refers to by default: the one under review, the last one reviewed, or
/// the first.
pub fn default_gate(run: &StoredWorkflowRun) -> Option<(&StepDef, &Gate)> {
    let state = &run.state;
    let gates = || run.workflow.workflow().gates();
    let under_way =
        gates().find(|(step, gate)| step.id == state.step || gate.reviews.contains(&state.step));
    let last = || {
        let passed = state.history.iter().rev().map(|passage| &passage.step);
        passed.into_iter().find_map(|id| gates().find(|(step, _)| step.id == *id))
    };
    under_way.or_else(last).or_else(|| gates().next())
}

/// Returns the workflows of a skill; with `all`, including those that its sub-agents go through.
pub fn rows(entry: &CatalogEntry, all: bool) -> Vec<WorkflowRow> {
    let loaded = file::load_workflows(&entry.skill);
    if loaded.is_empty() {
        return script_of(entry).map(|script| script_row(entry, &script)).into_iter().collect();
    }
    let subs: Vec<String> = loaded.iter().skip(1).map(|loaded| loaded.name.clone()).collect();
    let shown = if all { loaded.len() } else { 1 };
    loaded
        .iter()
        .take(shown)
        .enumerate()
        .map(|(at, loaded)| {
            let is_own = at == 0;
            let name = if is_own { entry.id.clone() } else { loaded.name.clone() };
            workflow_row(entry, name, loaded, if is_own { subs.clone() } else { Vec::new() })
        })
        .collect()
}

fn script_row(entry: &CatalogEntry, script: &StepScript) -> WorkflowRow {
    WorkflowRow {
        name: entry.id.clone(),
        steps: script.total.unwrap_or_default(),
        description: entry.skill.description.clone(),
        path: entry.skill.origin.file.to_string(),
        scope: entry.skill.origin.scope,
        kind: "script",
        gates: 0,
        required: Vec::new(),
        sub_workflows: Vec::new(),
        can_run: entry.trust == TrustLevel::Trusted,
    }
}

fn workflow_row(
    entry: &CatalogEntry,
    name: String,
    loaded: &LoadedWorkflow,
    sub_workflows: Vec<String>,
) -> WorkflowRow {
    let workflow = loaded.workflow.as_ref();
    WorkflowRow {
        name,
        steps: workflow.map_or(0, |workflow| workflow.steps.len()),
        description: workflow.map_or_else(String::new, |workflow| workflow.description.clone()),
        path: loaded.source.path().to_string(),
        scope: entry.skill.origin.scope,
        kind: "data",
        gates: workflow.map_or(0, |workflow| workflow.gates().count()),
        required: workflow.map_or_else(Vec::new, |workflow| {
            let needed = workflow.parameters.iter().filter(|(_, arg)| arg.required);
            needed.map(|(name, _)| name.clone()).collect()
        }),
        sub_workflows,
        can_run: loaded.checked.is_some(),
    }
}
