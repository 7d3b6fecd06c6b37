//! Removes a tree through handles, so that no link in it or above it is followed.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// The maximum depth of a tree that is removed, since each level keeps a handle open.
const DEPTH_MAX: usize = 256;

/// Removes an entry of a folder, with its contents. Succeeds if it does not exist.
pub(super) fn remove_all(folder: BorrowedFd<'_>, name: &str) -> std::io::Result<()> {
    remove_entry(folder, &CString::new(name)?, DEPTH_MAX)
}

fn remove_entry(folder: BorrowedFd<'_>, name: &CStr, depth: usize) -> std::io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // For a folder, Linux returns `EISDIR` and POSIX `EPERM`.
        Err(Errno::ISDIR | Errno::PERM) if depth > 0 => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    for entry in Dir::read_from(&inner)? {
        let entry = entry?;
        let entry_name = entry.file_name();
        if matches!(entry_name.to_bytes(), b"." | b"..") {
            continue;
        }
        match entry.file_type() {
            FileType::Directory | FileType::Unknown => {
                remove_entry(inner.as_fd(), entry_name, depth - 1)?
            }
            _ => ignore_missing(rustix::fs::unlinkat(&inner, entry_name, AtFlags::empty()))?,
        }
    }
    ignore_missing(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR))
}

fn ignore_missing(removed: rustix::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
