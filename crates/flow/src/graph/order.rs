//! Orders the strips from left to right: few crossings, short lines, loops on the right.

use std::collections::HashSet;

use super::layers::NodeLayers;
use super::model::DiagramGraph;
use super::strips::{DiagramStrips, EdgeRoute, StripCell, StripKind};

/// The cost of a crossing, relative to the other things that make a diagram hard to read.
const CROSSING: u64 = 40;
/// The cost of a step between another step and the lane its edge takes.
const STEP_BETWEEN: u64 = 120;
const DISTANCE: u64 = 3;
/// The cost of a loop on the left, or of a forward lane on the right.
const WRONG_SIDE: u64 = 30;
/// The cost of two adjacent strips of steps that are not in the order of the list.
const DISORDER: u64 = 12;
/// The maximum effort, in approximate comparisons.
const EFFORT_MAX: u64 = 3_000_000;
const PASSES_MAX: usize = 6;

/// The initial position of lanes.
#[derive(Clone, Copy)]
enum LanePlacement {
    /// Beside the step they lead to.
    AtTarget,
    /// Beside the first step they come from.
    AtSource,
    /// Forward lanes at the far left, loops at the far right.
    Outside,
}

/// Orders the strips from left to right: a local search that moves one strip at a time, from several starting points.
pub(super) fn order_strips(
    graph: &DiagramGraph,
    layers: &NodeLayers,
    strips: &DiagramStrips,
) -> Vec<usize> {
    let links = StripLinks::new(graph, layers, strips);
    let tries =
        [LanePlacement::AtTarget, LanePlacement::AtSource, LanePlacement::Outside].map(|lanes| {
            let mut order = initial_order(graph, strips, lanes);
            let cost = improve_order(&mut order, &links, strips);
            (cost, order)
        });
    let best = tries.into_iter().min_by_key(|(cost, _)| *cost);
    best.map(|(_, order)| order).unwrap_or_default()
}

fn improve_order(order: &mut Vec<usize>, links: &StripLinks, strips: &DiagramStrips) -> u64 {
    let mut effort = 0;
    let mut best = links.order_cost(order, strips);
    for _ in 0..PASSES_MAX {
        let before = best;
        for strip in 0..strips.all.len() {
            effort += links.cost_effort() * order.len() as u64;
            if effort > EFFORT_MAX {
                return best;
            }
            best = move_strip(order, strip, best, links, strips);
        }
        if best == before {
            break;
        }
    }
    best
}

/// The initial order: strips of steps in the order of the list, with lanes between them.
fn initial_order(graph: &DiagramGraph, strips: &DiagramStrips, lanes: LanePlacement) -> Vec<usize> {
    let mut order: Vec<usize> =
        (0..strips.all.len()).filter(|at| strips.all[*at].kind == StripKind::Steps).collect();
    for lane in 0..strips.all.len() {
        let mut users = graph.edges.iter().zip(&strips.ways);
        let Some((edge, _)) = users.find(|(_, way)| **way == EdgeRoute::Lane(lane)) else {
            continue;
        };
        let is_loop = strips.all[lane].kind == StripKind::Loop;
        let beside = |node: usize| {
            let place = order.iter().position(|strip| *strip == strips.of[node]);
            place.unwrap_or(0) + usize::from(is_loop)
        };
        let at = match lanes {
            LanePlacement::AtTarget => beside(edge.to),
            LanePlacement::AtSource => beside(edge.from),
            LanePlacement::Outside if is_loop => order.len(),
            LanePlacement::Outside => 0,
        };
        order.insert(at, lane);
    }
    order
}

/// Moves a strip to the position with the lowest cost.
fn move_strip(
    order: &mut Vec<usize>,
    strip: usize,
    best: u64,
    links: &StripLinks,
    strips: &DiagramStrips,
) -> u64 {
    let Some(from) = order.iter().position(|at| *at == strip) else { return best };
    order.remove(from);
    let (mut best, mut to) = (best, from);
    for at in (0..=order.len()).filter(|at| *at != from) {
        order.insert(at, strip);
        let cost = links.order_cost(order, strips);
        if cost < best {
            (best, to) = (cost, at);
        }
        order.remove(at);
    }
    order.insert(to, strip);
    best
}

/// The relations between strips that determine the cost of an order.
struct StripLinks {
    /// For each gap, the pairs of strips connected across it, upper strip first.
    across: Vec<Vec<(usize, usize)>>,
    /// A layer, a step's strip, and a lane that an edge of the step takes there.
    beside: Vec<(usize, usize, usize)>,
    /// The entries of `beside` where the lane begins or ends: lanes that turn to the same step don't cross.
    turns: HashSet<(usize, usize, usize)>,
    /// Lanes and the strips they lead to.
    sides: Vec<(usize, usize)>,
    /// Strips of steps that share a layer, in the order of the list.
    pairs: Vec<(usize, usize)>,
    strips: usize,
}

impl StripLinks {
    fn new(graph: &DiagramGraph, layers: &NodeLayers, strips: &DiagramStrips) -> Self {
        let mut links = StripLinks {
            across: vec![Vec::new(); layers.count],
            beside: Vec::new(),
            turns: HashSet::new(),
            sides: Vec::new(),
            pairs: Vec::new(),
            strips: strips.all.len(),
        };
        for (gap, across) in links.across.iter_mut().enumerate() {
            let through = (0..strips.all.len()).filter(|at| strips.all[*at].spans_gap(gap));
            across.extend(through.map(|at| (at, at)));
        }
        for (edge, way) in graph.edges.iter().zip(&strips.ways) {
            let (from, to) = (strips.of[edge.from], strips.of[edge.to]);
            let (upper, lower) = (layers.of[edge.from], layers.of[edge.to]);
            match way {
                EdgeRoute::Around => {}
                EdgeRoute::Near | EdgeRoute::Down if from == to => {}
                EdgeRoute::Near | EdgeRoute::Down => links.across[lower - 1].push((from, to)),
                EdgeRoute::Lane(lane) => {
                    links.beside.push((upper, from, *lane));
                    links.sides.push((*lane, to));
                    if edge.is_back {
                        links.beside.push((lower, to, *lane));
                    } else {
                        links.across[lower - 1].push((*lane, to));
                    }
                }
            }
        }
        let is_steps = |at: &usize| strips.all[*at].kind == StripKind::Steps;
        for right in (0..strips.all.len()).filter(is_steps) {
            let beside = (0..right)
                .filter(is_steps)
                .filter(|at| strips.all[*at].shares_layer(&strips.all[right]));
            links.pairs.extend(beside.map(|left| (left, right)));
        }
        let turns = |(layer, _, lane): &&(usize, usize, usize)| {
            let lane = &strips.all[*lane];
            *layer == lane.top || *layer + 1 == lane.top + lane.cells.len()
        };
        links.turns = links.beside.iter().filter(turns).copied().collect();
        links
    }

    /// The approximate number of comparisons needed to compute one cost.
    fn cost_effort(&self) -> u64 {
        let pairs: usize = self.across.iter().map(|across| across.len() * across.len()).sum();
        (pairs + self.pairs.len() + self.beside.len() * self.strips + 1) as u64
    }

    fn order_cost(&self, order: &[usize], strips: &DiagramStrips) -> u64 {
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, strip)| place[*strip] = at);
        let mut cost = 0;
        for across in &self.across {
            for (at, (upper, lower)) in across.iter().enumerate() {
                let (upper, lower) = (place[*upper], place[*lower]);
                cost += DISTANCE * upper.abs_diff(lower) as u64;
                let crosses = |other: &&(usize, usize)| {
                    let (a, b) = (place[other.0], place[other.1]);
                    a < upper && b > lower || a > upper && b < lower
                };
                cost += CROSSING * across[at + 1..].iter().filter(crosses).count() as u64;
            }
        }
        for (layer, step, lane) in &self.beside {
            let (from, to) = (place[*step].min(place[*lane]), place[*step].max(place[*lane]));
            cost += DISTANCE * (to - from) as u64;
            for strip in &order[from + 1..to] {
                cost += match strips.all[*strip].cell_in_layer(*layer) {
                    Some(StripCell::Node(_)) => STEP_BETWEEN,
                    Some(StripCell::Line) if self.turns.contains(&(*layer, *step, *strip)) => 0,
                    Some(StripCell::Line) => CROSSING,
                    None => 0,
                };
            }
        }
        let disorder = self.pairs.iter().filter(|(left, right)| place[*left] > place[*right]);
        cost += DISORDER * disorder.count() as u64;
        for (lane, target) in &self.sides {
            let is_right = place[*lane] > place[*target];
            let wants_right = strips.all[*lane].kind == StripKind::Loop;
            cost += if is_right == wants_right { 0 } else { WRONG_SIDE };
        }
        cost
    }
}
