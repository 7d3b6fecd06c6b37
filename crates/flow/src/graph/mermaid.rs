//! Renders a workflow as a Mermaid flowchart.

use std::fmt::Write as _;

use super::model::{Edge, EdgeKind, Graph, Hands, Kind, Node};

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

pub(super) fn write(graph: &Graph) -> String {
    let mut out = String::from("flowchart TD\n");
    for (at, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.phase.is_none()) {
        line(&mut out, 1, &shape(at, node));
    }
    for (phase, title) in graph.phases.iter().enumerate() {
        let mut members =
            graph.nodes.iter().enumerate().filter(|(_, node)| node.phase == Some(phase)).peekable();
        if members.peek().is_none() {
            continue;
        }
        line(&mut out, 1, &format!("subgraph phase{}[\"{}\"]", phase + 1, escape(title)));
        for (at, node) in members {
            line(&mut out, 2, &shape(at, node));
        }
        line(&mut out, 1, "end");
    }
    for edge in &graph.edges {
        line(&mut out, 1, &arrow(graph, edge));
    }
    links(&mut out, graph, "stroke:#b45309", |edge| edge.is_back && edge.kind == EdgeKind::Outcome);
    links(&mut out, graph, "stroke:#dc2626", |edge| edge.kind == EdgeKind::Error);
    for class in CLASSES {
        line(&mut out, 1, &format!("classDef {class}"));
    }
    out
}

fn line(out: &mut String, depth: usize, text: &str) {
    let _ = writeln!(out, "{}{text}", "    ".repeat(depth));
}

/// The identifier of a node. Never a keyword of Mermaid, such as `end`.
fn name(at: usize, node: &Node) -> String {
    match node.kind {
        Kind::Start => "run_start".to_owned(),
        Kind::End => "run_end".to_owned(),
        _ => format!("step{}", at + 1),
    }
}

fn shape(at: usize, node: &Node) -> String {
    let name = name(at, node);
    let mut label = match node.number {
        // Not `1. Title`, because Mermaid reads labels as Markdown, where that is a list.
        Some(number) => format!("{number} · {}", escape(&node.title)),
        None => escape(&node.title),
    };
    for note in &node.notes {
        let _ = write!(label, "<br/>{}", escape(note));
    }
    let (open, close, mut class) = match node.kind {
        Kind::Start | Kind::End => ("([\"", "\"])", "terminal"),
        Kind::Gate => ("{{\"", "\"}}", "gate"),
        Kind::Confidence => ("(\"", "\")", "confidence"),
        Kind::Choice => ("[\"", "\"]", "choice"),
        Kind::Decision => ("[\"", "\"]", "decision"),
        Kind::Step => ("[\"", "\"]", "step"),
    };
    let (mut open, mut close) = (open, close);
    if node.hands != Hands::None && node.kind != Kind::Gate {
        (open, close) = ("[[\"", "\"]]");
        class = if class == "step" { "dispatch" } else { class };
    }
    format!("{name}{open}{label}{close}:::{class}")
}

fn arrow(graph: &Graph, edge: &Edge) -> String {
    let arrow = match edge.kind {
        EdgeKind::Error => "-.->",
        EdgeKind::Outcome => "-->",
    };
    let label = if edge.label.is_empty() {
        String::new()
    } else {
        format!("|\"{}\"|", escape(&edge.label))
    };
    let end = |at: usize| name(at, &graph.nodes[at]);
    format!("{} {arrow}{label} {}", end(edge.from), end(edge.to))
}

fn links(out: &mut String, graph: &Graph, style: &str, is_meant: impl Fn(&Edge) -> bool) {
    let at = graph.edges.iter().enumerate().filter(|(_, edge)| is_meant(edge));
    let numbers: Vec<String> = at.map(|(at, _)| at.to_string()).collect();
    if !numbers.is_empty() {
        line(out, 1, &format!("linkStyle {} {style}", numbers.join(",")));
    }
}

/// Escapes text for a quoted label: characters special to Mermaid, Markdown or HTML become character references.
fn escape(text: &str) -> String {
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
