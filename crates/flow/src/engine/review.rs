//! Recording review items, and computing the verdict of a gate from them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::leave::{expect_active, expect_short};
use super::{CheckedWorkflow, EngineRefusal};
use crate::check_command::{render_check_command, worker_values};
use crate::limits::{ID_BYTES_MAX, ITEM_TEXT_BYTES_MAX, ITEMS_MAX, REVIEW_BYTES_MAX};
use crate::state::{
    CheckProof, GateCheckResult, GateItem, GateReview, ItemStatus, ReviewRound, WorkFingerprint,
    WorkflowRunState,
};
use crate::template::{TemplateScope, render_template};
use crate::workflow::{DeclaredCheck, Gate, ItemSeverity, ReverifyMode, StepId, Workflow};

/// A report about an item. Fields that are `None` keep their recorded value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemRecord {
    pub id: String,
    /// The part of the work that is reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The condition that has to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The severity if the condition does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<ItemSeverity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ItemStatus>,
    /// The evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// A report about a declared check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRecord {
    pub name: String,
    pub result: GateCheckResult,
}

/// The verdict of a gate on a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    /// Items or checks are still without a verdict.
    Open { todo: Vec<String>, checks: Vec<String> },
    Pass {
        /// Failed items that do not block in this iteration.
        passed_over: Vec<String>,
    },
    Fail {
        /// Items and checks that block.
        blocking: Vec<String>,
        /// The checks among them.
        checks: Vec<String>,
    },
}

/// Computes the verdict of a gate. It passes if every item and check has a verdict, no blocking item failed, and every
/// check passed.
pub fn compute_verdict(gate: &Gate, review: &GateReview) -> GateVerdict {
    compute_verdict_at(gate, review, gate.blocking_severity(review.iteration))
}

/// Computes the verdict if only this severity and higher ones block.
pub(super) fn compute_verdict_at(
    gate: &Gate,
    review: &GateReview,
    least: ItemSeverity,
) -> GateVerdict {
    let of = |wanted: ItemStatus| {
        review.items.iter().filter(move |item| item.status == wanted).map(|item| item.id.clone())
    };
    let status = |name: &String| review.checks.get(name).map(|result| result.status);
    let todo: Vec<String> = of(ItemStatus::Todo).collect();
    let open: Vec<String> = gate
        .checks
        .iter()
        .filter(|name| matches!(status(name), None | Some(ItemStatus::Todo)))
        .cloned()
        .collect();
    if !todo.is_empty() || !open.is_empty() || review.items.is_empty() {
        return GateVerdict::Open { todo, checks: open };
    }
    let red: Vec<String> =
        gate.checks.iter().filter(|name| status(name) == Some(ItemStatus::Fail)).cloned().collect();
    let failed = review.items.iter().filter(|item| item.status == ItemStatus::Fail);
    let (blocking, lesser): (Vec<&GateItem>, Vec<&GateItem>) =
        failed.partition(|item| item.severity >= least);
    if blocking.is_empty() && red.is_empty() {
        return GateVerdict::Pass { passed_over: item_ids(&lesser) };
    }
    GateVerdict::Fail { blocking: [item_ids(&blocking), red.clone()].concat(), checks: red }
}

fn item_ids(items: &[&GateItem]) -> Vec<String> {
    items.iter().map(|item| item.id.clone()).collect()
}

/// Returns true if the engine itself ran a declared check of the gate and it passed. Items alone are only the claim of
/// the agent that recorded them, and so is a check whose command uses values that the worker has reported. Whether the
/// work has changed since is told by [`outdated_checks`].
pub fn is_proven(workflow: &Workflow, gate: &Gate, review: &GateReview) -> bool {
    gate.checks.iter().any(|name| {
        review.checks.get(name).is_some_and(is_green_run)
            && workflow
                .checks
                .get(name)
                .is_some_and(|check| worker_values(workflow, check).is_empty())
    })
}

/// The checks of a gate whose command has passed, but not on the work as it is `now`. Built-in checks are not among
/// them: the driver performs them whenever the gate is left.
pub fn outdated_checks(
    workflow: &Workflow,
    gate: &Gate,
    review: &GateReview,
    now: Option<&WorkFingerprint>,
) -> Vec<String> {
    let is_outdated = |name: &&String| {
        let has_command = workflow.checks.get(*name).is_some_and(|check| !check.is_built_in());
        let result = review.checks.get(*name).filter(|result| is_green_run(result));
        has_command && result.is_some_and(|result| !is_about(&result.proof, now))
    };
    gate.checks.iter().filter(is_outdated).cloned().collect()
}

fn is_about(proof: &CheckProof, now: Option<&WorkFingerprint>) -> bool {
    matches!(proof, CheckProof::Run { work: Some(work), .. } if Some(work) == now)
}

fn is_green_run(result: &GateCheckResult) -> bool {
    result.status == ItemStatus::Pass && matches!(result.proof, CheckProof::Run { .. })
}

/// Records all the given items and checks, or none of them.
pub(super) fn record_review(
    checked: &CheckedWorkflow,
    state: &mut WorkflowRunState,
    gate: Option<&StepId>,
    items: &[ItemRecord],
    checks: &[CheckRecord],
) -> Result<(), EngineRefusal> {
    expect_active(state)?;
    let (id, gate) = find_current_gate(checked.workflow(), state, gate)?;
    let mut names = BTreeSet::new();
    for name in items.iter().map(|item| &item.id).chain(checks.iter().map(|check| &check.name)) {
        if !names.insert(name) {
            let id: String = name.chars().take(ID_BYTES_MAX).collect();
            return Err(EngineRefusal::RecordedTwice { id });
        }
    }
    let mut review = state.reviews.get(&id).cloned().unwrap_or_default();
    for record in items {
        record_item(&mut review, record)?;
    }
    if review.items.iter().map(item_bytes).sum::<usize>() > REVIEW_BYTES_MAX {
        return Err(EngineRefusal::ReviewTooLong);
    }
    for record in checks {
        record_check(checked.workflow(), state, &id, gate, &mut review.checks, record)?;
    }
    state.reviews.insert(id, review);
    Ok(())
}

fn item_bytes(item: &GateItem) -> usize {
    item.scope.len() + item.check.len() + item.finding.len()
}

/// The gate whose review the current step belongs to.
fn find_current_gate<'a>(
    workflow: &'a Workflow,
    state: &WorkflowRunState,
    wanted: Option<&StepId>,
) -> Result<(StepId, &'a Gate), EngineRefusal> {
    if let Some(wanted) =
        wanted.filter(|wanted| workflow.gates().all(|(step, _)| step.id != **wanted))
    {
        return Err(EngineRefusal::NoSuchGate { gate: wanted.clone() });
    }
    workflow
        .gates()
        .filter(|(step, _)| wanted.is_none_or(|wanted| step.id == *wanted))
        .find(|(step, gate)| step.id == state.step || gate.reviews.contains(&state.step))
        .map(|(step, gate)| (step.id.clone(), gate))
        .ok_or_else(|| EngineRefusal::NoReview {
            step: state.step.clone(),
            reviews: workflow
                .gates()
                .flat_map(|(_, gate)| gate.reviews.iter().map(StepId::to_string))
                .collect(),
        })
}

/// Returns true if the text can be an id that is used in prompts and commands.
pub fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= ID_BYTES_MAX
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(is_id_byte)
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-".contains(&byte)
}

fn record_item(review: &mut GateReview, record: &ItemRecord) -> Result<(), EngineRefusal> {
    if !is_id(&record.id) {
        return Err(EngineRefusal::BadId { id: record.id.chars().take(ID_BYTES_MAX).collect() });
    }
    let texts = [
        ("the scope", &record.scope),
        ("the check", &record.check),
        ("the finding", &record.finding),
    ];
    for (what, text) in texts {
        if text.as_ref().is_some_and(|text| text.len() > ITEM_TEXT_BYTES_MAX) {
            return Err(EngineRefusal::ItemTooLong { id: record.id.clone(), what });
        }
    }
    let known = review.items.iter().position(|item| item.id == record.id);
    match known {
        Some(at) => change_item(&mut review.items[at], record),
        None if review.items.len() >= ITEMS_MAX => Err(EngineRefusal::TooManyItems),
        None => {
            review.items.push(new_item(record)?);
            Ok(())
        }
    }
}

fn new_item(record: &ItemRecord) -> Result<GateItem, EngineRefusal> {
    let check = record.check.clone().filter(|check| !check.trim().is_empty());
    let (Some(check), Some(severity)) = (check, record.severity) else {
        return Err(EngineRefusal::IncompleteItem { id: record.id.clone() });
    };
    let mut item = GateItem {
        id: record.id.clone(),
        scope: record.scope.clone().unwrap_or_default(),
        check,
        severity,
        status: ItemStatus::Todo,
        finding: String::new(),
    };
    set_verdict(&mut item, record)?;
    Ok(item)
}

/// Updates a known item. Its check and scope are fixed, and its severity can only rise.
fn change_item(item: &mut GateItem, record: &ItemRecord) -> Result<(), EngineRefusal> {
    let id = || record.id.clone();
    if record.check.as_ref().is_some_and(|check| *check != item.check) {
        return Err(EngineRefusal::ItemChanged { id: id(), what: "check" });
    }
    if record.scope.as_ref().is_some_and(|scope| *scope != item.scope) {
        return Err(EngineRefusal::ItemChanged { id: id(), what: "scope" });
    }
    if let Some(severity) = record.severity {
        if severity < item.severity {
            return Err(EngineRefusal::SeverityLowered {
                id: id(),
                from: item.severity,
                to: severity,
            });
        }
        item.severity = severity;
    }
    set_verdict(item, record)
}

fn set_verdict(item: &mut GateItem, record: &ItemRecord) -> Result<(), EngineRefusal> {
    let Some(status) = record.status else {
        if let Some(finding) = &record.finding {
            item.finding = finding.clone();
        }
        return Ok(());
    };
    if item.status == ItemStatus::Fail && status != ItemStatus::Fail {
        return Err(EngineRefusal::FailStands { id: item.id.clone() });
    }
    // A finding recorded with another verdict does not explain this one.
    let kept = (item.status == status).then(|| item.finding.clone());
    let finding = record.finding.clone().or(kept).unwrap_or_default();
    if status == ItemStatus::Fail && finding.trim().is_empty() {
        return Err(EngineRefusal::FindingNeeded { id: item.id.clone() });
    }
    item.status = status;
    item.finding = finding;
    Ok(())
}

fn record_check(
    workflow: &Workflow,
    state: &WorkflowRunState,
    gate_id: &StepId,
    gate: &Gate,
    checks: &mut BTreeMap<String, GateCheckResult>,
    record: &CheckRecord,
) -> Result<(), EngineRefusal> {
    let name = &record.name;
    let Some(check) = workflow.checks.get(name).filter(|_| gate.checks.contains(name)) else {
        let (gate, known) = (gate_id.clone(), gate.checks.clone());
        return Err(EngineRefusal::NoSuchCheck { gate, name: name.clone(), known });
    };
    let wanted =
        render_check_command(workflow, check, &TemplateScope::new(state)).map_err(|error| {
            EngineRefusal::Template { what: format!("the command of check `{name}`"), error }
        });
    let proof = &record.result.proof;
    if !was_run_unquoted(check, state, proof) {
        let wanted = wanted?;
        if !wanted.is_empty() && !was_run(&wanted, proof) {
            return Err(EngineRefusal::CheckNeedsRun { name: name.clone(), command: wanted });
        }
    }
    expect_short("the note of a check", &record.result.note)?;
    if let CheckProof::Run { exit_code, .. } = record.result.proof {
        let shown = if exit_code == Some(0) { ItemStatus::Pass } else { ItemStatus::Fail };
        if record.result.status != shown {
            let exit = exit_code.map_or("a signal".to_owned(), |code| format!("code {code}"));
            let (name, status) = (name.clone(), record.result.status);
            return Err(EngineRefusal::CheckContradicted { name, status, exit });
        }
    } else if record.result.status != ItemStatus::Fail
        && checks.get(name).is_some_and(|known| known.status == ItemStatus::Fail)
    {
        // A claim cannot overrule a recorded failure, but a run of the command can.
        return Err(EngineRefusal::FailStands { id: name.clone() });
    }
    checks.insert(name.clone(), record.result.clone());
    Ok(())
}

fn was_run(wanted: &str, proof: &CheckProof) -> bool {
    matches!(proof, CheckProof::Run { command, .. } if command.trim() == wanted)
}

/// Returns true if the command was run as earlier versions have rendered it, without quotes. Their events have to
/// lead to the same state; as a proof of work such a run is outdated.
fn was_run_unquoted(check: &DeclaredCheck, state: &WorkflowRunState, proof: &CheckProof) -> bool {
    let command = render_template(&check.command_template(), &TemplateScope::new(state));
    command.is_ok_and(|command| !command.trim().is_empty() && was_run(command.trim(), proof))
}

/// Drops the verdicts of checks whose command has changed because of a parameter or an output that was just reported:
/// the old run proves nothing about the new command.
pub(super) fn drop_stale_checks(workflow: &Workflow, state: &mut WorkflowRunState) {
    let mut stale: Vec<(StepId, String)> = Vec::new();
    for (gate, review) in state.reviews.iter().filter(|(_, review)| !review.passed) {
        for (name, result) in &review.checks {
            let check = workflow.checks.get(name).cloned().unwrap_or_default();
            let stands = was_run_unquoted(&check, state, &result.proof)
                || match render_check_command(workflow, &check, &TemplateScope::new(state)) {
                    Ok(wanted) if wanted.is_empty() => result.proof == CheckProof::Claim,
                    Ok(wanted) => was_run(&wanted, &result.proof),
                    Err(_) => false,
                };
            if !stands {
                stale.push((gate.clone(), name.clone()));
            }
        }
    }
    for (gate, name) in stale {
        if let Some(review) = state.reviews.get_mut(&gate) {
            review.checks.remove(&name);
        }
    }
}

/// Archives the current iteration.
pub(super) fn archive_round(review: &mut GateReview, passed: bool) {
    review.rounds.push(ReviewRound {
        iteration: review.iteration,
        passed,
        items: review.items.clone(),
        checks: review.checks.clone(),
    });
    review.passed = passed;
}

/// Starts the next iteration after the gate has failed, and reopens the items that have to be reviewed again.
pub(super) fn start_next_round(gate: &Gate, review: &mut GateReview) {
    archive_round(review, false);
    review.iteration += 1;
    reopen_items(review, gate.reverify.unwrap_or(ReverifyMode::Fresh));
}

fn reopen_items(review: &mut GateReview, mode: ReverifyMode) {
    for item in &mut review.items {
        if mode == ReverifyMode::Fresh || item.status == ItemStatus::Fail {
            item.status = ItemStatus::Todo;
            item.finding.clear();
        }
    }
    // A check that passed before the repair proves nothing about the repaired state.
    review.checks.clear();
}

/// Resets a passed review that is entered again: everything is reviewed anew, as strictly as the first time.
pub(super) fn reopen_after_pass(workflow: &Workflow, state: &mut WorkflowRunState, step: &StepId) {
    for (gate_step, gate) in workflow.gates() {
        if gate_step.id != *step && !gate.reviews.contains(step) {
            continue;
        }
        if let Some(review) = state.reviews.get_mut(&gate_step.id).filter(|review| review.passed) {
            review.passed = false;
            review.iteration = 1;
            state.granted.remove(&gate_step.id);
            reopen_items(review, ReverifyMode::Fresh);
        }
    }
}
