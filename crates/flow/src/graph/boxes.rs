//! Measures the boxes of nodes and wraps their text.

use super::model::{Graph, Hands, Kind, Node};
use super::text::{width, wrap};

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
pub(super) struct Box {
    pub width: i32,
    /// The height of the box itself, without the cards that show above it.
    pub height: i32,
    /// The height of the dispatch cards above the box.
    pub cards: i32,
    pub title: Vec<String>,
    pub notes: Vec<String>,
}

impl Box {
    pub(super) fn text_height(&self) -> i32 {
        self.title.len() as i32 * TITLE_LINE + self.notes.len() as i32 * NOTE_LINE
    }
}

/// Measures the boxes of all nodes. `crowd` is the maximum number of boxes side by side: the more, the narrower they
/// are.
pub(super) fn boxes(graph: &Graph, crowd: usize) -> Vec<Box> {
    let column = match crowd {
        0..=3 => 224,
        4..=5 => 196,
        _ => 172,
    };
    graph.nodes.iter().map(|node| measure(node, column)).collect()
}

fn measure(node: &Node, column: i32) -> Box {
    if matches!(node.kind, Kind::Start | Kind::End) {
        let title = vec![node.title.clone()];
        let width = width(&node.title, TITLE_SIZE) + 36;
        return Box { width, height: 28, cards: 0, title, notes: Vec::new() };
    }
    let room = column - TEXT_INDENT - PADDING;
    let title = wrap(&node.title, TITLE_SIZE, room, TITLE_LINES_MAX);
    let notes: Vec<String> =
        node.notes.iter().flat_map(|note| wrap(note, NOTE_SIZE, room, NOTE_LINES_MAX)).collect();
    let cards = match node.hands {
        Hands::None => 0,
        Hands::One => CARD,
        Hands::Several => 2 * CARD,
    };
    let slant = if node.kind == Kind::Gate { GATE_SLANT } else { 0 };
    let mut made = Box { width: column + 2 * slant, height: 0, cards, title, notes };
    made.height = (made.text_height() + 2 * PADDING).max(44);
    made
}
