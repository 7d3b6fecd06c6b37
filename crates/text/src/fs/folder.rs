//! A folder as an open handle. Paths are resolved from the handle, one component at a time or by the kernel, and the
//! caller gets a handle of the result: no path is resolved a second time, so replacing a folder by a symbolic link
//! between a check and its use leads nowhere.
//!
//! Symbolic links are followed as long as they stay beneath the folder. The resolved place (without links) is known
//! before anything is read or written, so that callers can decide by it.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{ReadError, Stamp, bytes_of, is_beneath, stamp_of, text_of};

mod place;
mod remove;
mod replace;

pub use place::{Place, PlaceError};
pub(super) use replace::{NewMode, replace};

/// The maximum number of symbolic links that one resolution follows, as in the kernel.
const LINKS_MAX: usize = 40;

/// Opens a folder for resolution only: it needs no permission to list it.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a file for reading without waiting for the other end of a pipe.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    /// The path that it was opened by.
    path: Utf8PathBuf,
}

/// A file or folder that was found beneath a [`Folder`], open for reading.
#[derive(Debug)]
pub struct Found {
    file: File,
    metadata: std::fs::Metadata,
    relative: Utf8PathBuf,
}

impl Folder {
    /// Opens a folder by its path. Links on the way are followed: the caller chose the path.
    ///
    /// # Errors
    ///
    /// When it is not there or not a folder.
    pub fn open(path: &Utf8Path) -> std::io::Result<Self> {
        let named = if path == "" { Utf8Path::new(".") } else { path };
        let handle = rustix::fs::open(named.as_std_path(), FOLDER, Mode::empty())?;
        Ok(Folder { handle, path: path.to_owned() })
    }

    /// The path that the folder was opened by.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The absolute path of the open folder, without links.
    ///
    /// # Errors
    ///
    /// When the operating system does not say, or the path is not UTF-8.
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
    /// When it is not there, a link leads out of the folder, or it cannot be opened.
    pub fn find(&self, relative: &Utf8Path) -> Result<Found, PlaceError> {
        if !is_beneath(relative) {
            return Err(PlaceError::PathRefused);
        }
        if let Some(opened) = self.open_without_links(relative) {
            let relative = if is_plain(relative) { relative.to_owned() } else { plain(relative) };
            return Found::new(opened?, relative);
        }
        let place = self.place(relative)?;
        let relative = place.relative().to_owned();
        Found::new(place.open()?, relative)
    }

    /// Reads a file's bytes, at most `bytes_max` of them.
    ///
    /// # Errors
    ///
    /// As [`Folder::find`], and when it is not a regular file or larger.
    pub fn read_bytes(&self, relative: &Utf8Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
        self.find(relative)?.read_bytes(bytes_max)
    }

    /// Reads a file as text, at most `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// As [`Folder::read_bytes`], and when it is not UTF-8.
    pub fn read_text(&self, relative: &Utf8Path, bytes_max: u64) -> Result<String, ReadError> {
        self.find(relative)?.read_text(bytes_max)
    }

    /// Resolves the place of a file that may not exist yet, following links that stay beneath the folder.
    ///
    /// # Errors
    ///
    /// When a link leads out of the folder or to nothing, or something on the way is not a folder.
    pub fn place(&self, relative: &Utf8Path) -> Result<Place, PlaceError> {
        place::resolve(self, relative, LINKS_MAX)
    }

    /// As [`Folder::place`], but every symbolic link is refused.
    ///
    /// # Errors
    ///
    /// [`PlaceError::Link`] names the first link.
    pub fn place_without_links(&self, relative: &Utf8Path) -> Result<Place, PlaceError> {
        place::resolve(self, relative, 0)
    }

    /// Writes a file beneath the folder, with the folders above it, in one step. Links that stay beneath are followed.
    ///
    /// # Errors
    ///
    /// As [`Folder::place`], and when it cannot be written.
    pub fn write_atomic(&self, relative: &Utf8Path, contents: &[u8]) -> Result<(), PlaceError> {
        Ok(self.place(relative)?.write_atomic(contents)?)
    }

    /// Makes a folder beneath this one, with those above it, and opens it. No link is followed.
    ///
    /// # Errors
    ///
    /// When a link or a file is in the way.
    pub fn make_folder(&self, relative: &Utf8Path, mode: u32) -> Result<Folder, PlaceError> {
        let place = self.place_without_links(relative)?;
        let handle = place.make_folder(Mode::from_raw_mode(mode as rustix::fs::RawMode))?;
        Ok(Folder { handle, path: self.path.join(relative) })
    }

    /// Creates a file in this folder that was not there before, and opens it for writing.
    ///
    /// # Errors
    ///
    /// When something of that name is there.
    pub fn create_new(&self, name: &str, mode: u32) -> std::io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode as rustix::fs::RawMode);
        Ok(File::from(rustix::fs::openat(&self.handle, single(name)?, flags, mode)?))
    }

    /// Opens a folder in this folder; a link is refused.
    ///
    /// # Errors
    ///
    /// When there is none, or it is something else.
    pub fn child(&self, name: &str) -> std::io::Result<Folder> {
        let flags = FOLDER | OFlags::NOFOLLOW;
        let handle = rustix::fs::openat(&self.handle, single(name)?, flags, Mode::empty())?;
        Ok(Folder { handle, path: self.path.join(name) })
    }

    /// Opens a file in this folder for reading; a link is refused.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be opened.
    pub fn child_file(&self, name: &str) -> Result<Found, PlaceError> {
        Found::new(open_file(&self.handle, single(name)?)?, Utf8PathBuf::from(name))
    }

    /// The size of a file in this folder; `None` for anything but a regular file.
    pub fn child_bytes(&self, name: &str) -> Option<u64> {
        let stat = stat_of(&self.handle, single(name).ok()?)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        is_file.then(|| u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// The entries of the folder, in the order of the disk, read as they are asked for.
    ///
    /// # Errors
    ///
    /// When it may not be listed.
    pub fn entries(
        &self,
    ) -> std::io::Result<impl Iterator<Item = std::io::Result<super::FolderEntry>>> {
        // A handle for resolution only cannot be listed; one that is opened from it can.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, ".", flags, Mode::empty())?;
        super::listed(rustix::fs::Dir::new(handle)?)
    }

    /// Removes a file, link or folder beneath this one, with everything in it. No link is followed, and nothing to
    /// remove is fine.
    ///
    /// # Errors
    ///
    /// When a link is on the way, or something cannot be removed.
    pub fn remove_all(&self, relative: &Utf8Path) -> Result<(), PlaceError> {
        match self.place_without_links(relative) {
            Ok(place) => Ok(place.remove_all()?),
            // A link at the end is removed itself; one on the way is not passed.
            Err(PlaceError::Link { link, .. }) if plain(relative) == link => {
                self.remove_file(&link)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes an empty folder beneath this one. No link is followed.
    ///
    /// # Errors
    ///
    /// When it is not empty, or a link is on the way.
    pub fn remove_empty(&self, relative: &Utf8Path) -> Result<(), PlaceError> {
        Ok(self.place_without_links(relative)?.remove_empty()?)
    }

    /// Removes a file or a symbolic link beneath this folder. No link on the way is followed, and nothing to remove is
    /// fine.
    ///
    /// # Errors
    ///
    /// When it is a folder, or a link is on the way.
    pub fn remove_file(&self, relative: &Utf8Path) -> Result<(), PlaceError> {
        if !is_beneath(relative) {
            return Err(PlaceError::PathRefused);
        }
        let name = relative.file_name().ok_or(PlaceError::PathRefused)?;
        let above = match relative.parent() {
            Some(above) if above != "" => self.place_without_links(above).and_then(|at| at.open()),
            _ => Ok(self.handle.try_clone()?),
        };
        let removed =
            above.and_then(|above| Ok(rustix::fs::unlinkat(&above, name, AtFlags::empty())?));
        match removed {
            Err(PlaceError::NotFound) => Ok(()),
            removed => removed,
        }
    }

    /// Opens a path whose components are no links, with one call of the kernel. `None` where the kernel cannot, or a
    /// link is on the way: then the path is resolved step by step.
    #[cfg(target_os = "linux")]
    fn open_without_links(&self, relative: &Utf8Path) -> Option<Result<OwnedFd, PlaceError>> {
        use rustix::fs::ResolveFlags;
        let only = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.handle, relative.as_std_path(), READ, Mode::empty(), only) {
            Ok(handle) => Some(Ok(handle)),
            // A link; a kernel without the call; a seccomp filter that refuses it.
            Err(Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::XDEV | Errno::AGAIN) => None,
            Err(error) => Some(Err(PlaceError::from(error))),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open_without_links(&self, _relative: &Utf8Path) -> Option<Result<OwnedFd, PlaceError>> {
        None
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Found {
    fn new(handle: OwnedFd, relative: Utf8PathBuf) -> Result<Self, PlaceError> {
        let file = File::from(handle);
        let metadata = file.metadata()?;
        Ok(Found { file, metadata, relative })
    }

    /// The place beneath the folder, without links; `.` for the folder itself.
    pub fn relative(&self) -> &Utf8Path {
        &self.relative
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.metadata.is_dir()
    }

    /// The size in bytes.
    pub fn bytes(&self) -> u64 {
        self.metadata.len()
    }

    /// Who may read, write and execute it, as `chmod` takes it.
    pub fn permissions(&self) -> u32 {
        use std::os::unix::fs::PermissionsExt;
        self.metadata.permissions().mode() & 0o777
    }

    /// Reads it, at most `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// When it is larger or not a regular file.
    pub fn read_bytes(&self, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
        bytes_of(&mut &self.file, &self.metadata, bytes_max)
    }

    /// Reads it as text, at most `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// As [`Found::read_bytes`], and when it is not UTF-8.
    pub fn read_text(&self, bytes_max: u64) -> Result<String, ReadError> {
        text_of(self.read_bytes(bytes_max)?)
    }

    /// The stamp of the state that was opened.
    pub fn stamp(&self) -> Stamp {
        stamp_of(&self.metadata)
    }

    /// Another handle of it as a folder, whose path is `path`.
    ///
    /// # Errors
    ///
    /// When it is not a folder.
    pub fn to_folder(&self, path: Utf8PathBuf) -> std::io::Result<Folder> {
        match self.is_folder() {
            true => Ok(Folder { handle: OwnedFd::from(self.file.try_clone()?), path }),
            false => Err(Errno::NOTDIR.into()),
        }
    }
}

/// Opens a file in a folder for reading; a link is refused.
fn open_file(folder: impl AsFd, name: &str) -> Result<OwnedFd, PlaceError> {
    rustix::fs::openat(folder, name, READ | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| {
        match error {
            // It was none when the place was resolved.
            Errno::LOOP => PlaceError::LinkLeaves { link: name.into(), to: None },
            error => error.into(),
        }
    })
}

/// What is in a folder under a name, without following a link.
fn stat_of(folder: impl AsFd, name: &str) -> Option<Stat> {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()
}

/// A name of an entry, not a path.
fn single(name: &str) -> std::io::Result<&str> {
    match matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        true => Err(Errno::INVAL.into()),
        false => Ok(name),
    }
}

/// Whether a path has no `.`, no empty components and no slash at its end.
fn is_plain(relative: &Utf8Path) -> bool {
    let text = relative.as_str();
    !text.starts_with("./")
        && !text.ends_with(['/', '.'])
        && !text.contains("//")
        && !text.contains("/./")
}

/// A path beneath a folder without `.` components; `.` for the folder itself.
fn plain(relative: &Utf8Path) -> Utf8PathBuf {
    let parts = relative.components().filter(|part| matches!(part, Utf8Component::Normal(_)));
    let path: Utf8PathBuf = parts.collect();
    if path == "" { Utf8PathBuf::from(".") } else { path }
}

#[cfg(test)]
mod tests;
