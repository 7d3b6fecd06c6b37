//! Groups nodes and edges into strips: consecutive steps, and lanes for edges that bypass other steps.
//!
//! A strip is straight, and strips keep their order from left to right in every layer, so no two ever overlap.

use super::layers::NodeLayers;
use super::model::{DiagramGraph, EdgeKind, NodeKind};

#[derive(Clone, Debug)]
pub(super) struct DiagramStrips {
    pub all: Vec<DiagramStrip>,
    /// The strip of each node.
    pub of: Vec<usize>,
    /// The route of each edge.
    pub ways: Vec<EdgeRoute>,
}

#[derive(Clone, Debug)]
pub(super) struct DiagramStrip {
    /// The first layer of the strip.
    pub top: usize,
    /// The content of each layer from there.
    pub cells: Vec<StripCell>,
    pub kind: StripKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StripCell {
    Node(usize),
    /// An edge that passes through.
    Line,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StripKind {
    /// Consecutive steps.
    Steps,
    /// A lane of forward edges to the same step.
    Skip,
    /// A lane of back edges to the same step.
    Loop,
}

/// The route of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeRoute {
    /// From a step to itself.
    Around,
    /// To the next layer.
    Near,
    /// Straight down in the strip of its source.
    Down,
    /// In the lane with this strip index.
    Lane(usize),
}

impl DiagramStrip {
    /// The content of the strip in a layer; `None` if it does not extend there.
    pub(super) fn cell_in_layer(&self, layer: usize) -> Option<StripCell> {
        self.cells.get(layer.checked_sub(self.top)?).copied()
    }

    /// Returns true if the strips share a layer.
    pub(super) fn shares_layer(&self, other: &DiagramStrip) -> bool {
        self.top < other.top + other.cells.len() && other.top < self.top + self.cells.len()
    }

    /// Returns true if the strip crosses the gap below a layer.
    pub(super) fn spans_gap(&self, layer: usize) -> bool {
        self.cell_in_layer(layer).is_some() && self.cell_in_layer(layer + 1).is_some()
    }
}

impl DiagramStrips {
    pub(super) fn new(graph: &DiagramGraph, layers: &NodeLayers) -> Self {
        let mut strips = DiagramStrips {
            all: Vec::new(),
            of: vec![usize::MAX; graph.nodes.len()],
            ways: Vec::new(),
        };
        let main = main_edges(graph);
        strips.add_steps(graph, layers, &main);
        strips.add_lanes(graph, layers, &main);
        strips
    }

    fn add_steps(&mut self, graph: &DiagramGraph, layers: &NodeLayers, main: &[Option<usize>]) {
        let accepted = accepted_edges(graph, main);
        let is_head =
            |node: &usize| !accepted.iter().flatten().any(|at| graph.edges[*at].to == *node);
        let start = graph.nodes.iter().position(|node| node.kind == NodeKind::Start);
        let heads = start.into_iter().chain((0..graph.nodes.len()).filter(|at| Some(*at) != start));
        for head in heads.filter(is_head) {
            let mut strip =
                DiagramStrip { top: layers.of[head], cells: Vec::new(), kind: StripKind::Steps };
            let mut node = head;
            loop {
                strip.cells.push(StripCell::Node(node));
                self.of[node] = self.all.len();
                let Some(edge) = main[node].map(|at| &graph.edges[at]) else { break };
                let lines = layers.of[edge.to] - layers.of[node] - 1;
                strip.cells.extend(std::iter::repeat_n(StripCell::Line, lines));
                if accepted[node].is_none() {
                    break;
                }
                node = edge.to;
            }
            self.all.push(strip);
        }
    }

    fn add_lanes(&mut self, graph: &DiagramGraph, layers: &NodeLayers, main: &[Option<usize>]) {
        let mut lanes: Vec<((usize, EdgeKind, bool), usize)> = Vec::new();
        for (at, edge) in graph.edges.iter().enumerate() {
            let (from, to) = (layers.of[edge.from], layers.of[edge.to]);
            let way = if edge.from == edge.to {
                EdgeRoute::Around
            } else if !edge.is_back && from + 1 == to {
                EdgeRoute::Near
            } else if main[edge.from] == Some(at) {
                EdgeRoute::Down
            } else {
                let key = (edge.to, edge.kind, edge.is_back);
                let (top, bottom) = if edge.is_back { (to, from) } else { (from, to - 1) };
                // A back lane may connect two steps of one layer.
                let (top, bottom) = (top.min(bottom), bottom.max(top));
                let kind = if edge.is_back { StripKind::Loop } else { StripKind::Skip };
                match lanes.iter().find(|(known, _)| *known == key) {
                    Some((_, lane)) => {
                        self.all[*lane].stretch_to(top, bottom);
                        EdgeRoute::Lane(*lane)
                    }
                    None => {
                        let cells = vec![StripCell::Line; bottom - top + 1];
                        lanes.push((key, self.all.len()));
                        self.all.push(DiagramStrip { top, cells, kind });
                        EdgeRoute::Lane(self.all.len() - 1)
                    }
                }
            };
            self.ways.push(way);
        }
    }
}

impl DiagramStrip {
    fn stretch_to(&mut self, top: usize, bottom: usize) {
        let bottom = bottom.max(self.top + self.cells.len() - 1);
        self.top = self.top.min(top);
        self.cells = vec![StripCell::Line; bottom - self.top + 1];
    }
}

/// The edge of each node that continues straight down: the only one, or that of `ok`.
fn main_edges(graph: &DiagramGraph) -> Vec<Option<usize>> {
    (0..graph.nodes.len()).map(|node| main_edge(graph, node)).collect()
}

fn main_edge(graph: &DiagramGraph, node: usize) -> Option<usize> {
    let ways: Vec<usize> = (0..graph.edges.len())
        .filter(|at| graph.edges[*at].from == node && !graph.edges[*at].is_back)
        .filter(|at| graph.edges[*at].kind == EdgeKind::Outcome)
        .collect();
    match ways.as_slice() {
        [only] => Some(*only),
        several => several.iter().copied().find(|at| graph.edges[*at].is_ok),
    }
}

/// The main edges that are also the main edge into their target. Where several meet, this is the one on the successful
/// path from the start; if none is, there is no main edge.
fn accepted_edges(graph: &DiagramGraph, main: &[Option<usize>]) -> Vec<Option<usize>> {
    let mut is_spine = vec![false; graph.nodes.len()];
    let mut at = graph.nodes.iter().position(|node| node.kind == NodeKind::Start);
    while let Some(node) = at {
        is_spine[node] = true;
        at = main[node].map(|edge| graph.edges[edge].to);
    }
    let into = |node: usize| {
        let all: Vec<usize> =
            main.iter().flatten().copied().filter(|edge| graph.edges[*edge].to == node).collect();
        match all.as_slice() {
            [only] => Some(*only),
            several => several.iter().copied().find(|edge| is_spine[graph.edges[*edge].from]),
        }
    };
    (0..graph.nodes.len())
        .map(|node| main[node].filter(|edge| into(graph.edges[*edge].to) == Some(*edge)))
        .collect()
}
