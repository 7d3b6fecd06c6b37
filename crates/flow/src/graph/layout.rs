//! Where everything stands: boxes, lines, labels and bands, in pixels from the top left.
//!
//! Layers from top to bottom, strips from left to right (`strips`, `order`, `place`), and lines that only ever run in
//! strips of their own, in the gaps between layers, or from a box to the side. So lines do not run through boxes.

use super::boxes::{self, Box, GATE_SLANT};
use super::layers::Layers;
use super::model::{EdgeKind, Graph, Kind};
use super::order;
use super::place::{self, LINE_REACH, Reach};
use super::ports::{Ports, Side, Use, label_width};
use super::strips::{Cell, Strips, Way};
use super::tracks::{self, Net};

mod lines;

/// How far ports on the side of a box are from each other.
const SIDE_SPACE: i32 = 19;
/// How far the line of a step to itself stands out.
const AROUND: i32 = 20;
const ROW: i32 = 12;
/// The space under a box, and over one: less without labels than with.
const UNDER: (i32, i32) = (10, 21);
const OVER: (i32, i32) = (20, 34);
/// The least space between two bands.
const BAND_SPACE: i32 = 8;

pub(super) struct Layout {
    /// By node.
    pub boxes: Vec<Placed>,
    /// By edge.
    pub lines: Vec<Line>,
    pub stripes: Vec<Stripe>,
    pub width: i32,
    pub height: i32,
}

pub(super) struct Placed {
    /// The left side.
    pub x: i32,
    /// The top of the box itself, under the cards of a dispatch.
    pub y: i32,
    pub look: Box,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub points: Vec<(i32, i32)>,
    /// Not if it only joins another line.
    pub has_arrow: bool,
    pub label: Option<Label>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub x: i32,
    /// The base line.
    pub y: i32,
    pub anchor: Anchor,
    pub text: String,
}

/// Which end of a label its place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    End,
}

/// A band of layers that a phase takes up.
pub(super) struct Stripe {
    pub phase: Option<usize>,
    pub top: i32,
    pub bottom: i32,
}

/// What is known before heights are.
struct Plan<'a> {
    graph: &'a Graph,
    layers: Layers,
    strips: Strips,
    ports: Ports,
    boxes: Vec<Box>,
    /// The middle of each strip.
    x: Vec<i32>,
}

/// Where layers and the gaps under them are.
struct Rows {
    /// The top and the bottom of each layer.
    layers: Vec<(i32, i32)>,
    gaps: Vec<Gap>,
}

/// The gap under a layer.
struct Gap {
    /// Whose lines run in it; a row for each.
    nets: Vec<(Key, Net)>,
    rows: Vec<usize>,
    count: usize,
    /// Where the rows begin, and where they end.
    top: i32,
    bottom: i32,
}

/// Lines of one gap that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// They leave a node together, from this place at its bottom.
    From(usize, i32),
    /// They enter a node together.
    To(usize, EdgeKind),
    /// They join a lane, or leave it.
    Lane(usize),
}

impl Layout {
    pub(super) fn new(graph: &Graph) -> Self {
        let plan = Plan::new(graph);
        let width = plan.width();
        let rows = plan.rows();
        let boxes = plan.placed(&rows);
        let lines = lines::lines(&plan, &rows, &boxes);
        let stripes = stripes(&plan.layers, &rows);
        let height = rows.layers.last().map_or(0, |(_, bottom)| *bottom)
            + rows.gaps.last().map_or(0, |gap| gap.bottom - gap.top);
        Layout { boxes, lines, stripes, width, height }
    }
}

impl<'a> Plan<'a> {
    fn new(graph: &'a Graph) -> Self {
        let layers = Layers::new(graph);
        let strips = Strips::new(graph, &layers);
        let order = order::order(graph, &layers, &strips);
        let ports = Ports::new(graph, &layers, &strips, &order);
        let steps = |layer: usize| layers.of.iter().filter(|of| **of == layer).count();
        let crowd = (0..layers.count).map(steps).max().unwrap_or(0);
        let mut boxes = boxes::boxes(graph, crowd);
        for (node, look) in boxes.iter_mut().enumerate() {
            let places = ports.left[node].len().max(ports.right[node].len()) as i32;
            look.height = look.height.max(places * SIDE_SPACE + 10);
            let farthest = ports.bottom[node].iter().map(|bottom| bottom.offset.abs()).max();
            let slant = if graph.nodes[node].kind == Kind::Gate { GATE_SLANT } else { 0 };
            look.width = look.width.max(2 * (farthest.unwrap_or(0) + 12 + slant));
        }
        let mut plan = Plan { graph, layers, strips, ports, boxes, x: Vec::new() };
        let (x, _) = place::place(graph, &plan.layers, &plan.strips, &order, &|strip, layer| {
            plan.reach(strip, layer)
        });
        plan.x = x;
        plan
    }

    fn width(&self) -> i32 {
        let reaches = (0..self.strips.all.len()).flat_map(|strip| {
            let layers = (0..self.layers.count)
                .filter(move |layer| self.strips.all[strip].cell(*layer).is_some());
            layers.map(move |layer| self.x[strip] + self.reach(strip, layer).right)
        });
        reaches.max().unwrap_or(0)
    }

    /// How far a strip reaches in a layer: its box or its line, with the labels beside.
    fn reach(&self, strip: usize, layer: usize) -> Reach {
        let label_below = |from_or_to: &dyn Fn(usize) -> bool| {
            let edges = (0..self.graph.edges.len()).filter(|at| from_or_to(*at));
            let below = edges.filter(|at| self.ports.ends[*at].is_labelled_below);
            below.map(|at| label_width(&self.graph.edges[at].label)).max().unwrap_or(0)
        };
        match self.strips.all[strip].cell(layer) {
            None => Reach::default(),
            Some(Cell::Line) => {
                let starts = |at: usize| {
                    let from = self.graph.edges[at].from;
                    self.strips.ways[at] == Way::Down
                        && self.strips.of[from] == strip
                        && self.layers.of[from] + 1 == layer
                };
                Reach { left: LINE_REACH, right: LINE_REACH + label_below(&starts) }
            }
            Some(Cell::Node(node)) => {
                let half = self.boxes[node].width / 2;
                let enters = |at: usize| {
                    self.strips.ways[at] == Way::Near && self.graph.edges[at].to == node
                };
                let labels = label_below(&enters).max(self.ports.bottom_reach(self.graph, node));
                let side = |uses: &[Use]| uses.iter().map(|one| self.side_reach(one)).max();
                Reach {
                    left: labels.max(half + side(&self.ports.left[node]).unwrap_or(0)),
                    right: labels.max(half + side(&self.ports.right[node]).unwrap_or(0)),
                }
            }
        }
    }

    fn side_reach(&self, one: &Use) -> i32 {
        match one {
            Use::In(_) => 12,
            Use::Out(edge) | Use::Again(edge) => {
                let label = label_width(&self.graph.edges[*edge].label);
                let is_around = self.strips.ways[*edge] == Way::Around;
                if is_around { AROUND + label + 4 } else { label.max(8) + 4 }
            }
        }
    }

    fn rows(&self) -> Rows {
        let mut y = 0;
        let mut rows = Rows { layers: Vec::new(), gaps: Vec::new() };
        for layer in 0..self.layers.count {
            let of = |node: &usize| self.layers.of[*node] == layer;
            let tall = |node: usize| self.boxes[node].height + self.boxes[node].cards;
            let height = (0..self.boxes.len()).filter(of).map(tall).max().unwrap_or(0);
            rows.layers.push((y, y + height));
            let nets = self.nets(layer);
            let only: Vec<Net> = nets.iter().map(|(_, net)| net.clone()).collect();
            let (net_rows, count) = tracks::rows(&only);
            let under = if self.has_label_under(layer) { UNDER.1 } else { UNDER.0 };
            let over = if self.has_label_over(layer + 1) { OVER.1 } else { OVER.0 };
            let top = y + height + under;
            let ends_band = self.layers.bands.iter().any(|band| band.last == layer);
            let least = if ends_band { BAND_SPACE } else { 0 };
            let is_last = layer + 1 == self.layers.count;
            let bottom = top + if count > 0 { count as i32 * ROW } else { least };
            rows.gaps.push(Gap { nets, rows: net_rows, count, top, bottom });
            y = bottom + if is_last { 0 } else { over };
        }
        rows
    }

    fn has_label_under(&self, layer: usize) -> bool {
        self.graph.edges.iter().zip(&self.ports.ends).any(|(edge, ends)| {
            let is_here = self.layers.of[edge.from] == layer && ends.out == Side::Bottom;
            is_here && !ends.is_labelled_below && !edge.label.is_empty()
        })
    }

    fn has_label_over(&self, layer: usize) -> bool {
        self.graph.edges.iter().zip(&self.ports.ends).any(|(edge, ends)| {
            let is_here = self.layers.of[edge.from] + 1 == layer;
            is_here && ends.is_labelled_below && !edge.label.is_empty()
        })
    }

    /// The lines in the gap under a layer.
    fn nets(&self, gap: usize) -> Vec<(Key, Net)> {
        let mut nets: Vec<(Key, Net)> = Vec::new();
        for edge in 0..self.graph.edges.len() {
            for leg in self.legs(edge).into_iter().filter(|leg| leg.gap == gap) {
                let at = nets.iter().position(|(key, _)| *key == leg.key).unwrap_or_else(|| {
                    nets.push((leg.key, Net::default()));
                    nets.len() - 1
                });
                let net = &mut nets[at].1;
                for (ends, x) in
                    leg.up.iter().map(|x| (true, x)).chain(leg.down.iter().map(|x| (false, x)))
                {
                    let side = if ends { &mut net.up } else { &mut net.down };
                    if !side.contains(x) {
                        side.push(*x);
                    }
                }
            }
        }
        nets
    }

    /// Where an edge runs through gaps sideways.
    fn legs(&self, at: usize) -> Vec<Leg> {
        let edge = &self.graph.edges[at];
        let ends = self.ports.ends[at];
        let (from, to) = (self.layers.of[edge.from], self.layers.of[edge.to]);
        let out = self.x_of(edge.from) + self.ports.bottom_offset(edge.from, at);
        let into = self.x_of(edge.to) + self.top_offset(at);
        let key_to = Key::To(edge.to, edge.kind);
        match self.strips.ways[at] {
            Way::Around => Vec::new(),
            Way::Near => {
                let key = match ends.is_labelled_below {
                    true => Key::From(edge.from, out),
                    false => key_to,
                };
                vec![Leg { gap: from, key, up: vec![out], down: vec![into] }]
            }
            Way::Down => vec![Leg { gap: to - 1, key: key_to, up: vec![out], down: vec![into] }],
            Way::Lane(lane) => {
                let x = self.x[lane];
                let mut legs = Vec::new();
                let key = Key::Lane(lane);
                if ends.out == Side::Bottom {
                    let (up, down) = match edge.is_back && to <= from {
                        true => (vec![out, x], Vec::new()),
                        false => (vec![out], vec![x]),
                    };
                    legs.push(Leg { gap: from, key, up, down });
                }
                if ends.into == Side::Top {
                    let gap = to.saturating_sub(1);
                    legs.push(match edge.is_back && to <= from {
                        true => Leg { gap, key, up: Vec::new(), down: vec![x, into] },
                        false => Leg { gap, key: key_to, up: vec![x], down: vec![into] },
                    });
                }
                legs
            }
        }
    }

    fn x_of(&self, node: usize) -> i32 {
        self.x[self.strips.of[node]]
    }

    /// Edges of one sort enter a node together, in the middle; of others that enter at the top, aside.
    fn top_offset(&self, at: usize) -> i32 {
        let sort = |at: usize| match (self.graph.edges[at].is_back, self.graph.edges[at].kind) {
            (false, EdgeKind::Outcome) => 0,
            (false, EdgeKind::Error) => 1,
            (true, _) => 2,
        };
        let edge = &self.graph.edges[at];
        let enters = |other: &usize| {
            self.graph.edges[*other].to == edge.to && self.ports.ends[*other].into == Side::Top
        };
        let least = (0..self.graph.edges.len()).filter(enters).map(sort).min();
        match sort(at) {
            own if Some(own) == least => 0,
            1 => 26,
            _ => -26,
        }
    }

    fn placed(&self, rows: &Rows) -> Vec<Placed> {
        let place = |node: usize| {
            let look = self.boxes[node].clone();
            let (top, bottom) = rows.layers[self.layers.of[node]];
            let y = top + (bottom - top - look.height - look.cards) / 2 + look.cards;
            Placed { x: self.x_of(node) - look.width / 2, y, look }
        };
        (0..self.boxes.len()).map(place).collect()
    }
}

/// A part of an edge in a gap, with where it comes from above and from below.
struct Leg {
    gap: usize,
    key: Key,
    up: Vec<i32>,
    down: Vec<i32>,
}

impl Gap {
    /// The height at which the lines of a key run.
    fn row(&self, key: Key) -> i32 {
        let at = self.nets.iter().position(|(known, _)| *known == key);
        let row = at.map_or(0, |at| self.rows[at]);
        if self.count == 0 { self.top } else { self.top + ROW / 2 + row as i32 * ROW }
    }
}

fn stripes(layers: &Layers, rows: &Rows) -> Vec<Stripe> {
    let stripe = |band: &super::layers::Band| {
        let above = band.first.checked_sub(1).map(|gap| rows.gaps[gap].bottom);
        Stripe { phase: band.phase, top: above.unwrap_or(0), bottom: rows.gaps[band.last].top }
    };
    layers.bands.iter().map(stripe).collect()
}
