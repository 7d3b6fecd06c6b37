//! `rep completions`: prints a completion script for a shell, or the manual page.

use clap::ValueEnum;
use clap_complete::Shell;

use crate::cli::build_clap_command;
use crate::env::CliEnvironment;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui::TerminalUi;

pub(crate) mod man;

/// Arguments of `rep completions`
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to print completions for, or `man` for the manual page
    #[arg(value_enum, value_name = "SHELL")]
    target: CompletionsTarget,
    #[command(flatten)]
    man: man::ManArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CompletionsTarget {
    Bash,
    Zsh,
    Fish,
    Elvish,
    #[value(name = "powershell")]
    PowerShell,
    Man,
}

pub(crate) fn run(
    env: &CliEnvironment,
    args: &CompletionsArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let shell = match args.target {
        CompletionsTarget::Man => return man::run(env, &args.man, ui),
        CompletionsTarget::Bash => Shell::Bash,
        CompletionsTarget::Zsh => Shell::Zsh,
        CompletionsTarget::Fish => Shell::Fish,
        CompletionsTarget::Elvish => Shell::Elvish,
        CompletionsTarget::PowerShell => Shell::PowerShell,
    };
    if args.man.dir.is_some() {
        return Err(CliFailure::wrong_usage("`--dir` is for the manual pages")
            .hint("`rep completions man --dir DIR` writes them."));
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut build_clap_command(), "rep", &mut script);
    ui.out.write_all(&script)?;
    Ok(CliExit::Done)
}
