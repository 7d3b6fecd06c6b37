//! The folder of a run: files that people want to open (reports, prompts, logs) beside its events,
//! and the lock of the process that carries the run out.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{list_entries, make_private_dir};

use crate::run::RunId;
use crate::sanitise;

const LOCK: &str = "lock";
/// The start of the name of a file that marks a folder as being removed. The id follows.
const REMOVED: &str = ".removed-";
/// A process that only asks whether a run is locked holds a shared lock for much less than this.
const LOCK_WAIT_MAX: Duration = Duration::from_millis(200);
const LOCK_POLL: Duration = Duration::from_millis(10);

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

    pub(crate) fn id(&self) -> &RunId {
        &self.id
    }

    /// Locks the run for this process, and creates the folder if it is missing. The kernel releases
    /// the lock when the process ends, whatever the reason. Waits a moment for a process that only
    /// asks whether the run is locked.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::InUse`] if another process holds the lock.
    pub fn acquire_lock(&self) -> Result<RunLock, RunFolderError> {
        let mut waited = Duration::ZERO;
        loop {
            match self.try_acquire_lock() {
                Err(RunFolderError::InUse { .. }) if waited < LOCK_WAIT_MAX => {
                    std::thread::sleep(LOCK_POLL);
                    waited += LOCK_POLL;
                }
                locked => return locked,
            }
        }
    }

    /// Like [`RunFolder::acquire_lock`], without waiting.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::acquire_lock`].
    pub fn try_acquire_lock(&self) -> Result<RunLock, RunFolderError> {
        self.create()?;
        let path = self.path.join(LOCK);
        let mut options = OpenOptions::new();
        options.create(true).read(true).write(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options
            .open(&path)
            .map_err(|source| RunFolderError::Io { path: path.clone(), source })?;
        match file.try_lock() {
            Ok(()) => {
                // The process id is only for the error message of others, so a full disk is no reason
                // to fail.
                let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                Ok(RunLock(file))
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.take(32).read_to_string(&mut text);
                Err(RunFolderError::InUse { id: self.id.clone(), pid: text.trim().parse().ok() })
            }
            Err(TryLockError::Error(source)) => Err(RunFolderError::Io { path, source }),
        }
    }

    /// Returns true if a process on this machine holds the lock of the run, or if that cannot be
    /// found out. Creates nothing.
    pub fn is_locked(&self) -> bool {
        match File::open(self.path.join(LOCK)) {
            // Processes that only ask don't keep each other waiting.
            Ok(file) => file.try_lock_shared().map(|()| drop(RunLock(file))).is_err(),
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }

    /// Removes the folder of a run that was never recorded. A missing folder counts as removed.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::InUse`] if a process holds the lock.
    pub fn remove(&self) -> Result<(), RunFolderError> {
        if self.path.exists() { self.begin_removal()?.finish() } else { Ok(()) }
    }

    /// Locks the run and marks its folder as being removed. The mark is a file beside the folder: a
    /// process that opens the run meanwhile still finds the lock.
    pub(crate) fn begin_removal(&self) -> Result<FolderRemoval, RunFolderError> {
        let removal = FolderRemoval {
            _lock: self.acquire_lock()?,
            path: self.path.clone(),
            mark: self.mark(),
        };
        match File::create(&removal.mark) {
            Ok(_) => Ok(removal),
            Err(source) => Err(RunFolderError::Io { path: removal.mark, source }),
        }
    }

    fn mark(&self) -> Utf8PathBuf {
        self.path.with_file_name(format!("{REMOVED}{}", self.id))
    }

    /// Returns the folders whose removal was begun and not completed. Marks without a folder are
    /// deleted.
    pub(crate) fn list_unfinished_removals(runs: &Utf8Path) -> Vec<RunFolder> {
        let Ok(entries) = list_entries(runs) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.name.into_string().ok());
        let ids = names.filter_map(|name| Some(name.strip_prefix(REMOVED)?.to_owned()));
        let ids = ids.filter(|id| sanitise::is_id(id));
        let mut folders = Vec::new();
        for folder in ids.map(|id| RunFolder::new(runs, &RunId::known(id))) {
            if folder.path.exists() {
                folders.push(folder);
            } else {
                let _ = std::fs::remove_file(folder.mark());
            }
        }
        folders
    }
}

/// The removal of a folder whose lock is held.
#[derive(Debug)]
pub(crate) struct FolderRemoval {
    _lock: RunLock,
    path: Utf8PathBuf,
    mark: Utf8PathBuf,
}

impl FolderRemoval {
    /// Removes the folder with everything in it.
    pub(crate) fn finish(self) -> Result<(), RunFolderError> {
        let removed = std::fs::remove_dir_all(&self.path);
        removed.map_err(|source| RunFolderError::Io { path: self.path.clone(), source })?;
        self.cancel();
        Ok(())
    }

    /// Keeps the folder. A mark that stays is deleted by [`crate::Journal::complete_removals`].
    pub(crate) fn cancel(self) {
        let _ = std::fs::remove_file(&self.mark);
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
        let refused = folder.begin_removal();
        assert!(matches!(refused, Err(RunFolderError::InUse { pid: by, .. }) if by == pid));
        drop(lock);
        folder.begin_removal().unwrap().finish().unwrap();
        assert!(!folder.path().exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    fn test_folder(dir: &tempfile::TempDir) -> RunFolder {
        RunFolder::new(Utf8Path::from_path(dir.path()).unwrap(), &RunId::known("a-run"))
    }

    #[test]
    fn asking_for_the_lock_keeps_nobody_from_taking_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = test_folder(&dir);
        drop(folder.acquire_lock().unwrap());
        // Another process asks just now.
        let asking = File::open(folder.path().join(LOCK)).unwrap();
        asking.try_lock_shared().unwrap();
        assert!(!folder.is_locked(), "two can ask at once");
        let asked = std::thread::spawn(move || {
            std::thread::yield_now();
            drop(RunLock(asking));
        });
        folder.acquire_lock().unwrap();
        asked.join().unwrap();
    }

    #[test]
    fn a_lock_that_cannot_be_read_counts_as_locked() {
        let dir = tempfile::tempdir().unwrap();
        let folder = test_folder(&dir);
        // The path of the lock goes through a file.
        File::create(folder.path()).unwrap();
        assert!(folder.is_locked());
    }
}
