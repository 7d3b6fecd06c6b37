//! Restoring what a worktree has checked out: the run's branch.

use camino::Utf8Path;
use repertoire_text::fs::read_text;

use super::registry::list_checkouts;
use super::rescue::rescue_work;
use super::{PreparedWorktree, WorktreeError, WorktreeNames};
use crate::limits::REFLOG_BYTES_MAX;
use crate::repo::{GitClient, GitObjectId};

/// Aborts an unfinished rebase, merge or similar operation. Its state so far is rescued first.
pub(super) async fn abort_progress(
    worktree: &PreparedWorktree,
    names: &WorktreeNames,
    notes: &mut Vec<String>,
) -> Result<(), WorktreeError> {
    let git = &worktree.git;
    // Operations can be nested, such as a merge within a bisection.
    for _ in 0..3 {
        let Some(progress) = git.current_operation().await? else { return Ok(()) };
        if !git.is_clean().await? || !on_branch(git, &worktree.branch).await? {
            notes.push(rescue_work(git, &names.rescue).await?);
        }
        if git.abort_operation(progress).await.is_err() {
            // Uncommitted changes prevent the abort. They are on the rescue branch, so discard
            // them.
            git.reset_hard(&git.head_commit().await?).await?;
            if git.current_operation().await? == Some(progress) {
                git.abort_operation(progress).await?;
            }
        }
        notes.push(format!("{} was in progress and is aborted", progress.as_str()));
    }
    Ok(())
}

/// Returns true if `HEAD` is reachable from the branch, or does not exist.
async fn on_branch(git: &GitClient, branch: &str) -> Result<bool, WorktreeError> {
    match (git.find_commit("HEAD").await?, git.branch_tip(branch).await?) {
        (Some(head), Some(tip)) => Ok(git.is_ancestor(&head, &tip).await?),
        (head, _) => Ok(head.is_none()),
    }
}

/// Checks out the run's branch. Creates it again if it is missing.
pub(super) async fn attach_branch(
    worktree: &PreparedWorktree,
    names: &WorktreeNames,
    notes: &mut Vec<String>,
) -> Result<(), WorktreeError> {
    let (git, branch) = (&worktree.git, worktree.branch.as_str());
    refuse_elsewhere(worktree).await?;
    let tip = match git.branch_tip(branch).await? {
        Some(tip) => tip,
        None => {
            let tip = last_head(git, &worktree.git_dir).await?;
            let tip = tip.unwrap_or_else(|| worktree.base_oid.clone());
            git.set_branch(branch, &tip, None, "repertoire: made again").await?;
            notes.push(format!(
                "the branch `{branch}` was gone and is made again at {}",
                tip.short()
            ));
            tip
        }
    };
    if git.current_branch().await?.as_deref() == Some(branch) {
        return Ok(());
    }
    let head = git.find_commit("HEAD").await?.unwrap_or_else(|| tip.clone());
    if head != tip && !git.is_ancestor(&tip, &head).await? {
        return check_out(git, branch, names, &head, notes).await;
    }
    if head != tip {
        git.set_branch(branch, &head, Some(&tip), "repertoire: commits made elsewhere").await?;
        notes.push(format!("commits beside `{branch}` that build on it were taken into it"));
    }
    // `HEAD` and the branch are at the same commit, so neither files nor index change.
    let name = format!("refs/heads/{branch}");
    git.ok(&["symbolic-ref", "-m", "repertoire: attached again", "HEAD", &name]).await?;
    notes.push(format!("`{branch}` was not checked out and is again"));
    Ok(())
}

/// Checks out the branch instead of something else, which is rescued first unless a branch contains
/// it and it is clean.
async fn check_out(
    git: &GitClient,
    branch: &str,
    names: &WorktreeNames,
    head: &GitObjectId,
    notes: &mut Vec<String>,
) -> Result<(), WorktreeError> {
    let contains = format!("--contains={head}");
    let held = git.ok(&["for-each-ref", "--count=1", &contains, "refs/heads"]).await?;
    if held.is_empty() || !git.is_clean().await? {
        notes.push(rescue_work(git, &names.rescue).await?);
    }
    git.ok(&["checkout", "--force", "--quiet", "--no-guess", branch, "--"]).await?;
    notes.push(format!("something else was checked out; now it is `{branch}`"));
    Ok(())
}

/// Returns an error if the run's branch is checked out in another worktree.
async fn refuse_elsewhere(worktree: &PreparedWorktree) -> Result<(), WorktreeError> {
    let elsewhere = list_checkouts(&worktree.git)
        .await?
        .into_iter()
        .find(|(dir, branch)| *dir != worktree.dir && branch.as_ref() == Some(&worktree.branch));
    match elsewhere {
        Some((dir, _)) => {
            Err(WorktreeError::BranchElsewhere { branch: worktree.branch.clone(), dir })
        }
        None => Ok(()),
    }
}

/// The commit that was last checked out, according to the worktree's reflog.
async fn last_head(
    git: &GitClient,
    git_dir: &Utf8Path,
) -> Result<Option<GitObjectId>, WorktreeError> {
    let Ok(log) = read_text(&git_dir.join("logs/HEAD"), REFLOG_BYTES_MAX) else { return Ok(None) };
    let last = log.lines().last().and_then(|line| line.split(' ').nth(1));
    match last.and_then(GitObjectId::parse) {
        Some(oid) => Ok(git.find_commit(oid.as_str()).await?),
        None => Ok(None),
    }
}
