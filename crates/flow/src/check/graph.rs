//! Checks the graph: targets, reachability, and that every loop has a bound.
//!
//! A bounded step (a gate, a confidence step, one with `loop`) may choose its edge only as often as its bound allows.
//! A run therefore ends if the graph that remains once all bounds are used up has no cycle, and this is what is
//! checked.

use std::collections::HashMap;

use super::names::meant;
use super::{Finding, Place};
use crate::codes;
use crate::workflow::{Decide, Outcome, StepDef, StepId, Target, Workflow};

/// The edges of a workflow, by the indices of its steps.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    edges: Vec<Vec<Edge>>,
    /// True if every edge leads to an existing step.
    whole: bool,
}

/// An edge. `outcome` is `None` for an error, `to` is `None` for the end. An outcome that only `default` matches has
/// an edge of its own; edges that no outcome leads to are left out.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    outcome: Option<Outcome>,
    to: Option<usize>,
}

impl Graph {
    pub(crate) fn new(workflow: &Workflow) -> Self {
        let index: HashMap<&StepId, usize> =
            workflow.steps.iter().enumerate().map(|(at, step)| (&step.id, at)).collect();
        let edges = workflow.steps.iter().map(|step| edges_of(step, &index)).collect();
        let known = |id: Option<&StepId>| id.is_none_or(|id| index.contains_key(id));
        let whole = workflow.steps.iter().all(|step| {
            let mut edges = step.next.edges().into_iter();
            known(step.on_error.as_ref()) && edges.all(|(_, target)| known(target.step()))
        });
        Graph { edges, whole }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Returns true if `to` can be reached from `from`, or is the same step.
    pub(crate) fn reaches(&self, from: usize, to: usize) -> bool {
        self.reachable(from)[to]
    }

    fn reachable(&self, from: usize) -> Vec<bool> {
        let mut seen = vec![false; self.edges.len()];
        let mut open = vec![from];
        seen[from] = true;
        while let Some(at) = open.pop() {
            for to in self.edges[at].iter().filter_map(|edge| edge.to) {
                if !std::mem::replace(&mut seen[to], true) {
                    open.push(to);
                }
            }
        }
        seen
    }

    /// Returns the steps reachable from `from` (which is included) without going through the steps that `without`
    /// matches. Those steps are marked as reached themselves, but their edges are not followed.
    pub(super) fn reached_without(
        &self,
        from: usize,
        without: impl Fn(usize) -> bool,
    ) -> Vec<bool> {
        let mut seen = vec![false; self.edges.len()];
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut seen[at], true) && !without(at) {
                open.extend(self.edges[at].iter().filter_map(|edge| edge.to));
            }
        }
        seen
    }

    /// Returns true if the step has an edge to the end.
    pub(super) fn ends(&self, at: usize) -> bool {
        self.edges[at].iter().any(|edge| edge.to.is_none())
    }

    fn reaches_end(&self, from: usize) -> bool {
        let seen = self.reachable(from);
        (0..seen.len()).any(|at| seen[at] && self.ends(at))
    }

    /// The graph that remains when every bound is used up.
    fn exhausted(&self, workflow: &Workflow) -> Graph {
        let stays = |at: usize, edge: &Edge| match allowed_at_limit(&workflow.steps[at]) {
            Allowed::All => true,
            Allowed::Only(outcome) => {
                let is_it = outcome.is_some() && edge.outcome == outcome;
                is_it || edge.to.is_none_or(|to| !self.reaches(to, at))
            }
        };
        let edges = self
            .edges
            .iter()
            .enumerate()
            .map(|(at, edges)| edges.iter().filter(|edge| stays(at, edge)).cloned().collect());
        Graph { edges: edges.collect(), whole: self.whole }
    }

    /// The maximum number of steps a run enters before it ends or waits for a person.
    ///
    /// A loop or a confidence step takes a back edge at most `max` - 1 times in a run, a gate at most its limit - 1
    /// times between two passes. Between such moves a run follows the graph that remains when all bounds are used up,
    /// which has no cycle, so it enters each step at most once. Once passed, the last gate in the order of that graph
    /// is not reached again unless a loop leads back, so its failures add up; every earlier gate starts over whenever
    /// a later one fails, so its failures multiply. All this happens within the strongly connected components of the
    /// graph, which a run goes through one after another.
    pub(super) fn turns_max(&self, workflow: &Workflow) -> u64 {
        let reach: Vec<Vec<bool>> = (0..self.edges.len()).map(|at| self.reachable(at)).collect();
        let mut counted = vec![false; self.edges.len()];
        let mut turns = 0_u64;
        for at in 0..self.edges.len() {
            if counted[at] {
                continue;
            }
            let (mut steps, mut loops, mut gates) = (0_u64, 1_u64, 1_u64);
            for other in
                (0..self.edges.len()).filter(|other| reach[at][*other] && reach[*other][at])
            {
                counted[other] = true;
                steps += 1;
                let step = &workflow.steps[other];
                match (&step.decide, &step.bound) {
                    (Decide::Gate(gate), _) => gates = gates.saturating_mul(gate.limit().into()),
                    (Decide::Confidence(confidence), _) => {
                        loops += u64::from(confidence.max.max(1) - 1)
                    }
                    (_, Some(bound)) => loops += u64::from(bound.max.max(1) - 1),
                    (_, None) => {}
                }
            }
            turns = turns.saturating_add(steps.saturating_mul(loops).saturating_mul(gates));
        }
        turns
    }

    /// Returns the step indices of a cycle, if there is one.
    fn cycle(&self) -> Option<Vec<usize>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            OnPath,
            Done,
        }
        fn visit(graph: &Graph, at: usize, marks: &mut [Mark], path: &mut Vec<usize>) -> bool {
            marks[at] = Mark::OnPath;
            path.push(at);
            for to in graph.edges[at].iter().filter_map(|edge| edge.to) {
                if marks[to] == Mark::OnPath {
                    let start = path.iter().position(|step| *step == to).unwrap_or_default();
                    path.drain(..start);
                    return true;
                }
                if marks[to] == Mark::New && visit(graph, to, marks, path) {
                    return true;
                }
            }
            marks[at] = Mark::Done;
            path.pop();
            false
        }
        let mut marks = vec![Mark::New; self.edges.len()];
        let mut path = Vec::new();
        (0..self.edges.len())
            .any(|at| marks[at] == Mark::New && visit(self, at, &mut marks, &mut path))
            .then_some(path)
    }
}

/// The edges within a loop that a step can still take when its bound is used up.
enum Allowed {
    All,
    Only(Option<Outcome>),
}

fn allowed_at_limit(step: &StepDef) -> Allowed {
    match (&step.decide, &step.bound) {
        (Decide::Gate(_) | Decide::Confidence(_), _) => Allowed::Only(Some(Outcome::Ok)),
        (_, Some(bound)) => Allowed::Only(bound.at_limit.clone()),
        (_, None) => Allowed::All,
    }
}

fn edges_of(step: &StepDef, index: &HashMap<&StepId, usize>) -> Vec<Edge> {
    let known = |target: &Target| match target {
        Target::End => Some(None),
        Target::Step(id) => index.get(id).copied().map(Some),
    };
    let mut edges: Vec<Edge> = step
        .possible_outcomes()
        .into_iter()
        .filter_map(|outcome| {
            let to = known(&step.next.target(&outcome)?)?;
            Some(Edge { outcome: Some(outcome), to })
        })
        .collect();
    let on_error = step.on_error.as_ref().and_then(|id| index.get(id));
    edges.extend(on_error.map(|to| Edge { outcome: None, to: Some(*to) }));
    edges
}

pub(super) fn check(workflow: &Workflow, graph: &Graph, out: &mut Vec<Finding>) {
    let known = out.len();
    targets(workflow, out);
    // Don't also report steps that are unreachable only because of an unknown target.
    let all_known = out.len() == known;
    outcomes(workflow, out);
    if workflow.steps.is_empty() {
        let message = "the workflow has no steps";
        out.push(Finding::new(&codes::NO_TERMINAL, message, Place::default().key("steps")));
        return;
    }
    if all_known {
        ways(workflow, graph, out);
    }
    bounds(workflow, graph, out);
}

fn targets(workflow: &Workflow, out: &mut Vec<Finding>) {
    let known = |id: &StepId| workflow.step(id).is_some();
    let mut unknown = |id: &StepId, place: Place| {
        let names = workflow.steps.iter().map(|step| step.id.as_str());
        let message = format!("there is no step `{id}`{}", meant(out.len(), id.as_str(), names));
        out.push(Finding::new(&codes::UNKNOWN_TARGET, message, place));
    };
    if let Some(entry) = workflow.entry.as_ref().filter(|entry| !known(entry)) {
        unknown(entry, Place::default().key("entry"));
    }
    for (at, step) in workflow.steps.iter().enumerate() {
        let place = Place::step(at);
        for (outcome, target) in step.next.edges() {
            if let Some(id) = target.step().filter(|id| !known(id)) {
                let next = place.key("next");
                let is_branch = matches!(step.next, crate::workflow::Routing::Branch(_));
                unknown(id, if is_branch { next.key(outcome.as_str()) } else { next });
            }
        }
        if let Some(id) = step.on_error.as_ref().filter(|id| !known(id)) {
            unknown(id, place.key("on_error"));
        }
    }
}

fn outcomes(workflow: &Workflow, out: &mut Vec<Finding>) {
    for (at, step) in workflow.steps.iter().enumerate() {
        let place = Place::step(at);
        let possible = step.possible_outcomes();
        for outcome in possible.iter().filter(|outcome| step.next.target(outcome).is_none()) {
            let message =
                format!("step `{}` can end with `{outcome}`, and no edge takes that", step.id);
            out.push(Finding::new(&codes::UNTAKEN_OUTCOME, message, place.key("next")));
        }
        let takes = |edge: &Outcome| match edge {
            Outcome::Default => possible.iter().any(|outcome| !is_named(step, outcome)),
            edge => possible.contains(edge),
        };
        for outcome in step.next.outcomes().iter().filter(|outcome| !takes(outcome)) {
            let message = format!("step `{}` never ends with `{outcome}`", step.id);
            let place = place.key("next").key(outcome.as_str());
            out.push(Finding::new(&codes::UNGIVEN_OUTCOME, message, place));
        }
    }
}

/// Returns true if the outcome has an edge of its own.
fn is_named(step: &StepDef, outcome: &Outcome) -> bool {
    *outcome != Outcome::Default && step.next.outcomes().contains(outcome)
}

fn ways(workflow: &Workflow, graph: &Graph, out: &mut Vec<Finding>) {
    let entry = workflow.entry().and_then(|id| workflow.number(id)).map_or(0, |number| number - 1);
    let reachable = graph.reachable(entry);
    if !(0..workflow.steps.len()).any(|at| graph.ends(at)) {
        let message = "no step ends the workflow";
        out.push(Finding::new(&codes::NO_TERMINAL, message, Place::default().key("steps")));
        return;
    }
    for (at, step) in workflow.steps.iter().enumerate() {
        let place = Place::step(at).key("id");
        if !reachable[at] {
            let message = format!("no way leads to step `{}`", step.id);
            out.push(Finding::new(&codes::UNREACHABLE, message, place));
        } else if !graph.reaches_end(at) {
            let message = format!("from step `{}` there is no way to the end", step.id);
            out.push(Finding::new(&codes::DEAD_END, message, place));
        }
    }
}

fn bounds(workflow: &Workflow, graph: &Graph, out: &mut Vec<Finding>) {
    if let Some(cycle) = graph.exhausted(workflow).cycle() {
        let names: Vec<&str> = cycle.iter().map(|at| workflow.steps[*at].id.as_str()).collect();
        let message = format!("the loop {} → {} has no bound", names.join(" → "), names[0]);
        let place = Place::step(cycle[0]).key("next");
        out.push(Finding::new(&codes::UNBOUNDED_LOOP, message, place));
    }
}
