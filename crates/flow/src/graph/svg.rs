//! Renders a workflow as an SVG.

use std::fmt::Write as _;

use repertoire_text::html::{EscapedQuotes, escape_markup};

use super::boxes::{GATE_SLANT, NOTE_LINE, NOTE_SIZE, TEXT_INDENT, TITLE_LINE, TITLE_SIZE};
use super::layout::{DiagramLayout, EdgeLine, LabelAnchor, PlacedBox};
use super::model::{DiagramEdge, DiagramGraph, DiagramNode, EdgeKind, NodeKind, SubagentCount};
use super::ports::LABEL_SIZE;
use super::text::{text_width, wrap_text};

mod legend;
mod strokes;
mod style;

const MARGIN: i32 = 20;
const NAME_SIZE: i32 = 18;
const DESCRIPTION_SIZE: i32 = 12;
const DESCRIPTION_LINES_MAX: usize = 3;
const PHASE_SIZE: i32 = 12;
const PHASE_LINE: i32 = 15;
const PHASE_WIDTH_MAX: i32 = 120;
/// The minimum width of the image, so that its name and legend fit.
const WIDTH_MIN: i32 = 440;
const CORNER: i32 = 8;
const ARROW: i32 = 9;

/// Renders the graph, with a frame around the step whose number is `lit`.
pub(super) fn write_svg(graph: &DiagramGraph, lit: Option<usize>) -> String {
    let layout = DiagramLayout::new(graph);
    let frame = SvgFrame::new(graph, &layout);
    let legend = legend::draw_legend(graph, frame.width - 2 * MARGIN);
    let height = frame.top + layout.height + MARGIN + legend.height + MARGIN / 2;
    let mut out = String::new();
    write_head(&mut out, graph, &frame, height);
    let _ = writeln!(out, "<g transform=\"translate(0,{})\">", frame.top);
    draw_stripes(&mut out, &layout, &frame);
    out.push_str("</g>\n");
    let _ = writeln!(out, "<g transform=\"translate({},{})\">", frame.left, frame.top);
    draw_lines(&mut out, graph, &layout);
    for (node, placed) in graph.nodes.iter().zip(&layout.boxes) {
        draw_node(&mut out, node, placed);
        if lit.is_some() && node.number == lit {
            draw_frame(&mut out, placed);
        }
    }
    draw_labels(&mut out, graph, &layout);
    out.push_str("</g>\n");
    let y = frame.top + layout.height + MARGIN;
    let _ = writeln!(out, "<g transform=\"translate({MARGIN},{y})\">\n{}</g>", legend.drawn);
    out.push_str("</svg>\n");
    out
}

/// The position of the graph in the image.
struct SvgFrame {
    left: i32,
    top: i32,
    width: i32,
    description: Vec<String>,
    /// The names of the phases, wrapped.
    phases: Vec<Vec<String>>,
}

impl SvgFrame {
    fn new(graph: &DiagramGraph, layout: &DiagramLayout) -> Self {
        let lines = |title: &String| wrap_text(title, PHASE_SIZE, PHASE_WIDTH_MAX, 3);
        let phases: Vec<Vec<String>> = graph.phases.iter().map(lines).collect();
        let is_shown = |phase: usize| layout.stripes.iter().any(|one| one.phase == Some(phase));
        let shown = phases.iter().enumerate().filter(|(at, _)| is_shown(*at));
        let widest =
            shown.flat_map(|(_, lines)| lines).map(|line| text_width(line, PHASE_SIZE)).max();
        // The names of the phases have a column of their own.
        let gutter = widest.map_or(0, |widest| widest + 24);
        let graph_width = gutter + layout.width + 2 * MARGIN + MARGIN;
        let name = text_width(&graph.name, NAME_SIZE).min(3 * WIDTH_MIN) + 2 * MARGIN;
        let full = graph_width.max(WIDTH_MIN).max(name);
        let room = full - 2 * MARGIN;
        let description =
            wrap_text(&graph.description, DESCRIPTION_SIZE, room, DESCRIPTION_LINES_MAX);
        SvgFrame {
            left: MARGIN + gutter + (full - graph_width) / 2 + MARGIN / 2,
            top: 46 + description.len() as i32 * 16 + 14,
            width: full,
            description,
            phases,
        }
    }
}

fn write_head(out: &mut String, graph: &DiagramGraph, frame: &SvgFrame, height: i32) {
    let width = frame.width;
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"name about\" font-family=\"sans-serif\">"
    );
    let _ = writeln!(
        out,
        "<title id=\"name\">{}</title>",
        escape_markup(&graph.name, EscapedQuotes::Both)
    );
    let _ = writeln!(
        out,
        "<desc id=\"about\">{}</desc>",
        escape_markup(&describe_graph(graph), EscapedQuotes::Both)
    );
    let _ = writeln!(out, "<style>\n{}</style>", style::STYLE);
    let _ = writeln!(out, "<rect class=\"page\" width=\"{width}\" height=\"{height}\"/>");
    let name = wrap_text(&graph.name, NAME_SIZE, width - 2 * MARGIN, 1).concat();
    write_text(out, SvgText { class: "name", x: MARGIN, y: 34, size: NAME_SIZE, text: &name });
    for (at, line) in frame.description.iter().enumerate() {
        let y = 56 + at as i32 * 16;
        write_text(
            out,
            SvgText { class: "note", x: MARGIN, y, size: DESCRIPTION_SIZE, text: line },
        );
    }
}

/// A description of the diagram for screen readers: every step and its edges.
fn describe_graph(graph: &DiagramGraph) -> String {
    let mut about = graph.description.clone();
    for (at, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.number.is_some()) {
        let to = |edge: &DiagramEdge| {
            if edge.label.is_empty() {
                node_name(graph, edge.to)
            } else {
                format!("{} on {}", node_name(graph, edge.to), edge.label)
            }
        };
        let ways: Vec<String> = graph.edges.iter().filter(|edge| edge.from == at).map(to).collect();
        let number = node.number.unwrap_or_default();
        let _ = write!(about, " {number}. {}: to {}.", node.title, ways.join(", to "));
    }
    about.trim().to_owned()
}

fn node_name(graph: &DiagramGraph, at: usize) -> String {
    let node = &graph.nodes[at];
    node.number.map_or_else(|| node.title.clone(), |number| format!("step {number}"))
}

struct SvgText<'a> {
    class: &'a str,
    x: i32,
    y: i32,
    size: i32,
    text: &'a str,
}

fn write_text(out: &mut String, shown: SvgText<'_>) {
    let SvgText { class, x, y, size, text } = shown;
    let text = escape_markup(text, EscapedQuotes::Both);
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\">{text}</text>"
    );
}

fn draw_stripes(out: &mut String, layout: &DiagramLayout, frame: &SvgFrame) {
    for stripe in &layout.stripes {
        let Some(lines) = stripe.phase.and_then(|phase| frame.phases.get(phase)) else { continue };
        let (x, width) = (MARGIN / 2, frame.width - MARGIN);
        let (y, height) = (stripe.top, stripe.bottom - stripe.top);
        let _ = writeln!(
            out,
            "<rect class=\"band\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"10\"/>"
        );
        for (at, line) in lines.iter().enumerate() {
            let y = y + 24 + at as i32 * PHASE_LINE;
            write_text(out, SvgText { class: "phase", x: MARGIN, y, size: PHASE_SIZE, text: line });
        }
    }
}

fn edge_class(edge: &DiagramEdge) -> &'static str {
    match (edge.kind, edge.is_back) {
        (EdgeKind::Error, _) => "error",
        (EdgeKind::Outcome, true) => "loop",
        (EdgeKind::Outcome, false) => "way",
    }
}

/// Draws the lines of edges. Back edges are drawn over the others, because they are fewer.
fn draw_lines(out: &mut String, graph: &DiagramGraph, layout: &DiagramLayout) {
    for class in ["way", "loop", "error"] {
        let edges = graph.edges.iter().zip(&layout.lines);
        let all: Vec<&EdgeLine> =
            edges.filter(|(edge, _)| edge_class(edge) == class).map(|(_, line)| line).collect();
        let points = all.iter().map(|line| {
            if line.has_arrow { shorten_for_arrow(&line.points) } else { line.points.clone() }
        });
        for points in strokes::cut_overlaps(points.collect()) {
            let _ = writeln!(out, "<path class=\"line {class}\" d=\"{}\"/>", line_path(&points));
        }
        let mut tips = Vec::new();
        for line in all.iter().filter(|line| line.has_arrow) {
            let [.., before, tip] = line.points.as_slice() else { continue };
            if !tips.contains(tip) {
                tips.push(*tip);
                let head = arrow_path(*before, *tip);
                let _ = writeln!(out, "<path class=\"head {class}\" d=\"{head}\"/>");
            }
        }
    }
}

/// Shortens a line so that it ends where its arrowhead begins.
fn shorten_for_arrow(points: &[(i32, i32)]) -> Vec<(i32, i32)> {
    let mut points = points.to_vec();
    if let [.., before, tip] = points.as_mut_slice() {
        let (dx, dy) = ((tip.0 - before.0).signum(), (tip.1 - before.1).signum());
        *tip = (tip.0 - dx * (ARROW - 2), tip.1 - dy * (ARROW - 2));
    }
    points
}

fn arrow_path(before: (i32, i32), (x, y): (i32, i32)) -> String {
    let (dx, dy) = ((x - before.0).signum(), (y - before.1).signum());
    let base = (x - dx * ARROW, y - dy * ARROW);
    let (a, b) = ((base.0 + dy * 4, base.1 + dx * 4), (base.0 - dy * 4, base.1 - dx * 4));
    format!("M{x} {y}L{} {}L{} {}Z", a.0, a.1, b.0, b.1)
}

/// The path data of a line through points, with rounded corners.
fn line_path(points: &[(i32, i32)]) -> String {
    let Some((first, rest)) = points.split_first() else { return String::new() };
    let mut d = format!("M{} {}", first.0, first.1);
    let mut before = *first;
    for (at, &corner) in rest.iter().enumerate() {
        let Some(&after) = rest.get(at + 1) else {
            let _ = write!(d, "L{} {}", corner.0, corner.1);
            break;
        };
        let radius = CORNER.min(distance(before, corner) / 2).min(distance(corner, after) / 2);
        let toward = |to: (i32, i32)| {
            let step = |from: i32, to: i32| from + (to - from).signum() * radius;
            (step(corner.0, to.0), step(corner.1, to.1))
        };
        let (into, out_of) = (toward(before), toward(after));
        let _ =
            write!(d, "L{} {}Q{} {} {} {}", into.0, into.1, corner.0, corner.1, out_of.0, out_of.1);
        before = corner;
    }
    d
}

fn distance(a: (i32, i32), b: (i32, i32)) -> i32 {
    (a.0 - b.0).abs() + (a.1 - b.1).abs()
}

fn draw_labels(out: &mut String, graph: &DiagramGraph, layout: &DiagramLayout) {
    for (edge, line) in graph.edges.iter().zip(&layout.lines) {
        let Some(label) = &line.label else { continue };
        let class = format!(
            "label {}{}",
            edge_class(edge),
            match label.anchor {
                LabelAnchor::Start => "",
                LabelAnchor::End => " before",
            }
        );
        let (x, y) = (label.x, label.y);
        write_text(out, SvgText { class: &class, x, y, size: LABEL_SIZE, text: &label.text });
    }
}

/// The CSS class of a kind.
fn kind_class(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Start | NodeKind::End => "terminal",
        NodeKind::Step => "step",
        NodeKind::Choice => "choice",
        NodeKind::Decision => "decision",
        NodeKind::Confidence => "confidence",
        NodeKind::Gate => "gate",
    }
}

/// Draws a frame around the current step of a run. Its colour is visible on light and dark pages.
fn draw_frame(out: &mut String, placed: &PlacedBox) {
    const GAP: i32 = 5;
    let (x, y) = (placed.x - GAP, placed.y - GAP);
    let (width, height) = (placed.look.width + 2 * GAP, placed.look.height + 2 * GAP);
    let _ = writeln!(
        out,
        "<rect class=\"lit\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{}\" \
         fill=\"none\" stroke=\"#f97316\" stroke-width=\"4\"><title>The run is here</title></rect>",
        CORNER + GAP
    );
}

fn draw_node(out: &mut String, node: &DiagramNode, placed: &PlacedBox) {
    let (x, y) = (placed.x, placed.y);
    let look = &placed.look;
    let hands = if node.hands == SubagentCount::None { "" } else { " sent" };
    let _ = writeln!(out, "<g class=\"node {}{hands}\">", kind_class(node.kind));
    let full = [std::slice::from_ref(&node.title), &node.notes].concat().join(" · ");
    let _ = writeln!(out, "<title>{}</title>", escape_markup(&full, EscapedQuotes::Both));
    let size = (look.width, look.height);
    if look.cards > 5 {
        draw_shape(out, node.kind, "card", (x + 12, y - 10), (size.0 - 24, size.1));
    }
    if look.cards > 0 {
        draw_shape(out, node.kind, "card", (x + 6, y - 5), (size.0 - 12, size.1));
    }
    draw_shape(out, node.kind, "shape", (x, y), size);
    let Some(number) = node.number else {
        let middle = x + look.width / 2;
        write_text(
            out,
            SvgText { class: "mid", x: middle, y: y + 18, size: TITLE_SIZE, text: &node.title },
        );
        out.push_str("</g>\n");
        return;
    };
    let slant = if node.kind == NodeKind::Gate { GATE_SLANT } else { 0 };
    draw_badge(out, node.kind, (x + slant + 22, y + look.height / 2), number);
    let x = x + slant + TEXT_INDENT;
    let mut base = y + (look.height - look.text_height()) / 2;
    for line in &look.title {
        write_text(out, SvgText { class: "title", x, y: base + 13, size: TITLE_SIZE, text: line });
        base += TITLE_LINE;
    }
    for line in &look.notes {
        write_text(out, SvgText { class: "note", x, y: base + 11, size: NOTE_SIZE, text: line });
        base += NOTE_LINE;
    }
    out.push_str("</g>\n");
}

fn draw_shape(
    out: &mut String,
    kind: NodeKind,
    class: &str,
    (x, y): (i32, i32),
    (w, h): (i32, i32),
) {
    if kind == NodeKind::Gate {
        let (right, bottom, middle, slant) = (x + w, y + h, y + h / 2, GATE_SLANT);
        let _ = writeln!(
            out,
            "<path class=\"{class}\" d=\"M{x} {middle}L{} {y}L{} {y}L{right} {middle}L{} {bottom}L{} {bottom}Z\"/>",
            x + slant,
            right - slant,
            right - slant,
            x + slant,
        );
        return;
    }
    let round = match kind {
        NodeKind::Start | NodeKind::End => h / 2,
        NodeKind::Confidence => (h / 2).min(22),
        _ => 7,
    };
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"{round}\"/>"
    );
}

/// Draws the number of a step. The shape of the badge shows how the step ends.
fn draw_badge(out: &mut String, kind: NodeKind, (x, y): (i32, i32), number: usize) {
    match kind {
        NodeKind::Choice | NodeKind::Decision => {
            let _ = writeln!(
                out,
                "<path class=\"badge\" d=\"M{} {y}L{x} {}L{} {y}L{x} {}Z\"/>",
                x - 16,
                y - 16,
                x + 16,
                y + 16
            );
        }
        _ => {
            let _ = writeln!(out, "<circle class=\"badge\" cx=\"{x}\" cy=\"{y}\" r=\"12\"/>");
        }
    }
    let number = number.to_string();
    write_text(out, SvgText { class: "mid number", x, y: y + 4, size: 11, text: &number });
}
