//! `rep runs merge`: merges the changes of a run.

use camino::Utf8Path;
use repertoire::runs::{MergeError, merge_run};
use repertoire_git::worktree::{RunWorktrees, WorktreeError};
use repertoire_journal::Payload;
use repertoire_plan::PlanDeliveryMode;

use super::{RunArg, journal_failure};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::runs_text::describe_event;
use crate::schema::runs::DeliveredJson;
use crate::ui::{self, TerminalUi};

/// Arguments of `rep runs merge`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsMergeArgs {
    #[command(flatten)]
    run: RunArg,
    /// Squash the changes into one commit
    #[arg(long, conflicts_with = "branch")]
    squash: bool,
    /// Put the changes on a branch of their own, for a pull request
    #[arg(long)]
    branch: bool,
    /// Merge even if the run is not completed; nothing vouches for the work then
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &RunsMergeArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    build_runtime()?.block_on(async {
        let journal = ctx.require_journal().await?;
        let run = args.run.find_run(&journal).await?;
        let git = ctx.git_in(run.workspace.as_str())?;
        let worktrees = RunWorktrees::new(git.clone(), ctx.run_places().worktrees);
        let ending = match (args.squash, args.branch) {
            (true, _) => PlanDeliveryMode::Squash,
            (_, true) => PlanDeliveryMode::Branch,
            _ => PlanDeliveryMode::Merge,
        };
        let merged = merge_run(&journal, &run, &worktrees, &git, ending, args.force).await;
        let merged = merged.map_err(merge_failure)?;
        print_delivered(&merged.delivered, merged.is_new, ui)
    })
}

fn merge_failure(error: MergeError) -> CliFailure {
    let failure = CliFailure::negative_answer(error.to_string());
    match error {
        MergeError::Running { run } => {
            failure.hint(format!("Pause it first: `rep runs pause {}`.", run.short()))
        }
        MergeError::NotVouched { run, .. } => failure.hint(format!(
            "`rep runs diff {}` shows it; `--force` takes it all the same.",
            run.short()
        )),
        MergeError::Gone { run } => {
            failure.hint(format!("`rep runs diff {}` may still show what it changed.", run.short()))
        }
        MergeError::Place(error) => CliFailure::cannot_run(error.to_string()),
        MergeError::Refused { source, dir } => not_merged(failure, &source, &dir),
        MergeError::Journal(error) => journal_failure(error),
    }
}

fn not_merged(failure: CliFailure, error: &WorktreeError, dir: &Utf8Path) -> CliFailure {
    match error {
        WorktreeError::Conflict { branch, .. } => failure.hint(format!(
            "Merge it by hand: `git merge {branch}`; or `--branch` leaves it on a branch of its own."
        )),
        WorktreeError::Elsewhere { .. } | WorktreeError::Uncommitted { .. } => {
            failure.hint(format!("Look at {dir}."))
        }
        WorktreeError::BranchTaken { .. }
        | WorktreeError::IntoDirty { .. }
        | WorktreeError::NoSuchBranch { .. }
        | WorktreeError::InTheMiddle { .. } => failure,
        _ => CliFailure { exit: CliExit::CannotRun, ..failure },
    }
}

fn print_delivered(delivered: &Payload, is_new: bool, ui: &mut TerminalUi<'_>) -> CliResult {
    if let (true, Payload::Delivered { strategy, branch, commit }) = (ui.json, delivered) {
        ui.print_json(&DeliveredJson {
            strategy: strategy.clone(),
            branch: branch.clone(),
            commit: commit.clone(),
        })?;
        return Ok(CliExit::Done);
    }
    if is_new {
        let line = ui.paint(ui::GOOD, describe_event(delivered));
        writeln!(ui.out, "{line}")?;
        ui.print_note("`rep runs prune` removes worktrees whose work is merged")?;
    } else {
        writeln!(ui.out, "{}: there was nothing new", describe_event(delivered))?;
    }
    Ok(CliExit::Done)
}
