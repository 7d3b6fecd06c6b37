//! Renders a workflow as a Mermaid flowchart.

use std::fmt::Write as _;

use super::model::{DiagramEdge, DiagramGraph, DiagramNode, EdgeKind, NodeKind, SubagentCount};

/// Colours of the node kinds. The fills are light in dark themes too, so the text on them is always dark.
const CLASSES: [&str; 7] = [
    "step fill:#f8fafc,stroke:#64748b,color:#0f172a",
    "choice fill:#f5f3ff,stroke:#7c3aed,color:#0f172a",
    "decision fill:#ede9fe,stroke:#7c3aed,color:#0f172a",
    "confidence fill:#ccfbf1,stroke:#0f766e,color:#0f172a",
    "gate fill:#fef3c7,stroke:#b45309,color:#0f172a,stroke-width:2px",
    "dispatch fill:#dbeafe,stroke:#1d4ed8,color:#0f172a",
    "terminal fill:#334155,stroke:#334155,color:#ffffff",
];

pub(super) fn write_mermaid(graph: &DiagramGraph) -> String {
    let mut out = String::from("flowchart TD\n");
    for (at, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.phase.is_none()) {
        push_line(&mut out, 1, &node_line(at, node));
    }
    for (phase, title) in graph.phases.iter().enumerate() {
        let mut members =
            graph.nodes.iter().enumerate().filter(|(_, node)| node.phase == Some(phase)).peekable();
        if members.peek().is_none() {
            continue;
        }
        push_line(
            &mut out,
            1,
            &format!("subgraph phase{}[\"{}\"]", phase + 1, escape_label(title)),
        );
        for (at, node) in members {
            push_line(&mut out, 2, &node_line(at, node));
        }
        push_line(&mut out, 1, "end");
    }
    for edge in &graph.edges {
        push_line(&mut out, 1, &edge_line(graph, edge));
    }
    push_link_style(&mut out, graph, "stroke:#b45309", |edge| {
        edge.is_back && edge.kind == EdgeKind::Outcome
    });
    push_link_style(&mut out, graph, "stroke:#dc2626", |edge| edge.kind == EdgeKind::Error);
    for class in CLASSES {
        push_line(&mut out, 1, &format!("classDef {class}"));
    }
    out
}

fn push_line(out: &mut String, depth: usize, text: &str) {
    let _ = writeln!(out, "{}{text}", "    ".repeat(depth));
}

/// The identifier of a node. Never a keyword of Mermaid, such as `end`.
fn node_id(at: usize, node: &DiagramNode) -> String {
    match node.kind {
        NodeKind::Start => "run_start".to_owned(),
        NodeKind::End => "run_end".to_owned(),
        _ => format!("step{}", at + 1),
    }
}

fn node_line(at: usize, node: &DiagramNode) -> String {
    let name = node_id(at, node);
    let mut label = match node.number {
        // Not `1. Title`, because Mermaid reads labels as Markdown, where that is a list.
        Some(number) => format!("{number} · {}", escape_label(&node.title)),
        None => escape_label(&node.title),
    };
    for note in &node.notes {
        let _ = write!(label, "<br/>{}", escape_label(note));
    }
    let (open, close, mut class) = match node.kind {
        NodeKind::Start | NodeKind::End => ("([\"", "\"])", "terminal"),
        NodeKind::Gate => ("{{\"", "\"}}", "gate"),
        NodeKind::Confidence => ("(\"", "\")", "confidence"),
        NodeKind::Choice => ("[\"", "\"]", "choice"),
        NodeKind::Decision => ("[\"", "\"]", "decision"),
        NodeKind::Step => ("[\"", "\"]", "step"),
    };
    let (mut open, mut close) = (open, close);
    if node.hands != SubagentCount::None && node.kind != NodeKind::Gate {
        (open, close) = ("[[\"", "\"]]");
        class = if class == "step" { "dispatch" } else { class };
    }
    format!("{name}{open}{label}{close}:::{class}")
}

fn edge_line(graph: &DiagramGraph, edge: &DiagramEdge) -> String {
    let arrow = match edge.kind {
        EdgeKind::Error => "-.->",
        EdgeKind::Outcome => "-->",
    };
    let label = if edge.label.is_empty() {
        String::new()
    } else {
        format!("|\"{}\"|", escape_label(&edge.label))
    };
    let end = |at: usize| node_id(at, &graph.nodes[at]);
    format!("{} {arrow}{label} {}", end(edge.from), end(edge.to))
}

fn push_link_style(
    out: &mut String,
    graph: &DiagramGraph,
    style: &str,
    is_meant: impl Fn(&DiagramEdge) -> bool,
) {
    let at = graph.edges.iter().enumerate().filter(|(_, edge)| is_meant(edge));
    let numbers: Vec<String> = at.map(|(at, _)| at.to_string()).collect();
    if !numbers.is_empty() {
        push_line(out, 1, &format!("linkStyle {} {style}", numbers.join(",")));
    }
}

/// Escapes text for a quoted label: characters special to Mermaid, Markdown or HTML become character references.
fn escape_label(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | '&' | '<' | '>' | '`' | '*' | '_' | '~' | '\\' | '$' | '|' | '[' | ']'
            | '(' | ')' | '{' | '}' | '%' | ';' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
