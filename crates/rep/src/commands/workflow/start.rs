//! `rep workflow start`: starts a run and prints its first step.

use std::collections::BTreeMap;

use repertoire_flow::driver::operations::{WithheldCommands, WorkflowStartRequest};
use repertoire_skill::trust::TrustLevel;

use super::{StepFormatArg, parse_pair, print_run_state, workflow_failure};
use crate::cli::CliContext;
use crate::failure::{CliFailure, CliResult};
use crate::ui::TerminalUi;

/// Arguments of `rep workflow start`
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowStartArgs {
    /// The workflow, also `skill/name` for one of a skill's sub-agents
    name: String,
    /// Value of a parameter; `@FILE` reads a file, `-` standard input (may be repeated)
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// Name of the run (default: the workflow's name with a few letters)
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// The run whose sub-agent starts this one
    #[arg(long, value_name = "RUN")]
    parent: Option<String>,
    #[command(flatten)]
    format: StepFormatArg,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &WorkflowStartArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let mut parameters = BTreeMap::new();
    for text in &args.parameters {
        let (name, value) = parse_pair(ctx, text, "--param")?;
        if parameters.insert(name.clone(), value).is_some() {
            return Err(CliFailure::wrong_usage(format!("parameter `{name}` is given twice")));
        }
    }
    let start = WorkflowStartRequest {
        workflow: args.name.clone(),
        parameters,
        id: args.id.clone(),
        parent: args.parent.clone(),
    };
    let started = ctx.run_workflow_action(async |operations, cancel| {
        let started = operations.start(start, cancel).await;
        started.map_err(|error| workflow_failure(ctx, "RUN", error, ui))
    })?;
    if let Some(WithheldCommands { skill, trust }) = &started.withheld {
        let why = match trust {
            TrustLevel::Changed => "has changed since it was trusted",
            TrustLevel::Untrusted | TrustLevel::Trusted => "is not trusted yet",
        };
        ui.print_note(&format!(
            "note: `{skill}` {why}; commands that it declares are not run before `rep trust {skill}`"
        ))?;
    }
    let format = args.format.resolve(ctx, ui);
    print_run_state(&started.standing, format, ui)
}
