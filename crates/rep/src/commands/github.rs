//! `rep github`: responds to GitHub events with agents, or previews the response.

use camino::Utf8PathBuf;
use repertoire::config::{ConfigFlags, RepConfig};
use repertoire_github::event::{ActionsEnvironment, EventError, GitHubEventContext, read_event};
use repertoire_github::limits::EVENT_BYTES_MAX;

use crate::cli::CliContext;
use crate::env::CliEnvironment;
use crate::failure::{CliFailure, CliResult};
use crate::ui::TerminalUi;

mod detect;
pub(crate) mod run;

/// Arguments of `rep github`
#[derive(Debug, clap::Args)]
pub(crate) struct GithubArgs {
    #[command(subcommand)]
    action: GithubSubcommand,
}

#[derive(Debug, clap::Subcommand)]
enum GithubSubcommand {
    /// Show which mode would respond to an event, and why, without doing anything or calling GitHub
    Detect(detect::GithubDetectArgs),
    /// Handle an event: check the actor's permission, have an agent do the work, and reply where it
    /// was asked
    Run(run::GithubRunArgs),
}

/// The event to handle
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EventArgs {
    /// The file with the event's payload [default: $GITHUB_EVENT_PATH]
    #[arg(long, value_name = "FILE")]
    event: Option<Utf8PathBuf>,
    /// GitHub's name of the event, such as `issue_comment` [default: $GITHUB_EVENT_NAME]
    #[arg(long, value_name = "NAME")]
    event_name: Option<String>,
}

impl GithubArgs {
    /// Returns true if the command handles an event, which involves the token and outsiders' text.
    pub(crate) fn works_on_events(&self) -> bool {
        matches!(self.action, GithubSubcommand::Run(_))
    }
}

/// Runs `rep github`. The configuration of the working folder is loaded for `detect` only: on a
/// pull request, that folder may hold an outside contributor's files.
pub(crate) fn run(
    env: &CliEnvironment,
    flags: &ConfigFlags,
    args: &GithubArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    match &args.action {
        GithubSubcommand::Detect(args) => {
            let ctx = CliContext::new(env, RepConfig::load(env, &env.here, flags)?);
            detect::run(&ctx, args, ui)
        }
        GithubSubcommand::Run(args) => run::run(env, args, ui),
    }
}

impl EventArgs {
    /// Reads the event, and returns its raw text as well.
    pub(crate) fn read_event(
        &self,
        env: &CliEnvironment,
    ) -> Result<(GitHubEventContext, String), CliFailure> {
        let mut around = ActionsEnvironment::from_pairs(&env.vars);
        if let Some(name) = &self.event_name {
            around.event_name = Some(name.clone());
        }
        let path = match (&self.event, &around.event_path) {
            (Some(path), _) => env.here.join(path),
            (None, Some(path)) => env.here.join(path),
            (None, None) => {
                return Err(CliFailure::wrong_usage("there is no event").hint(
                    "Pass `--event FILE`, or run it in a workflow, where GITHUB_EVENT_PATH names the file.",
                ));
            }
        };
        let text = repertoire_text::fs::read_text(&path, EVENT_BYTES_MAX)
            .map_err(|error| CliFailure::wrong_usage(format!("{path}: {error}")))?;
        let context = read_event(&text, &around).map_err(|error| match error {
            EventError::NoName => CliFailure::wrong_usage(error.to_string()),
            error => CliFailure::cannot_run(format!("{path}: {error}")),
        })?;
        Ok((context, text))
    }
}
