//! Suggests commands for a run, depending on its state.

use repertoire_journal::run::Run;
use repertoire_journal::{RunKind, RunStatus, RunStopRequest};

use crate::schema::runs::{DeliveredJson, RunCommand};

/// Returns the commands that make sense next, the most likely first.
pub(crate) fn suggest_commands(
    run: &Run,
    failed_tasks: usize,
    delivered: Option<&DeliveredJson>,
) -> Vec<RunCommand> {
    let short = run.id.short();
    let mut out = Vec::new();
    let mut add = |command: String, about: &str| {
        out.push(RunCommand { command, about: about.to_owned() });
    };
    let of = |word: &str| format!("rep runs {word} {short}");
    match run.status {
        RunStatus::Queued => {
            add("rep daemon".to_owned(), "work on what is in the queue");
            add(format!("{} --here", of("resume")), "work on it in this terminal");
            add(of("pause"), "keep it from being taken");
            add(of("cancel"), "end it");
        }
        RunStatus::Running => {
            add(format!("rep runs events {short} -f"), "watch it");
            add(format!("{} \"…\"", of("steer")), "say something before its next step");
            if run.wish.is_none() {
                add(of("pause"), "pause it after this step");
            }
            if run.wish != Some(RunStopRequest::Cancel) {
                add(of("cancel"), "end it");
            }
        }
        RunStatus::Paused | RunStatus::Waiting | RunStatus::Failed => {
            match find_exhausted_limit(run) {
                Some(limit) => add(format!("{} {}", of("resume"), limit.flag), "let it use more"),
                None => add(
                    format!("{} --here", of("resume")),
                    "go on where it stopped, in this terminal",
                ),
            }
            if failed_tasks > 0 {
                add(of("retry"), "try the failed tasks again");
            }
            if !run.status.is_over() {
                add(format!("{} \"…\"", of("steer")), "say something before its next step");
            }
        }
        RunStatus::Cancelled => add(of("retry"), "take it up again after all"),
        RunStatus::Completed => {}
    }
    if run.steps > 0 && run.status != RunStatus::Running {
        add(of("diff"), "see what it changed");
    }
    let is_delivered = delivered.is_some_and(|delivered| delivered.strategy != "keep");
    match (run.status, is_delivered) {
        (RunStatus::Completed, false) if run.worktree.is_some() => {
            add(of("merge"), "take its work over");
        }
        (RunStatus::Completed, true) if run.worktree.is_some() => {
            add("rep runs prune".to_owned(), "remove worktrees whose work is merged");
        }
        (RunStatus::Paused | RunStatus::Waiting, _) => add(of("cancel"), "end it"),
        _ => {}
    }
    out
}

/// Returns the commands for a run that the process which created it carries out.
pub(crate) fn suggest_for_attended(run: &Run, interrupted: bool) -> Vec<RunCommand> {
    let (id, short) = (run.id.as_str(), run.id.short());
    let mut out = Vec::new();
    let mut add = |command: String, about: &str| {
        out.push(RunCommand { command, about: about.to_owned() });
    };
    let is_in_use = run.status == RunStatus::Running && !interrupted;
    match RunKind::parse(&run.kind) {
        Some(RunKind::Conversation) => {
            add(
                "rep runs --kind conversation".to_owned(),
                "conversations, and how to go on with one",
            );
        }
        Some(RunKind::Workflow) => {
            add(format!("rep workflow status {id}"), "the step it is at, and its gate");
        }
        Some(RunKind::Review) if run.status == RunStatus::Completed => {
            add(format!("rep review show {short}"), "the findings, in any format");
        }
        _ => {}
    }
    if is_in_use {
        add(format!("rep runs events {short} -f"), "watch it");
    } else {
        add(format!("rep runs events {short}"), "everything that happened");
        add(format!("rep runs rm {short}"), "remove it, with its files");
    }
    out
}

/// A limit that a run has reached.
pub(crate) struct ExhaustedBudget {
    /// The amount used and the limit, for people.
    pub(crate) what: String,
    /// The option that would raise the limit, with a sufficient value.
    pub(crate) flag: String,
}

/// Returns the limit that a run has reached, if any. Such a run would stop at once if resumed.
pub(crate) fn find_exhausted_limit(run: &Run) -> Option<ExhaustedBudget> {
    let (limits, spent) = (&run.limits, &run.spent);
    if let Some(max) = limits.cost_usd.filter(|max| spent.cost_usd() >= *max) {
        let more = (spent.cost_usd().max(max) * 2.0).max(0.01);
        return Some(ExhaustedBudget {
            what: format!("${:.4} of ${max}", spent.cost_usd()),
            flag: format!("--max-cost {more:.2}"),
        });
    }
    if let Some(max) = limits.tokens.filter(|max| spent.total_tokens() >= *max) {
        return Some(ExhaustedBudget {
            what: format!("{} of {max} tokens", spent.total_tokens()),
            flag: format!("--max-tokens {}", spent.total_tokens().max(max).saturating_mul(2)),
        });
    }
    let max = limits.time_ms.filter(|max| spent.time_ms >= *max)?;
    Some(ExhaustedBudget {
        what: format!("{} of {} seconds at work", spent.time_ms / 1000, max / 1000),
        flag: format!("--max-time {}s", (spent.time_ms.max(max).saturating_mul(2) / 1000).max(1)),
    })
}
