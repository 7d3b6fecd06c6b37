//! `rep completions`: prints a completion script for a shell, or the manual page.

use clap::ValueEnum;

use crate::completion::write_script;
use crate::env::CliEnvironment;
use crate::failure::{CliFailure, CliResult};
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
        CompletionsTarget::Bash => "bash",
        CompletionsTarget::Zsh => "zsh",
        CompletionsTarget::Fish => "fish",
        CompletionsTarget::Elvish => "elvish",
        CompletionsTarget::PowerShell => "powershell",
    };
    if args.man.dir.is_some() {
        return Err(CliFailure::wrong_usage("`--dir` is for the manual pages")
            .hint("`rep completions man --dir DIR` writes them."));
    }
    write_script(shell, ui.out)
}
