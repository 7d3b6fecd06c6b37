//! Writes a file atomically inside an open folder: the text goes into an unnamed file (Linux) or a temporary one, which
//! then replaces the target.
//!
//! A killed write leaves nothing behind, except between two system calls and on systems without unnamed files. The next
//! write of the same target removes such a temporary file, once no process holds its lock any more. On a file system
//! without locks this cannot be determined, so each write uses a random name there.

use std::fs::File;
use std::io::Write;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::stat_of;
use crate::fs::TEMPORARY_PREFIX;

/// The maximum number of processes that write the same file at the same time.
const NAMES_MAX: usize = 256;
/// The maximum number of random names that are tried.
const RANDOM_NAMES_MAX: usize = 16;
/// The permission bits of files, without setuid and setgid.
const PERMISSIONS: rustix::fs::RawMode = 0o777;

/// Flags to create a new file.
const CREATING: OFlags =
    OFlags::CREATE.union(OFlags::EXCL).union(OFlags::WRONLY).union(OFlags::CLOEXEC);

/// The permissions of a written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewMode {
    /// Those of the existing file; a new file follows the umask.
    KeptOrMasked,
    /// Readable and writable only by the owner.
    Private,
}

/// Replaces the entry `name` of the folder with a file that has these contents. A link of that name is replaced, not
/// followed.
pub(crate) fn replace_file(
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
    if let Some(file) = open_unnamed(folder, kept)? {
        write_contents(&file, contents)?;
        // Linking fails if the name was taken in the meantime; then replace it through a temporary name.
        if existing.is_none() && link_unnamed(&file, folder, name).is_ok() {
            return Ok(());
        }
        if let Some(temporary) = link_temporary(&file, folder, name)? {
            return rename_temporary(folder, &temporary, name);
        }
    }
    let (file, temporary) = create_temporary(folder, name, kept)?;
    if let Err(error) = write_contents(&file, contents) {
        remove_temporary(folder, &temporary);
        return Err(error);
    }
    rename_temporary(folder, &temporary, name)
}

fn write_contents(mut file: &File, contents: &[u8]) -> std::io::Result<()> {
    file.write_all(contents)?;
    // Sync before the rename, or a crash could leave an empty file.
    file.sync_all()
}

fn rename_temporary(folder: BorrowedFd<'_>, temporary: &str, name: &str) -> std::io::Result<()> {
    rustix::fs::renameat(folder, temporary, folder, name).map_err(|error| {
        remove_temporary(folder, temporary);
        error.into()
    })
}

/// Removes a temporary file that will not become the target.
fn remove_temporary(folder: BorrowedFd<'_>, temporary: &str) {
    let _ = rustix::fs::unlinkat(folder, temporary, AtFlags::empty());
}

/// Opens an unnamed file, which disappears with the process. Returns `None` if the file system does not support them.
#[cfg(target_os = "linux")]
fn open_unnamed(folder: BorrowedFd<'_>, kept: Option<Mode>) -> std::io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, ".", flags, creation_mode(kept)) {
        Ok(handle) => with_mode(File::from(handle), kept).map(Some),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT | Errno::NOSYS) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The mode for creating a file; the kernel applies the umask.
fn creation_mode(kept: Option<Mode>) -> Mode {
    Mode::from_raw_mode(if kept.is_some() { 0o600 } else { 0o666 })
}

/// Sets the permissions before anything is written, so that private text is never readable to others.
fn with_mode(file: File, kept: Option<Mode>) -> std::io::Result<File> {
    if let Some(mode) = kept {
        rustix::fs::fchmod(&file, mode)?;
    }
    Ok(file)
}

/// Links an unnamed file to a name, which must be free.
#[cfg(target_os = "linux")]
fn link_unnamed(file: &File, folder: BorrowedFd<'_>, name: &str) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd;
    let of_file = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(rustix::fs::CWD, of_file.as_str(), folder, name, AtFlags::SYMLINK_FOLLOW)
}

/// Links an unnamed file to a temporary name. Returns `None` if that is impossible, for instance without `/proc`.
#[cfg(target_os = "linux")]
fn link_temporary(
    file: &File,
    folder: BorrowedFd<'_>,
    name: &str,
) -> std::io::Result<Option<String>> {
    let names: Vec<String> = match take_lock(file) {
        WriterLock::Taken => temporary_names(name).collect(),
        WriterLock::Unsupported => random_names().collect(),
        WriterLock::HeldByAnother => return Ok(None),
    };
    for temporary in names {
        // Try twice: the process that used the name may be gone.
        for _ in 0..2 {
            match link_unnamed(file, folder, &temporary) {
                Ok(()) => return Ok(Some(temporary)),
                Err(Errno::EXIST) if remove_stale(folder, &temporary) => {}
                Err(Errno::EXIST) => break,
                Err(_) => return Ok(None),
            }
        }
    }
    Err(too_many(name))
}

/// Creates a file with a temporary name.
pub(super) fn create_temporary(
    folder: BorrowedFd<'_>,
    name: &str,
    kept: Option<Mode>,
) -> std::io::Result<(File, String)> {
    for temporary in temporary_names(name) {
        for _ in 0..2 {
            match rustix::fs::openat(folder, temporary.as_str(), CREATING, creation_mode(kept)) {
                Ok(handle) => {
                    let file = File::from(handle);
                    match take_lock(&file) {
                        WriterLock::Taken if is_named(&file, folder, &temporary) => {
                            return with_mode_or_removed(file, folder, temporary, kept);
                        }
                        // Another process considered it abandoned before it was locked, and removes it.
                        WriterLock::Taken | WriterLock::HeldByAnother => {}
                        WriterLock::Unsupported => {
                            remove_temporary(folder, &temporary);
                            return create_randomly_named(folder, name, kept);
                        }
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

/// Creates a file with a random name, for file systems where locks cannot tell which files are abandoned.
fn create_randomly_named(
    folder: BorrowedFd<'_>,
    name: &str,
    kept: Option<Mode>,
) -> std::io::Result<(File, String)> {
    for temporary in random_names() {
        match rustix::fs::openat(folder, temporary.as_str(), CREATING, creation_mode(kept)) {
            Ok(handle) => return with_mode_or_removed(handle.into(), folder, temporary, kept),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(too_many(name))
}

fn with_mode_or_removed(
    file: File,
    folder: BorrowedFd<'_>,
    temporary: String,
    kept: Option<Mode>,
) -> std::io::Result<(File, String)> {
    match with_mode(file, kept) {
        Ok(file) => Ok((file, temporary)),
        Err(error) => {
            remove_temporary(folder, &temporary);
            Err(error)
        }
    }
}

/// Random temporary names.
fn random_names() -> impl Iterator<Item = String> {
    use std::hash::BuildHasher;
    (0..RANDOM_NAMES_MAX).map(|number| {
        let random = std::hash::RandomState::new().hash_one(number);
        format!("{TEMPORARY_PREFIX}{:06x}", random & 0xff_ffff)
    })
}

/// The temporary names of a target. They are the same for every process, so that each finds the abandoned files of
/// others.
pub(super) fn temporary_names(name: &str) -> impl Iterator<Item = String> {
    // FNV-1a. Targets whose hashes collide share temporary names, which is harmless.
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (0..NAMES_MAX).map(move |number| format!("{TEMPORARY_PREFIX}{hash:08x}-{number}"))
}

/// The result of requesting the lock of a temporary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriterLock {
    Taken,
    HeldByAnother,
    /// The file system, or a seccomp filter, does not allow locks.
    Unsupported,
}

/// Takes the lock that shows other processes that this one is writing the file. The kernel releases it when the process
/// ends, even if it is killed.
fn take_lock(file: &File) -> WriterLock {
    loop {
        match request_lock(file) {
            Ok(()) => return WriterLock::Taken,
            Err(Errno::WOULDBLOCK) => return WriterLock::HeldByAnother,
            Err(Errno::INTR) => {}
            Err(_) => return WriterLock::Unsupported,
        }
    }
}

#[cfg(not(test))]
fn request_lock(file: &File) -> rustix::io::Result<()> {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)
}

#[cfg(test)]
thread_local! {
    /// The error that simulates a file system without locks.
    pub(super) static LOCK_ERROR: std::cell::Cell<Option<Errno>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
fn request_lock(file: &File) -> rustix::io::Result<()> {
    match LOCK_ERROR.get() {
        Some(error) => Err(error),
        None => rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive),
    }
}

/// Removes a temporary file that no process holds any more. Returns true if its name is free.
fn remove_stale(folder: BorrowedFd<'_>, temporary: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, temporary, flags, Mode::empty()) {
        Ok(handle) => {
            let file = File::from(handle);
            take_lock(&file) == WriterLock::Taken
                && is_named(&file, folder, temporary)
                && rustix::fs::unlinkat(folder, temporary, AtFlags::empty()).is_ok()
        }
        Err(error) => error == Errno::NOENT,
    }
}

/// Returns true if a name in the folder refers to an open file.
fn is_named(file: &File, folder: BorrowedFd<'_>, name: &str) -> bool {
    match (stat_of(folder, name), rustix::fs::fstat(file)) {
        (Some(named), Ok(open)) => named.st_ino == open.st_ino && named.st_dev == open.st_dev,
        _ => false,
    }
}

fn too_many(name: &str) -> std::io::Error {
    std::io::Error::other(format!("{NAMES_MAX} processes write `{name}` at the same time"))
}
