//! Checks the graph: targets, reachability, and that every loop has a bound.
//!
//! A bounded step (a gate, a confidence step, one with `loop`) may choose its edge only as often as its bound allows.
//! A run therefore ends if the graph that remains once all bounds are used up has no cycle, and this is what is
//! checked.

use std::collections::HashMap;

use super::names::suggest_name;
use super::{FieldPath, WorkflowFinding};
use crate::codes;
use crate::workflow::{Decide, EdgeTarget, StepDef, StepId, Workflow, WorkflowOutcome};

/// The edges of a workflow, by the indices of its steps.
#[derive(Clone, Debug)]
pub(crate) struct StepGraph {
    edges: Vec<Vec<StepEdge>>,
    /// True if every edge leads to an existing step.
    whole: bool,
}

/// An edge. `outcome` is `None` for an error, `to` is `None` for the end. An outcome that only `default` matches has
/// an edge of its own; edges that no outcome leads to are left out.
#[derive(Clone, Debug)]
pub(crate) struct StepEdge {
    outcome: Option<WorkflowOutcome>,
    to: Option<usize>,
}

impl StepGraph {
    pub(crate) fn new(workflow: &Workflow) -> Self {
        let index: HashMap<&StepId, usize> =
            workflow.steps.iter().enumerate().map(|(at, step)| (&step.id, at)).collect();
        let edges = workflow.steps.iter().map(|step| edges_of(step, &index)).collect();
        let known = |id: Option<&StepId>| id.is_none_or(|id| index.contains_key(id));
        let whole = workflow.steps.iter().all(|step| {
            let mut edges = step.next.all_edges().into_iter();
            known(step.on_error.as_ref()) && edges.all(|(_, target)| known(target.as_step()))
        });
        StepGraph { edges, whole }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Returns true if `to` can be reached from `from`, or is the same step.
    pub(crate) fn reaches(&self, from: usize, to: usize) -> bool {
        self.reachable_from(from)[to]
    }

    fn reachable_from(&self, from: usize) -> Vec<bool> {
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
    pub(super) fn has_end_edge(&self, at: usize) -> bool {
        self.edges[at].iter().any(|edge| edge.to.is_none())
    }

    fn reaches_end(&self, from: usize) -> bool {
        let seen = self.reachable_from(from);
        (0..seen.len()).any(|at| seen[at] && self.has_end_edge(at))
    }

    /// The graph that remains when every bound is used up.
    fn without_used_bounds(&self, workflow: &Workflow) -> StepGraph {
        let stays = |at: usize, edge: &StepEdge| match allowed_at_limit(&workflow.steps[at]) {
            AllowedEdges::All => true,
            AllowedEdges::Only(outcome) => {
                let is_it = outcome.is_some() && edge.outcome == outcome;
                is_it || edge.to.is_none_or(|to| !self.reaches(to, at))
            }
        };
        let edges = self
            .edges
            .iter()
            .enumerate()
            .map(|(at, edges)| edges.iter().filter(|edge| stays(at, edge)).cloned().collect());
        StepGraph { edges: edges.collect(), whole: self.whole }
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
        let reach: Vec<Vec<bool>> =
            (0..self.edges.len()).map(|at| self.reachable_from(at)).collect();
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
                    (Decide::Gate(gate), _) => {
                        gates = gates.saturating_mul(gate.iteration_limit().into())
                    }
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
    fn find_cycle(&self) -> Option<Vec<usize>> {
        #[derive(Clone, Copy, PartialEq)]
        enum VisitMark {
            New,
            OnPath,
            Done,
        }
        fn visit_step(
            graph: &StepGraph,
            at: usize,
            marks: &mut [VisitMark],
            path: &mut Vec<usize>,
        ) -> bool {
            marks[at] = VisitMark::OnPath;
            path.push(at);
            for to in graph.edges[at].iter().filter_map(|edge| edge.to) {
                if marks[to] == VisitMark::OnPath {
                    let start = path.iter().position(|step| *step == to).unwrap_or_default();
                    path.drain(..start);
                    return true;
                }
                if marks[to] == VisitMark::New && visit_step(graph, to, marks, path) {
                    return true;
                }
            }
            marks[at] = VisitMark::Done;
            path.pop();
            false
        }
        let mut marks = vec![VisitMark::New; self.edges.len()];
        let mut path = Vec::new();
        (0..self.edges.len())
            .any(|at| marks[at] == VisitMark::New && visit_step(self, at, &mut marks, &mut path))
            .then_some(path)
    }
}

/// The edges within a loop that a step can still take when its bound is used up.
enum AllowedEdges {
    All,
    Only(Option<WorkflowOutcome>),
}

fn allowed_at_limit(step: &StepDef) -> AllowedEdges {
    match (&step.decide, &step.bound) {
        (Decide::Gate(_) | Decide::Confidence(_), _) => {
            AllowedEdges::Only(Some(WorkflowOutcome::Ok))
        }
        (_, Some(bound)) => AllowedEdges::Only(bound.at_limit.clone()),
        (_, None) => AllowedEdges::All,
    }
}

fn edges_of(step: &StepDef, index: &HashMap<&StepId, usize>) -> Vec<StepEdge> {
    let known = |target: &EdgeTarget| match target {
        EdgeTarget::End => Some(None),
        EdgeTarget::Step(id) => index.get(id).copied().map(Some),
    };
    let mut edges: Vec<StepEdge> = step
        .possible_outcomes()
        .into_iter()
        .filter_map(|outcome| {
            let to = known(&step.next.find_target(&outcome)?)?;
            Some(StepEdge { outcome: Some(outcome), to })
        })
        .collect();
    let on_error = step.on_error.as_ref().and_then(|id| index.get(id));
    edges.extend(on_error.map(|to| StepEdge { outcome: None, to: Some(*to) }));
    edges
}

pub(super) fn check_graph(workflow: &Workflow, graph: &StepGraph, out: &mut Vec<WorkflowFinding>) {
    let known = out.len();
    check_targets(workflow, out);
    // Don't also report steps that are unreachable only because of an unknown target.
    let all_known = out.len() == known;
    check_outcomes(workflow, out);
    if workflow.steps.is_empty() {
        let message = "the workflow has no steps";
        out.push(WorkflowFinding::new(
            &codes::NO_TERMINAL,
            message,
            FieldPath::default().key("steps"),
        ));
        return;
    }
    if all_known {
        check_reachability(workflow, graph, out);
    }
    check_bounds(workflow, graph, out);
}

fn check_targets(workflow: &Workflow, out: &mut Vec<WorkflowFinding>) {
    let known = |id: &StepId| workflow.find_step(id).is_some();
    let mut unknown = |id: &StepId, place: FieldPath| {
        let names = workflow.steps.iter().map(|step| step.id.as_str());
        let message =
            format!("there is no step `{id}`{}", suggest_name(out.len(), id.as_str(), names));
        out.push(WorkflowFinding::new(&codes::UNKNOWN_TARGET, message, place));
    };
    if let Some(entry) = workflow.entry.as_ref().filter(|entry| !known(entry)) {
        unknown(entry, FieldPath::default().key("entry"));
    }
    for (at, step) in workflow.steps.iter().enumerate() {
        let place = FieldPath::for_step(at);
        for (outcome, target) in step.next.all_edges() {
            if let Some(id) = target.as_step().filter(|id| !known(id)) {
                let next = place.key("next");
                let is_branch = matches!(step.next, crate::workflow::StepRouting::Branch(_));
                unknown(id, if is_branch { next.key(outcome.as_str()) } else { next });
            }
        }
        if let Some(id) = step.on_error.as_ref().filter(|id| !known(id)) {
            unknown(id, place.key("on_error"));
        }
    }
}

fn check_outcomes(workflow: &Workflow, out: &mut Vec<WorkflowFinding>) {
    for (at, step) in workflow.steps.iter().enumerate() {
        let place = FieldPath::for_step(at);
        let possible = step.possible_outcomes();
        for outcome in possible.iter().filter(|outcome| step.next.find_target(outcome).is_none()) {
            let message =
                format!("step `{}` can end with `{outcome}`, and no edge takes that", step.id);
            out.push(WorkflowFinding::new(&codes::UNTAKEN_OUTCOME, message, place.key("next")));
        }
        let takes = |edge: &WorkflowOutcome| match edge {
            WorkflowOutcome::Default => possible.iter().any(|outcome| !has_own_edge(step, outcome)),
            edge => possible.contains(edge),
        };
        for outcome in step.next.routed_outcomes().iter().filter(|outcome| !takes(outcome)) {
            let message = format!("step `{}` never ends with `{outcome}`", step.id);
            let place = place.key("next").key(outcome.as_str());
            out.push(WorkflowFinding::new(&codes::UNGIVEN_OUTCOME, message, place));
        }
    }
}

/// Returns true if the outcome has an edge of its own.
fn has_own_edge(step: &StepDef, outcome: &WorkflowOutcome) -> bool {
    *outcome != WorkflowOutcome::Default && step.next.routed_outcomes().contains(outcome)
}

fn check_reachability(workflow: &Workflow, graph: &StepGraph, out: &mut Vec<WorkflowFinding>) {
    let entry = workflow
        .entry_step()
        .and_then(|id| workflow.step_number(id))
        .map_or(0, |number| number - 1);
    let reachable = graph.reachable_from(entry);
    if !(0..workflow.steps.len()).any(|at| graph.has_end_edge(at)) {
        let message = "no step ends the workflow";
        out.push(WorkflowFinding::new(
            &codes::NO_TERMINAL,
            message,
            FieldPath::default().key("steps"),
        ));
        return;
    }
    for (at, step) in workflow.steps.iter().enumerate() {
        let place = FieldPath::for_step(at).key("id");
        if !reachable[at] {
            let message = format!("no way leads to step `{}`", step.id);
            out.push(WorkflowFinding::new(&codes::UNREACHABLE, message, place));
        } else if !graph.reaches_end(at) {
            let message = format!("from step `{}` there is no way to the end", step.id);
            out.push(WorkflowFinding::new(&codes::DEAD_END, message, place));
        }
    }
}

fn check_bounds(workflow: &Workflow, graph: &StepGraph, out: &mut Vec<WorkflowFinding>) {
    if let Some(cycle) = graph.without_used_bounds(workflow).find_cycle() {
        let names: Vec<&str> = cycle.iter().map(|at| workflow.steps[*at].id.as_str()).collect();
        let message = format!("the loop {} → {} has no bound", names.join(" → "), names[0]);
        let place = FieldPath::for_step(cycle[0]).key("next");
        out.push(WorkflowFinding::new(&codes::UNBOUNDED_LOOP, message, place));
    }
}
