//! `rep workflow graph`: draws a workflow as a graph.

use repertoire_flow::graph;

use super::find_workflow;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui::TerminalUi;

/// Arguments of `rep workflow graph`
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowGraphArgs {
    /// Name of the workflow, also as `skill/name`
    name: String,
    /// Print a Mermaid flowchart (the default)
    #[arg(long, group = "form")]
    mermaid: bool,
    /// Print a graph for Graphviz
    #[arg(long, group = "form")]
    dot: bool,
    /// Print an SVG image
    #[arg(long, group = "form")]
    svg: bool,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &WorkflowGraphArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    if ui.json {
        return Err(CliFailure::wrong_usage("`rep workflow graph` has no JSON output")
            .hint("`rep workflow show --json` has the steps and their edges."));
    }
    let (_, loaded) = find_workflow(ctx.load_catalog()?, &args.name)?;
    let Some(workflow) = loaded.workflow else {
        return Err(CliFailure::negative_answer(format!(
            "workflow `{}` cannot be read",
            loaded.name
        ))
        .hint(format!("`rep workflow check {}` says why.", loaded.name)));
    };
    let drawn = match (args.svg, args.dot) {
        (true, _) => graph::render_svg(&workflow),
        (_, true) => graph::render_dot(&workflow),
        _ => graph::render_mermaid(&workflow),
    };
    ui.out.write_all(drawn.as_bytes())?;
    Ok(CliExit::Done)
}
