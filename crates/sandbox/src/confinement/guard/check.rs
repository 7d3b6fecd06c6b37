//! Compares a work folder with its snapshot and restores protected paths.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{FileType, Mode};

use super::handles::{
    contents, delete, is_missing, kind, make_folder, names, open_beneath, open_dir, parent_of,
    remove_if_left, stat, unlock_along, write,
};
use super::picture::{Picture, State, is_same, unkept};
use super::{Change, Outcome};
use crate::confinement::nested::{
    belongs_to_worktree, is_inert_change, is_inert_part, is_inert_repository,
};
use crate::confinement::search::{ClosedFolders, Found, SearchedTree};
use crate::limits::{NESTED_FOUND_MAX, SEARCHED_FOLDERS_MAX};
use crate::protected::GIT;

/// The maximum number of searches after a program. Each moves a limited number of paths aside, and the next may find
/// more.
const SEARCHES_MAX: usize = 64;
/// The maximum length, in bytes, of the name of a file that is moved aside.
const ASIDE_NAME_BYTES_MAX: usize = 180;
/// The repository file that a command may be allowed to change, if the added lines cannot run anything.
const CONFIG: &str = "config";

/// The folder to which unwanted files are moved.
pub(super) enum Aside {
    /// Opened when it is needed.
    At { spill: Utf8PathBuf, path: Utf8PathBuf },
    /// Already open.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "supervisors are for Linux"))]
    Open { folder: OwnedFd, path: Utf8PathBuf },
}

impl Aside {
    /// Opens the folder, creating it if needed, without following symlinks that a program left.
    pub(super) fn open(spill: &Utf8Path, path: &Utf8Path) -> io::Result<OwnedFd> {
        std::fs::create_dir_all(spill)?;
        let mut at = open_dir(spill)?;
        let inner = path.strip_prefix(spill).map_err(io::Error::other)?;
        for part in inner.components() {
            // The folder may exist already. Opening it below shows whether it is a real folder.
            let _ = rustix::fs::mkdirat(&at, part.as_str(), Mode::from_raw_mode(0o700));
            at = open_beneath(&at, Path::new(part.as_str()))?;
        }
        Ok(at)
    }

    fn handle(&self) -> io::Result<OwnedFd> {
        match self {
            Aside::At { spill, path } => Aside::open(spill, path),
            Aside::Open { folder, .. } => Ok(rustix::io::dup(folder)?),
        }
    }

    fn path(&self) -> &Utf8Path {
        match self {
            Aside::At { path, .. } | Aside::Open { path, .. } => path,
        }
    }
}

/// A comparison of a work folder with its snapshot.
pub(super) struct Check<'a> {
    pub(super) dir: &'a OwnedFd,
    pub(super) aside: &'a Aside,
    pub(super) searched: &'a SearchedTree,
    /// Path suffixes that a running program may change, provided that the added lines cannot run anything.
    pub(super) may_change: &'a [&'static str],
}

impl Check<'_> {
    /// Restores protected paths and returns the changes that were found.
    pub(super) fn run(&self, picture: &mut Picture) -> Vec<Change> {
        let mut changes = Vec::new();
        for (path, state) in &mut picture.before {
            let outcome = match self.put_right(path, state) {
                // The program may have locked a parent folder: unlock it and retry.
                Some(Outcome::Failed(_)) if unlock_along(self.dir, parent(path)) => {
                    self.put_right(path, state)
                }
                outcome => outcome,
            };
            changes.extend(outcome.map(|outcome| change(path, outcome)));
        }
        for (path, state) in &picture.before {
            if matches!(state, State::Known { .. }) {
                changes.extend(self.added(picture, path));
            }
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        if let Some(nested) = &picture.nested {
            changes.extend(self.new_nested(picture, nested));
        }
        changes
    }

    fn put_right(&self, path: &Path, before: &mut State) -> Option<Outcome> {
        let (parent, name) = match parent_of(self.dir, path) {
            Ok(found) => found,
            // A parent folder was removed by an earlier restore, or never existed.
            Err(error)
                if (*before == State::Absent || belongs_to_worktree(path))
                    && is_missing(&error) =>
            {
                return None;
            }
            Err(error) => return Some(Outcome::Failed(error.to_string())),
        };
        match is_same(&parent, name, before) {
            Ok(true) => return None,
            Ok(false) if belongs_to_worktree(path) && is_gone(&parent, name) => return None,
            Ok(false) => {}
            Err(error) => return Some(Outcome::Failed(error.to_string())),
        }
        if self.is_allowed(&parent, name, path, before) {
            return None;
        }
        let outcome = self.restore(&parent, name, path, before);
        if let (Outcome::Failed(_), State::Unkept { .. }) = (&outcome, &before)
            && let Ok(Some(stat)) = stat(&parent, name)
        {
            // The path cannot be restored; record its current state, so that it is reported only once.
            *before = unkept(&stat);
        }
        Some(outcome)
    }

    /// Returns true if a change may stay: a new repository for which git runs nothing, or harmless configuration lines
    /// that the program was allowed to add. Such lines become part of the snapshot.
    fn is_allowed(&self, parent: &OwnedFd, name: &OsStr, path: &Path, before: &mut State) -> bool {
        if *before == State::Absent && name.eq_ignore_ascii_case(GIT) {
            return is_inert_repository(parent, name);
        }
        let may_change = self.may_change.iter().any(|may| path.ends_with(may));
        let known: &[u8] = match before {
            State::File { bytes, .. } => bytes,
            State::Absent => &[],
            _ => return false,
        };
        if !may_change || name != CONFIG {
            return false;
        }
        let Ok(Some(stat)) = stat(parent, name) else { return false };
        let Ok(now) = contents(parent, name) else { return false };
        let texts = std::str::from_utf8(known).ok().zip(std::str::from_utf8(&now).ok());
        if !texts.is_some_and(|(known, now)| is_inert_change(known, now)) {
            return false;
        }
        *before = State::File { bytes: now, mode: super::handles::mode(&stat) };
        true
    }

    fn restore(&self, parent: &OwnedFd, name: &OsStr, path: &Path, before: &State) -> Outcome {
        let restored = self.make_room(parent, name, path, before).and_then(|moved| {
            match before {
                State::Absent => {}
                State::Folder => rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777))?,
                State::Known { mode } => make_folder(parent, name, *mode)?,
                State::Link(target) => rustix::fs::symlinkat(target, parent, name)?,
                State::File { bytes, mode } => write(parent, name, bytes, *mode)?,
                State::Unkept { .. } => {
                    return Err(io::Error::other("its contents had not been kept"));
                }
            }
            Ok(moved)
        });
        match (restored, before) {
            (Err(error), _) => Outcome::Failed(error.to_string()),
            (Ok(Some(to)), State::Absent) => Outcome::MovedTo(to),
            (Ok(_), _) => Outcome::Restored,
        }
    }

    /// Moves an entry aside if restoring needs its place.
    fn make_room(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &Path,
        before: &State,
    ) -> io::Result<Option<Utf8PathBuf>> {
        let Some(stat) = stat(parent, name)? else { return Ok(None) };
        let fits = match before {
            State::File { .. } => kind(&stat) == FileType::RegularFile,
            State::Known { .. } => kind(&stat) == FileType::Directory,
            _ => false,
        };
        if fits { Ok(None) } else { self.move_aside(parent, name, path) }
    }

    /// Moves aside the entries of a known folder that were not there before.
    fn added(&self, picture: &Picture, folder: &Path) -> Vec<Change> {
        let listed = || {
            let fd = open_beneath(self.dir, folder)?;
            names(&fd).map(|names| (fd, names))
        };
        let listed = match listed() {
            Err(_) if unlock_along(self.dir, folder) => listed(),
            listed => listed,
        };
        let (fd, names) = match listed {
            Ok(listed) => listed,
            // The folder could not be restored, which has been reported already.
            Err(error) if is_missing(&error) => return Vec::new(),
            Err(error) => return vec![change(folder, Outcome::Failed(error.to_string()))],
        };
        let mut changes = Vec::new();
        for name in names {
            let path = folder.join(&name);
            if picture.before.contains_key(&path) {
                continue;
            }
            let outcome = match self.move_aside(&fd, &name, &path) {
                Ok(Some(to)) => Outcome::MovedTo(to),
                Ok(None) => continue,
                Err(error) => Outcome::Failed(error.to_string()),
            };
            changes.push(change(&path, outcome));
        }
        changes
    }

    /// Moves aside new protected paths anywhere below the work folder, except repositories for which git runs nothing.
    /// Repeats the search until it finds nothing new.
    fn new_nested(&self, picture: &Picture, before: &Found) -> Vec<Change> {
        let known: HashSet<&PathBuf> = before.protected.iter().collect();
        let sockets: HashSet<&PathBuf> = before.sockets.iter().collect();
        let mut changes = Vec::new();
        // Paths that stay, or that cannot be moved.
        let mut seen: HashSet<PathBuf> = HashSet::new();
        for _ in 0..SEARCHES_MAX {
            let now = self.searched.search_after(&picture.dir, self.dir, &before.closed);
            for socket in now.sockets.iter().filter(|socket| !sockets.contains(socket)) {
                remove_if_left(self.dir, socket);
            }
            let new = now.protected.iter().filter(|path| {
                !known.contains(path)
                    && !picture.before.contains_key(*path)
                    && !is_below(&before.closed, path)
                    && !seen.contains(*path)
            });
            let mut is_done = true;
            for path in new.cloned().collect::<Vec<_>>() {
                let Some(outcome) = self.new_path(&path) else {
                    seen.insert(path);
                    continue;
                };
                changes.push(change(&path, outcome.clone()));
                match outcome {
                    Outcome::Failed(_) => drop(seen.insert(path)),
                    _ => is_done = false,
                }
            }
            if is_done {
                changes.extend(self.not_searched(before, &now));
                return changes;
            }
        }
        let why = format!("after {SEARCHES_MAX} searches there were still new ones");
        changes.push(change(Path::new("."), Outcome::NotSearched(why)));
        changes
    }

    /// Handles a new protected path. Returns `None` if it stays.
    fn new_path(&self, path: &Path) -> Option<Outcome> {
        let (parent, name) = match parent_of(self.dir, path) {
            Ok(found) => found,
            Err(error) if is_missing(&error) => return None,
            Err(error) => return Some(Outcome::Failed(error.to_string())),
        };
        let is_inert = match name.eq_ignore_ascii_case(GIT) {
            true => is_inert_repository(&parent, name),
            false => is_inert_part(&parent, name),
        };
        if is_inert {
            return None;
        }
        Some(match self.move_aside(&parent, name, path) {
            Ok(Some(to)) => Outcome::MovedTo(to),
            Ok(None) => Outcome::Restored,
            Err(error) => Outcome::Failed(error.to_string()),
        })
    }

    /// Reports folders that can no longer be searched, and unlistable folders that have changed.
    fn not_searched(&self, before: &Found, now: &Found) -> Vec<Change> {
        let mut changes = Vec::new();
        if now.is_cut && !before.is_cut {
            let why = format!(
                "there are more than {SEARCHED_FOLDERS_MAX} folders or {NESTED_FOUND_MAX} protected paths and sockets"
            );
            changes.push(change(Path::new("."), Outcome::NotSearched(why)));
        }
        for (path, identity) in &now.closed {
            if before.closed.get(path) != Some(identity) {
                let why = "the folder cannot be listed".to_owned();
                changes.push(change(path, Outcome::NotSearched(why)));
            }
        }
        for path in before.closed.keys().filter(|path| !now.closed.contains_key(*path)) {
            if parent_of(self.dir, path)
                .is_ok_and(|(parent, name)| stat(&parent, name).is_ok_and(|stat| stat.is_some()))
            {
                let why = "the folder could not be listed before, so what is new in it is unknown";
                changes.push(change(path, Outcome::NotSearched(why.to_owned())));
            }
        }
        changes
    }

    /// Moves an entry to the aside folder. Deletes it if that folder is unusable or on another file system.
    fn move_aside(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &Path,
    ) -> io::Result<Option<Utf8PathBuf>> {
        // Programs may write to the parent of the aside folder, and may have replaced it with a link or a file.
        let Ok(aside) = self.aside.handle() else { return delete(parent, name).map(|()| None) };
        let flat = path.to_string_lossy().replace('/', "-");
        let flat =
            &flat[flat.ceil_char_boundary(flat.len().saturating_sub(ASIDE_NAME_BYTES_MAX))..];
        for number in 0..1000 {
            let target = format!("{flat}.{number}");
            if stat(&aside, OsStr::new(&target))?.is_some() {
                continue;
            }
            return match rustix::fs::renameat(parent, name, &aside, &target) {
                Ok(()) => Ok(Some(self.aside.path().join(target))),
                Err(rustix::io::Errno::XDEV) => delete(parent, name).map(|()| None),
                Err(error) => Err(error.into()),
            };
        }
        delete(parent, name).map(|()| None)
    }
}

fn is_gone(parent: &OwnedFd, name: &OsStr) -> bool {
    stat(parent, name).is_ok_and(|stat| stat.is_none())
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn is_below(closed: &ClosedFolders, path: &Path) -> bool {
    !closed.is_empty() && path.ancestors().any(|above| closed.contains_key(above))
}

/// Builds a change. Paths that are not UTF-8 get replacement characters.
fn change(path: &Path, outcome: Outcome) -> Change {
    Change { path: path.to_string_lossy().into_owned().into(), outcome }
}
