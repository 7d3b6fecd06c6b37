//! Removing worktrees. Pruning removes only those without unmerged or uncommitted work.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::registry::{Entry, Record, checkouts, find};
use super::{WorktreeError, Worktrees, finish, lock};
use crate::repo::{Git, Oid};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    pub removed: Vec<Removed>,
    pub kept: Vec<Kept>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    pub run: String,
    pub dir: Utf8PathBuf,
    /// Its branch, which was deleted as well.
    pub branch: String,
    /// The commit of the branch: `git branch NAME COMMIT` restores it.
    pub tip: Option<Oid>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub run: String,
    pub dir: Utf8PathBuf,
    pub why: Why,
}

/// The reason why a worktree is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Why {
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
pub enum Removal {
    /// Only if everything is committed and merged.
    IfSafe,
    /// Even if work is uncommitted or unmerged.
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweep {
    Look,
    Remove,
}

impl Worktrees {
    /// Removes the worktrees that are clean, merged and not in use. `in_use` returns true for a run
    /// that has a lease or is unfinished.
    pub async fn prune(
        &self,
        in_use: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Pruned, WorktreeError> {
        self.sweep(in_use, Sweep::Remove).await
    }

    /// Returns the result of [`Worktrees::prune`] without removing anything.
    pub async fn prunable(
        &self,
        in_use: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Pruned, WorktreeError> {
        self.sweep(in_use, Sweep::Look).await
    }

    async fn sweep(
        &self,
        in_use: &(dyn Fn(&str) -> bool + Sync),
        sweep: Sweep,
    ) -> Result<Pruned, WorktreeError> {
        let common = self.repo.common_dir().await?;
        let _lock = lock(&common).await?;
        let mut pruned = Pruned::default();
        for entry in self.ours(&common)? {
            let Some(record) = entry.record.clone() else { continue };
            let ended = match (in_use(&record.run), sweep) {
                (true, _) => Err(Why::InUse),
                (false, Sweep::Remove) => self.remove_if_safe(&entry, &record, &common).await,
                (false, Sweep::Look) => self.removed_if_safe(&entry, &record, &common).await,
            };
            match ended {
                Ok(removed) => pruned.removed.push(removed),
                Err(why) => pruned.kept.push(Kept { run: record.run, dir: entry.dir, why }),
            }
        }
        Ok(pruned)
    }

    /// The dry-run version of `remove_if_safe`.
    async fn removed_if_safe(
        &self,
        entry: &Entry,
        record: &Record,
        common: &Utf8Path,
    ) -> Result<Removed, Why> {
        if let Some(why) = self.why_keep(entry, record, common).await.map_err(could_not_remove)? {
            return Err(why);
        }
        let tip = self.repo.branch_tip(&record.branch).await;
        Ok(Removed {
            run: record.run.clone(),
            dir: entry.dir.clone(),
            branch: record.branch.clone(),
            tip: tip.map_err(|error| could_not_remove(error.into()))?,
        })
    }

    /// Removes the worktree of a run and its branch.
    pub async fn remove(&self, run: &str, removal: Removal) -> Result<Removed, WorktreeError> {
        let common = self.repo.common_dir().await?;
        let _lock = lock(&common).await?;
        let missing = || WorktreeError::NoSuchRun { run: run.to_owned() };
        let entry = find(&common, run)?.ok_or_else(missing)?;
        let record = entry.record.clone().ok_or_else(missing)?;
        match removal {
            Removal::Always => self.remove_entry(&entry, &record, removal).await,
            Removal::IfSafe => {
                let removed = self.remove_if_safe(&entry, &record, &common).await;
                let run = run.to_owned();
                removed.map_err(|why| WorktreeError::NotSafe { run, why: why.to_string() })
            }
        }
    }

    async fn remove_if_safe(
        &self,
        entry: &Entry,
        record: &Record,
        common: &Utf8Path,
    ) -> Result<Removed, Why> {
        match self.why_keep(entry, record, common).await.map_err(could_not_remove)? {
            Some(why) => Err(why),
            None => {
                self.remove_entry(entry, record, Removal::IfSafe).await.map_err(could_not_remove)
            }
        }
    }

    /// The reason to keep a worktree that is not in use; `None` if it can be removed.
    async fn why_keep(
        &self,
        entry: &Entry,
        record: &Record,
        common: &Utf8Path,
    ) -> Result<Option<Why>, WorktreeError> {
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
            || finish::has_landed(&self.repo, &record.branch, &tip).await?;
        if merged {
            return Ok(None);
        }
        let commits = self.repo.log(&base, &tip).await?.len();
        Ok(Some(Why::Unmerged { commits, base: record.base_branch.clone() }))
    }

    async fn remove_entry(
        &self,
        entry: &Entry,
        record: &Record,
        removal: Removal,
    ) -> Result<Removed, WorktreeError> {
        let dir = entry.dir.as_str();
        if entry.locked.is_some() {
            self.repo.ok(&["worktree", "unlock", dir]).await?;
        }
        if removal == Removal::Always && entry.dir.is_dir() {
            // Git refuses to remove a worktree with a broken link, even with `--force`.
            std::fs::remove_dir_all(&entry.dir)
                .map_err(|source| WorktreeError::io(&entry.dir, source))?;
        }
        // Without `--force`, git would look for changes again, including in submodules.
        self.repo.ok_reaching(&["worktree", "remove", "--force", dir], &[&self.root]).await?;
        let tip = self.repo.branch_tip(&record.branch).await?;
        if tip.is_some() && !self.is_checked_out(&record.branch).await? {
            self.repo.delete_branch(&record.branch).await?;
        }
        Ok(Removed {
            run: record.run.clone(),
            dir: entry.dir.clone(),
            branch: record.branch.clone(),
            tip,
        })
    }

    /// Returns true if a branch is checked out anywhere.
    async fn is_checked_out(&self, branch: &str) -> Result<bool, WorktreeError> {
        let found = checkouts(&self.repo).await?;
        Ok(found.iter().any(|(_, checked_out)| checked_out.as_deref() == Some(branch)))
    }
}

fn could_not_remove(error: WorktreeError) -> Why {
    Why::Failed(error.to_string())
}

async fn why_keep_files(git: &Git, record: &Record) -> Result<Option<Why>, WorktreeError> {
    if let Some(progress) = git.progress().await? {
        return Ok(Some(Why::InTheMiddle { what: progress.as_str().to_owned() }));
    }
    match git.status().await?.len() {
        0 => {}
        files => return Ok(Some(Why::Uncommitted { files })),
    }
    if git.branch().await?.as_ref() == Some(&record.branch) {
        Ok(None)
    } else {
        Ok(Some(Why::Elsewhere { branch: record.branch.clone() }))
    }
}
