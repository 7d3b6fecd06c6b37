//! Detects loops without progress, by the results of steps rather than by what agents claim.

use repertoire_journal::Payload;

use super::request::PlanRequest;
use super::state::{PastStep, PlanState, PlanStepKind};

/// Number of equal failures in a row that raise a signal.
const SAME_FAILURES: usize = 3;
/// Number of steps in a row without a change that raise a signal.
const IDLE_STEPS: usize = 2;
/// Number of unreadable answers in a row that raise a signal.
const MALFORMED_ANSWERS: usize = 2;

/// A sign of missing progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchdogSignal {
    pub name: &'static str,
    /// The observation, as a sentence.
    pub evidence: String,
}

/// The most important signal of the steps since the watchdog last acted.
pub fn find_signal(state: &PlanState) -> Option<WatchdogSignal> {
    let recent: Vec<&PastStep> =
        state.history.iter().filter(|past| past.number > state.watched_to).collect();
    agent_failed(&recent)
        .or_else(|| same_failure(&recent))
        .or_else(|| no_progress(&recent))
        .or_else(|| repeated_diff(&recent))
        .or_else(|| malformed_output(&recent))
}

/// The watchdog's events after the step that has just ended: it rewrites the next prompt, or lets
/// the run wait for a person.
pub fn watchdog_events(state: &PlanState, request: &PlanRequest) -> Vec<Payload> {
    let (Some(signal), Some(last)) = (find_signal(state), state.last_step()) else {
        return Vec::new();
    };
    let step = last.number;
    let seen = Payload::WatchdogSignal {
        step,
        signal: signal.name.to_owned(),
        evidence: signal.evidence.clone(),
    };
    // Another prompt does not help an agent that cannot run at all.
    let may_rewrite = state.rewrites < request.bounds.rewrites_max && signal.name != AGENT_FAILED;
    let then = if may_rewrite {
        Payload::WatchdogRewrite {
            step,
            signal: signal.name.to_owned(),
            rewrite: state.rewrites + 1,
            text: rewrite_text(&signal),
        }
    } else {
        Payload::RunWaiting {
            reason: format!("watchdog:{}: {}", signal.name, signal.evidence),
            choices: waiting_choices(),
        }
    };
    vec![seen, then]
}

/// The options of a person for a waiting run.
pub fn waiting_choices() -> Vec<String> {
    [
        "steer it with a note, then resume",
        "retry the tasks that failed or are blocked",
        "change the plan in the run's worktree, then resume",
        "cancel it",
    ]
    .map(str::to_owned)
    .to_vec()
}

const AGENT_FAILED: &str = "agent_failed";

/// The agent repeatedly failed to run: no API key, no program, no permission.
fn agent_failed(recent: &[&PastStep]) -> Option<WatchdogSignal> {
    let mut works = recent
        .iter()
        .rev()
        .filter(|past| past.kind.is_agent() && past.ended.is_some())
        .map(|past| past.result.agent_failed.then_some(past.reason.as_deref()).flatten());
    let first = works.next()??;
    let same = 1 + works.take_while(|reason| *reason == Some(first)).count();
    (same >= IDLE_STEPS).then(|| WatchdogSignal {
        name: AGENT_FAILED,
        evidence: format!("the agent could not work {same} times in a row: {first}"),
    })
}

fn same_failure(recent: &[&PastStep]) -> Option<WatchdogSignal> {
    let mut prints = recent
        .iter()
        .rev()
        .filter(|past| past.kind == PlanStepKind::Verification)
        .map(|past| past.is_bad().then_some(past.result.failure.as_deref()).flatten());
    let first = prints.next()??;
    let same = 1 + prints.take_while(|print| *print == Some(first)).count();
    (same >= SAME_FAILURES).then(|| WatchdogSignal {
        name: "same_failure",
        evidence: format!("the same checks failed in the same way {same} times in a row"),
    })
}

fn no_progress(recent: &[&PastStep]) -> Option<WatchdogSignal> {
    let works = || {
        let works = recent.iter().rev().filter(|past| past.kind == PlanStepKind::Implementation);
        works.filter(|past| past.ended.is_some())
    };
    let idle = works().take_while(|past| past.is_bad() && !past.result.changed).count();
    let reason = works().next().and_then(|past| past.reason.as_deref()).unwrap_or_default();
    (idle >= IDLE_STEPS).then(|| WatchdogSignal {
        name: "no_progress",
        evidence: format!("{idle} implementations in a row changed no file ({reason})"),
    })
}

/// The same change was made again after it had been rejected.
fn repeated_diff(recent: &[&PastStep]) -> Option<WatchdogSignal> {
    let mut works = recent
        .iter()
        .rev()
        .filter(|past| past.kind == PlanStepKind::Implementation && past.result.changed);
    let last = works.next()?;
    let diff = last.result.diff.as_deref()?;
    let before =
        works.find(|past| past.task == last.task && past.result.diff.as_deref() == Some(diff))?;
    Some(WatchdogSignal {
        name: "repeated_diff",
        evidence: format!(
            "step {} left the same difference as step {}",
            last.number, before.number
        ),
    })
}

fn malformed_output(recent: &[&PastStep]) -> Option<WatchdogSignal> {
    let count = recent
        .iter()
        .rev()
        .filter(|past| past.kind == PlanStepKind::Review && past.ended.is_some())
        .take_while(|past| past.result.malformed)
        .count();
    (count >= MALFORMED_ANSWERS).then(|| WatchdogSignal {
        name: "malformed_output",
        evidence: format!("{count} reviews in a row gave no verdict that can be read"),
    })
}

fn rewrite_text(signal: &WatchdogSignal) -> String {
    let advice = match signal.name {
        "same_failure" => {
            "What was tried did not touch the cause. Read the whole failure first, find the smallest command that \
             shows it, and say to yourself what you expect to see before you change anything."
        }
        "no_progress" => {
            "Nothing was changed on disk. Work in the current folder with your tools; an answer in words is not \
             work. If the task cannot be done, mark it `[~]` in the plan and write the reason below it."
        }
        "repeated_diff" => {
            "The same change was made again although it was found wanting. Take another way: read what was \
             said about it, and change something else."
        }
        _ => "Answer with the verdict in the shape that is asked for, and nothing else.",
    };
    format!("**Take care: {}.** {advice}", signal.evidence)
}
