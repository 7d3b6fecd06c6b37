//! Computes the lines of edges, corner by corner.

use super::super::boxes::GATE_SLANT;
use super::super::model::NodeKind;
use super::super::ports::{BoxSide, PortUse, shown_label};
use super::super::strips::EdgeRoute;
use super::{
    AROUND, EdgeLabel, EdgeLine, LabelAnchor, LayerRows, LayoutPlan, NetKey, PlacedBox, SIDE_SPACE,
};

/// The length for which a line that joins another follows it.
const JOIN: i32 = 14;

pub(super) fn edge_lines(
    plan: &LayoutPlan<'_>,
    rows: &LayerRows,
    boxes: &[PlacedBox],
) -> Vec<EdgeLine> {
    let draw = LineDrawer { plan, rows, boxes };
    (0..plan.graph.edges.len()).map(|edge| draw.edge_line(edge)).collect()
}

struct LineDrawer<'a> {
    plan: &'a LayoutPlan<'a>,
    rows: &'a LayerRows,
    boxes: &'a [PlacedBox],
}

impl LineDrawer<'_> {
    fn edge_line(&self, at: usize) -> EdgeLine {
        let label = self.edge_label(at);
        let (mut points, has_arrow) = match self.plan.strips.ways[at] {
            EdgeRoute::Around => (self.self_loop_points(at), true),
            EdgeRoute::Near | EdgeRoute::Down => (self.downward_points(at), true),
            EdgeRoute::Lane(lane) if self.is_longest_in_lane(at, lane) => {
                (self.lane_points(at, lane), true)
            }
            EdgeRoute::Lane(lane) => (self.joining_points(at, lane), false),
        };
        points.dedup();
        EdgeLine { points, has_arrow, label }
    }

    fn self_loop_points(&self, at: usize) -> Vec<(i32, i32)> {
        let node = self.plan.graph.edges[at].from;
        let out = self.side_point(node, BoxSide::Right, PortUse::Out(at));
        let into = self.side_point(node, BoxSide::Right, PortUse::Again(at));
        let x = out.0.max(into.0) + AROUND;
        vec![out, (x, out.1), (x, into.1), into]
    }

    fn downward_points(&self, at: usize) -> Vec<(i32, i32)> {
        let mut points = vec![self.bottom_point(at)];
        points.extend(self.bend_points(at, 0));
        points.push(self.top_point(at));
        points
    }

    /// The complete line: out of the box, along the lane, into the other box.
    fn lane_points(&self, at: usize, lane: usize) -> Vec<(i32, i32)> {
        let mut points = self.points_to_lane(at, lane);
        let edge = &self.plan.graph.edges[at];
        let ends = self.plan.ports.ends[at];
        let x = self.plan.x[lane];
        if ends.into == BoxSide::Top {
            let last = self.plan.edge_legs(at).len().saturating_sub(1);
            points.extend(self.bend_points(at, last));
            points.push(self.top_point(at));
        } else {
            let into = self.side_point(edge.to, ends.into, PortUse::In(lane));
            points.extend([(x, into.1), into]);
        }
        points
    }

    /// The line to the lane only, where it joins the line of another edge.
    fn joining_points(&self, at: usize, lane: usize) -> Vec<(i32, i32)> {
        let mut points = self.points_to_lane(at, lane);
        let edge = &self.plan.graph.edges[at];
        let goes_up = self.plan.layers.of[edge.to] < self.plan.layers.of[edge.from];
        if let Some((x, y)) = points.last().copied() {
            points.push((x, if goes_up { y - JOIN } else { y + JOIN }));
        }
        points
    }

    fn points_to_lane(&self, at: usize, lane: usize) -> Vec<(i32, i32)> {
        let edge = &self.plan.graph.edges[at];
        let ends = self.plan.ports.ends[at];
        let x = self.plan.x[lane];
        if ends.out == BoxSide::Bottom {
            let out = self.bottom_point(at);
            let row = self.rows.gaps[self.plan.layers.of[edge.from]].row_height(NetKey::Lane(lane));
            return vec![out, (out.0, row), (x, row)];
        }
        let out = self.side_point(edge.from, ends.out, PortUse::Out(at));
        vec![out, (x, out.1)]
    }

    /// Returns true if the edge is the longest one in a lane: the lane is drawn as part of it.
    fn is_longest_in_lane(&self, at: usize, lane: usize) -> bool {
        let length = |at: usize| {
            let edge = &self.plan.graph.edges[at];
            self.plan.layers.of[edge.from].abs_diff(self.plan.layers.of[edge.to])
        };
        let users = (0..self.plan.graph.edges.len())
            .filter(|other| self.plan.strips.ways[*other] == EdgeRoute::Lane(lane));
        users.max_by_key(|other| (length(*other), std::cmp::Reverse(*other))) == Some(at)
    }

    /// The corners where an edge runs horizontally through a gap.
    fn bend_points(&self, at: usize, leg: usize) -> Vec<(i32, i32)> {
        let Some(leg) = self.plan.edge_legs(at).into_iter().nth(leg) else { return Vec::new() };
        let mut ends = leg.up.into_iter().chain(leg.down);
        let (Some(from), Some(to)) = (ends.next(), ends.next()) else { return Vec::new() };
        if from == to {
            return Vec::new();
        }
        let row = self.rows.gaps[leg.gap].row_height(leg.key);
        vec![(from, row), (to, row)]
    }

    fn bottom_point(&self, at: usize) -> (i32, i32) {
        let node = self.plan.graph.edges[at].from;
        let placed = &self.boxes[node];
        let x = self.plan.x_of(node) + self.plan.ports.bottom_offset(node, at);
        (x, placed.y + placed.look.height)
    }

    fn top_point(&self, at: usize) -> (i32, i32) {
        let node = self.plan.graph.edges[at].to;
        let placed = &self.boxes[node];
        (self.plan.x_of(node) + self.plan.tops[at], placed.y - placed.look.cards)
    }

    fn side_point(&self, node: usize, side: BoxSide, used: PortUse) -> (i32, i32) {
        let placed = &self.boxes[node];
        let uses = match side {
            BoxSide::Left => &self.plan.ports.left[node],
            _ => &self.plan.ports.right[node],
        };
        let at = uses.iter().position(|one| *one == used).unwrap_or(0) as i32;
        let from_middle = at * SIDE_SPACE - (uses.len() as i32 - 1) * SIDE_SPACE / 2;
        let slant = match self.plan.graph.nodes[node].kind {
            // The sides of a gate slant, and its points are in the middle.
            NodeKind::Gate => GATE_SLANT * from_middle.abs() * 2 / placed.look.height.max(1),
            _ => 0,
        };
        let x = match side {
            BoxSide::Left => placed.x + slant,
            _ => placed.x + placed.look.width - slant,
        };
        (x, placed.y + placed.look.height / 2 + from_middle)
    }

    fn edge_label(&self, at: usize) -> Option<EdgeLabel> {
        let edge = &self.plan.graph.edges[at];
        if edge.label.is_empty() {
            return None;
        }
        let text = shown_label(&edge.label);
        let ends = self.plan.ports.ends[at];
        let gap = &self.rows.gaps[self.plan.layers.of[edge.from]];
        let place =
            |x: i32, y: i32, anchor: LabelAnchor| EdgeLabel { x, y, anchor, text: text.clone() };
        Some(match (self.plan.strips.ways[at], ends.out) {
            (EdgeRoute::Around, _) => {
                let points = self.self_loop_points(at);
                place(points[1].0 + 6, (points[1].1 + points[2].1) / 2 + 4, LabelAnchor::Start)
            }
            (_, BoxSide::Left) => {
                let (x, y) = self.side_point(edge.from, BoxSide::Left, PortUse::Out(at));
                place(x - 6, y - 5, LabelAnchor::End)
            }
            (_, BoxSide::Right) => {
                let (x, y) = self.side_point(edge.from, BoxSide::Right, PortUse::Out(at));
                place(x + 6, y - 5, LabelAnchor::Start)
            }
            (EdgeRoute::Down, _) => {
                place(self.bottom_point(at).0 + 7, gap.bottom + 14, LabelAnchor::Start)
            }
            _ if ends.is_labelled_below => {
                place(self.top_point(at).0 + 7, gap.bottom + 14, LabelAnchor::Start)
            }
            _ => {
                let x = self.bottom_point(at).0;
                let is_left = self.plan.ports.bottom_offset(edge.from, at) < 0;
                let y = gap.top - 6;
                if is_left {
                    place(x - 7, y, LabelAnchor::End)
                } else {
                    place(x + 7, y, LabelAnchor::Start)
                }
            }
        })
    }
}
