//! `rep workflow graph`: draws a workflow as a graph.

use repertoire_flow::graph;

use super::find;
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::Ui;

/// Arguments of `rep workflow graph`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
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

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    if ui.json {
        return Err(Failure::usage("`rep workflow graph` has no JSON output")
            .hint("`rep workflow show --json` has the steps and their edges."));
    }
    let (_, loaded) = find(ctx.catalog()?, &args.name)?;
    let Some(workflow) = loaded.workflow else {
        return Err(Failure::no(format!("workflow `{}` cannot be read", loaded.name))
            .hint(format!("`rep workflow check {}` says why.", loaded.name)));
    };
    let drawn = match (args.svg, args.dot) {
        (true, _) => graph::svg(&workflow),
        (_, true) => graph::dot(&workflow),
        _ => graph::mermaid(&workflow),
    };
    ui.out.write_all(drawn.as_bytes())?;
    Ok(Exit::Done)
}
