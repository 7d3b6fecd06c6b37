//! `rep completions`: prints a completion script for the user's shell.

use clap_complete::Shell;

use crate::cli::build_clap_command;
use crate::failure::{CliExit, CliResult};
use crate::ui::TerminalUi;

/// Arguments of `rep completions`
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to print completions for
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut build_clap_command(), "rep", &mut script);
    ui.out.write_all(&script)?;
    Ok(CliExit::Done)
}
