//! Draws overlapping lines only once: overlaid dashes would look like a solid line.

/// The length for which a line that meets another is drawn along it, so that it visibly merges.
const ALONG: i32 = 10;

type LinePoint = (i32, i32);

/// Cuts each line where it starts to overlap an earlier one that ends at the same point.
pub(super) fn cut_overlaps(lines: Vec<Vec<LinePoint>>) -> Vec<Vec<LinePoint>> {
    let mut drawn: Vec<Vec<LinePoint>> = Vec::new();
    for mut line in lines {
        let before = drawn.iter().filter(|other| other.last() == line.last());
        let shared = before.map(|other| shared_end(&line, other)).max().unwrap_or(0);
        cut_end(&mut line, shared - ALONG);
        drawn.push(line);
    }
    drawn
}

/// The length for which the ends of two lines coincide.
fn shared_end(a: &[LinePoint], b: &[LinePoint]) -> i32 {
    let (mut a, mut b) = (a.iter().rev().copied(), b.iter().rev().copied());
    let (Some(mut at), Some(_)) = (a.next(), b.next()) else { return 0 };
    let mut shared = 0;
    let (mut next_a, mut next_b) = (a.next(), b.next());
    while let (Some(to_a), Some(to_b)) = (next_a, next_b) {
        if line_direction(at, to_a) != line_direction(at, to_b) {
            break;
        }
        let (far_a, far_b) = (segment_length(at, to_a), segment_length(at, to_b));
        at = if far_a <= far_b { to_a } else { to_b };
        shared += far_a.min(far_b);
        if at == to_a {
            next_a = a.next();
        }
        if at == to_b {
            next_b = b.next();
        }
    }
    shared
}

/// Shortens a line at its end.
fn cut_end(line: &mut Vec<LinePoint>, mut by: i32) {
    while by > 0
        && let [.., before, end] = line.as_mut_slice()
    {
        let here = segment_length(*before, *end);
        if here > by {
            let (dx, dy) = line_direction(*end, *before);
            *end = (end.0 + dx * by, end.1 + dy * by);
            return;
        }
        by -= here;
        line.pop();
    }
}

fn line_direction(from: LinePoint, to: LinePoint) -> LinePoint {
    ((to.0 - from.0).signum(), (to.1 - from.1).signum())
}

fn segment_length(a: LinePoint, b: LinePoint) -> i32 {
    (a.0 - b.0).abs() + (a.1 - b.1).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_meets_another_is_cut_there() {
        let first = vec![(0, 0), (0, 50), (100, 50), (100, 90)];
        let second = vec![(60, 0), (60, 50), (100, 50), (100, 90)];
        let drawn = cut_overlaps(vec![first.clone(), second]);
        assert_eq!(drawn, [first, vec![(60, 0), (60, 50), (70, 50)]]);
    }

    #[test]
    fn lines_that_end_elsewhere_stay_whole() {
        let lines = vec![vec![(0, 0), (0, 90)], vec![(0, 40), (0, 80)]];
        assert_eq!(cut_overlaps(lines.clone()), lines);
    }
}
