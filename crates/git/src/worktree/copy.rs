//! Files that a new worktree needs and that are not in the repository, such as `.env`.

use std::io::Write;

use camino::Utf8Path;
use repertoire_text::fs::{FolderHandle, LocationError, is_beneath};

use super::registry::WorktreeOwnerRecord;
use super::{PreparedWorktree, RunWorktrees, WorktreeError};
use crate::limits::{COPY_BYTES_MAX, COPY_FILE_BYTES_MAX, COPY_FILES_MAX};

/// The files that were copied, and those that were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorktreeCopyResult {
    pub files: Vec<String>,
    pub left: Vec<SkippedCopy>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedCopy {
    pub path: String,
    pub why: String,
}

impl RunWorktrees {
    /// Records that a worktree is set up, so that the next worker does not do it again.
    pub fn mark_set_up(&self, worktree: &mut PreparedWorktree) -> Result<(), WorktreeError> {
        worktree.set_up = true;
        WorktreeOwnerRecord::for_worktree(worktree).write(&worktree.git_dir)
    }

    /// Copies files of the checkout that match the patterns and that git ignores into a worktree. Others would be committed
    /// with the run's work.
    pub async fn copy_ignored_files(
        &self,
        worktree: &PreparedWorktree,
        patterns: &[String],
    ) -> Result<WorktreeCopyResult, WorktreeError> {
        let mut copied = WorktreeCopyResult::default();
        if patterns.is_empty() {
            return Ok(copied);
        }
        if let Some(pattern) = patterns.iter().find(|pattern| !is_beneath(Utf8Path::new(pattern))) {
            return Err(WorktreeError::BadPattern { pattern: pattern.clone() });
        }
        let top = self.repo.work_tree_root().await?;
        let ignored =
            self.untracked_files(&top, patterns, &["--ignored", "--exclude-standard"]).await?;
        let mut bytes_left = COPY_BYTES_MAX;
        for path in self.untracked_files(&top, patterns, &[]).await? {
            let done = match ignored.binary_search(&path) {
                Ok(_) if copied.files.len() >= COPY_FILES_MAX => {
                    Err(format!("more than {COPY_FILES_MAX} files match"))
                }
                Ok(_) => copy_file(&top, &worktree.dir, &path, &mut bytes_left),
                Err(_) => {
                    Err("git does not ignore it, so it would be committed; add it to .gitignore"
                        .to_owned())
                }
            };
            match done {
                Ok(()) => copied.files.push(path),
                Err(_) if copied.left.len() >= COPY_FILES_MAX => {}
                Err(why) => copied.left.push(SkippedCopy { path, why }),
            }
        }
        Ok(copied)
    }

    /// The untracked files of the checkout that match the patterns, sorted.
    async fn untracked_files(
        &self,
        top: &Utf8Path,
        patterns: &[String],
        which: &[&str],
    ) -> Result<Vec<String>, WorktreeError> {
        let patterns: Vec<String> =
            patterns.iter().map(|pattern| format!(":(top,glob){pattern}")).collect();
        let mut args = vec!["ls-files", "-z", "--others"];
        args.extend(which);
        args.push("--");
        args.extend(patterns.iter().map(String::as_str));
        let bytes = self.repo.in_dir(top).ok(&args).await?;
        let names =
            bytes.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
        // A nested repository is listed as its folder.
        let mut names: Vec<String> = names
            .filter(|name| !name.is_empty() && !name.ends_with('/'))
            .map(str::to_owned)
            .collect();
        names.sort();
        names.dedup();
        Ok(names)
    }
}

/// Copies a file unless it exists. Follows no symbolic link out of either folder.
fn copy_file(
    from: &Utf8Path,
    to: &Utf8Path,
    path: &str,
    bytes_left: &mut u64,
) -> Result<(), String> {
    let most = COPY_FILE_BYTES_MAX.min(*bytes_left);
    let path = Utf8Path::new(path);
    let found =
        FolderHandle::open(from).map_err(LocationError::from).and_then(|from| from.find(path));
    let found = found.map_err(|error| error.to_string())?;
    let bytes = found.read_bytes(most).map_err(|error| error.to_string())?;
    let place = FolderHandle::open(to).map_err(LocationError::from);
    let place = place.and_then(|to| to.resolve_without_links(path));
    let created =
        place.map_err(std::io::Error::from).and_then(|place| place.create_new(found.permissions()));
    match created {
        Ok(mut file) => file.write_all(&bytes).map_err(|error| error.to_string())?,
        // A previous setup copied it, and the run may have changed it since.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err("it is there already".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    }
    *bytes_left -= bytes.len() as u64;
    Ok(())
}
