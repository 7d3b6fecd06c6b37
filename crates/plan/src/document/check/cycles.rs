//! Finds cycles of blockers.

use std::collections::BTreeMap;

use repertoire_text::source::Span;

use crate::document::{BlockedOn, Blocker, Mark, Plan, TaskId};

/// Maximum number of cycles reported.
const CYCLES_MAX: usize = 10;
/// Maximum number of tasks and sections named for a cycle.
const NAMES_MAX: usize = 40;

/// Tasks and sections of which each waits for the next.
pub(super) struct Cycle {
    /// The names, with the first repeated at the end.
    pub(super) names: Vec<String>,
    /// A blocker that is part of the cycle.
    pub(super) at: Span,
}

/// A node of the waiting graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    /// The completion of a task.
    Task(usize),
    /// The blockers of a task and of the tasks it is nested in.
    TaskGate(usize),
    /// The completion of a section.
    Section(usize),
    /// The blockers of a section and of the sections above it.
    SectionGate(usize),
}

/// Finds the cycles of a plan, one for each back edge of a depth-first search.
pub(super) fn cycles(plan: &Plan) -> Vec<Cycle> {
    let graph = Graph::of(plan);
    let mut state: BTreeMap<Node, bool> = BTreeMap::new();
    let mut out = Vec::new();
    let starts = (0..plan.tasks.len()).map(Node::Task);
    let starts = starts.chain((0..plan.sections.len()).map(Node::SectionGate));
    for start in starts {
        if state.contains_key(&start) {
            continue;
        }
        // The current path: each node with the edges that are still to be followed.
        let mut way: Vec<(Node, Vec<Node>)> = vec![(start, graph.from(start))];
        state.insert(start, false);
        while let Some((node, edges)) = way.last_mut() {
            let Some(next) = edges.pop() else {
                state.insert(*node, true);
                way.pop();
                continue;
            };
            match state.get(&next) {
                Some(true) => {}
                Some(false) => {
                    let from = way.iter().position(|(node, _)| *node == next).unwrap_or(0);
                    let nodes: Vec<Node> = way[from..].iter().map(|(node, _)| *node).collect();
                    out.extend(graph.cycle(&nodes));
                    if out.len() >= CYCLES_MAX {
                        return out;
                    }
                }
                None => {
                    state.insert(next, false);
                    way.push((next, graph.from(next)));
                }
            }
        }
    }
    out
}

struct Graph<'a> {
    plan: &'a Plan,
    by_id: BTreeMap<&'a TaskId, usize>,
    children: Vec<Vec<usize>>,
    /// The tasks of each section.
    tasks: Vec<Vec<usize>>,
    /// The direct subsections of each section.
    below: Vec<Vec<usize>>,
}

impl<'a> Graph<'a> {
    fn of(plan: &'a Plan) -> Self {
        let by_id: BTreeMap<&TaskId, usize> =
            plan.tasks.iter().enumerate().map(|(at, task)| (&task.id, at)).collect();
        let mut children = vec![Vec::new(); plan.tasks.len()];
        let mut tasks = vec![Vec::new(); plan.sections.len()];
        let mut below = vec![Vec::new(); plan.sections.len()];
        for (at, task) in
            plan.tasks.iter().enumerate().filter(|(_, task)| task.mark != Mark::ManualQa)
        {
            if let Some(parent) = task.parent.as_ref().and_then(|parent| by_id.get(parent)) {
                children[*parent].push(at);
            }
            if let Some(section) = task.section {
                tasks[section].push(at);
            }
        }
        for (at, section) in plan.sections.iter().enumerate() {
            if let Some(parent) = section.parent {
                below[parent].push(at);
            }
        }
        Graph { plan, by_id, children, tasks, below }
    }

    fn target(&self, blocker: &Blocker) -> Option<Node> {
        match &blocker.on {
            BlockedOn::Task(id) => self.by_id.get(id).map(|at| Node::Task(*at)),
            BlockedOn::Section(at) => Some(Node::Section(*at)),
            BlockedOn::Nothing => None,
        }
    }

    fn blockers(&self, node: Node) -> &'a [Blocker] {
        match node {
            Node::TaskGate(at) => &self.plan.tasks[at].blocked_by,
            Node::SectionGate(at) => &self.plan.sections[at].blocked_by,
            Node::Task(_) | Node::Section(_) => &[],
        }
    }

    /// The nodes that a node waits for directly. The last one is followed first.
    fn from(&self, node: Node) -> Vec<Node> {
        let mut out: Vec<Node> = match node {
            Node::Task(at) => {
                let section = self.plan.tasks[at].section.map(Node::SectionGate);
                let children = self.children[at].iter().map(|at| Node::Task(*at));
                children.chain(section).chain([Node::TaskGate(at)]).collect()
            }
            Node::TaskGate(at) => {
                let parent = self.plan.tasks[at].parent.as_ref();
                parent
                    .and_then(|id| self.by_id.get(id))
                    .map(|at| Node::TaskGate(*at))
                    .into_iter()
                    .collect()
            }
            Node::Section(at) => {
                let tasks = self.tasks[at].iter().map(|at| Node::Task(*at));
                tasks.chain(self.below[at].iter().map(|at| Node::Section(*at))).collect()
            }
            Node::SectionGate(at) => {
                self.plan.sections[at].parent.map(Node::SectionGate).into_iter().collect()
            }
        };
        out.extend(self.blockers(node).iter().rev().filter_map(|blocker| self.target(blocker)));
        out
    }

    /// Describes a cycle. Tasks that wait only because of their section are left out.
    fn cycle(&self, nodes: &[Node]) -> Option<Cycle> {
        let next = |at: usize| nodes[(at + 1) % nodes.len()];
        let closes = |at: usize, node: Node| {
            self.blockers(node).iter().find(|blocker| self.target(blocker) == Some(next(at)))
        };
        let at = nodes.iter().enumerate().find_map(|(at, node)| closes(at, *node))?.at;
        let before = |at: usize| nodes[(at + nodes.len() - 1) % nodes.len()];
        let mut names: Vec<String> = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            match node {
                Node::Task(task) => {
                    let passed = matches!(before(at), Node::Section(_))
                        && matches!(next(at), Node::SectionGate(_));
                    if !passed {
                        names.push(self.plan.tasks[*task].id.to_string());
                    }
                }
                Node::Section(section) => {
                    let within = matches!(before(at), Node::Section(_));
                    if !within {
                        names.push(format!("\"{}\"", self.plan.sections[*section].title));
                    }
                }
                Node::TaskGate(_) | Node::SectionGate(_) => {}
            }
        }
        if names.len() > NAMES_MAX {
            let more = names.len() - NAMES_MAX;
            names.truncate(NAMES_MAX);
            names.push(format!("({more} more)"));
        }
        names.extend(names.first().cloned());
        Some(Cycle { names, at })
    }
}
