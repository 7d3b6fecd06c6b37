//! Describes the events of workflow runs.

use repertoire_journal::{Event, Payload};
use serde_json::Value;

use crate::ui;

/// Returns the step that a run was at after its last event, with the turn.
pub(crate) fn describe_current_step(events: &[Event]) -> Option<String> {
    let steps = events.iter().rev().filter_map(|event| match &event.payload {
        Payload::KindEvent { data, .. } => ReachedStep::from_data(data),
        _ => None,
    });
    steps.map(|reached| format!("{} (turn {})", reached.step, reached.turn)).next()
}

/// Describes an event of a workflow run. `None` if it belongs to a run of another kind.
pub(super) fn describe_workflow_event(name: &str, data: &Value) -> Option<String> {
    let reached = ReachedStep::from_data(data)?;
    let done = match name {
        "start" | "script_start" => return Some(format!("begins at step {}", reached.step)),
        "input" => describe_action(&data["input"]["action"])?,
        "script_step" => describe_report(&data["report"]["report"]),
        "script_resume" => "a person lets it continue".to_owned(),
        "script_abort" => return Some(format!("a person ends it at step {}", reached.step)),
        _ => return None,
    };
    Some(format!("{done}; now at step {}, turn {}", reached.step, reached.turn))
}

/// The step that a workflow run was at after an event.
struct ReachedStep<'a> {
    step: &'a str,
    turn: u64,
}

impl<'a> ReachedStep<'a> {
    fn from_data(data: &'a Value) -> Option<Self> {
        let reached = data.get("reached")?;
        Some(ReachedStep {
            step: reached.get("step")?.as_str()?,
            turn: reached.get("turn")?.as_u64()?,
        })
    }
}

/// Describes an `EngineAction`: its name, or an object with its name as the only key.
fn describe_action(action: &Value) -> Option<String> {
    if let Some(name) = action.as_str() {
        return (name == "ask_acceptance").then(|| "a person is asked to accept it".to_owned());
    }
    let (name, fields) = action.as_object()?.iter().next()?;
    let count = |field: &str| fields[field].as_array().map_or(0, Vec::len);
    Some(match name.as_str() {
        "leave" => describe_report(fields),
        "error" => format!("the step failed: {}", fields["message"].as_str().unwrap_or_default()),
        "record" => format!(
            "a review recorded {} and {}",
            ui::format_count(count("items"), "item"),
            ui::format_count(count("checks"), "check")
        ),
        "ask" => format!("the agent asks {}", ui::format_count(count("questions"), "question")),
        "answer" => "a person answers".to_owned(),
        "choose" => describe_choice(fields),
        _ => return None,
    })
}

/// Describes the report of a step that is done.
fn describe_report(report: &Value) -> String {
    match report["outcome"].as_str() {
        Some(outcome) => format!("the step is done with outcome {outcome}"),
        None => "the step is done".to_owned(),
    }
}

fn describe_choice(fields: &Value) -> String {
    let choice = match &fields["choice"] {
        Value::String(word) => word.replace('_', "-"),
        other => format!("take:{}", other["take"].as_str().unwrap_or_default()),
    };
    match fields["note"].as_str() {
        Some(note) if !note.trim().is_empty() => format!("a person chose {choice} ({note})"),
        _ => format!("a person chose {choice}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use repertoire_flow::driver::WorkflowRunEvent;
    use repertoire_flow::engine::{EngineAction, EngineInput, PersonChoice, StepReport};
    use serde_json::json;

    use super::*;

    /// Checks the description of an action that led to the second turn of the step `fix`.
    #[track_caller]
    fn check(action: EngineAction, expected: &str) {
        let event = json!(WorkflowRunEvent::Input { input: EngineInput::about_now(action) });
        let mut data = event["data"].clone();
        data["reached"] = json!({ "digest": "sha256:0", "step": "fix", "turn": 2 });
        let text = describe_workflow_event(event["name"].as_str().unwrap(), &data);
        assert_eq!(text.as_deref(), Some(format!("{expected}; now at step fix, turn 2").as_str()));
    }

    #[test]
    fn an_accepted_input_is_told_with_the_step_that_it_led_to() {
        check(EngineAction::Leave(StepReport::default()), "the step is done");
        let outcome = Some("pass".into());
        check(
            EngineAction::Leave(StepReport { outcome, ..StepReport::default() }),
            "the step is done with outcome pass",
        );
        check(EngineAction::Error { message: "no disk".into() }, "the step failed: no disk");
        check(
            EngineAction::Record { gate: None, items: Vec::new(), checks: Vec::new() },
            "a review recorded 0 items and 0 checks",
        );
        check(EngineAction::Ask { questions: Vec::new() }, "the agent asks 0 questions");
        check(EngineAction::AskAcceptance, "a person is asked to accept it");
        check(EngineAction::Answer { answers: BTreeMap::new() }, "a person answers");
        let choose = |choice, note: &str| EngineAction::Choose { choice, note: note.to_owned() };
        check(choose(PersonChoice::MustOnly, ""), "a person chose must-only");
        check(
            choose(PersonChoice::Take("pass".into()), "it is late"),
            "a person chose take:pass (it is late)",
        );
    }

    #[test]
    fn a_start_is_told_by_its_step_and_other_kinds_are_left_alone() {
        let reached = json!({ "digest": "sha256:0", "step": "reproduce", "turn": 1 });
        let data = json!({ "version": 1, "fingerprint": "sha256:1", "reached": reached });
        assert_eq!(
            describe_workflow_event("start", &data).as_deref(),
            Some("begins at step reproduce")
        );
        assert_eq!(describe_workflow_event("turn_ended", &json!({ "turn": 1 })), None);
    }
}
