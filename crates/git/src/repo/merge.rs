//! Merges without a checkout.

use repertoire_sandbox::process::Flow;

use super::call::Ask;
use super::{Git, GitError, Oid, TreeId};

/// The result of a trial merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The tree of a merge without conflicts.
    Tree(TreeId),
    /// The paths of the files with conflicts.
    Conflict(Vec<String>),
}

impl Git {
    /// Merges two commits in memory. Touches neither files nor branches.
    pub async fn merge_tree(&self, ours: &Oid, theirs: &Oid) -> Result<Merged, GitError> {
        let args = [
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
            ours.as_str(),
            theirs.as_str(),
        ];
        let answer = self.ask(Ask::new(&args), &mut |_| Flow::Continue).await?;
        let text = String::from_utf8_lossy(answer.bytes()?).into_owned();
        let mut parts = text.split_terminator('\0');
        match answer.code {
            0 => {
                let tree = parts.next().and_then(|tree| Oid::parse(tree.trim_end()));
                tree.map(|tree| Merged::Tree(TreeId(tree))).ok_or_else(|| answer.unclear(&text))
            }
            1 => Ok(Merged::Conflict(parts.skip(1).map(str::to_owned).collect())),
            _ => Err(answer.failed()),
        }
    }
}
