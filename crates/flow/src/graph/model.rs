//! The model of a workflow diagram.

use std::collections::HashMap;

use crate::workflow::{
    AgentRole, Decide, RepairAgent, StepDef, StepId, SubagentDispatch, Workflow, WorkflowOutcome,
};

use super::text::clean_text;

mod back_edges;

/// A workflow as nodes and edges: the steps in their order, then the start, then the end if any edge leads there.
#[derive(Clone, Debug)]
pub(super) struct DiagramGraph {
    pub name: String,
    pub description: String,
    /// The titles of the phases, in order.
    pub phases: Vec<String>,
    pub nodes: Vec<DiagramNode>,
    pub edges: Vec<DiagramEdge>,
}

#[derive(Clone, Debug)]
pub(super) struct DiagramNode {
    pub kind: NodeKind,
    /// The number of a step, starting at 1.
    pub number: Option<usize>,
    pub title: String,
    /// Further facts, a few words each.
    pub notes: Vec<String>,
    pub hands: SubagentCount,
    pub phase: Option<usize>,
}

/// The kind of a node, by the way it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeKind {
    Start,
    /// A single edge.
    Step,
    /// Several edges; the agent chooses.
    Choice,
    /// Several edges; the engine computes which one to take.
    Decision,
    /// Repeats until the agent's confidence is high enough.
    Confidence,
    Gate,
    End,
}

/// The number of sub-agents that do the work of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SubagentCount {
    None,
    One,
    Several,
}

#[derive(Clone, Debug)]
pub(super) struct DiagramEdge {
    pub from: usize,
    pub to: usize,
    /// The outcomes that take the edge, and how often it can be taken. Empty if the step has no other edge.
    pub label: String,
    pub kind: EdgeKind,
    /// True if the edge closes a cycle.
    pub is_back: bool,
    /// True if the edge belongs to the successful path.
    pub is_ok: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EdgeKind {
    Outcome,
    Error,
}

impl DiagramGraph {
    pub(super) fn new(workflow: &Workflow) -> Self {
        let mut index: HashMap<&str, usize> = HashMap::new();
        for (at, step) in workflow.steps.iter().enumerate() {
            index.entry(step.id.as_str()).or_insert(at);
        }
        let mut nodes: Vec<DiagramNode> = Vec::new();
        for (at, step) in workflow.steps.iter().enumerate() {
            nodes.push(step_node(step, at + 1, workflow));
        }
        let start = nodes.len();
        nodes.push(terminal_node(NodeKind::Start, "start"));
        let mut ways = EdgeCollector { index: &index, end: start + 1, edges: Vec::new() };
        if !workflow.steps.is_empty() {
            let entry = workflow.entry_step().and_then(|id| index.get(id.as_str())).copied();
            ways.add_edge(start, entry.unwrap_or(0), EdgeKind::Outcome, None);
        }
        for (at, step) in workflow.steps.iter().enumerate() {
            ways.add_step_edges(at, step);
        }
        if ways.edges.iter().any(|way| way.to == ways.end) {
            nodes.push(terminal_node(NodeKind::End, "end"));
        }
        let edges = build_edges(workflow, &nodes, ways.edges);
        for (at, step) in workflow.steps.iter().enumerate() {
            let ways = edges.iter().filter(|edge| edge.from == at).filter(|edge| is_outcome(edge));
            if ways.count() > 1 && matches!(step.decide, Decide::Reported) {
                nodes[at].kind = NodeKind::Choice;
            }
        }
        DiagramGraph {
            name: clean_text(&workflow.name),
            description: clean_text(&workflow.description),
            phases: workflow.phases.values().map(|title| clean_text(title)).collect(),
            nodes,
            edges,
        }
    }

    /// The edges that don't close a cycle.
    pub(super) fn forward_edges(&self) -> impl Iterator<Item = &DiagramEdge> {
        self.edges.iter().filter(|edge| !edge.is_back)
    }
}

fn is_outcome(edge: &DiagramEdge) -> bool {
    edge.kind == EdgeKind::Outcome
}

/// Collects the edges of a workflow, merging all outcomes that lead from one node to the same other.
struct EdgeCollector<'a> {
    index: &'a HashMap<&'a str, usize>,
    end: usize,
    edges: Vec<MergedEdge>,
}

struct MergedEdge {
    from: usize,
    to: usize,
    kind: EdgeKind,
    outcomes: Vec<WorkflowOutcome>,
}

impl EdgeCollector<'_> {
    fn add_step_edges(&mut self, at: usize, step: &StepDef) {
        for (outcome, target) in step.next.all_edges() {
            let to = match target.as_step() {
                Some(id) => self.find_step(id),
                None => Some(self.end),
            };
            if let Some(to) = to {
                self.add_edge(at, to, EdgeKind::Outcome, Some(outcome));
            }
        }
        if let Some(to) = step.on_error.as_ref().and_then(|id| self.find_step(id)) {
            self.add_edge(at, to, EdgeKind::Error, None);
        }
    }

    fn find_step(&self, id: &StepId) -> Option<usize> {
        self.index.get(id.as_str()).copied()
    }

    fn add_edge(
        &mut self,
        from: usize,
        to: usize,
        kind: EdgeKind,
        outcome: Option<WorkflowOutcome>,
    ) {
        let same = |way: &&mut MergedEdge| way.from == from && way.to == to && way.kind == kind;
        match self.edges.iter_mut().find(same) {
            Some(way) => way.outcomes.extend(outcome),
            None => {
                self.edges.push(MergedEdge {
                    from,
                    to,
                    kind,
                    outcomes: outcome.into_iter().collect(),
                });
            }
        }
    }
}

fn build_edges(
    workflow: &Workflow,
    nodes: &[DiagramNode],
    ways: Vec<MergedEdge>,
) -> Vec<DiagramEdge> {
    let ends: Vec<back_edges::CycleEdge> = ways
        .iter()
        .map(|way| back_edges::CycleEdge {
            from: way.from,
            to: way.to,
            is_error: way.kind == EdgeKind::Error,
        })
        .collect();
    let found = back_edges::classify_edges(nodes, &ends);
    let on = |from: usize| {
        ways.iter().filter(move |way| way.from == from && way.kind == EdgeKind::Outcome).count()
    };
    // Show a step's bound on its back edge, and on other edges of the loop only if it has none.
    let loops_back =
        |from: usize| ways.iter().zip(&found).any(|(way, found)| way.from == from && found.is_back);
    let label = |way: &MergedEdge, found: &back_edges::CycleInfo| {
        let is_bounded = found.is_back || found.in_cycle && !loops_back(way.from);
        let mut label = match way.kind {
            EdgeKind::Error => "error".to_owned(),
            EdgeKind::Outcome if on(way.from) < 2 => String::new(),
            EdgeKind::Outcome => way
                .outcomes
                .iter()
                .map(|word| clean_text(word.as_str()))
                .collect::<Vec<_>>()
                .join(", "),
        };
        if let Some(times) = edge_limit(workflow.steps.get(way.from), way).filter(|_| is_bounded) {
            label = format!("{label} ≤{times}").trim().to_owned();
        }
        label
    };
    ways.iter()
        .zip(&found)
        .map(|(way, found)| DiagramEdge {
            from: way.from,
            to: way.to,
            label: label(way, found),
            kind: way.kind,
            is_back: found.is_back,
            is_ok: way.outcomes.is_empty() || way.outcomes.contains(&WorkflowOutcome::Ok),
        })
        .collect()
}

/// The number of times an edge within a loop can be taken, if its step bounds it.
fn edge_limit(step: Option<&StepDef>, way: &MergedEdge) -> Option<u32> {
    let step = step?;
    let takes = |outcome: &WorkflowOutcome| way.outcomes.contains(outcome);
    match (&step.decide, &step.bound) {
        (Decide::Gate(gate), _) => takes(&WorkflowOutcome::Fail).then(|| gate.iteration_limit()),
        (Decide::Confidence(sure), _) => takes(&WorkflowOutcome::Iterate).then_some(sure.max),
        (_, Some(bound)) if way.kind == EdgeKind::Outcome => {
            let leaves = bound.at_limit.as_ref().is_some_and(takes);
            (!leaves).then_some(bound.max)
        }
        _ => None,
    }
}

fn terminal_node(kind: NodeKind, title: &str) -> DiagramNode {
    let title = title.to_owned();
    DiagramNode {
        kind,
        number: None,
        title,
        notes: Vec::new(),
        hands: SubagentCount::None,
        phase: None,
    }
}

fn step_node(step: &StepDef, number: usize, workflow: &Workflow) -> DiagramNode {
    let mut notes = Vec::new();
    let kind = match &step.decide {
        Decide::Reported => NodeKind::Step,
        Decide::Cases(_) => NodeKind::Decision,
        Decide::Confidence(sure) => {
            notes.push(format!("until {}, ≤{} times", sure.until, sure.max));
            NodeKind::Confidence
        }
        Decide::Gate(gate) => {
            let rounds = gate.iteration_limit();
            let checks = gate.checks.len();
            let fix = match &gate.fix {
                RepairAgent::Own => String::new(),
                RepairAgent::Agent(role) => format!(", {} repairs", role.as_str()),
            };
            notes.push(format!("≤{rounds} rounds{fix}"));
            if checks > 0 {
                notes.push(format!("checks: {}", gate.checks.join(", ")));
            }
            NodeKind::Gate
        }
    };
    if let Some(role) = &step.role {
        notes.push(format!("by {}", role.as_str()));
    }
    let mut hands = SubagentCount::None;
    for dispatch in step.dispatches() {
        hands = hands.max(subagent_count(dispatch));
        notes.extend(describe_dispatch(dispatch));
    }
    DiagramNode {
        kind,
        number: Some(number),
        title: clean_text(if step.title.trim().is_empty() {
            step.id.as_str()
        } else {
            &step.title
        }),
        notes: notes.iter().map(|note| clean_text(note)).collect(),
        hands,
        phase: step.phase.as_ref().and_then(|phase| workflow.phases.get_index_of(phase)),
    }
}

fn subagent_count(dispatch: &SubagentDispatch) -> SubagentCount {
    match dispatch {
        SubagentDispatch::Single(_) => SubagentCount::One,
        SubagentDispatch::Parallel(parallel) if parallel.agents.len() == 1 => SubagentCount::One,
        SubagentDispatch::Parallel(_) | SubagentDispatch::Template(_) => SubagentCount::Several,
        SubagentDispatch::Conditional(one) => {
            let other =
                one.otherwise.as_ref().map_or(SubagentCount::None, |other| subagent_count(other));
            subagent_count(&one.then).max(other)
        }
    }
}

/// Describes the roles and numbers of the sub-agents.
fn describe_dispatch(dispatch: &SubagentDispatch) -> Vec<String> {
    match dispatch {
        SubagentDispatch::Single(brief) => vec![format!("1 × {}", brief.agent.as_str())],
        SubagentDispatch::Template(each) => {
            vec![format!("{} for each of {}", each.each.agent.as_str(), each.over)]
        }
        SubagentDispatch::Parallel(parallel) => {
            let mut roles: Vec<(&AgentRole, usize)> = Vec::new();
            for brief in &parallel.agents {
                match roles.iter_mut().find(|(role, _)| *role == &brief.agent) {
                    Some((_, count)) => *count += 1,
                    None => roles.push((&brief.agent, 1)),
                }
            }
            let words = roles.iter().map(|(role, count)| format!("{count} × {}", role.as_str()));
            vec![words.collect::<Vec<_>>().join(", ")]
        }
        SubagentDispatch::Conditional(one) => {
            let mut all = describe_dispatch(&one.then);
            match one.otherwise.as_ref().map(|other| describe_dispatch(other)) {
                Some(other) => {
                    let new =
                        other.iter().map(|words| format!("or {}", words.trim_start_matches("or ")));
                    all.extend(new);
                }
                None => all.iter_mut().for_each(|words| words.push_str(", if needed")),
            }
            all
        }
    }
}
