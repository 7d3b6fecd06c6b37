//! Backups of the files, to roll back a failed attempt.

use std::collections::BTreeSet;

use super::RecoverError;
use repertoire_git::repo::{GitClient, GitError, GitObjectId, TreeId};

/// A state that can be restored: commit, branch and files, including untracked and excluding
/// ignored ones.
#[derive(Clone, Debug)]
pub struct WorkBackup {
    /// A commit with all files, which is on no branch.
    pub commit: GitObjectId,
    tree: TreeId,
    head: GitObjectId,
    branch: Option<String>,
    ignored: BTreeSet<String>,
}

impl WorkBackup {
    /// Takes a backup. Changes neither files nor branches.
    pub async fn take(git: &GitClient) -> Result<Self, GitError> {
        let (head, branch) = (git.head_commit().await?, git.current_branch().await?);
        let (tree, ignored) = (git.tree_of_work().await?, git.ignored_files().await?);
        let commit = git.commit_tree(&tree, &[&head], "Before an attempt to recover").await?;
        Ok(WorkBackup { commit, tree, head, branch, ignored })
    }

    /// Loads the backup of a worker that died. The list of files that were ignored then is lost, so
    /// all files that are ignored now are kept.
    pub async fn load_commit(git: &GitClient, commit: GitObjectId) -> Result<Self, GitError> {
        let tree = git.tree_of(&commit).await?;
        let head = git.resolve(&format!("{commit}^")).await?;
        let (branch, ignored) = (git.current_branch().await?, git.ignored_files().await?);
        Ok(WorkBackup { commit, tree, head, branch, ignored })
    }

    pub(super) fn tree(&self) -> &TreeId {
        &self.tree
    }

    /// Returns true if commit and branch are those of the backup. Files may differ.
    pub(super) async fn is_checked_out(&self, git: &GitClient) -> Result<bool, RecoverError> {
        Ok(git.head_commit().await? == self.head && git.current_branch().await? == self.branch)
    }

    /// Returns true if both backups have the same state of the same branch.
    pub fn is_same(&self, other: &WorkBackup) -> bool {
        (&self.tree, &self.head, &self.branch) == (&other.tree, &other.head, &other.branch)
    }

    /// Restores the state and verifies the result.
    pub async fn restore(&self, git: &GitClient) -> Result<(), RecoverError> {
        let restored = self.try_restore(git).await;
        match restored {
            Ok(()) => Ok(()),
            Err(why) => {
                // Keep the backup for a person, since garbage collection would delete it.
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

    async fn try_restore(&self, git: &GitClient) -> Result<(), String> {
        let said = |error: repertoire_git::repo::GitError| error.to_string();
        if git.current_branch().await.map_err(said)? != self.branch {
            return Err("another branch is checked out".to_owned());
        }
        if git.head_commit().await.map_err(said)? != self.head {
            git.reset_branch(&self.head).await.map_err(said)?;
        }
        git.restore_files(&self.tree, &self.ignored).await.map_err(said)?;
        if git.tree_of_work().await.map_err(said)? == self.tree {
            Ok(())
        } else {
            Err("the files differ from the backup".to_owned())
        }
    }
}
