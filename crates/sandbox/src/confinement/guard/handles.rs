//! Reads and changes folder entries through file descriptors, without following symlinks.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use camino::Utf8Path;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::limits::GUARDED_BYTES_MAX;

/// Flags to open a folder only as a step towards its entries. This needs no permission to list it.
#[cfg(target_os = "linux")]
const WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const WAY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// The owner permissions that are needed to work in a folder.
const OWNER_RIGHTS: u32 = 0o700;

pub(super) fn open_dir(path: &Utf8Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path.as_str(), flags, Mode::empty())?)
}

/// Opens a folder beneath `dir` without following symlinks in any component.
pub(super) fn open_beneath(dir: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let mut at = rustix::io::dup(dir)?;
    for part in path.components() {
        let Component::Normal(name) = part else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        at = rustix::fs::openat(&at, name, WAY | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(at)
}

pub(super) fn parent_of<'a>(dir: &OwnedFd, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = path.parent().unwrap_or(Path::new(""));
    Ok((open_beneath(dir, parent)?, name))
}

/// Returns true if the error means that the folder does not exist, rather than that access to it is denied.
pub(super) fn is_missing(error: &io::Error) -> bool {
    let missing = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP];
    missing.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Returns `None` if there is no entry with that name.
pub(super) fn stat_entry(parent: &OwnedFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn file_kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(super) fn permission_bits(stat: &Stat) -> u32 {
    #[allow(clippy::unnecessary_cast, reason = "the types of the fields differ between machines")]
    let mode = stat.st_mode as u32;
    mode & 0o7777
}

pub(super) fn read_link(parent: &OwnedFd, name: &OsStr) -> Option<OsString> {
    let target = rustix::fs::readlinkat(parent, name, Vec::new()).ok()?;
    Some(OsStr::from_bytes(target.as_bytes()).to_owned())
}

pub(super) fn read_contents(parent: &OwnedFd, name: &OsStr) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(parent, name, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(GUARDED_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The names in a folder, sorted.
pub(super) fn list_names(fd: &OwnedFd) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut names = Vec::new();
    for entry in Dir::new(rustix::fs::openat(fd, ".", flags, Mode::empty())?)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Writes a temporary file and renames it over the target, so that the change is atomic.
pub(super) fn write_file(
    parent: &OwnedFd,
    name: &OsStr,
    bytes: &[u8],
    mode: u32,
) -> io::Result<()> {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(".restored");
    let _ = rustix::fs::unlinkat(parent, &temporary, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(parent, &temporary, flags, Mode::from_raw_mode(0o600))?;
    let mut file = File::from(fd);
    file.write_all(bytes)?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    Ok(rustix::fs::renameat(parent, &temporary, parent, name)?)
}

/// Creates a folder, or sets the mode of an existing one.
pub(super) fn make_folder(parent: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<()> {
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(OWNER_RIGHTS)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(parent, name, flags, Mode::empty());
    let fd = match open() {
        Err(Errno::ACCESS) if unlock(parent, Path::new(name)) => open(),
        opened => opened,
    }?;
    Ok(rustix::fs::fchmod(fd, Mode::from_raw_mode(mode))?)
}

/// Copies a regular file that the program may still be writing to. A copy that fails is removed.
pub(super) fn copy_file(
    parent: &OwnedFd,
    name: &OsStr,
    to: &OwnedFd,
    target: &OsStr,
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let from = File::from(rustix::fs::openat(parent, name, flags, Mode::empty())?);
    let size = from.metadata().and_then(|metadata| match metadata.is_file() {
        true => Ok(metadata.len()),
        false => Err(io::ErrorKind::InvalidInput.into()),
    })?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(to, target, flags, Mode::from_raw_mode(0o600))?;
    let copied = io::copy(&mut from.take(size), &mut File::from(fd));
    copied.map(drop).inspect_err(|_| {
        // The error of the copy is the one to report.
        let _ = rustix::fs::unlinkat(to, target, AtFlags::empty());
    })
}

pub(super) fn delete_entry(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) => Ok(()),
        // The descriptor refers to the folder itself, even if its path leads elsewhere by now.
        Err(_) => std::fs::remove_dir_all(
            Path::new(&format!("/proc/self/fd/{}", parent.as_raw_fd())).join(name),
        ),
    }
}

/// Removes a socket that a program created and that no server listens on any more. If it stayed, the next program would
/// find it covered by a mount, and could not remove it.
pub(super) fn remove_dead_socket(dir: &OwnedFd, path: &Path) {
    let Ok((parent, name)) = parent_of(dir, path) else { return };
    let is_socket = stat_entry(&parent, name)
        .is_ok_and(|stat| stat.is_some_and(|stat| file_kind(&stat) == FileType::Socket));
    let address = Path::new(&format!("/proc/self/fd/{}", parent.as_raw_fd())).join(name);
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket && std::os::unix::net::UnixStream::connect(address).is_err_and(refused) {
        // Best effort: if this fails, the next program sees an error for the covered socket.
        let _ = rustix::fs::unlinkat(&parent, name, AtFlags::empty());
    }
}

/// Gives the owner all permissions on a folder, if this user owns it and some are missing. Returns true if it changed
/// the mode.
#[cfg(target_os = "linux")]
pub(in crate::confinement) fn unlock(dir: &OwnedFd, path: &Path) -> bool {
    let Ok(fd) = rustix::fs::openat(dir, path, WAY | OFlags::NOFOLLOW, Mode::empty()) else {
        return false;
    };
    let Ok(stat) = rustix::fs::fstat(&fd) else { return false };
    let now = permission_bits(&stat);
    if stat.st_uid != rustix::process::geteuid().as_raw() || now & OWNER_RIGHTS == OWNER_RIGHTS {
        return false;
    }
    // `fchmod` fails on an `O_PATH` descriptor, but its path in `/proc` leads to the folder itself.
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::chmod(path, Mode::from_raw_mode(now | OWNER_RIGHTS)).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(in crate::confinement) fn unlock(_dir: &OwnedFd, _path: &Path) -> bool {
    false
}

/// Unlocks every folder along a path. Returns true if at least one was locked.
pub(super) fn unlock_along(dir: &OwnedFd, path: &Path) -> bool {
    let mut way: Vec<&Path> = path.ancestors().filter(|at| !at.as_os_str().is_empty()).collect();
    way.reverse();
    way.into_iter().filter(|at| unlock(dir, at)).count() > 0
}
