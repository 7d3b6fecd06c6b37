//! The address file of a user's daemon. The daemon keeps the file locked as long as it lives, so that a stale file can
//! be recognised.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::limits::SMALL_FILE_BYTES_MAX;

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
    _locked: File,
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // If this fails, the released lock still shows that the daemon is gone.
        let _ = std::fs::remove_file(&self.path);
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
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return match read_address(&mut file) {
                Some(other) => Ok(AddressPublication::Taken(other)),
                None => Err(io::Error::other("another daemon is just starting")),
            };
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.set_len(0)?;
    file.rewind()?;
    serde_json::to_writer(&file, at)?;
    file.write_all(b"\n")?;
    Ok(AddressPublication::Done(AddressFile { path: path.to_owned(), _locked: file }))
}

/// Returns the address of this user's daemon, if one is alive. A stale file is removed.
pub fn find_daemon(path: &Utf8Path) -> Option<DaemonAddress> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    let mut file = file.ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => read_address(&mut file),
        Ok(()) | Err(TryLockError::Error(_)) => {
            let _ = std::fs::remove_file(path);
            None
        }
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
    fn what_a_daemon_left_behind_is_removed() {
        let (_keep, path, at) = place();
        repertoire_text::fs::write_atomic(&path, &serde_json::to_vec(&at).unwrap()).unwrap();
        assert_eq!(find_daemon(&path), None);
        assert!(!path.exists());
        repertoire_text::fs::write_atomic(&path, b"rubbish that is longer than an address")
            .unwrap();
        assert!(matches!(publish_address(&path, &at), Ok(AddressPublication::Done(_))));
    }
}
