//! Renders a workflow as a DOT graph.

use std::fmt::Write as _;

use super::model::{DiagramEdge, DiagramGraph, DiagramNode, EdgeKind, NodeKind, SubagentCount};

pub(super) fn write_dot(graph: &DiagramGraph) -> String {
    let mut out = format!("digraph \"{}\" {{\n", escape_label(&graph.name));
    out.push_str("  rankdir=TB;\n");
    out.push_str(
        "  graph [fontname=\"sans-serif\", color=\"#94a3b8\", style=rounded, labeljust=l];\n",
    );
    out.push_str("  node [fontname=\"sans-serif\", shape=box, style=\"filled,rounded\", ");
    out.push_str("fillcolor=\"#f8fafc\", color=\"#64748b\"];\n");
    out.push_str("  edge [fontname=\"sans-serif\", fontsize=11, color=\"#475569\"];\n");
    for (at, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.phase.is_none()) {
        let _ = writeln!(out, "  {}", node_line(at, node));
    }
    for (phase, title) in graph.phases.iter().enumerate() {
        let mut members =
            graph.nodes.iter().enumerate().filter(|(_, node)| node.phase == Some(phase)).peekable();
        if members.peek().is_none() {
            continue;
        }
        let _ = writeln!(out, "  subgraph \"cluster_{}\" {{", phase + 1);
        let _ = writeln!(out, "    label=\"{}\";", escape_label(title));
        for (at, node) in members {
            let _ = writeln!(out, "    {}", node_line(at, node));
        }
        out.push_str("  }\n");
    }
    for edge in &graph.edges {
        let _ = writeln!(out, "  {}", edge_line(graph, edge));
    }
    out.push_str("}\n");
    out
}

fn node_id(at: usize, node: &DiagramNode) -> String {
    match node.kind {
        NodeKind::Start => "start".to_owned(),
        NodeKind::End => "end".to_owned(),
        _ => format!("step{}", at + 1),
    }
}

fn node_line(at: usize, node: &DiagramNode) -> String {
    let mut label = match node.number {
        Some(number) => format!("{number}. {}", escape_label(&node.title)),
        None => escape_label(&node.title),
    };
    for note in &node.notes {
        let _ = write!(label, "\\n{}", escape_label(note));
    }
    let mut look = match node.kind {
        NodeKind::Start | NodeKind::End => ", shape=oval, fillcolor=\"#334155\", fontcolor=white",
        NodeKind::Gate => ", shape=hexagon, style=filled, fillcolor=\"#fef3c7\", color=\"#b45309\"",
        NodeKind::Confidence => ", fillcolor=\"#ccfbf1\", color=\"#0f766e\"",
        NodeKind::Decision => ", fillcolor=\"#ede9fe\", color=\"#7c3aed\"",
        NodeKind::Choice => ", fillcolor=\"#f5f3ff\", color=\"#7c3aed\"",
        NodeKind::Step => "",
    }
    .to_owned();
    match node.hands {
        SubagentCount::None => {}
        // Several outlines are DOT's notation for several of a kind.
        SubagentCount::One => look.push_str(", peripheries=2"),
        SubagentCount::Several => look.push_str(", peripheries=3"),
    }
    format!("\"{}\" [label=\"{label}\"{look}];", node_id(at, node))
}

fn edge_line(graph: &DiagramGraph, edge: &DiagramEdge) -> String {
    let mut look = Vec::new();
    if !edge.label.is_empty() {
        look.push(format!("label=\"{}\"", escape_label(&edge.label)));
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
    let end = |at: usize| node_id(at, &graph.nodes[at]);
    format!("\"{}\" -> \"{}\"{look};", end(edge.from), end(edge.to))
}

/// Escapes text for a quoted label. DOT decodes character references in labels, so `&` is escaped too.
fn escape_label(text: &str) -> String {
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
