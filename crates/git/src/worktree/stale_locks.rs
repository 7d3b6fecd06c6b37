//! Stale lock files of git processes that have died.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::WorktreeError;
use crate::limits::{AT_WORK_POLL, AT_WORK_WAIT};
use crate::repo::{GitClient, GitError};

/// Removes git's lock files of a worktree and its branch, unless a process may still hold them.
/// Returns a note for each removed file.
pub(super) async fn remove_locks(
    dir: &Utf8Path,
    git_dir: &Utf8Path,
    common: &Utf8Path,
    branch: &str,
) -> Result<Vec<String>, WorktreeError> {
    let locks = [
        git_dir.join("index.lock"),
        git_dir.join("HEAD.lock"),
        common.join(format!("refs/heads/{branch}.lock")),
    ];
    let mut notes = Vec::new();
    for lock in locks.into_iter().filter(|lock| lock.symlink_metadata().is_ok()) {
        notes.extend(remove_lock(dir, &lock).await?);
    }
    Ok(notes)
}

/// Removes a lock file, unless a process may still hold it. Waits briefly, since that process may
/// just have been killed.
async fn remove_lock(dir: &Utf8Path, lock: &Utf8Path) -> Result<Option<String>, WorktreeError> {
    let mut waited = Duration::ZERO;
    while let Some(process) = at_work(dir, lock) {
        if waited >= AT_WORK_WAIT {
            return Err(WorktreeError::AtWork { process, path: lock.to_owned() });
        }
        tokio::time::sleep(AT_WORK_POLL).await;
        waited += AT_WORK_POLL;
    }
    match std::fs::remove_file(lock) {
        Ok(()) => Ok(Some(format!("the lock {lock} of a process that is gone was removed"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(WorktreeError::from_io(lock, error)),
    }
}

/// Sets a value of the repository's configuration, and removes a stale lock on it if needed.
pub(super) async fn set_setting(
    repo: &GitClient,
    key: &str,
    value: &str,
) -> Result<(), WorktreeError> {
    match repo.set_config_value(key, value).await {
        Err(GitError::Locked { .. }) => {
            let common = repo.common_dir().await?;
            remove_lock(&common, &common.join("config.lock")).await?;
            Ok(repo.set_config_value(key, value).await?)
        }
        done => Ok(done?),
    }
}

/// The id of a process that may hold a lock: one that has the file open, or a git process in the
/// worktree, since git closes a lock file before it releases the lock. The file itself does not
/// name its owner.
#[cfg(target_os = "linux")]
fn at_work(dir: &Utf8Path, lock: &Utf8Path) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.into_iter().find(|number| {
        let process = Utf8PathBuf::from(format!("/proc/{number}"));
        is_git_in(&process, dir) || has_open(&process, lock)
    })
}

#[cfg(target_os = "linux")]
fn is_git_in(process: &Utf8Path, dir: &Utf8Path) -> bool {
    let inside = process.join("cwd").read_link_utf8().is_ok_and(|cwd| cwd.starts_with(dir));
    let name = || repertoire_text::fs::read_text(&process.join("comm"), 256);
    inside && name().is_ok_and(|name| name.starts_with("git"))
}

#[cfg(target_os = "linux")]
fn has_open(process: &Utf8Path, lock: &Utf8Path) -> bool {
    let Ok(files) = std::fs::read_dir(process.join("fd")) else { return false };
    files.flatten().any(|file| std::fs::read_link(file.path()).is_ok_and(|open| open == *lock))
}

/// Other systems: only the age of the lock is known. No git call of the engine runs that long.
#[cfg(not(target_os = "linux"))]
fn at_work(_dir: &Utf8Path, lock: &Utf8Path) -> Option<u32> {
    let modified = std::fs::metadata(lock).and_then(|metadata| metadata.modified()).ok()?;
    let old = modified.elapsed().is_ok_and(|age| age > crate::limits::GIT_TIMEOUT);
    if old { None } else { Some(0) }
}
