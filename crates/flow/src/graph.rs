//! Renders a workflow as a diagram: Mermaid, DOT and SVG.
//!
//! All three are drawn from one model (`model`): steps and their outcomes, loops with their bounds, dispatches to
//! sub-agents, phases. Any workflow can be drawn, even one that the checker rejects; edges with an unknown target are
//! left out.

use crate::workflow::{StepId, Workflow};

mod boxes;
mod dot;
mod layers;
mod layout;
mod mermaid;
mod model;
mod order;
mod place;
mod ports;
mod strips;
mod svg;
mod text;
mod tracks;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use model::Graph;

/// Renders a Mermaid flowchart.
pub fn mermaid(workflow: &Workflow) -> String {
    mermaid::write(&Graph::new(workflow))
}

/// Renders a DOT graph.
pub fn dot(workflow: &Workflow) -> String {
    dot::write(&Graph::new(workflow))
}

/// Renders a self-contained SVG for light and dark pages.
pub fn svg(workflow: &Workflow) -> String {
    svg_lit(workflow, None)
}

/// Renders an SVG like [`svg`], with the current step of a run highlighted.
pub fn svg_lit(workflow: &Workflow, step: Option<&StepId>) -> String {
    let lit = step.and_then(|step| workflow.number(step));
    svg::write(&Graph::new(workflow), lit)
}
