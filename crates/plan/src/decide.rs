//! Decides on the next step: pure functions of a run's state and its plan.

use std::collections::BTreeSet;

use crate::document::{self, PlanDocument, TaskChoice, TaskMark};
use repertoire_journal::Payload;
use repertoire_journal::event::{StepOutcome, TaskRef};

use super::request::PlanRequest;
use super::state::{
    FINAL_LABEL, FINAL_TASK, PastStep, PlanState, PlanStepKind, VerifiedAfter, mark_word,
    task_reference,
};
use super::watchdog;
use crate::limits::NAMES_SHOWN;
use crate::limits::{INTERRUPTIONS_MAX, RECOVER_CUT_SHORT_MAX};

/// The next action of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanDecision {
    /// Let an agent work on a task; on one that it chooses itself, if the plan's tasks cannot be
    /// parsed.
    Implement { task: Option<TaskRef> },
    /// Run the checks.
    Verify {
        task: Option<TaskRef>,
        /// The step before.
        after: VerifiedAfter,
    },
    /// Try to repair the failed checks without an agent.
    Recover {
        task: Option<TaskRef>,
        /// The step before the failed checks.
        after: VerifiedAfter,
    },
    /// Let an agent review the work on a task.
    Review { task: Option<TaskRef> },
    /// Plan, reviews and checks agree that the work is done.
    Complete,
    /// Stop as requested. The run can be resumed.
    Pause { reason: String },
    /// Wait for a person's decision.
    Wait { reason: String },
    /// Give up.
    Fail {
        /// In the form `what:detail`.
        reason: String,
    },
}

/// Decides on the next action.
pub fn decide_next(state: &PlanState, plan: &PlanDocument, request: &PlanRequest) -> PlanDecision {
    let bounds = &request.bounds;
    if let Some((kind, count)) = state.failures.iter().find(|(_, n)| **n >= bounds.failures_max) {
        let reason = format!("max_consecutive_failures:{}:{count}", kind.as_str());
        return PlanDecision::Fail { reason };
    }
    if state.interruptions >= INTERRUPTIONS_MAX {
        let task = state.last_step().and_then(|past| past.task.as_ref());
        let on = task.map_or(String::new(), |task| format!(" on \"{}\"", task.label));
        let reason = format!(
            "{} steps in a row{on} ended with their worker: look at what it does before it is tried again",
            state.interruptions
        );
        return PlanDecision::Wait { reason };
    }
    let next = match state.last_step() {
        None => pick_task(state, plan, request),
        Some(past) => next_after(state, plan, request, past),
    };
    let rounds = state.iterations.saturating_sub(state.iterations_seen);
    match next {
        // Verifications are not limited, so that the last iteration's work is still verified.
        PlanDecision::Implement { .. } | PlanDecision::Review { .. }
            if rounds >= bounds.iterations_max =>
        {
            PlanDecision::Fail {
                reason: format!("iteration_limit_reached:{}", bounds.iterations_max),
            }
        }
        next => next,
    }
}

fn next_after(
    state: &PlanState,
    plan: &PlanDocument,
    request: &PlanRequest,
    past: &PastStep,
) -> PlanDecision {
    let task = past.task.clone();
    let Some(outcome) = past.outcome() else { return repeat_step(state, plan, request, past) };
    match (past.kind, outcome) {
        (_, StepOutcome::Stopped) => repeat_step(state, plan, request, past),
        // A task that the agent has marked blocked is not done, whatever it has changed; nor is one
        // that is to be retried.
        (PlanStepKind::Implementation, StepOutcome::Ok)
            if is_open(state, &task) && !is_to_retry(state, &task) =>
        {
            PlanDecision::Verify { task, after: VerifiedAfter::Implementation }
        }
        (PlanStepKind::Implementation, StepOutcome::Ok) => pick_task(state, plan, request),
        (PlanStepKind::Verification, StepOutcome::Ok) => match past.after {
            Some(VerifiedAfter::Everything) => PlanDecision::Complete,
            Some(VerifiedAfter::Implementation) if request.review => PlanDecision::Review { task },
            Some(VerifiedAfter::Implementation | VerifiedAfter::Review) | None => {
                pick_task(state, plan, request)
            }
        },
        (PlanStepKind::Recovery, StepOutcome::Ok) => match past.after {
            Some(after) => PlanDecision::Verify { task, after },
            None => pick_task(state, plan, request),
        },
        (PlanStepKind::Review, StepOutcome::Ok) => {
            PlanDecision::Verify { task, after: VerifiedAfter::Review }
        }
        // A review without a verdict does not send the task back: retry it until the watchdog or
        // `failures_max` stops the run.
        (PlanStepKind::Review, StepOutcome::Failed) => PlanDecision::Review { task },
        (PlanStepKind::Verification, StepOutcome::Failed | StepOutcome::SentBack) => {
            match past.after.filter(|_| can_recover(state, request, past)) {
                Some(after) => PlanDecision::Recover { task, after },
                None => redo_task(state, plan, request, task),
            }
        }
        (
            PlanStepKind::Implementation | PlanStepKind::Recovery,
            StepOutcome::Failed | StepOutcome::SentBack,
        )
        | (PlanStepKind::Review, StepOutcome::SentBack) => redo_task(state, plan, request, task),
    }
}

/// Repeats a step that has no result.
fn repeat_step(
    state: &PlanState,
    plan: &PlanDocument,
    request: &PlanRequest,
    past: &PastStep,
) -> PlanDecision {
    let task = past.task.clone();
    match (past.kind, past.after) {
        (PlanStepKind::Implementation, _) if !is_open(state, &task) => {
            pick_task(state, plan, request)
        }
        (PlanStepKind::Implementation, _) => PlanDecision::Implement { task },
        (PlanStepKind::Review, _) => PlanDecision::Review { task },
        (PlanStepKind::Verification | PlanStepKind::Recovery, after) => {
            PlanDecision::Verify { task, after: after.unwrap_or(VerifiedAfter::Implementation) }
        }
    }
}

/// Implements a task again, unless it is closed.
fn redo_task(
    state: &PlanState,
    plan: &PlanDocument,
    request: &PlanRequest,
    task: Option<TaskRef>,
) -> PlanDecision {
    if task.is_some() && is_open(state, &task) {
        PlanDecision::Implement { task }
    } else {
        pick_task(state, plan, request)
    }
}

/// Returns true if a task is open, or if the agent chooses the task.
fn is_open(state: &PlanState, task: &Option<TaskRef>) -> bool {
    match task {
        None => true,
        Some(task) => state.tasks.get(&task.id).is_some_and(|task| task.mark == TaskMark::Open),
    }
}

/// Returns true if a person has asked to retry a task, and no attempt has started since.
fn is_to_retry(state: &PlanState, task: &Option<TaskRef>) -> bool {
    let known = task.as_ref().and_then(|task| state.tasks.get(&task.id));
    known.is_some_and(|task| task.begun.is_none())
}

/// Returns true if failed checks may be repaired without an agent: once after each agent step, if
/// enabled. Deferred and interrupted recoveries do not count, up to [`RECOVER_CUT_SHORT_MAX`].
fn can_recover(state: &PlanState, request: &PlanRequest, past: &PastStep) -> bool {
    let is_red =
        past.kind == PlanStepKind::Verification && past.outcome() == Some(StepOutcome::Failed);
    let since = state.history.iter().rev().take_while(|past| !past.kind.is_agent());
    let recoveries: Vec<&PastStep> =
        since.filter(|past| past.kind == PlanStepKind::Recovery).collect();
    let all_cut_short = recoveries.iter().all(|past| past.ended.is_some() && !past.is_counted());
    request.improve.is_some() && is_red && all_cut_short && recoveries.len() < RECOVER_CUT_SHORT_MAX
}

fn pick_task(state: &PlanState, plan: &PlanDocument, request: &PlanRequest) -> PlanDecision {
    if let Some(reason) = &state.fallback {
        return if state.history.is_empty() || state.looked {
            PlanDecision::Implement { task: None }
        } else {
            PlanDecision::Wait {
                reason: format!(
                    "the tasks of the plan cannot be told ({reason}), so nobody but you can say whether it is done"
                ),
            }
        };
    }
    let ended = state.tasks.values().find(|task| task.fresh && is_over(task.mark, request));
    if let Some(task) = ended.filter(|_| request.once) {
        let reason =
            format!("one task was asked for: \"{}\" is {}", task.label, mark_word(task.mark));
        return PlanDecision::Pause { reason };
    }
    // Review implemented tasks before starting a new one.
    if request.review
        && let Some((id, _)) = state.tasks_with_mark(TaskMark::Implemented).next()
    {
        return PlanDecision::Review { task: state.task_ref(id) };
    }
    match document::select_task(plan) {
        TaskChoice::Task(id) => PlanDecision::Implement {
            task: state.task_ref(id.as_str()).or_else(|| task_of(plan, &id)),
        },
        TaskChoice::Stuck { waiting } => {
            let why = join_some(waiting.iter().map(|(_, why)| why.clone()));
            PlanDecision::Wait { reason: format!("every open task waits: {why}") }
        }
        TaskChoice::Nothing => decide_at_end(state, plan),
    }
}

/// Returns true if nothing more is done for a task with this mark.
fn is_over(mark: TaskMark, request: &PlanRequest) -> bool {
    match mark {
        TaskMark::Implemented => !request.review,
        TaskMark::Reviewed | TaskMark::Failed | TaskMark::Blocked => true,
        TaskMark::Open | TaskMark::ManualQa => false,
    }
}

/// Decides when no task is open and nothing waits for review.
fn decide_at_end(state: &PlanState, plan: &PlanDocument) -> PlanDecision {
    // The journal knows every task. A task that is missing in the file is not done.
    let in_plan: BTreeSet<&str> = plan.tasks.iter().map(|task| task.id.as_str()).collect();
    let lost = state
        .tasks_with_mark(TaskMark::Open)
        .filter(|(id, _)| *id != FINAL_TASK && !in_plan.contains(id))
        .map(|(_, task)| format!("\"{}\" is open, but no longer in the plan", task.label));
    let held: Vec<String> = [TaskMark::Failed, TaskMark::Blocked]
        .into_iter()
        .flat_map(|mark| state.tasks_with_mark(mark))
        .map(|(_, task)| format!("\"{}\" is {}", task.label, mark_word(task.mark)))
        .chain(lost)
        .collect();
    if !held.is_empty() {
        let reason = format!("nothing is left to do by itself: {}", join_some(held.into_iter()));
        return PlanDecision::Wait { reason };
    }
    // An answer changes nothing, so there is nothing to check.
    if state.last_step().is_some_and(|past| past.is_ok() && past.result.answered) {
        return PlanDecision::Complete;
    }
    match state.tasks.get(FINAL_TASK).map(|task| task.mark) {
        Some(TaskMark::Open) => PlanDecision::Implement { task: state.task_ref(FINAL_TASK) },
        _ => PlanDecision::Verify { task: None, after: VerifiedAfter::Everything },
    }
}

/// Joins the first few names for a message.
pub(super) fn join_some(mut names: impl Iterator<Item = String>) -> String {
    let shown: Vec<String> = names.by_ref().take(NAMES_SHOWN).collect();
    match names.count() {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}

fn task_of(plan: &PlanDocument, id: &document::TaskId) -> Option<TaskRef> {
    plan.task(id).map(task_reference)
}

/// The events that follow from the step that has just ended: task marks, learnings, and actions of
/// the watchdog.
pub fn conclude_step(state: &PlanState, request: &PlanRequest) -> Vec<Payload> {
    let Some(past) = state.last_step() else { return Vec::new() };
    let mut out = Vec::new();
    if let Some((task, mark, reason)) = mark_after_step(state, request, past) {
        if mark == TaskMark::Failed {
            let note = format!("\"{}\" failed: {reason}", task.label);
            out.push(Payload::Learned { task: Some(task.clone()), note });
        }
        out.push(Payload::TaskMarked { task, mark: mark_word(mark).to_owned(), reason });
    }
    if past.kind == PlanStepKind::Review
        && let Some(note) = past.result.learning.as_deref().filter(|note| !note.trim().is_empty())
    {
        out.push(Payload::Learned { task: past.task.clone(), note: note.trim().to_owned() });
    }
    let has_failed = out
        .iter()
        .any(|payload| matches!(payload, Payload::TaskMarked { mark, .. } if mark == "failed"));
    // Don't rewrite the prompt for a task that was just marked failed.
    if !has_failed && past.is_bad() {
        out.extend(watchdog::watchdog_events(state, request));
    }
    out
}

/// The commit before a task that was just marked failed, if no other task was worked on in between.
pub fn base_of_failed_task(state: &PlanState, happened: &[Payload]) -> Option<String> {
    let id = happened.iter().find_map(|payload| match payload {
        Payload::TaskMarked { task, mark, .. } if mark == mark_word(TaskMark::Failed) => {
            Some(&task.id)
        }
        _ => None,
    })?;
    let is_its = |past: &&PastStep| past.task.as_ref().is_some_and(|task| task.id == *id);
    let first = state.history.iter().rev().take_while(is_its).last()?;
    let base = state.tasks.get(id)?.begun.clone().or(state.tasks.get(id)?.base.clone())?;
    (id != FINAL_TASK && first.began_on.as_ref() == Some(&base)).then_some(base)
}

fn mark_after_step(
    state: &PlanState,
    request: &PlanRequest,
    past: &PastStep,
) -> Option<(TaskRef, TaskMark, String)> {
    let outcome = past.outcome()?;
    if can_recover(state, request, past) {
        return None;
    }
    if past.after == Some(VerifiedAfter::Everything) {
        let task = TaskRef { id: FINAL_TASK.to_owned(), label: FINAL_LABEL.to_owned() };
        return outcome
            .is_bad()
            .then(|| reopen_or_fail(state, request, task, "the final checks are red".to_owned()));
    }
    let task = past.task.clone()?;
    let reason = past.reason.clone();
    let or = |words: &str| reason.clone().unwrap_or_else(|| words.to_owned());
    match (past.kind, outcome) {
        (_, StepOutcome::Stopped) => None,
        (PlanStepKind::Verification, StepOutcome::Ok) => Some(match past.after {
            Some(VerifiedAfter::Review) => {
                (task, TaskMark::Reviewed, "reviewed, and the checks are green".to_owned())
            }
            Some(VerifiedAfter::Implementation | VerifiedAfter::Everything) | None => {
                (task, TaskMark::Implemented, "implemented, and the checks are green".to_owned())
            }
        }),
        (PlanStepKind::Implementation, StepOutcome::Ok) => past
            .result
            .answered
            .then(|| (task, TaskMark::Reviewed, "answered; nothing was changed".to_owned())),
        (PlanStepKind::Recovery | PlanStepKind::Review, StepOutcome::Ok) => None,
        (
            PlanStepKind::Verification | PlanStepKind::Recovery,
            StepOutcome::Failed | StepOutcome::SentBack,
        ) => Some(reopen_or_fail(state, request, task, or("the checks are red"))),
        (PlanStepKind::Review, StepOutcome::SentBack) => {
            Some(reopen_or_fail(state, request, task, or("the reviewer sent it back")))
        }
        (PlanStepKind::Implementation, StepOutcome::Failed) => {
            let is_last = is_used_up(state, request, &task);
            is_last.then(|| (task, TaskMark::Failed, or("the agent failed")))
        }
        (PlanStepKind::Review, StepOutcome::Failed)
        | (PlanStepKind::Implementation, StepOutcome::SentBack) => None,
    }
}

/// Reopens a task, or marks it failed if its attempts are used up.
fn reopen_or_fail(
    state: &PlanState,
    request: &PlanRequest,
    task: TaskRef,
    reason: String,
) -> (TaskRef, TaskMark, String) {
    let mark = if is_used_up(state, request, &task) { TaskMark::Failed } else { TaskMark::Open };
    (task, mark, reason)
}

fn is_used_up(state: &PlanState, request: &PlanRequest, task: &TaskRef) -> bool {
    let attempts = state.tasks.get(&task.id).map_or(0, |task| task.attempts);
    attempts >= request.bounds.attempts_max
}

#[cfg(test)]
mod tests;
