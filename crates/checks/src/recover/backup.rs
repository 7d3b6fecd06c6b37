//! The files as they are, so that they can be so again.

use std::collections::BTreeSet;

use super::RecoverError;
use repertoire_git::repo::{Git, GitError, Oid, TreeId};

/// A state that can be restored: commit, branch and files, untracked ones included and ignored ones not.
#[derive(Clone, Debug)]
pub struct Backup {
    /// A commit with all files. No branch leads to it.
    pub commit: Oid,
    tree: TreeId,
    head: Oid,
    branch: Option<String>,
    ignored: BTreeSet<String>,
}

impl Backup {
    /// Takes one. Nothing is changed by it.
    pub async fn take(git: &Git) -> Result<Self, GitError> {
        let (head, branch) = (git.head().await?, git.branch().await?);
        let (tree, ignored) = (git.tree_of_work().await?, git.ignored().await?);
        let commit = git.commit_tree(&tree, &[&head], "Before an attempt to recover").await?;
        Ok(Backup { commit, tree, head, branch, ignored })
    }

    /// The one that a worker took and could not come back to. What is ignored was not touched by taking it, and nobody knows
    /// any more what was there then; so what is there now stays.
    pub async fn found(git: &Git, commit: Oid) -> Result<Self, GitError> {
        let tree = git.tree_of(&commit).await?;
        let head = git.resolve(&format!("{commit}^")).await?;
        let (branch, ignored) = (git.branch().await?, git.ignored().await?);
        Ok(Backup { commit, tree, head, branch, ignored })
    }

    /// The files.
    pub(super) fn tree(&self) -> &TreeId {
        &self.tree
    }

    /// Whether what is checked out is the same commit of the same branch. Files may differ.
    pub(super) async fn is_checked_out(&self, git: &Git) -> Result<bool, RecoverError> {
        Ok(git.head().await? == self.head && git.branch().await? == self.branch)
    }

    /// Whether both are the same state of the same branch.
    pub fn is_same(&self, other: &Backup) -> bool {
        (&self.tree, &self.head, &self.branch) == (&other.tree, &other.head, &other.branch)
    }

    /// Restores the state, and makes sure that it is the same.
    pub async fn restore(&self, git: &Git) -> Result<(), RecoverError> {
        let restored = self.try_restore(git).await;
        match restored {
            Ok(()) => Ok(()),
            Err(why) => {
                // Somebody will need it.
                let name = format!("backup/{}", self.commit.short());
                let kept = git.keep_commit(&name, &self.commit).await;
                let why = match kept {
                    Ok(()) => why,
                    Err(error) => format!("{why}; {error}"),
                };
                Err(RecoverError::NotRolledBack { backup: self.commit.to_string(), why })
            }
        }
    }

    async fn try_restore(&self, git: &Git) -> Result<(), String> {
        let said = |error: repertoire_git::repo::GitError| error.to_string();
        if git.branch().await.map_err(said)? != self.branch {
            return Err("another branch is checked out".to_owned());
        }
        if git.head().await.map_err(said)? != self.head {
            git.reset_branch(&self.head).await.map_err(said)?;
        }
        git.restore_files(&self.tree, &self.ignored).await.map_err(said)?;
        match git.tree_of_work().await.map_err(said)? == self.tree {
            true => Ok(()),
            false => Err("the files differ from the backup".to_owned()),
        }
    }
}
