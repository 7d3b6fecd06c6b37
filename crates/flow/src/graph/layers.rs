//! Assigns each node to a layer (a row of the diagram).
//!
//! A node is placed below all its predecessors. Phases are bands of layers: a node is placed in a band of its phase,
//! and if the order of the phases differs from that of the steps, a phase has several bands.

use super::model::{DiagramGraph, NodeKind};

#[derive(Clone, Debug)]
pub(super) struct NodeLayers {
    /// The layer of each node, counted from the top.
    pub of: Vec<usize>,
    pub count: usize,
    pub bands: Vec<PhaseBand>,
}

/// A range of layers that belongs to one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PhaseBand {
    pub phase: Option<usize>,
    pub first: usize,
    pub last: usize,
}

impl NodeLayers {
    pub(super) fn new(graph: &DiagramGraph) -> Self {
        let order = topological_order(graph);
        let (labels, band_of) = assign_bands(graph, &order);
        let mut of = vec![0; graph.nodes.len()];
        let mut free = 0;
        let mut bands = Vec::new();
        for (band, phase) in labels.into_iter().enumerate() {
            let members: Vec<usize> =
                order.iter().copied().filter(|node| band_of[*node] == Some(band)).collect();
            let Some(last) = assign_layers(graph, &members, free, &mut of) else { continue };
            lower_loop_entries(graph, &members, last, &mut of);
            bands.push(PhaseBand { phase, first: free, last });
            free = last + 1;
        }
        for (at, _) in graph.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::End)
        {
            of[at] = free;
            bands.push(PhaseBand { phase: None, first: free, last: free });
            free += 1;
        }
        NodeLayers { of, count: free, bands }
    }
}

/// Sorts the nodes so that each comes after all its predecessors.
fn topological_order(graph: &DiagramGraph) -> Vec<usize> {
    let mut waits: Vec<usize> = vec![0; graph.nodes.len()];
    graph.forward_edges().for_each(|edge| waits[edge.to] += 1);
    let mut open: std::collections::BTreeSet<usize> =
        (0..waits.len()).filter(|node| waits[*node] == 0).collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(node) = open.pop_first() {
        order.push(node);
        for edge in graph.forward_edges().filter(|edge| edge.from == node) {
            waits[edge.to] -= 1;
            if waits[edge.to] == 0 {
                open.insert(edge.to);
            }
        }
    }
    order
}

/// Returns the phases of the bands from the top, and the band of each node except the end.
fn assign_bands(graph: &DiagramGraph, order: &[usize]) -> (Vec<Option<usize>>, Vec<Option<usize>>) {
    let mut labels = vec![None];
    let used = |phase: &usize| graph.nodes.iter().any(|node| node.phase == Some(*phase));
    labels.extend((0..graph.phases.len()).filter(used).map(Some));
    let mut band_of: Vec<Option<usize>> = vec![None; graph.nodes.len()];
    for &node in order.iter().filter(|node| graph.nodes[**node].kind != NodeKind::End) {
        let above = graph.forward_edges().filter(|edge| edge.to == node);
        let least = above.filter_map(|edge| band_of[edge.from]).max().unwrap_or(0);
        let phase = graph.nodes[node].phase;
        let found = (least..labels.len()).find(|band| labels[*band] == phase);
        let band = found.unwrap_or_else(|| {
            labels.insert(least + 1, phase);
            band_of.iter_mut().flatten().filter(|band| **band > least).for_each(|band| *band += 1);
            least + 1
        });
        band_of[node] = Some(band);
    }
    (labels, band_of)
}

/// Assigns layers from `free` on to the members of a band. Returns the last layer, or `None` if there are no members.
fn assign_layers(
    graph: &DiagramGraph,
    members: &[usize],
    free: usize,
    of: &mut [usize],
) -> Option<usize> {
    for &node in members {
        let above =
            graph.forward_edges().filter(|edge| edge.to == node).map(|edge| of[edge.from] + 1);
        let is_start = graph.nodes[node].kind == NodeKind::Start;
        // The start has a layer to itself.
        of[node] = above.max().unwrap_or(0).max(free).max(usize::from(!is_start));
    }
    members.iter().map(|node| of[*node]).max()
}

/// Moves steps that only a back edge leads to next to their successors, instead of the top of the band.
fn lower_loop_entries(graph: &DiagramGraph, members: &[usize], last: usize, of: &mut [usize]) {
    for &node in members.iter().rev() {
        let is_root = !graph.forward_edges().any(|edge| edge.to == node);
        if !is_root || graph.nodes[node].kind == NodeKind::Start {
            continue;
        }
        let below = graph.forward_edges().filter(|edge| edge.from == node).map(|edge| edge.to);
        let within = below.filter(|to| members.contains(to)).map(|to| of[to] - 1).min();
        of[node] = within.unwrap_or(last).max(of[node]);
    }
}
