//! Assigns horizontal positions to the strips.

use super::layers::NodeLayers;
use super::model::DiagramGraph;
use super::strips::{DiagramStrips, EdgeRoute, StripCell, StripKind};

/// The space between two boxes of one layer.
const BOX_SPACE: i32 = 30;
/// The space between lines, and between a line and a box.
const LINE_SPACE: i32 = 9;
/// Half the width of a line.
pub(super) const LINE_REACH: i32 = 5;
const SWEEPS: usize = 24;
/// A position to the left of everything.
const FAR_LEFT: i32 = -1_000_000;

/// The extent of something to the left and right of the centre of its strip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StripExtent {
    pub left: i32,
    pub right: i32,
}

/// Returns the centres of the strips; the leftmost extent is at 0. `reach` gives the extent of a strip in a layer.
pub(super) fn place_strips(
    graph: &DiagramGraph,
    layers: &NodeLayers,
    strips: &DiagramStrips,
    order: &[usize],
    reach: &dyn Fn(usize, usize) -> StripExtent,
) -> Vec<i32> {
    let spaces = required_spacings(layers, strips, order, reach);
    let ties = strip_neighbours(graph, strips);
    let mut row = StripPositions::new(strips, order, spaces);
    for sweep in 0..SWEEPS {
        let mut visit = |strip: usize| {
            if let Some(wanted) = median_position(&ties[strip], &row.x) {
                row.move_strip(strip, wanted);
            }
        };
        if sweep % 2 == 0 {
            order.iter().rev().for_each(|strip| visit(*strip));
        } else {
            order.iter().for_each(|strip| visit(*strip));
        }
    }
    let x = row.x;
    let cells = order.iter().flat_map(|strip| {
        let first = strips.all[*strip].top;
        (first..first + strips.all[*strip].cells.len()).map(move |layer| (*strip, layer))
    });
    let left = cells.map(|(strip, layer)| x[strip] - reach(strip, layer).left).min().unwrap_or(0);
    x.iter().map(|x| x - left).collect()
}

/// The strips while they are being moved.
struct StripPositions<'a> {
    strips: &'a DiagramStrips,
    order: &'a [usize],
    /// For each strip, its neighbours to the left and to the right, with the minimum distance to each.
    left: Vec<Vec<(usize, i32)>>,
    right: Vec<Vec<(usize, i32)>>,
    x: Vec<i32>,
}

impl<'a> StripPositions<'a> {
    /// Places every strip as far left as possible.
    fn new(strips: &'a DiagramStrips, order: &'a [usize], spaces: Vec<StripSpacing>) -> Self {
        let mut left: Vec<Vec<(usize, i32)>> = vec![Vec::new(); order.len()];
        let mut right = left.clone();
        for space in spaces {
            left[space.right].push((space.left, space.width));
            right[space.left].push((space.right, space.width));
        }
        let mut x = vec![0; order.len()];
        for strip in order {
            let least = left[*strip].iter().map(|(other, width)| x[*other] + width);
            x[*strip] = least.max().unwrap_or(0);
        }
        StripPositions { strips, order, left, right, x }
    }

    fn is_lane(&self, strip: usize) -> bool {
        self.strips.all[strip].kind != StripKind::Steps
    }

    fn lowest_position(&self, strip: usize, x: &[i32]) -> i32 {
        let least = self.left[strip].iter().map(|(other, width)| x[*other] + width);
        least.max().unwrap_or(FAR_LEFT)
    }

    fn highest_position(&self, strip: usize, x: &[i32]) -> i32 {
        let most = self.right[strip].iter().map(|(other, width)| x[*other] - width);
        most.min().unwrap_or(-FAR_LEFT)
    }

    /// Moves a strip towards its desired position, as far as there is room. Lanes make room for steps.
    fn move_strip(&mut self, strip: usize, wanted: i32) {
        if self.is_lane(strip) {
            self.x[strip] = wanted
                .min(self.highest_position(strip, &self.x))
                .max(self.lowest_position(strip, &self.x));
            return;
        }
        let moves = |at: &&usize| self.is_lane(**at) || **at == strip;
        let (mut low, mut high) = (self.x.clone(), self.x.clone());
        for at in self.order.iter().filter(moves) {
            low[*at] = self.lowest_position(*at, &low);
        }
        for at in self.order.iter().rev().filter(moves) {
            high[*at] = self.highest_position(*at, &high);
        }
        self.x[strip] = wanted.min(high[strip]).max(low[strip]);
        let order = self.order;
        for at in order.iter().filter(|at| self.strips.all[**at].kind != StripKind::Steps) {
            self.x[*at] = self.x[*at].max(self.lowest_position(*at, &self.x));
        }
        for at in order.iter().rev().filter(|at| self.strips.all[**at].kind != StripKind::Steps) {
            self.x[*at] = self.x[*at].min(self.highest_position(*at, &self.x));
        }
    }
}

/// The minimum distance between the centres of two strips that are adjacent in some layer.
struct StripSpacing {
    left: usize,
    right: usize,
    width: i32,
}

fn required_spacings(
    layers: &NodeLayers,
    strips: &DiagramStrips,
    order: &[usize],
    reach: &dyn Fn(usize, usize) -> StripExtent,
) -> Vec<StripSpacing> {
    let mut spaces: Vec<StripSpacing> = Vec::new();
    for layer in 0..layers.count {
        let here: Vec<usize> = order
            .iter()
            .copied()
            .filter(|at| strips.all[*at].cell_in_layer(layer).is_some())
            .collect();
        for pair in here.windows(2) {
            let (left, right) = (pair[0], pair[1]);
            let is_box =
                |at: usize| matches!(strips.all[at].cell_in_layer(layer), Some(StripCell::Node(_)));
            let between = if is_box(left) && is_box(right) { BOX_SPACE } else { LINE_SPACE };
            let width = reach(left, layer).right + between + reach(right, layer).left;
            match spaces.iter_mut().find(|space| (space.left, space.right) == (left, right)) {
                Some(space) => space.width = space.width.max(width),
                None => spaces.push(StripSpacing { left, right, width }),
            }
        }
    }
    spaces
}

/// The strips that each strip should be close to, once for each edge between them. Lanes are drawn to steps, but steps
/// are not drawn to lanes.
fn strip_neighbours(graph: &DiagramGraph, strips: &DiagramStrips) -> Vec<Vec<usize>> {
    let mut ties: Vec<Vec<usize>> = vec![Vec::new(); strips.all.len()];
    for (edge, way) in graph.edges.iter().zip(&strips.ways) {
        let (from, to) = (strips.of[edge.from], strips.of[edge.to]);
        match way {
            EdgeRoute::Around => {}
            EdgeRoute::Near | EdgeRoute::Down if from == to => {}
            EdgeRoute::Near | EdgeRoute::Down => {
                ties[from].push(to);
                ties[to].push(from);
            }
            EdgeRoute::Lane(lane) => ties[*lane].extend([from, to]),
        }
    }
    ties
}

/// The median position of the strips that a strip should be close to.
fn median_position(ties: &[usize], x: &[i32]) -> Option<i32> {
    let mut near: Vec<i32> = ties.iter().map(|tie| x[*tie]).collect();
    near.sort_unstable();
    let middle = near.len() / 2;
    match near.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(near[middle]),
        _ => Some((near[middle - 1] + near[middle]) / 2),
    }
}
