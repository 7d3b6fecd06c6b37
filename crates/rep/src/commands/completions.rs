//! `rep completions`: prints a completion script for the user's shell.

use clap_complete::Shell;

use crate::cli::command;
use crate::failure::{Exit, Outcome};
use crate::ui::Ui;

/// Arguments of `rep completions`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell to print completions for
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "rep", &mut script);
    ui.out.write_all(&script)?;
    Ok(Exit::Done)
}
