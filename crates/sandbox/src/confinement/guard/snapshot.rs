//! A snapshot of protected paths.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{FileType, Stat};

use super::handles::{
    file_kind, list_names, open_beneath, parent_of, permission_bits, read_contents, read_link,
    stat_entry,
};
use crate::confinement::search::{ClosedFolders, FolderIdentity, NestedSearchResult};
use crate::limits::{GUARDED_BYTES_MAX, GUARDED_DEPTH_MAX, GUARDED_ENTRIES_MAX, GUARDED_FILES_MAX};
use crate::protected::{GIT, is_protected, is_protected_name};

/// The protected paths of a work folder, as they were before the first of the programs that are running there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GuardSnapshot {
    pub(super) dir: Utf8PathBuf,
    /// The folder for output, and its subfolder for files that are moved aside.
    pub(super) spill: Utf8PathBuf,
    pub(super) aside: Utf8PathBuf,
    /// Sorted by path, so folders come before their entries.
    pub(super) before: BTreeMap<PathBuf, ProtectedPathState>,
    /// The nested protected paths that existed; `None` if nothing is protected.
    pub(super) nested: Option<Arc<NestedSearchResult>>,
    /// The number of files whose contents are stored, and their total size.
    kept_files: usize,
    kept_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProtectedPathState {
    Absent,
    /// A folder on the way to a protected path. Its other entries are not protected.
    Way,
    /// A folder that programs can only read: it is mounted.
    ReadOnly,
    /// A folder whose entries are all recorded.
    Known {
        mode: u32,
    },
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(OsString),
    /// Exists, but its contents are not stored: it is mounted read-only, too large, one of too many, or not a regular
    /// file.
    Unkept(Fingerprint),
}

/// Identifies a file in a state. A program cannot set the change time (ctime), unlike the modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    inode: u64,
    size: u64,
    mode: u32,
    changed: (i64, i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SnapshotDepth {
    /// Only record that the path exists: it is mounted read-only.
    Surface,
    /// The path leads to a protected one: a folder, or a file that points to a folder, as in a worktree.
    Way,
    /// Record the contents, recursively.
    Contents,
}

/// The order in which contents are stored while there is room: first of all what git or a shell runs, and what
/// instructs agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ContentRank {
    Run,
    Settings,
    Other,
    Skill,
}

/// A file whose contents are to be stored.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WantedFile {
    rank: ContentRank,
    size: u64,
    path: PathBuf,
}

/// Adds paths to a snapshot: first what is there, and at last the contents, the important ones first.
pub(super) struct SnapshotRecorder<'a> {
    snapshot: &'a mut GuardSnapshot,
    dir: &'a OwnedFd,
    wanted: Vec<WantedFile>,
    /// Folders with too many entries to record.
    too_large: Vec<PathBuf>,
}

impl<'a> SnapshotRecorder<'a> {
    pub(super) fn new(snapshot: &'a mut GuardSnapshot, dir: &'a OwnedFd) -> Self {
        SnapshotRecorder { snapshot, dir, wanted: Vec::new(), too_large: Vec::new() }
    }

    /// Records every component of a protected path, up to the first that is not a folder. Components that are already
    /// recorded keep their state.
    pub(super) fn record_along(&mut self, relative: &Path, depth: SnapshotDepth) {
        let mut at = PathBuf::new();
        let last = relative.components().count();
        for (index, part) in relative.components().enumerate() {
            at.push(part);
            let is_last = index + 1 == last;
            if !is_last && !is_protected_path(&at) && is_absent(self.dir, &at) {
                // Programs may create the folder, such as `.github`, but not the protected path in it.
                let before = &mut self.snapshot.before;
                before.entry(relative.to_owned()).or_insert(ProtectedPathState::Absent);
                return;
            }
            let depth = if is_last { depth } else { SnapshotDepth::Way };
            if !self.record_path(&at, depth) {
                return;
            }
        }
    }

    /// Stores the contents of a file that is recorded without them. If the file has changed since it was recorded, it is
    /// left as recorded.
    pub(super) fn want_contents(&mut self, path: &Path) {
        if let Some(ProtectedPathState::Unkept(known)) = self.snapshot.before.get(path) {
            let size = known.size;
            self.wanted.push(WantedFile { rank: ContentRank::Run, size, path: path.to_owned() });
        }
    }

    /// Stores contents as far as there is room. Returns the folders with too many entries to record; they must be made
    /// read-only.
    pub(super) fn finish(mut self) -> Vec<PathBuf> {
        self.wanted.sort();
        for wanted in std::mem::take(&mut self.wanted) {
            if self.snapshot.kept_files >= GUARDED_FILES_MAX
                || self.snapshot.kept_bytes + wanted.size > GUARDED_BYTES_MAX
            {
                continue;
            }
            let Some(known) = self.snapshot.before.get(&wanted.path) else { continue };
            if let Some((bytes, mode)) = read_known(self.dir, &wanted.path, known) {
                self.snapshot.kept_files += 1;
                self.snapshot.kept_bytes += bytes.len() as u64;
                self.snapshot.before.insert(wanted.path, ProtectedPathState::File { bytes, mode });
            }
        }
        self.too_large
    }

    /// Records a path. Returns true if it is a folder in which more can be recorded.
    fn record_path(&mut self, path: &Path, depth: SnapshotDepth) -> bool {
        match self.snapshot.before.get(path) {
            // So far it was only on the way to something.
            Some(ProtectedPathState::Way) if depth != SnapshotDepth::Way => {}
            Some(known) => return *known == ProtectedPathState::Way,
            None => {}
        }
        let Ok((parent, name)) = parent_of(self.dir, path) else { return false };
        let Ok(state) = self.read_state(&parent, name, path, depth) else { return false };
        let is_way = state == ProtectedPathState::Way;
        let is_known = matches!(state, ProtectedPathState::Known { .. });
        self.snapshot.before.insert(path.to_owned(), state);
        if is_known && !self.record_entries(path) {
            let before = &mut self.snapshot.before;
            before.retain(|other, _| other == path || !other.starts_with(path));
            before.insert(path.to_owned(), ProtectedPathState::ReadOnly);
            self.wanted.retain(|wanted| !wanted.path.starts_with(path));
            self.too_large.push(path.to_owned());
        }
        is_way
    }

    /// Records all entries of a folder. Returns false if there are too many.
    fn record_entries(&mut self, path: &Path) -> bool {
        let mut folders = vec![path.to_owned()];
        while let Some(folder) = folders.pop() {
            if folder.components().count() > GUARDED_DEPTH_MAX {
                return false;
            }
            let Ok(fd) = open_beneath(self.dir, &folder) else { continue };
            let names = list_names(&fd).unwrap_or_default();
            let is_submodule = is_submodule(&folder, &names);
            for name in names {
                if self.snapshot.before.len() >= GUARDED_ENTRIES_MAX {
                    return false;
                }
                let path = folder.join(&name);
                // As in `.git` itself, git runs nothing in these, and they may be very large.
                let is_store = is_submodule && (name == "objects" || name == "lfs");
                let depth = if is_store { SnapshotDepth::Way } else { SnapshotDepth::Contents };
                match self.snapshot.before.get(&path) {
                    Some(ProtectedPathState::Way) if !is_store => {}
                    Some(_) => continue,
                    None => {}
                }
                let Ok(state) = self.read_state(&fd, &name, &path, depth) else { continue };
                if matches!(state, ProtectedPathState::Known { .. }) {
                    folders.push(path.clone());
                }
                self.snapshot.before.insert(path, state);
            }
        }
        true
    }

    fn read_state(
        &mut self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &Path,
        depth: SnapshotDepth,
    ) -> std::io::Result<ProtectedPathState> {
        let Some(stat) = stat_entry(parent, name)? else { return Ok(ProtectedPathState::Absent) };
        Ok(match (file_kind(&stat), depth) {
            (FileType::Directory, SnapshotDepth::Contents) => {
                ProtectedPathState::Known { mode: permission_bits(&stat) }
            }
            (FileType::Directory, SnapshotDepth::Surface) => ProtectedPathState::ReadOnly,
            (FileType::Directory, SnapshotDepth::Way) => ProtectedPathState::Way,
            (FileType::Symlink, _) => {
                read_link(parent, name).map_or(unkept_state(&stat), ProtectedPathState::Link)
            }
            (FileType::RegularFile, SnapshotDepth::Contents | SnapshotDepth::Way) => {
                let size = fingerprint_of(&stat).size;
                let (rank, path) = (rank_of(path), path.to_owned());
                self.wanted.push(WantedFile { rank, size, path });
                unkept_state(&stat)
            }
            _ => unkept_state(&stat),
        })
    }
}

/// Reads a file if it is as recorded before and after.
fn read_known(dir: &OwnedFd, path: &Path, known: &ProtectedPathState) -> Option<(Vec<u8>, u32)> {
    let ProtectedPathState::Unkept(Fingerprint { mode, .. }) = known else { return None };
    let (parent, name) = parent_of(dir, path).ok()?;
    let is_known = || matches_state(&parent, name, known).unwrap_or(false);
    let bytes = is_known().then(|| read_contents(&parent, name).ok()).flatten()?;
    is_known().then_some((bytes, mode & 0o7777))
}

fn rank_of(path: &Path) -> ContentRank {
    let parts: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
    let has = |names: &[&str]| parts.iter().any(|part| names.contains(&part.as_str()));
    let name = parts.last().map_or("", String::as_str);
    if has(&[GIT, ".husky", ".githooks", ".git-hooks", ".lefthook"])
        || is_protected_name(name)
        // Followed by git, or the part of a bare repository.
        || !is_protected_path(path)
    {
        ContentRank::Run
    } else if has(&["skills"]) {
        ContentRank::Skill
    } else if ["settings", "config", "mcp", "hook"].iter().any(|part| name.contains(part)) {
        ContentRank::Settings
    } else {
        ContentRank::Other
    }
}

/// Returns true if a folder with these entries is the git folder of a submodule.
fn is_submodule(folder: &Path, names: &[OsString]) -> bool {
    let mut parts = folder.components().map(|part| part.as_os_str());
    parts.any(|part| part == "modules") && names.iter().any(|name| name == "HEAD")
}

fn is_protected_path(path: &Path) -> bool {
    Utf8Path::from_path(path).is_some_and(is_protected)
}

fn is_absent(dir: &OwnedFd, path: &Path) -> bool {
    parent_of(dir, path)
        .is_ok_and(|(parent, name)| stat_entry(&parent, name).is_ok_and(|stat| stat.is_none()))
}

pub(super) fn unkept_state(stat: &Stat) -> ProtectedPathState {
    ProtectedPathState::Unkept(fingerprint_of(stat))
}

#[allow(clippy::unnecessary_cast, reason = "the types of the fields differ between machines")]
fn fingerprint_of(stat: &Stat) -> Fingerprint {
    Fingerprint {
        inode: stat.st_ino as u64,
        size: stat.st_size.cast_unsigned() as u64,
        mode: stat.st_mode as u32,
        changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    }
}

pub(super) fn matches_state(
    parent: &OwnedFd,
    name: &OsStr,
    before: &ProtectedPathState,
) -> std::io::Result<bool> {
    let Some(stat) = stat_entry(parent, name)? else {
        return Ok(*before == ProtectedPathState::Absent);
    };
    Ok(match before {
        ProtectedPathState::Absent => false,
        ProtectedPathState::Way | ProtectedPathState::ReadOnly => {
            file_kind(&stat) == FileType::Directory
        }
        ProtectedPathState::Known { mode: known } => {
            file_kind(&stat) == FileType::Directory && permission_bits(&stat) == *known
        }
        ProtectedPathState::Link(target) => read_link(parent, name).as_ref() == Some(target),
        ProtectedPathState::Unkept(known) => fingerprint_of(&stat) == *known,
        ProtectedPathState::File { bytes, mode: known } => {
            file_kind(&stat) == FileType::RegularFile
                && permission_bits(&stat) == *known
                && read_contents(parent, name).is_ok_and(|now| now == *bytes)
        }
    })
}

/// The magic bytes of an encoded snapshot.
const HEADING: &[u8] = b"repertoire picture 2\n";

impl GuardSnapshot {
    /// Encodes the snapshot for the supervisor. A binary format, because paths need not be UTF-8.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = SnapshotEncoder(HEADING.to_vec());
        for path in [&self.dir, &self.spill, &self.aside] {
            to.write_bytes(path.as_str().as_bytes());
        }
        to.write_number(self.before.len() as u64);
        for (path, state) in &self.before {
            to.write_path(path);
            to.write_state(state);
        }
        to.write_number(u64::from(self.nested.is_some()));
        if let Some(found) = &self.nested {
            to.write_number(u64::from(found.is_cut));
            for paths in [&found.protected, &found.sockets] {
                to.write_number(paths.len() as u64);
                paths.iter().for_each(|path| to.write_path(path));
            }
            to.write_number(found.closed.len() as u64);
            for (path, identity) in &found.closed {
                to.write_path(path);
                to.write_number(identity.device);
                to.write_number(identity.inode);
                to.write_time(identity.changed);
            }
        }
        to.0
    }

    /// Decodes a snapshot. Returns `None` if the bytes are malformed.
    pub(super) fn decode(bytes: &[u8]) -> Option<GuardSnapshot> {
        let mut from = SnapshotDecoder(bytes.strip_prefix(HEADING)?);
        let (dir, spill, aside) = (from.read_text()?, from.read_text()?, from.read_text()?);
        let mut before = BTreeMap::new();
        for _ in 0..from.read_number()? {
            before.insert(from.read_path()?, from.read_state()?);
        }
        let nested = if from.read_number()? == 1 {
            Some(Arc::new(from.read_search_result()?))
        } else {
            None
        };
        from.0.is_empty().then_some(GuardSnapshot {
            dir,
            spill,
            aside,
            before,
            nested,
            ..GuardSnapshot::default()
        })
    }
}

struct SnapshotEncoder(Vec<u8>);

impl SnapshotEncoder {
    fn write_number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        self.write_number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn write_path(&mut self, path: &Path) {
        self.write_bytes(path.as_os_str().as_bytes());
    }

    fn write_time(&mut self, (seconds, nanoseconds): (i64, i64)) {
        self.write_number(seconds.cast_unsigned());
        self.write_number(nanoseconds.cast_unsigned());
    }

    fn write_state(&mut self, state: &ProtectedPathState) {
        match state {
            ProtectedPathState::Absent => self.write_number(0),
            ProtectedPathState::Way => self.write_number(1),
            ProtectedPathState::ReadOnly => self.write_number(6),
            ProtectedPathState::Known { mode } => {
                self.write_number(2);
                self.write_number(u64::from(*mode));
            }
            ProtectedPathState::File { bytes, mode } => {
                self.write_number(3);
                self.write_number(u64::from(*mode));
                self.write_bytes(bytes);
            }
            ProtectedPathState::Link(target) => {
                self.write_number(4);
                self.write_bytes(target.as_bytes());
            }
            ProtectedPathState::Unkept(Fingerprint { inode, size, mode, changed }) => {
                self.write_number(5);
                self.write_number(*inode);
                self.write_number(*size);
                self.write_number(u64::from(*mode));
                self.write_time(*changed);
            }
        }
    }
}

struct SnapshotDecoder<'a>(&'a [u8]);

impl SnapshotDecoder<'_> {
    fn read_number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn read_mode(&mut self) -> Option<u32> {
        u32::try_from(self.read_number()?).ok()
    }

    fn read_bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.read_number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    fn read_text(&mut self) -> Option<Utf8PathBuf> {
        String::from_utf8(self.read_bytes()?).ok().map(Utf8PathBuf::from)
    }

    fn read_path(&mut self) -> Option<PathBuf> {
        Some(OsString::from_vec(self.read_bytes()?).into())
    }

    fn read_paths(&mut self) -> Option<Vec<PathBuf>> {
        (0..self.read_number()?).map(|_| self.read_path()).collect()
    }

    fn read_time(&mut self) -> Option<(i64, i64)> {
        Some((self.read_number()?.cast_signed(), self.read_number()?.cast_signed()))
    }

    fn read_state(&mut self) -> Option<ProtectedPathState> {
        Some(match self.read_number()? {
            0 => ProtectedPathState::Absent,
            1 => ProtectedPathState::Way,
            2 => ProtectedPathState::Known { mode: self.read_mode()? },
            3 => {
                let mode = self.read_mode()?;
                ProtectedPathState::File { mode, bytes: self.read_bytes()? }
            }
            4 => ProtectedPathState::Link(OsString::from_vec(self.read_bytes()?)),
            5 => ProtectedPathState::Unkept(Fingerprint {
                inode: self.read_number()?,
                size: self.read_number()?,
                mode: self.read_mode()?,
                changed: self.read_time()?,
            }),
            6 => ProtectedPathState::ReadOnly,
            _ => return None,
        })
    }

    fn read_search_result(&mut self) -> Option<NestedSearchResult> {
        let is_cut = self.read_number()? == 1;
        let (protected, sockets) = (self.read_paths()?, self.read_paths()?);
        let mut closed = ClosedFolders::new();
        for _ in 0..self.read_number()? {
            let path = self.read_path()?;
            let (device, inode) = (self.read_number()?, self.read_number()?);
            closed.insert(path, FolderIdentity { device, inode, changed: self.read_time()? });
        }
        Some(NestedSearchResult { protected, sockets, closed, is_cut })
    }
}

/// An empty snapshot.
pub(super) fn empty_snapshot(
    dir: &Utf8Path,
    spill: &Utf8Path,
    aside: Utf8PathBuf,
) -> GuardSnapshot {
    GuardSnapshot {
        dir: dir.to_owned(),
        spill: spill.to_owned(),
        aside,
        ..GuardSnapshot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_picture_is_read_as_it_was() {
        let odd = PathBuf::from(OsStr::from_bytes(b"\xff/AGENTS.md"));
        let found = NestedSearchResult {
            protected: vec![odd.clone()],
            sockets: vec!["s".into()],
            closed: [("c".into(), FolderIdentity { device: 1, inode: 2, changed: (-3, 4) })].into(),
            is_cut: true,
        };
        let mut picture = empty_snapshot("/w".into(), "/s".into(), "/s/a".into());
        picture.nested = Some(Arc::new(found));
        let states = [
            ProtectedPathState::Absent,
            ProtectedPathState::Way,
            ProtectedPathState::ReadOnly,
            ProtectedPathState::Known { mode: 0o755 },
            ProtectedPathState::File { bytes: vec![0, 255], mode: 0o644 },
            ProtectedPathState::Link(OsString::from_vec(vec![255])),
            ProtectedPathState::Unkept(Fingerprint {
                inode: 7,
                size: 8,
                mode: 9,
                changed: (-1, 2),
            }),
        ];
        for (number, state) in states.into_iter().enumerate() {
            picture.before.insert(odd.join(number.to_string()), state);
        }
        let encoded = picture.encode();
        assert_eq!(GuardSnapshot::decode(&encoded), Some(picture));
        for length in 0..encoded.len() {
            assert_eq!(GuardSnapshot::decode(&encoded[..length]), None, "{length}");
        }
    }
}
