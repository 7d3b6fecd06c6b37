//! A snapshot of protected paths.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{FileType, Stat};

use super::handles::{contents, kind, link, mode, names, open_beneath, parent_of, stat};
use crate::confinement::nested::Nested;
use crate::confinement::search::{ClosedFolders, Found, Identity};
use crate::limits::{GUARDED_BYTES_MAX, GUARDED_FILES_MAX};
use crate::protected::is_protected;

/// The protected paths of a work folder, as they were before the first of the programs that are running there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) dir: Utf8PathBuf,
    /// The folder for output, and its subfolder for files that are moved aside.
    pub(super) spill: Utf8PathBuf,
    pub(super) aside: Utf8PathBuf,
    /// Sorted by path, so folders come before their entries.
    pub(super) before: BTreeMap<PathBuf, State>,
    /// The nested protected paths that existed; `None` if nothing is protected.
    pub(super) nested: Option<Arc<Found>>,
    bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
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
pub(super) enum Depth {
    /// Only record that the path exists: it is mounted read-only.
    Surface,
    /// The path leads to a protected one: a folder, or a file that points to a folder, as in a worktree.
    Way,
    /// Record the contents, recursively.
    Contents,
}

impl Picture {
    /// Records every component of a protected path, up to the first that is not a folder. Components that are already
    /// recorded keep their state.
    pub(super) fn note_along(&mut self, dir: &OwnedFd, relative: &Path, depth: Depth) {
        let mut at = PathBuf::new();
        let last = relative.components().count();
        for (index, part) in relative.components().enumerate() {
            at.push(part);
            let is_last = index + 1 == last;
            if !is_last && !is_protected_path(&at) && is_absent(dir, &at) {
                // Programs may create the folder, such as `.github`, but not the protected path in it.
                self.before.entry(relative.to_owned()).or_insert(State::Absent);
                return;
            }
            let depth = if is_last { depth } else { Depth::Way };
            if !self.note(dir, &at, depth) {
                return;
            }
        }
    }

    /// Records the nested paths that a search found.
    pub(super) fn note_nested(&mut self, dir: &OwnedFd, found: Arc<Found>, depth: Depth) {
        let nested = Nested::of(&found);
        nested.mounted.iter().for_each(|path| self.note_along(dir, path.as_std_path(), depth));
        nested.compared.iter().for_each(|path| self.note_along(dir, path, Depth::Contents));
        self.nested = Some(found);
    }

    /// Stores the contents of a file for which they are not stored yet. If the file has changed since it was recorded,
    /// it is left as recorded.
    pub(super) fn keep_contents(&mut self, dir: &OwnedFd, path: &Path) {
        let Some(known @ State::Unkept { .. }) = self.before.get(path) else { return };
        let Ok((parent, name)) = parent_of(dir, path) else { return };
        if is_same(&parent, name, known).unwrap_or(false)
            && let Ok(state) = self.state(&parent, name, Depth::Contents)
        {
            self.before.insert(path.to_owned(), state);
        }
    }

    /// Records a path. Returns true if it is a folder.
    fn note(&mut self, dir: &OwnedFd, path: &Path, depth: Depth) -> bool {
        if let Some(known) = self.before.get(path) {
            return *known == State::Folder;
        }
        let Ok((parent, name)) = parent_of(dir, path) else { return false };
        let Ok(state) = self.state(&parent, name, depth) else { return false };
        let is_folder = matches!(state, State::Folder | State::Known { .. });
        let is_known = matches!(state, State::Known { .. });
        self.before.insert(path.to_owned(), state);
        if is_known && let Ok(names) = open_beneath(dir, path).and_then(|fd| names(&fd)) {
            for name in names {
                self.note(dir, &path.join(name), Depth::Contents);
            }
        }
        is_folder
    }

    fn state(&mut self, parent: &OwnedFd, name: &OsStr, depth: Depth) -> std::io::Result<State> {
        let Some(stat) = stat(parent, name)? else { return Ok(State::Absent) };
        let room = self.before.len() < GUARDED_FILES_MAX
            && self.bytes + u64::try_from(stat.st_size).unwrap_or(0) <= GUARDED_BYTES_MAX;
        let mode = mode(&stat);
        Ok(match (kind(&stat), depth) {
            (FileType::Directory, Depth::Contents) if room => State::Known { mode },
            (FileType::Directory, _) => State::Folder,
            (FileType::Symlink, _) => link(parent, name).map_or(unkept(&stat), State::Link),
            (FileType::RegularFile, Depth::Contents | Depth::Way) if room => {
                match contents(parent, name) {
                    Ok(bytes) => {
                        self.bytes += bytes.len() as u64;
                        State::File { bytes, mode }
                    }
                    Err(_) => unkept(&stat),
                }
            }
            _ => unkept(&stat),
        })
    }
}

fn is_protected_path(path: &Path) -> bool {
    Utf8Path::from_path(path).is_some_and(is_protected)
}

fn is_absent(dir: &OwnedFd, path: &Path) -> bool {
    parent_of(dir, path)
        .is_ok_and(|(parent, name)| stat(&parent, name).is_ok_and(|stat| stat.is_none()))
}

/// Identifies a file by its inode and change time (ctime), which a program cannot set, unlike the modification time.
pub(super) fn unkept(stat: &Stat) -> State {
    #[allow(clippy::unnecessary_cast, reason = "the types of the fields differ between machines")]
    let (inode, changed) = (stat.st_ino as u64, (stat.st_ctime as i64, stat.st_ctime_nsec as i64));
    State::Unkept { inode, changed }
}

pub(super) fn is_same(parent: &OwnedFd, name: &OsStr, before: &State) -> std::io::Result<bool> {
    let Some(stat) = stat(parent, name)? else { return Ok(*before == State::Absent) };
    Ok(match before {
        State::Absent => false,
        State::Folder => kind(&stat) == FileType::Directory,
        State::Known { mode: known } => kind(&stat) == FileType::Directory && mode(&stat) == *known,
        State::Link(target) => link(parent, name).as_ref() == Some(target),
        State::Unkept { .. } => unkept(&stat) == *before,
        State::File { bytes, mode: known } => {
            kind(&stat) == FileType::RegularFile
                && mode(&stat) == *known
                && contents(parent, name).is_ok_and(|now| now == *bytes)
        }
    })
}

/// The magic bytes of an encoded snapshot.
const HEADING: &[u8] = b"repertoire picture 1\n";

impl Picture {
    /// Encodes the snapshot for the supervisor. A binary format, because paths need not be UTF-8.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let mut to = Encoder(HEADING.to_vec());
        for path in [&self.dir, &self.spill, &self.aside] {
            to.bytes(path.as_str().as_bytes());
        }
        to.number(self.before.len() as u64);
        for (path, state) in &self.before {
            to.path(path);
            to.state(state);
        }
        to.number(u64::from(self.nested.is_some()));
        if let Some(found) = &self.nested {
            to.number(u64::from(found.is_cut));
            for paths in [&found.protected, &found.sockets] {
                to.number(paths.len() as u64);
                paths.iter().for_each(|path| to.path(path));
            }
            to.number(found.closed.len() as u64);
            for (path, identity) in &found.closed {
                to.path(path);
                to.number(identity.device);
                to.number(identity.inode);
                to.time(identity.changed);
            }
        }
        to.0
    }

    /// Decodes a snapshot. Returns `None` if the bytes are malformed.
    pub(super) fn decoded(bytes: &[u8]) -> Option<Picture> {
        let mut from = Decoder(bytes.strip_prefix(HEADING)?);
        let (dir, spill, aside) = (from.text()?, from.text()?, from.text()?);
        let mut before = BTreeMap::new();
        for _ in 0..from.number()? {
            before.insert(from.path()?, from.state()?);
        }
        let nested = if from.number()? == 1 { Some(Arc::new(from.found()?)) } else { None };
        from.0.is_empty().then_some(Picture { dir, spill, aside, before, nested, bytes: 0 })
    }
}

struct Encoder(Vec<u8>);

impl Encoder {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn path(&mut self, path: &Path) {
        self.bytes(path.as_os_str().as_bytes());
    }

    fn time(&mut self, (seconds, nanoseconds): (i64, i64)) {
        self.number(seconds.cast_unsigned());
        self.number(nanoseconds.cast_unsigned());
    }

    fn state(&mut self, state: &State) {
        match state {
            State::Absent => self.number(0),
            State::Folder => self.number(1),
            State::Known { mode } => {
                self.number(2);
                self.number(u64::from(*mode));
            }
            State::File { bytes, mode } => {
                self.number(3);
                self.number(u64::from(*mode));
                self.bytes(bytes);
            }
            State::Link(target) => {
                self.number(4);
                self.bytes(target.as_bytes());
            }
            State::Unkept { inode, changed } => {
                self.number(5);
                self.number(*inode);
                self.time(*changed);
            }
        }
    }
}

struct Decoder<'a>(&'a [u8]);

impl Decoder<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn mode(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    fn text(&mut self) -> Option<Utf8PathBuf> {
        String::from_utf8(self.bytes()?).ok().map(Utf8PathBuf::from)
    }

    fn path(&mut self) -> Option<PathBuf> {
        Some(OsString::from_vec(self.bytes()?).into())
    }

    fn paths(&mut self) -> Option<Vec<PathBuf>> {
        (0..self.number()?).map(|_| self.path()).collect()
    }

    fn time(&mut self) -> Option<(i64, i64)> {
        Some((self.number()?.cast_signed(), self.number()?.cast_signed()))
    }

    fn state(&mut self) -> Option<State> {
        Some(match self.number()? {
            0 => State::Absent,
            1 => State::Folder,
            2 => State::Known { mode: self.mode()? },
            3 => {
                let mode = self.mode()?;
                State::File { mode, bytes: self.bytes()? }
            }
            4 => State::Link(OsString::from_vec(self.bytes()?)),
            5 => State::Unkept { inode: self.number()?, changed: self.time()? },
            _ => return None,
        })
    }

    fn found(&mut self) -> Option<Found> {
        let is_cut = self.number()? == 1;
        let (protected, sockets) = (self.paths()?, self.paths()?);
        let mut closed = ClosedFolders::new();
        for _ in 0..self.number()? {
            let path = self.path()?;
            let (device, inode) = (self.number()?, self.number()?);
            closed.insert(path, Identity { device, inode, changed: self.time()? });
        }
        Some(Found { protected, sockets, closed, is_cut })
    }
}

/// An empty snapshot.
pub(super) fn empty(dir: &Utf8Path, spill: &Utf8Path, aside: Utf8PathBuf) -> Picture {
    Picture { dir: dir.to_owned(), spill: spill.to_owned(), aside, ..Picture::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_picture_is_read_as_it_was() {
        let odd = PathBuf::from(OsStr::from_bytes(b"\xff/AGENTS.md"));
        let found = Found {
            protected: vec![odd.clone()],
            sockets: vec!["s".into()],
            closed: [("c".into(), Identity { device: 1, inode: 2, changed: (-3, 4) })].into(),
            is_cut: true,
        };
        let mut picture = empty("/w".into(), "/s".into(), "/s/a".into());
        picture.nested = Some(Arc::new(found));
        let states = [
            State::Absent,
            State::Folder,
            State::Known { mode: 0o755 },
            State::File { bytes: vec![0, 255], mode: 0o644 },
            State::Link(OsString::from_vec(vec![255])),
            State::Unkept { inode: 7, changed: (-1, 2) },
        ];
        for (number, state) in states.into_iter().enumerate() {
            picture.before.insert(odd.join(number.to_string()), state);
        }
        let encoded = picture.encoded();
        assert_eq!(Picture::decoded(&encoded), Some(picture));
        for length in 0..encoded.len() {
            assert_eq!(Picture::decoded(&encoded[..length]), None, "{length}");
        }
    }
}
