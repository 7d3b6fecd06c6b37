//! `rep runs`: lists, shows and controls runs.

use repertoire_journal::{Event, Journal, JournalError, Run, Target};

use crate::cli::Ctx;
use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

pub(crate) mod diff;
pub(crate) mod list;
pub(crate) mod merge;
mod next;
pub(crate) mod order;
mod prune;
pub(crate) mod show;
mod started_settings;

/// Arguments of `rep runs`; without a subcommand, runs are listed
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: list::ListArgs,
}

/// A run
#[derive(Debug, clap::Args)]
pub(crate) struct RunArg {
    /// Id of the run, the start or end of the id, its name, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List runs, the newest first
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Show everything about a run: status, tasks, steps, files, and possible next commands
    Show(show::Args),
    /// Pause a run after its current step
    Pause(order::PauseArgs),
    /// Resume a run, optionally with higher limits
    Resume(order::ResumeArgs),
    /// Cancel a run
    Cancel(order::CancelArgs),
    /// Retry the failed tasks of a run
    Retry(order::RetryArgs),
    /// Add an instruction to the next prompt of a run
    Steer(order::SteerArgs),
    /// Show the changes of a run
    Diff(diff::Args),
    /// Merge the changes of a run
    Merge(merge::Args),
    /// Remove worktrees whose work is merged
    Prune(prune::Args),
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    match &args.action {
        None => list::run(ctx, &args.list, ui),
        Some(Action::List(args)) => list::run(ctx, args, ui),
        Some(Action::Show(args)) => show::run(ctx, args, ui),
        Some(Action::Pause(args)) => order::pause(ctx, args, ui),
        Some(Action::Resume(args)) => order::resume(ctx, args, ui),
        Some(Action::Cancel(args)) => order::cancel(ctx, args, ui),
        Some(Action::Retry(args)) => order::retry(ctx, args, ui),
        Some(Action::Steer(args)) => order::steer(ctx, args, ui),
        Some(Action::Diff(args)) => diff::run(ctx, args, ui),
        Some(Action::Merge(args)) => merge::run(ctx, args, ui),
        Some(Action::Prune(args)) => prune::run(ctx, args, ui),
    }
}

/// The message for an empty journal.
pub(crate) const NO_RUNS: &str = "There are no runs yet. `rep plan run` begins one.";

impl Ctx<'_> {
    /// Opens the journal if it exists. Commands that only read don't create one.
    pub(crate) async fn journal_if_there(&self) -> Result<Option<Journal>, Failure> {
        match self.journal_target(None) {
            Target::File(path) if !path.exists() => Ok(None),
            _ => {
                let journal = self.journal(None).await?;
                // Release expired leases, so that a run whose worker is gone is not shown as
                // running.
                journal.reap().await.map_err(failed)?;
                Ok(Some(journal))
            }
        }
    }

    /// Opens the journal for a command that names a run, and fails if there is none.
    pub(crate) async fn journal_of_runs(&self) -> Result<Journal, Failure> {
        let none = || Failure::no("there are no runs yet").hint("`rep plan run` begins one.");
        self.journal_if_there().await?.ok_or_else(none)
    }

    /// Returns the user's name for the record of commands given to a run.
    pub(crate) fn person(&self) -> String {
        self.env.var("USER").unwrap_or("a user at the command line").to_owned()
    }
}

impl RunArg {
    pub(crate) async fn find(&self, journal: &Journal) -> Result<Run, Failure> {
        journal.find(&self.run).await.map_err(failed)
    }
}

/// Converts a journal error to a failure: a negative answer, or a journal that cannot be used.
pub(crate) fn failed(error: JournalError) -> Failure {
    match &error {
        JournalError::NotFound { text, hint } => {
            Failure::no(format!("there is no run `{text}`: {hint}"))
                .hint("`rep runs` lists them; `last` is the newest.")
        }
        JournalError::Ambiguous { ids, .. } => {
            let shorts: Vec<&str> =
                ids.iter().map(|id| id.get(id.len().saturating_sub(8)..).unwrap_or(id)).collect();
            Failure::no(error.to_string())
                .hint(format!("Name it by the end of its id: {}.", shorts.join(", ")))
        }
        JournalError::Refused { run, why } => {
            let short = run.short();
            Failure::no(format!("run {short}: {why}"))
                .hint(format!("`rep runs show {short}` says what can be done."))
        }
        JournalError::Fenced { .. } | JournalError::TooLarge { .. } => {
            Failure::no(error.to_string())
        }
        _ => Failure::cannot_run(error.to_string()),
    }
}

pub(crate) async fn events_of(journal: &Journal, run: &Run) -> Result<Vec<Event>, Failure> {
    repertoire::runs::events_of(journal, &run.id).await.map_err(failed)
}

pub(crate) fn now_ms() -> u64 {
    use repertoire_text::clock::{Clock as _, SystemClock};
    SystemClock.now_ms()
}
