//! `rep runs merge`: takes over what a run changed.

use repertoire_drive::git::{Git, Oid};
use repertoire_drive::plan::{EndingWord, deliver};
use repertoire_drive::worktree::{How, Owner, Worktree, WorktreeError, Worktrees};
use repertoire_journal::{Command, Journal, Payload, Run, RunStatus};

use super::{RunArg, events_of, failed};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::runs_text::words;
use crate::schema::runs::DeliveredJson;
use crate::ui::{self, Ui};

/// Which run, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Make one commit of it
    #[arg(long, conflicts_with = "branch")]
    squash: bool,
    /// Leave it on a branch of its own: for a pull request
    #[arg(long)]
    branch: bool,
    /// Take it although the run is not completed: nothing vouches for the work then
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    runtime()?.block_on(async {
        let journal = ctx.journal_of_runs().await?;
        let run = args.run.find(&journal).await?;
        may_be_taken(&run, args.force)?;
        let git = Git::new(run.workspace.as_str(), ctx.env.tool_environment(false));
        let worktrees = Worktrees::new(git.clone(), ctx.run_places().worktrees);
        let worktree = place(&worktrees, &git, &run).await?;
        let ending = match (args.squash, args.branch) {
            (true, _) => EndingWord::Squash,
            (_, true) => EndingWord::Branch,
            _ => EndingWord::Merge,
        };
        let delivered = deliver(&worktrees, &worktree, ending, &run.name).await;
        let delivered = delivered.map_err(|error| refused(error, &worktree))?;
        let is_new = remember(&journal, &run, &delivered).await?;
        tell(&delivered, is_new, ui)
    })
}

fn may_be_taken(run: &Run, force: bool) -> Result<(), Failure> {
    let short = run.id.short();
    match run.status {
        RunStatus::Completed => Ok(()),
        // Its worker commits to the branch at any time.
        RunStatus::Running => Err(Failure::no(format!("run {short} is running"))
            .hint(format!("Pause it first: `rep runs pause {short}`."))),
        _ if force => Ok(()),
        status => Err(Failure::no(format!(
            "run {short} is {status}, so nothing vouches for its work: reviews or checks are missing"
        ))
        .hint(format!("`rep runs diff {short}` shows it; `--force` takes it all the same."))),
    }
}

/// Where the run worked. A worktree whose folder is gone may still have its branch.
async fn place(worktrees: &Worktrees, git: &Git, run: &Run) -> Result<Worktree, Failure> {
    let short = run.id.short();
    let cannot = |error: WorktreeError| Failure::cannot_run(error.to_string());
    if let Some(worktree) = worktrees.of_run(run.id.as_str()).await.map_err(cannot)? {
        return Ok(worktree);
    }
    let gone = || {
        Failure::no(format!("run {short} has no worktree and no branch any more"))
            .hint(format!("`rep runs diff {short}` may still show what it changed."))
    };
    let known = run.worktree.as_ref().ok_or_else(gone)?;
    let tip = git.branch_tip(&known.branch).await.map_err(|error| cannot(error.into()))?;
    let base_oid = tip.and_then(|_| Oid::parse(&known.base)).ok_or_else(gone)?;
    let common_dir = git.common_dir().await.map_err(|error| cannot(error.into()))?;
    let dir = camino::Utf8PathBuf::from(&known.path);
    Ok(Worktree {
        run: run.id.to_string(),
        owner: Owner { worker: run.worker.clone().unwrap_or_default(), token: run.token },
        git: git.clone(),
        git_dir: common_dir.join("worktrees").join(dir.file_name().unwrap_or("gone")),
        dir,
        common_dir,
        branch: known.branch.clone(),
        base_branch: known.base_branch.clone(),
        base_oid,
        how: How::Adopted,
        set_up: true,
    })
}

fn refused(error: WorktreeError, worktree: &Worktree) -> Failure {
    let failure = Failure::no(error.to_string());
    match &error {
        WorktreeError::Conflict { branch, .. } => failure.hint(format!(
            "Merge it by hand: `git merge {branch}`; or `--branch` leaves it on a branch of its own."
        )),
        WorktreeError::Elsewhere { .. } | WorktreeError::Uncommitted { .. } => {
            failure.hint(format!("Look at {}.", worktree.dir))
        }
        WorktreeError::BranchTaken { .. }
        | WorktreeError::IntoDirty { .. }
        | WorktreeError::NoSuchBranch { .. }
        | WorktreeError::InTheMiddle { .. } => failure,
        _ => Failure { exit: Exit::CannotRun, ..failure },
    }
}

/// Writes down where the work went, once; says whether it is news.
async fn remember(journal: &Journal, run: &Run, delivered: &Payload) -> Result<bool, Failure> {
    let Payload::Delivered { strategy, branch, commit } = delivered else { return Ok(false) };
    let went_before = |payload: &Payload| matches!(payload, Payload::Delivered { strategy: how, branch: to, .. } if how == strategy && to == branch);
    let events = events_of(journal, run).await?;
    if commit.is_none() && events.iter().any(|event| went_before(&event.payload)) {
        return Ok(false);
    }
    journal.order(&run.id, Command::Event(delivered.clone())).await.map_err(failed)?;
    Ok(commit.is_some())
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
    match is_new {
        true => {
            let line = ui.paint(ui::GOOD, words(delivered));
            writeln!(ui.out, "{line}")?;
            ui.note("`rep runs prune` removes worktrees whose work is merged")?;
        }
        false => writeln!(ui.out, "{}: there was nothing new", words(delivered))?,
    }
    Ok(Exit::Done)
}
