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
mod ports;
mod positions;
mod strips;
mod svg;
mod text;
mod tracks;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use model::DiagramGraph;

/// Renders a Mermaid flowchart.
pub fn render_mermaid(workflow: &Workflow) -> String {
    mermaid::write_mermaid(&DiagramGraph::new(workflow))
}

/// Renders a DOT graph.
pub fn render_dot(workflow: &Workflow) -> String {
    dot::write_dot(&DiagramGraph::new(workflow))
}

/// Renders a self-contained SVG for light and dark pages.
pub fn render_svg(workflow: &Workflow) -> String {
    render_svg_at_step(workflow, None)
}

/// Renders an SVG like [`render_svg`], with the current step of a run highlighted.
pub fn render_svg_at_step(workflow: &Workflow, step: Option<&StepId>) -> String {
    let lit = step.and_then(|step| workflow.step_number(step));
    svg::write_svg(&DiagramGraph::new(workflow), lit)
}
