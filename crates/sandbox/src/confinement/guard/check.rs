//! Compares a work folder with its snapshot and restores protected paths.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{FileType, Mode};

use super::handles::{
    copy_file, delete_entry, file_kind, is_missing, list_names, make_folder, open_beneath,
    open_dir, parent_of, read_contents, remove_dead_socket, stat_entry, unlock_along, write_file,
};
use super::snapshot::{GuardSnapshot, ProtectedPathState, matches_state, unkept_state};
use super::{ProtectedPathChange, ProtectedPathOutcome};
use crate::confinement::nested::{
    belongs_to_worktree, is_inert_change, is_inert_part, is_inert_repository,
};
use crate::confinement::search::{ClosedFolders, NestedSearchResult, SearchedTree};
use crate::limits::{NESTED_FOUND_MAX, SEARCHED_FOLDERS_MAX};
use crate::protected::GIT;

/// The maximum number of searches after a program. Each moves a limited number of paths aside, and the next may find
/// more.
const SEARCHES_MAX: usize = 64;
/// The maximum length, in bytes, of the name of a file that is moved aside.
const ASIDE_NAME_BYTES_MAX: usize = 180;
/// The maximum number of files with the same name that are moved aside.
const ASIDE_NUMBERS_MAX: usize = 1000;
/// The repository file that a command may be allowed to change, if the added lines cannot run anything.
const CONFIG: &str = "config";

/// The folder to which unwanted files are moved.
pub(super) enum AsideFolder {
    /// Opened when it is needed.
    At { spill: Utf8PathBuf, path: Utf8PathBuf },
    /// Already open.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "supervisors are for Linux"))]
    Open { folder: OwnedFd, path: Utf8PathBuf },
}

impl AsideFolder {
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

    fn open_handle(&self) -> io::Result<OwnedFd> {
        match self {
            AsideFolder::At { spill, path } => AsideFolder::open(spill, path),
            AsideFolder::Open { folder, .. } => Ok(rustix::io::dup(folder)?),
        }
    }

    fn path(&self) -> &Utf8Path {
        match self {
            AsideFolder::At { path, .. } | AsideFolder::Open { path, .. } => path,
        }
    }
}

/// A comparison of a work folder with its snapshot.
pub(super) struct SnapshotCheck<'a> {
    pub(super) dir: &'a OwnedFd,
    pub(super) aside: &'a AsideFolder,
    pub(super) searched: &'a SearchedTree,
    /// Path suffixes that a running program may change, provided that the added lines cannot run anything.
    pub(super) may_change: &'a [&'static str],
}

impl SnapshotCheck<'_> {
    /// Restores protected paths and returns the changes that were found.
    pub(super) fn run(&self, picture: &mut GuardSnapshot) -> Vec<ProtectedPathChange> {
        let mut changes = Vec::new();
        for (path, state) in &mut picture.before {
            let outcome = match self.restore_path(path, state) {
                // The program may have locked a parent folder: unlock it and retry.
                Some(ProtectedPathOutcome::Failed(_))
                    if unlock_along(self.dir, parent_or_empty(path)) =>
                {
                    self.restore_path(path, state)
                }
                outcome => outcome,
            };
            changes.extend(outcome.map(|outcome| change_at(path, outcome)));
        }
        for (path, state) in &picture.before {
            if matches!(state, ProtectedPathState::Known { .. }) {
                changes.extend(self.move_added_aside(picture, path));
            }
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        if let Some(nested) = &picture.nested {
            changes.extend(self.move_new_nested_aside(picture, nested));
        }
        changes
    }

    fn restore_path(
        &self,
        path: &Path,
        before: &mut ProtectedPathState,
    ) -> Option<ProtectedPathOutcome> {
        let (parent, name) = match parent_of(self.dir, path) {
            Ok(found) => found,
            // A parent folder was removed by an earlier restore, or never existed.
            Err(error)
                if (*before == ProtectedPathState::Absent || belongs_to_worktree(path))
                    && is_missing(&error) =>
            {
                return None;
            }
            Err(error) => return Some(ProtectedPathOutcome::Failed(error.to_string())),
        };
        match matches_state(&parent, name, before) {
            Ok(true) => return None,
            Ok(false) if belongs_to_worktree(path) && is_gone(&parent, name) => return None,
            Ok(false) => {}
            Err(error) => return Some(ProtectedPathOutcome::Failed(error.to_string())),
        }
        if self.is_allowed(&parent, name, path, before) {
            return None;
        }
        if !matches!(before, ProtectedPathState::Unkept(_)) {
            return Some(self.restore(&parent, name, path, before));
        }
        let outcome = self.set_changed_aside(&parent, name, path);
        // Record the current state, so that the change is reported only once.
        if let Ok(now) = stat_entry(&parent, name) {
            *before = now.map_or(ProtectedPathState::Absent, |stat| unkept_state(&stat));
        }
        Some(outcome)
    }

    /// Returns true if a change may stay: a new repository for which git runs nothing, or harmless configuration lines
    /// that the program was allowed to add. Such lines become part of the snapshot.
    fn is_allowed(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &Path,
        before: &mut ProtectedPathState,
    ) -> bool {
        if *before == ProtectedPathState::Absent && name.eq_ignore_ascii_case(GIT) {
            return is_inert_repository(parent, name);
        }
        let may_change = self.may_change.iter().any(|may| path.ends_with(may));
        let known: &[u8] = match before {
            ProtectedPathState::File { bytes, .. } => bytes,
            ProtectedPathState::Absent => &[],
            _ => return false,
        };
        if !may_change || name != CONFIG {
            return false;
        }
        let Ok(Some(stat)) = stat_entry(parent, name) else { return false };
        let Ok(now) = read_contents(parent, name) else { return false };
        let texts = std::str::from_utf8(known).ok().zip(std::str::from_utf8(&now).ok());
        if !texts.is_some_and(|(known, now)| is_inert_change(known, now)) {
            return false;
        }
        *before =
            ProtectedPathState::File { bytes: now, mode: super::handles::permission_bits(&stat) };
        true
    }

    fn restore(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &Path,
        before: &ProtectedPathState,
    ) -> ProtectedPathOutcome {
        let restored = self.clear_conflict(parent, name, path, before).and_then(|moved| {
            match before {
                ProtectedPathState::Absent => {}
                ProtectedPathState::Way | ProtectedPathState::ReadOnly => {
                    rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777))?
                }
                ProtectedPathState::Known { mode } => make_folder(parent, name, *mode)?,
                ProtectedPathState::Link(target) => rustix::fs::symlinkat(target, parent, name)?,
                ProtectedPathState::File { bytes, mode } => write_file(parent, name, bytes, *mode)?,
                ProtectedPathState::Unkept(_) => {
                    return Err(io::Error::other("its contents had not been kept"));
                }
            }
            Ok(moved)
        });
        match (restored, before) {
            (Err(error), _) => ProtectedPathOutcome::Failed(error.to_string()),
            (Ok(Some(to)), ProtectedPathState::Absent) => ProtectedPathOutcome::MovedTo(to),
            (Ok(_), _) => ProtectedPathOutcome::Restored,
        }
    }

    /// Moves a changed file aside whose contents had not been kept. The user may need it, so it is never deleted.
    fn set_changed_aside(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &Path,
    ) -> ProtectedPathOutcome {
        match stat_entry(parent, name) {
            Ok(Some(_)) => {}
            Ok(None) => {
                let why = "it was removed, and its contents had not been kept";
                return ProtectedPathOutcome::Failed(why.to_owned());
            }
            Err(error) => return ProtectedPathOutcome::Failed(error.to_string()),
        }
        match self.move_or_copy_aside(parent, name, path) {
            Ok(Some(to)) => ProtectedPathOutcome::ChangedCopyMovedTo(to),
            Ok(None) => self.rename_changed(parent, name, path),
            Err(error) => ProtectedPathOutcome::Failed(format!(
                "it is still there as the program left it, because it cannot be moved aside: {error}"
            )),
        }
    }

    /// Gives a changed file a name that nothing reads.
    fn rename_changed(&self, parent: &OwnedFd, name: &OsStr, path: &Path) -> ProtectedPathOutcome {
        for number in 0..ASIDE_NUMBERS_MAX {
            let mut target = name.to_owned();
            target.push(format!(".changed-{number}"));
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            if rustix::fs::renameat_with(parent, name, parent, &target, flags).is_ok() {
                let to = path.with_file_name(target).to_string_lossy().into_owned();
                return ProtectedPathOutcome::ChangedCopyMovedTo(to.into());
            }
        }
        let why = "it is still there as the program left it, because it cannot be moved aside";
        ProtectedPathOutcome::Failed(why.to_owned())
    }

    /// Moves an entry aside if restoring needs its place.
    fn clear_conflict(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &Path,
        before: &ProtectedPathState,
    ) -> io::Result<Option<Utf8PathBuf>> {
        let Some(stat) = stat_entry(parent, name)? else { return Ok(None) };
        let fits = match before {
            ProtectedPathState::File { .. } => file_kind(&stat) == FileType::RegularFile,
            ProtectedPathState::Known { .. } => file_kind(&stat) == FileType::Directory,
            _ => false,
        };
        if fits { Ok(None) } else { self.move_aside(parent, name, path) }
    }

    /// Moves aside the entries of a known folder that were not there before.
    fn move_added_aside(&self, picture: &GuardSnapshot, folder: &Path) -> Vec<ProtectedPathChange> {
        let listed = || {
            let fd = open_beneath(self.dir, folder)?;
            list_names(&fd).map(|names| (fd, names))
        };
        let listed = match listed() {
            Err(_) if unlock_along(self.dir, folder) => listed(),
            listed => listed,
        };
        let (fd, names) = match listed {
            Ok(listed) => listed,
            // The folder could not be restored, which has been reported already.
            Err(error) if is_missing(&error) => return Vec::new(),
            Err(error) => {
                return vec![change_at(folder, ProtectedPathOutcome::Failed(error.to_string()))];
            }
        };
        let mut changes = Vec::new();
        for name in names {
            let path = folder.join(&name);
            if picture.before.contains_key(&path) {
                continue;
            }
            let outcome = match self.move_aside(&fd, &name, &path) {
                Ok(Some(to)) => ProtectedPathOutcome::MovedTo(to),
                Ok(None) => continue,
                Err(error) => ProtectedPathOutcome::Failed(error.to_string()),
            };
            changes.push(change_at(&path, outcome));
        }
        changes
    }

    /// Moves aside new protected paths anywhere below the work folder, except repositories for which git runs nothing.
    /// Repeats the search until it finds nothing new.
    fn move_new_nested_aside(
        &self,
        picture: &GuardSnapshot,
        before: &NestedSearchResult,
    ) -> Vec<ProtectedPathChange> {
        let known: HashSet<&PathBuf> = before.protected.iter().collect();
        let sockets: HashSet<&PathBuf> = before.sockets.iter().collect();
        let mut changes = Vec::new();
        // Paths that stay, or that cannot be moved.
        let mut seen: HashSet<PathBuf> = HashSet::new();
        for _ in 0..SEARCHES_MAX {
            let now = self.searched.search_after(&picture.dir, self.dir, &before.closed);
            for socket in now.sockets.iter().filter(|socket| !sockets.contains(socket)) {
                remove_dead_socket(self.dir, socket);
            }
            let new = now.protected.iter().filter(|path| {
                !known.contains(path)
                    && !picture.before.contains_key(*path)
                    && !is_below(&before.closed, path)
                    && !seen.contains(*path)
            });
            let mut is_done = true;
            for path in new.cloned().collect::<Vec<_>>() {
                let Some(outcome) = self.handle_new_path(&path) else {
                    seen.insert(path);
                    continue;
                };
                changes.push(change_at(&path, outcome.clone()));
                match outcome {
                    ProtectedPathOutcome::Failed(_) => drop(seen.insert(path)),
                    _ => is_done = false,
                }
            }
            if is_done {
                changes.extend(self.report_unsearched(before, &now));
                return changes;
            }
        }
        let why = format!("after {SEARCHES_MAX} searches there were still new ones");
        changes.push(change_at(Path::new("."), ProtectedPathOutcome::NotSearched(why)));
        changes
    }

    /// Handles a new protected path. Returns `None` if it stays.
    fn handle_new_path(&self, path: &Path) -> Option<ProtectedPathOutcome> {
        let (parent, name) = match parent_of(self.dir, path) {
            Ok(found) => found,
            Err(error) if is_missing(&error) => return None,
            Err(error) => return Some(ProtectedPathOutcome::Failed(error.to_string())),
        };
        let is_inert = if name.eq_ignore_ascii_case(GIT) {
            is_inert_repository(&parent, name)
        } else {
            is_inert_part(&parent, name)
        };
        if is_inert {
            return None;
        }
        Some(match self.move_aside(&parent, name, path) {
            Ok(Some(to)) => ProtectedPathOutcome::MovedTo(to),
            Ok(None) => ProtectedPathOutcome::Restored,
            Err(error) => ProtectedPathOutcome::Failed(error.to_string()),
        })
    }

    /// Reports folders that can no longer be searched, and unlistable folders that have changed.
    fn report_unsearched(
        &self,
        before: &NestedSearchResult,
        now: &NestedSearchResult,
    ) -> Vec<ProtectedPathChange> {
        let mut changes = Vec::new();
        if now.is_cut && !before.is_cut {
            let why = format!(
                "there are more than {SEARCHED_FOLDERS_MAX} folders or {NESTED_FOUND_MAX} protected paths and sockets"
            );
            changes.push(change_at(Path::new("."), ProtectedPathOutcome::NotSearched(why)));
        }
        for (path, identity) in &now.closed {
            if before.closed.get(path) != Some(identity) {
                let why = "the folder cannot be listed".to_owned();
                changes.push(change_at(path, ProtectedPathOutcome::NotSearched(why)));
            }
        }
        for path in before.closed.keys().filter(|path| !now.closed.contains_key(*path)) {
            if parent_of(self.dir, path).is_ok_and(|(parent, name)| {
                stat_entry(&parent, name).is_ok_and(|stat| stat.is_some())
            }) {
                let why = "the folder could not be listed before, so what is new in it is unknown";
                changes.push(change_at(path, ProtectedPathOutcome::NotSearched(why.to_owned())));
            }
        }
        changes
    }

    /// Moves an entry to the aside folder. Deletes it if that is impossible.
    fn move_aside(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &Path,
    ) -> io::Result<Option<Utf8PathBuf>> {
        match self.move_or_copy_aside(parent, name, path)? {
            Some(to) => Ok(Some(to)),
            None => delete_entry(parent, name).map(|()| None),
        }
    }

    /// Moves an entry to the aside folder; a file may be copied there. Returns `None` if that folder is unusable, or if
    /// it is on another file system and the entry is not a regular file.
    fn move_or_copy_aside(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &Path,
    ) -> io::Result<Option<Utf8PathBuf>> {
        // Programs may write to the parent of the aside folder, and may have replaced it with a link or a file.
        let Ok(aside) = self.aside.open_handle() else { return Ok(None) };
        let flat = path.to_string_lossy().replace('/', "-");
        let flat =
            &flat[flat.ceil_char_boundary(flat.len().saturating_sub(ASIDE_NAME_BYTES_MAX))..];
        for number in 0..ASIDE_NUMBERS_MAX {
            let target = format!("{flat}.{number}");
            if stat_entry(&aside, OsStr::new(&target))?.is_some() {
                continue;
            }
            match rustix::fs::renameat(parent, name, &aside, &target) {
                Ok(()) => {}
                Err(rustix::io::Errno::XDEV) => {
                    if copy_file(parent, name, &aside, OsStr::new(&target)).is_err() {
                        return Ok(None);
                    }
                    delete_entry(parent, name)?;
                }
                Err(error) => return Err(error.into()),
            }
            return Ok(Some(self.aside.path().join(target)));
        }
        Ok(None)
    }
}

fn is_gone(parent: &OwnedFd, name: &OsStr) -> bool {
    stat_entry(parent, name).is_ok_and(|stat| stat.is_none())
}

fn parent_or_empty(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn is_below(closed: &ClosedFolders, path: &Path) -> bool {
    !closed.is_empty() && path.ancestors().any(|above| closed.contains_key(above))
}

/// Builds a change. Paths that are not UTF-8 get replacement characters.
fn change_at(path: &Path, outcome: ProtectedPathOutcome) -> ProtectedPathChange {
    ProtectedPathChange { path: path.to_string_lossy().into_owned().into(), outcome }
}
