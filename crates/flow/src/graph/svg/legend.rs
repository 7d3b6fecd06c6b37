//! Explains the shapes and colours that occur in the diagram.

use std::fmt::Write as _;

use super::super::model::{EdgeKind, Graph, Hands, Kind};
use super::super::text::width;
use super::{Text, arrow, class, shape, text};

const SIZE: i32 = 11;
const ROW: i32 = 24;
/// The width of a sample with the space after it.
const SAMPLE: i32 = 38;
const SPACE: i32 = 22;

pub(super) struct Legend {
    pub drawn: String,
    pub height: i32,
}

/// An entry of the legend.
#[derive(Clone, Copy)]
enum Entry {
    Node(Kind),
    Sent,
    Line(&'static str),
}

/// Renders the legend in rows at most `width_max` wide. It is empty if no symbol needs an explanation.
pub(super) fn legend(graph: &Graph, width_max: i32) -> Legend {
    let entries = entries(graph);
    let mut legend = Legend { drawn: String::new(), height: 0 };
    let (mut x, mut y) = (0, 0);
    for (entry, words) in &entries {
        let wide = SAMPLE + width(words, SIZE);
        if x > 0 && x + wide > width_max {
            (x, y) = (0, y + ROW);
        }
        sample(&mut legend.drawn, *entry, x, y);
        let at = Text { class: "note", x: x + SAMPLE, y: y + 14, size: SIZE, text: words };
        text(&mut legend.drawn, at);
        x += wide + SPACE;
        legend.height = y + ROW;
    }
    legend
}

fn entries(graph: &Graph) -> Vec<(Entry, &'static str)> {
    let has = |kind: Kind| graph.nodes.iter().any(|node| node.kind == kind);
    let mut entries = Vec::new();
    for (kind, words) in [
        (Kind::Choice, "the agent says which way"),
        (Kind::Decision, "the engine computes which way"),
        (Kind::Confidence, "again until sure enough"),
        (Kind::Gate, "gate: on only if the review has passed"),
    ] {
        entries.extend(has(kind).then_some((Entry::Node(kind), words)));
    }
    let is_sent = graph.nodes.iter().any(|node| node.hands != Hands::None);
    entries.extend(is_sent.then_some((Entry::Sent, "sub-agents do the work")));
    let is_error = graph.edges.iter().any(|edge| edge.kind == EdgeKind::Error);
    let is_loop = graph.edges.iter().any(|edge| edge.is_back && edge.kind == EdgeKind::Outcome);
    entries.extend(is_loop.then_some((Entry::Line("loop"), "loop (≤n: at most n times)")));
    entries.extend(is_error.then_some((Entry::Line("error"), "if it could not be carried out")));
    entries
}

fn sample(out: &mut String, entry: Entry, x: i32, y: i32) {
    match entry {
        Entry::Node(kind) => {
            let _ = writeln!(out, "<g class=\"{}\">", class(kind));
            match kind {
                Kind::Choice | Kind::Decision => {
                    let (x, y) = (x + 16, y + 10);
                    let _ = writeln!(
                        out,
                        "<path class=\"badge\" d=\"M{} {y}L{x} {}L{} {y}L{x} {}Z\"/>",
                        x - 9,
                        y - 9,
                        x + 9,
                        y + 9
                    );
                }
                _ => shape(out, kind, "key", (x, y + 2), (32, 16)),
            }
        }
        Entry::Sent => {
            out.push_str("<g class=\"sent\">\n");
            shape(out, Kind::Step, "card", (x + 3, y), (26, 14));
            shape(out, Kind::Step, "key", (x, y + 4), (32, 14));
        }
        Entry::Line(class) => {
            out.push_str("<g>\n");
            let (y, tip) = (y + 10, x + 30);
            let _ = writeln!(out, "<path class=\"line {class}\" d=\"M{x} {y}L{} {y}\"/>", tip - 7);
            let head = arrow((x, y), (tip, y));
            let _ = writeln!(out, "<path class=\"head {class}\" d=\"{head}\"/>");
        }
    }
    out.push_str("</g>\n");
}
