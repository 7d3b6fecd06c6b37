//! Index entries whose files git does not examine: `assume-unchanged` and `skip-worktree`.
//!
//! A program with write access to the index can hide changes with these flags, from `git status` as
//! well as from the engine. So the engine works with a copy of the index in which no entry of an
//! existing file has them. Files left out by a sparse checkout keep their flags.

use std::io::Read;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::process::ProcessInput;

use super::call::{GitCall, owned_pair};
use super::{GitClient, GitError};
use crate::limits::GIT_INDEX_BYTES_MAX;

const HEADER_BYTES: usize = 12;
/// Size of an entry's times, device, inode, mode, owner and file size.
const STAT_BYTES: usize = 40;
const FLAG_BYTES: usize = 2;
const ASSUME_UNCHANGED: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const SKIP_WORKTREE: u16 = 0x4000;
/// The bits of the path length in the flags; longer paths have this value.
const PATH_LENGTH: u16 = 0x0fff;
const SHA1_BYTES: usize = 20;

impl GitClient {
    /// A copy of the index without the flags; `None` if no entry of an existing file has one.
    pub(super) async fn index_without_flags(
        &self,
    ) -> Result<Option<(tempfile::TempDir, Utf8PathBuf)>, GitError> {
        if !may_have_flags(&self.git_dir().await?.join("index")) {
            return Ok(None);
        }
        let (keep, index) = self.plain_index_copy().await?;
        let is_changed = self.clear_flags(&index).await?;
        Ok(is_changed.then_some((keep, index)))
    }

    /// Clears the flags of existing files in a copy of the index. Returns true if there were any.
    pub(super) async fn clear_flags(&self, index: &Utf8Path) -> Result<bool, GitError> {
        if !may_have_flags(index) {
            return Ok(false);
        }
        let environment = vec![owned_pair("GIT_INDEX_FILE", index.as_str())];
        let at_top = GitClient { dir: self.work_tree_root().await?, ..self.clone() };
        let list = ["ls-files", "-v", "-z"];
        let answer = at_top
            .run_checked_call(GitCall { environment: environment.clone(), ..GitCall::new(&list) })
            .await?;
        let text = String::from_utf8_lossy(answer.stdout_bytes()?).into_owned();
        let entries = text.split_terminator('\0').filter_map(|entry| entry.split_once(' '));
        let flagged = entries.filter(|(tag, _)| *tag == "S" || *tag == tag.to_lowercase());
        let existing = flagged
            .map(|(_, path)| path)
            .filter(|path| at_top.dir.join(path).symlink_metadata().is_ok());
        let paths: String = existing.map(|path| format!("{path}\0")).collect();
        if paths.is_empty() {
            return Ok(false);
        }
        // `update-index` changes only one of the flags per call.
        for option in ["--no-assume-unchanged", "--no-skip-worktree"] {
            let (environment, stdin) = (environment.clone(), ProcessInput::Text(paths.clone()));
            let args = ["update-index", option, "-z", "--stdin"];
            at_top.run_checked_call(GitCall { environment, stdin, ..GitCall::new(&args) }).await?;
        }
        Ok(true)
    }
}

/// Returns true if an entry of the index may have one of the flags, or if the index is too large or
/// in an unknown format.
fn may_have_flags(index: &Utf8Path) -> bool {
    if repertoire_text::fs::refuse_irregular(index).is_err() {
        return index.exists();
    }
    let Ok(file) = std::fs::File::open(index) else { return false };
    let mut bytes = Vec::new();
    let read = file.take(GIT_INDEX_BYTES_MAX).read_to_end(&mut bytes);
    let is_whole = read.is_ok_and(|count| (count as u64) < GIT_INDEX_BYTES_MAX);
    !is_whole || has_flags(&bytes).unwrap_or(true)
}

/// Returns true if an entry has one of the flags; `None` if the format is not supported: version 4,
/// SHA-256 object names, or a split index.
fn has_flags(bytes: &[u8]) -> Option<bool> {
    let header = bytes.get(..HEADER_BYTES)?;
    let number = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let (version, entries) = (number(4)?, number(8)?);
    if !header.starts_with(b"DIRC") || !matches!(version, 2 | 3) {
        return None;
    }
    let mut at = HEADER_BYTES;
    for _ in 0..entries {
        let flags_at = at + STAT_BYTES + SHA1_BYTES;
        let flags = read_u16(bytes, flags_at)?;
        if flags & ASSUME_UNCHANGED != 0 {
            return Some(true);
        }
        let mut path_at = flags_at + FLAG_BYTES;
        if flags & EXTENDED != 0 {
            if read_u16(bytes, path_at)? & SKIP_WORKTREE != 0 {
                return Some(true);
            }
            path_at += FLAG_BYTES;
        }
        let length = match flags & PATH_LENGTH {
            PATH_LENGTH => bytes.get(path_at..)?.iter().position(|byte| *byte == 0)?,
            length => usize::from(length),
        };
        // With SHA-256 object names, this byte is not zero.
        if *bytes.get(path_at + length)? != 0 {
            return None;
        }
        // Entries are padded with one to eight zeros to a multiple of eight bytes.
        at += (path_at + length - at) / 8 * 8 + 8;
    }
    let is_shared = bytes.get(at..)?.windows(4).any(|four| four == b"link");
    if is_shared { None } else { Some(false) }
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, flags: u16, extended: Option<u16>) -> Vec<u8> {
        let mut bytes = vec![7; STAT_BYTES + SHA1_BYTES];
        bytes.extend((flags | path.len() as u16).to_be_bytes());
        bytes.extend(extended.map(u16::to_be_bytes).into_iter().flatten());
        bytes.extend(path.as_bytes());
        bytes.resize(bytes.len() / 8 * 8 + 8, 0);
        bytes
    }

    fn index(version: u32, entries: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend((entries.len() as u32).to_be_bytes());
        bytes.extend(entries.concat());
        bytes.extend([9; SHA1_BYTES]);
        bytes
    }

    #[test]
    fn flags_are_found_behind_entries_of_any_length() {
        for length in 1..20 {
            let plain = entry(&"x".repeat(length), 0, None);
            assert_eq!(has_flags(&index(2, &[plain.clone(), plain.clone()])), Some(false));
            let assumed = entry("b", ASSUME_UNCHANGED, None);
            assert_eq!(has_flags(&index(2, &[plain.clone(), assumed])), Some(true));
            let skipped = entry("b", EXTENDED, Some(SKIP_WORKTREE));
            assert_eq!(has_flags(&index(3, &[plain.clone(), skipped])), Some(true));
            let intended = entry("b", EXTENDED, Some(0x2000));
            assert_eq!(has_flags(&index(3, &[plain, intended])), Some(false));
        }
    }

    #[test]
    fn an_index_that_is_not_understood_may_have_flags() {
        assert_eq!(has_flags(&index(4, &[])), None);
        assert_eq!(has_flags(b"DIRC"), None);
        assert_eq!(has_flags(&index(2, &[vec![7; 30]])), None);
        let mut shared = index(2, &[entry("a", 0, None)]);
        shared.splice(shared.len() - SHA1_BYTES.., *b"link");
        assert_eq!(has_flags(&shared), None);
    }
}
