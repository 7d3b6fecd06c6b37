//! The dead letter of a run that failed or waits: the reason, the attempts, and the question that a
//! person has to answer. Pure.

use crate::document::TaskMark;
use repertoire_checks::recover::RecoverAttempt;
use repertoire_journal::event::StepOutcome;
use repertoire_journal::letter::{LetterPriority, LetterSource};
use repertoire_journal::{FixOutcome, NewLetter, Run, RunStatus};
use serde_json::json;

use super::state::{PlanState, PlanStepKind};
use crate::limits::NAMES_SHOWN;
use repertoire_checks::recover::FailureClass;

/// The dead letter of a run that has failed or waits for a person; `None` for any other. A run has
/// at most one, however often it stops.
pub fn build_letter(run: &Run, state: &PlanState, scope: &str, by: &str) -> Option<NewLetter> {
    if !matches!(run.status, RunStatus::Failed | RunStatus::Waiting) {
        return None;
    }
    let reason = run.reason.clone().unwrap_or_else(|| format!("it is {}", run.status));
    let class = failure_class(&reason, state);
    let priority = match (run.status, class) {
        (RunStatus::Failed, _) | (_, FailureClass::Permanent) => LetterPriority::High,
        _ => LetterPriority::Medium,
    };
    Some(NewLetter {
        scope: scope.to_owned(),
        source: LetterSource::Run,
        title: run.name.clone(),
        priority,
        class: class.as_str().to_owned(),
        question: build_question(&reason, class, state),
        reason: format!("{reason}{}", describe_attempts(state)),
        run: Some(run.id.clone()),
        data: json!({ "run": run.id, "workspace": run.workspace }),
        by: by.to_owned(),
    })
}

/// Permanent if recovery says so, or if a budget is exhausted.
fn failure_class(reason: &str, state: &PlanState) -> FailureClass {
    let is_refused = state.last_step().is_some_and(|past| {
        past.kind == PlanStepKind::Recovery && past.outcome() == Some(StepOutcome::Stopped)
    });
    if is_refused || reason.starts_with("budget:") {
        FailureClass::Permanent
    } else {
        FailureClass::Substantive
    }
}

fn build_question(reason: &str, class: FailureClass, state: &PlanState) -> String {
    if reason.starts_with("budget:") {
        return "May it use more, and how much?".to_owned();
    }
    if reason.starts_with("merge_failed:") {
        return "How should its work and that of others be brought together?".to_owned();
    }
    if class == FailureClass::Permanent {
        return format!("Can you put this right outside of the run: {reason}?");
    }
    let given_up = [TaskMark::Failed, TaskMark::Blocked]
        .into_iter()
        .find_map(|mark| state.tasks_with_mark(mark).next());
    let last =
        state.last_step().and_then(|past| past.task.as_ref()).map(|task| task.label.as_str());
    match given_up.map(|(_, task)| task.label.as_str()).or(last) {
        Some(task) => format!("What should be done differently about \"{task}\"?"),
        None => "What should be done differently?".to_owned(),
    }
}

/// A description of the attempts, by agents and by recovery.
fn describe_attempts(state: &PlanState) -> String {
    let works =
        state.history.iter().filter(|past| past.kind == PlanStepKind::Implementation).count();
    let fixes = state
        .history
        .iter()
        .filter(|past| past.kind == PlanStepKind::Recovery)
        .flat_map(|past| past.result.attempts.iter().map(describe_attempt));
    let fixes: Vec<String> = fixes.collect();
    let fixes = &fixes[fixes.len().saturating_sub(NAMES_SHOWN)..];
    let agents = match works {
        0 => return String::new(),
        1 => "an agent worked on it once".to_owned(),
        many => format!("agents worked on it {many} times"),
    };
    if fixes.is_empty() {
        format!(" ({agents})")
    } else {
        format!(" ({agents}; tried besides: {})", fixes.join(", "))
    }
}

fn describe_attempt(attempt: &RecoverAttempt) -> String {
    let outcome = match attempt.outcome {
        FixOutcome::Worked => "worked",
        FixOutcome::Failed => "failed",
        FixOutcome::Unknown => "unknown",
    };
    format!("{} {outcome}", attempt.strategy.as_str())
}
