//! Guards protected paths: takes a snapshot before a program runs and restores them afterwards.
//!
//! Where the sandbox mounts protected paths read-only, the guard handles only those that did not exist, and symlinks.
//! Elsewhere it handles all of them: it stores their contents, up to a limit, and restores them. Files that a program
//! created in their place are moved aside, not deleted. Nested protected paths are searched for before and after; see
//! [`super::nested`] for repositories.
//!
//! Programs that run concurrently in one work folder share a snapshot, taken for the first of them: a snapshot taken
//! for the second could mistake the first one's changes for the original. Each program is compared with the shared
//! snapshot when it ends, so the last one leaves the folder in its original state. While programs run, the snapshot is
//! also in a file that each program's supervisor holds open: if this process is killed, the supervisors restore the
//! folder.
//!
//! The guard never follows symlinks out of the work folder: a program may have replaced folders with links.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use self::check::{AsideFolder, SnapshotCheck};
pub(super) use self::handles::unlock;
use self::handles::{open_dir, permission_bits};
use self::snapshot::{GuardSnapshot, SnapshotDepth, SnapshotRecorder, empty_snapshot};
use super::nested::{NestedPaths, found_paths, worktree_pointers};
use super::policy::private_dir;
use super::search::{NestedSearchResult, SearchedTree};
use crate::limits::{GUARDED_DEPTH_MAX, GUARDED_ENTRIES_MAX, LARGE_MOUNTED_MAX, NESTED_FOUND_MAX};
use crate::protected::is_protected;
use crate::workplace::RunWorkplace;

mod check;
mod handles;
mod snapshot;

/// A change that a program made to a protected path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedPathChange {
    /// The path, relative to the work folder.
    pub path: Utf8PathBuf,
    pub outcome: ProtectedPathOutcome,
}

/// The result of handling a change to a protected path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtectedPathOutcome {
    /// The original state is restored.
    Restored,
    /// The path did not exist before; it was moved to this location.
    MovedTo(Utf8PathBuf),
    /// The path was changed, and its contents had not been kept; the changed file was moved to this location.
    ChangedCopyMovedTo(Utf8PathBuf),
    /// The path could not be restored, for this reason.
    Failed(String),
    /// The folder could not be searched for new protected paths, for this reason.
    NotSearched(String),
}

impl ProtectedPathChange {
    /// Returns true if some of the program's changes may remain.
    pub fn is_failure(&self) -> bool {
        matches!(
            self.outcome,
            ProtectedPathOutcome::Failed(_)
                | ProtectedPathOutcome::NotSearched(_)
                | ProtectedPathOutcome::ChangedCopyMovedTo(_)
        )
    }

    /// Describes the change in a sentence for the user and the model.
    pub fn describe(&self) -> String {
        let path = &self.path;
        match &self.outcome {
            ProtectedPathOutcome::Restored => {
                format!("the protected path `{path}` was changed, and is as it was before")
            }
            ProtectedPathOutcome::MovedTo(aside) => {
                format!("the protected path `{path}` was made, and is now in {aside}")
            }
            ProtectedPathOutcome::ChangedCopyMovedTo(aside) => {
                // The end of a long line may not be shown, so the path is named once.
                let missing = if is_git_configuration(path) {
                    "The repository has no configuration until you"
                } else {
                    "To restore it,"
                };
                format!(
                    "the protected path `{path}` was changed, and no copy had been kept: too many or too large files are \
                     protected. {missing} look at the changed file and put it back: `mv '{aside}' '{path}'`"
                )
            }
            ProtectedPathOutcome::Failed(why) => {
                format!("the protected path `{path}` was changed and not put back: {why}")
            }
            ProtectedPathOutcome::NotSearched(why) => {
                format!(
                    "new protected paths in `{path}` may be left: {why}; look at the folder before you use git in it"
                )
            }
        }
    }
}

fn is_git_configuration(path: &Utf8Path) -> bool {
    path.ends_with(".git/config") || (path.file_name() == Some("config") && !is_protected(path))
}

/// The subfolder of a private folder that holds snapshots of work folders.
pub(crate) const PICTURES: &str = "pictures";

/// The work folders in which programs are running.
static WATCHED: Mutex<BTreeMap<GuardedFolderKey, WatchedFolder>> = Mutex::new(BTreeMap::new());

/// Identifies a work folder, and whether its protected paths are mounted read-only. If they are, the snapshot has no
/// contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GuardedFolderKey {
    device: u64,
    inode: u64,
    is_mounted: bool,
}

#[derive(Debug)]
struct WatchedFolder {
    programs: usize,
    shared: Arc<Mutex<SharedGuardState>>,
}

/// The state that the guards of one work folder share.
#[derive(Debug, Default)]
struct SharedGuardState {
    picture: Option<GuardSnapshot>,
    /// The file with the snapshot, for supervisors.
    file: Option<Utf8PathBuf>,
    /// Path suffixes that running programs may change, with one entry per program.
    may_change: Vec<&'static str>,
    /// Paths that were found in the work folder and that are to be mounted read-only, relative to it.
    mounted: Arc<[Utf8PathBuf]>,
    /// The reason why no program may be started.
    refusal: Option<String>,
}

/// The state of protected paths before a program runs, shared by programs that run concurrently in the same folder.
#[derive(Debug)]
pub struct ProtectedPathGuard {
    /// `None` if the work folder could not be opened.
    place: Option<(GuardedFolderKey, OwnedFd, Arc<Mutex<SharedGuardState>>)>,
    dir: Utf8PathBuf,
    mode: u32,
    spill: Utf8PathBuf,
    aside: Utf8PathBuf,
    searched: SearchedTree,
    may_change: &'static [&'static str],
    is_checked: bool,
}

impl ProtectedPathGuard {
    /// Takes a snapshot of a workplace's protected paths. Call it before [`Sandbox::confine`](super::Sandbox::confine),
    /// which mounts the paths that it found.
    pub fn for_workplace(workplace: &RunWorkplace) -> ProtectedPathGuard {
        ProtectedPathGuard::allowing_changes(workplace, &[])
    }

    /// Like [`ProtectedPathGuard::for_workplace`], for a program that may change protected paths with these suffixes: git's configuration,
    /// provided that the lines it adds cannot run anything.
    pub fn allowing_changes(
        workplace: &RunWorkplace,
        may_change: &'static [&'static str],
    ) -> ProtectedPathGuard {
        let opened = open_dir(&workplace.dir);
        let stat = opened.as_ref().ok().and_then(|dir| rustix::fs::fstat(dir).ok());
        let place = opened.ok().zip(key_of(workplace)).map(|(dir, key)| {
            let shared = {
                let mut watched = lock_watched();
                let entry = watched
                    .entry(key)
                    .or_insert_with(|| WatchedFolder { programs: 0, shared: Arc::default() });
                entry.programs += 1;
                entry.shared.clone()
            };
            lock_shared(&shared).add_program(workplace, &dir, may_change);
            (key, dir, shared)
        });
        ProtectedPathGuard {
            place,
            dir: workplace.dir.clone(),
            mode: stat.map_or(0o700, |stat| permission_bits(&stat)),
            spill: workplace.spill_dir.clone(),
            aside: aside_of(workplace),
            searched: workplace.searched.clone(),
            may_change,
            is_checked: false,
        }
    }

    /// Returns true if the work folder has more folders than are searched for nested protected paths.
    pub fn search_was_cut(&self) -> bool {
        self.nested_result().is_some_and(|found| found.is_cut)
    }

    /// Folders that cannot be listed, and therefore are not searched for nested protected paths.
    pub fn closed_folders(&self) -> Vec<Utf8PathBuf> {
        let found = self.nested_result();
        let closed = found.iter().flat_map(|found| found.closed.keys());
        closed.map(|path| path.to_string_lossy().into_owned().into()).collect()
    }

    /// The reason why the program must not be started: not all protected paths can be protected.
    pub fn refusal(&self) -> Option<String> {
        let (_, _, shared) = self.place.as_ref()?;
        lock_shared(shared).refusal.clone()
    }

    fn nested_result(&self) -> Option<Arc<NestedSearchResult>> {
        let (_, _, shared) = self.place.as_ref()?;
        lock_shared(shared).picture.as_ref()?.nested.clone()
    }

    /// Restores protected paths and returns the changes that were found.
    pub fn restore_paths(mut self) -> Vec<ProtectedPathChange> {
        self.check_and_restore()
    }

    fn check_and_restore(&mut self) -> Vec<ProtectedPathChange> {
        self.is_checked = true;
        let gone = || {
            let outcome = ProtectedPathOutcome::Failed("the work folder is gone".to_owned());
            vec![ProtectedPathChange { path: Utf8PathBuf::new(), outcome }]
        };
        let Some((key, held, shared)) = self.place.take() else { return gone() };
        let rights = self.mode & 0o700;
        if rustix::fs::fstat(&held).is_ok_and(|stat| permission_bits(&stat) & rights != rights) {
            // The program removed the owner's permission to list the folder. Restore it first, or the folder cannot be
            // opened.
            let _ = rustix::fs::fchmod(&held, rustix::fs::Mode::from_raw_mode(self.mode));
        }
        let mut state = lock_shared(&shared);
        let SharedGuardState { picture, may_change, .. } = &mut *state;
        let changes = match (open_dir(&self.dir), picture) {
            (Ok(dir), Some(picture)) => {
                let aside = AsideFolder::At { spill: self.spill.clone(), path: self.aside.clone() };
                let (searched, may_change) = (&self.searched, &may_change[..]);
                SnapshotCheck { dir: &dir, aside: &aside, searched, may_change }.run(picture)
            }
            _ => gone(),
        };
        for ending in self.may_change {
            if let Some(index) = state.may_change.iter().position(|other| other == ending) {
                state.may_change.swap_remove(index);
            }
        }
        drop(state);
        unregister_program(key);
        changes
    }
}

/// A guard dropped without a check belongs to an abandoned program, which may already have made changes.
impl Drop for ProtectedPathGuard {
    fn drop(&mut self) {
        if !self.is_checked {
            self.check_and_restore();
        }
    }
}

impl SharedGuardState {
    /// Takes the snapshot, or adds the paths that it does not contain yet.
    fn add_program(
        &mut self,
        workplace: &RunWorkplace,
        dir: &OwnedFd,
        may_change: &'static [&'static str],
    ) {
        self.may_change.extend(may_change);
        let is_first = self.picture.is_none();
        let picture = self.picture.get_or_insert_with(|| {
            empty_snapshot(&workplace.dir, &workplace.spill_dir, aside_of(workplace))
        });
        let is_mounted = workplace.sandbox.protects_paths();
        let depth = if is_mounted { SnapshotDepth::Surface } else { SnapshotDepth::Contents };
        let known = picture.before.len();
        // Pointers that exist may be mounted, but one that is missing cannot be.
        let worktrees = if workplace.protected.is_empty() {
            Vec::new()
        } else {
            worktree_pointers(&workplace.dir)
        };
        let mut recorder = SnapshotRecorder::new(picture, dir);
        for path in workplace.protected.iter().chain(&worktrees) {
            let Ok(relative) = path.strip_prefix(&workplace.dir) else { continue };
            recorder.record_along(relative.as_std_path(), depth);
            // A path that may be changed is not mounted read-only, so its contents are needed for the comparison.
            if may_change.iter().any(|may| relative.ends_with(may)) {
                recorder.want_contents(relative.as_std_path());
            }
        }
        let found = (is_first && !workplace.protected.is_empty()).then(|| {
            let found = workplace.searched.search(&workplace.dir, Duration::ZERO);
            let followed = workplace.find_followed(&found.protected);
            let paths = found_paths(workplace, &found, &followed);
            let NestedPaths { mounted, compared } = NestedPaths::select(&workplace.dir, paths);
            mounted.iter().for_each(|path| recorder.record_along(path.as_std_path(), depth));
            let contents = SnapshotDepth::Contents;
            compared.iter().for_each(|path| recorder.record_along(path, contents));
            let unknown = followed.is_cut.map(|why| describe_unknown_configuration(&why));
            self.refusal = unknown.or_else(|| describe_too_many_nested(&found));
            (found, mounted)
        });
        let too_large = recorder.finish();
        if let Some((found, mut mounted)) = found {
            picture.nested = Some(found);
            // A folder that a running program could replace must not be mounted, so this is only for the first program.
            if is_mounted && too_large.len() <= LARGE_MOUNTED_MAX {
                mounted.extend(too_large.iter().filter_map(|path| utf8_path(path)));
            }
            self.mounted = mounted.into();
        }
        let is_left =
            |path: &&PathBuf| !utf8_path(path).is_some_and(|path| self.mounted.contains(&path));
        if let Some(path) = too_large.iter().find(is_left) {
            self.refusal = Some(describe_too_large(path));
        }
        // Supervisors read the file, so rewrite it whenever the snapshot has gained paths.
        let has_grown = picture.before.len() > known || !may_change.is_empty();
        if has_grown || self.file.as_ref().is_some_and(|file| !file.exists()) {
            let written = write_snapshot(workplace, picture).ok().flatten();
            remove_snapshot(std::mem::replace(&mut self.file, written));
        }
    }
}

fn utf8_path(path: &Path) -> Option<Utf8PathBuf> {
    Utf8Path::from_path(path).map(Utf8Path::to_owned)
}

fn describe_too_large(path: &Path) -> String {
    format!(
        "the protected paths of the work folder have more than {GUARDED_ENTRIES_MAX} files and \
         folders, or more than {GUARDED_DEPTH_MAX} levels, so a change to `{}` could not be noticed. Move files out of \
         that folder, or out of the work folder; or use a machine with user namespaces, where such a folder is \
         read-only (`rep doctor`)",
        path.display()
    )
}

/// The reason not to start a program if the search found so many nested protected paths that it ended early. Names the
/// folder that has the most.
fn describe_too_many_nested(found: &NestedSearchResult) -> Option<String> {
    let all = found.protected.iter().chain(&found.sockets);
    if !found.is_cut || all.clone().count() < NESTED_FOUND_MAX {
        return None;
    }
    let mut counts: BTreeMap<&Path, usize> = BTreeMap::new();
    for path in all {
        for above in path.ancestors().skip(1) {
            *counts.entry(above).or_default() += 1;
        }
    }
    // The narrowest folder with more than half of them.
    let most = counts.iter().filter(|(_, count)| **count > NESTED_FOUND_MAX / 2);
    let folder = most.max_by_key(|(path, _)| path.components().count()).map(|(path, _)| *path);
    let folder = folder.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(format!(
        "there are more than {NESTED_FOUND_MAX} nested protected paths (`AGENTS.md`, `.git` and others) and sockets, most \
         of them in `{}`, so the rest would not be protected. Move that folder out of the work folder, or work in a folder below",
        folder.display()
    ))
}

fn describe_unknown_configuration(why: &str) -> String {
    format!(
        "{why}, so it is not known which files of the work folder your git would follow. Remove \
         includes or nested repositories that you do not need"
    )
}

/// Unregisters a program. The last one removes the snapshot.
fn unregister_program(key: GuardedFolderKey) {
    let mut watched = lock_watched();
    let Some(entry) = watched.get_mut(&key) else { return };
    entry.programs -= 1;
    if entry.programs == 0
        && let Some(entry) = watched.remove(&key)
    {
        remove_snapshot(lock_shared(&entry.shared).file.take());
    }
}

fn lock_watched() -> MutexGuard<'static, BTreeMap<GuardedFolderKey, WatchedFolder>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lock_shared(shared: &Mutex<SharedGuardState>) -> MutexGuard<'_, SharedGuardState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key_of(workplace: &RunWorkplace) -> Option<GuardedFolderKey> {
    let stat = rustix::fs::stat(workplace.dir.as_str()).ok()?;
    #[allow(clippy::unnecessary_cast, reason = "the types of the fields differ between machines")]
    let (device, inode) = (stat.st_dev as u64, stat.st_ino as u64);
    Some(GuardedFolderKey { device, inode, is_mounted: workplace.sandbox.protects_paths() })
}

fn shared_of(workplace: &RunWorkplace) -> Option<Arc<Mutex<SharedGuardState>>> {
    let key = key_of(workplace)?;
    lock_watched().get(&key).map(|entry| entry.shared.clone())
}

/// The paths that were found in a workplace and are to be mounted read-only, relative to it, if programs are running
/// there.
pub(super) fn mounted_paths_of(workplace: &RunWorkplace) -> Option<Arc<[Utf8PathBuf]>> {
    let shared = shared_of(workplace)?;
    let shared = lock_shared(&shared);
    shared.picture.as_ref()?.nested.is_some().then(|| shared.mounted.clone())
}

/// The file with the snapshot of a workplace, if programs are running there.
pub(super) fn snapshot_file_of(workplace: &RunWorkplace) -> Option<Utf8PathBuf> {
    lock_shared(&*shared_of(workplace)?).file.clone()
}

fn aside_of(workplace: &RunWorkplace) -> Utf8PathBuf {
    private_dir(workplace).join("aside")
}

/// Writes the snapshot to a folder that programs cannot change. Returns `None` if there is no such folder.
fn write_snapshot(
    workplace: &RunWorkplace,
    picture: &GuardSnapshot,
) -> io::Result<Option<Utf8PathBuf>> {
    let spill = &workplace.spill_dir;
    // In a folder that programs may write to, they could change the snapshot.
    let is_writable = spill.starts_with(&workplace.dir)
        || workplace.writable.iter().any(|folder| spill.starts_with(folder));
    if !workplace.sandbox.is_enforced() || is_writable || picture.before.is_empty() {
        return Ok(None);
    }
    let folder = private_dir(workplace).join(PICTURES);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let path = folder.join(uuid::Uuid::now_v7().simple().to_string());
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(&picture.encode())?;
    Ok(Some(path))
}

fn remove_snapshot(file: Option<Utf8PathBuf>) {
    let Some(file) = file else { return };
    let _ = std::fs::remove_file(&file);
    // This only succeeds if the folder is empty.
    let _ = file.parent().map(std::fs::remove_dir);
}

/// A work folder's snapshot and the handles to restore it, opened by a supervisor before it may lose its view of the
/// file system.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "supervisors are for Linux"))]
pub(super) struct OpenGuardSnapshot {
    file: File,
    folder: OwnedFd,
    name: String,
    dir: OwnedFd,
    aside: AsideFolder,
}

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "supervisors are for Linux"))]
impl OpenGuardSnapshot {
    /// Opens a snapshot and the folders that it describes.
    pub(super) fn open(path: &Utf8Path, dir: &Utf8Path) -> io::Result<OpenGuardSnapshot> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let private = folder.parent().unwrap_or(folder);
        let aside = private.join("aside");
        Ok(OpenGuardSnapshot {
            file: File::open(path)?,
            folder: open_dir(folder)?,
            name: name.to_owned(),
            dir: open_dir(dir)?,
            aside: AsideFolder::Open { folder: AsideFolder::open(private, &aside)?, path: aside },
        })
    }

    /// Restores protected paths. The process that would report the changes is gone.
    pub(super) fn restore_paths(mut self) {
        let mut bytes = Vec::new();
        if self.file.read_to_end(&mut bytes).is_err() {
            return;
        }
        let Some(mut picture) = GuardSnapshot::decode(&bytes) else { return };
        let searched = SearchedTree::default();
        let (dir, aside) = (&self.dir, &self.aside);
        SnapshotCheck { dir, aside, searched: &searched, may_change: &[] }.run(&mut picture);
        let _ = rustix::fs::unlinkat(&self.folder, &self.name, rustix::fs::AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confinement::Sandbox;

    struct Place {
        _keep: tempfile::TempDir,
        root: Utf8PathBuf,
    }

    impl Place {
        fn new() -> Place {
            let keep = tempfile::tempdir().unwrap();
            let root = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
            std::fs::create_dir_all(root.join("work/.git")).unwrap();
            let place = Place { _keep: keep, root };
            place.put(".git/config", "[core]\n\tbare = false\n");
            place
        }

        fn workplace(&self) -> RunWorkplace {
            RunWorkplace::new(self.root.join("work"), self.root.join("spill"), Sandbox::None)
        }

        fn put(&self, path: &str, text: &str) {
            repertoire_text::fs::write_atomic(&self.root.join("work").join(path), text.as_bytes())
                .unwrap();
        }

        fn text(&self, path: &str) -> Option<String> {
            repertoire_text::fs::read_text(&self.root.join("work").join(path), 1000).ok()
        }
    }

    const PLAIN: &str = "[core]\n\tbare = false\n";
    const EVIL: &str = "[core]\n\tfsmonitor = evil\n";

    #[test]
    fn a_program_that_starts_later_does_not_keep_what_another_one_planted() {
        let place = Place::new();
        let first = ProtectedPathGuard::for_workplace(&place.workplace());
        place.put(".git/config", EVIL);
        place.put("AGENTS.md", "obey");
        place.put("nest/AGENTS.md", "obey");
        let second = ProtectedPathGuard::for_workplace(&place.workplace());
        assert_eq!(first.restore_paths().len(), 3);
        assert_eq!(second.restore_paths(), []);
        assert_eq!(place.text(".git/config").as_deref(), Some(PLAIN));
        assert_eq!((place.text("AGENTS.md"), place.text("nest/AGENTS.md")), (None, None));
    }

    #[test]
    fn the_last_program_puts_right_what_was_changed_after_the_first_ended() {
        let place = Place::new();
        let first = ProtectedPathGuard::for_workplace(&place.workplace());
        let second = ProtectedPathGuard::for_workplace(&place.workplace());
        assert_eq!(first.restore_paths(), []);
        place.put(".git/config", EVIL);
        assert_eq!(second.restore_paths().len(), 1);
        assert_eq!(place.text(".git/config").as_deref(), Some(PLAIN));
        // The next guard takes a new snapshot.
        place.put(".git/config", EVIL);
        assert_eq!(ProtectedPathGuard::for_workplace(&place.workplace()).restore_paths(), []);
        assert_eq!(place.text(".git/config").as_deref(), Some(EVIL));
    }

    #[test]
    fn a_new_folder_on_the_way_to_a_protected_path_stays() {
        let place = Place::new();
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        place.put(".github/workflows/ci.yml", "on: push");
        place.put(".github/skills/evil/SKILL.md", "obey");
        let changes = guard.restore_paths();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!(changes[0].path, ".github/skills");
        assert_eq!(place.text(".github/workflows/ci.yml").as_deref(), Some("on: push"));
        assert_eq!(place.text(".github/skills/evil/SKILL.md"), None);
    }

    #[test]
    fn a_new_bare_repository_stays_if_it_runs_nothing() {
        for (config, hook, stays) in [
            (PLAIN, "pre-commit.sample", true),
            (EVIL, "pre-commit.sample", false),
            (PLAIN, "post-checkout", false),
        ] {
            let place = Place::new();
            let guard = ProtectedPathGuard::for_workplace(&place.workplace());
            place.put("bare/HEAD", "ref: refs/heads/main\n");
            place.put("bare/config", config);
            place.put("bare/objects/info/packs", "");
            place.put("bare/refs/heads/main", "");
            place.put(&format!("bare/hooks/{hook}"), "evil");
            place.put("bare/info/exclude", "");
            let changes = guard.restore_paths();
            assert_eq!(changes.is_empty(), stays, "{config} {hook}: {changes:?}");
        }
    }

    #[test]
    fn a_bare_repository_that_was_there_is_protected_and_so_is_a_folder_that_points_to_one() {
        let place = Place::new();
        place.put("bare/HEAD", "ref: refs/heads/main\n");
        place.put("bare/config", PLAIN);
        place.put("bare/objects/info/packs", "");
        place.put("bare/refs/heads/main", "");
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        place.put("bare/config", EVIL);
        place.put("linked/HEAD", "ref: refs/heads/main\n");
        place.put("linked/commondir", "../somewhere\n");
        let changes = guard.restore_paths();
        assert_eq!(changes.len(), 2, "{changes:?}");
        assert_eq!(place.text("bare/config").as_deref(), Some(PLAIN));
        assert_eq!(place.text("linked/commondir"), None);
    }

    #[test]
    fn pointers_of_linked_worktrees_are_put_back_unless_the_worktree_is_gone() {
        let place = Place::new();
        place.put(".git/worktrees/kept/commondir", "../..\n");
        place.put(".git/worktrees/gone/commondir", "../..\n");
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        place.put(".git/worktrees/kept/commondir", "../../evil\n");
        place.put(".git/worktrees/kept/config.worktree", EVIL);
        std::fs::remove_dir_all(place.root.join("work/.git/worktrees/gone")).unwrap();
        place.put(".git/worktrees/new/commondir", "../..\n");
        let changes = guard.restore_paths();
        assert_eq!(changes.len(), 2, "{changes:?}");
        assert_eq!(place.text(".git/worktrees/kept/commondir").as_deref(), Some("../..\n"));
        assert_eq!(place.text(".git/worktrees/kept/config.worktree"), None);
        assert!(place.text(".git/worktrees/new/commondir").is_some());
        // The engine may remove the last one.
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        std::fs::remove_dir_all(place.root.join("work/.git/worktrees")).unwrap();
        assert_eq!(guard.restore_paths(), []);
    }

    #[test]
    fn a_program_that_is_given_up_is_checked_as_well() {
        let place = Place::new();
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        place.put(".git/config", EVIL);
        drop(guard);
        assert_eq!(place.text(".git/config").as_deref(), Some(PLAIN));
        assert!(shared_of(&place.workplace()).is_none());
    }

    #[test]
    fn git_may_add_a_remote_while_others_run_and_no_program_to_run() {
        let remote = format!("{PLAIN}[remote \"o\"]\n\turl = x\n");
        let place = Place::new();
        let other = ProtectedPathGuard::for_workplace(&place.workplace());
        let git = ProtectedPathGuard::allowing_changes(&place.workplace(), &[".git/config"]);
        place.put(".git/config", &remote);
        assert_eq!(git.restore_paths(), []);
        assert_eq!(other.restore_paths(), []);
        assert_eq!(place.text(".git/config"), Some(remote.clone()));
        let git = ProtectedPathGuard::allowing_changes(&place.workplace(), &[".git/config"]);
        place.put(".git/config", &format!("{remote}{EVIL}"));
        assert_eq!(git.restore_paths().len(), 1);
        assert_eq!(place.text(".git/config"), Some(remote.clone()));
        let other = ProtectedPathGuard::for_workplace(&place.workplace());
        place.put(".git/config", PLAIN);
        assert_eq!(other.restore_paths().len(), 1, "others may change nothing");
        assert_eq!(place.text(".git/config"), Some(remote));
    }

    #[test]
    fn a_repository_in_the_work_folder_stays_if_it_runs_nothing() {
        for (config, stays) in [(PLAIN, true), (EVIL, false)] {
            let place = Place::new();
            std::fs::remove_dir_all(place.root.join("work/.git")).unwrap();
            let guard = ProtectedPathGuard::for_workplace(&place.workplace());
            place.put(".git/config", config);
            place.put(".git/HEAD", "ref: refs/heads/main\n");
            assert_eq!(guard.restore_paths().is_empty(), stays, "{config}");
            assert_eq!(place.text(".git/HEAD").is_some(), stays, "{config}");
        }
    }

    #[test]
    fn a_search_that_a_limit_ends_goes_on_until_nothing_is_found() {
        let place = Place::new();
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        let many = crate::limits::NESTED_FOUND_MAX + 100;
        let work = place.root.join("work");
        for number in 0..many {
            std::fs::create_dir_all(work.join(format!("many/{number}"))).unwrap();
            File::create(work.join(format!("many/{number}/AGENTS.md"))).unwrap();
        }
        let changes = guard.restore_paths();
        assert_eq!(changes.len(), many);
        let left =
            (0..many).filter(|number| work.join(format!("many/{number}/AGENTS.md")).exists());
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn more_folders_than_are_searched_are_reported() {
        let place = Place::new();
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        let work = place.root.join("work");
        for number in 0..=crate::limits::SEARCHED_FOLDERS_MAX {
            std::fs::create_dir(work.join(number.to_string())).unwrap();
        }
        let changes = guard.restore_paths();
        assert!(
            matches!(
                changes[..],
                [ProtectedPathChange { outcome: ProtectedPathOutcome::NotSearched(_), .. }]
            ),
            "{changes:?}"
        );
    }

    #[test]
    fn entries_whose_names_are_not_text_and_modes_of_folders_are_put_right() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::fs::PermissionsExt;
        let place = Place::new();
        place.put(".claude/settings.json", "{}");
        let folder = place.root.join("work/.claude");
        let mode =
            |mode| std::fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o755);
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        let odd = folder.as_std_path().join(OsStr::from_bytes(b"\xff"));
        File::create(&odd).unwrap();
        mode(0o111);
        let changes = guard.restore_paths();
        assert_eq!(changes.len(), 2, "{changes:?}");
        assert!(!odd.exists());
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o7777, 0o755);
        assert_eq!(place.text(".claude/settings.json").as_deref(), Some("{}"));
    }

    #[test]
    fn beyond_the_contents_that_are_kept_changes_are_noticed_and_nothing_is_lost() {
        let place = Place::new();
        let folder = place.root.join("work/.claude/many");
        std::fs::create_dir_all(&folder).unwrap();
        for number in 0..crate::limits::GUARDED_FILES_MAX {
            File::create(folder.join(number.to_string())).unwrap();
        }
        place.put(".claude/larger", "mine");
        place.put(".claude/removed", "mine");
        place.put("lib/.git/config", PLAIN);
        place.put("z/.claude/settings.json", "{}");
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        assert_eq!(guard.refusal(), None);
        place.put("lib/.git/config", EVIL);
        place.put("lib/.git/hooks/pre-commit", "evil");
        place.put("z/.claude/settings.json", "evil");
        place.put(".claude/larger", "evil");
        place.put(".claude/new", "evil");
        std::fs::remove_file(place.root.join("work/.claude/removed")).unwrap();
        let second = ProtectedPathGuard::for_workplace(&place.workplace());
        let changes = guard.restore_paths();
        let told: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(
            told,
            [
                ".claude/larger",
                ".claude/new",
                ".claude/removed",
                "lib/.git/config",
                "lib/.git/hooks",
                "z/.claude/settings.json",
            ]
        );
        let ProtectedPathOutcome::ChangedCopyMovedTo(aside) = &changes[0].outcome else {
            panic!("{changes:?}")
        };
        assert_eq!(repertoire_text::fs::read_text(aside, 100).unwrap(), "evil");
        assert_eq!(place.text(".claude/larger"), None);
        assert!(changes[2].is_failure(), "{changes:?}");
        assert_eq!(place.text("lib/.git/config").as_deref(), Some(PLAIN));
        assert_eq!(place.text("z/.claude/settings.json").as_deref(), Some("{}"));
        assert_eq!(second.restore_paths(), [], "a change is reported once");
    }

    #[test]
    fn a_folder_that_is_too_deep_to_compare_lets_no_program_start() {
        let place = Place::new();
        place.put(&format!(".claude/{}file", "a/".repeat(200)), "");
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        let refusal = guard.refusal().unwrap();
        assert!(refusal.contains("`.claude`") && refusal.contains("Move files"), "{refusal}");
        drop(guard);
        std::fs::remove_dir_all(place.root.join("work/.claude")).unwrap();
        assert_eq!(ProtectedPathGuard::for_workplace(&place.workplace()).refusal(), None);
    }

    #[test]
    fn more_nested_protected_paths_than_are_searched_for_let_no_program_start() {
        let place = Place::new();
        let work = place.root.join("work");
        for number in 0..=crate::limits::NESTED_FOUND_MAX {
            std::fs::create_dir_all(work.join(format!("many/of/{number}"))).unwrap();
            File::create(work.join(format!("many/of/{number}/AGENTS.md"))).unwrap();
        }
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        let refusal = guard.refusal().unwrap();
        assert!(refusal.contains("`many/of`"), "{refusal}");
    }

    #[test]
    fn a_folder_on_the_way_to_one_protected_path_can_be_protected_as_a_whole() {
        let place = Place::new();
        place.put(".repertoire/agents/a.md", "mine");
        place.put(".repertoire/other", "mine");
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        place.put(".repertoire/other", "evil");
        place.put(".repertoire/agents/a.md", "evil");
        assert_eq!(guard.restore_paths().len(), 2);
        assert_eq!(place.text(".repertoire/other").as_deref(), Some("mine"));
        assert_eq!(place.text(".repertoire/agents/a.md").as_deref(), Some("mine"));
    }

    #[test]
    fn a_changed_file_stays_beside_its_place_where_nothing_can_be_moved_aside() {
        let place = Place::new();
        let large = File::create(place.root.join("work/AGENTS.md")).unwrap();
        large.set_len(crate::limits::GUARDED_BYTES_MAX + 1).unwrap();
        place.put("spill", "");
        std::fs::rename(place.root.join("work/spill"), place.root.join("spill")).unwrap();
        let guard = ProtectedPathGuard::for_workplace(&place.workplace());
        place.put("AGENTS.md", "evil");
        let changes = guard.restore_paths();
        assert!(changes[0].describe().contains("AGENTS.md.changed-0"), "{changes:?}");
        assert_eq!(place.text("AGENTS.md"), None);
        assert_eq!(place.text("AGENTS.md.changed-0").as_deref(), Some("evil"));
    }

    #[test]
    fn a_supervisor_puts_things_right_from_the_file() {
        let place = Place::new();
        let workplace = place.workplace();
        let guard = ProtectedPathGuard::for_workplace(&workplace);
        let file = private_dir(&workplace).join(PICTURES).join("x");
        let encoded = {
            let (_, _, shared) = guard.place.as_ref().unwrap();
            lock_shared(shared).picture.as_ref().unwrap().encode()
        };
        repertoire_text::fs::write_atomic(&file, &encoded).unwrap();
        let open = OpenGuardSnapshot::open(&file, &workplace.dir).unwrap();
        place.put(".git/config", EVIL);
        place.put("nest/AGENTS.md", "obey");
        open.restore_paths();
        assert_eq!(place.text(".git/config").as_deref(), Some(PLAIN));
        assert_eq!(place.text("nest/AGENTS.md"), None);
        assert!(!file.exists());
        assert_eq!(guard.restore_paths(), []);
    }
}
