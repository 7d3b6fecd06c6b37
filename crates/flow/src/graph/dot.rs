//! Renders a workflow as a DOT graph.

use std::fmt::Write as _;

use super::model::{Edge, EdgeKind, Graph, Hands, Kind, Node};

pub(super) fn write(graph: &Graph) -> String {
    let mut out = format!("digraph \"{}\" {{\n", escape(&graph.name));
    out.push_str("  rankdir=TB;\n");
    out.push_str(
        "  graph [fontname=\"sans-serif\", color=\"#94a3b8\", style=rounded, labeljust=l];\n",
    );
    out.push_str("  node [fontname=\"sans-serif\", shape=box, style=\"filled,rounded\", ");
    out.push_str("fillcolor=\"#f8fafc\", color=\"#64748b\"];\n");
    out.push_str("  edge [fontname=\"sans-serif\", fontsize=11, color=\"#475569\"];\n");
    for (at, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.phase.is_none()) {
        let _ = writeln!(out, "  {}", shape(at, node));
    }
    for (phase, title) in graph.phases.iter().enumerate() {
        let mut members =
            graph.nodes.iter().enumerate().filter(|(_, node)| node.phase == Some(phase)).peekable();
        if members.peek().is_none() {
            continue;
        }
        let _ = writeln!(out, "  subgraph \"cluster_{}\" {{", phase + 1);
        let _ = writeln!(out, "    label=\"{}\";", escape(title));
        for (at, node) in members {
            let _ = writeln!(out, "    {}", shape(at, node));
        }
        out.push_str("  }\n");
    }
    for edge in &graph.edges {
        let _ = writeln!(out, "  {}", arrow(graph, edge));
    }
    out.push_str("}\n");
    out
}

fn name(at: usize, node: &Node) -> String {
    match node.kind {
        Kind::Start => "start".to_owned(),
        Kind::End => "end".to_owned(),
        _ => format!("step{}", at + 1),
    }
}

fn shape(at: usize, node: &Node) -> String {
    let mut label = match node.number {
        Some(number) => format!("{number}. {}", escape(&node.title)),
        None => escape(&node.title),
    };
    for note in &node.notes {
        let _ = write!(label, "\\n{}", escape(note));
    }
    let mut look = match node.kind {
        Kind::Start | Kind::End => ", shape=oval, fillcolor=\"#334155\", fontcolor=white",
        Kind::Gate => ", shape=hexagon, style=filled, fillcolor=\"#fef3c7\", color=\"#b45309\"",
        Kind::Confidence => ", fillcolor=\"#ccfbf1\", color=\"#0f766e\"",
        Kind::Decision => ", fillcolor=\"#ede9fe\", color=\"#7c3aed\"",
        Kind::Choice => ", fillcolor=\"#f5f3ff\", color=\"#7c3aed\"",
        Kind::Step => "",
    }
    .to_owned();
    match node.hands {
        Hands::None => {}
        // Several outlines are DOT's notation for several of a kind.
        Hands::One => look.push_str(", peripheries=2"),
        Hands::Several => look.push_str(", peripheries=3"),
    }
    format!("\"{}\" [label=\"{label}\"{look}];", name(at, node))
}

fn arrow(graph: &Graph, edge: &Edge) -> String {
    let mut look = Vec::new();
    if !edge.label.is_empty() {
        look.push(format!("label=\"{}\"", escape(&edge.label)));
    }
    if edge.is_back {
        look.push("constraint=false".to_owned());
    }
    match edge.kind {
        EdgeKind::Error => look.push("style=dashed, color=\"#dc2626\"".to_owned()),
        EdgeKind::Outcome if edge.is_back => look.push("color=\"#b45309\"".to_owned()),
        EdgeKind::Outcome => {}
    }
    let look = if look.is_empty() { String::new() } else { format!(" [{}]", look.join(", ")) };
    let end = |at: usize| name(at, &graph.nodes[at]);
    format!("\"{}\" -> \"{}\"{look};", end(edge.from), end(edge.to))
}

/// Escapes text for a quoted label. DOT decodes character references in labels, so `&` is escaped too.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}
