//! A workflow as a picture: Mermaid, DOT and SVG.
//!
//! The three are drawn from one model (`model`), which says what a reader is to see: steps and how they end, loops with
//! their bounds, work for sub-agents, phases. It takes any workflow, also one that the checker refuses: what leads
//! nowhere is left out.

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

/// As a Mermaid flowchart.
pub fn mermaid(workflow: &Workflow) -> String {
    mermaid::write(&Graph::new(workflow))
}

/// As a DOT graph.
pub fn dot(workflow: &Workflow) -> String {
    dot::write(&Graph::new(workflow))
}

/// As an SVG picture, which needs nothing but itself and is drawn for light and for dark pages.
pub fn svg(workflow: &Workflow) -> String {
    svg_lit(workflow, None)
}

/// As [`svg`], with the step lit that a run is at.
pub fn svg_lit(workflow: &Workflow, step: Option<&StepId>) -> String {
    let lit = step.and_then(|step| workflow.number(step));
    svg::write(&Graph::new(workflow), lit)
}
