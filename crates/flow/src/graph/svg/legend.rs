//! Explains the shapes and colours that occur in the diagram.

use std::fmt::Write as _;

use super::super::model::{DiagramGraph, EdgeKind, NodeKind, SubagentCount};
use super::super::text::text_width;
use super::{SvgText, arrow_path, draw_shape, kind_class, write_text};

const SIZE: i32 = 11;
const ROW: i32 = 24;
/// The width of a sample with the space after it.
const SAMPLE: i32 = 38;
const SPACE: i32 = 22;

pub(super) struct SvgLegend {
    pub drawn: String,
    pub height: i32,
}

/// An entry of the legend.
#[derive(Clone, Copy)]
enum LegendEntry {
    Node(NodeKind),
    Sent,
    Line(&'static str),
}

/// Renders the legend in rows at most `width_max` wide. It is empty if no symbol needs an explanation.
pub(super) fn draw_legend(graph: &DiagramGraph, width_max: i32) -> SvgLegend {
    let entries = legend_entries(graph);
    let mut legend = SvgLegend { drawn: String::new(), height: 0 };
    let (mut x, mut y) = (0, 0);
    for (entry, words) in &entries {
        let wide = SAMPLE + text_width(words, SIZE);
        if x > 0 && x + wide > width_max {
            (x, y) = (0, y + ROW);
        }
        draw_sample(&mut legend.drawn, *entry, x, y);
        let at = SvgText { class: "note", x: x + SAMPLE, y: y + 14, size: SIZE, text: words };
        write_text(&mut legend.drawn, at);
        x += wide + SPACE;
        legend.height = y + ROW;
    }
    legend
}

fn legend_entries(graph: &DiagramGraph) -> Vec<(LegendEntry, &'static str)> {
    let has = |kind: NodeKind| graph.nodes.iter().any(|node| node.kind == kind);
    let mut entries = Vec::new();
    for (kind, words) in [
        (NodeKind::Choice, "the agent says which way"),
        (NodeKind::Decision, "the engine computes which way"),
        (NodeKind::Confidence, "again until sure enough"),
        (NodeKind::Gate, "gate: on only if the review has passed"),
    ] {
        entries.extend(has(kind).then_some((LegendEntry::Node(kind), words)));
    }
    let is_sent = graph.nodes.iter().any(|node| node.hands != SubagentCount::None);
    entries.extend(is_sent.then_some((LegendEntry::Sent, "sub-agents do the work")));
    let is_error = graph.edges.iter().any(|edge| edge.kind == EdgeKind::Error);
    let is_loop = graph.edges.iter().any(|edge| edge.is_back && edge.kind == EdgeKind::Outcome);
    entries.extend(is_loop.then_some((LegendEntry::Line("loop"), "loop (≤n: at most n times)")));
    entries
        .extend(is_error.then_some((LegendEntry::Line("error"), "if it could not be carried out")));
    entries
}

fn draw_sample(out: &mut String, entry: LegendEntry, x: i32, y: i32) {
    match entry {
        LegendEntry::Node(kind) => {
            let _ = writeln!(out, "<g class=\"{}\">", kind_class(kind));
            match kind {
                NodeKind::Choice | NodeKind::Decision => {
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
                _ => draw_shape(out, kind, "key", (x, y + 2), (32, 16)),
            }
        }
        LegendEntry::Sent => {
            out.push_str("<g class=\"sent\">\n");
            draw_shape(out, NodeKind::Step, "card", (x + 3, y), (26, 14));
            draw_shape(out, NodeKind::Step, "key", (x, y + 4), (32, 14));
        }
        LegendEntry::Line(class) => {
            out.push_str("<g>\n");
            let (y, tip) = (y + 10, x + 30);
            let _ = writeln!(out, "<path class=\"line {class}\" d=\"M{x} {y}L{} {y}\"/>", tip - 7);
            let head = arrow_path((x, y), (tip, y));
            let _ = writeln!(out, "<path class=\"head {class}\" d=\"{head}\"/>");
        }
    }
    out.push_str("</g>\n");
}
