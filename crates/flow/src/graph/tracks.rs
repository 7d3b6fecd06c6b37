//! Assigns horizontal lines to rows in the gap between two layers.

/// Lines that belong together: from ends above and below they meet in one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LineNet {
    /// The x positions of lines from above.
    pub up: Vec<i32>,
    /// The x positions of lines from below.
    pub down: Vec<i32>,
}

/// The distance below which two lines look like one.
const NEAR: i32 = 7;
/// The cost of two overlapping lines, in crossings.
const COVERED: usize = 50;

impl LineNet {
    /// Adds ends, each once.
    pub(super) fn add_ends(&mut self, up: &[i32], down: &[i32]) {
        for (ends, new) in [(&mut self.up, up), (&mut self.down, down)] {
            ends.extend(new);
            ends.sort_unstable();
            ends.dedup();
        }
    }

    fn all_ends(&self) -> impl Iterator<Item = i32> {
        self.up.iter().chain(&self.down).copied()
    }

    fn left_end(&self) -> i32 {
        self.all_ends().min().unwrap_or(0)
    }

    fn right_end(&self) -> i32 {
        self.all_ends().max().unwrap_or(0)
    }

    /// Returns true if the net is a straight line, which needs no row.
    pub(super) fn is_straight(&self) -> bool {
        self.left_end() == self.right_end()
    }

    fn overlaps(&self, other: &LineNet) -> bool {
        self.left_end() - NEAR <= other.right_end() && other.left_end() - NEAR <= self.right_end()
    }

    /// The number of ends that lie strictly within this net.
    fn count_within(&self, ends: &[i32]) -> usize {
        ends.iter().filter(|end| self.left_end() < **end && **end < self.right_end()).count()
    }

    /// The cost of placing this net in a row above the other.
    fn cost_above(&self, other: &LineNet) -> usize {
        let covered = other
            .up
            .iter()
            .filter(|up| self.down.iter().any(|down| (*up - down).abs() < NEAR))
            .count();
        self.count_within(&other.up) + other.count_within(&self.down) + COVERED * covered
    }
}

/// Returns the row of each net, counted from the top, and the number of rows.
pub(super) fn assign_rows(nets: &[LineNet]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..nets.len()).filter(|at| !nets[*at].is_straight()).collect();
    order.sort_by_key(|at| (nets[*at].left_end(), nets[*at].right_end(), *at));
    // One pass per net gives a good order, and it terminates even if the costs are cyclic.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn net(up: &[i32], down: &[i32]) -> LineNet {
        LineNet { up: up.to_vec(), down: down.to_vec() }
    }

    #[test]
    fn straight_lines_need_no_row() {
        assert_eq!(assign_rows(&[net(&[5], &[5])]), (vec![0], 0));
    }

    #[test]
    fn lines_side_by_side_share_a_row() {
        assert_eq!(assign_rows(&[net(&[0], &[50]), net(&[100], &[150])]), (vec![0, 0], 1));
    }

    #[test]
    fn a_line_from_above_turns_before_one_to_below_at_the_same_place() {
        // The first ends below the start of the second: in the other order they would overlap.
        assert_eq!(assign_rows(&[net(&[0], &[100]), net(&[100], &[200])]), (vec![1, 0], 2));
    }
}
