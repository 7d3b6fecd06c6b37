//! Changes since the last commit.

use serde::{Deserialize, Serialize};

use super::call::{GitCall, owned_pair};
use super::{GitClient, GitError};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitFileChange {
    /// Relative to the root. Bytes that are not UTF-8 appear as replacement characters.
    pub path: String,
    /// The previous path, if the file was renamed.
    pub from: Option<String>,
    pub kind: ChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A new file that is staged.
    Added,
    /// Content, mode or type has changed.
    Modified,
    Deleted,
    /// Renamed or copied.
    Renamed,
    /// A merge left a conflict.
    Unmerged,
    /// A new file that is not staged.
    Untracked,
}

impl GitClient {
    /// Lists the changes since the last commit, including untracked and excluding ignored files.
    /// Flags in the index hide nothing.
    pub async fn status(&self) -> Result<Vec<GitFileChange>, GitError> {
        let args = [
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--ignored=no",
            // Git would run in each submodule with that repository's configuration.
            "--ignore-submodules=dirty",
        ];
        let copy = self.index_without_flags().await?;
        let index = copy.iter().map(|(_, index)| owned_pair("GIT_INDEX_FILE", index.as_str()));
        let answer = self
            .run_checked_call(GitCall { environment: index.collect(), ..GitCall::new(&args) })
            .await?;
        parse_status(answer.stdout_bytes()?)
            .ok_or_else(|| answer.unclear_error("an entry of an unknown form"))
    }

    /// Returns true if git ignores the path. False for a tracked path, even if a pattern matches
    /// it.
    pub async fn is_ignored(&self, path: &str) -> Result<bool, GitError> {
        self.run_for_bool(&["check-ignore", "--quiet", "--", path]).await
    }

    /// Returns true if nothing has changed since the last commit, untracked files included.
    pub async fn is_clean(&self) -> Result<bool, GitError> {
        Ok(self.status().await?.is_empty())
    }
}

fn parse_status(bytes: &[u8]) -> Option<Vec<GitFileChange>> {
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
        changes.push(GitFileChange {
            path: to_lossy_string(path),
            from: from.map(to_lossy_string),
            kind,
        });
    }
    Some(changes)
}

/// Skips `count` fields that end with a space, and returns the path after them, which may contain
/// spaces.
fn after_fields(bytes: &[u8], count: usize) -> Option<&[u8]> {
    bytes.splitn(count + 1, |byte| *byte == b' ').nth(count)
}

/// The kind from the two status letters, for the index and for the work tree. The work tree takes
/// precedence.
fn kind_of(rest: &[u8]) -> ChangeKind {
    match (rest.first(), rest.get(1)) {
        (_, Some(b'D')) | (Some(b'D'), Some(b'.')) => ChangeKind::Deleted,
        (Some(b'A'), _) | (_, Some(b'A')) => ChangeKind::Added,
        _ => ChangeKind::Modified,
    }
}

fn to_lossy_string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
