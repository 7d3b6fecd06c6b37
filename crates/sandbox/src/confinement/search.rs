//! Searches a work folder for nested protected paths and Unix sockets.
//!
//! The search runs before and after every command, so it must be cheap: a folder whose change time (ctime) is the same
//! as in the last search is not read again. Programs cannot set the ctime of a folder. Folders are searched
//! breadth-first, and folders that only build tools fill are skipped. Folders that cannot be listed are part of the
//! result.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::guard::unlock;
use super::nested::is_repository;
use crate::limits::{NESTED_FOUND_MAX, SEARCHED_FOLDERS_MAX};
use crate::protected::{GIT, GIT_PARTS, is_protected_name};

/// Folders that are not searched: build tools fill them with tens of thousands of files.
const NOT_SEARCHED: &[&str] = &["node_modules", "target", ".venv", "__pycache__"];

/// Entries by which git recognises a repository, beside the protected [`GIT_PARTS`].
const BARE_REPOSITORY_ENTRIES: &[&str] = &["HEAD", "objects", "refs"];

/// Two changes within this time may leave a folder with the same change time.
const CHANGE_TIME_GRAIN: Duration = Duration::from_millis(50);

/// The maximum age of a search result when a policy is built, which happens right after the guard searched.
pub(super) const JUST_SEARCHED: Duration = Duration::from_millis(100);

/// The folders below a work folder as the last search found them. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchedTree(Arc<Mutex<SearchedTreeState>>);

#[derive(Debug, Default)]
struct SearchedTreeState {
    dir: Utf8PathBuf,
    /// In breadth-first order.
    folders: Vec<(PathBuf, SearchedFolder)>,
    closed: ClosedFolders,
    is_cut: bool,
    last: Option<(Instant, Arc<NestedSearchResult>)>,
}

/// Folders that could not be listed.
pub(super) type ClosedFolders = BTreeMap<PathBuf, FolderIdentity>;

/// The result of a search, with paths relative to the work folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NestedSearchResult {
    /// Protected files and folders. A nested repository is represented by its `.git`.
    pub(super) protected: Vec<PathBuf>,
    pub(super) sockets: Vec<PathBuf>,
    pub(super) closed: ClosedFolders,
    /// True if a limit ended the search early.
    pub(super) is_cut: bool,
}

#[derive(Debug)]
struct SearchedFolder {
    identity: FolderIdentity,
    /// True if any change since the folder was read would show in its change time.
    is_settled: bool,
    folders: Vec<OsString>,
    protected: Vec<OsString>,
    sockets: Vec<OsString>,
}

/// Identifies a folder at a point in time: any change to its entries or its mode results in a different value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) changed: (i64, i64),
}

/// The result of reading a folder.
enum FolderReading {
    Listed(SearchedFolder),
    /// The folder no longer exists.
    Gone,
    Closed(FolderIdentity),
}

impl SearchedTree {
    /// Searches a work folder. Returns the last result if it is at most `age_max` old.
    pub(super) fn search(&self, dir: &Utf8Path, age_max: Duration) -> Arc<NestedSearchResult> {
        let mut searched = self.lock_for(dir);
        if let Some((at, found)) = &searched.last
            && at.elapsed() <= age_max
            && age_max > Duration::ZERO
        {
            return found.clone();
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(dir.as_str(), flags, Mode::empty()) {
            Ok(open) => searched.refresh_or_search(&open, None),
            Err(_) => {
                let closed = ClosedFolders::from([(PathBuf::new(), FolderIdentity::default())]);
                Arc::new(NestedSearchResult { closed, ..NestedSearchResult::default() })
            }
        }
    }

    /// Searches an open work folder after a program ran. Makes unlistable folders listable if they belong to this user
    /// and are not in `closed_before`.
    pub(super) fn search_after(
        &self,
        dir: &Utf8Path,
        open: &OwnedFd,
        closed_before: &ClosedFolders,
    ) -> Arc<NestedSearchResult> {
        self.lock_for(dir).refresh_or_search(open, Some(closed_before))
    }

    fn lock_for(&self, dir: &Utf8Path) -> std::sync::MutexGuard<'_, SearchedTreeState> {
        let mut searched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if searched.dir != dir {
            *searched = SearchedTreeState { dir: dir.to_owned(), ..SearchedTreeState::default() };
        }
        searched
    }
}

impl SearchedTreeState {
    fn refresh_or_search(
        &mut self,
        dir: &OwnedFd,
        closed_before: Option<&ClosedFolders>,
    ) -> Arc<NestedSearchResult> {
        // The list of folders is incomplete after a search that was cut or met closed folders, so it cannot be
        // refreshed.
        let is_known = !self.folders.is_empty() && !self.is_cut && self.closed.is_empty();
        if !is_known || !self.refresh(dir) {
            self.search_folders(dir, closed_before);
        }
        let found = Arc::new(self.collect_found());
        self.last = Some((Instant::now(), found.clone()));
        found
    }

    /// Checks the known folders again. Returns true if no folder was added or removed, the usual case, which needs no
    /// full search.
    fn refresh(&mut self, dir: &OwnedFd) -> bool {
        self.folders.iter_mut().all(|(path, folder)| {
            if is_unchanged(dir, path, folder) {
                return true;
            }
            let FolderReading::Listed(now) = read_folder(dir, path) else { return false };
            let has_same_folders = now.folders == folder.folders;
            *folder = now;
            has_same_folders
        })
    }

    fn search_folders(&mut self, dir: &OwnedFd, closed_before: Option<&ClosedFolders>) {
        let mut before: HashMap<_, _> = std::mem::take(&mut self.folders).into_iter().collect();
        let mut waiting = VecDeque::from([PathBuf::new()]);
        let mut hits = 0;
        self.is_cut = false;
        self.closed.clear();
        while let Some(path) = waiting.pop_front() {
            if self.folders.len() >= SEARCHED_FOLDERS_MAX || hits >= NESTED_FOUND_MAX {
                self.is_cut = true;
                break;
            }
            let known = before.remove(&path).filter(|known| is_unchanged(dir, &path, known));
            let reading = known
                .map_or_else(|| read_or_unlock(dir, &path, closed_before), FolderReading::Listed);
            match reading {
                FolderReading::Listed(folder) => {
                    waiting.extend(folder.folders.iter().map(|name| path.join(name)));
                    hits += folder.protected.len() + folder.sockets.len();
                    self.folders.push((path, folder));
                }
                FolderReading::Gone => {}
                FolderReading::Closed(identity) => drop(self.closed.insert(path, identity)),
            }
        }
    }

    fn collect_found(&self) -> NestedSearchResult {
        let closed = self.closed.clone();
        let mut found =
            NestedSearchResult { is_cut: self.is_cut, closed, ..NestedSearchResult::default() };
        for (path, folder) in &self.folders {
            found.protected.extend(folder.protected.iter().map(|name| path.join(name)));
            found.sockets.extend(folder.sockets.iter().map(|name| path.join(name)));
        }
        found.protected.sort();
        found.sockets.sort();
        found
    }
}

/// Returns true if no entry was added, removed or renamed in a folder since it was read.
fn is_unchanged(dir: &OwnedFd, path: &Path, known: &SearchedFolder) -> bool {
    let stat = || rustix::fs::statat(dir, current_if_empty(path), AtFlags::SYMLINK_NOFOLLOW);
    known.is_settled && stat().is_ok_and(|stat| identity_of(&stat) == known.identity)
}

fn read_or_unlock(
    dir: &OwnedFd,
    path: &Path,
    closed_before: Option<&ClosedFolders>,
) -> FolderReading {
    match read_folder(dir, path) {
        FolderReading::Closed(_)
            if closed_before.is_some_and(|before| !before.contains_key(path))
                && unlock(dir, current_if_empty(path)) =>
        {
            read_folder(dir, path)
        }
        reading => reading,
    }
}

/// Reads a folder. A symlink planted by a running program can only make this return other names, since every later
/// operation on a name refuses to follow links.
fn read_folder(dir: &OwnedFd, path: &Path) -> FolderReading {
    match list_folder(dir, path) {
        Ok(folder) => FolderReading::Listed(folder),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => FolderReading::Gone,
        Err(_) => {
            let stat = rustix::fs::statat(dir, current_if_empty(path), AtFlags::SYMLINK_NOFOLLOW);
            FolderReading::Closed(stat.map(|stat| identity_of(&stat)).unwrap_or_default())
        }
    }
}

fn list_folder(dir: &OwnedFd, path: &Path) -> rustix::io::Result<SearchedFolder> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, current_if_empty(path), flags, Mode::empty())?;
    let identity = identity_of(&rustix::fs::fstat(&fd)?);
    let mut folder = SearchedFolder {
        identity,
        is_settled: is_settled(identity.changed),
        folders: Vec::new(),
        protected: Vec::new(),
        sockets: Vec::new(),
    };
    let mut parts: Vec<OsString> = Vec::new();
    for entry in Dir::read_from(&fd)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if BARE_REPOSITORY_ENTRIES.iter().chain(GIT_PARTS).any(|part| name == *part) {
            parts.push(name.to_owned());
        }
        let kind = match entry.file_type() {
            FileType::Unknown => kind_of(&fd, name),
            kind => kind,
        };
        folder.add_entry(path, name, kind);
    }
    if is_repository(|name| parts.iter().any(|part| part == name)) {
        parts.retain(|part| GIT_PARTS.iter().any(|name| part == name));
        folder.folders.retain(|name| !parts.contains(name));
        folder.protected.append(&mut parts);
    }
    // Folders are compared as lists of names, and the order of a directory listing may change.
    folder.folders.sort_unstable();
    Ok(folder)
}

impl SearchedFolder {
    fn add_entry(&mut self, path: &Path, name: &OsStr, kind: FileType) {
        if name == "." || name == ".." {
            return;
        }
        let is_git = name.eq_ignore_ascii_case(GIT);
        let is_github_skills = name.eq_ignore_ascii_case("skills") && path.ends_with(".github");
        // A name that is not UTF-8 is never protected.
        if is_git || name.to_str().is_some_and(is_protected_name) || is_github_skills {
            // The work folder's own repository is not nested.
            if !(is_git && path.as_os_str().is_empty()) {
                self.protected.push(name.to_owned());
            }
        } else if kind == FileType::Directory && !NOT_SEARCHED.iter().any(|other| name == *other) {
            self.folders.push(name.to_owned());
        } else if kind == FileType::Socket {
            self.sockets.push(name.to_owned());
        }
    }
}

fn kind_of(fd: &OwnedFd, name: &OsStr) -> FileType {
    let stat = rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

fn current_if_empty(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn identity_of(stat: &Stat) -> FolderIdentity {
    #[allow(clippy::unnecessary_cast, reason = "the types of the fields differ between machines")]
    FolderIdentity {
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
        changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    }
}

/// Returns true if a later change would result in another change time.
#[expect(clippy::disallowed_methods, reason = "it is compared with times of the file system")]
pub(super) fn is_settled((seconds, nanoseconds): (i64, i64)) -> bool {
    let changed = u64::try_from(seconds).ok().zip(u32::try_from(nanoseconds).ok());
    let changed = changed.map(|(seconds, nanos)| {
        SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos) + CHANGE_TIME_GRAIN
    });
    changed.is_some_and(|settled| SystemTime::now() > settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(dir: &Utf8Path, path: &str) {
        std::fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
        std::fs::File::create(dir.join(path)).unwrap();
    }

    fn paths(texts: &[&str]) -> Vec<PathBuf> {
        texts.iter().map(PathBuf::from).collect()
    }

    fn scratch() -> (tempfile::TempDir, Utf8PathBuf) {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        (keep, dir)
    }

    #[test]
    fn nested_protected_paths_and_sockets_are_found_and_found_anew() {
        let (_keep, dir) = scratch();
        for path in [
            ".git/config",
            "a/b/AGENTS.md",
            "a/.git/hooks/x",
            "a/.github/skills/x/SKILL.md",
            "src/skills/a.rs",
            "node_modules/x/AGENTS.md",
            ".claude/agents/AGENTS.md",
        ] {
            put(&dir, path);
        }
        let tree = SearchedTree::default();
        let found = tree.search(&dir, Duration::ZERO);
        assert_eq!(
            found.protected,
            paths(&[".claude", "a/.git", "a/.github/skills", "a/b/AGENTS.md"])
        );
        let _server = std::os::unix::net::UnixListener::bind(dir.join("a/b/socket")).unwrap();
        put(&dir, "src/deep/er/.envrc");
        std::fs::remove_file(dir.join("a/b/AGENTS.md")).unwrap();
        let found = tree.search(&dir, Duration::ZERO);
        assert_eq!(
            found.protected,
            paths(&[".claude", "a/.git", "a/.github/skills", "src/deep/er/.envrc"])
        );
        assert_eq!(found.sockets, paths(&["a/b/socket"]));
    }

    #[test]
    fn a_folder_is_read_again_only_when_it_has_changed() {
        let (_keep, dir) = scratch();
        put(&dir, "a/file");
        std::thread::sleep(CHANGE_TIME_GRAIN * 2);
        let fd = rustix::fs::open(dir.as_str(), OFlags::RDONLY, Mode::empty()).unwrap();
        let folder = list_folder(&fd, Path::new("a")).unwrap();
        assert!(folder.is_settled);
        assert!(is_unchanged(&fd, Path::new("a"), &folder));
        put(&dir, "a/other");
        assert!(!is_unchanged(&fd, Path::new("a"), &folder));
    }

    #[test]
    fn names_that_are_not_text_are_searched() {
        let (_keep, dir) = scratch();
        let odd = dir.as_std_path().join(OsStr::from_bytes(b"\xff"));
        std::fs::create_dir(&odd).unwrap();
        std::fs::File::create(odd.join("AGENTS.md")).unwrap();
        let found = SearchedTree::default().search(&dir, Duration::ZERO);
        assert_eq!(found.protected, [Path::new(OsStr::from_bytes(b"\xff/AGENTS.md"))]);
    }

    #[test]
    fn a_folder_that_cannot_be_listed_is_reported_or_made_listable() {
        use std::os::unix::fs::PermissionsExt;
        let (_keep, dir) = scratch();
        put(&dir, "hidden/AGENTS.md");
        let mode = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(dir.join("hidden"), mode(0o111)).unwrap();
        let before = SearchedTree::default().search(&dir, Duration::ZERO);
        if rustix::process::geteuid().is_root() {
            assert_eq!(before.protected, paths(&["hidden/AGENTS.md"]));
            return;
        }
        assert!(before.protected.is_empty());
        assert_eq!(before.closed.keys().collect::<Vec<_>>(), [Path::new("hidden")]);
        let open = rustix::fs::open(dir.as_str(), OFlags::RDONLY, Mode::empty()).unwrap();
        let search = |closed| SearchedTree::default().search_after(&dir, &open, closed);
        assert_eq!(*search(&before.closed), *before, "the user closed it");
        let after = search(&ClosedFolders::new());
        assert_eq!(after.protected, paths(&["hidden/AGENTS.md"]));
        assert!(after.closed.is_empty());
    }
}
