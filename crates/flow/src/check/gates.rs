//! Checks gates, confidence steps and bounds: pillars, reviews, schedules and limits.

use std::collections::{BTreeSet, HashMap};

use super::names::suggest_name;
use super::{FieldPath, StepGraph, WorkflowFinding};
use crate::check_command::worker_values;
use crate::codes;
use crate::limits::LOOP_MAX;
use crate::template::names_in_expression;
use crate::workflow::{
    ConfidenceLoop, Decide, DeclaredCheck, Gate, OutcomeCase, StepDef, StepId, Workflow,
    WorkflowOutcome,
};

pub(super) fn check_gates(workflow: &Workflow, graph: &StepGraph, out: &mut Vec<WorkflowFinding>) {
    let known = GateFacts {
        owners: map_review_owners(workflow),
        decided: workflow.steps.iter().map(decided_by).collect(),
    };
    for (name, check) in &workflow.checks {
        let given = [&check.command, &check.file, &check.plan];
        if given.iter().filter(|text| !text.is_empty()).count() > 1 {
            let message =
                format!("check `{name}` has more than one of `command`, `file` and `plan`");
            let place = FieldPath::default().key("checks").key(name.as_str());
            out.push(WorkflowFinding::new(&codes::GATE_REVIEW, message, place));
        }
        check_worker_values(workflow, name, check, out);
    }
    for (at, step) in workflow.steps.iter().enumerate() {
        let place = FieldPath::for_step(at);
        match &step.decide {
            Decide::Gate(gate) => {
                let place = place.key("decide").key("gate");
                check_pillars(gate, step, &place, out);
                check_reviews(workflow, &known, (step, gate), &place, out);
                check_bypasses(workflow, graph, &known, (at, step, gate), out);
                check_schedule(gate, &place, out);
            }
            Decide::Confidence(confidence) => {
                check_levels(confidence, &place.key("decide").key("confidence"), out);
            }
            Decide::Cases(_) | Decide::Reported => {}
        }
        check_bound(step, &place, out);
    }
}

fn check_pillars(gate: &Gate, step: &StepDef, place: &FieldPath, out: &mut Vec<WorkflowFinding>) {
    let is_empty = |text: &Option<String>| text.as_ref().is_none_or(|text| text.trim().is_empty());
    let missing = [
        (is_empty(&gate.banner), "its banner (`banner`)"),
        (is_empty(&gate.stop), "its stop condition (`stop`)"),
        (gate.reverify.is_none(), "its re-verify mode (`reverify`)"),
    ];
    for (_, what) in missing.iter().filter(|(is_missing, _)| *is_missing) {
        let message = format!("gate `{}` lacks {what}", step.id);
        out.push(WorkflowFinding::new(&codes::GATE_PILLAR, message, place.clone()));
    }
}

/// Facts about the workflow that are computed once for all gates.
struct GateFacts<'a> {
    owners: HashMap<&'a StepId, &'a StepId>,
    /// For each step that is decided by conditions, the names those conditions use.
    decided: Vec<Option<BTreeSet<String>>>,
}

/// Reports values in a check that the worker decides: the check would prove what the worker chooses.
fn check_worker_values(
    workflow: &Workflow,
    name: &str,
    check: &DeclaredCheck,
    out: &mut Vec<WorkflowFinding>,
) {
    let texts = [("command", &check.command), ("file", &check.file), ("plan", &check.plan)];
    let key = texts.iter().find(|(_, text)| !text.is_empty()).map_or("command", |(key, _)| *key);
    for value in worker_values(workflow, check) {
        let parameter = value.split('.').next().unwrap_or_default();
        let setter =
            workflow.steps.iter().find(|step| step.sets.iter().any(|set| set == parameter));
        let from = match setter {
            Some(step) => format!("which step `{}` sets", step.id),
            None => "which the agent that does the work reports".to_owned(),
        };
        let message = format!(
            "check `{name}` uses `{value}`, {from}: who does the work cannot decide what proves it; let the run be started with the value"
        );
        let place = FieldPath::default().key("checks").key(name).key(key);
        out.push(WorkflowFinding::new(&codes::GATE_REVIEW, message, place));
    }
}

/// Maps each review step to the first gate that lists it; a step may review for one gate only.
fn map_review_owners(workflow: &Workflow) -> HashMap<&StepId, &StepId> {
    let mut owners = HashMap::new();
    for (step, gate) in workflow.gates() {
        for review in &gate.reviews {
            owners.entry(review).or_insert(&step.id);
        }
    }
    owners
}

fn check_reviews(
    workflow: &Workflow,
    known: &GateFacts<'_>,
    (step, gate): (&StepDef, &Gate),
    place: &FieldPath,
    out: &mut Vec<WorkflowFinding>,
) {
    let mut wrong = |message: String, place: FieldPath| {
        out.push(WorkflowFinding::new(&codes::GATE_REVIEW, message, place));
    };
    if gate.reviews.is_empty() {
        wrong(format!("gate `{}` names no review", step.id), place.key("reviews"));
    }
    for (at, id) in gate.reviews.iter().enumerate() {
        if workflow.find_step(id).is_none_or(|step| step.decide.as_gate().is_some()) {
            let steps = workflow.steps.iter().filter(|step| step.decide.as_gate().is_none());
            let near = suggest_name(at, id.as_str(), steps.map(|step| step.id.as_str()));
            let message = format!("there is no step `{id}` to review in{near}");
            wrong(message, place.key("reviews").index(at));
        }
        if let Some(other) = known.owners.get(id).filter(|other| ***other != step.id) {
            let message = format!("step `{id}` reviews for `{other}` already");
            wrong(message, place.key("reviews").index(at));
        }
    }
    if step
        .next
        .find_target(&WorkflowOutcome::Fail)
        .is_some_and(|target| target.as_step().is_none())
    {
        wrong(
            format!(
                "gate `{}` ends the workflow when it fails; lead it to the step that repairs",
                step.id
            ),
            place.clone(),
        );
    }
    for (at, name) in gate.checks.iter().enumerate() {
        let place = place.key("checks").index(at);
        if !workflow.checks.contains_key(name) {
            let near = suggest_name(out.len(), name, workflow.checks.keys().map(String::as_str));
            let message = format!("there is no check `{name}`{near}");
            out.push(WorkflowFinding::new(&codes::UNKNOWN_REFERENCE, message, place));
        }
    }
}

/// Reports paths that lead past a gate that was not passed.
fn check_bypasses(
    workflow: &Workflow,
    graph: &StepGraph,
    known: &GateFacts<'_>,
    (at, step, gate): (usize, &StepDef, &Gate),
    out: &mut Vec<WorkflowFinding>,
) {
    let mut wrong = |message: String, place: FieldPath| {
        out.push(WorkflowFinding::new(&codes::GATE_REVIEW, message, place));
    };
    let place = FieldPath::for_step(at);
    if step.on_error.is_some() {
        let message =
            format!("gate `{}` cannot have `on_error`: it would be a way round it", step.id);
        wrong(message, place.key("on_error"));
    }
    // While an edge has an unknown target, paths cannot be computed; that target has its own finding.
    if !graph.is_whole() {
        return;
    }
    let index = |id: &StepId| workflow.step_number(id).map(|number| number - 1);
    for (number, id) in gate.reviews.iter().enumerate() {
        if index(id).is_some_and(|review| !graph.reaches(review, at)) {
            let message = format!("from review `{id}` there is no way to gate `{}`", step.id);
            wrong(message, place.key("decide").key("gate").key("reviews").index(number));
        }
    }
    let target = |outcome| step.next.find_target(&outcome).and_then(|to| index(to.as_step()?));
    let Some(repair) = target(WorkflowOutcome::Fail) else { return };
    let next = place.key("next").key("fail");
    let name = &workflow.steps[repair].id;
    if !graph.reaches(repair, at) {
        let message = format!("from `{name}` there is no way back to gate `{}`", step.id);
        wrong(message, next);
        return;
    }
    let on = target(WorkflowOutcome::Ok);
    if let Some(past) = find_bypass(workflow, graph, &known.decided, (repair, at, on)) {
        let message = format!(
            "from `{name}`, where gate `{}` leads when it fails, {past} is reached without passing it",
            step.id
        );
        wrong(message, next);
        return;
    }
    let mut own = BTreeSet::new();
    for (number, id) in gate.reviews.iter().enumerate() {
        // A review owned by another gate is already an error, and a review listed twice is reported once.
        if known.owners.get(id) != Some(&&step.id) || !own.insert(id) {
            continue;
        }
        let Some(review) = index(id).filter(|review| graph.reaches(*review, at)) else { continue };
        if let Some(past) = find_bypass(workflow, graph, &known.decided, (review, at, on)) {
            let message =
                format!("from review `{id}`, {past} is reached without passing gate `{}`", step.id);
            wrong(message, place.key("decide").key("gate").key("reviews").index(number));
        }
    }
}

/// Returns the step behind a gate, or the end, if a run can reach it without passing the gate.
fn find_bypass(
    workflow: &Workflow,
    graph: &StepGraph,
    decided: &[Option<BTreeSet<String>>],
    (from, gate, on): (usize, usize, Option<usize>),
) -> Option<String> {
    let fixed = find_fixed_steps(workflow, graph, decided, (from, gate));
    let closed = |other: usize| other == gate || fixed[other];
    let reached = graph.reached_without(from, closed);
    if let Some(on) = on.filter(|on| reached[*on]) {
        return Some(format!("`{}`", workflow.steps[on].id));
    }
    let ends = |other: usize| reached[other] && !closed(other) && graph.has_end_edge(other);
    (0..reached.len()).any(ends).then(|| "the end".to_owned())
}

/// The names that the conditions of a step use, if conditions decide it.
fn decided_by(step: &StepDef) -> Option<BTreeSet<String>> {
    let Decide::Cases(cases) = &step.decide else { return None };
    let names = |case: &OutcomeCase| names_in_expression(&case.condition).unwrap_or_default();
    Some(cases.when.iter().flat_map(names).collect())
}

/// Marks the steps whose route cannot change between `from` and the gate: conditions decide them, and those conditions
/// use nothing that an agent reports on the way.
fn find_fixed_steps(
    workflow: &Workflow,
    graph: &StepGraph,
    decided: &[Option<BTreeSet<String>>],
    (from, gate): (usize, usize),
) -> Vec<bool> {
    let before = graph.reached_without(from, |other| other == gate);
    let steps = || workflow.steps.iter().zip(&before).filter(|(_, is)| **is).map(|(step, _)| step);
    let sets: BTreeSet<&str> = steps().flat_map(|step| &step.sets).map(String::as_str).collect();
    let outputs: BTreeSet<&str> = steps().map(|step| step.id.as_str()).collect();
    let is_said = |name: &String| match name.strip_prefix("state") {
        Some(rest) if rest.is_empty() || rest == ".outputs" => true,
        Some(rest) => rest.strip_prefix(".outputs.").is_some_and(|id| outputs.contains(id)),
        None => sets.contains(name.split('.').next().unwrap_or_default()),
    };
    let is_fixed = |names: &BTreeSet<String>| !names.iter().any(is_said);
    decided.iter().map(|names| names.as_ref().is_some_and(is_fixed)).collect()
}

fn check_schedule(gate: &Gate, place: &FieldPath, out: &mut Vec<WorkflowFinding>) {
    let mut wrong = |message: String, place: FieldPath| {
        out.push(WorkflowFinding::new(&codes::BAD_BOUND, message, place));
    };
    if gate.schedule.is_empty() {
        wrong("the schedule is empty".to_owned(), place.key("schedule"));
    }
    if gate.schedule.windows(2).any(|pair| pair[1] < pair[0]) {
        wrong(
            "the schedule gets stricter; it can only get more lenient".to_owned(),
            place.key("schedule"),
        );
    }
    if gate.limit.is_some_and(|limit| limit == 0 || limit > LOOP_MAX) {
        wrong(format!("the limit has to be 1 to {LOOP_MAX}"), place.key("limit"));
    }
    if gate.schedule.len() > LOOP_MAX as usize {
        wrong(format!("the schedule is longer than {LOOP_MAX}"), place.key("schedule"));
    }
}

fn check_levels(confidence: &ConfidenceLoop, place: &FieldPath, out: &mut Vec<WorkflowFinding>) {
    let mut wrong = |message: String, place: FieldPath| {
        out.push(WorkflowFinding::new(&codes::BAD_BOUND, message, place));
    };
    if confidence.max == 0 || confidence.max > LOOP_MAX {
        wrong(format!("`max` has to be 1 to {LOOP_MAX}"), place.key("max"));
    }
    if confidence.questions.is_empty() {
        if !confidence.levels.is_empty() {
            wrong("`levels` are for sums of `questions`".to_owned(), place.key("levels"));
        }
        return;
    }
    let most = confidence.questions.len() as f64;
    let reachable =
        |level| confidence.levels.iter().any(|(known, least)| *known >= level && *least <= most);
    if !reachable(confidence.until) {
        wrong(
            format!("no answers give `{}`: say in `levels` how many it needs", confidence.until),
            place.key("until"),
        );
    }
}

fn check_bound(step: &StepDef, place: &FieldPath, out: &mut Vec<WorkflowFinding>) {
    let Some(bound) = &step.bound else { return };
    let mut wrong = |message: String, place: FieldPath| {
        out.push(WorkflowFinding::new(&codes::BAD_BOUND, message, place));
    };
    let place = place.key("loop");
    if bound.max == 0 || bound.max > LOOP_MAX {
        wrong(format!("`max` has to be 1 to {LOOP_MAX}"), place.key("max"));
    }
    if matches!(step.decide, Decide::Gate(_) | Decide::Confidence(_)) {
        wrong(format!("step `{}` has a bound of its own already", step.id), place.clone());
    }
    if let Some(outcome) = &bound.at_limit
        && !step.possible_outcomes().contains(outcome)
    {
        wrong(format!("step `{}` cannot end with `{outcome}`", step.id), place.key("at_limit"));
    }
}
