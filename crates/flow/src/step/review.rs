//! Views of reviews, repairs and gates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ShellCommand, StepAddressing};
use crate::check::CheckedWorkflow;
use crate::check_command::render_check_command;
use crate::engine::{GateVerdict, compute_verdict, is_proven};
use crate::state::{
    CheckProof, GateItem, GateReview, ItemStatus, StepTransition, WaitReason, WorkflowRunState,
    WorkflowRunStatus,
};
use crate::template::{TemplateError, TemplateScope, render_template};
use crate::workflow::{Gate, RepairAgent, ReverifyMode, StepDef, StepId, WorkflowOutcome};

/// The state of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateView {
    /// The subject of the review.
    pub name: String,
    /// `pass`, `fail`, `open`, or `limit` if it has failed as often as its limit allows.
    pub status: String,
    /// The current iteration.
    pub iteration: u32,
    /// The number of iterations after which it stops for a person.
    pub limit: u32,
    /// The lowest severity that blocks in this iteration.
    pub blocking_severity: String,
    /// An explanation of the status.
    pub message: String,
    /// Items and checks that block or have no verdict yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocking: Vec<String>,
    /// Failed items that do not block.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<String>,
    /// Actions that are forbidden until the gate is passed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stop: String,
}

/// The instructions for a reviewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewView {
    /// The gate the review is for.
    pub gate: String,
    /// The subject of the review.
    pub name: String,
    /// The current iteration.
    pub iteration: u32,
    /// `first`, `fresh` or `targeted`.
    pub mode: String,
    /// The banner for the reviewer.
    pub banner: String,
    /// The items in their current state.
    pub items: Vec<ItemView>,
    /// Checks to run or record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<ItemView>,
    /// The command that records items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<ShellCommand>,
}

/// The findings to repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingsView {
    /// The gate that failed.
    pub gate: String,
    /// The subject of the review.
    pub name: String,
    /// The iteration that begins.
    pub iteration: u32,
    /// The agent that repairs: `own`, or the role of the sub-agent.
    pub fix: String,
    /// The failed items, with their findings.
    pub items: Vec<ItemView>,
}

/// An item of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ItemView {
    /// The id of the item.
    pub id: String,
    /// The severity if it fails; empty for checks, which always block.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub severity: String,
    /// `TODO`, `PASS` or `FAIL`.
    pub status: String,
    /// The part of the work that is reviewed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The condition that has to hold.
    pub check: String,
    /// The evidence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub finding: String,
}

impl From<&GateItem> for ItemView {
    fn from(item: &GateItem) -> Self {
        ItemView {
            id: item.id.clone(),
            severity: item.severity.to_string(),
            status: item.status.to_string(),
            scope: item.scope.clone(),
            check: item.check.clone(),
            finding: item.finding.clone(),
        }
    }
}

/// The note on a gate whose items were recorded in the run itself.
const SELF_REVIEWED: &str =
    "(self-reviewed: its items were recorded in this run; its checks are green)";
/// The note on a gate that no declared check has confirmed.
const UNPROVEN: &str = "(self-reviewed: its items were recorded in this run, and no declared check has confirmed them)";

/// The state of the gate, on its own step.
pub(super) fn gate_view(
    checked: &CheckedWorkflow,
    state: &WorkflowRunState,
    step: &StepDef,
    scope: &TemplateScope,
) -> Result<Option<GateView>, TemplateError> {
    let Some(gate) = step.decide.as_gate() else { return Ok(None) };
    let none = GateReview::default();
    let review = state.reviews.get(&step.id).unwrap_or(&none);
    let granted = state.granted.get(&step.id).copied().unwrap_or_default();
    let limit = gate.iteration_limit().saturating_add(granted);
    let least = gate.blocking_severity(review.iteration);
    let (status, blocking, passed_over, message) = match compute_verdict(gate, review) {
        GateVerdict::Open { todo, checks } => {
            let open = [todo, checks].concat();
            let message = if open.is_empty() {
                "Nothing was recorded: a gate without items cannot be passed.".to_owned()
            } else {
                format!("Without a verdict: {}.", open.join(", "))
            };
            ("open", open, Vec::new(), message)
        }
        GateVerdict::Pass { passed_over } => {
            let said = render_template(&gate.pass_message, scope)?;
            let said = if said.is_empty() { format!("{} is passed.", gate.name) } else { said };
            let proof =
                if is_proven(checked.workflow(), gate, review) { SELF_REVIEWED } else { UNPROVEN };
            ("pass", Vec::new(), passed_over, format!("{} {proof}", said.trim_end()))
        }
        GateVerdict::Fail { blocking, .. } => {
            let at_limit = review.iteration >= limit;
            let said = format!("{} is not passed.", gate.name);
            (if at_limit { "limit" } else { "fail" }, blocking, Vec::new(), said)
        }
    };
    Ok(Some(GateView {
        name: gate.name.clone(),
        status: status.to_owned(),
        iteration: review.iteration,
        limit,
        blocking_severity: least.to_string(),
        message,
        blocking,
        passed_over,
        stop: render_template(gate.stop.as_deref().unwrap_or_default(), scope)?,
    }))
}

/// The review, on a review step and on the gate itself while it is open.
pub(super) fn review_view(
    checked: &CheckedWorkflow,
    state: &WorkflowRunState,
    step: &StepDef,
    scope: &TemplateScope,
    addressing: &StepAddressing,
) -> Result<Option<ReviewView>, TemplateError> {
    let workflow = checked.workflow();
    let found = workflow
        .gates()
        .find(|(gate_step, gate)| gate_step.id == step.id || gate.reviews.contains(&step.id));
    let Some((gate_step, gate)) = found else { return Ok(None) };
    let none = GateReview::default();
    let review = state.reviews.get(&gate_step.id).unwrap_or(&none);
    let is_gate = gate_step.id == step.id;
    let is_open = matches!(compute_verdict(gate, review), GateVerdict::Open { .. });
    if is_gate && !is_open && !waits_for_decision(state, &gate_step.id) {
        return Ok(None);
    }
    let mut checks = Vec::new();
    for name in &gate.checks {
        let Some(check) = workflow.checks.get(name) else { continue };
        let status = review.checks.get(name).map_or(ItemStatus::Todo, |result| result.status);
        checks.push(ItemView {
            id: name.clone(),
            severity: String::new(),
            status: status.to_string(),
            scope: render_check_command(workflow, check, scope)?,
            check: check.description.clone(),
            finding: review.checks.get(name).map(|result| result.note.clone()).unwrap_or_default(),
        });
    }
    Ok(Some(ReviewView {
        gate: gate_step.id.to_string(),
        name: gate.name.clone(),
        iteration: review.iteration,
        mode: review_mode(gate, review).to_owned(),
        // The banner addresses the reviewer, but the gate is shown to the agent that requests steps.
        banner: if is_gate {
            String::new()
        } else {
            render_template(gate.banner.as_deref().unwrap_or_default(), scope)?
        },
        items: review.items.iter().map(|item| reviewed_item(gate, review, item)).collect(),
        checks,
        record: (addressing.is_run() && state.status == WorkflowRunStatus::Active)
            .then(|| ShellCommand::new(["rep", "workflow", "record", state.run.as_str(), "ITEM…"])),
    }))
}

/// Returns true if a person has to decide about this gate, and therefore has to see the failures.
fn waits_for_decision(state: &WorkflowRunState, gate: &StepId) -> bool {
    matches!(&state.status, WorkflowRunStatus::Waiting(WaitReason::Limit { gate: at, .. }) if at == gate)
}

/// An item for the reviewer. A targeted re-review shows the earlier finding; a fresh one does not.
fn reviewed_item(gate: &Gate, review: &GateReview, item: &GateItem) -> ItemView {
    let mut view = ItemView::from(item);
    if gate.reverify == Some(ReverifyMode::Targeted) && item.status == ItemStatus::Todo {
        let last = review.rounds.last().filter(|round| !round.passed);
        let before = last.and_then(|round| round.items.iter().find(|old| old.id == item.id));
        view.finding = before.map(|old| old.finding.clone()).unwrap_or_default();
    }
    view
}

fn review_mode(gate: &Gate, review: &GateReview) -> &'static str {
    match (review.iteration, gate.reverify) {
        (1, _) if review.rounds.is_empty() => "first",
        (_, Some(ReverifyMode::Targeted)) => "targeted",
        (_, Some(ReverifyMode::Fresh) | None) => "fresh",
    }
}

/// The findings to repair: those of the last round of the gate whose `fail` edge leads here.
pub(super) fn findings_view(
    checked: &CheckedWorkflow,
    state: &WorkflowRunState,
    step: &StepDef,
) -> Option<FindingsView> {
    // Retrying a step that could not be carried out continues the same repair.
    let last = state.history.iter().rev().find(|passage| !is_retry(passage))?;
    let gate_step = checked.find_step(&last.step)?;
    let gate = gate_step.decide.as_gate()?;
    if last.outcome != Some(WorkflowOutcome::Fail) || last.to.as_step() != Some(&step.id) {
        return None;
    }
    let review = state.reviews.get(&gate_step.id)?;
    let round = review.rounds.last()?;
    let failed = round.items.iter().filter(|item| item.status == ItemStatus::Fail);
    let mut items: Vec<ItemView> = failed.map(ItemView::from).collect();
    items.extend(round.checks.iter().filter(|(_, result)| result.status == ItemStatus::Fail).map(
        |(name, result)| {
            ItemView {
                id: name.clone(),
                severity: String::new(),
                status: result.status.to_string(),
                scope: match &result.proof {
                    CheckProof::Run { command, .. } => command.clone(),
                    CheckProof::Claim => String::new(),
                },
                check: checked
                    .workflow()
                    .checks
                    .get(name)
                    .map(|check| check.description.clone())
                    .unwrap_or_default(),
                finding: result.note.clone(),
            }
        },
    ));
    Some(FindingsView {
        gate: gate_step.id.to_string(),
        name: gate.name.clone(),
        iteration: review.iteration,
        fix: match &gate.fix {
            RepairAgent::Own => "own".to_owned(),
            RepairAgent::Agent(role) => role.as_str().to_owned(),
        },
        items,
    })
}

fn is_retry(passage: &StepTransition) -> bool {
    passage.outcome.is_none() && passage.to.as_step() == Some(&passage.step)
}
