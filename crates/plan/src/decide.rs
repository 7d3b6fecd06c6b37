//! What comes next: pure decisions over the state of a loop and its plan.

use std::collections::BTreeSet;

use crate::document::{self, Choice, Mark, Plan};
use repertoire_journal::Payload;
use repertoire_journal::event::{StepOutcome, TaskRef};

use super::request::PlanRequest;
use super::state::{
    After, Ended, FINAL_LABEL, FINAL_TASK, Kind, Past, PlanState, mark_word, reference,
};
use super::watchdog;
use crate::limits::{INTERRUPTIONS_MAX, RECOVER_CUT_SHORT_MAX};
use crate::limits::NAMES_SHOWN;

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// An agent works on a task; on one of its own choice, if the plan's tasks cannot be told.
    Implement {
        /// The task.
        task: Option<TaskRef>,
    },
    /// Checks run.
    Verify {
        /// The task.
        task: Option<TaskRef>,
        /// What came before.
        after: After,
    },
    /// What the checks found is mended without an agent, if that can be done.
    Recover {
        /// The task.
        task: Option<TaskRef>,
        /// What the checks came after.
        after: After,
    },
    /// An agent reviews the work on a task.
    Review {
        /// The task.
        task: Option<TaskRef>,
    },
    /// Everything agrees that the work is done.
    Complete,
    /// It stops as asked; resuming goes on.
    Pause {
        /// Why.
        reason: String,
    },
    /// A person has to decide.
    Wait {
        /// Why.
        reason: String,
    },
    /// It cannot go on.
    Fail {
        /// Why, as `what:detail`.
        reason: String,
    },
}

/// What comes next.
pub fn next(state: &PlanState, plan: &Plan, request: &PlanRequest) -> Next {
    let bounds = &request.bounds;
    if let Some((kind, count)) = state.failures.iter().find(|(_, n)| **n >= bounds.failures_max) {
        let reason = format!("max_consecutive_failures:{}:{count}", kind.as_str());
        return Next::Fail { reason };
    }
    if state.interruptions >= INTERRUPTIONS_MAX {
        let task = state.last().and_then(|past| past.task.as_ref());
        let on = task.map_or(String::new(), |task| format!(" on \"{}\"", task.label));
        let reason = format!(
            "{} steps in a row{on} ended with their worker: look at what it does before it is tried again",
            state.interruptions
        );
        return Next::Wait { reason };
    }
    let next = match state.last() {
        None => pick(state, plan, request),
        Some(past) => follow(state, plan, request, past),
    };
    let rounds = state.iterations.saturating_sub(state.iterations_seen);
    match next {
        // What the last round did is still verified.
        Next::Implement { .. } | Next::Review { .. } if rounds >= bounds.iterations_max => {
            Next::Fail { reason: format!("iteration_limit_reached:{}", bounds.iterations_max) }
        }
        next => next,
    }
}

fn follow(state: &PlanState, plan: &Plan, request: &PlanRequest, past: &Past) -> Next {
    let task = past.task.clone();
    let is_open = |task: &Option<TaskRef>| match task {
        None => true,
        Some(task) => state.tasks.get(&task.id).is_some_and(|task| task.mark == Mark::Open),
    };
    let is_anew = |task: &Option<TaskRef>| {
        let known = task.as_ref().and_then(|task| state.tasks.get(&task.id));
        known.is_some_and(|task| task.begun.is_none())
    };
    let (Some(Ended::With(outcome)), false) = (past.ended, is_void(past)) else {
        // Nothing came of it, so it is done anew.
        return match (past.kind, past.after) {
            (Kind::Implementation, _) if !is_open(&task) => pick(state, plan, request),
            (Kind::Implementation, _) => Next::Implement { task },
            (Kind::Review, _) => Next::Review { task },
            (Kind::Verification | Kind::Recovery, after) => {
                Next::Verify { task, after: after.unwrap_or(After::Implementation) }
            }
        };
    };
    let is_ok = outcome == StepOutcome::Ok;
    match (past.kind, past.after) {
        // What the agent itself says is blocked is not done, whatever it has changed; nor is what is to be tried again.
        (Kind::Implementation, _) if is_ok && is_open(&task) && !is_anew(&task) => {
            Next::Verify { task, after: After::Implementation }
        }
        (Kind::Verification, Some(after)) if can_recover(state, request, past) => {
            Next::Recover { task, after }
        }
        (Kind::Recovery, Some(after)) if is_ok => Next::Verify { task, after },
        (Kind::Verification, Some(After::Everything)) if is_ok => Next::Complete,
        (Kind::Verification, Some(After::Implementation)) if is_ok && request.review => {
            Next::Review { task }
        }
        (Kind::Review, _) if is_ok => Next::Verify { task, after: After::Review },
        // No verdict is no reason to work: the review is done again, until the watchdog or the failures end that.
        (Kind::Review, _) if outcome == StepOutcome::Failed => Next::Review { task },
        _ if !is_ok && task.is_some() && is_open(&task) => Next::Implement { task },
        _ => pick(state, plan, request),
    }
}

/// Whether red checks are mended without an agent: once after each step of an agent, if that was asked for. What was put off or
/// cut short has not been tried; but that, too, has an end.
fn can_recover(state: &PlanState, request: &PlanRequest, past: &Past) -> bool {
    let is_red =
        past.kind == Kind::Verification && past.ended == Some(Ended::With(StepOutcome::Failed));
    let since = state.history.iter().rev().take_while(|past| !past.kind.is_agent());
    let recoveries: Vec<&Past> = since.filter(|past| past.kind == Kind::Recovery).collect();
    let is_cut = |past: &&Past| past.ended == Some(Ended::Interrupted) || is_void(past);
    request.improve.is_some()
        && is_red
        && recoveries.iter().all(is_cut)
        && recoveries.len() < RECOVER_CUT_SHORT_MAX
}

/// Whether a step has to be done again as if it had never been.
fn is_void(past: &Past) -> bool {
    matches!(past.ended, Some(Ended::With(StepOutcome::Stopped)))
}

fn pick(state: &PlanState, plan: &Plan, request: &PlanRequest) -> Next {
    if let Some(reason) = &state.fallback {
        return match state.history.is_empty() || state.looked {
            true => Next::Implement { task: None },
            false => Next::Wait {
                reason: format!(
                    "the tasks of the plan cannot be told ({reason}), so nobody but you can say whether it is done"
                ),
            },
        };
    }
    let done = |mark| match request.review {
        true => mark == Mark::Reviewed,
        false => matches!(mark, Mark::Implemented | Mark::Reviewed),
    };
    let is_over = |mark| done(mark) || matches!(mark, Mark::Failed | Mark::Blocked);
    let ended = state.tasks.values().find(|task| task.fresh && is_over(task.mark));
    if let Some(task) = ended.filter(|_| request.once) {
        let reason =
            format!("one task was asked for: \"{}\" is {}", task.label, mark_word(task.mark));
        return Next::Pause { reason };
    }
    // What is implemented is finished before anything new is begun.
    if request.review
        && let Some((id, _)) = state.marked(Mark::Implemented).next()
    {
        return Next::Review { task: state.task_ref(id) };
    }
    match document::select_task(plan) {
        Choice::Task(id) => {
            Next::Implement { task: state.task_ref(id.as_str()).or_else(|| task_of(plan, &id)) }
        }
        Choice::Stuck { waiting } => {
            let why = some(waiting.iter().map(|(_, why)| why.clone()));
            Next::Wait { reason: format!("every open task waits: {why}") }
        }
        Choice::Nothing => at_the_end(state, plan),
    }
}

/// No task is open and nothing waits for review.
fn at_the_end(state: &PlanState, plan: &Plan) -> Next {
    // The journal knows of every task; a file that has lost one does not make it done.
    let in_plan: BTreeSet<&str> = plan.tasks.iter().map(|task| task.id.as_str()).collect();
    let lost = state
        .marked(Mark::Open)
        .filter(|(id, _)| *id != FINAL_TASK && !in_plan.contains(id))
        .map(|(_, task)| format!("\"{}\" is open, but no longer in the plan", task.label));
    let held: Vec<String> = [Mark::Failed, Mark::Blocked]
        .into_iter()
        .flat_map(|mark| state.marked(mark))
        .map(|(_, task)| format!("\"{}\" is {}", task.label, mark_word(task.mark)))
        .chain(lost)
        .collect();
    if !held.is_empty() {
        let reason = format!("nothing is left to do by itself: {}", some(held.into_iter()));
        return Next::Wait { reason };
    }
    // Nothing was changed, so there is nothing to check.
    if state.last().is_some_and(|past| past.is_ok() && past.flag("answered")) {
        return Next::Complete;
    }
    match state.tasks.get(FINAL_TASK).map(|task| task.mark) {
        Some(Mark::Open) => Next::Implement { task: state.task_ref(FINAL_TASK) },
        _ => Next::Verify { task: None, after: After::Everything },
    }
}

/// The first of them, for a sentence that a person reads.
pub(super) fn some(mut names: impl Iterator<Item = String>) -> String {
    let shown: Vec<String> = names.by_ref().take(NAMES_SHOWN).collect();
    match names.count() {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}

fn task_of(plan: &Plan, id: &document::TaskId) -> Option<TaskRef> {
    plan.task(id).map(reference)
}

/// What follows from the step that has just ended: marks, what is learnt, and what the watchdog sees.
pub fn conclude(state: &PlanState, request: &PlanRequest) -> Vec<Payload> {
    let Some(past) = state.last() else { return Vec::new() };
    let mut out = Vec::new();
    if let Some((task, mark, reason)) = marking(state, request, past) {
        if mark == Mark::Failed {
            let note = format!("\"{}\" failed: {reason}", task.label);
            out.push(Payload::Learned { task: Some(task.clone()), note });
        }
        out.push(Payload::TaskMarked { task, mark: mark_word(mark).to_owned(), reason });
    }
    if past.kind == Kind::Review
        && let Some(note) = past.text("learning").filter(|note| !note.trim().is_empty())
    {
        out.push(Payload::Learned { task: past.task.clone(), note: note.trim().to_owned() });
    }
    let has_failed = out
        .iter()
        .any(|payload| matches!(payload, Payload::TaskMarked { mark, .. } if mark == "failed"));
    // A task that is given up is nothing to try in other words.
    if !has_failed && past.is_bad() {
        out.extend(watchdog::act(state, request));
    }
    out
}

/// The commit before a task of the plan that has just been given up, if nothing else was worked on since.
pub fn given_up(state: &PlanState, happened: &[Payload]) -> Option<String> {
    let id = happened.iter().find_map(|payload| match payload {
        Payload::TaskMarked { task, mark, .. } if mark == mark_word(Mark::Failed) => Some(&task.id),
        _ => None,
    })?;
    let is_its = |past: &&Past| past.task.as_ref().is_some_and(|task| task.id == *id);
    let first = state.history.iter().rev().take_while(is_its).last()?;
    let base = state.tasks.get(id)?.begun.clone().or(state.tasks.get(id)?.base.clone())?;
    (id != FINAL_TASK && first.began_on.as_ref() == Some(&base)).then_some(base)
}

fn marking(
    state: &PlanState,
    request: &PlanRequest,
    past: &Past,
) -> Option<(TaskRef, Mark, String)> {
    let Some(Ended::With(outcome)) = past.ended else { return None };
    let is_ok = outcome == StepOutcome::Ok;
    if can_recover(state, request, past) {
        return None;
    }
    if past.after == Some(After::Everything) {
        let task = TaskRef { id: FINAL_TASK.to_owned(), label: FINAL_LABEL.to_owned() };
        return (!is_ok && outcome != StepOutcome::Stopped)
            .then(|| again(state, request, task, "the final checks are red".to_owned()));
    }
    let task = past.task.clone()?;
    let reason = past.reason.clone();
    let or = |words: &str| reason.clone().unwrap_or_else(|| words.to_owned());
    match (past.kind, past.after, outcome) {
        (_, _, StepOutcome::Stopped) => None,
        (Kind::Verification, Some(After::Review), StepOutcome::Ok) => {
            Some((task, Mark::Reviewed, "reviewed, and the checks are green".to_owned()))
        }
        (Kind::Verification, _, StepOutcome::Ok) => {
            Some((task, Mark::Implemented, "implemented, and the checks are green".to_owned()))
        }
        (Kind::Implementation, _, StepOutcome::Ok) if past.flag("answered") => {
            Some((task, Mark::Reviewed, "answered; nothing was changed".to_owned()))
        }
        (Kind::Recovery, _, StepOutcome::Ok) => None,
        (Kind::Verification | Kind::Recovery, ..) => {
            Some(again(state, request, task, or("the checks are red")))
        }
        (Kind::Review, _, StepOutcome::SentBack) => {
            Some(again(state, request, task, or("the reviewer sent it back")))
        }
        (Kind::Implementation, _, StepOutcome::Failed) if is_used_up(state, request, &task) => {
            Some((task, Mark::Failed, or("the agent failed")))
        }
        _ => None,
    }
}

/// Open again, or failed if its attempts are used up.
fn again(
    state: &PlanState,
    request: &PlanRequest,
    task: TaskRef,
    reason: String,
) -> (TaskRef, Mark, String) {
    let mark = if is_used_up(state, request, &task) { Mark::Failed } else { Mark::Open };
    (task, mark, reason)
}

fn is_used_up(state: &PlanState, request: &PlanRequest, task: &TaskRef) -> bool {
    let attempts = state.tasks.get(&task.id).map_or(0, |task| task.attempts);
    attempts >= request.bounds.attempts_max
}

#[cfg(test)]
mod tests;
