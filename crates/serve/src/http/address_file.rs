//! The address file of a user's daemon. The daemon keeps the file locked as long as it lives, so that a stale file can
//! be recognised.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::limits::SMALL_FILE_BYTES_MAX;

/// Other processes hold the lock of the file only for a moment, if they are no daemons.
const PUBLISH_ATTEMPTS_MAX: u32 = 20;
const PUBLISH_PAUSE: Duration = Duration::from_millis(5);

/// The address of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonAddress {
    /// The address it listens on.
    pub address: SocketAddr,
    pub pid: u32,
    /// The folder it serves.
    pub project: Utf8PathBuf,
}

/// A published address file, which is removed when this is dropped.
pub struct AddressFile {
    path: Utf8PathBuf,
    locked: File,
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // The user may have removed the file, and another daemon may have published its own.
        if is_file_at(&self.path, &self.locked) {
            // If this fails, the released lock still shows that the daemon is gone.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The result of publishing an address.
pub enum AddressPublication {
    Done(AddressFile),
    /// Another daemon was first and is still alive.
    Taken(DaemonAddress),
}

/// Publishes the address of this daemon. The first daemon of a user keeps the file.
///
/// # Errors
///
/// If the file cannot be written.
pub fn publish_address(path: &Utf8Path, at: &DaemonAddress) -> io::Result<AddressPublication> {
    for _ in 0..PUBLISH_ATTEMPTS_MAX {
        if let Some(done) = try_publish(path, at)? {
            return Ok(done);
        }
        std::thread::sleep(PUBLISH_PAUSE);
    }
    Err(io::Error::other("other processes keep the file locked"))
}

/// Tries to publish an address. Returns `None` if another process is just looking at the file, or
/// has removed it in the meantime.
fn try_publish(path: &Utf8Path, at: &DaemonAddress) -> io::Result<Option<AddressPublication>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return find_holder(&mut file),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // A daemon that ends removes its file, perhaps after it was opened here.
    if !is_file_at(path, &file) {
        return Ok(None);
    }
    file.set_len(0)?;
    file.rewind()?;
    serde_json::to_writer(&file, at)?;
    file.write_all(b"\n")?;
    Ok(Some(AddressPublication::Done(AddressFile { path: path.to_owned(), locked: file })))
}

/// Returns the daemon that holds the lock of a file. Returns `None` if only [`find_daemon`] of
/// another process holds it, which shares it.
fn find_holder(file: &mut File) -> io::Result<Option<AddressPublication>> {
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => match read_address(file) {
            Some(other) => Ok(Some(AddressPublication::Taken(other))),
            None => Err(io::Error::other("another daemon is just starting")),
        },
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns true if this is the file at the path.
fn is_file_at(path: &Utf8Path, file: &File) -> bool {
    let identity = |data: std::fs::Metadata| (data.dev(), data.ino());
    let there = std::fs::symlink_metadata(path).map(identity).ok();
    there.is_some() && there == file.metadata().map(identity).ok()
}

/// Returns the address of this user's daemon, if one is alive. Leaves a stale file alone: a daemon
/// that is just starting may have opened it, and takes it over.
pub fn find_daemon(path: &Utf8Path) -> Option<DaemonAddress> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    let mut file = file.ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => read_address(&mut file),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

fn read_address(file: &mut File) -> Option<DaemonAddress> {
    let mut text = String::new();
    file.take(SMALL_FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Utf8PathBuf, DaemonAddress) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("address")).unwrap();
        let address = "127.0.0.1:7757".parse().unwrap();
        (dir, path, DaemonAddress { address, pid: 7, project: "/home/me/shop".into() })
    }

    #[test]
    fn a_daemon_is_found_as_long_as_it_lives() {
        let (_keep, path, at) = place();
        assert_eq!(find_daemon(&path), None);
        let Ok(AddressPublication::Done(posted)) = publish_address(&path, &at) else {
            panic!("it is free")
        };
        assert_eq!(find_daemon(&path), Some(at.clone()));
        let other = DaemonAddress { pid: 8, ..at.clone() };
        assert!(
            matches!(publish_address(&path, &other), Ok(AddressPublication::Taken(first)) if first == at)
        );
        drop(posted);
        assert_eq!(find_daemon(&path), None);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_daemon_left_behind_is_taken_over() {
        let (_keep, path, at) = place();
        repertoire_text::fs::write_atomic(&path, &serde_json::to_vec(&at).unwrap()).unwrap();
        assert_eq!(find_daemon(&path), None);
        assert!(path.exists(), "a daemon may have opened it, and is about to lock it");
        repertoire_text::fs::write_atomic(&path, b"rubbish that is longer than an address")
            .unwrap();
        let Ok(AddressPublication::Done(_posted)) = publish_address(&path, &at) else {
            panic!("it is free")
        };
        assert_eq!(find_daemon(&path), Some(at));
    }

    #[test]
    fn a_process_that_looks_at_a_stale_file_is_no_daemon() {
        let (_keep, path, at) = place();
        repertoire_text::fs::write_atomic(&path, &serde_json::to_vec(&at).unwrap()).unwrap();
        let looking = File::open(&path).unwrap();
        looking.try_lock_shared().unwrap();
        assert!(publish_address(&path, &at).is_err(), "no dead address is given out");
        drop(looking);
        assert!(matches!(publish_address(&path, &at), Ok(AddressPublication::Done(_))));
    }

    #[test]
    fn a_daemon_removes_only_its_own_file() {
        let (_keep, path, at) = place();
        let Ok(AddressPublication::Done(first)) = publish_address(&path, &at) else {
            panic!("it is free")
        };
        std::fs::remove_file(&path).unwrap();
        let other = DaemonAddress { pid: 8, ..at };
        let Ok(AddressPublication::Done(second)) = publish_address(&path, &other) else {
            panic!("it is free again")
        };
        drop(first);
        assert_eq!(find_daemon(&path), Some(other));
        drop(second);
        assert!(!path.exists());
    }
}
