//! Writing a file in one step inside an open folder: the text goes into a file without a name (Linux) or with a
//! temporary one, which then takes the name of the target.
//!
//! A killed write leaves nothing behind, except in the moment between two system calls and on systems without nameless
//! files. The next write of the same target removes such a temporary file, once no process holds it any more.

use std::fs::File;
use std::io::Write;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::stat_of;
use crate::fs::TEMPORARY_PREFIX;

/// The maximum number of processes that write the same file at the same time.
const NAMES_MAX: usize = 256;
/// Permissions of files, without the bits that make a program run as its owner.
const PERMISSIONS: rustix::fs::RawMode = 0o777;

/// The permissions of a written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewMode {
    /// Those of the existing file; for a new file what the user's mask leaves.
    KeptOrMasked,
    /// Only the owner may read and write it.
    Private,
}

/// Puts a file with `contents` into the place of `name`, which is an entry of the folder. A link of that name is
/// replaced, not followed.
pub(crate) fn replace(
    folder: BorrowedFd<'_>,
    name: &str,
    contents: &[u8],
    new_mode: NewMode,
) -> std::io::Result<()> {
    let existing = stat_of(folder, name);
    let kept = match (&existing, new_mode) {
        (_, NewMode::Private) => Some(Mode::from_raw_mode(0o600)),
        (Some(stat), _) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            Some(Mode::from_raw_mode(stat.st_mode & PERMISSIONS))
        }
        _ => None,
    };
    #[cfg(target_os = "linux")]
    if let Some(file) = nameless(folder, kept)? {
        fill(&file, contents)?;
        if existing.is_none() && link(&file, folder, name).is_ok() {
            return Ok(());
        }
        if let Some(temporary) = link_temporary(&file, folder, name)? {
            return rename(folder, &temporary, name);
        }
    }
    let (file, temporary) = named(folder, name, kept)?;
    if let Err(error) = fill(&file, contents) {
        let _ = rustix::fs::unlinkat(folder, temporary.as_str(), AtFlags::empty());
        return Err(error);
    }
    rename(folder, &temporary, name)
}

fn fill(mut file: &File, contents: &[u8]) -> std::io::Result<()> {
    file.write_all(contents)?;
    file.sync_all()
}

fn rename(folder: BorrowedFd<'_>, temporary: &str, name: &str) -> std::io::Result<()> {
    rustix::fs::renameat(folder, temporary, folder, name).map_err(|error| {
        let _ = rustix::fs::unlinkat(folder, temporary, AtFlags::empty());
        error.into()
    })
}

/// A file without a name, which disappears with the process; `None` where the file system has none.
#[cfg(target_os = "linux")]
fn nameless(folder: BorrowedFd<'_>, kept: Option<Mode>) -> std::io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, ".", flags, first_mode(kept)) {
        Ok(handle) => with_mode(File::from(handle), kept).map(Some),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT | Errno::NOSYS) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The permissions that a file is created with; the kernel takes away those that the user's mask says.
fn first_mode(kept: Option<Mode>) -> Mode {
    Mode::from_raw_mode(if kept.is_some() { 0o600 } else { 0o666 })
}

/// Sets the permissions before there is any content, so that a private text is never readable for a moment.
fn with_mode(file: File, kept: Option<Mode>) -> std::io::Result<File> {
    if let Some(mode) = kept {
        rustix::fs::fchmod(&file, mode)?;
    }
    Ok(file)
}

/// Gives a nameless file a name that is not taken.
#[cfg(target_os = "linux")]
fn link(file: &File, folder: BorrowedFd<'_>, name: &str) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd;
    let of_file = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(rustix::fs::CWD, of_file.as_str(), folder, name, AtFlags::SYMLINK_FOLLOW)
}

/// Gives a nameless file a temporary name. `None` if it cannot have one, for instance without `/proc`.
#[cfg(target_os = "linux")]
fn link_temporary(
    file: &File,
    folder: BorrowedFd<'_>,
    name: &str,
) -> std::io::Result<Option<String>> {
    if !take_lock(file) {
        return Ok(None);
    }
    for temporary in temporary_names(name) {
        // Twice, if the process that has the name is gone.
        for _ in 0..2 {
            match link(file, folder, &temporary) {
                Ok(()) => return Ok(Some(temporary)),
                Err(Errno::EXIST) if remove_stale(folder, &temporary) => {}
                Err(Errno::EXIST) => break,
                Err(_) => return Ok(None),
            }
        }
    }
    Err(too_many(name))
}

/// A new file with a temporary name.
fn named(
    folder: BorrowedFd<'_>,
    name: &str,
    kept: Option<Mode>,
) -> std::io::Result<(File, String)> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    for temporary in temporary_names(name) {
        for _ in 0..2 {
            match rustix::fs::openat(folder, temporary.as_str(), flags, first_mode(kept)) {
                Ok(handle) => {
                    let file = File::from(handle);
                    // Another process may have taken it for an abandoned one before it was locked, and removed it.
                    if take_lock(&file) && is_named(&file, folder, &temporary) {
                        return Ok((with_mode(file, kept)?, temporary));
                    }
                }
                Err(Errno::EXIST) if remove_stale(folder, &temporary) => {}
                Err(Errno::EXIST) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Err(too_many(name))
}

/// The temporary names of a target: the same for every process, so that each finds the files of others.
pub(super) fn temporary_names(name: &str) -> impl Iterator<Item = String> {
    // FNV-1a. Targets whose hashes collide share temporary names, which is harmless.
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (0..NAMES_MAX).map(move |number| format!("{TEMPORARY_PREFIX}{hash:08x}-{number}"))
}

/// Takes the lock that tells other processes that this one is writing the file. The kernel releases it when the process
/// ends, however it ends.
fn take_lock(file: &File) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Removes a temporary file that no process holds any more. Returns whether its name is free.
fn remove_stale(folder: BorrowedFd<'_>, temporary: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, temporary, flags, Mode::empty()) {
        Ok(handle) => {
            let file = File::from(handle);
            take_lock(&file)
                && is_named(&file, folder, temporary)
                && rustix::fs::unlinkat(folder, temporary, AtFlags::empty()).is_ok()
        }
        Err(error) => error == Errno::NOENT,
    }
}

/// Whether a name of the folder is that of an open file.
fn is_named(file: &File, folder: BorrowedFd<'_>, name: &str) -> bool {
    match (stat_of(folder, name), rustix::fs::fstat(file)) {
        (Some(named), Ok(open)) => named.st_ino == open.st_ino && named.st_dev == open.st_dev,
        _ => false,
    }
}

fn too_many(name: &str) -> std::io::Error {
    std::io::Error::other(format!("{NAMES_MAX} processes write `{name}` at the same time"))
}
