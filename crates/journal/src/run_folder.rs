//! The folder of a run: files that people want to open (reports, prompts, logs) beside its events,
//! and the lock of the process that carries the run out.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::make_private_dir;

use crate::run::RunId;

const LOCK: &str = "lock";

/// The folder of a run, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: Utf8PathBuf,
    id: RunId,
}

/// The reason the folder of a run cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunFolderError {
    /// Another process carries out the run.
    #[error("run {id} is in use by another process{}", pid.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    InUse {
        id: RunId,
        /// The process id, if known.
        pid: Option<u32>,
    },
    /// A file operation failed.
    #[error("{path}: {source}")]
    Io { path: Utf8PathBuf, source: std::io::Error },
}

/// The lock of a run. It is released explicitly on drop and not only by closing the file: a child
/// process that is just being started may have inherited the file, and with it the lock, until it
/// calls `exec`.
#[derive(Debug)]
pub struct RunLock(File);

impl Drop for RunLock {
    fn drop(&mut self) {
        // If this fails, the kernel releases the lock when the last copy of the file is closed.
        let _ = self.0.unlock();
    }
}

impl RunFolder {
    /// The folder of a run below the folder of all runs. Creates nothing.
    pub fn new(runs: &Utf8Path, id: &RunId) -> Self {
        RunFolder { path: runs.join(id.as_str()), id: id.clone() }
    }

    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Creates the folder if it is missing, readable only by its owner.
    ///
    /// # Errors
    ///
    /// If a file operation fails.
    pub fn create(&self) -> Result<(), RunFolderError> {
        make_private_dir(&self.path)
            .map_err(|source| RunFolderError::Io { path: self.path.clone(), source })
    }

    /// Locks the run for this process, and creates the folder if it is missing. The kernel releases
    /// the lock when the process ends, whatever the reason.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::InUse`] if another process holds the lock.
    pub fn acquire_lock(&self) -> Result<RunLock, RunFolderError> {
        self.create()?;
        let mut file = self.try_lock()?;
        // The process id is only for the error message of others, so a full disk is no reason to
        // fail.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(RunLock(file))
    }

    /// Returns true if a process on this machine holds the lock of the run.
    pub fn is_locked(&self) -> bool {
        // Don't create anything for runs without a folder.
        self.path.join(LOCK).is_file()
            && match self.try_lock() {
                Ok(file) => {
                    drop(RunLock(file));
                    false
                }
                Err(error) => matches!(error, RunFolderError::InUse { .. }),
            }
    }

    /// Removes the folder with everything in it. A missing folder counts as removed.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::InUse`] if a process holds the lock.
    pub fn remove(&self) -> Result<(), RunFolderError> {
        if !self.path.exists() {
            return Ok(());
        }
        let _lock = self.acquire_lock()?;
        std::fs::remove_dir_all(&self.path)
            .map_err(|source| RunFolderError::Io { path: self.path.clone(), source })
    }

    fn try_lock(&self) -> Result<File, RunFolderError> {
        let path = self.path.join(LOCK);
        let mut options = OpenOptions::new();
        options.create(true).read(true).write(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options
            .open(&path)
            .map_err(|source| RunFolderError::Io { path: path.clone(), source })?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.take(32).read_to_string(&mut text);
                Err(RunFolderError::InUse { id: self.id.clone(), pid: text.trim().parse().ok() })
            }
            Err(TryLockError::Error(source)) => Err(RunFolderError::Io { path, source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_has_the_lock_and_the_folder_is_removed_only_without_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder =
            RunFolder::new(Utf8Path::from_path(dir.path()).unwrap(), &RunId::known("a-run"));
        assert!(!folder.is_locked());
        assert!(!folder.path().exists(), "asking creates nothing");
        let lock = folder.acquire_lock().unwrap();
        assert!(folder.is_locked());
        let pid = Some(std::process::id());
        assert!(matches!(folder.remove(), Err(RunFolderError::InUse { pid: by, .. }) if by == pid));
        drop(lock);
        folder.remove().unwrap();
        assert!(!folder.path().exists());
    }
}
