//! Computes the positions of boxes, lines, labels and bands, in pixels from the top left.
//!
//! Layers run from top to bottom, strips from left to right (`strips`, `order`, `place`). Lines run only in strips of
//! their own, in the gaps between layers, or from a box to its side, so they never cross a box.

use super::boxes::{self, GATE_SLANT, NodeBox};
use super::layers::NodeLayers;
use super::model::{DiagramEdge, DiagramGraph, EdgeKind, NodeKind};
use super::order;
use super::ports::{BoxSide, NodePorts, PortUse, label_width};
use super::positions::{self, LINE_REACH, StripExtent};
use super::strips::{DiagramStrips, EdgeRoute, StripCell};
use super::tracks::{self, LineNet};

mod lines;

/// The distance between ports on the side of a box.
const SIDE_SPACE: i32 = 19;
/// The distance by which the line of a self-loop sticks out.
const AROUND: i32 = 20;
const ROW: i32 = 12;
/// The space below a box and above one, without and with labels.
const UNDER: (i32, i32) = (10, 21);
const OVER: (i32, i32) = (20, 34);
/// The minimum space between two bands.
const BAND_SPACE: i32 = 8;

pub(super) struct DiagramLayout {
    /// Indexed by node.
    pub boxes: Vec<PlacedBox>,
    /// Indexed by edge.
    pub lines: Vec<EdgeLine>,
    pub stripes: Vec<PhaseStripe>,
    pub width: i32,
    pub height: i32,
}

pub(super) struct PlacedBox {
    pub x: i32,
    /// The top of the box itself, below the cards of a dispatch.
    pub y: i32,
    pub look: NodeBox,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EdgeLine {
    pub points: Vec<(i32, i32)>,
    /// False if the line only joins another one.
    pub has_arrow: bool,
    pub label: Option<EdgeLabel>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EdgeLabel {
    pub x: i32,
    /// The baseline.
    pub y: i32,
    pub anchor: LabelAnchor,
    pub text: String,
}

/// The end of a label that its position refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelAnchor {
    Start,
    End,
}

/// The area of a band of layers that belongs to a phase.
pub(super) struct PhaseStripe {
    pub phase: Option<usize>,
    pub top: i32,
    pub bottom: i32,
}

/// All positions that are computed before the heights.
struct LayoutPlan<'a> {
    graph: &'a DiagramGraph,
    layers: NodeLayers,
    strips: DiagramStrips,
    ports: NodePorts,
    boxes: Vec<NodeBox>,
    /// The centre of each strip.
    x: Vec<i32>,
    /// For each edge, the offset from the centre of the box's top at which it enters, if it enters there.
    tops: Vec<i32>,
    /// The horizontal extent of each strip in each of its layers.
    reaches: Vec<Vec<StripExtent>>,
}

/// The vertical positions of layers and of the gaps below them.
struct LayerRows {
    /// The top and bottom of each layer.
    layers: Vec<(i32, i32)>,
    gaps: Vec<LayerGap>,
}

/// The gap below a layer.
struct LayerGap {
    /// The nets that run in the gap, with a row for each.
    nets: Vec<(NetKey, LineNet)>,
    rows: Vec<usize>,
    count: usize,
    /// The start and end of the rows.
    top: i32,
    bottom: i32,
}

/// Identifies lines of one gap that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetKey {
    /// Lines that leave a node together, at this position of its bottom.
    From(usize, i32),
    /// Lines that enter a node together.
    To(usize, EdgeKind),
    /// Lines that join or leave a lane.
    Lane(usize),
}

impl DiagramLayout {
    pub(super) fn new(graph: &DiagramGraph) -> Self {
        let plan = LayoutPlan::new(graph);
        let width = plan.total_width();
        let rows = plan.place_rows();
        let boxes = plan.place_boxes(&rows);
        let lines = lines::edge_lines(&plan, &rows, &boxes);
        let stripes = phase_stripes(&plan.layers, &rows);
        let height = rows.layers.last().map_or(0, |(_, bottom)| *bottom)
            + rows.gaps.last().map_or(0, |gap| gap.bottom - gap.top);
        DiagramLayout { boxes, lines, stripes, width, height }
    }
}

impl<'a> LayoutPlan<'a> {
    fn new(graph: &'a DiagramGraph) -> Self {
        let layers = NodeLayers::new(graph);
        let strips = DiagramStrips::new(graph, &layers);
        let order = order::order_strips(graph, &layers, &strips);
        let ports = NodePorts::new(graph, &layers, &strips, &order);
        let steps = |layer: usize| layers.of.iter().filter(|of| **of == layer).count();
        let crowd = (0..layers.count).map(steps).max().unwrap_or(0);
        let mut boxes = boxes::measure_boxes(graph, crowd);
        for (node, look) in boxes.iter_mut().enumerate() {
            let places = ports.left[node].len().max(ports.right[node].len()) as i32;
            look.height = look.height.max(places * SIDE_SPACE + 10);
            let farthest = ports.bottom[node].iter().map(|bottom| bottom.offset.abs()).max();
            let slant = if graph.nodes[node].kind == NodeKind::Gate { GATE_SLANT } else { 0 };
            look.width = look.width.max(2 * (farthest.unwrap_or(0) + 12 + slant));
        }
        let mut plan = LayoutPlan {
            graph,
            layers,
            strips,
            ports,
            boxes,
            x: Vec::new(),
            tops: Vec::new(),
            reaches: Vec::new(),
        };
        plan.tops = (0..graph.edges.len()).map(|edge| plan.top_offset(edge)).collect();
        plan.reaches = (0..plan.strips.all.len()).map(|strip| plan.reaches_of(strip)).collect();
        plan.x =
            positions::place_strips(graph, &plan.layers, &plan.strips, &order, &|strip, layer| {
                plan.reaches[strip][layer - plan.strips.all[strip].top]
            });
        plan
    }

    fn total_width(&self) -> i32 {
        let right =
            |(x, reaches): (&i32, &Vec<StripExtent>)| reaches.iter().map(|one| x + one.right).max();
        self.x.iter().zip(&self.reaches).filter_map(right).max().unwrap_or(0)
    }

    /// The extent of a strip in its layers: its boxes and lines, with the labels beside them.
    fn reaches_of(&self, strip: usize) -> Vec<StripExtent> {
        let strip = &self.strips.all[strip];
        let mut label_after = 0;
        let mut reaches = Vec::new();
        for cell in &strip.cells {
            reaches.push(match cell {
                StripCell::Line => {
                    StripExtent { left: LINE_REACH, right: LINE_REACH + label_after }
                }
                StripCell::Node(node) => self.box_extent(*node),
            });
            label_after = match cell {
                StripCell::Line => 0,
                StripCell::Node(node) => {
                    self.label_below(EdgeRoute::Down, |edge| edge.from == *node)
                }
            };
        }
        reaches
    }

    /// The width of the widest label below or above a box that is placed at the line itself.
    fn label_below(&self, way: EdgeRoute, is_meant: impl Fn(&DiagramEdge) -> bool) -> i32 {
        let edges = (0..self.graph.edges.len()).filter(|at| is_meant(&self.graph.edges[*at]));
        let below = edges
            .filter(|at| self.strips.ways[*at] == way && self.ports.ends[*at].is_labelled_below);
        below.map(|at| label_width(&self.graph.edges[at].label)).max().unwrap_or(0)
    }

    fn box_extent(&self, node: usize) -> StripExtent {
        let half = self.boxes[node].width / 2;
        let label = self.label_below(EdgeRoute::Near, |edge| edge.to == node);
        let labels = label.max(self.ports.bottom_reach(self.graph, node));
        let side =
            |uses: &[PortUse]| uses.iter().map(|one| self.side_reach(one)).max().unwrap_or(0);
        StripExtent {
            left: labels.max(half + side(&self.ports.left[node])),
            right: labels.max(half + side(&self.ports.right[node])),
        }
    }

    fn side_reach(&self, one: &PortUse) -> i32 {
        match one {
            PortUse::In(_) => 12,
            PortUse::Out(edge) | PortUse::Again(edge) => {
                let label = label_width(&self.graph.edges[*edge].label);
                let is_around = self.strips.ways[*edge] == EdgeRoute::Around;
                if is_around { AROUND + label + 4 } else { label.max(8) + 4 }
            }
        }
    }

    fn place_rows(&self) -> LayerRows {
        let mut y = 0;
        let mut rows = LayerRows { layers: Vec::new(), gaps: Vec::new() };
        for (layer, nets) in self.collect_nets().into_iter().enumerate() {
            let of = |node: &usize| self.layers.of[*node] == layer;
            let tall = |node: usize| self.boxes[node].height + self.boxes[node].cards;
            let height = (0..self.boxes.len()).filter(of).map(tall).max().unwrap_or(0);
            rows.layers.push((y, y + height));
            let only: Vec<LineNet> = nets.iter().map(|(_, net)| net.clone()).collect();
            let (net_rows, count) = tracks::assign_rows(&only);
            let under = if self.has_label_under(layer) { UNDER.1 } else { UNDER.0 };
            let over = if self.has_label_over(layer + 1) { OVER.1 } else { OVER.0 };
            let top = y + height + under;
            let ends_band = self.layers.bands.iter().any(|band| band.last == layer);
            let least = if ends_band { BAND_SPACE } else { 0 };
            let is_last = layer + 1 == self.layers.count;
            let bottom = top + if count > 0 { count as i32 * ROW } else { least };
            rows.gaps.push(LayerGap { nets, rows: net_rows, count, top, bottom });
            y = bottom + if is_last { 0 } else { over };
        }
        rows
    }

    fn has_label_under(&self, layer: usize) -> bool {
        self.graph.edges.iter().zip(&self.ports.ends).any(|(edge, ends)| {
            let is_here = self.layers.of[edge.from] == layer && ends.out == BoxSide::Bottom;
            is_here && !ends.is_labelled_below && !edge.label.is_empty()
        })
    }

    fn has_label_over(&self, layer: usize) -> bool {
        self.graph.edges.iter().zip(&self.ports.ends).any(|(edge, ends)| {
            let is_here = self.layers.of[edge.from] + 1 == layer;
            is_here && ends.is_labelled_below && !edge.label.is_empty()
        })
    }

    /// The nets in the gap below each layer.
    fn collect_nets(&self) -> Vec<Vec<(NetKey, LineNet)>> {
        let mut all: Vec<Vec<(NetKey, LineNet)>> = vec![Vec::new(); self.layers.count];
        for leg in (0..self.graph.edges.len()).flat_map(|edge| self.edge_legs(edge)) {
            let nets = &mut all[leg.gap];
            let at = nets.iter().position(|(key, _)| *key == leg.key).unwrap_or_else(|| {
                nets.push((leg.key, LineNet::default()));
                nets.len() - 1
            });
            nets[at].1.add_ends(&leg.up, &leg.down);
        }
        all
    }

    /// The horizontal parts of an edge in gaps.
    fn edge_legs(&self, at: usize) -> Vec<EdgeLeg> {
        let edge = &self.graph.edges[at];
        let ends = self.ports.ends[at];
        let (from, to) = (self.layers.of[edge.from], self.layers.of[edge.to]);
        let out = self.x_of(edge.from) + self.ports.bottom_offset(edge.from, at);
        let into = self.x_of(edge.to) + self.tops[at];
        let key_to = NetKey::To(edge.to, edge.kind);
        match self.strips.ways[at] {
            EdgeRoute::Around => Vec::new(),
            EdgeRoute::Near => {
                let key =
                    if ends.is_labelled_below { NetKey::From(edge.from, out) } else { key_to };
                vec![EdgeLeg { gap: from, key, up: vec![out], down: vec![into] }]
            }
            EdgeRoute::Down => {
                vec![EdgeLeg { gap: to - 1, key: key_to, up: vec![out], down: vec![into] }]
            }
            EdgeRoute::Lane(lane) => {
                let x = self.x[lane];
                let mut legs = Vec::new();
                let key = NetKey::Lane(lane);
                if ends.out == BoxSide::Bottom {
                    let (up, down) = if edge.is_back && to <= from {
                        (vec![out, x], Vec::new())
                    } else {
                        (vec![out], vec![x])
                    };
                    legs.push(EdgeLeg { gap: from, key, up, down });
                }
                if ends.into == BoxSide::Top {
                    let gap = to.saturating_sub(1);
                    legs.push(if edge.is_back && to <= from {
                        EdgeLeg { gap, key, up: Vec::new(), down: vec![x, into] }
                    } else {
                        EdgeLeg { gap, key: key_to, up: vec![x], down: vec![into] }
                    });
                }
                legs
            }
        }
    }

    fn x_of(&self, node: usize) -> i32 {
        self.x[self.strips.of[node]]
    }

    /// The offset at which an edge enters the top of a node. Edges of the first sort enter together in the centre,
    /// other sorts to the side.
    fn top_offset(&self, at: usize) -> i32 {
        let edge = &self.graph.edges[at];
        let enters = |other: &usize| {
            self.graph.edges[*other].to == edge.to && self.ports.ends[*other].into == BoxSide::Top
        };
        let least = (0..self.graph.edges.len()).filter(enters).map(|at| self.entry_sort(at)).min();
        match self.entry_sort(at) {
            own if Some(own) == least => 0,
            1 => 26,
            _ => -26,
        }
    }

    fn entry_sort(&self, at: usize) -> u8 {
        match (self.graph.edges[at].is_back, self.graph.edges[at].kind) {
            (false, EdgeKind::Outcome) => 0,
            (false, EdgeKind::Error) => 1,
            (true, _) => 2,
        }
    }

    fn place_boxes(&self, rows: &LayerRows) -> Vec<PlacedBox> {
        let place = |node: usize| {
            let look = self.boxes[node].clone();
            let (top, bottom) = rows.layers[self.layers.of[node]];
            let y = top + (bottom - top - look.height - look.cards) / 2 + look.cards;
            PlacedBox { x: self.x_of(node) - look.width / 2, y, look }
        };
        (0..self.boxes.len()).map(place).collect()
    }
}

/// The part of an edge in a gap, with the x positions at which it arrives from above and from below.
struct EdgeLeg {
    gap: usize,
    key: NetKey,
    up: Vec<i32>,
    down: Vec<i32>,
}

impl LayerGap {
    /// The height at which the lines of a key run.
    fn row_height(&self, key: NetKey) -> i32 {
        let at = self.nets.iter().position(|(known, _)| *known == key);
        let row = at.map_or(0, |at| self.rows[at]);
        if self.count == 0 { self.top } else { self.top + ROW / 2 + row as i32 * ROW }
    }
}

fn phase_stripes(layers: &NodeLayers, rows: &LayerRows) -> Vec<PhaseStripe> {
    let stripe = |band: &super::layers::PhaseBand| {
        let above = band.first.checked_sub(1).map(|gap| rows.gaps[gap].bottom);
        PhaseStripe { phase: band.phase, top: above.unwrap_or(0), bottom: rows.gaps[band.last].top }
    };
    layers.bands.iter().map(stripe).collect()
}
