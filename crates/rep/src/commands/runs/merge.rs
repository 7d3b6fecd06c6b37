//! `rep runs merge`: merges the changes of a run.

use camino::Utf8Path;
use repertoire::runs::{MergeError, merge};
use repertoire_git::worktree::{WorktreeError, Worktrees};
use repertoire_journal::Payload;
use repertoire_plan::EndingWord;

use super::{RunArg, failed};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::runs_text::words;
use crate::schema::runs::DeliveredJson;
use crate::ui::{self, Ui};

/// Arguments of `rep runs merge`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
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

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    runtime()?.block_on(async {
        let journal = ctx.journal_of_runs().await?;
        let run = args.run.find(&journal).await?;
        let git = ctx.git(run.workspace.as_str())?;
        let worktrees = Worktrees::new(git.clone(), ctx.run_places().worktrees);
        let ending = match (args.squash, args.branch) {
            (true, _) => EndingWord::Squash,
            (_, true) => EndingWord::Branch,
            _ => EndingWord::Merge,
        };
        let merged = merge(&journal, &run, &worktrees, &git, ending, args.force).await;
        let merged = merged.map_err(refused)?;
        tell(&merged.delivered, merged.is_new, ui)
    })
}

fn refused(error: MergeError) -> Failure {
    let failure = Failure::no(error.to_string());
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
        MergeError::Place(error) => Failure::cannot_run(error.to_string()),
        MergeError::Refused { source, dir } => not_merged(failure, &source, &dir),
        MergeError::Journal(error) => failed(error),
    }
}

fn not_merged(failure: Failure, error: &WorktreeError, dir: &Utf8Path) -> Failure {
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
        _ => Failure { exit: Exit::CannotRun, ..failure },
    }
}

fn tell(delivered: &Payload, is_new: bool, ui: &mut Ui<'_>) -> Outcome {
    if let (true, Payload::Delivered { strategy, branch, commit }) = (ui.json, delivered) {
        ui.print_json(&DeliveredJson {
            strategy: strategy.clone(),
            branch: branch.clone(),
            commit: commit.clone(),
        })?;
        return Ok(Exit::Done);
    }
    if is_new {
        let line = ui.paint(ui::GOOD, words(delivered));
        writeln!(ui.out, "{line}")?;
        ui.note("`rep runs prune` removes worktrees whose work is merged")?;
    } else {
        writeln!(ui.out, "{}: there was nothing new", words(delivered))?;
    }
    Ok(Exit::Done)
}
