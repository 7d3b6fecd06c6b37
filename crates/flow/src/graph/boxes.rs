//! Measures the boxes of nodes and wraps their text.

use super::model::{DiagramGraph, DiagramNode, NodeKind, SubagentCount};
use super::text::{text_width, wrap_text};

pub(super) const TITLE_SIZE: i32 = 13;
pub(super) const NOTE_SIZE: i32 = 11;
pub(super) const TITLE_LINE: i32 = 17;
pub(super) const NOTE_LINE: i32 = 15;
/// The left edge of the text, after the number.
pub(super) const TEXT_INDENT: i32 = 44;
/// The distance by which the points of a gate stick out.
pub(super) const GATE_SLANT: i32 = 16;
/// The visible height of each card behind a dispatch.
pub(super) const CARD: i32 = 5;
const PADDING: i32 = 12;
const TITLE_LINES_MAX: usize = 4;
const NOTE_LINES_MAX: usize = 3;

/// A box sized to its text.
#[derive(Clone, Debug)]
pub(super) struct NodeBox {
    pub width: i32,
    /// The height of the box itself, without the cards that show above it.
    pub height: i32,
    /// The height of the dispatch cards above the box.
    pub cards: i32,
    pub title: Vec<String>,
    pub notes: Vec<String>,
}

impl NodeBox {
    pub(super) fn text_height(&self) -> i32 {
        self.title.len() as i32 * TITLE_LINE + self.notes.len() as i32 * NOTE_LINE
    }
}

/// Measures the boxes of all nodes. `crowd` is the maximum number of boxes side by side: the more, the narrower they
/// are.
pub(super) fn measure_boxes(graph: &DiagramGraph, crowd: usize) -> Vec<NodeBox> {
    let column = match crowd {
        0..=3 => 224,
        4..=5 => 196,
        _ => 172,
    };
    graph.nodes.iter().map(|node| measure_node(node, column)).collect()
}

fn measure_node(node: &DiagramNode, column: i32) -> NodeBox {
    if matches!(node.kind, NodeKind::Start | NodeKind::End) {
        let title = vec![node.title.clone()];
        let width = text_width(&node.title, TITLE_SIZE) + 36;
        return NodeBox { width, height: 28, cards: 0, title, notes: Vec::new() };
    }
    let room = column - TEXT_INDENT - PADDING;
    let title = wrap_text(&node.title, TITLE_SIZE, room, TITLE_LINES_MAX);
    let notes: Vec<String> = node
        .notes
        .iter()
        .flat_map(|note| wrap_text(note, NOTE_SIZE, room, NOTE_LINES_MAX))
        .collect();
    let cards = match node.hands {
        SubagentCount::None => 0,
        SubagentCount::One => CARD,
        SubagentCount::Several => 2 * CARD,
    };
    let slant = if node.kind == NodeKind::Gate { GATE_SLANT } else { 0 };
    let mut made = NodeBox { width: column + 2 * slant, height: 0, cards, title, notes };
    made.height = (made.text_height() + 2 * PADDING).max(44);
    made
}
