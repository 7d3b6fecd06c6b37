//! Finds the back edges. They are drawn to the side; the remaining edges have no cycle.
//!
//! Phases decide first: an edge of a cycle that leads into an earlier phase is a back edge. Any other edge is one if
//! it leads to a step on the current path of a depth-first search that tries edges in the order of the list.

use super::DiagramNode;

/// The properties of an edge that matter here.
pub(super) struct CycleEdge {
    pub from: usize,
    pub to: usize,
    pub is_error: bool,
}

/// The classification of an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CycleInfo {
    pub in_cycle: bool,
    pub is_back: bool,
}

pub(super) fn classify_edges(nodes: &[DiagramNode], ways: &[CycleEdge]) -> Vec<CycleInfo> {
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (at, way) in ways.iter().enumerate() {
        outgoing[way.from].push(at);
    }
    for list in &mut outgoing {
        list.sort_by_key(|at| (ways[*at].is_error, ways[*at].to));
    }
    let group = strong_components(nodes.len(), ways, &outgoing);
    let mut found: Vec<CycleInfo> = ways
        .iter()
        .map(|way| {
            let in_cycle = group[way.from] == group[way.to];
            let (from, to) = (nodes[way.from].phase, nodes[way.to].phase);
            CycleInfo { in_cycle, is_back: in_cycle && to.is_some() && to < from }
        })
        .collect();
    mark_back_edges(nodes, ways, &outgoing, &mut found);
    found
}

fn mark_back_edges(
    nodes: &[DiagramNode],
    ways: &[CycleEdge],
    outgoing: &[Vec<usize>],
    found: &mut [CycleInfo],
) {
    let mut seen = vec![false; nodes.len()];
    let mut is_on_path = vec![false; nodes.len()];
    let entry = ways.iter().find(|way| nodes[way.from].number.is_none()).map(|way| way.from);
    for root in entry.into_iter().chain(0..nodes.len()) {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        is_on_path[root] = true;
        let mut path = vec![(root, 0)];
        while let Some((node, tried)) = path.last_mut() {
            let Some(&at) = outgoing[*node].get(*tried) else {
                is_on_path[*node] = false;
                path.pop();
                continue;
            };
            *tried += 1;
            let to = ways[at].to;
            if found[at].is_back {
                continue;
            }
            if is_on_path[to] {
                found[at].is_back = true;
            } else if !std::mem::replace(&mut seen[to], true) {
                is_on_path[to] = true;
                path.push((to, 0));
            }
        }
    }
}

/// The strongly connected component of each node. Two nodes of one component lie on a cycle.
fn strong_components(nodes: usize, ways: &[CycleEdge], outgoing: &[Vec<usize>]) -> Vec<usize> {
    let mut finished = Vec::with_capacity(nodes);
    let mut seen = vec![false; nodes];
    for root in 0..nodes {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some((node, tried)) = path.last_mut() {
            match outgoing[*node].get(*tried).map(|at| ways[*at].to) {
                Some(to) => {
                    *tried += 1;
                    if !std::mem::replace(&mut seen[to], true) {
                        path.push((to, 0));
                    }
                }
                None => {
                    finished.push(*node);
                    path.pop();
                }
            }
        }
    }
    let mut incoming: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for way in ways {
        incoming[way.to].push(way.from);
    }
    let mut group = vec![usize::MAX; nodes];
    for &root in finished.iter().rev() {
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if group[node] == usize::MAX {
                group[node] = root;
                open.extend(&incoming[node]);
            }
        }
    }
    group
}
