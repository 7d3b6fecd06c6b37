//! Diffs, and fingerprints to tell if two changes are the same.

use repertoire_sandbox::process::OutputFlow;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::call::GitCall;
use super::{GitClient, GitError, GitObjectId};
use crate::limits::GIT_OUTPUT_BYTES_MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffTarget {
    Commits {
        from: GitObjectId,
        to: GitObjectId,
    },
    /// A commit and the current files, untracked ones included.
    Work {
        from: GitObjectId,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitDiff {
    /// The text of the diff, up to the requested size.
    pub text: String,
    /// All changed files, even if the text is cut.
    pub files: Vec<FileDiff>,
    pub insertions: u64,
    pub deletions: u64,
    /// True if the text is incomplete.
    pub cut: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    pub path: String,
    /// The previous path, if the file was renamed.
    pub from: Option<String>,
    /// `None` for a binary file.
    pub insertions: Option<u64>,
    /// `None` for a binary file.
    pub deletions: Option<u64>,
}

/// Identifies a change. The same change has the same fingerprint, even if it is applied to a later
/// version of the files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiffFingerprint(String);

impl DiffFingerprint {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `diff-tree`, since it ignores the user's diff preferences.
const DIFF: &[&str] = &["diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv", "--full-index"];

impl GitClient {
    /// The diff with at most `bytes_max` bytes of text.
    pub async fn diff(&self, of: &DiffTarget, bytes_max: usize) -> Result<GitDiff, GitError> {
        let (from, to) = self.diff_ends(of).await?;
        let mut args = DIFF.to_vec();
        args.extend(["-z", "--numstat", from.as_str(), to.as_str()]);
        let answer = self.run_checked_call(GitCall::new(&args)).await?;
        let files = parse_numstat(answer.stdout_bytes()?)
            .ok_or_else(|| answer.unclear_error("a line of numbers"))?;
        let mut args = DIFF.to_vec();
        args.extend(["--patch", from.as_str(), to.as_str()]);
        let kept_bytes_max = bytes_max.min(GIT_OUTPUT_BYTES_MAX);
        let answer =
            self.run_checked_call(GitCall { kept_bytes_max, ..GitCall::new(&args) }).await?;
        let (kept, total) = answer.kept_stdout();
        let cut = total > kept.len() as u64;
        Ok(GitDiff {
            text: text_of(kept, cut),
            insertions: files.iter().filter_map(|file| file.insertions).sum(),
            deletions: files.iter().filter_map(|file| file.deletions).sum(),
            files,
            cut,
        })
    }

    /// The fingerprint of the difference between a commit and the current files; `None` if there is
    /// none.
    pub async fn diff_fingerprint(
        &self,
        base: &GitObjectId,
    ) -> Result<Option<DiffFingerprint>, GitError> {
        let (from, to) = self.diff_ends(&DiffTarget::Work { from: base.clone() }).await?;
        let mut args = DIFF.to_vec();
        args.extend(["--patch", from.as_str(), to.as_str()]);
        let mut print = DiffHasher::default();
        let ask = GitCall { kept_bytes_max: 0, ..GitCall::new(&args) };
        let mut take = |line: &[u8]| {
            print.update(line);
            OutputFlow::Continue
        };
        let answer = self.run_call(ask, &mut take).await?;
        match (answer.code, answer.kept_stdout().1) {
            (0, 0) => Ok(None),
            (0, _) => Ok(Some(print.finish())),
            _ => Err(answer.failure_error()),
        }
    }

    async fn diff_ends(&self, of: &DiffTarget) -> Result<(GitObjectId, GitObjectId), GitError> {
        match of {
            DiffTarget::Commits { from, to } => Ok((from.clone(), to.clone())),
            DiffTarget::Work { from } => Ok((from.clone(), self.tree_of_work().await?.0)),
        }
    }
}

/// Hashes a diff without the parts that depend on the rest of a file: line numbers and blob names.
/// Lines of file content start with a space or a sign, so they are never mistaken for a header.
#[derive(Default)]
struct DiffHasher {
    hash: Sha256,
    blobs: Vec<u8>,
}

impl DiffHasher {
    fn update(&mut self, line: &[u8]) {
        if line.starts_with(b"index ") {
            self.blobs = line.to_vec();
            return;
        }
        // For a binary file, the blob names are the only trace of its content.
        if line.starts_with(b"Binary files ") {
            let blobs = std::mem::take(&mut self.blobs);
            self.hash.update(&blobs);
        }
        let line = if line.starts_with(b"@@ ") { b"@@".as_slice() } else { line };
        self.hash.update(line);
        self.hash.update(b"\n");
    }

    fn finish(self) -> DiffFingerprint {
        let bytes = self.hash.finalize();
        DiffFingerprint(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// The text; if it was cut, up to the last complete line.
fn text_of(kept: &[u8], cut: bool) -> String {
    let end = if cut {
        kept.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
    } else {
        kept.len()
    };
    String::from_utf8_lossy(&kept[..end]).into_owned()
}

/// Parses `1\t2\tpath\0`, or `1\t2\t\0old\0new\0` for a renamed file.
fn parse_numstat(bytes: &[u8]) -> Option<Vec<FileDiff>> {
    let text = String::from_utf8_lossy(bytes);
    let mut entries = text.split_terminator('\0');
    let mut files = Vec::new();
    while let Some(entry) = entries.next() {
        let mut fields = entry.splitn(3, '\t');
        let (insertions, deletions) = (parse_count(fields.next()?)?, parse_count(fields.next()?)?);
        let (path, from) = match fields.next()? {
            "" => {
                let from = entries.next()?.to_owned();
                (entries.next()?.to_owned(), Some(from))
            }
            path => (path.to_owned(), None),
        };
        files.push(FileDiff { path, from, insertions, deletions });
    }
    Some(files)
}

fn parse_count(text: &str) -> Option<Option<u64>> {
    match text {
        "-" => Some(None),
        number => number.parse().ok().map(Some),
    }
}
