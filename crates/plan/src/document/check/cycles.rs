//! Finds cycles of blockers.

use std::collections::BTreeMap;

use repertoire_text::source::Span;

use crate::document::{BlockerTarget, PlanDocument, TaskBlocker, TaskId, TaskMark};

/// Maximum number of cycles reported.
const CYCLES_MAX: usize = 10;
/// Maximum number of tasks and sections named for a cycle.
const NAMES_MAX: usize = 40;

/// Tasks and sections of which each waits for the next.
pub(super) struct BlockerCycle {
    /// The names, with the first repeated at the end.
    pub(super) names: Vec<String>,
    /// A blocker that is part of the cycle.
    pub(super) at: Span,
}

/// A node of the waiting graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WaitNode {
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
pub(super) fn find_cycles(plan: &PlanDocument) -> Vec<BlockerCycle> {
    let graph = WaitGraph::from_plan(plan);
    let mut state: BTreeMap<WaitNode, bool> = BTreeMap::new();
    let mut out = Vec::new();
    let starts = (0..plan.tasks.len()).map(WaitNode::Task);
    let starts = starts.chain((0..plan.sections.len()).map(WaitNode::SectionGate));
    for start in starts {
        if state.contains_key(&start) {
            continue;
        }
        // The current path: each node with the edges that are still to be followed.
        let mut way: Vec<(WaitNode, Vec<WaitNode>)> = vec![(start, graph.waits_for(start))];
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
                    let nodes: Vec<WaitNode> = way[from..].iter().map(|(node, _)| *node).collect();
                    out.extend(graph.describe_cycle(&nodes));
                    if out.len() >= CYCLES_MAX {
                        return out;
                    }
                }
                None => {
                    state.insert(next, false);
                    way.push((next, graph.waits_for(next)));
                }
            }
        }
    }
    out
}

struct WaitGraph<'a> {
    plan: &'a PlanDocument,
    by_id: BTreeMap<&'a TaskId, usize>,
    children: Vec<Vec<usize>>,
    /// The tasks of each section.
    tasks: Vec<Vec<usize>>,
    /// The direct subsections of each section.
    below: Vec<Vec<usize>>,
}

impl<'a> WaitGraph<'a> {
    fn from_plan(plan: &'a PlanDocument) -> Self {
        let by_id: BTreeMap<&TaskId, usize> =
            plan.tasks.iter().enumerate().map(|(at, task)| (&task.id, at)).collect();
        let mut children = vec![Vec::new(); plan.tasks.len()];
        let mut tasks = vec![Vec::new(); plan.sections.len()];
        let mut below = vec![Vec::new(); plan.sections.len()];
        for (at, task) in
            plan.tasks.iter().enumerate().filter(|(_, task)| task.mark != TaskMark::ManualQa)
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
        WaitGraph { plan, by_id, children, tasks, below }
    }

    fn blocker_target(&self, blocker: &TaskBlocker) -> Option<WaitNode> {
        match &blocker.on {
            BlockerTarget::Task(id) => self.by_id.get(id).map(|at| WaitNode::Task(*at)),
            BlockerTarget::Section(at) => Some(WaitNode::Section(*at)),
            BlockerTarget::Nothing => None,
        }
    }

    fn node_blockers(&self, node: WaitNode) -> &'a [TaskBlocker] {
        match node {
            WaitNode::TaskGate(at) => &self.plan.tasks[at].blocked_by,
            WaitNode::SectionGate(at) => &self.plan.sections[at].blocked_by,
            WaitNode::Task(_) | WaitNode::Section(_) => &[],
        }
    }

    /// The nodes that a node waits for directly. The last one is followed first.
    fn waits_for(&self, node: WaitNode) -> Vec<WaitNode> {
        let mut out: Vec<WaitNode> = match node {
            WaitNode::Task(at) => {
                let section = self.plan.tasks[at].section.map(WaitNode::SectionGate);
                let children = self.children[at].iter().map(|at| WaitNode::Task(*at));
                children.chain(section).chain([WaitNode::TaskGate(at)]).collect()
            }
            WaitNode::TaskGate(at) => {
                let parent = self.plan.tasks[at].parent.as_ref();
                parent
                    .and_then(|id| self.by_id.get(id))
                    .map(|at| WaitNode::TaskGate(*at))
                    .into_iter()
                    .collect()
            }
            WaitNode::Section(at) => {
                let tasks = self.tasks[at].iter().map(|at| WaitNode::Task(*at));
                tasks.chain(self.below[at].iter().map(|at| WaitNode::Section(*at))).collect()
            }
            WaitNode::SectionGate(at) => {
                self.plan.sections[at].parent.map(WaitNode::SectionGate).into_iter().collect()
            }
        };
        out.extend(
            self.node_blockers(node)
                .iter()
                .rev()
                .filter_map(|blocker| self.blocker_target(blocker)),
        );
        out
    }

    /// Describes a cycle. Tasks that wait only because of their section are left out.
    fn describe_cycle(&self, nodes: &[WaitNode]) -> Option<BlockerCycle> {
        let next = |at: usize| nodes[(at + 1) % nodes.len()];
        let closes = |at: usize, node: WaitNode| {
            self.node_blockers(node)
                .iter()
                .find(|blocker| self.blocker_target(blocker) == Some(next(at)))
        };
        let at = nodes.iter().enumerate().find_map(|(at, node)| closes(at, *node))?.at;
        let before = |at: usize| nodes[(at + nodes.len() - 1) % nodes.len()];
        let mut names: Vec<String> = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            match node {
                WaitNode::Task(task) => {
                    let passed = matches!(before(at), WaitNode::Section(_))
                        && matches!(next(at), WaitNode::SectionGate(_));
                    if !passed {
                        names.push(self.plan.tasks[*task].id.to_string());
                    }
                }
                WaitNode::Section(section) => {
                    let within = matches!(before(at), WaitNode::Section(_));
                    if !within {
                        names.push(format!("\"{}\"", self.plan.sections[*section].title));
                    }
                }
                WaitNode::TaskGate(_) | WaitNode::SectionGate(_) => {}
            }
        }
        if names.len() > NAMES_MAX {
            let more = names.len() - NAMES_MAX;
            names.truncate(NAMES_MAX);
            names.push(format!("({more} more)"));
        }
        names.extend(names.first().cloned());
        Some(BlockerCycle { names, at })
    }
}
