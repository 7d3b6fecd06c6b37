//! What differs from the last commit.

use serde::{Deserialize, Serialize};

use super::call::{Ask, pair};
use super::{Git, GitError};

/// A file that differs from the last commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Its path beneath the root. What is not UTF-8 is shown with replacement characters.
    pub path: String,
    /// What it was called before, if it was renamed.
    pub from: Option<String>,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new, and git knows of it.
    Added,
    /// Its contents, mode or type are others.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name, or is a copy.
    Renamed,
    /// A merge left a conflict in it.
    Unmerged,
    /// It is new, and git does not know of it.
    Untracked,
}

impl Git {
    /// Lists the changes since the last commit, with untracked and without ignored files. Flags of the index hide nothing.
    pub async fn status(&self) -> Result<Vec<Change>, GitError> {
        let args = [
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--ignored=no",
            // To look for changes in a submodule, git would run there with that repository's configuration.
            "--ignore-submodules=dirty",
        ];
        let copy = self.index_without_flags().await?;
        let index = copy.iter().map(|(_, index)| pair("GIT_INDEX_FILE", index.as_str()));
        let answer = self.fine(Ask { environment: index.collect(), ..Ask::new(&args) }).await?;
        parse(answer.bytes()?).ok_or_else(|| answer.unclear("an entry of an unknown form"))
    }

    /// Whether git leaves a path out of commits because it is ignored; one that it tracks is not.
    pub async fn is_ignored(&self, path: &str) -> Result<bool, GitError> {
        self.yes(&["check-ignore", "--quiet", "--", path]).await
    }

    /// Whether nothing differs from the last commit, untracked files included.
    pub async fn is_clean(&self) -> Result<bool, GitError> {
        Ok(self.status().await?.is_empty())
    }
}

fn parse(bytes: &[u8]) -> Option<Vec<Change>> {
    let mut entries = bytes.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let Some(entry) = entries.next() {
        let (kind, rest) = match entry {
            [] | [b'#', ..] => continue,
            [kind, b' ', rest @ ..] => (*kind, rest),
            _ => return None,
        };
        let (path, from, kind) = match kind {
            b'?' => (rest, None, ChangeKind::Untracked),
            b'1' => (after_fields(rest, 7)?, None, kind_of(rest)),
            b'2' => (after_fields(rest, 8)?, Some(entries.next()?), ChangeKind::Renamed),
            b'u' => (after_fields(rest, 9)?, None, ChangeKind::Unmerged),
            _ => return None,
        };
        changes.push(Change { path: lossy(path), from: from.map(lossy), kind });
    }
    Some(changes)
}

/// What follows so many fields that end with a space: the path, which may hold spaces.
fn after_fields(bytes: &[u8], count: usize) -> Option<&[u8]> {
    bytes.splitn(count + 1, |byte| *byte == b' ').nth(count)
}

/// The kind from the two letters for the index and the files: what is on disk counts more.
fn kind_of(rest: &[u8]) -> ChangeKind {
    match (rest.first(), rest.get(1)) {
        (_, Some(b'D')) | (Some(b'D'), Some(b'.')) => ChangeKind::Deleted,
        (Some(b'A'), _) | (_, Some(b'A')) => ChangeKind::Added,
        _ => ChangeKind::Modified,
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
