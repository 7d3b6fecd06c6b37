//! Delivering the work of a run on request.

use camino::Utf8PathBuf;
use repertoire_journal::{Command, Journal, JournalError, Payload, Run, RunId, RunStatus};

use super::events_of;
use repertoire_git::repo::{GitClient, GitObjectId};
use repertoire_git::worktree::{
    PreparedWorktree, RunWorktrees, WorktreeError, WorktreeOwner, WorktreePreparation,
};
use repertoire_plan::{PlanDeliveryMode, deliver_work};

/// The reason why a run's work was not delivered. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// Its worker may commit to the branch at any time.
    #[error("run {} is running", .run.short())]
    Running { run: RunId },
    /// The run is not completed.
    #[error("run {} is {status}, so nothing vouches for its work: reviews or checks are missing", .run.short())]
    NotVouched { run: RunId, status: RunStatus },
    /// The run has neither a worktree nor a branch.
    #[error("run {} has no worktree and no branch any more", .run.short())]
    Gone { run: RunId },
    /// The worktree cannot be examined.
    #[error("{0}")]
    Place(WorktreeError),
    #[error("{source}")]
    Refused {
        source: Box<WorktreeError>,
        /// The worktree.
        dir: Utf8PathBuf,
    },
    #[error(transparent)]
    Journal(#[from] JournalError),
}

#[derive(Clone, Debug)]
pub struct RunDelivery {
    /// Always [`Payload::Delivered`].
    pub delivered: Payload,
    /// True if the work went to a new place: false if it stays on its branch or was already merged.
    pub is_new: bool,
}

/// Delivers the work of a run. `force` is needed for a run that is not completed.
///
/// # Errors
///
/// Fails with a [`MergeError`] if the work cannot be delivered.
pub async fn merge_run(
    journal: &Journal,
    run: &Run,
    worktrees: &RunWorktrees,
    git: &GitClient,
    ending: PlanDeliveryMode,
    force: bool,
) -> Result<RunDelivery, MergeError> {
    check_deliverable(run, force)?;
    let worktree = find_run_worktree(worktrees, git, run).await?;
    let delivered = deliver_work(worktrees, &worktree, ending, &run.name).await;
    let delivered = delivered.map_err(|error| MergeError::Refused {
        source: Box::new(error),
        dir: worktree.dir.clone(),
    })?;
    let is_new = record_delivery(journal, run, &delivered).await?;
    Ok(RunDelivery { delivered, is_new })
}

fn check_deliverable(run: &Run, force: bool) -> Result<(), MergeError> {
    match run.status {
        RunStatus::Completed => Ok(()),
        RunStatus::Running => Err(MergeError::Running { run: run.id.clone() }),
        _ if force => Ok(()),
        status => Err(MergeError::NotVouched { run: run.id.clone(), status }),
    }
}

/// The worktree of a run. If its folder is gone, its branch may still exist.
async fn find_run_worktree(
    worktrees: &RunWorktrees,
    git: &GitClient,
    run: &Run,
) -> Result<PreparedWorktree, MergeError> {
    if let Some(worktree) = worktrees.of_run(run.id.as_str()).await.map_err(MergeError::Place)? {
        return Ok(worktree);
    }
    let gone = || MergeError::Gone { run: run.id.clone() };
    let known = run.worktree.as_ref().ok_or_else(gone)?;
    let cannot = |error: repertoire_git::repo::GitError| MergeError::Place(error.into());
    let tip = git.branch_tip(&known.branch).await.map_err(cannot)?;
    let base_oid = tip.and_then(|_| GitObjectId::parse(&known.base)).ok_or_else(gone)?;
    let common_dir = git.common_dir().await.map_err(cannot)?;
    let dir = Utf8PathBuf::from(&known.path);
    Ok(PreparedWorktree {
        run: run.id.to_string(),
        owner: WorktreeOwner { worker: run.worker.clone().unwrap_or_default(), token: run.token },
        git: git.clone(),
        git_dir: common_dir.join("worktrees").join(dir.file_name().unwrap_or("gone")),
        dir,
        common_dir,
        branch: known.branch.clone(),
        base_branch: known.base_branch.clone(),
        base_oid,
        how: WorktreePreparation::Adopted,
        set_up: true,
    })
}

/// Records the delivery, unless it was recorded before. Returns true if it was not, and has a commit.
async fn record_delivery(
    journal: &Journal,
    run: &Run,
    delivered: &Payload,
) -> Result<bool, MergeError> {
    let Payload::Delivered { commit, .. } = delivered else { return Ok(false) };
    let events = events_of(journal, &run.id).await?;
    if events.iter().any(|event| is_same_delivery(&event.payload, delivered)) {
        return Ok(false);
    }
    journal.order(&run.id, Command::Event(delivered.clone())).await?;
    Ok(commit.is_some())
}

/// Returns true if a recorded delivery says all that a new one would say. A delivery without a
/// commit had nothing to do, because an earlier one to the same place has done it.
fn is_same_delivery(recorded: &Payload, delivered: &Payload) -> bool {
    match (recorded, delivered) {
        (
            Payload::Delivered { strategy: how, branch: to, commit: before },
            Payload::Delivered { strategy, branch, commit },
        ) => how == strategy && to == branch && (commit.is_none() || commit == before),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(branch: &str, commit: Option<&str>) -> Payload {
        let (strategy, branch) = ("branch".to_owned(), branch.to_owned());
        Payload::Delivered { strategy, branch, commit: commit.map(str::to_owned) }
    }

    #[test]
    fn a_delivery_is_recorded_once_for_each_commit() {
        let recorded = delivered("tidy", Some("c1"));
        assert!(is_same_delivery(&recorded, &delivered("tidy", Some("c1"))), "the branch is there");
        assert!(is_same_delivery(&recorded, &delivered("tidy", None)), "there is nothing to do");
        assert!(!is_same_delivery(&recorded, &delivered("tidy", Some("c2"))), "more work");
        assert!(!is_same_delivery(&recorded, &delivered("other", Some("c1"))));
        assert!(!is_same_delivery(&delivered("tidy", None), &recorded), "the commit is news");
    }
}
