//! Delivering a run's branch: merging, squashing or naming it.
//!
//! A merge is computed without a checkout, so that a conflict changes nothing. The resulting commit
//! is recorded before the target branch is moved to it: after a crash, the next worker finds the
//! record and does not merge twice.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::read_text;
use serde::{Deserialize, Serialize};

use super::registry::{Record, checkouts};
use super::stale::set_setting;
use super::{Worktree, WorktreeError, Worktrees, lock};
use crate::limits::OWNER_BYTES_MAX;
use crate::repo::{ChangeKind, Git, Merged, Oid};

/// The requested delivery of a run's branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
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
pub enum Finished {
    Kept {
        branch: String,
    },
    Merged {
        /// The target branch.
        into: String,
        /// The new tip of the target branch.
        oid: Oid,
    },
    /// The target branch already contained it.
    AlreadyMerged {
        into: String,
    },
    /// The run made no commits.
    Nothing,
    Branched {
        name: String,
        oid: Oid,
    },
}

impl Worktrees {
    /// Delivers a run's branch and unlocks its worktree, which stays until [`Worktrees::prune`]
    /// removes it. Idempotent. Completes even if the caller drops the future: interrupted, it would
    /// leave the user's checkout half updated.
    pub async fn finish(
        &self,
        worktree: &Worktree,
        ending: &Ending,
    ) -> Result<Finished, WorktreeError> {
        let (this, worktree, ending) = (self.clone(), worktree.clone(), ending.clone());
        let task = tokio::spawn(async move { this.finish_to_the_end(&worktree, &ending).await });
        task.await.map_err(|error| self.broke_off(error))?
    }

    async fn finish_to_the_end(
        &self,
        worktree: &Worktree,
        ending: &Ending,
    ) -> Result<Finished, WorktreeError> {
        let _lock = lock(&worktree.common_dir).await?;
        if let Some(record) = Record::read(&worktree.git_dir)? {
            record.check(&worktree.owner)?;
        }
        let finished = match ending {
            Ending::Keep => Finished::Kept { branch: worktree.branch.clone() },
            Ending::Branch { name } => self.name(worktree, name).await?,
            Ending::Merge { into } => self.land(worktree, into, Way::Merge).await?,
            Ending::Squash { into, message } => {
                self.land(worktree, into, Way::Squash(message)).await?
            }
        };
        if worktree.git_dir.join("locked").exists() {
            self.repo.ok(&["worktree", "unlock", worktree.dir.as_str()]).await?;
        }
        Ok(finished)
    }

    async fn name(&self, worktree: &Worktree, name: &str) -> Result<Finished, WorktreeError> {
        self.repo.check_branch_name(name).await?;
        let tip = self.tip(worktree).await?;
        match self.repo.branch_tip(name).await? {
            Some(there) if there == tip => {}
            Some(_) => return Err(WorktreeError::BranchTaken { branch: name.to_owned() }),
            None => self.repo.set_branch(name, &tip, None, "repertoire: finished").await?,
        }
        Landing { commit: tip.clone(), tip: tip.clone(), into: name.to_owned() }
            .write(&self.repo, &worktree.branch)
            .await?;
        Ok(Finished::Branched { name: name.to_owned(), oid: tip })
    }

    /// The commit of the run's branch. Returns an error if the worktree has uncommitted changes.
    async fn tip(&self, worktree: &Worktree) -> Result<Oid, WorktreeError> {
        if worktree.dir.is_dir() {
            if worktree.git.branch().await?.as_ref() != Some(&worktree.branch) {
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

    async fn land(
        &self,
        worktree: &Worktree,
        into: &str,
        way: Way<'_>,
    ) -> Result<Finished, WorktreeError> {
        let tip = self.tip(worktree).await?;
        let target = self.repo.branch_tip(into).await?;
        let target = target.ok_or(WorktreeError::NoSuchBranch { branch: into.to_owned() })?;
        if tip == worktree.base_oid {
            return Ok(Finished::Nothing);
        }
        let landing = Landing::read(&self.repo, &worktree.branch).await?;
        let before = landing.filter(|landing| landing.tip == tip && landing.into == into);
        let landed = match &before {
            Some(landing) => landing.has_landed(&self.repo).await?,
            None => false,
        };
        if landed || self.repo.is_ancestor(&tip, &target).await? {
            return Ok(Finished::AlreadyMerged { into: into.to_owned() });
        }
        let commit = self.merge_commit(worktree, into, &target, &tip, way).await?;
        let Some(commit) = commit else {
            return Ok(Finished::AlreadyMerged { into: into.to_owned() });
        };
        let place = self.place_of(into).await?;
        let landing = Landing { commit: commit.clone(), tip, into: into.to_owned() };
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
        Ok(Finished::Merged { into: into.to_owned(), oid: commit })
    }

    /// The commit to move the target branch to; `None` if a squash would be empty.
    async fn merge_commit(
        &self,
        worktree: &Worktree,
        into: &str,
        target: &Oid,
        tip: &Oid,
        way: Way<'_>,
    ) -> Result<Option<Oid>, WorktreeError> {
        let forward = self.repo.is_ancestor(target, tip).await?;
        if forward && way == Way::Merge {
            return Ok(Some(tip.clone()));
        }
        let tree = match self.repo.merge_tree(target, tip).await? {
            Merged::Tree(tree) => tree,
            Merged::Conflict(files) => {
                let (branch, into) = (worktree.branch.clone(), into.to_owned());
                return Err(WorktreeError::Conflict { branch, into, files });
            }
        };
        let commit = match way {
            Way::Squash(_) if tree == self.repo.tree_of(target).await? => return Ok(None),
            Way::Squash(message) => self.repo.commit_tree(&tree, &[target], message).await?,
            Way::Merge => {
                let message = format!("Merge branch '{}' into {into}\n", worktree.branch);
                self.repo.commit_tree(&tree, &[target, tip], &message).await?
            }
        };
        Ok(Some(commit))
    }

    /// The checkout of a branch, if it is checked out. Returns an error if tracked files there have
    /// changes; git itself refuses to overwrite untracked ones.
    async fn place_of(&self, into: &str) -> Result<Option<Git>, WorktreeError> {
        for (dir, branch) in checkouts(&self.repo).await? {
            if !dir.is_dir() {
                continue;
            }
            let git = self.repo.in_dir(&dir);
            let here = branch.as_deref() == Some(into);
            let progress = git.progress().await?;
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
enum Way<'a> {
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
struct Landing {
    commit: Oid,
    tip: Oid,
    into: String,
}

impl Landing {
    fn key(branch: &str) -> String {
        format!("branch.{branch}.repertoireLanding")
    }

    async fn read(repo: &Git, branch: &str) -> Result<Option<Landing>, WorktreeError> {
        let Some(text) = repo.setting(&Landing::key(branch)).await? else { return Ok(None) };
        let mut words = text.splitn(3, ' ');
        let mut oid = || words.next().and_then(Oid::parse);
        let (commit, tip) = (oid(), oid());
        Ok(match (commit, tip, words.next()) {
            (Some(commit), Some(tip), Some(into)) => {
                Some(Landing { commit, tip, into: into.to_owned() })
            }
            _ => None,
        })
    }

    async fn write(&self, repo: &Git, branch: &str) -> Result<(), WorktreeError> {
        let value = format!("{} {} {}", self.commit, self.tip, self.into);
        set_setting(repo, &Landing::key(branch), &value).await
    }

    async fn has_landed(&self, repo: &Git) -> Result<bool, WorktreeError> {
        let there = repo.find(self.commit.as_str()).await?;
        match (there, repo.branch_tip(&self.into).await?) {
            (Some(commit), Some(tip)) => Ok(repo.is_ancestor(&commit, &tip).await?),
            _ => Ok(false),
        }
    }
}

/// Returns true if all of a run's branch has been delivered.
pub(super) async fn has_landed(repo: &Git, branch: &str, tip: &Oid) -> Result<bool, WorktreeError> {
    match Landing::read(repo, branch).await? {
        Some(landing) if landing.tip == *tip => landing.has_landed(repo).await,
        _ => Ok(false),
    }
}
