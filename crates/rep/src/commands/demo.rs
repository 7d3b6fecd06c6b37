//! `rep demo`: shows the main features in a small workspace, with no model and no network.

use crate::demo;
use crate::env::CliEnvironment;
use crate::failure::CliResult;
use crate::ui::TerminalUi;

/// Arguments of `rep demo`
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Keep the workspace, to look around in it
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(env: &CliEnvironment, args: &DemoArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let keep = if args.keep { demo::DemoCleanup::Keep } else { demo::DemoCleanup::Remove };
    demo::run(env, keep, ui)
}
