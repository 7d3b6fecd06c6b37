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
use crate::confinement::nested::NestedPaths;
use crate::confinement::search::{ClosedFolders, FolderIdentity, NestedSearchResult};
use crate::limits::{GUARDED_BYTES_MAX, GUARDED_FILES_MAX};
use crate::protected::is_protected;

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
    bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProtectedPathState {
    Absent,
    /// A folder that leads to a protected path, or one that is mounted read-only.
    Folder,
    /// A folder whose entries are all recorded.
    Known {
        mode: u32,
    },
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(OsString),
    /// Exists, but its contents are not stored: it is mounted read-only, too large, or not a regular file.
    Unkept {
        inode: u64,
        changed: (i64, i64),
    },
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

impl GuardSnapshot {
    /// Records every component of a protected path, up to the first that is not a folder. Components that are already
    /// recorded keep their state.
    pub(super) fn record_along(&mut self, dir: &OwnedFd, relative: &Path, depth: SnapshotDepth) {
        let mut at = PathBuf::new();
        let last = relative.components().count();
        for (index, part) in relative.components().enumerate() {
            at.push(part);
            let is_last = index + 1 == last;
            if !is_last && !is_protected_path(&at) && is_absent(dir, &at) {
                // Programs may create the folder, such as `.github`, but not the protected path in it.
                self.before.entry(relative.to_owned()).or_insert(ProtectedPathState::Absent);
                return;
            }
            let depth = if is_last { depth } else { SnapshotDepth::Way };
            if !self.record_path(dir, &at, depth) {
                return;
            }
        }
    }

    /// Records the nested paths that a search found.
    pub(super) fn record_nested(
        &mut self,
        dir: &OwnedFd,
        found: Arc<NestedSearchResult>,
        depth: SnapshotDepth,
    ) {
        let nested = NestedPaths::from_search(&found);
        nested.mounted.iter().for_each(|path| self.record_along(dir, path.as_std_path(), depth));
        nested
            .compared
            .iter()
            .for_each(|path| self.record_along(dir, path, SnapshotDepth::Contents));
        self.nested = Some(found);
    }

    /// Stores the contents of a file for which they are not stored yet. If the file has changed since it was recorded,
    /// it is left as recorded.
    pub(super) fn store_contents(&mut self, dir: &OwnedFd, path: &Path) {
        let Some(known @ ProtectedPathState::Unkept { .. }) = self.before.get(path) else { return };
        let Ok((parent, name)) = parent_of(dir, path) else { return };
        if matches_state(&parent, name, known).unwrap_or(false)
            && let Ok(state) = self.read_state(&parent, name, SnapshotDepth::Contents)
        {
            self.before.insert(path.to_owned(), state);
        }
    }

    /// Records a path. Returns true if it is a folder.
    fn record_path(&mut self, dir: &OwnedFd, path: &Path, depth: SnapshotDepth) -> bool {
        if let Some(known) = self.before.get(path) {
            return *known == ProtectedPathState::Folder;
        }
        let Ok((parent, name)) = parent_of(dir, path) else { return false };
        let Ok(state) = self.read_state(&parent, name, depth) else { return false };
        let is_folder =
            matches!(state, ProtectedPathState::Folder | ProtectedPathState::Known { .. });
        let is_known = matches!(state, ProtectedPathState::Known { .. });
        self.before.insert(path.to_owned(), state);
        if is_known && let Ok(names) = open_beneath(dir, path).and_then(|fd| list_names(&fd)) {
            for name in names {
                self.record_path(dir, &path.join(name), SnapshotDepth::Contents);
            }
        }
        is_folder
    }

    fn read_state(
        &mut self,
        parent: &OwnedFd,
        name: &OsStr,
        depth: SnapshotDepth,
    ) -> std::io::Result<ProtectedPathState> {
        let Some(stat) = stat_entry(parent, name)? else { return Ok(ProtectedPathState::Absent) };
        let room = self.before.len() < GUARDED_FILES_MAX
            && self.bytes + u64::try_from(stat.st_size).unwrap_or(0) <= GUARDED_BYTES_MAX;
        let mode = permission_bits(&stat);
        Ok(match (file_kind(&stat), depth) {
            (FileType::Directory, SnapshotDepth::Contents) if room => {
                ProtectedPathState::Known { mode }
            }
            (FileType::Directory, _) => ProtectedPathState::Folder,
            (FileType::Symlink, _) => {
                read_link(parent, name).map_or(unkept_state(&stat), ProtectedPathState::Link)
            }
            (FileType::RegularFile, SnapshotDepth::Contents | SnapshotDepth::Way) if room => {
                match read_contents(parent, name) {
                    Ok(bytes) => {
                        self.bytes += bytes.len() as u64;
                        ProtectedPathState::File { bytes, mode }
                    }
                    Err(_) => unkept_state(&stat),
                }
            }
            _ => unkept_state(&stat),
        })
    }
}

fn is_protected_path(path: &Path) -> bool {
    Utf8Path::from_path(path).is_some_and(is_protected)
}

fn is_absent(dir: &OwnedFd, path: &Path) -> bool {
    parent_of(dir, path)
        .is_ok_and(|(parent, name)| stat_entry(&parent, name).is_ok_and(|stat| stat.is_none()))
}

/// Identifies a file by its inode and change time (ctime), which a program cannot set, unlike the modification time.
pub(super) fn unkept_state(stat: &Stat) -> ProtectedPathState {
    #[allow(clippy::unnecessary_cast, reason = "the types of the fields differ between machines")]
    let (inode, changed) = (stat.st_ino as u64, (stat.st_ctime as i64, stat.st_ctime_nsec as i64));
    ProtectedPathState::Unkept { inode, changed }
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
        ProtectedPathState::Folder => file_kind(&stat) == FileType::Directory,
        ProtectedPathState::Known { mode: known } => {
            file_kind(&stat) == FileType::Directory && permission_bits(&stat) == *known
        }
        ProtectedPathState::Link(target) => read_link(parent, name).as_ref() == Some(target),
        ProtectedPathState::Unkept { .. } => unkept_state(&stat) == *before,
        ProtectedPathState::File { bytes, mode: known } => {
            file_kind(&stat) == FileType::RegularFile
                && permission_bits(&stat) == *known
                && read_contents(parent, name).is_ok_and(|now| now == *bytes)
        }
    })
}

/// The magic bytes of an encoded snapshot.
const HEADING: &[u8] = b"repertoire picture 1\n";

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
        from.0.is_empty().then_some(GuardSnapshot { dir, spill, aside, before, nested, bytes: 0 })
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
            ProtectedPathState::Folder => self.write_number(1),
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
            ProtectedPathState::Unkept { inode, changed } => {
                self.write_number(5);
                self.write_number(*inode);
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
            1 => ProtectedPathState::Folder,
            2 => ProtectedPathState::Known { mode: self.read_mode()? },
            3 => {
                let mode = self.read_mode()?;
                ProtectedPathState::File { mode, bytes: self.read_bytes()? }
            }
            4 => ProtectedPathState::Link(OsString::from_vec(self.read_bytes()?)),
            5 => ProtectedPathState::Unkept {
                inode: self.read_number()?,
                changed: self.read_time()?,
            },
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
            ProtectedPathState::Folder,
            ProtectedPathState::Known { mode: 0o755 },
            ProtectedPathState::File { bytes: vec![0, 255], mode: 0o644 },
            ProtectedPathState::Link(OsString::from_vec(vec![255])),
            ProtectedPathState::Unkept { inode: 7, changed: (-1, 2) },
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
