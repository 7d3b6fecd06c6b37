//! Renders a workflow as an SVG.

use std::fmt::Write as _;

use super::boxes::{GATE_SLANT, NOTE_LINE, NOTE_SIZE, TEXT_INDENT, TITLE_LINE, TITLE_SIZE};
use super::layout::{Anchor, Layout, Line, Placed};
use super::model::{Edge, EdgeKind, Graph, Hands, Kind, Node};
use super::ports::LABEL_SIZE;
use super::text::{escape, width, wrap};

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
pub(super) fn write(graph: &Graph, lit: Option<usize>) -> String {
    let layout = Layout::new(graph);
    let frame = Frame::new(graph, &layout);
    let legend = legend::legend(graph, frame.width - 2 * MARGIN);
    let height = frame.top + layout.height + MARGIN + legend.height + MARGIN / 2;
    let mut out = String::new();
    head(&mut out, graph, &frame, height);
    let _ = writeln!(out, "<g transform=\"translate(0,{})\">", frame.top);
    stripes(&mut out, &layout, &frame);
    out.push_str("</g>\n");
    let _ = writeln!(out, "<g transform=\"translate({},{})\">", frame.left, frame.top);
    lines(&mut out, graph, &layout);
    for (node, placed) in graph.nodes.iter().zip(&layout.boxes) {
        draw_node(&mut out, node, placed);
        if lit.is_some() && node.number == lit {
            frame_around(&mut out, placed);
        }
    }
    labels(&mut out, graph, &layout);
    out.push_str("</g>\n");
    let y = frame.top + layout.height + MARGIN;
    let _ = writeln!(out, "<g transform=\"translate({MARGIN},{y})\">\n{}</g>", legend.drawn);
    out.push_str("</svg>\n");
    out
}

/// The position of the graph in the image.
struct Frame {
    left: i32,
    top: i32,
    width: i32,
    description: Vec<String>,
    /// The names of the phases, wrapped.
    phases: Vec<Vec<String>>,
}

impl Frame {
    fn new(graph: &Graph, layout: &Layout) -> Self {
        let lines = |title: &String| wrap(title, PHASE_SIZE, PHASE_WIDTH_MAX, 3);
        let phases: Vec<Vec<String>> = graph.phases.iter().map(lines).collect();
        let is_shown = |phase: usize| layout.stripes.iter().any(|one| one.phase == Some(phase));
        let shown = phases.iter().enumerate().filter(|(at, _)| is_shown(*at));
        let widest = shown.flat_map(|(_, lines)| lines).map(|line| width(line, PHASE_SIZE)).max();
        // The names of the phases have a column of their own.
        let gutter = widest.map_or(0, |widest| widest + 24);
        let graph_width = gutter + layout.width + 2 * MARGIN + MARGIN;
        let name = width(&graph.name, NAME_SIZE).min(3 * WIDTH_MIN) + 2 * MARGIN;
        let full = graph_width.max(WIDTH_MIN).max(name);
        let room = full - 2 * MARGIN;
        let description = wrap(&graph.description, DESCRIPTION_SIZE, room, DESCRIPTION_LINES_MAX);
        Frame {
            left: MARGIN + gutter + (full - graph_width) / 2 + MARGIN / 2,
            top: 46 + description.len() as i32 * 16 + 14,
            width: full,
            description,
            phases,
        }
    }
}

fn head(out: &mut String, graph: &Graph, frame: &Frame, height: i32) {
    let width = frame.width;
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"name about\" font-family=\"sans-serif\">"
    );
    let _ = writeln!(out, "<title id=\"name\">{}</title>", escape(&graph.name));
    let _ = writeln!(out, "<desc id=\"about\">{}</desc>", escape(&about(graph)));
    let _ = writeln!(out, "<style>\n{}</style>", style::STYLE);
    let _ = writeln!(out, "<rect class=\"page\" width=\"{width}\" height=\"{height}\"/>");
    let name = wrap(&graph.name, NAME_SIZE, width - 2 * MARGIN, 1).concat();
    text(out, Text { class: "name", x: MARGIN, y: 34, size: NAME_SIZE, text: &name });
    for (at, line) in frame.description.iter().enumerate() {
        let y = 56 + at as i32 * 16;
        text(out, Text { class: "note", x: MARGIN, y, size: DESCRIPTION_SIZE, text: line });
    }
}

/// A description of the diagram for screen readers: every step and its edges.
fn about(graph: &Graph) -> String {
    let mut about = graph.description.clone();
    for (at, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.number.is_some()) {
        let to = |edge: &Edge| {
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

fn node_name(graph: &Graph, at: usize) -> String {
    let node = &graph.nodes[at];
    node.number.map_or_else(|| node.title.clone(), |number| format!("step {number}"))
}

struct Text<'a> {
    class: &'a str,
    x: i32,
    y: i32,
    size: i32,
    text: &'a str,
}

fn text(out: &mut String, shown: Text<'_>) {
    let Text { class, x, y, size, text } = shown;
    let text = escape(text);
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\">{text}</text>"
    );
}

fn stripes(out: &mut String, layout: &Layout, frame: &Frame) {
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
            text(out, Text { class: "phase", x: MARGIN, y, size: PHASE_SIZE, text: line });
        }
    }
}

fn edge_class(edge: &Edge) -> &'static str {
    match (edge.kind, edge.is_back) {
        (EdgeKind::Error, _) => "error",
        (EdgeKind::Outcome, true) => "loop",
        (EdgeKind::Outcome, false) => "way",
    }
}

/// Draws the lines of edges. Back edges are drawn over the others, because they are fewer.
fn lines(out: &mut String, graph: &Graph, layout: &Layout) {
    for class in ["way", "loop", "error"] {
        let edges = graph.edges.iter().zip(&layout.lines);
        let all: Vec<&Line> =
            edges.filter(|(edge, _)| edge_class(edge) == class).map(|(_, line)| line).collect();
        let points = all.iter().map(|line| {
            if line.has_arrow { without_arrow(&line.points) } else { line.points.clone() }
        });
        for points in strokes::once(points.collect()) {
            let _ = writeln!(out, "<path class=\"line {class}\" d=\"{}\"/>", path(&points));
        }
        let mut tips = Vec::new();
        for line in all.iter().filter(|line| line.has_arrow) {
            let [.., before, tip] = line.points.as_slice() else { continue };
            if !tips.contains(tip) {
                tips.push(*tip);
                let head = arrow(*before, *tip);
                let _ = writeln!(out, "<path class=\"head {class}\" d=\"{head}\"/>");
            }
        }
    }
}

/// Shortens a line so that it ends where its arrowhead begins.
fn without_arrow(points: &[(i32, i32)]) -> Vec<(i32, i32)> {
    let mut points = points.to_vec();
    if let [.., before, tip] = points.as_mut_slice() {
        let (dx, dy) = ((tip.0 - before.0).signum(), (tip.1 - before.1).signum());
        *tip = (tip.0 - dx * (ARROW - 2), tip.1 - dy * (ARROW - 2));
    }
    points
}

fn arrow(before: (i32, i32), (x, y): (i32, i32)) -> String {
    let (dx, dy) = ((x - before.0).signum(), (y - before.1).signum());
    let base = (x - dx * ARROW, y - dy * ARROW);
    let (a, b) = ((base.0 + dy * 4, base.1 + dx * 4), (base.0 - dy * 4, base.1 - dx * 4));
    format!("M{x} {y}L{} {}L{} {}Z", a.0, a.1, b.0, b.1)
}

/// The path data of a line through points, with rounded corners.
fn path(points: &[(i32, i32)]) -> String {
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

fn labels(out: &mut String, graph: &Graph, layout: &Layout) {
    for (edge, line) in graph.edges.iter().zip(&layout.lines) {
        let Some(label) = &line.label else { continue };
        let class = format!(
            "label {}{}",
            edge_class(edge),
            match label.anchor {
                Anchor::Start => "",
                Anchor::End => " before",
            }
        );
        let (x, y) = (label.x, label.y);
        text(out, Text { class: &class, x, y, size: LABEL_SIZE, text: &label.text });
    }
}

/// The CSS class of a kind.
fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Start | Kind::End => "terminal",
        Kind::Step => "step",
        Kind::Choice => "choice",
        Kind::Decision => "decision",
        Kind::Confidence => "confidence",
        Kind::Gate => "gate",
    }
}

/// Draws a frame around the current step of a run. Its colour is visible on light and dark pages.
fn frame_around(out: &mut String, placed: &Placed) {
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

fn draw_node(out: &mut String, node: &Node, placed: &Placed) {
    let (x, y) = (placed.x, placed.y);
    let look = &placed.look;
    let hands = if node.hands == Hands::None { "" } else { " sent" };
    let _ = writeln!(out, "<g class=\"node {}{hands}\">", class(node.kind));
    let full = [std::slice::from_ref(&node.title), &node.notes].concat().join(" · ");
    let _ = writeln!(out, "<title>{}</title>", escape(&full));
    let size = (look.width, look.height);
    if look.cards > 5 {
        shape(out, node.kind, "card", (x + 12, y - 10), (size.0 - 24, size.1));
    }
    if look.cards > 0 {
        shape(out, node.kind, "card", (x + 6, y - 5), (size.0 - 12, size.1));
    }
    shape(out, node.kind, "shape", (x, y), size);
    let Some(number) = node.number else {
        let middle = x + look.width / 2;
        text(out, Text { class: "mid", x: middle, y: y + 18, size: TITLE_SIZE, text: &node.title });
        out.push_str("</g>\n");
        return;
    };
    let slant = if node.kind == Kind::Gate { GATE_SLANT } else { 0 };
    badge(out, node.kind, (x + slant + 22, y + look.height / 2), number);
    let x = x + slant + TEXT_INDENT;
    let mut base = y + (look.height - look.text_height()) / 2;
    for line in &look.title {
        text(out, Text { class: "title", x, y: base + 13, size: TITLE_SIZE, text: line });
        base += TITLE_LINE;
    }
    for line in &look.notes {
        text(out, Text { class: "note", x, y: base + 11, size: NOTE_SIZE, text: line });
        base += NOTE_LINE;
    }
    out.push_str("</g>\n");
}

fn shape(out: &mut String, kind: Kind, class: &str, (x, y): (i32, i32), (w, h): (i32, i32)) {
    if kind == Kind::Gate {
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
        Kind::Start | Kind::End => h / 2,
        Kind::Confidence => (h / 2).min(22),
        _ => 7,
    };
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"{round}\"/>"
    );
}

/// Draws the number of a step. The shape of the badge shows how the step ends.
fn badge(out: &mut String, kind: Kind, (x, y): (i32, i32), number: usize) {
    match kind {
        Kind::Choice | Kind::Decision => {
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
    text(out, Text { class: "mid number", x, y: y + 4, size: 11, text: &number });
}
