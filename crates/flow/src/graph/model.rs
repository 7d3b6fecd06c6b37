//! The model of a workflow diagram.

use std::collections::HashMap;

use crate::workflow::{AgentRole, Decide, Dispatch, Fix, Outcome, StepDef, StepId, Workflow};

use super::text::clean;

mod back;

/// A workflow as nodes and edges: the steps in their order, then the start, then the end if any edge leads there.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub name: String,
    pub description: String,
    /// The titles of the phases, in order.
    pub phases: Vec<String>,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub kind: Kind,
    /// The number of a step, starting at 1.
    pub number: Option<usize>,
    pub title: String,
    /// Further facts, a few words each.
    pub notes: Vec<String>,
    pub hands: Hands,
    pub phase: Option<usize>,
}

/// The kind of a node, by the way it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
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
pub(super) enum Hands {
    None,
    One,
    Several,
}

#[derive(Clone, Debug)]
pub(super) struct Edge {
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

impl Graph {
    pub(super) fn new(workflow: &Workflow) -> Self {
        let mut index: HashMap<&str, usize> = HashMap::new();
        for (at, step) in workflow.steps.iter().enumerate() {
            index.entry(step.id.as_str()).or_insert(at);
        }
        let mut nodes: Vec<Node> = Vec::new();
        for (at, step) in workflow.steps.iter().enumerate() {
            nodes.push(node(step, at + 1, workflow));
        }
        let start = nodes.len();
        nodes.push(plain(Kind::Start, "start"));
        let mut ways = Ways { index: &index, end: start + 1, edges: Vec::new() };
        if !workflow.steps.is_empty() {
            let entry = workflow.entry().and_then(|id| index.get(id.as_str())).copied();
            ways.add(start, entry.unwrap_or(0), EdgeKind::Outcome, None);
        }
        for (at, step) in workflow.steps.iter().enumerate() {
            ways.of_step(at, step);
        }
        if ways.edges.iter().any(|way| way.to == ways.end) {
            nodes.push(plain(Kind::End, "end"));
        }
        let edges = edges(workflow, &nodes, ways.edges);
        for (at, step) in workflow.steps.iter().enumerate() {
            let ways = edges.iter().filter(|edge| edge.from == at).filter(|edge| is_outcome(edge));
            if ways.count() > 1 && matches!(step.decide, Decide::Reported) {
                nodes[at].kind = Kind::Choice;
            }
        }
        Graph {
            name: clean(&workflow.name),
            description: clean(&workflow.description),
            phases: workflow.phases.values().map(|title| clean(title)).collect(),
            nodes,
            edges,
        }
    }

    /// The edges that don't close a cycle.
    pub(super) fn forward(&self) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(|edge| !edge.is_back)
    }
}

fn is_outcome(edge: &Edge) -> bool {
    edge.kind == EdgeKind::Outcome
}

/// Collects the edges of a workflow, merging all outcomes that lead from one node to the same other.
struct Ways<'a> {
    index: &'a HashMap<&'a str, usize>,
    end: usize,
    edges: Vec<Way>,
}

struct Way {
    from: usize,
    to: usize,
    kind: EdgeKind,
    outcomes: Vec<Outcome>,
}

impl Ways<'_> {
    fn of_step(&mut self, at: usize, step: &StepDef) {
        for (outcome, target) in step.next.edges() {
            let to = match target.step() {
                Some(id) => self.find(id),
                None => Some(self.end),
            };
            if let Some(to) = to {
                self.add(at, to, EdgeKind::Outcome, Some(outcome));
            }
        }
        if let Some(to) = step.on_error.as_ref().and_then(|id| self.find(id)) {
            self.add(at, to, EdgeKind::Error, None);
        }
    }

    fn find(&self, id: &StepId) -> Option<usize> {
        self.index.get(id.as_str()).copied()
    }

    fn add(&mut self, from: usize, to: usize, kind: EdgeKind, outcome: Option<Outcome>) {
        let same = |way: &&mut Way| way.from == from && way.to == to && way.kind == kind;
        match self.edges.iter_mut().find(same) {
            Some(way) => way.outcomes.extend(outcome),
            None => {
                self.edges.push(Way { from, to, kind, outcomes: outcome.into_iter().collect() });
            }
        }
    }
}

fn edges(workflow: &Workflow, nodes: &[Node], ways: Vec<Way>) -> Vec<Edge> {
    let ends: Vec<back::Way> = ways
        .iter()
        .map(|way| back::Way { from: way.from, to: way.to, is_error: way.kind == EdgeKind::Error })
        .collect();
    let found = back::find(nodes, &ends);
    let on = |from: usize| {
        ways.iter().filter(move |way| way.from == from && way.kind == EdgeKind::Outcome).count()
    };
    // Show a step's bound on its back edge, and on other edges of the loop only if it has none.
    let loops_back =
        |from: usize| ways.iter().zip(&found).any(|(way, found)| way.from == from && found.is_back);
    let label = |way: &Way, found: &back::Found| {
        let is_bounded = found.is_back || found.in_cycle && !loops_back(way.from);
        let mut label = match way.kind {
            EdgeKind::Error => "error".to_owned(),
            EdgeKind::Outcome if on(way.from) < 2 => String::new(),
            EdgeKind::Outcome => {
                way.outcomes.iter().map(|word| clean(word.as_str())).collect::<Vec<_>>().join(", ")
            }
        };
        if let Some(times) = times(workflow.steps.get(way.from), way).filter(|_| is_bounded) {
            label = format!("{label} ≤{times}").trim().to_owned();
        }
        label
    };
    ways.iter()
        .zip(&found)
        .map(|(way, found)| Edge {
            from: way.from,
            to: way.to,
            label: label(way, found),
            kind: way.kind,
            is_back: found.is_back,
            is_ok: way.outcomes.is_empty() || way.outcomes.contains(&Outcome::Ok),
        })
        .collect()
}

/// The number of times an edge within a loop can be taken, if its step bounds it.
fn times(step: Option<&StepDef>, way: &Way) -> Option<u32> {
    let step = step?;
    let takes = |outcome: &Outcome| way.outcomes.contains(outcome);
    match (&step.decide, &step.bound) {
        (Decide::Gate(gate), _) => takes(&Outcome::Fail).then(|| gate.limit()),
        (Decide::Confidence(sure), _) => takes(&Outcome::Iterate).then_some(sure.max),
        (_, Some(bound)) if way.kind == EdgeKind::Outcome => {
            let leaves = bound.at_limit.as_ref().is_some_and(takes);
            (!leaves).then_some(bound.max)
        }
        _ => None,
    }
}

fn plain(kind: Kind, title: &str) -> Node {
    let title = title.to_owned();
    Node { kind, number: None, title, notes: Vec::new(), hands: Hands::None, phase: None }
}

fn node(step: &StepDef, number: usize, workflow: &Workflow) -> Node {
    let mut notes = Vec::new();
    let kind = match &step.decide {
        Decide::Reported => Kind::Step,
        Decide::Cases(_) => Kind::Decision,
        Decide::Confidence(sure) => {
            notes.push(format!("until {}, ≤{} times", sure.until, sure.max));
            Kind::Confidence
        }
        Decide::Gate(gate) => {
            let rounds = gate.limit();
            let checks = gate.checks.len();
            let fix = match &gate.fix {
                Fix::Own => String::new(),
                Fix::Agent(role) => format!(", {} repairs", role.as_str()),
            };
            notes.push(format!("≤{rounds} rounds{fix}"));
            if checks > 0 {
                notes.push(format!("checks: {}", gate.checks.join(", ")));
            }
            Kind::Gate
        }
    };
    if let Some(role) = &step.role {
        notes.push(format!("by {}", role.as_str()));
    }
    let mut hands = Hands::None;
    for dispatch in step.dispatches() {
        hands = hands.max(hands_of(dispatch));
        notes.extend(words(dispatch));
    }
    Node {
        kind,
        number: Some(number),
        title: clean(if step.title.trim().is_empty() { step.id.as_str() } else { &step.title }),
        notes: notes.iter().map(|note| clean(note)).collect(),
        hands,
        phase: step.phase.as_ref().and_then(|phase| workflow.phases.get_index_of(phase)),
    }
}

fn hands_of(dispatch: &Dispatch) -> Hands {
    match dispatch {
        Dispatch::Single(_) => Hands::One,
        Dispatch::Parallel(parallel) if parallel.agents.len() == 1 => Hands::One,
        Dispatch::Parallel(_) | Dispatch::Template(_) => Hands::Several,
        Dispatch::Conditional(one) => {
            let other = one.otherwise.as_ref().map_or(Hands::None, |other| hands_of(other));
            hands_of(&one.then).max(other)
        }
    }
}

/// Describes the roles and numbers of the sub-agents.
fn words(dispatch: &Dispatch) -> Vec<String> {
    match dispatch {
        Dispatch::Single(brief) => vec![format!("1 × {}", brief.agent.as_str())],
        Dispatch::Template(each) => {
            vec![format!("{} for each of {}", each.each.agent.as_str(), each.over)]
        }
        Dispatch::Parallel(parallel) => {
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
        Dispatch::Conditional(one) => {
            let mut all = words(&one.then);
            match one.otherwise.as_ref().map(|other| words(other)) {
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
