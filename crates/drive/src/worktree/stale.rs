//! Locks that a process left which is gone.

use camino::{Utf8Path, Utf8PathBuf};

use super::WorktreeError;

/// Removes git's locks of a worktree and of its branch, unless a process is still at work. Tells what was removed.
pub(super) fn remove_locks(
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
        if let Some(process) = at_work(dir, &lock) {
            return Err(WorktreeError::AtWork { process, path: lock });
        }
        std::fs::remove_file(&lock).map_err(|source| WorktreeError::io(&lock, source))?;
        notes.push(format!("the lock {lock} of a process that is gone was removed"));
    }
    Ok(notes)
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
