//! Removing worktrees. Pruning removes only those without unmerged or uncommitted work.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::registry::{RegisteredWorktree, WorktreeOwnerRecord, find_worktree, list_checkouts};
use super::{RunWorktrees, WorktreeError, finish, lock_worktrees};
use crate::repo::{GitClient, GitObjectId};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreePruneResult {
    pub removed: Vec<RemovedWorktree>,
    pub kept: Vec<KeptWorktree>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedWorktree {
    pub run: String,
    pub dir: Utf8PathBuf,
    /// Its branch, which was deleted as well.
    pub branch: String,
    /// The commit of the branch: `git branch NAME COMMIT` restores it.
    pub tip: Option<GitObjectId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptWorktree {
    pub run: String,
    pub dir: Utf8PathBuf,
    pub why: WorktreeKeepReason,
}

/// The reason why a worktree is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum WorktreeKeepReason {
    /// The run has a lease or is unfinished.
    #[error("its run is not finished")]
    InUse,
    #[error("{files} files have changes that are not committed")]
    Uncommitted {
        /// The number of files.
        files: usize,
    },
    #[error("it is in the middle of {what}")]
    InTheMiddle { what: String },
    /// The branch has commits that are not in the base branch.
    #[error("{commits} commits are not in `{base}`")]
    Unmerged {
        /// The number of commits.
        commits: usize,
        base: String,
    },
    /// Something other than the run's branch is checked out.
    #[error("`{branch}` is not what is checked out")]
    Elsewhere { branch: String },
    /// The worktree could not be examined or removed.
    #[error("{0}")]
    Failed(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorktreeRemovalMode {
    /// Only if everything is committed and merged.
    IfSafe,
    /// Even if work is uncommitted or unmerged.
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorktreeSweepMode {
    Look,
    Remove,
}

impl RunWorktrees {
    /// Removes the worktrees that are clean, merged and not in use. `in_use` returns true for a run
    /// that has a lease or is unfinished.
    pub async fn prune(
        &self,
        in_use: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<WorktreePruneResult, WorktreeError> {
        self.sweep_worktrees(in_use, WorktreeSweepMode::Remove).await
    }

    /// Returns the result of [`RunWorktrees::prune`] without removing anything.
    pub async fn preview_prune(
        &self,
        in_use: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<WorktreePruneResult, WorktreeError> {
        self.sweep_worktrees(in_use, WorktreeSweepMode::Look).await
    }

    async fn sweep_worktrees(
        &self,
        in_use: &(dyn Fn(&str) -> bool + Sync),
        sweep: WorktreeSweepMode,
    ) -> Result<WorktreePruneResult, WorktreeError> {
        let common = self.repo.common_dir().await?;
        let _lock = lock_worktrees(&common).await?;
        let mut pruned = WorktreePruneResult::default();
        for entry in self.own_worktrees(&common)? {
            let Some(record) = entry.record.clone() else { continue };
            let ended = match (in_use(&record.run), sweep) {
                (true, _) => Err(WorktreeKeepReason::InUse),
                (false, WorktreeSweepMode::Remove) => {
                    self.remove_if_safe(&entry, &record, &common).await
                }
                (false, WorktreeSweepMode::Look) => {
                    self.preview_removal(&entry, &record, &common).await
                }
            };
            match ended {
                Ok(removed) => pruned.removed.push(removed),
                Err(why) => pruned.kept.push(KeptWorktree { run: record.run, dir: entry.dir, why }),
            }
        }
        Ok(pruned)
    }

    /// The dry-run version of `remove_if_safe`.
    async fn preview_removal(
        &self,
        entry: &RegisteredWorktree,
        record: &WorktreeOwnerRecord,
        common: &Utf8Path,
    ) -> Result<RemovedWorktree, WorktreeKeepReason> {
        if let Some(why) =
            self.keep_reason(entry, record, common).await.map_err(could_not_remove)?
        {
            return Err(why);
        }
        let tip = self.repo.branch_tip(&record.branch).await;
        Ok(RemovedWorktree {
            run: record.run.clone(),
            dir: entry.dir.clone(),
            branch: record.branch.clone(),
            tip: tip.map_err(|error| could_not_remove(error.into()))?,
        })
    }

    /// Removes the worktree of a run and its branch.
    pub async fn remove(
        &self,
        run: &str,
        removal: WorktreeRemovalMode,
    ) -> Result<RemovedWorktree, WorktreeError> {
        let common = self.repo.common_dir().await?;
        let _lock = lock_worktrees(&common).await?;
        let missing = || WorktreeError::NoSuchRun { run: run.to_owned() };
        let entry = find_worktree(&common, run)?.ok_or_else(missing)?;
        let record = entry.record.clone().ok_or_else(missing)?;
        match removal {
            WorktreeRemovalMode::Always => self.remove_entry(&entry, &record, removal).await,
            WorktreeRemovalMode::IfSafe => {
                let removed = self.remove_if_safe(&entry, &record, &common).await;
                let run = run.to_owned();
                removed.map_err(|why| WorktreeError::NotSafe { run, why: why.to_string() })
            }
        }
    }

    async fn remove_if_safe(
        &self,
        entry: &RegisteredWorktree,
        record: &WorktreeOwnerRecord,
        common: &Utf8Path,
    ) -> Result<RemovedWorktree, WorktreeKeepReason> {
        match self.keep_reason(entry, record, common).await.map_err(could_not_remove)? {
            Some(why) => Err(why),
            None => self
                .remove_entry(entry, record, WorktreeRemovalMode::IfSafe)
                .await
                .map_err(could_not_remove),
        }
    }

    /// The reason to keep a worktree that is not in use; `None` if it can be removed.
    async fn keep_reason(
        &self,
        entry: &RegisteredWorktree,
        record: &WorktreeOwnerRecord,
        common: &Utf8Path,
    ) -> Result<Option<WorktreeKeepReason>, WorktreeError> {
        if entry.dir.is_dir() {
            let git = self.repo.in_worktree(&entry.dir, &entry.git_dir, common);
            if let Some(why) = why_keep_files(&git, record).await? {
                return Ok(Some(why));
            }
        }
        let Some(tip) = self.repo.branch_tip(&record.branch).await? else { return Ok(None) };
        let base = self.repo.branch_tip(&record.base_branch).await?;
        let base = base.unwrap_or_else(|| record.base_oid.clone());
        let merged = tip == record.base_oid
            || self.repo.is_ancestor(&tip, &base).await?
            || finish::is_branch_delivered(&self.repo, &record.branch, &tip).await?;
        if merged {
            return Ok(None);
        }
        let commits = self.repo.commits_between(&base, &tip).await?.len();
        Ok(Some(WorktreeKeepReason::Unmerged { commits, base: record.base_branch.clone() }))
    }

    async fn remove_entry(
        &self,
        entry: &RegisteredWorktree,
        record: &WorktreeOwnerRecord,
        removal: WorktreeRemovalMode,
    ) -> Result<RemovedWorktree, WorktreeError> {
        let dir = entry.dir.as_str();
        if entry.locked.is_some() {
            self.repo.ok(&["worktree", "unlock", dir]).await?;
        }
        if removal == WorktreeRemovalMode::Always && entry.dir.is_dir() {
            // Git refuses to remove a worktree with a broken link, even with `--force`.
            std::fs::remove_dir_all(&entry.dir)
                .map_err(|source| WorktreeError::from_io(&entry.dir, source))?;
        }
        // Without `--force`, git would look for changes again, including in submodules.
        self.repo
            .run_checked_reaching(&["worktree", "remove", "--force", dir], &[&self.root])
            .await?;
        let tip = self.repo.branch_tip(&record.branch).await?;
        if tip.is_some() && !self.is_checked_out(&record.branch).await? {
            self.repo.delete_branch(&record.branch).await?;
        }
        Ok(RemovedWorktree {
            run: record.run.clone(),
            dir: entry.dir.clone(),
            branch: record.branch.clone(),
            tip,
        })
    }

    /// Returns true if a branch is checked out anywhere.
    async fn is_checked_out(&self, branch: &str) -> Result<bool, WorktreeError> {
        let found = list_checkouts(&self.repo).await?;
        Ok(found.iter().any(|(_, checked_out)| checked_out.as_deref() == Some(branch)))
    }
}

fn could_not_remove(error: WorktreeError) -> WorktreeKeepReason {
    WorktreeKeepReason::Failed(error.to_string())
}

async fn why_keep_files(
    git: &GitClient,
    record: &WorktreeOwnerRecord,
) -> Result<Option<WorktreeKeepReason>, WorktreeError> {
    if let Some(progress) = git.current_operation().await? {
        return Ok(Some(WorktreeKeepReason::InTheMiddle { what: progress.as_str().to_owned() }));
    }
    match git.status().await?.len() {
        0 => {}
        files => return Ok(Some(WorktreeKeepReason::Uncommitted { files })),
    }
    if git.current_branch().await?.as_ref() == Some(&record.branch) {
        Ok(None)
    } else {
        Ok(Some(WorktreeKeepReason::Elsewhere { branch: record.branch.clone() }))
    }
}
