//! `rep workflow start`: starts a run and prints its first step.

use std::collections::BTreeMap;

use repertoire_flow::driver::desk::{Start, Withheld};
use repertoire_skill::trust::Trust;

use super::{FormatFlag, desk_failed, pair, print_standing};
use crate::cli::Ctx;
use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

/// Arguments of `rep workflow start`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
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
    format: FormatFlag,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let mut parameters = BTreeMap::new();
    for text in &args.parameters {
        let (name, value) = pair(ctx, text, "--param")?;
        if parameters.insert(name.clone(), value).is_some() {
            return Err(Failure::usage(format!("parameter `{name}` is given twice")));
        }
    }
    let start = Start {
        workflow: args.name.clone(),
        parameters,
        id: args.id.clone(),
        parent: args.parent.clone(),
    };
    let started = ctx.at_desk(async |desk, cancel| {
        let started = desk.start(start, cancel).await;
        started.map_err(|error| desk_failed(ctx, "RUN", error, ui))
    })?;
    if let Some(Withheld { skill, trust }) = &started.withheld {
        let why = match trust {
            Trust::Changed => "has changed since it was trusted",
            Trust::Untrusted | Trust::Trusted => "is not trusted yet",
        };
        ui.note(&format!(
            "note: `{skill}` {why}; commands that it declares are not run before `rep trust {skill}`"
        ))?;
    }
    let format = args.format.of(ctx, ui);
    print_standing(&started.standing, format, ui)
}
