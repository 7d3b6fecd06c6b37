//! Unfinished operations of a checkout, such as a rebase, and aborting them.

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use super::{GitClient, GitError};

/// An operation that a checkout is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    Rebase,
    /// `git am`: applying mails as commits.
    Mails,
    Merge,
    CherryPick,
    Revert,
    Bisect,
}

impl Progress {
    /// The operation's name for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Progress::Rebase => "a rebase",
            Progress::Mails => "applying mails (`git am`)",
            Progress::Merge => "a merge",
            Progress::CherryPick => "a cherry-pick",
            Progress::Revert => "a revert",
            Progress::Bisect => "a bisection",
        }
    }

    fn abort_args(self) -> &'static [&'static str] {
        match self {
            Progress::Rebase => &["rebase", "--abort"],
            Progress::Mails => &["am", "--abort"],
            Progress::Merge => &["merge", "--abort"],
            Progress::CherryPick => &["cherry-pick", "--abort"],
            Progress::Revert => &["revert", "--abort"],
            Progress::Bisect => &["bisect", "reset"],
        }
    }

    /// Detects the operation by the files that it keeps in the git folder.
    fn in_git_dir(git_dir: &Utf8Path) -> Option<Progress> {
        let has = |name: &str| git_dir.join(name).exists();
        if has("rebase-merge") {
            return Some(Progress::Rebase);
        }
        if has("rebase-apply") {
            let mails = has("rebase-apply/applying");
            return Some(if mails { Progress::Mails } else { Progress::Rebase });
        }
        let marks = [
            ("MERGE_HEAD", Progress::Merge),
            ("CHERRY_PICK_HEAD", Progress::CherryPick),
            ("REVERT_HEAD", Progress::Revert),
            ("BISECT_LOG", Progress::Bisect),
        ];
        marks.into_iter().find(|(name, _)| has(name)).map(|(_, progress)| progress)
    }
}

impl GitClient {
    /// The operation that the checkout is in the middle of.
    pub async fn current_operation(&self) -> Result<Option<Progress>, GitError> {
        Ok(Progress::in_git_dir(&self.git_dir().await?))
    }

    /// Aborts the operation and restores the state before it. Uncommitted changes are lost.
    pub async fn abort_operation(&self, progress: Progress) -> Result<(), GitError> {
        self.ok(progress.abort_args()).await.map(drop)
    }
}
