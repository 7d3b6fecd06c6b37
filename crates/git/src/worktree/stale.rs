//! Locks that a process left which is gone.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::WorktreeError;
use crate::repo::{Git, GitError};
use crate::limits::{AT_WORK_POLL, AT_WORK_WAIT};

/// Removes git's locks of a worktree and of its branch, unless a process is still at work. Tells what was removed.
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

/// Removes a lock, unless a process is still at work; one that was killed just now is given the time to vanish.
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
        Err(error) => Err(WorktreeError::io(lock, error)),
    }
}

/// Sets a value of the repository's configuration, though a process that is gone has locked it.
pub(super) async fn set_setting(repo: &Git, key: &str, value: &str) -> Result<(), WorktreeError> {
    match repo.set_setting(key, value).await {
        Err(GitError::Locked { .. }) => {
            let common = repo.common_dir().await?;
            remove_lock(&common, &common.join("config.lock")).await?;
            Ok(repo.set_setting(key, value).await?)
        }
        done => Ok(done?),
    }
}

/// A process that may hold a lock: one that has it open, or a git in the worktree, which closes its lock early. git does
/// not write down whose a lock is.
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

/// Elsewhere only the age of a lock tells: no git takes that long over one.
#[cfg(not(target_os = "linux"))]
fn at_work(_dir: &Utf8Path, lock: &Utf8Path) -> Option<u32> {
    let modified = std::fs::metadata(lock).and_then(|metadata| metadata.modified()).ok()?;
    let old = modified.elapsed().is_ok_and(|age| age > crate::limits::GIT_TIMEOUT);
    if old { None } else { Some(0) }
}
