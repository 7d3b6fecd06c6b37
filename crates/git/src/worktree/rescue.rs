//! Work that would be lost otherwise, on a branch of its own.

use super::WorktreeError;
use crate::repo::{Git, Oid, TreeId};
use crate::limits::ASIDE_NAMES_MAX;

/// Commits what is on disk on a rescue branch, without touching the files, the index or what is checked out. Tells where
/// it is.
pub(super) async fn rescue(git: &Git, prefix: &str) -> Result<String, WorktreeError> {
    let head = git.head().await?;
    let tree = git.tree_of_work().await?;
    let branch = branch(git, prefix, &head, &tree).await?;
    Ok(format!("work that was not on the run's branch is kept on `{branch}`"))
}

async fn branch(
    git: &Git,
    prefix: &str,
    head: &Oid,
    tree: &TreeId,
) -> Result<String, WorktreeError> {
    for n in 1..=ASIDE_NAMES_MAX {
        let branch = format!("{prefix}-{n}");
        match git.branch_tip(&branch).await? {
            // The same was rescued before, by somebody who got no further.
            Some(tip)
                if git.tree_of(&tip).await? == *tree && git.is_ancestor(head, &tip).await? =>
            {
                return Ok(branch);
            }
            Some(_) => {}
            None => {
                let oid = match git.tree_of(head).await? == *tree {
                    true => head.clone(),
                    false => git.commit_tree(tree, &[head], MESSAGE).await?,
                };
                git.set_branch(&branch, &oid, None, "repertoire: rescue").await?;
                return Ok(branch);
            }
        }
    }
    let full =
        std::io::Error::other("there are too many rescue branches; look at them and delete some");
    Err(WorktreeError::io(git.dir(), full))
}

const MESSAGE: &str = "Rescued: work that was not committed\n\n\
    The worktree had to be put right, and this would have been lost.\n";
