//! Decides where edges leave and enter boxes, and on which side their labels are placed.

use super::layers::NodeLayers;
use super::model::{DiagramGraph, EdgeKind};
use super::strips::{DiagramStrips, EdgeRoute, StripCell};
use super::text::{shorten_text, text_width};

/// The font size of labels.
pub(super) const LABEL_SIZE: i32 = 11;
/// The maximum width of a label.
const LABEL_WIDTH_MAX: i32 = 150;
/// The distance between ports at the bottom of a box, without labels.
const PORT_SPACE: i32 = 22;

/// The displayed label, shortened if necessary.
pub(super) fn shown_label(text: &str) -> String {
    shorten_text(text, LABEL_SIZE, LABEL_WIDTH_MAX)
}

/// The width of a label with the space around it; 0 if there is no label.
pub(super) fn label_width(text: &str) -> i32 {
    if text.is_empty() { 0 } else { text_width(&shown_label(text), LABEL_SIZE) + 12 }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoxSide {
    Left,
    Right,
    Top,
    Bottom,
}

/// The ends of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EdgeEnds {
    pub out: BoxSide,
    pub into: BoxSide,
    /// True if the label is placed where the edge enters instead of where it leaves, so that edges can leave together.
    pub is_labelled_below: bool,
}

/// The use of a port on the left or right side of a box by an edge, or by a lane with all its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortUse {
    Out(usize),
    /// From a lane.
    In(usize),
    /// Back from the node itself.
    Again(usize),
}

/// A port at the bottom of a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BottomPort {
    /// The edges that leave together.
    pub edges: Vec<usize>,
    /// The offset from the centre of the box.
    pub offset: i32,
}

/// The ports of all boxes.
pub(super) struct NodePorts {
    pub ends: Vec<EdgeEnds>,
    /// The uses of the left side of each node, from the top.
    pub left: Vec<Vec<PortUse>>,
    pub right: Vec<Vec<PortUse>>,
    pub bottom: Vec<Vec<BottomPort>>,
}

impl NodePorts {
    pub(super) fn new(
        graph: &DiagramGraph,
        layers: &NodeLayers,
        strips: &DiagramStrips,
        order: &[usize],
    ) -> Self {
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, strip)| place[*strip] = at);
        let around = PortPlanner { layers, strips, order, place: &place };
        let ends = (0..graph.edges.len()).map(|edge| around.edge_ends(graph, edge)).collect();
        let mut ports = NodePorts {
            ends,
            left: vec![Vec::new(); graph.nodes.len()],
            right: vec![Vec::new(); graph.nodes.len()],
            bottom: Vec::new(),
        };
        ports.mark_labels_below(graph, strips);
        ports.fill_sides(graph, strips);
        for node in 0..graph.nodes.len() {
            ports.left[node].sort_by_key(|one| around.port_rank(graph, node, one));
            ports.right[node].sort_by_key(|one| around.port_rank(graph, node, one));
        }
        ports.bottom = (0..graph.nodes.len())
            .map(|node| around.bottom_ports(graph, node, &ports.ends))
            .collect();
        ports
    }

    /// The extent of the ports at the bottom of a node from its centre, with their labels.
    pub(super) fn bottom_reach(&self, graph: &DiagramGraph, node: usize) -> i32 {
        let reach = |bottom: &BottomPort| {
            let labels = bottom.edges.iter().filter(|edge| !self.ends[**edge].is_labelled_below);
            let widest = labels.map(|edge| label_width(&graph.edges[*edge].label)).max();
            bottom.offset.abs() + widest.unwrap_or(0)
        };
        self.bottom[node].iter().map(reach).max().unwrap_or(0)
    }

    /// The offset of the port at the bottom from which an edge leaves.
    pub(super) fn bottom_offset(&self, node: usize, edge: usize) -> i32 {
        let place = self.bottom[node].iter().find(|bottom| bottom.edges.contains(&edge));
        place.map_or(0, |bottom| bottom.offset)
    }

    /// Places a label where its edge enters if no other edge enters there, or if the edge has a strip to itself.
    fn mark_labels_below(&mut self, graph: &DiagramGraph, strips: &DiagramStrips) {
        let alone = |at: usize| {
            let to = graph.edges[at].to;
            let mut others = (0..graph.edges.len()).filter(|other| *other != at);
            !others
                .any(|other| graph.edges[other].to == to && self.ends[other].into == BoxSide::Top)
        };
        let below: Vec<bool> = (0..graph.edges.len()).map(alone).collect();
        for (at, ends) in self.ends.iter_mut().enumerate() {
            let is_plain = graph.edges[at].kind == EdgeKind::Outcome;
            let is_alone = strips.ways[at] == EdgeRoute::Down
                || strips.ways[at] == EdgeRoute::Near && below[at];
            ends.is_labelled_below = is_alone && is_plain;
        }
    }

    fn fill_sides(&mut self, graph: &DiagramGraph, strips: &DiagramStrips) {
        for (at, edge) in graph.edges.iter().enumerate() {
            let ends = self.ends[at];
            if let Some(side) = self.side_ports(ends.out, edge.from) {
                side.push(PortUse::Out(at));
            }
            let used = match strips.ways[at] {
                EdgeRoute::Around => PortUse::Again(at),
                EdgeRoute::Lane(lane) => PortUse::In(lane),
                EdgeRoute::Near | EdgeRoute::Down => continue,
            };
            if let Some(side) =
                self.side_ports(ends.into, edge.to).filter(|side| !side.contains(&used))
            {
                side.push(used);
            }
        }
    }

    fn side_ports(&mut self, side: BoxSide, node: usize) -> Option<&mut Vec<PortUse>> {
        match side {
            BoxSide::Left => self.left.get_mut(node),
            BoxSide::Right => self.right.get_mut(node),
            BoxSide::Top | BoxSide::Bottom => None,
        }
    }
}

struct PortPlanner<'a> {
    layers: &'a NodeLayers,
    strips: &'a DiagramStrips,
    order: &'a [usize],
    place: &'a [usize],
}

impl PortPlanner<'_> {
    fn edge_ends(&self, graph: &DiagramGraph, at: usize) -> EdgeEnds {
        let edge = &graph.edges[at];
        let (out, into) = match self.strips.ways[at] {
            EdgeRoute::Around => (BoxSide::Right, BoxSide::Right),
            EdgeRoute::Near | EdgeRoute::Down => (BoxSide::Bottom, BoxSide::Top),
            EdgeRoute::Lane(lane) => {
                let out = self.side_towards_lane(edge.from, lane).unwrap_or(BoxSide::Bottom);
                let into = if edge.is_back { self.side_towards_lane(edge.to, lane) } else { None };
                (out, into.unwrap_or(BoxSide::Top))
            }
        };
        EdgeEnds { out, into, is_labelled_below: false }
    }

    /// The ports at the bottom of a node. Edges that go straight or need no label here leave in the middle; the others
    /// leave beside it, on the side they go to, with the label on the outer side.
    fn bottom_ports(
        &self,
        graph: &DiagramGraph,
        node: usize,
        ends: &[EdgeEnds],
    ) -> Vec<BottomPort> {
        let own = self.place[self.strips.of[node]];
        let aim = |at: usize| match self.strips.ways[at] {
            EdgeRoute::Lane(lane) => self.place[lane],
            _ => self.place[self.strips.of[graph.edges[at].to]],
        };
        let all: Vec<usize> = (0..ends.len())
            .filter(|at| graph.edges[*at].from == node && ends[*at].out == BoxSide::Bottom)
            .collect();
        let is_middle = |at: &usize| {
            let goes_straight = matches!(self.strips.ways[*at], EdgeRoute::Near) && aim(*at) == own;
            all.len() == 1
                || ends[*at].is_labelled_below
                || goes_straight && graph.edges[*at].kind == EdgeKind::Outcome
        };
        let (middle, mut beside): (Vec<usize>, Vec<usize>) =
            all.iter().copied().partition(is_middle);
        let source_label = |at: &usize| {
            if ends[*at].is_labelled_below { 0 } else { label_width(&graph.edges[*at].label) }
        };
        let mut right = middle.iter().map(source_label).max().unwrap_or(0);
        let mut left = 0;
        let mut places = vec![BottomPort { edges: middle, offset: 0 }];
        beside.sort_by_key(|at| (aim(*at).abs_diff(own), *at));
        for at in beside {
            let reach = if aim(at) < own { &mut left } else { &mut right };
            let offset = *reach + PORT_SPACE;
            *reach = offset + source_label(&at);
            places.push(BottomPort {
                edges: vec![at],
                offset: if aim(at) < own { -offset } else { offset },
            });
        }
        places
    }

    /// The side from which a node can reach a lane in its own layer; `None` if another node is in between.
    fn side_towards_lane(&self, node: usize, lane: usize) -> Option<BoxSide> {
        let layer = self.layers.of[node];
        let (own, other) = (self.place[self.strips.of[node]], self.place[lane]);
        let between = &self.order[own.min(other) + 1..own.max(other)];
        let is_node = |strip: &usize| {
            matches!(self.strips.all[*strip].cell_in_layer(layer), Some(StripCell::Node(_)))
        };
        let side = if other < own { BoxSide::Left } else { BoxSide::Right };
        (!between.iter().any(is_node)).then_some(side)
    }

    /// The order of ports from the top: lanes that come from above, near before far, then lanes that go down, far
    /// before near. This way none has to cross another.
    fn port_rank(&self, graph: &DiagramGraph, node: usize, one: &PortUse) -> (i32, i32) {
        let lane = match one {
            PortUse::Out(edge) | PortUse::Again(edge) => match self.strips.ways[*edge] {
                EdgeRoute::Lane(lane) => lane,
                _ => return (1, i32::from(matches!(one, PortUse::Again(_)))),
            },
            PortUse::In(lane) => *lane,
        };
        let distance = self.place[lane].abs_diff(self.place[self.strips.of[node]]) as i32;
        let goes_down = match one {
            PortUse::Out(edge) => self.layers.of[graph.edges[*edge].to] > self.layers.of[node],
            // An incoming lane extends to the steps it comes from.
            _ => self.strips.all[lane].top >= self.layers.of[node],
        };
        if goes_down { (2, -distance) } else { (0, distance) }
    }
}
