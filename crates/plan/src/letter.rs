//! The dead letter of a run that failed or waits: the reason, the attempts, and the question that a
//! person has to answer. Pure.

use crate::document::Mark;
use repertoire_journal::event::StepOutcome;
use repertoire_journal::letter::{LetterSource, Priority};
use repertoire_journal::{NewLetter, Run, RunStatus};
use serde_json::{Value, json};

use super::state::{Ended, Kind, PlanState};
use crate::limits::NAMES_SHOWN;
use repertoire_checks::recover::Class;

/// The dead letter of a run that has failed or waits for a person; `None` for any other. A run has
/// at most one, however often it stops.
pub fn letter(run: &Run, state: &PlanState, scope: &str, by: &str) -> Option<NewLetter> {
    if !matches!(run.status, RunStatus::Failed | RunStatus::Waiting) {
        return None;
    }
    let reason = run.reason.clone().unwrap_or_else(|| format!("it is {}", run.status));
    let class = class(&reason, state);
    let priority = match (run.status, class) {
        (RunStatus::Failed, _) | (_, Class::Permanent) => Priority::High,
        _ => Priority::Medium,
    };
    Some(NewLetter {
        scope: scope.to_owned(),
        source: LetterSource::Run,
        title: run.name.clone(),
        priority,
        class: class.as_str().to_owned(),
        question: question(&reason, class, state),
        reason: format!("{reason}{}", tried(state)),
        run: Some(run.id.clone()),
        data: json!({ "run": run.id, "workspace": run.workspace }),
        by: by.to_owned(),
    })
}

/// Permanent if recovery says so, or if a budget is exhausted.
fn class(reason: &str, state: &PlanState) -> Class {
    let is_refused = state.last().is_some_and(|past| {
        past.kind == Kind::Recovery && past.ended == Some(Ended::With(StepOutcome::Stopped))
    });
    if is_refused || reason.starts_with("budget:") { Class::Permanent } else { Class::Substantive }
}

fn question(reason: &str, class: Class, state: &PlanState) -> String {
    if reason.starts_with("budget:") {
        return "May it use more, and how much?".to_owned();
    }
    if reason.starts_with("merge_failed:") {
        return "How should its work and that of others be brought together?".to_owned();
    }
    if class == Class::Permanent {
        return format!("Can you put this right outside of the run: {reason}?");
    }
    let given_up =
        [Mark::Failed, Mark::Blocked].into_iter().find_map(|mark| state.marked(mark).next());
    let last = state.last().and_then(|past| past.task.as_ref()).map(|task| task.label.as_str());
    match given_up.map(|(_, task)| task.label.as_str()).or(last) {
        Some(task) => format!("What should be done differently about \"{task}\"?"),
        None => "What should be done differently?".to_owned(),
    }
}

/// A description of the attempts, by agents and by recovery.
fn tried(state: &PlanState) -> String {
    let works = state.history.iter().filter(|past| past.kind == Kind::Implementation).count();
    let fixes = state.history.iter().filter(|past| past.kind == Kind::Recovery).flat_map(|past| {
        let attempts = past.result.get("attempts").and_then(Value::as_array);
        attempts.into_iter().flatten().map(in_words)
    });
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

fn in_words(attempt: &Value) -> String {
    let text = |name: &str| attempt.get(name).and_then(Value::as_str).unwrap_or("?");
    format!("{} {}", text("strategy"), text("outcome"))
}
