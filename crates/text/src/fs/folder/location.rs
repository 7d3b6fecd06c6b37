//! Resolves a path beneath a folder without letting the kernel follow links: each component is opened from the handle
//! of its parent, and links are read and resolved here.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{FOLDER, FolderHandle, LINKS_MAX, NewMode, open_file, replace_file, stat_of};
use crate::fs::{EntryKind, ReadError, bytes_of, is_beneath, text_of};

/// The reason why a path beneath a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    #[error("there is no such file")]
    NotFound,
    /// The path is empty, absolute, or climbs out of the folder with `..`.
    #[error("the path is absolute or climbs out of the folder")]
    PathRefused,
    /// A symbolic link leads out of the folder.
    #[error("the symbolic link `{link}` leads out of the folder")]
    LinkLeaves {
        /// The link, relative to the folder.
        link: Utf8PathBuf,
        /// The absolute path of its target, if it could be determined.
        to: Option<Utf8PathBuf>,
    },
    /// A symbolic link whose target does not exist.
    #[error("`{link}` is a symbolic link to nothing")]
    Dangling {
        /// The link, relative to the folder.
        link: Utf8PathBuf,
    },
    /// A symbolic link where links are not followed.
    #[error("`{link}` is a symbolic link")]
    Link {
        /// The link, relative to the folder.
        link: Utf8PathBuf,
    },
    /// The links form a cycle, or there are too many.
    #[error("`{link}` is a symbolic link that leads in a circle or through too many links")]
    TooManyLinks {
        /// The link, relative to the folder.
        link: Utf8PathBuf,
    },
    /// A socket, or a pipe without a reader.
    #[error("this is a socket or pipe, not a regular file")]
    NotRegular,
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl From<Errno> for LocationError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => LocationError::NotFound,
            Errno::NXIO => LocationError::NotRegular,
            error => LocationError::Io(error.into()),
        }
    }
}

impl From<LocationError> for ReadError {
    fn from(error: LocationError) -> Self {
        match error {
            // There is nothing to read behind a dangling link.
            LocationError::NotFound | LocationError::Dangling { .. } => ReadError::NotFound,
            LocationError::PathRefused => ReadError::PathRefused,
            LocationError::LinkLeaves { .. }
            | LocationError::Link { .. }
            | LocationError::TooManyLinks { .. } => ReadError::LinkLeaves,
            LocationError::NotRegular => ReadError::NotRegular { kind: "a socket or pipe" },
            LocationError::Io(error) => ReadError::Io(error),
        }
    }
}

impl From<LocationError> for std::io::Error {
    fn from(error: LocationError) -> Self {
        match error {
            LocationError::Io(error) => error,
            LocationError::NotFound => Errno::NOENT.into(),
            other => std::io::Error::other(other),
        }
    }
}

/// The location of a file that may not exist yet: a handle of its nearest existing parent, and the names below it.
#[derive(Debug)]
pub struct FileLocation {
    above: OwnedFd,
    /// Parents between `above` and the file that do not exist yet.
    missing: Vec<String>,
    name: String,
    relative: Utf8PathBuf,
}

impl FileLocation {
    /// The path relative to the folder, with links resolved; `.` for the folder itself.
    pub fn relative(&self) -> &Utf8Path {
        &self.relative
    }

    /// The kind of the entry, without following a link, and its size in bytes; `None` if it does not exist.
    pub fn existing_entry(&self) -> Option<(EntryKind, u64)> {
        if self.relative == "." {
            return Some((EntryKind::Folder, 0));
        }
        let stat = self.missing.is_empty().then(|| stat_of(&self.above, &self.name)).flatten()?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Other,
        };
        Some((kind, u64::try_from(stat.st_size).unwrap_or(0)))
    }

    /// Reads the file as text, at most `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// If it does not exist, is larger, or is not text.
    pub fn read_text(&self, bytes_max: u64) -> Result<String, ReadError> {
        let mut file = std::fs::File::from(self.open_existing()?);
        let metadata = file.metadata()?;
        text_of(bytes_of(&mut file, &metadata, bytes_max)?)
    }

    /// Writes the file atomically, creating missing parents. An existing file keeps its permissions; a new one follows
    /// the umask.
    ///
    /// # Errors
    ///
    /// If it cannot be written, or a link was put in the way since the path was resolved.
    pub fn write_atomic(&self, contents: &[u8]) -> std::io::Result<()> {
        let made = self.make_missing(Mode::from_raw_mode(0o777))?;
        replace_file(self.parent_handle(made.as_ref()), &self.name, contents, NewMode::KeptOrMasked)
    }

    /// Creates the file, which must not exist, and missing parents.
    ///
    /// # Errors
    ///
    /// If an entry of that name exists.
    pub fn create_new(&self, mode: u32) -> std::io::Result<std::fs::File> {
        let made = self.make_missing(Mode::from_raw_mode(0o777))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode as rustix::fs::RawMode);
        let folder = self.parent_handle(made.as_ref());
        Ok(rustix::fs::openat(folder, self.name.as_str(), flags, mode)?.into())
    }

    pub(super) fn open_existing(&self) -> Result<OwnedFd, LocationError> {
        if self.relative == "." {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            return Ok(rustix::fs::openat(&self.above, ".", flags, Mode::empty())?);
        }
        if !self.missing.is_empty() {
            return Err(LocationError::NotFound);
        }
        open_file(&self.above, &self.name)
    }

    pub(super) fn make_folder(&self, mode: Mode) -> std::io::Result<OwnedFd> {
        if self.relative == "." {
            return self.above.try_clone();
        }
        let made = self.make_missing(mode)?;
        make_one(self.parent_handle(made.as_ref()), &self.name, mode)
    }

    pub(super) fn remove_all(&self) -> std::io::Result<()> {
        if !self.missing.is_empty() || self.relative == "." {
            return Ok(());
        }
        super::remove::remove_all(self.above.as_fd(), self.name.as_str())
    }

    pub(super) fn remove_empty(&self) -> std::io::Result<()> {
        if !self.missing.is_empty() || self.relative == "." {
            return Ok(());
        }
        Ok(rustix::fs::unlinkat(&self.above, self.name.as_str(), AtFlags::REMOVEDIR)?)
    }

    /// The parent folder of the file, once missing ones have been created.
    fn parent_handle<'a>(&'a self, made: Option<&'a OwnedFd>) -> BorrowedFd<'a> {
        made.unwrap_or(&self.above).as_fd()
    }

    /// Creates the missing parents of the file. Returns `None` if none are missing.
    fn make_missing(&self, mode: Mode) -> std::io::Result<Option<OwnedFd>> {
        if self.relative == "." {
            return Err(Errno::ISDIR.into());
        }
        let mut made: Option<OwnedFd> = None;
        for name in &self.missing {
            made = Some(make_one(self.parent_handle(made.as_ref()), name, mode)?);
        }
        Ok(made)
    }
}

/// Creates a folder if it does not exist, and opens it. Opening fails if a link is in its place.
fn make_one(folder: BorrowedFd<'_>, name: &str, mode: Mode) -> std::io::Result<OwnedFd> {
    match rustix::fs::mkdirat(folder, name, mode) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(rustix::fs::openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?)
}

/// A path resolution in progress.
struct PathResolution<'a> {
    root: &'a FolderHandle,
    /// The folders that were entered, from the root down.
    entered: Vec<(String, OwnedFd)>,
    /// The remaining components, the next one last.
    pending: Vec<String>,
    links: usize,
    links_max: usize,
    /// The number of components that remain after the targets of all links so far, and the latest link.
    behind_links: Option<(usize, Utf8PathBuf)>,
}

pub(super) fn resolve_path(
    root: &FolderHandle,
    relative: &Utf8Path,
    links_max: usize,
) -> Result<FileLocation, LocationError> {
    if !is_beneath(relative) {
        return Err(LocationError::PathRefused);
    }
    let (entered, pending) = (Vec::new(), Vec::new());
    let mut walk =
        PathResolution { root, entered, pending, links: 0, links_max, behind_links: None };
    walk.push_path(relative);
    walk.run()
}

impl PathResolution<'_> {
    fn run(mut self) -> Result<FileLocation, LocationError> {
        while let Some(name) = self.pending.pop() {
            if name == ".." {
                if self.entered.pop().is_none() {
                    return Err(self.leaves_error(Utf8Path::new("..")));
                }
                continue;
            }
            let flags = FOLDER | OFlags::NOFOLLOW;
            match rustix::fs::openat(self.last_folder(), name.as_str(), flags, Mode::empty()) {
                Ok(handle) => self.entered.push((name, handle)),
                Err(Errno::NOENT) => return self.location_of_missing(name),
                Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {
                    match rustix::fs::readlinkat(self.last_folder(), name.as_str(), Vec::new()) {
                        Ok(target) => self.follow_link(&name, target.as_bytes())?,
                        // Neither a folder nor a link.
                        Err(Errno::INVAL) if self.pending.is_empty() => {
                            return self.location_of_entry(name);
                        }
                        Err(Errno::INVAL) => return Err(Errno::NOTDIR.into()),
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        // The path names a folder, or the root itself.
        match self.entered.pop() {
            Some((name, _)) => self.location_of_entry(name),
            None => {
                let above = self.root.handle.try_clone()?;
                Ok(FileLocation {
                    above,
                    missing: Vec::new(),
                    name: String::new(),
                    relative: ".".into(),
                })
            }
        }
    }

    fn push_path(&mut self, path: &Utf8Path) {
        let parts = path.components().rev().filter_map(|part| match part {
            Utf8Component::Normal(name) => Some(name),
            Utf8Component::ParentDir => Some(".."),
            _ => None,
        });
        self.pending.extend(parts.map(str::to_owned));
    }

    fn last_folder(&self) -> BorrowedFd<'_> {
        self.entered.last().map_or(self.root.handle.as_fd(), |(_, handle)| handle.as_fd())
    }

    fn entered_path(&self) -> Utf8PathBuf {
        self.entered.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn follow_link(&mut self, name: &str, target: &[u8]) -> Result<(), LocationError> {
        let link = self.entered_path().join(name);
        self.links += 1;
        if self.links > self.links_max {
            return Err(match self.links_max {
                LINKS_MAX => LocationError::TooManyLinks { link },
                _ => LocationError::Link { link },
            });
        }
        let Ok(target) = std::str::from_utf8(target) else {
            return Err(LocationError::LinkLeaves { link, to: None });
        };
        let target = Utf8Path::new(target);
        let rest = self.pending.len();
        let rest = self.behind_links.as_ref().map_or(rest, |(least, _)| rest.min(*least));
        self.behind_links = Some((rest, link));
        if target.is_absolute() {
            let Some(inner) = self.beneath_root(target) else {
                return Err(self.leaves_error(target));
            };
            self.entered.clear();
            self.push_path(&inner);
        } else {
            self.push_path(target);
        }
        Ok(())
    }

    /// Converts an absolute path to one relative to the root, using the path that was used to open the root, or its
    /// real path.
    fn beneath_root(&self, target: &Utf8Path) -> Option<Utf8PathBuf> {
        let by = |root: &Utf8Path| target.strip_prefix(root).ok().map(Utf8Path::to_owned);
        let opened = self.root.path.is_absolute().then(|| by(&self.root.path)).flatten();
        opened.or_else(|| by(&self.root.real_path().ok()?))
    }

    fn leaves_error(&self, target: &Utf8Path) -> LocationError {
        let link = self.behind_links.as_ref().map(|(_, link)| link.clone()).unwrap_or_default();
        let to = self.root.real_path().ok().map(|root| {
            let rest = self.pending.iter().rev();
            rest.fold(root.join(self.entered_path()).join(target), |path, part| path.join(part))
        });
        LocationError::LinkLeaves { link, to }
    }

    /// Handles a component that does not exist: a new file, with the parents that it needs.
    fn location_of_missing(self, first: String) -> Result<FileLocation, LocationError> {
        if let Some((rest, link)) = &self.behind_links
            && self.pending.len() >= *rest
        {
            return Err(LocationError::Dangling { link: link.clone() });
        }
        if self.pending.iter().any(|part| part == "..") {
            return Err(LocationError::NotFound);
        }
        let mut relative = self.entered_path().join(&first);
        relative.extend(self.pending.iter().rev());
        let rest = self.pending.into_iter().rev();
        let mut missing: Vec<String> = std::iter::once(first).chain(rest).collect();
        let name = missing.pop().unwrap_or_default();
        let above = last_handle(self.entered, self.root)?;
        Ok(FileLocation { above, missing, name, relative })
    }

    /// The location of an entry in the folder that was entered last.
    fn location_of_entry(self, name: String) -> Result<FileLocation, LocationError> {
        let relative = self.entered_path().join(&name);
        let above = last_handle(self.entered, self.root)?;
        Ok(FileLocation { above, missing: Vec::new(), name, relative })
    }
}

fn last_handle(entered: Vec<(String, OwnedFd)>, root: &FolderHandle) -> std::io::Result<OwnedFd> {
    match entered.into_iter().next_back() {
        Some((_, handle)) => Ok(handle),
        None => root.handle.try_clone(),
    }
}
