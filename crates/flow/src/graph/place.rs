//! Where strips stand from left to right.

use super::layers::Layers;
use super::model::Graph;
use super::strips::{Cell, StripKind, Strips, Way};

/// The space between two boxes of one layer.
const BOX_SPACE: i32 = 30;
/// The space between lines, and between a line and a box.
const LINE_SPACE: i32 = 9;
/// Half the width of a line.
pub(super) const LINE_REACH: i32 = 5;
const SWEEPS: usize = 24;
/// Where nothing else stands.
const FAR_LEFT: i32 = -1_000_000;

/// How far something reaches to the left and to the right of the middle of its strip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    pub left: i32,
    pub right: i32,
}

/// The middles of the strips, and the width of all. `reach` says it for a strip in a layer.
pub(super) fn place(
    graph: &Graph,
    layers: &Layers,
    strips: &Strips,
    order: &[usize],
    reach: &dyn Fn(usize, usize) -> Reach,
) -> (Vec<i32>, i32) {
    let spaces = spaces(layers, strips, order, reach);
    let ties = ties(graph, strips);
    let mut row = Row::new(strips, order, spaces);
    for sweep in 0..SWEEPS {
        let mut visit = |strip: usize| {
            if let Some(wanted) = wanted(&ties[strip], &row.x) {
                row.shift(strip, wanted);
            }
        };
        if sweep % 2 == 0 {
            order.iter().rev().for_each(|strip| visit(*strip));
        } else {
            order.iter().for_each(|strip| visit(*strip));
        }
    }
    let x = row.x;
    let all = |edge: &dyn Fn(i32, Reach) -> i32| -> Vec<i32> {
        let of = |strip: usize| {
            let strip_layers =
                (0..layers.count).filter(move |at| strips.all[strip].cell(*at).is_some());
            strip_layers.map(move |layer| (strip, layer))
        };
        (0..order.len())
            .flat_map(of)
            .map(|(strip, layer)| edge(x[strip], reach(strip, layer)))
            .collect()
    };
    let left = all(&|x, reach| x - reach.left).into_iter().min().unwrap_or(0);
    let right = all(&|x, reach| x + reach.right).into_iter().max().unwrap_or(0);
    (x.iter().map(|x| x - left).collect(), right - left)
}

/// The strips while they are moved.
struct Row<'a> {
    strips: &'a Strips,
    order: &'a [usize],
    /// The spaces to the left of each strip, and to the right: the neighbour, and how far it has to be.
    left: Vec<Vec<(usize, i32)>>,
    right: Vec<Vec<(usize, i32)>>,
    x: Vec<i32>,
}

impl<'a> Row<'a> {
    /// Every strip as far to the left as it can be.
    fn new(strips: &'a Strips, order: &'a [usize], spaces: Vec<Space>) -> Self {
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
        Row { strips, order, left, right, x }
    }

    /// Moves a strip to where it wants to be, as far as there is room. Lanes make room, steps do not.
    fn shift(&mut self, strip: usize, wanted: i32) {
        let is_lane = |at: usize| self.strips.all[at].kind != StripKind::Steps;
        let mut low: Vec<i32> = self.x.clone();
        for &at in self.order.iter().filter(|at| is_lane(**at) || **at == strip) {
            low[at] = self.left[at]
                .iter()
                .map(|(other, width)| low[*other] + width)
                .max()
                .unwrap_or(FAR_LEFT);
        }
        let mut high: Vec<i32> = self.x.clone();
        for &at in self.order.iter().rev().filter(|at| is_lane(**at) || **at == strip) {
            high[at] = self.right[at]
                .iter()
                .map(|(other, width)| high[*other] - width)
                .min()
                .unwrap_or(-FAR_LEFT);
        }
        self.x[strip] = wanted.min(high[strip]).max(low[strip]);
        for &at in self.order.iter().filter(|at| is_lane(**at)) {
            let low = self.left[at].iter().map(|(other, width)| self.x[*other] + width).max();
            self.x[at] = self.x[at].max(low.unwrap_or(FAR_LEFT));
        }
        for &at in self.order.iter().rev().filter(|at| is_lane(**at)) {
            let high = self.right[at].iter().map(|(other, width)| self.x[*other] - width).min();
            self.x[at] = self.x[at].min(high.unwrap_or(-FAR_LEFT));
        }
    }
}

/// The least distance between the middles of two strips that stand side by side somewhere.
struct Space {
    left: usize,
    right: usize,
    width: i32,
}

fn spaces(
    layers: &Layers,
    strips: &Strips,
    order: &[usize],
    reach: &dyn Fn(usize, usize) -> Reach,
) -> Vec<Space> {
    let mut spaces: Vec<Space> = Vec::new();
    for layer in 0..layers.count {
        let here: Vec<usize> =
            order.iter().copied().filter(|at| strips.all[*at].cell(layer).is_some()).collect();
        for pair in here.windows(2) {
            let (left, right) = (pair[0], pair[1]);
            let is_box = |at: usize| matches!(strips.all[at].cell(layer), Some(Cell::Node(_)));
            let between = if is_box(left) && is_box(right) { BOX_SPACE } else { LINE_SPACE };
            let width = reach(left, layer).right + between + reach(right, layer).left;
            match spaces.iter_mut().find(|space| (space.left, space.right) == (left, right)) {
                Some(space) => space.width = space.width.max(width),
                None => spaces.push(Space { left, right, width }),
            }
        }
    }
    spaces
}

/// The strips that each strip wants to be near, once for each edge between them. Lanes want to be near steps; steps do
/// not care for lanes.
fn ties(graph: &Graph, strips: &Strips) -> Vec<Vec<usize>> {
    let mut ties: Vec<Vec<usize>> = vec![Vec::new(); strips.all.len()];
    for (edge, way) in graph.edges.iter().zip(&strips.ways) {
        let (from, to) = (strips.of[edge.from], strips.of[edge.to]);
        match way {
            Way::Around => {}
            Way::Near | Way::Down if from == to => {}
            Way::Near | Way::Down => {
                ties[from].push(to);
                ties[to].push(from);
            }
            Way::Lane(lane) => ties[*lane].extend([from, to]),
        }
    }
    ties
}

/// The middle of what a strip wants to be near.
fn wanted(ties: &[usize], x: &[i32]) -> Option<i32> {
    let mut near: Vec<i32> = ties.iter().map(|tie| x[*tie]).collect();
    near.sort_unstable();
    let middle = near.len() / 2;
    match near.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(near[middle]),
        _ => Some((near[middle - 1] + near[middle]) / 2),
    }
}
