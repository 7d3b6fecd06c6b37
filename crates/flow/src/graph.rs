//! A workflow as a picture: Mermaid, DOT and SVG.

use crate::workflow::Workflow;

/// As a Mermaid flowchart.
pub fn mermaid(workflow: &Workflow) -> String {
    workflow.name.clone()
}

/// As a DOT graph.
pub fn dot(workflow: &Workflow) -> String {
    workflow.name.clone()
}

/// As an SVG picture.
pub fn svg(workflow: &Workflow) -> String {
    workflow.name.clone()
}
