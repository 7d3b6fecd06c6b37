//! Checks names: valid, not declared twice, and declared if referred to.

use std::collections::BTreeSet;

use repertoire_skill::name::nearest_name;

use super::{FieldPath, WorkflowFinding};
use crate::codes;
use crate::limits::{FINDINGS_MAX, ID_BYTES_MAX};
use crate::workflow::{AgentRole, Decide, FORMAT, StepBlock, StepDef, Workflow, WorkflowOutcome};

pub(super) fn check_names(workflow: &Workflow, out: &mut Vec<WorkflowFinding>) {
    let top = FieldPath::default();
    if workflow.format != FORMAT {
        let message = format!("format {} is not known; {FORMAT} is", workflow.format);
        out.push(WorkflowFinding::new(&codes::WORKFLOW_FORMAT, message, top.key("format")));
    }
    check_declared_names(workflow, out);
    let mut seen = BTreeSet::new();
    for (at, step) in workflow.steps.iter().enumerate() {
        let place = FieldPath::for_step(at);
        check_name(step.id.as_str(), "step", place.key("id"), out);
        if !seen.insert(&step.id) {
            let message = format!("step `{}` is there twice", step.id);
            out.push(WorkflowFinding::new(&codes::DUPLICATE_STEP, message, place.key("id")));
        }
        check_references(workflow, step, &place, out);
        if step.actions.is_empty() && step.decide.is_reported() {
            let message = format!("step `{}` tells its agent nothing", step.id);
            out.push(WorkflowFinding::new(&codes::EMPTY_STEP, message, place.key("id")));
        }
    }
}

fn check_declared_names(workflow: &Workflow, out: &mut Vec<WorkflowFinding>) {
    let top = FieldPath::default();
    let keys = [
        ("parameters", "parameter", workflow.parameters.keys().collect::<Vec<_>>()),
        ("phases", "phase", workflow.phases.keys().collect()),
        ("roles", "role", workflow.roles.keys().collect()),
        ("resources", "resource", workflow.resources.keys().collect()),
        ("checks", "check", workflow.checks.keys().collect()),
    ];
    for (field, what, names) in keys {
        for given in names {
            check_name(given, what, top.key(field).key(given.as_str()), out);
            if what == "parameter" {
                out.extend(check_expression_name(given, top.key(field).key(given.as_str())));
            }
        }
    }
}

/// Reports parameter names that don't work in expressions, where `a-b` is a subtraction and some names are reserved.
fn check_expression_name(given: &str, place: FieldPath) -> Option<WorkflowFinding> {
    if !is_name(given) {
        return None;
    }
    if given.contains('-') {
        let message = format!(
            "`{given}` cannot be the name of a parameter: it stands in expressions, so it has no `-`"
        );
        let help = format!("Call it `{}`.", given.replace('-', "_"));
        return Some(WorkflowFinding::new(&codes::STEP_ID, message, place).with_help(help));
    }
    ["state", "item"].contains(&given).then(|| {
        let message = format!(
            "`{given}` cannot be the name of a parameter: it means something else in texts"
        );
        WorkflowFinding::new(&codes::STEP_ID, message, place)
    })
}

/// The maximum number of names compared to find a suggestion.
const COMPARED_MAX: usize = 256;

/// Returns a suggestion to append to a message about an unknown name. A file may hold thousands of wrong names, so no
/// suggestion is computed once `found` findings exceed the number that is reported.
pub(super) fn suggest_name<'a>(
    found: usize,
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> String {
    let names = names.into_iter().take(if found < FINDINGS_MAX { COMPARED_MAX } else { 0 });
    nearest_name(given, names).map(|near| format!("; is `{near}` meant?")).unwrap_or_default()
}

/// Returns true if the text can be used as a name in a workflow.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.len() <= ID_BYTES_MAX
        && text.bytes().all(is_name_byte)
        && text != "end"
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte)
}

fn check_name(given: &str, what: &str, place: FieldPath, out: &mut Vec<WorkflowFinding>) {
    if !is_name(given) {
        let message = format!("`{given}` cannot be the name of a {what}");
        out.push(WorkflowFinding::new(&codes::STEP_ID, message, place));
    }
}

fn check_references(
    workflow: &Workflow,
    step: &StepDef,
    place: &FieldPath,
    out: &mut Vec<WorkflowFinding>,
) {
    let mut unknown = |what: &str, given: &str, place: FieldPath| {
        let near = suggest_name(out.len(), given, declared_names(workflow, what));
        let message = format!("there is no {what} `{given}`{near}");
        out.push(WorkflowFinding::new(&codes::UNKNOWN_REFERENCE, message, place));
    };
    if let Some(phase) = step.phase.as_ref().filter(|phase| !workflow.phases.contains_key(*phase)) {
        unknown("phase", phase, place.key("phase"));
    }
    if let Some(role) = step.role.as_ref().filter(|role| !is_known_role(workflow, role)) {
        unknown("role", role.as_str(), place.key("role"));
    }
    for (at, name) in step.sets.iter().enumerate() {
        if !workflow.parameters.contains_key(name) {
            unknown("parameter", name, place.key("sets").index(at));
        }
    }
    for (at, block) in step.actions.iter().enumerate() {
        let place = place.key("actions").index(at);
        match block {
            StepBlock::Resource(name) if !workflow.resources.contains_key(name) => {
                unknown("resource", name, place);
            }
            StepBlock::Convention(name) if !workflow.conventions.contains_key(name) => {
                unknown("convention", name, place);
            }
            StepBlock::QrBanner(gate) if !is_gate(workflow, gate.as_str()) => {
                unknown("gate", gate.as_str(), place);
            }
            StepBlock::PostQrRouting(post) => {
                if let Some(gate) =
                    post.gate.as_ref().filter(|gate| !is_gate(workflow, gate.as_str()))
                {
                    unknown("gate", gate.as_str(), place);
                }
            }
            StepBlock::Dispatch(dispatch) => {
                for brief in dispatch.briefs() {
                    if !is_known_role(workflow, &brief.agent) {
                        unknown("role", brief.agent.as_str(), place.clone());
                    }
                }
            }
            _ => {}
        }
    }
    check_outcome_names(step, place, out);
}

/// The declared names of a kind of thing, for suggestions.
fn declared_names<'a>(workflow: &'a Workflow, what: &str) -> Vec<&'a str> {
    match what {
        "phase" => workflow.phases.keys().map(String::as_str).collect(),
        "parameter" => workflow.parameters.keys().map(String::as_str).collect(),
        "resource" => workflow.resources.keys().map(String::as_str).collect(),
        "gate" => workflow.gates().map(|(step, _)| step.id.as_str()).collect(),
        "role" => {
            const KNOWN: &[AgentRole] = &AgentRole::KNOWN;
            let known = KNOWN.iter().map(AgentRole::as_str);
            known.chain(workflow.roles.keys().map(String::as_str)).collect()
        }
        _ => Vec::new(),
    }
}

/// Checks the names of outcomes. `default` matches whatever no other edge matches, so it cannot be an outcome itself.
fn check_outcome_names(step: &StepDef, place: &FieldPath, out: &mut Vec<WorkflowFinding>) {
    let words = step.possible_outcomes();
    let mut seen = BTreeSet::new();
    for outcome in words.iter().chain(step.next.routed_outcomes().iter()) {
        if let WorkflowOutcome::Named(word) = outcome
            && seen.insert(word)
            && !is_name(word)
        {
            let message = format!("`{word}` cannot be the name of an outcome");
            out.push(WorkflowFinding::new(&codes::STEP_ID, message, place.key("next")));
        }
    }
    let mut never = |place: FieldPath| {
        let message = "`default` takes what no other edge takes, and is no outcome";
        out.push(WorkflowFinding::new(&codes::STEP_ID, message, place));
    };
    if step.outcomes.contains_key(&WorkflowOutcome::Default) {
        never(place.key("outcomes").key("default"));
    }
    if let Decide::Cases(cases) = &step.decide
        && cases.distinct_outcomes().contains(&WorkflowOutcome::Default)
    {
        never(place.key("decide").key("cases"));
    }
    if step.bound.as_ref().is_some_and(|bound| bound.at_limit == Some(WorkflowOutcome::Default)) {
        never(place.key("loop").key("at_limit"));
    }
    if step.decide.is_reported() && words == [WorkflowOutcome::Default] && step.outcomes.is_empty()
    {
        let message = "`default` cannot be the only edge; write `next: STEP`";
        out.push(WorkflowFinding::new(&codes::STEP_ID, message, place.key("next")));
    }
}

fn is_gate(workflow: &Workflow, id: &str) -> bool {
    workflow.gates().any(|(step, _)| step.id.as_str() == id)
}

fn is_known_role(workflow: &Workflow, role: &AgentRole) -> bool {
    !matches!(role, AgentRole::Custom(name) if !workflow.roles.contains_key(name))
}
