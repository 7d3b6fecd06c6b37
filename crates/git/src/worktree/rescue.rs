//! Rescue branches for work that would otherwise be lost.

use super::WorktreeError;
use crate::limits::ASIDE_NAMES_MAX;
use crate::repo::{GitClient, GitObjectId, TreeId};

/// Commits the current files to a rescue branch, without touching files, index or `HEAD`. Returns a
/// note with the branch's name.
pub(super) async fn rescue_work(git: &GitClient, prefix: &str) -> Result<String, WorktreeError> {
    let head = git.head_commit().await?;
    let tree = git.tree_of_work().await?;
    let branch = rescue_branch(git, prefix, &head, &tree).await?;
    Ok(format!("work that was not on the run's branch is kept on `{branch}`"))
}

async fn rescue_branch(
    git: &GitClient,
    prefix: &str,
    head: &GitObjectId,
    tree: &TreeId,
) -> Result<String, WorktreeError> {
    for n in 1..=ASIDE_NAMES_MAX {
        let branch = format!("{prefix}-{n}");
        match git.branch_tip(&branch).await? {
            // A worker that crashed later has already rescued the same state.
            Some(tip)
                if git.tree_of(&tip).await? == *tree && git.is_ancestor(head, &tip).await? =>
            {
                return Ok(branch);
            }
            Some(_) => {}
            None => {
                let oid = if git.tree_of(head).await? == *tree {
                    head.clone()
                } else {
                    git.commit_tree(tree, &[head], MESSAGE).await?
                };
                git.set_branch(&branch, &oid, None, "repertoire: rescue").await?;
                return Ok(branch);
            }
        }
    }
    let full =
        std::io::Error::other("there are too many rescue branches; look at them and delete some");
    Err(WorktreeError::from_io(git.dir(), full))
}

const MESSAGE: &str = "Rescued: work that was not committed\n\n\
    The worktree had to be put right, and this would have been lost.\n";
