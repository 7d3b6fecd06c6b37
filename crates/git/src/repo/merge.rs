//! Merges without a checkout.

use repertoire_sandbox::process::OutputFlow;

use super::call::GitCall;
use super::{GitClient, GitError, GitObjectId, TreeId};

/// The result of a trial merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeTreeResult {
    /// The tree of a merge without conflicts.
    Tree(TreeId),
    /// The paths of the files with conflicts.
    Conflict(Vec<String>),
}

impl GitClient {
    /// Merges two commits in memory. Touches neither files nor branches.
    pub async fn merge_tree(
        &self,
        ours: &GitObjectId,
        theirs: &GitObjectId,
    ) -> Result<MergeTreeResult, GitError> {
        let args = [
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
            ours.as_str(),
            theirs.as_str(),
        ];
        let answer = self.run_call(GitCall::new(&args), &mut |_| OutputFlow::Continue).await?;
        let text = String::from_utf8_lossy(answer.stdout_bytes()?).into_owned();
        let mut parts = text.split_terminator('\0');
        match answer.code {
            0 => {
                let tree = parts.next().and_then(|tree| GitObjectId::parse(tree.trim_end()));
                tree.map(|tree| MergeTreeResult::Tree(TreeId(tree)))
                    .ok_or_else(|| answer.unclear_error(&text))
            }
            1 => Ok(MergeTreeResult::Conflict(parts.skip(1).map(str::to_owned).collect())),
            _ => Err(answer.failure_error()),
        }
    }
}
