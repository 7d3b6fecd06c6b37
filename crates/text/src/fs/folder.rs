//! A folder as an open handle. Paths are resolved from the handle, by the kernel or one component at a time, and the
//! caller gets a handle of the result. Since no path is resolved twice, replacing a folder with a symbolic link between
//! a check and its use has no effect.
//!
//! Symbolic links are followed as long as they stay beneath the folder. The resolved path (without links) is known
//! before anything is read or written, so that callers can check it.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{FileStamp, ReadError, bytes_of, is_beneath, stamp_of, text_of};

mod location;
mod remove;
mod replace;

pub use location::{FileLocation, LocationError};
pub(super) use replace::{NewMode, replace_file};

/// The maximum number of symbolic links that one resolution follows, as in the kernel.
const LINKS_MAX: usize = 40;

/// Flags to open a folder for path resolution only, which needs no permission to list it.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Flags to open a file for reading, without blocking on a pipe.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// An open folder.
#[derive(Debug)]
pub struct FolderHandle {
    handle: OwnedFd,
    /// The path that was used to open it.
    path: Utf8PathBuf,
}

/// A file or folder beneath a [`FolderHandle`], open for reading.
#[derive(Debug)]
pub struct OpenedEntry {
    file: File,
    metadata: std::fs::Metadata,
    relative: Utf8PathBuf,
}

impl FolderHandle {
    /// Opens a folder by its path. Symlinks on the path are followed, because the caller chose it.
    ///
    /// # Errors
    ///
    /// If it does not exist or is not a folder.
    pub fn open(path: &Utf8Path) -> std::io::Result<Self> {
        let named = if path == "" { Utf8Path::new(".") } else { path };
        let handle = rustix::fs::open(named.as_std_path(), FOLDER, Mode::empty())?;
        Ok(FolderHandle { handle, path: path.to_owned() })
    }

    /// The path that was used to open the folder.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The absolute path of the open folder, with symlinks resolved.
    ///
    /// # Errors
    ///
    /// If the operating system does not report the path, or it is not UTF-8.
    pub fn real_path(&self) -> std::io::Result<Utf8PathBuf> {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let link = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
            if let Ok(path) = Utf8Path::new(&link).read_link_utf8()
                && path.is_absolute()
                && path.exists()
            {
                return Ok(path);
            }
        }
        self.path.canonicalize_utf8()
    }

    /// Opens a file or folder for reading. `.` is the folder itself.
    ///
    /// # Errors
    ///
    /// If it does not exist, a link leads out of the folder, or it cannot be opened.
    pub fn find(&self, relative: &Utf8Path) -> Result<OpenedEntry, LocationError> {
        if !is_beneath(relative) {
            return Err(LocationError::PathRefused);
        }
        if let Some(opened) = self.open_without_links(relative) {
            let relative =
                if is_plain(relative) { relative.to_owned() } else { without_dots(relative) };
            return OpenedEntry::new(opened?, relative);
        }
        let place = self.place(relative)?;
        let relative = place.relative().to_owned();
        OpenedEntry::new(place.open_existing()?, relative)
    }

    /// Reads a file, at most `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// Like [`FolderHandle::find`], and if it is larger or not a regular file.
    pub fn read_bytes(&self, relative: &Utf8Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
        self.find(relative)?.read_bytes(bytes_max)
    }

    /// Reads a file as text, at most `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// Like [`FolderHandle::read_bytes`], and if it is not UTF-8.
    pub fn read_text(&self, relative: &Utf8Path, bytes_max: u64) -> Result<String, ReadError> {
        self.find(relative)?.read_text(bytes_max)
    }

    /// Resolves the path of a file that may not exist yet, following links that stay beneath the folder.
    ///
    /// # Errors
    ///
    /// If a link leads out of the folder or is dangling, or a component is not a folder.
    pub fn place(&self, relative: &Utf8Path) -> Result<FileLocation, LocationError> {
        location::resolve_path(self, relative, LINKS_MAX)
    }

    /// Like [`FolderHandle::place`], but refuses every symbolic link.
    ///
    /// # Errors
    ///
    /// [`LocationError::Link`] names the first link.
    pub fn resolve_without_links(
        &self,
        relative: &Utf8Path,
    ) -> Result<FileLocation, LocationError> {
        location::resolve_path(self, relative, 0)
    }

    /// Writes a file beneath the folder atomically, creating missing parents. Links that stay beneath the folder are
    /// followed.
    ///
    /// # Errors
    ///
    /// Like [`FolderHandle::place`], and if it cannot be written.
    pub fn write_atomic(&self, relative: &Utf8Path, contents: &[u8]) -> Result<(), LocationError> {
        Ok(self.place(relative)?.write_atomic(contents)?)
    }

    /// Creates a folder beneath this one, with its parents, and opens it. Links are not followed.
    ///
    /// # Errors
    ///
    /// If a link or a file is in the way.
    pub fn make_folder(
        &self,
        relative: &Utf8Path,
        mode: u32,
    ) -> Result<FolderHandle, LocationError> {
        let place = self.resolve_without_links(relative)?;
        let handle = place.make_folder(Mode::from_raw_mode(mode as rustix::fs::RawMode))?;
        Ok(FolderHandle { handle, path: self.path.join(relative) })
    }

    /// Creates a new file in this folder, and opens it for writing.
    ///
    /// # Errors
    ///
    /// If an entry of that name exists.
    pub fn create_new(&self, name: &str, mode: u32) -> std::io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode as rustix::fs::RawMode);
        Ok(File::from(rustix::fs::openat(&self.handle, entry_name(name)?, flags, mode)?))
    }

    /// Opens a subfolder of this folder. Links are refused.
    ///
    /// # Errors
    ///
    /// If it does not exist or is not a folder.
    pub fn open_child(&self, name: &str) -> std::io::Result<FolderHandle> {
        let flags = FOLDER | OFlags::NOFOLLOW;
        let handle = rustix::fs::openat(&self.handle, entry_name(name)?, flags, Mode::empty())?;
        Ok(FolderHandle { handle, path: self.path.join(name) })
    }

    /// Opens a file in this folder for reading. Links are refused.
    ///
    /// # Errors
    ///
    /// If it does not exist or cannot be opened.
    pub fn open_child_file(&self, name: &str) -> Result<OpenedEntry, LocationError> {
        OpenedEntry::new(open_file(&self.handle, entry_name(name)?)?, Utf8PathBuf::from(name))
    }

    /// The size of a file in this folder; `None` for anything but a regular file.
    pub fn child_bytes(&self, name: &str) -> Option<u64> {
        let stat = stat_of(&self.handle, entry_name(name).ok()?)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        is_file.then(|| u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Iterates over the entries of the folder, in directory order.
    ///
    /// # Errors
    ///
    /// If it may not be listed.
    pub fn entries(
        &self,
    ) -> std::io::Result<impl Iterator<Item = std::io::Result<super::FolderEntry>>> {
        // The handle is for resolution only and cannot be listed, so open another one from it.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, ".", flags, Mode::empty())?;
        super::iterate_dir(rustix::fs::Dir::new(handle)?)
    }

    /// Removes a file, link or folder beneath this one, with its contents. Links are not followed. Succeeds if there is
    /// nothing to remove.
    ///
    /// # Errors
    ///
    /// If a parent is a link, or something cannot be removed.
    pub fn remove_all(&self, relative: &Utf8Path) -> Result<(), LocationError> {
        match self.resolve_without_links(relative) {
            Ok(place) => Ok(place.remove_all()?),
            // A link at the end is removed itself; a link on the way is an error.
            Err(LocationError::Link { link, .. }) if without_dots(relative) == link => {
                self.remove_file(&link)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes an empty folder beneath this one. Links are not followed.
    ///
    /// # Errors
    ///
    /// If it is not empty, or a parent is a link.
    pub fn remove_empty(&self, relative: &Utf8Path) -> Result<(), LocationError> {
        Ok(self.resolve_without_links(relative)?.remove_empty()?)
    }

    /// Removes a file or a symbolic link beneath this folder. Links on the way are not followed. Succeeds if there is
    /// nothing to remove.
    ///
    /// # Errors
    ///
    /// If it is a folder, or a parent is a link.
    pub fn remove_file(&self, relative: &Utf8Path) -> Result<(), LocationError> {
        if !is_beneath(relative) {
            return Err(LocationError::PathRefused);
        }
        let name = relative.file_name().ok_or(LocationError::PathRefused)?;
        let above = match relative.parent() {
            Some(above) if above != "" => {
                self.resolve_without_links(above).and_then(|at| at.open_existing())
            }
            _ => Ok(self.handle.try_clone()?),
        };
        let removed =
            above.and_then(|above| Ok(rustix::fs::unlinkat(&above, name, AtFlags::empty())?));
        match removed {
            Err(LocationError::NotFound) => Ok(()),
            removed => removed,
        }
    }

    /// Opens a path without symlinks with a single system call. Returns `None` if the kernel does not support that, or
    /// if there is a link on the way: then the path is resolved step by step.
    #[cfg(target_os = "linux")]
    fn open_without_links(&self, relative: &Utf8Path) -> Option<Result<OwnedFd, LocationError>> {
        use rustix::fs::ResolveFlags;
        let only = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.handle, relative.as_std_path(), READ, Mode::empty(), only) {
            Ok(handle) => Some(Ok(handle)),
            // A link, a kernel without the call, or a seccomp filter that refuses it.
            Err(Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::XDEV | Errno::AGAIN) => None,
            Err(error) => Some(Err(LocationError::from(error))),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open_without_links(&self, _relative: &Utf8Path) -> Option<Result<OwnedFd, LocationError>> {
        None
    }
}

impl AsFd for FolderHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl OpenedEntry {
    fn new(handle: OwnedFd, relative: Utf8PathBuf) -> Result<Self, LocationError> {
        let file = File::from(handle);
        let metadata = file.metadata()?;
        Ok(OpenedEntry { file, metadata, relative })
    }

    /// The path relative to the folder, with links resolved; `.` for the folder itself.
    pub fn relative(&self) -> &Utf8Path {
        &self.relative
    }

    pub fn is_folder(&self) -> bool {
        self.metadata.is_dir()
    }

    /// The size in bytes.
    pub fn bytes(&self) -> u64 {
        self.metadata.len()
    }

    /// The permission bits, as for `chmod`.
    pub fn permissions(&self) -> u32 {
        use std::os::unix::fs::PermissionsExt;
        self.metadata.permissions().mode() & 0o777
    }

    /// Reads at most `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// If the file is larger or not a regular file.
    pub fn read_bytes(&self, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
        bytes_of(&mut &self.file, &self.metadata, bytes_max)
    }

    /// Reads the file as text, at most `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// Like [`OpenedEntry::read_bytes`], and if it is not UTF-8.
    pub fn read_text(&self, bytes_max: u64) -> Result<String, ReadError> {
        text_of(self.read_bytes(bytes_max)?)
    }

    /// The stamp of the state that was opened.
    pub fn stamp(&self) -> FileStamp {
        stamp_of(&self.metadata)
    }

    /// Converts this to a [`FolderHandle`] with the given path.
    ///
    /// # Errors
    ///
    /// If it is not a folder.
    pub fn to_folder(&self, path: Utf8PathBuf) -> std::io::Result<FolderHandle> {
        if !self.is_folder() {
            return Err(Errno::NOTDIR.into());
        }
        Ok(FolderHandle { handle: OwnedFd::from(self.file.try_clone()?), path })
    }
}

/// Opens a file in a folder for reading. Links are refused.
fn open_file(folder: impl AsFd, name: &str) -> Result<OwnedFd, LocationError> {
    rustix::fs::openat(folder, name, READ | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| {
        match error {
            // It was not a link when the path was resolved.
            Errno::LOOP => LocationError::LinkLeaves { link: name.into(), to: None },
            error => error.into(),
        }
    })
}

/// The metadata of a folder's entry, without following a link.
fn stat_of(folder: impl AsFd, name: &str) -> Option<Stat> {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()
}

/// Checks that a name is that of an entry, not a path.
fn entry_name(name: &str) -> std::io::Result<&str> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return Err(Errno::INVAL.into());
    }
    Ok(name)
}

/// Returns true if a path has no `.` components, no empty components and no trailing slash.
fn is_plain(relative: &Utf8Path) -> bool {
    let text = relative.as_str();
    !text.starts_with("./")
        && !text.ends_with(['/', '.'])
        && !text.contains("//")
        && !text.contains("/./")
}

/// Removes `.` components from a relative path. Returns `.` for the folder itself.
fn without_dots(relative: &Utf8Path) -> Utf8PathBuf {
    let parts = relative.components().filter(|part| matches!(part, Utf8Component::Normal(_)));
    let path: Utf8PathBuf = parts.collect();
    if path == "" { Utf8PathBuf::from(".") } else { path }
}

#[cfg(test)]
mod tests;
