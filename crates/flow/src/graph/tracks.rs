//! The rows of horizontal lines in the gap between two layers.

/// Lines that belong together: from ends above and below they meet in one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Net {
    /// Where lines come from above.
    pub up: Vec<i32>,
    /// Where lines come from below.
    pub down: Vec<i32>,
}

/// How near two lines may be before they look like one.
const NEAR: i32 = 7;
/// What it costs if two lines lie on each other, counted in crossings.
const COVERED: usize = 50;

impl Net {
    fn ends(&self) -> impl Iterator<Item = i32> {
        self.up.iter().chain(&self.down).copied()
    }

    fn left(&self) -> i32 {
        self.ends().min().unwrap_or(0)
    }

    fn right(&self) -> i32 {
        self.ends().max().unwrap_or(0)
    }

    /// Whether it is a straight line, which needs no row.
    pub(super) fn is_straight(&self) -> bool {
        self.left() == self.right()
    }

    fn overlaps(&self, other: &Net) -> bool {
        self.left() - NEAR <= other.right() && other.left() - NEAR <= self.right()
    }

    /// What it costs if this has a row above the other's.
    fn cost_above(&self, other: &Net) -> usize {
        let within = |net: &Net, ends: &[i32]| {
            ends.iter().filter(|end| net.left() < **end && **end < net.right()).count()
        };
        let covered = other
            .up
            .iter()
            .filter(|up| self.down.iter().any(|down| (*up - down).abs() < NEAR))
            .count();
        within(self, &other.up) + within(other, &self.down) + COVERED * covered
    }
}

/// The row of each net, from the top, and how many there are.
pub(super) fn rows(nets: &[Net]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..nets.len()).filter(|at| !nets[*at].is_straight()).collect();
    order.sort_by_key(|at| (nets[*at].left(), nets[*at].right(), *at));
    // As often as there are nets is enough for a good order, and bounded if costs go round in a circle.
    for _ in 0..order.len() {
        let mut is_changed = false;
        for at in 1..order.len() {
            let (above, below) = (&nets[order[at - 1]], &nets[order[at]]);
            if above.cost_above(below) > below.cost_above(above) {
                order.swap(at - 1, at);
                is_changed = true;
            }
        }
        if !is_changed {
            break;
        }
    }
    let mut rows = vec![0; nets.len()];
    let mut count = 0;
    for (at, net) in order.iter().enumerate() {
        let above = order[..at].iter().filter(|other| nets[**other].overlaps(&nets[*net]));
        rows[*net] = above.map(|other| rows[*other] + 1).max().unwrap_or(0);
        count = count.max(rows[*net] + 1);
    }
    (rows, count)
}
