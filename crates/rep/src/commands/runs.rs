//! `rep runs`: lists, shows and controls runs.

use repertoire_journal::{DamagedRow, Event, Journal, JournalError, Run, RunId, Target};

use crate::cli::CliContext;
use crate::failure::{CliFailure, CliResult};
use crate::ui::TerminalUi;

pub(crate) mod control;
pub(crate) mod conversations;
pub(crate) mod dead_letters;
pub(crate) mod diff;
pub(crate) mod events;
pub(crate) mod list;
pub(crate) mod merge;
pub(crate) mod metrics;
mod prune;
pub(crate) mod remove;
pub(crate) mod replay;
pub(crate) mod show;
mod started_settings;
mod suggestions;

/// Arguments of `rep runs`; without a subcommand, runs are listed
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    action: Option<RunsAction>,
    #[command(flatten)]
    list: list::RunsListArgs,
}

/// A run
#[derive(Debug, clap::Args)]
pub(crate) struct RunArg {
    /// Id of the run, the start or end of the id, its name, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

#[derive(Debug, clap::Subcommand)]
enum RunsAction {
    /// List runs, the newest first
    #[command(visible_alias = "ls")]
    List(list::RunsListArgs),
    /// Show everything about a run: status, tasks, steps, files, and possible next commands
    Show(show::RunsShowArgs),
    /// Pause a run after its current step
    Pause(control::RunsPauseArgs),
    /// Resume a run, optionally with higher limits
    Resume(control::RunsResumeArgs),
    /// Cancel a run
    Cancel(control::RunsCancelArgs),
    /// Retry the failed tasks of a run
    Retry(control::RunsRetryArgs),
    /// Add an instruction to the next prompt of a run
    Steer(control::RunsSteerArgs),
    /// Show the changes of a run
    Diff(diff::RunsDiffArgs),
    /// Merge the changes of a run
    Merge(merge::RunsMergeArgs),
    /// Print the events of one run or of all runs, one per line
    Events(events::RunsEventsArgs),
    /// List dead letters, which are failures that need a person, and retry or close them
    #[command(name = "dead-letters", alias = "dlq")]
    DeadLetters(dead_letters::DeadLettersArgs),
    /// Print metrics in the Prometheus format
    Metrics(metrics::RunsMetricsArgs),
    /// Remove runs, with their events and files
    Rm(remove::RunsRemoveArgs),
    /// Remove worktrees whose work is merged, and old runs
    Prune(prune::RunsPruneArgs),
    /// Rebuild runs from their events and report differences, or verify their digests
    Replay(replay::RunsReplayArgs),
}

impl RunsArgs {
    /// Returns the command's name if it has no JSON output.
    pub(crate) fn text_only(&self) -> Option<&'static str> {
        matches!(self.action, Some(RunsAction::Metrics(_))).then_some("runs metrics")
    }
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &RunsArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    match &args.action {
        None => list::run(ctx, &args.list, ui),
        Some(RunsAction::List(args)) => list::run(ctx, args, ui),
        Some(RunsAction::Show(args)) => show::run(ctx, args, ui),
        Some(RunsAction::Pause(args)) => control::pause_run(ctx, args, ui),
        Some(RunsAction::Resume(args)) => control::resume_run(ctx, args, ui),
        Some(RunsAction::Cancel(args)) => control::cancel_run(ctx, args, ui),
        Some(RunsAction::Retry(args)) => control::retry_run(ctx, args, ui),
        Some(RunsAction::Steer(args)) => control::steer_run(ctx, args, ui),
        Some(RunsAction::Diff(args)) => diff::run(ctx, args, ui),
        Some(RunsAction::Merge(args)) => merge::run(ctx, args, ui),
        Some(RunsAction::Events(args)) => events::run(ctx, args, ui),
        Some(RunsAction::DeadLetters(args)) => dead_letters::run(ctx, args, ui),
        Some(RunsAction::Metrics(args)) => metrics::run(ctx, args, ui),
        Some(RunsAction::Rm(args)) => remove::run(ctx, args, ui),
        Some(RunsAction::Prune(args)) => prune::run(ctx, args, ui),
        Some(RunsAction::Replay(args)) => replay::run(ctx, args, ui),
    }
}

/// The message for an empty journal.
pub(crate) const NO_RUNS: &str = "There are no runs. `rep plan run` begins one.";

impl CliContext<'_> {
    /// Opens the journal if it exists. Commands that only read don't create one.
    pub(crate) async fn open_existing_journal(&self) -> Result<Option<Journal>, CliFailure> {
        let journal = self.open_journal_as_it_is().await?;
        if let Some(journal) = &journal {
            // Release expired leases, so that a run whose worker is gone is not shown as running.
            journal.requeue_expired().await.map_err(journal_failure)?;
        }
        Ok(journal)
    }

    /// Opens the journal if it exists, and changes nothing in it.
    pub(crate) async fn open_journal_as_it_is(&self) -> Result<Option<Journal>, CliFailure> {
        match self.journal_target(None) {
            Target::File(path) if !path.exists() => Ok(None),
            _ => Ok(Some(self.journal(None).await?)),
        }
    }

    /// Opens the journal for a command that names a run, and fails if there is none.
    pub(crate) async fn require_journal(&self) -> Result<Journal, CliFailure> {
        self.open_existing_journal().await?.ok_or_else(no_runs_failure)
    }

    /// Returns the user's name for the record of commands given to a run.
    pub(crate) fn user_name(&self) -> String {
        self.env.var("USER").unwrap_or("a user at the command line").to_owned()
    }
}

impl RunArg {
    pub(crate) async fn find_run(&self, journal: &Journal) -> Result<Run, CliFailure> {
        journal.find_run(&self.run).await.map_err(journal_failure)
    }
}

pub(crate) fn no_runs_failure() -> CliFailure {
    CliFailure::negative_answer("there are no runs").hint("`rep plan run` begins one.")
}

/// Converts a journal error to a failure: a negative answer, or a journal that cannot be used.
pub(crate) fn journal_failure(error: JournalError) -> CliFailure {
    match &error {
        JournalError::NotFound { text, hint } => {
            CliFailure::negative_answer(format!("there is no run `{text}`: {hint}"))
                .hint("`rep runs` lists them; `last` is the newest.")
        }
        JournalError::Ambiguous { ids, .. } => {
            let shorts: Vec<&str> =
                ids.iter().map(|id| id.get(id.len().saturating_sub(8)..).unwrap_or(id)).collect();
            CliFailure::negative_answer(error.to_string())
                .hint(format!("Name it by the end of its id: {}.", shorts.join(", ")))
        }
        JournalError::Refused { run, why } => {
            let short = run.short();
            CliFailure::negative_answer(format!("run {short}: {why}"))
                .hint(format!("`rep runs show {short}` says what can be done."))
        }
        JournalError::Fenced { .. }
        | JournalError::Conflict { .. }
        | JournalError::TooLarge { .. } => CliFailure::negative_answer(error.to_string()),
        _ => CliFailure::cannot_run(error.to_string()),
    }
}

/// Describes a damaged run whose other entries are used, and what to do about it.
pub(crate) fn describe_left_out(row: &DamagedRow) -> String {
    let id = RunId::known(&row.id);
    format!(
        "run {0} is damaged ({1}); what cannot be read is left out. `rep runs show {0}` says what can be done, \
         `rep runs rm --force {0}` removes the run",
        id.short(),
        row.what
    )
}

pub(crate) async fn events_of(journal: &Journal, run: &Run) -> Result<Vec<Event>, CliFailure> {
    repertoire::runs::events_of(journal, &run.id).await.map_err(journal_failure)
}

pub(crate) fn now_ms() -> u64 {
    use repertoire_text::clock::{Clock as _, SystemClock};
    SystemClock.now_ms()
}
