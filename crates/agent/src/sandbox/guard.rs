//! Protected paths, looked at before a program runs and put right afterwards.
//!
//! Where the sandbox mounts them read-only, this is about those that were not there, and about links. Where it cannot,
//! it is about all of them: contents are remembered, within bounds, and put back. What a program made in their place is
//! moved aside, not deleted. Nested ones are searched for before and after; see [`super::nested`] for repositories.
//!
//! Nothing is followed out of the work folder: a program may have left links where folders were.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use super::nested::{Nested, is_inert_repository};
use super::policy::private_dir;
use super::search::{Found, JUST_SEARCHED, SearchedTree};
use crate::limits::{GUARDED_BYTES_MAX, GUARDED_FILES_MAX};
use crate::protected::GIT;
use crate::workplace::Workplace;

/// What a program did to a protected path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path, beneath the work folder.
    pub path: Utf8PathBuf,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a change to a protected path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The path is as it was.
    Restored,
    /// It should not be there; it is now elsewhere.
    MovedTo(Utf8PathBuf),
    /// It could not be put right.
    Failed(String),
}

/// The state of protected paths before a program runs.
#[derive(Debug)]
pub struct Guard {
    dir: Utf8PathBuf,
    /// The folder for output, which no program may replace.
    spill: Utf8PathBuf,
    aside: Utf8PathBuf,
    /// In the order of paths, which has folders before what is in them.
    before: BTreeMap<Utf8PathBuf, State>,
    /// The nested protected paths that were there; `None` if nothing is protected.
    nested: Option<(SearchedTree, Arc<Found>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Absent,
    /// A folder on the way to a protected path, or one that is mounted read-only.
    Folder,
    /// A folder whose entries are all known.
    Known,
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(String),
    /// There, but its contents are not kept: it is mounted read-only, too large, or no regular file.
    Unkept {
        inode: u64,
        changed: (i64, i64),
    },
}

impl Guard {
    /// Looks at the protected paths of a workplace.
    pub fn before(workplace: &Workplace) -> Guard {
        let depth = match workplace.sandbox.protects_paths() {
            true => Depth::Surface,
            false => Depth::Contents,
        };
        let mut look =
            Look { dir: open_dir(&workplace.dir).ok(), depth, before: BTreeMap::new(), bytes: 0 };
        for path in &workplace.protected {
            if let Ok(relative) = path.strip_prefix(&workplace.dir) {
                look.along(relative);
            }
        }
        let nested = (!workplace.protected.is_empty()).then(|| {
            let found = workplace.searched.search(&workplace.dir, JUST_SEARCHED);
            look.along_nested(&Nested::of(&found));
            (workplace.searched.clone(), found)
        });
        let aside = private_dir(workplace).join("aside");
        let spill = workplace.spill_dir.clone();
        Guard { dir: workplace.dir.clone(), spill, aside, before: look.before, nested }
    }

    /// Whether the work folder has more folders than are searched for nested protected paths.
    pub fn search_was_cut(&self) -> bool {
        self.nested.as_ref().is_some_and(|(_, found)| found.is_cut)
    }

    /// Puts right what is different, and tells what was.
    pub fn after(self) -> Vec<Change> {
        let Ok(dir) = open_dir(&self.dir) else {
            let outcome = Outcome::Failed("the work folder is gone".to_owned());
            return vec![Change { path: Utf8PathBuf::new(), outcome }];
        };
        let mut changes = Vec::new();
        for (path, state) in &self.before {
            let outcome = self.check(&dir, path, state);
            changes.extend(outcome.map(|outcome| Change { path: path.clone(), outcome }));
            if *state == State::Known {
                changes.extend(self.strangers(&dir, path));
            }
        }
        changes.extend(self.new_nested(&dir));
        changes
    }

    /// Moves protected paths aside that a program made anywhere below, but for repositories that run nothing.
    fn new_nested(&self, dir: &OwnedFd) -> Vec<Change> {
        let Some((searched, before)) = &self.nested else { return Vec::new() };
        let now = searched.search(&self.dir, Duration::ZERO);
        let known: HashSet<&Utf8PathBuf> = before.protected.iter().collect();
        let sockets: HashSet<&Utf8PathBuf> = before.sockets.iter().collect();
        for socket in now.sockets.iter().filter(|socket| !sockets.contains(socket)) {
            remove_if_left(dir, socket);
        }
        let new = now.protected.iter();
        let new = new.filter(|path| !known.contains(path) && !self.before.contains_key(*path));
        new.filter_map(|path| {
            let (parent, name) = parent_of(dir, path).ok()?;
            if name.eq_ignore_ascii_case(GIT) && is_inert_repository(&parent, name) {
                return None;
            }
            let outcome = match self.move_aside(&parent, name, path) {
                Ok(Some(to)) => Outcome::MovedTo(to),
                Ok(None) => Outcome::Restored,
                Err(error) => Outcome::Failed(error.to_string()),
            };
            Some(Change { path: path.clone(), outcome })
        })
        .collect()
    }

    fn check(&self, dir: &OwnedFd, path: &Utf8Path, before: &State) -> Option<Outcome> {
        let (parent, name) = match parent_of(dir, path) {
            Ok(found) => found,
            // A folder on the way was put right before, or never was there.
            Err(_) if *before == State::Absent => return None,
            Err(error) => return Some(Outcome::Failed(error.to_string())),
        };
        if is_same(&parent, name, before) {
            return None;
        }
        Some(self.put_right(&parent, name, path, before))
    }

    fn put_right(&self, parent: &OwnedFd, name: &str, path: &Utf8Path, before: &State) -> Outcome {
        let fits = matches!(before, State::File { .. })
            && stat(parent, name).is_some_and(|stat| kind(&stat) == FileType::RegularFile);
        let moved = match stat(parent, name) {
            Some(_) if !fits => self.move_aside(parent, name, path),
            _ => Ok(None),
        };
        let restored = moved.and_then(|moved| restore(parent, name, before).map(|()| moved));
        match (restored, before) {
            (Err(error), _) => Outcome::Failed(error.to_string()),
            (Ok(Some(to)), State::Absent) => Outcome::MovedTo(to),
            (Ok(_), _) => Outcome::Restored,
        }
    }

    /// Entries of a known folder that were not there before.
    fn strangers(&self, dir: &OwnedFd, folder: &Utf8Path) -> Vec<Change> {
        let Ok(fd) = open_beneath(dir, folder) else {
            return Vec::new();
        };
        let mut changes = Vec::new();
        for name in names(&fd) {
            let path = folder.join(&name);
            if self.before.contains_key(&path) {
                continue;
            }
            let outcome = match self.move_aside(&fd, &name, &path) {
                Ok(Some(to)) => Outcome::MovedTo(to),
                Ok(None) => continue,
                Err(error) => Outcome::Failed(error.to_string()),
            };
            changes.push(Change { path, outcome });
        }
        changes
    }

    /// The folder of ours for what was made, without following a link that a program left.
    fn open_aside(&self) -> io::Result<OwnedFd> {
        std::fs::create_dir_all(&self.spill)?;
        let mut at = open_dir(&self.spill)?;
        let inner = self.aside.strip_prefix(&self.spill).map_err(io::Error::other)?;
        for part in inner.components() {
            // It may be there already; what it is shows when it is opened.
            let _ = rustix::fs::mkdirat(&at, part.as_str(), Mode::from_raw_mode(0o700));
            at = open_beneath(&at, Utf8Path::new(part.as_str()))?;
        }
        Ok(at)
    }

    /// Moves what is there to a folder of ours; if that is on another disk or is none, it is deleted.
    fn move_aside(
        &self,
        parent: &OwnedFd,
        name: &str,
        path: &Utf8Path,
    ) -> io::Result<Option<Utf8PathBuf>> {
        // Programs may write there, and may have left a link or a file in its place.
        let Ok(aside) = self.open_aside() else { return delete(parent, name).map(|()| None) };
        let flat = path.as_str().replace('/', "-");
        for number in 0..1000 {
            let target = format!("{flat}.{number}");
            if stat(&aside, &target).is_some() {
                continue;
            }
            return match rustix::fs::renameat(parent, name, &aside, &target) {
                Ok(()) => Ok(Some(self.aside.join(target))),
                Err(rustix::io::Errno::XDEV) => delete(parent, name).map(|()| None),
                Err(error) => Err(error.into()),
            };
        }
        delete(parent, name).map(|()| None)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// It is mounted read-only: that it is there is all there is to know.
    Surface,
    /// It leads to a protected path: a folder, or a file that says where one is, as in a worktree.
    Way,
    /// All that is in it.
    Contents,
}

struct Look {
    dir: Option<OwnedFd>,
    depth: Depth,
    before: BTreeMap<Utf8PathBuf, State>,
    bytes: u64,
}

impl Look {
    fn along_nested(&mut self, nested: &Nested) {
        nested.mounted.iter().for_each(|path| self.along(path));
        let depth = std::mem::replace(&mut self.depth, Depth::Contents);
        nested.compared.iter().for_each(|path| self.along(path));
        self.depth = depth;
    }

    /// Notes every step on the way to a protected path, up to the first that is no folder.
    fn along(&mut self, relative: &Utf8Path) {
        let mut at = Utf8PathBuf::new();
        let last = relative.components().count();
        for (index, part) in relative.components().enumerate() {
            at.push(part);
            let depth = if index + 1 == last { self.depth } else { Depth::Way };
            if !self.note(&at, depth) {
                return;
            }
        }
    }

    /// Notes a path; tells whether it is a folder.
    fn note(&mut self, path: &Utf8Path, depth: Depth) -> bool {
        if let Some(known) = self.before.get(path) {
            return *known == State::Folder;
        }
        let Some(dir) = &self.dir else { return false };
        let Ok((parent, name)) = parent_of(dir, path) else { return false };
        let state = self.state(&parent, name, depth);
        let is_folder = matches!(state, State::Folder | State::Known);
        let is_known = state == State::Known;
        self.before.insert(path.to_owned(), state);
        if is_known {
            self.note_entries(path);
        }
        is_folder
    }

    fn note_entries(&mut self, folder: &Utf8Path) {
        let Some(dir) = &self.dir else { return };
        let Ok(fd) = open_beneath(dir, folder) else { return };
        for name in names(&fd) {
            self.note(&folder.join(name), Depth::Contents);
        }
    }

    fn state(&mut self, parent: &OwnedFd, name: &str, depth: Depth) -> State {
        let Some(stat) = stat(parent, name) else { return State::Absent };
        let room = self.before.len() < GUARDED_FILES_MAX
            && self.bytes + u64::try_from(stat.st_size).unwrap_or(0) <= GUARDED_BYTES_MAX;
        match (kind(&stat), depth) {
            (FileType::Directory, Depth::Contents) if room => State::Known,
            (FileType::Directory, _) => State::Folder,
            (FileType::Symlink, _) => link(parent, name).map_or(unkept(&stat), State::Link),
            (FileType::RegularFile, Depth::Contents | Depth::Way) if room => {
                match contents(parent, name) {
                    Ok(bytes) => {
                        self.bytes += bytes.len() as u64;
                        State::File { bytes, mode: stat.st_mode & 0o7777 }
                    }
                    Err(_) => unkept(&stat),
                }
            }
            _ => unkept(&stat),
        }
    }
}

fn unkept(stat: &Stat) -> State {
    #[allow(clippy::unnecessary_cast, reason = "the types of the fields differ between machines")]
    let (inode, changed) = (stat.st_ino as u64, (stat.st_mtime as i64, stat.st_mtime_nsec as i64));
    State::Unkept { inode, changed }
}

fn is_same(parent: &OwnedFd, name: &str, before: &State) -> bool {
    let Some(stat) = stat(parent, name) else { return *before == State::Absent };
    match before {
        State::Absent => false,
        State::Folder | State::Known => kind(&stat) == FileType::Directory,
        State::Link(target) => link(parent, name).as_ref() == Some(target),
        State::Unkept { .. } => unkept(&stat) == *before,
        State::File { bytes, mode } => {
            kind(&stat) == FileType::RegularFile
                && stat.st_mode & 0o7777 == *mode
                && contents(parent, name).is_ok_and(|now| now == *bytes)
        }
    }
}

fn restore(parent: &OwnedFd, name: &str, before: &State) -> io::Result<()> {
    match before {
        State::Absent => Ok(()),
        State::Folder | State::Known => {
            Ok(rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777))?)
        }
        State::Link(target) => Ok(rustix::fs::symlinkat(target.as_str(), parent, name)?),
        State::File { bytes, mode } => write(parent, name, bytes, *mode),
        State::Unkept { .. } => Err(io::Error::other("its contents had not been kept")),
    }
}

/// All or nothing, beside the target.
fn write(parent: &OwnedFd, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let temporary = format!(".{name}.restored");
    let _ = rustix::fs::unlinkat(parent, temporary.as_str(), AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(parent, temporary.as_str(), flags, Mode::from_raw_mode(0o600))?;
    let mut file = File::from(fd);
    file.write_all(bytes)?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    Ok(rustix::fs::renameat(parent, temporary.as_str(), parent, name)?)
}

fn delete(parent: &OwnedFd, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) => Ok(()),
        // The descriptor stands for the folder itself, whatever its path leads to by now.
        Err(_) => std::fs::remove_dir_all(format!("/proc/self/fd/{}/{name}", parent.as_raw_fd())),
    }
}

/// Removes a socket that a program made and whose server has ended with it. Left there, it would be covered for the next
/// program, which could not remove it.
fn remove_if_left(dir: &OwnedFd, path: &Utf8Path) {
    let Ok((parent, name)) = parent_of(dir, path) else { return };
    let is_socket = stat(&parent, name).is_some_and(|stat| kind(&stat) == FileType::Socket);
    let address = format!("/proc/self/fd/{}/{name}", parent.as_raw_fd());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket && std::os::unix::net::UnixStream::connect(address).is_err_and(refused) {
        // The next program is told of what it cannot do, if this fails.
        let _ = rustix::fs::unlinkat(&parent, name, AtFlags::empty());
    }
}

fn contents(parent: &OwnedFd, name: &str) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(parent, name, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(GUARDED_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn link(parent: &OwnedFd, name: &str) -> Option<String> {
    rustix::fs::readlinkat(parent, name, Vec::new()).ok()?.into_string().ok()
}

fn stat(parent: &OwnedFd, name: &str) -> Option<Stat> {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Names that are not UTF-8 cannot be told to anybody; they are left alone.
fn names(fd: &OwnedFd) -> Vec<String> {
    let Ok(entries) = Dir::read_from(fd) else { return Vec::new() };
    let names =
        entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    let mut names: Vec<String> = names.filter(|name| name != "." && name != "..").collect();
    names.sort();
    names
}

fn open_dir(path: &Utf8Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path.as_str(), flags, Mode::empty())?)
}

/// Opens a folder without following a single link.
fn open_beneath(dir: &OwnedFd, path: &Utf8Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = rustix::io::dup(dir)?;
    for part in path.components() {
        let Utf8Component::Normal(name) = part else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        at = rustix::fs::openat(&at, name, flags, Mode::empty())?;
    }
    Ok(at)
}

fn parent_of<'a>(dir: &OwnedFd, path: &'a Utf8Path) -> io::Result<(OwnedFd, &'a str)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = path.parent().unwrap_or(Utf8Path::new(""));
    Ok((open_beneath(dir, parent)?, name))
}
