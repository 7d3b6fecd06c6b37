//! Commands by their old names. They are hidden from help and behave as they always did; the same
//! code runs under the new names.

use clap::Subcommand;

use super::CliContext;
use crate::commands::{agents, completions, daemon, run, runs, show, sync, verify};
use crate::failure::CliResult;
use crate::ui::TerminalUi;

/// The old names of commands, with the new ones.
pub(super) const OLD_NAMES: [(&str, &str); 21] = [
    ("props", "show --json"),
    ("to-prompt", "sync --print"),
    ("docs", "show --docs"),
    ("deps", "show --deps"),
    ("exec", "run --skill"),
    ("tools", "agents --tools"),
    ("conversations", "runs --kind conversation"),
    ("events", "runs events"),
    ("replay", "runs replay"),
    ("metrics", "runs metrics"),
    ("dlq", "runs dead-letters"),
    ("memory", "verify memory"),
    ("worker", "daemon --database"),
    ("man", "completions man"),
    ("pause", "runs pause"),
    ("resume", "runs resume"),
    ("cancel", "runs cancel"),
    ("retry", "runs retry"),
    ("steer", "runs steer"),
    ("diff", "runs diff"),
    ("merge", "runs merge"),
];

#[derive(Debug, Subcommand)]
pub(super) enum OldCommand {
    /// Print a skill's properties as skills-ref does (for people: `rep show NAME --json`)
    #[command(hide = true)]
    Props(show::properties::PropertiesArgs),
    /// Alias of `rep sync --print`
    #[command(hide = true)]
    ToPrompt(sync::print::SyncPrintArgs),
    /// Alias of `rep show --docs`
    #[command(hide = true)]
    Docs(show::docs::ShowDocsArgs),
    /// Alias of `rep show --deps`
    #[command(hide = true)]
    Deps(show::deps::ShowDepsArgs),
    /// Alias of `rep run --skill`
    #[command(hide = true)]
    Exec(Box<run::skill::ExecArgs>),
    /// Alias of `rep agents --tools`
    #[command(hide = true)]
    Tools(agents::tools::AgentsToolsArgs),
    /// List conversations that can be resumed (now `rep runs --kind conversation`)
    #[command(hide = true)]
    Conversations(runs::conversations::ConversationsArgs),
    /// Alias of `rep runs events`
    #[command(hide = true)]
    Events(runs::events::RunsEventsArgs),
    /// Alias of `rep runs replay`
    #[command(hide = true)]
    Replay(runs::replay::RunsReplayArgs),
    /// Alias of `rep runs metrics`
    #[command(hide = true)]
    Metrics(runs::metrics::RunsMetricsArgs),
    /// Alias of `rep runs dead-letters`
    #[command(hide = true)]
    Dlq(runs::dead_letters::DeadLettersArgs),
    /// Alias of `rep verify memory`
    #[command(hide = true)]
    Memory(verify::memory::VerifyMemoryArgs),
    /// Alias of `rep daemon --database`
    #[command(hide = true)]
    Worker(daemon::DaemonArgs),
    /// Alias of `rep completions man`
    #[command(hide = true)]
    Man(completions::man::ManArgs),
    /// Alias of `rep runs pause`
    #[command(hide = true)]
    Pause(runs::control::RunsPauseArgs),
    /// Alias of `rep runs resume`
    #[command(hide = true)]
    Resume(runs::control::RunsResumeArgs),
    /// Alias of `rep runs cancel`
    #[command(hide = true)]
    Cancel(runs::control::RunsCancelArgs),
    /// Alias of `rep runs retry`
    #[command(hide = true)]
    Retry(runs::control::RunsRetryArgs),
    /// Alias of `rep runs steer`
    #[command(hide = true)]
    Steer(runs::control::RunsSteerArgs),
    /// Alias of `rep runs diff`
    #[command(hide = true)]
    Diff(runs::diff::RunsDiffArgs),
    /// Alias of `rep runs merge`
    #[command(hide = true)]
    Merge(runs::merge::RunsMergeArgs),
}

impl OldCommand {
    /// Returns the command's name if it has no JSON output.
    pub(super) fn text_only(&self) -> Option<&'static str> {
        match self {
            OldCommand::Docs(_) => Some("docs"),
            OldCommand::Metrics(_) => Some("metrics"),
            OldCommand::Man(_) => Some("man"),
            _ => None,
        }
    }

    /// Runs a command that needs the configuration, which all but `man` do.
    pub(super) fn run(&self, ctx: &CliContext<'_>, ui: &mut TerminalUi<'_>) -> CliResult {
        match self {
            OldCommand::Props(args) => show::properties::run(ctx, args, ui),
            OldCommand::ToPrompt(args) => sync::print::run(ctx, args, ui),
            OldCommand::Docs(args) => show::docs::run(ctx, args, ui),
            OldCommand::Deps(args) => show::deps::run(ctx, args, ui),
            OldCommand::Exec(args) => run::skill::run(ctx, &args.execution(), ui),
            OldCommand::Tools(args) => agents::tools::run(ctx, args.agent.as_deref(), ui),
            OldCommand::Conversations(args) => runs::conversations::run(ctx, args, ui),
            OldCommand::Events(args) => runs::events::run(ctx, args, ui),
            OldCommand::Replay(args) => runs::replay::run(ctx, args, ui),
            OldCommand::Metrics(args) => runs::metrics::run(ctx, args, ui),
            OldCommand::Dlq(args) => runs::dead_letters::run(ctx, args, ui),
            OldCommand::Memory(args) => verify::memory::run(ctx, args, ui),
            OldCommand::Worker(args) => daemon::run_worker(ctx, args, ui),
            OldCommand::Man(args) => completions::man::run(ctx.env, args, ui),
            OldCommand::Pause(args) => runs::control::pause_run(ctx, args, ui),
            OldCommand::Resume(args) => runs::control::resume_run(ctx, args, ui),
            OldCommand::Cancel(args) => runs::control::cancel_run(ctx, args, ui),
            OldCommand::Retry(args) => runs::control::retry_run(ctx, args, ui),
            OldCommand::Steer(args) => runs::control::steer_run(ctx, args, ui),
            OldCommand::Diff(args) => runs::diff::run(ctx, args, ui),
            OldCommand::Merge(args) => runs::merge::run(ctx, args, ui),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_old_name_has_a_new_one_that_exists() {
        let all = crate::cli::build_clap_command();
        let hidden = OldCommand::augment_subcommands(clap::Command::new("old"));
        let mut hidden: Vec<&str> = hidden.get_subcommands().map(clap::Command::get_name).collect();
        let mut old: Vec<&str> = OLD_NAMES.iter().map(|(old, _)| *old).collect();
        hidden.sort_unstable();
        old.sort_unstable();
        assert_eq!(hidden, old);
        for (old, new) in OLD_NAMES {
            assert!(all.find_subcommand(old).is_some_and(clap::Command::is_hide_set), "{old}");
            let mut command = &all;
            for word in new.split(' ').take_while(|word| !word.starts_with("--")) {
                // A value, such as `man`, ends the names of commands.
                let Some(next) = command.find_subcommand(word) else { break };
                assert!(!next.is_hide_set(), "{new}");
                command = next;
            }
            assert_ne!(command.get_name(), "rep", "{new}");
        }
    }
}
