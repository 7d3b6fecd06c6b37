//! Checks gates, confidence steps and bounds: pillars, reviews, schedules and limits.

use std::collections::{BTreeSet, HashMap};

use super::names::meant;
use super::{Finding, Graph, Place};
use crate::codes;
use crate::limits::LOOP_MAX;
use crate::template::{names_in_expression, names_in_text};
use crate::workflow::{
    Case, Check, ConfidenceLoop, Decide, Gate, Outcome, StepDef, StepId, Workflow,
};

pub(super) fn check(workflow: &Workflow, graph: &Graph, out: &mut Vec<Finding>) {
    let known = Known {
        owners: owners(workflow),
        decided: workflow.steps.iter().map(decided_by).collect(),
        commands: workflow.checks.iter().map(|(name, check)| (name, names_in(check))).collect(),
    };
    for (name, check) in &workflow.checks {
        let given = [&check.command, &check.file, &check.plan];
        if given.iter().filter(|text| !text.is_empty()).count() > 1 {
            let message =
                format!("check `{name}` has more than one of `command`, `file` and `plan`");
            let place = Place::default().key("checks").key(name.as_str());
            out.push(Finding::new(&codes::GATE_REVIEW, message, place));
        }
    }
    for (at, step) in workflow.steps.iter().enumerate() {
        let place = Place::step(at);
        match &step.decide {
            Decide::Gate(gate) => {
                let place = place.key("decide").key("gate");
                pillars(gate, step, &place, out);
                reviews(workflow, &known, (step, gate), &place, out);
                ways_round(workflow, graph, &known, (at, step, gate), out);
                numbers(gate, &place, out);
            }
            Decide::Confidence(confidence) => {
                levels(confidence, &place.key("decide").key("confidence"), out);
            }
            Decide::Cases(_) | Decide::Reported => {}
        }
        bound(step, &place, out);
    }
}

fn pillars(gate: &Gate, step: &StepDef, place: &Place, out: &mut Vec<Finding>) {
    let is_empty = |text: &Option<String>| text.as_ref().is_none_or(|text| text.trim().is_empty());
    let missing = [
        (is_empty(&gate.banner), "its banner (`banner`)"),
        (is_empty(&gate.stop), "its stop condition (`stop`)"),
        (gate.reverify.is_none(), "its re-verify mode (`reverify`)"),
    ];
    for (_, what) in missing.iter().filter(|(is_missing, _)| *is_missing) {
        let message = format!("gate `{}` lacks {what}", step.id);
        out.push(Finding::new(&codes::GATE_PILLAR, message, place.clone()));
    }
}

/// Facts about the workflow that are computed once for all gates.
struct Known<'a> {
    owners: HashMap<&'a StepId, &'a StepId>,
    /// For each step that is decided by conditions, the names those conditions use.
    decided: Vec<Option<BTreeSet<String>>>,
    /// The names used by the command of each check.
    commands: HashMap<&'a String, BTreeSet<String>>,
}

fn names_in(check: &Check) -> BTreeSet<String> {
    names_in_text(&check.told()).unwrap_or_default()
}

/// Maps each review step to the first gate that lists it; a step may review for one gate only.
fn owners(workflow: &Workflow) -> HashMap<&StepId, &StepId> {
    let mut owners = HashMap::new();
    for (step, gate) in workflow.gates() {
        for review in &gate.reviews {
            owners.entry(review).or_insert(&step.id);
        }
    }
    owners
}

fn reviews(
    workflow: &Workflow,
    known: &Known<'_>,
    (step, gate): (&StepDef, &Gate),
    place: &Place,
    out: &mut Vec<Finding>,
) {
    let mut wrong = |message: String, place: Place| {
        out.push(Finding::new(&codes::GATE_REVIEW, message, place));
    };
    if gate.reviews.is_empty() {
        wrong(format!("gate `{}` names no review", step.id), place.key("reviews"));
    }
    for (at, id) in gate.reviews.iter().enumerate() {
        if workflow.step(id).is_none_or(|step| step.decide.as_gate().is_some()) {
            let steps = workflow.steps.iter().filter(|step| step.decide.as_gate().is_none());
            let near = meant(at, id.as_str(), steps.map(|step| step.id.as_str()));
            let message = format!("there is no step `{id}` to review in{near}");
            wrong(message, place.key("reviews").index(at));
        }
        if let Some(other) = known.owners.get(id).filter(|other| ***other != step.id) {
            let message = format!("step `{id}` reviews for `{other}` already");
            wrong(message, place.key("reviews").index(at));
        }
    }
    if step.next.target(&Outcome::Fail).is_some_and(|target| target.step().is_none()) {
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
        let Some(names) = known.commands.get(name) else {
            let near = meant(out.len(), name, workflow.checks.keys().map(String::as_str));
            let message = format!("there is no check `{name}`{near}");
            out.push(Finding::new(&codes::UNKNOWN_REFERENCE, message, place));
            continue;
        };
        let own = format!("state.outputs.{}", step.id);
        if let Some(said) = step.sets.iter().chain([&own]).find(|said| names.contains(*said)) {
            let message = format!(
                "gate `{}` is left with `{said}`, which the command of its check `{name}` uses; let an earlier step say it",
                step.id
            );
            out.push(Finding::new(&codes::GATE_REVIEW, message, place));
        }
    }
}

/// Reports paths that lead past a gate that was not passed.
fn ways_round(
    workflow: &Workflow,
    graph: &Graph,
    known: &Known<'_>,
    (at, step, gate): (usize, &StepDef, &Gate),
    out: &mut Vec<Finding>,
) {
    let mut wrong = |message: String, place: Place| {
        out.push(Finding::new(&codes::GATE_REVIEW, message, place));
    };
    let place = Place::step(at);
    if step.on_error.is_some() {
        let message =
            format!("gate `{}` cannot have `on_error`: it would be a way round it", step.id);
        wrong(message, place.key("on_error"));
    }
    // While an edge has an unknown target, paths cannot be computed; that target has its own finding.
    if !graph.is_whole() {
        return;
    }
    let index = |id: &StepId| workflow.number(id).map(|number| number - 1);
    for (number, id) in gate.reviews.iter().enumerate() {
        if index(id).is_some_and(|review| !graph.reaches(review, at)) {
            let message = format!("from review `{id}` there is no way to gate `{}`", step.id);
            wrong(message, place.key("decide").key("gate").key("reviews").index(number));
        }
    }
    let target = |outcome| step.next.target(&outcome).and_then(|to| index(to.step()?));
    let Some(repair) = target(Outcome::Fail) else { return };
    let next = place.key("next").key("fail");
    let name = &workflow.steps[repair].id;
    if !graph.reaches(repair, at) {
        let message = format!("from `{name}` there is no way back to gate `{}`", step.id);
        wrong(message, next);
        return;
    }
    let on = target(Outcome::Ok);
    if let Some(past) = past(workflow, graph, &known.decided, (repair, at, on)) {
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
        if let Some(past) = past(workflow, graph, &known.decided, (review, at, on)) {
            let message =
                format!("from review `{id}`, {past} is reached without passing gate `{}`", step.id);
            wrong(message, place.key("decide").key("gate").key("reviews").index(number));
        }
    }
}

/// Returns the step behind a gate, or the end, if a run can reach it without passing the gate.
fn past(
    workflow: &Workflow,
    graph: &Graph,
    decided: &[Option<BTreeSet<String>>],
    (from, gate, on): (usize, usize, Option<usize>),
) -> Option<String> {
    let fixed = fixed(workflow, graph, decided, (from, gate));
    let closed = |other: usize| other == gate || fixed[other];
    let reached = graph.reached_without(from, closed);
    if let Some(on) = on.filter(|on| reached[*on]) {
        return Some(format!("`{}`", workflow.steps[on].id));
    }
    let ends = |other: usize| reached[other] && !closed(other) && graph.ends(other);
    (0..reached.len()).any(ends).then(|| "the end".to_owned())
}

/// The names that the conditions of a step use, if conditions decide it.
fn decided_by(step: &StepDef) -> Option<BTreeSet<String>> {
    let Decide::Cases(cases) = &step.decide else { return None };
    let names = |case: &Case| names_in_expression(&case.condition).unwrap_or_default();
    Some(cases.when.iter().flat_map(names).collect())
}

/// Marks the steps whose route cannot change between `from` and the gate: conditions decide them, and those conditions
/// use nothing that an agent reports on the way.
fn fixed(
    workflow: &Workflow,
    graph: &Graph,
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

fn numbers(gate: &Gate, place: &Place, out: &mut Vec<Finding>) {
    let mut wrong = |message: String, place: Place| {
        out.push(Finding::new(&codes::BAD_BOUND, message, place));
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

fn levels(confidence: &ConfidenceLoop, place: &Place, out: &mut Vec<Finding>) {
    let mut wrong = |message: String, place: Place| {
        out.push(Finding::new(&codes::BAD_BOUND, message, place));
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

fn bound(step: &StepDef, place: &Place, out: &mut Vec<Finding>) {
    let Some(bound) = &step.bound else { return };
    let mut wrong = |message: String, place: Place| {
        out.push(Finding::new(&codes::BAD_BOUND, message, place));
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
