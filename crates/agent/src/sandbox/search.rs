//! The search for nested protected paths and for Unix sockets below a work folder.
//!
//! It runs before and after every command, so it must cost little: a folder whose change time is the one of the last
//! search is not read again, only looked at. Programs cannot set the change time of a folder. The nearest folders are
//! searched first; folders that only build tools fill are left out.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use crate::limits::{NESTED_FOUND_MAX, SEARCHED_FOLDERS_MAX};
use crate::protected::{GIT, is_protected_name};

/// Folders that are not searched: build tools fill them with tens of thousands of files.
const NOT_SEARCHED: &[&str] = &["node_modules", "target", ".venv", "__pycache__"];

/// Two changes within this time may leave a folder with the same change time.
const CHANGE_TIME_GRAIN: Duration = Duration::from_millis(50);

/// How old a search may be for the guard, which is made right after the walls.
pub(super) const JUST_SEARCHED: Duration = Duration::from_millis(100);

/// The folders below a work folder as the last search found them. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchedTree(Arc<Mutex<Searched>>);

#[derive(Debug, Default)]
struct Searched {
    dir: Utf8PathBuf,
    /// In the order of the search: the nearest first.
    folders: Vec<(Utf8PathBuf, Folder)>,
    is_cut: bool,
    last: Option<(Instant, Arc<Found>)>,
}

/// The result of a search, with paths relative to the work folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Protected files and folders. A nested repository is named by its `.git`.
    pub(super) protected: Vec<Utf8PathBuf>,
    pub(super) sockets: Vec<Utf8PathBuf>,
    /// Whether a limit ended the search.
    pub(super) is_cut: bool,
}

#[derive(Debug)]
struct Folder {
    identity: Identity,
    /// Whether a change after the folder was read must show in its change time.
    is_settled: bool,
    folders: Vec<String>,
    protected: Vec<String>,
    sockets: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl SearchedTree {
    /// Searches a work folder. The answer of a search that is not older than `age_max` is given again.
    pub(super) fn search(&self, dir: &Utf8Path, age_max: Duration) -> Arc<Found> {
        let mut searched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if searched.dir != dir {
            *searched = Searched { dir: dir.to_owned(), ..Searched::default() };
        }
        if let Some((at, found)) = &searched.last
            && at.elapsed() <= age_max
            && age_max > Duration::ZERO
        {
            return found.clone();
        }
        let found = Arc::new(searched.walk());
        searched.last = Some((Instant::now(), found.clone()));
        found
    }
}

impl Searched {
    fn walk(&mut self) -> Found {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(dir) = rustix::fs::open(self.dir.as_str(), flags, Mode::empty()) else {
            return Found::default();
        };
        if self.folders.is_empty() || self.is_cut || !self.refresh(&dir) {
            self.search(&dir);
        }
        self.found()
    }

    /// Looks at the known folders again. Tells whether there are still the same ones, which is usual and needs no search.
    fn refresh(&mut self, dir: &OwnedFd) -> bool {
        self.folders.iter_mut().all(|(path, folder)| {
            if is_unchanged(dir, path, folder) {
                return true;
            }
            let Some(now) = read(dir, path) else { return false };
            let has_same_folders = now.folders == folder.folders;
            *folder = now;
            has_same_folders
        })
    }

    fn search(&mut self, dir: &OwnedFd) {
        let mut before: HashMap<_, _> = std::mem::take(&mut self.folders).into_iter().collect();
        let mut waiting = VecDeque::from([Utf8PathBuf::new()]);
        let mut hits = 0;
        self.is_cut = false;
        while let Some(path) = waiting.pop_front() {
            if self.folders.len() >= SEARCHED_FOLDERS_MAX || hits >= NESTED_FOUND_MAX {
                self.is_cut = true;
                break;
            }
            let known = before.remove(&path).filter(|known| is_unchanged(dir, &path, known));
            let Some(folder) = known.or_else(|| read(dir, &path)) else { continue };
            waiting.extend(folder.folders.iter().map(|name| path.join(name)));
            hits += folder.protected.len() + folder.sockets.len();
            self.folders.push((path, folder));
        }
    }

    fn found(&self) -> Found {
        let mut found = Found { is_cut: self.is_cut, ..Found::default() };
        for (path, folder) in &self.folders {
            found.protected.extend(folder.protected.iter().map(|name| path.join(name)));
            found.sockets.extend(folder.sockets.iter().map(|name| path.join(name)));
        }
        found.protected.sort();
        found.sockets.sort();
        found
    }
}

/// Whether nothing was made, removed or renamed in a folder since it was read.
fn is_unchanged(dir: &OwnedFd, path: &Utf8Path, known: &Folder) -> bool {
    let stat = || rustix::fs::statat(dir, here(path), AtFlags::SYMLINK_NOFOLLOW);
    known.is_settled && stat().is_ok_and(|stat| identity(&stat) == known.identity)
}

/// Reads a folder. A link on the way, left by a program that still runs, can only make it read other names: whatever is
/// done about a name follows no link.
fn read(dir: &OwnedFd, path: &Utf8Path) -> Option<Folder> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, here(path), flags, Mode::empty()).ok()?;
    let identity = identity(&rustix::fs::fstat(&fd).ok()?);
    let mut folder = Folder {
        identity,
        is_settled: is_settled(identity.changed),
        folders: Vec::new(),
        protected: Vec::new(),
        sockets: Vec::new(),
    };
    for entry in Dir::read_from(&fd).ok()?.flatten() {
        // A name that is not UTF-8 is not a protected one; a folder of that name is not searched.
        let Ok(name) = entry.file_name().to_str() else { continue };
        let kind = match entry.file_type() {
            FileType::Unknown => kind_of(&fd, name),
            kind => kind,
        };
        folder.note(path, name, kind);
    }
    // Folders are compared by their names, and the order of a file system may change.
    folder.folders.sort_unstable();
    Some(folder)
}

impl Folder {
    fn note(&mut self, path: &Utf8Path, name: &str, kind: FileType) {
        if matches!(name, "." | "..") {
            return;
        }
        let is_git = name.eq_ignore_ascii_case(GIT);
        let is_github_skills = name.eq_ignore_ascii_case("skills") && path.ends_with(".github");
        if is_git || is_protected_name(name) || is_github_skills {
            // The repository of the work folder itself is not nested.
            if !(is_git && path == "") {
                self.protected.push(name.to_owned());
            }
        } else if kind == FileType::Directory && !NOT_SEARCHED.contains(&name) {
            self.folders.push(name.to_owned());
        } else if kind == FileType::Socket {
            self.sockets.push(name.to_owned());
        }
    }
}

fn kind_of(fd: &OwnedFd, name: &str) -> FileType {
    let stat = rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

fn here(path: &Utf8Path) -> &str {
    if path == "" { "." } else { path.as_str() }
}

fn identity(stat: &Stat) -> Identity {
    #[allow(clippy::unnecessary_cast, reason = "the types of the fields differ between machines")]
    Identity {
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
        changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    }
}

#[expect(clippy::disallowed_methods, reason = "it is compared with times of the file system")]
fn is_settled((seconds, nanoseconds): (i64, i64)) -> bool {
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
        assert_eq!(found.protected, [".claude", "a/.git", "a/.github/skills", "a/b/AGENTS.md"]);
        let _server = std::os::unix::net::UnixListener::bind(dir.join("a/b/socket")).unwrap();
        put(&dir, "src/deep/er/.envrc");
        std::fs::remove_file(dir.join("a/b/AGENTS.md")).unwrap();
        let found = tree.search(&dir, Duration::ZERO);
        assert_eq!(
            found.protected,
            [".claude", "a/.git", "a/.github/skills", "src/deep/er/.envrc"]
        );
        assert_eq!(found.sockets, ["a/b/socket"]);
    }

    #[test]
    fn a_folder_is_read_again_only_when_it_has_changed() {
        let (_keep, dir) = scratch();
        put(&dir, "a/file");
        std::thread::sleep(CHANGE_TIME_GRAIN * 2);
        let fd = rustix::fs::open(dir.as_str(), OFlags::RDONLY, Mode::empty()).unwrap();
        let folder = read(&fd, Utf8Path::new("a")).unwrap();
        assert!(folder.is_settled);
        assert!(is_unchanged(&fd, Utf8Path::new("a"), &folder));
        put(&dir, "a/other");
        assert!(!is_unchanged(&fd, Utf8Path::new("a"), &folder));
    }
}
