//! Delivering a run's branch: merging, squashing or naming it.
//!
//! A merge is computed without a checkout, so that a conflict changes nothing. The resulting commit
//! is recorded before the target branch is moved to it: after a crash, the next worker finds the
//! record and does not merge twice.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::read_text;
use serde::{Deserialize, Serialize};

use super::registry::{WorktreeOwnerRecord, list_checkouts};
use super::stale_locks::set_setting;
use super::{PreparedWorktree, RunWorktrees, WorktreeError, lock_worktrees};
use crate::limits::OWNER_BYTES_MAX;
use crate::repo::{ChangeKind, GitClient, GitObjectId, MergeTreeResult};

/// The requested delivery of a run's branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum BranchDelivery {
    Keep,
    Merge {
        into: String,
    },
    /// Squash into one commit on a branch.
    Squash {
        into: String,
        /// The message of the commit.
        message: String,
    },
    /// Create another branch at the same commit.
    Branch {
        name: String,
    },
}

/// The result of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finished", rename_all = "snake_case")]
pub enum BranchDeliveryResult {
    Kept {
        branch: String,
    },
    Merged {
        /// The target branch.
        into: String,
        /// The new tip of the target branch.
        oid: GitObjectId,
    },
    /// The target branch already contained it.
    AlreadyMerged {
        into: String,
    },
    /// The run made no commits.
    Nothing,
    Branched {
        name: String,
        oid: GitObjectId,
    },
}

impl RunWorktrees {
    /// Delivers a run's branch and unlocks its worktree, which stays until [`RunWorktrees::prune`]
    /// removes it. Idempotent. Completes even if the caller drops the future: interrupted, it would
    /// leave the user's checkout half updated.
    pub async fn deliver_branch(
        &self,
        worktree: &PreparedWorktree,
        ending: &BranchDelivery,
    ) -> Result<BranchDeliveryResult, WorktreeError> {
        let (this, worktree, ending) = (self.clone(), worktree.clone(), ending.clone());
        let task = tokio::spawn(async move { this.deliver_uncancelled(&worktree, &ending).await });
        task.await.map_err(|error| self.join_error(error))?
    }

    async fn deliver_uncancelled(
        &self,
        worktree: &PreparedWorktree,
        ending: &BranchDelivery,
    ) -> Result<BranchDeliveryResult, WorktreeError> {
        let _lock = lock_worktrees(&worktree.common_dir).await?;
        if let Some(record) = WorktreeOwnerRecord::read(&worktree.git_dir)? {
            record.check_owner(&worktree.owner)?;
        }
        let finished = match ending {
            BranchDelivery::Keep => BranchDeliveryResult::Kept { branch: worktree.branch.clone() },
            BranchDelivery::Branch { name } => self.create_branch_alias(worktree, name).await?,
            BranchDelivery::Merge { into } => {
                self.merge_into(worktree, into, BranchMergeStrategy::Merge).await?
            }
            BranchDelivery::Squash { into, message } => {
                self.merge_into(worktree, into, BranchMergeStrategy::Squash(message)).await?
            }
        };
        if worktree.git_dir.join("locked").exists() {
            self.repo.ok(&["worktree", "unlock", worktree.dir.as_str()]).await?;
        }
        Ok(finished)
    }

    async fn create_branch_alias(
        &self,
        worktree: &PreparedWorktree,
        name: &str,
    ) -> Result<BranchDeliveryResult, WorktreeError> {
        self.repo.check_branch_name(name).await?;
        let tip = self.committed_tip(worktree).await?;
        match self.repo.branch_tip(name).await? {
            Some(there) if there == tip => {}
            Some(_) => return Err(WorktreeError::BranchTaken { branch: name.to_owned() }),
            None => self.repo.set_branch(name, &tip, None, "repertoire: finished").await?,
        }
        BranchDeliveryRecord { commit: tip.clone(), tip: tip.clone(), into: name.to_owned() }
            .write(&self.repo, &worktree.branch)
            .await?;
        Ok(BranchDeliveryResult::Branched { name: name.to_owned(), oid: tip })
    }

    /// The commit of the run's branch. Returns an error if the worktree has uncommitted changes.
    async fn committed_tip(
        &self,
        worktree: &PreparedWorktree,
    ) -> Result<GitObjectId, WorktreeError> {
        if worktree.dir.is_dir() {
            if worktree.git.current_branch().await?.as_ref() != Some(&worktree.branch) {
                let (dir, branch) = (worktree.dir.clone(), worktree.branch.clone());
                return Err(WorktreeError::Elsewhere { dir, branch });
            }
            let files: Vec<String> =
                worktree.git.status().await?.into_iter().map(|change| change.path).collect();
            if !files.is_empty() {
                return Err(WorktreeError::Uncommitted { dir: worktree.dir.clone(), files });
            }
        }
        let branch = worktree.branch.clone();
        let tip = self.repo.branch_tip(&branch).await?;
        tip.ok_or(WorktreeError::NoSuchBranch { branch })
    }

    async fn merge_into(
        &self,
        worktree: &PreparedWorktree,
        into: &str,
        way: BranchMergeStrategy<'_>,
    ) -> Result<BranchDeliveryResult, WorktreeError> {
        let tip = self.committed_tip(worktree).await?;
        let target = self.repo.branch_tip(into).await?;
        let target = target.ok_or(WorktreeError::NoSuchBranch { branch: into.to_owned() })?;
        if tip == worktree.base_oid {
            return Ok(BranchDeliveryResult::Nothing);
        }
        let landing = BranchDeliveryRecord::read(&self.repo, &worktree.branch).await?;
        let before = landing.filter(|landing| landing.tip == tip && landing.into == into);
        let landed = match &before {
            Some(landing) => landing.is_delivered(&self.repo).await?,
            None => false,
        };
        if landed || self.repo.is_ancestor(&tip, &target).await? {
            return Ok(BranchDeliveryResult::AlreadyMerged { into: into.to_owned() });
        }
        let commit = self.merge_commit(worktree, into, &target, &tip, way).await?;
        let Some(commit) = commit else {
            return Ok(BranchDeliveryResult::AlreadyMerged { into: into.to_owned() });
        };
        let place = self.checkout_of(into).await?;
        let landing = BranchDeliveryRecord { commit: commit.clone(), tip, into: into.to_owned() };
        landing.write(&self.repo, &worktree.branch).await?;
        match place {
            Some(checkout) => {
                let commit = commit.as_str();
                checkout
                    .ok(&["merge", "--ff-only", "--quiet", "--no-verify-signatures", commit])
                    .await?;
            }
            None => self.repo.set_branch(into, &commit, Some(&target), "repertoire: merge").await?,
        }
        Ok(BranchDeliveryResult::Merged { into: into.to_owned(), oid: commit })
    }

    /// The commit to move the target branch to; `None` if a squash would be empty.
    async fn merge_commit(
        &self,
        worktree: &PreparedWorktree,
        into: &str,
        target: &GitObjectId,
        tip: &GitObjectId,
        way: BranchMergeStrategy<'_>,
    ) -> Result<Option<GitObjectId>, WorktreeError> {
        let forward = self.repo.is_ancestor(target, tip).await?;
        if forward && way == BranchMergeStrategy::Merge {
            return Ok(Some(tip.clone()));
        }
        let tree = match self.repo.merge_tree(target, tip).await? {
            MergeTreeResult::Tree(tree) => tree,
            MergeTreeResult::Conflict(files) => {
                let (branch, into) = (worktree.branch.clone(), into.to_owned());
                return Err(WorktreeError::Conflict { branch, into, files });
            }
        };
        let commit = match way {
            BranchMergeStrategy::Squash(_) if tree == self.repo.tree_of(target).await? => {
                return Ok(None);
            }
            BranchMergeStrategy::Squash(message) => {
                self.repo.commit_tree(&tree, &[target], message).await?
            }
            BranchMergeStrategy::Merge => {
                let message = format!("Merge branch '{}' into {into}\n", worktree.branch);
                self.repo.commit_tree(&tree, &[target, tip], &message).await?
            }
        };
        Ok(Some(commit))
    }

    /// The checkout of a branch, if it is checked out. Returns an error if tracked files there have
    /// changes; git itself refuses to overwrite untracked ones.
    async fn checkout_of(&self, into: &str) -> Result<Option<GitClient>, WorktreeError> {
        for (dir, branch) in list_checkouts(&self.repo).await? {
            if !dir.is_dir() {
                continue;
            }
            let git = self.repo.in_dir(&dir);
            let here = branch.as_deref() == Some(into);
            let progress = git.current_operation().await?;
            match progress {
                Some(progress) if here || is_held(&git.git_dir().await?, into) => {
                    return Err(WorktreeError::InTheMiddle { dir, progress });
                }
                _ if !here => continue,
                _ => {}
            }
            let changes = git.status().await?.into_iter();
            let tracked = changes.filter(|change| change.kind != ChangeKind::Untracked);
            let files: Vec<String> = tracked.map(|change| change.path).collect();
            return if files.is_empty() {
                Ok(Some(git))
            } else {
                Err(WorktreeError::IntoDirty { into: into.to_owned(), dir, files })
            };
        }
        Ok(None)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BranchMergeStrategy<'a> {
    Merge,
    Squash(&'a str),
}

/// Returns true if a rebase or a bisection will return to the branch, which is not checked out in
/// the meantime.
fn is_held(git_dir: &Utf8Path, branch: &str) -> bool {
    let names = ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"];
    names.iter().any(|name| {
        let path: Utf8PathBuf = git_dir.join(name);
        read_text(&path, OWNER_BYTES_MAX).is_ok_and(|text| {
            let text = text.trim();
            text.strip_prefix("refs/heads/").unwrap_or(text) == branch
        })
    })
}

/// The record of a delivery, written before the target branch is moved.
struct BranchDeliveryRecord {
    commit: GitObjectId,
    tip: GitObjectId,
    into: String,
}

impl BranchDeliveryRecord {
    fn setting_key(branch: &str) -> String {
        format!("branch.{branch}.repertoireLanding")
    }

    async fn read(
        repo: &GitClient,
        branch: &str,
    ) -> Result<Option<BranchDeliveryRecord>, WorktreeError> {
        let Some(text) = repo.config_value(&BranchDeliveryRecord::setting_key(branch)).await?
        else {
            return Ok(None);
        };
        let mut words = text.splitn(3, ' ');
        let mut oid = || words.next().and_then(GitObjectId::parse);
        let (commit, tip) = (oid(), oid());
        Ok(match (commit, tip, words.next()) {
            (Some(commit), Some(tip), Some(into)) => {
                Some(BranchDeliveryRecord { commit, tip, into: into.to_owned() })
            }
            _ => None,
        })
    }

    async fn write(&self, repo: &GitClient, branch: &str) -> Result<(), WorktreeError> {
        let value = format!("{} {} {}", self.commit, self.tip, self.into);
        set_setting(repo, &BranchDeliveryRecord::setting_key(branch), &value).await
    }

    async fn is_delivered(&self, repo: &GitClient) -> Result<bool, WorktreeError> {
        let there = repo.find_commit(self.commit.as_str()).await?;
        match (there, repo.branch_tip(&self.into).await?) {
            (Some(commit), Some(tip)) => Ok(repo.is_ancestor(&commit, &tip).await?),
            _ => Ok(false),
        }
    }
}

/// Returns true if all of a run's branch has been delivered.
pub(super) async fn is_branch_delivered(
    repo: &GitClient,
    branch: &str,
    tip: &GitObjectId,
) -> Result<bool, WorktreeError> {
    match BranchDeliveryRecord::read(repo, branch).await? {
        Some(landing) if landing.tip == *tip => landing.is_delivered(repo).await,
        _ => Ok(false),
    }
}
