//! File access that cannot hang, cannot be talked out of a folder, and cannot be made to read more than
//! a limit. Pipes and devices are refused before a byte is read; writes are all or nothing.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use crate::codes;
use crate::diagnostic::Diagnostic;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such file.
    #[error("there is no such file")]
    NotFound,
    /// The file is larger than allowed; nothing was read.
    #[error("the file has {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit in force.
        limit: u64,
    },
    /// A pipe, device, socket or folder.
    #[error("this is {kind}, not a regular file")]
    NotRegular {
        /// What it is, with its article.
        kind: &'static str,
    },
    /// Bytes that are not UTF-8.
    #[error("the file is not UTF-8: byte {at} is wrong")]
    NotUtf8 {
        /// Offset of the first wrong byte.
        at: usize,
    },
    /// An absolute path, or one that climbs with `..`.
    #[error("the path is absolute or climbs out of the folder")]
    PathRefused,
    /// A symbolic link that leads elsewhere.
    #[error("a symbolic link leads out of the folder")]
    LinkLeaves,
    /// The operating system said no.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl ReadError {
    /// The finding that a reader of the folder is shown.
    pub fn to_diagnostic(&self, path: &Utf8Path) -> Diagnostic {
        let code = match self {
            ReadError::NotFound | ReadError::Io(_) => &codes::UNREADABLE,
            ReadError::TooLarge { .. } => &codes::FILE_TOO_LARGE,
            ReadError::NotRegular { .. } => &codes::NOT_A_FILE,
            ReadError::NotUtf8 { .. } => &codes::NOT_UTF8,
            ReadError::PathRefused => &codes::PATH_REFUSED,
            ReadError::LinkLeaves => &codes::LINK_LEAVES,
        };
        Diagnostic::new(code, self.to_string()).in_file(path).help(code.remedy)
    }
}

/// What tells one state of a file from another without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    bytes: u64,
    modified_ns: i128,
    changed_ns: i128,
    inode: u64,
}

impl Stamp {
    /// The stamp of a file; `None` if it cannot be looked at.
    pub fn of(path: &Utf8Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| stamp_of(&metadata))
    }
}

/// Reads a regular file as text, at most `bytes_max` bytes. A final symbolic link is not followed.
pub fn read_text(path: &Utf8Path, bytes_max: u64) -> Result<String, ReadError> {
    read_stamped(path, bytes_max).map(|(text, _)| text)
}

/// As [`read_text`], with the stamp of the state that was read.
pub fn read_stamped(path: &Utf8Path, bytes_max: u64) -> Result<(String, Stamp), ReadError> {
    let mut file = open_no_follow(path)?;
    let metadata = file.metadata()?;
    let bytes = bytes_of(&mut file, &metadata, bytes_max)?;
    Ok((text_of(bytes)?, stamp_of(&metadata)))
}

/// Refuses a pipe, device, socket or folder without opening it.
pub fn refuse_irregular(path: &Utf8Path) -> Result<(), ReadError> {
    let metadata = std::fs::symlink_metadata(path).map_err(not_found_or_io)?;
    match metadata.is_file() {
        true => Ok(()),
        false => Err(ReadError::NotRegular { kind: kind_of(&metadata.file_type()) }),
    }
}

/// Reads a file as text below `dir`. Symbolic links are followed as long as they stay below it.
pub fn read_text_beneath(
    dir: &Utf8Path,
    relative: &Utf8Path,
    bytes_max: u64,
) -> Result<String, ReadError> {
    text_of(read_bytes_beneath(dir, relative, bytes_max)?)
}

/// Reads a file's bytes below `dir`, at most `bytes_max` of them.
pub fn read_bytes_beneath(
    dir: &Utf8Path,
    relative: &Utf8Path,
    bytes_max: u64,
) -> Result<Vec<u8>, ReadError> {
    let mut file = open_beneath(dir, relative)?;
    let metadata = file.metadata()?;
    bytes_of(&mut file, &metadata, bytes_max)
}

/// How the names of files begin that are being written, and are left behind if that is killed.
pub const TEMPORARY_PREFIX: &str = ".rep-";

/// Writes a file so that readers see the old text or the new, never half, even after a crash.
/// Permissions of an existing file are kept, those of a new one follow the user's mask; a symbolic link
/// is written through to its target, also to one that does not exist yet.
pub fn write_atomic(path: &Utf8Path, contents: &[u8]) -> io::Result<()> {
    let target = behind_links(path)?;
    let dir = match target.parent() {
        Some(dir) if dir != "" => dir.to_owned(),
        _ => Utf8PathBuf::from("."),
    };
    std::fs::create_dir_all(&dir)?;
    let mut file = temporary_file(&dir, &target)?;
    file.write_all(contents)?;
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// As [`write_atomic`], but nobody else may read it; also if there was a file before that others could.
pub fn write_private(path: &Utf8Path, contents: &[u8]) -> io::Result<()> {
    let target = behind_links(path)?;
    let dir = match target.parent() {
        Some(dir) if dir != "" => dir.to_owned(),
        _ => Utf8PathBuf::from("."),
    };
    std::fs::create_dir_all(&dir)?;
    // Files that are made this way are their owner's alone.
    let mut file = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(&dir)?;
    file.write_all(contents)?;
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// What an entry of a folder is, without following links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, device or socket.
    Other,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// Its name, which may be anything.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
}

/// The entries of a folder, in the order of the disk, read as they are asked for.
#[cfg(unix)]
pub fn entries(dir: &Utf8Path) -> io::Result<impl Iterator<Item = io::Result<FolderEntry>>> {
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::{Dir, FileType, Mode, OFlags};

    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = Dir::new(rustix::fs::open(dir.as_std_path(), flags, Mode::empty())?)?;
    let dir = dir.to_owned();
    Ok(folder.filter_map(move |entry| {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Some(Err(error.into())),
        };
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            return None;
        }
        let name = std::ffi::OsStr::from_bytes(name).to_owned();
        let kind = match entry.file_type() {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Link,
            // Some file systems do not say while listing.
            FileType::Unknown => kind_on_disk(&dir.as_std_path().join(&name)),
            _ => EntryKind::Other,
        };
        Some(Ok(FolderEntry { name, kind }))
    }))
}

/// The entries of a folder, in the order of the disk, read as they are asked for.
#[cfg(not(unix))]
pub fn entries(dir: &Utf8Path) -> io::Result<impl Iterator<Item = io::Result<FolderEntry>>> {
    Ok(std::fs::read_dir(dir)?.map(|entry| {
        let entry = entry?;
        Ok(FolderEntry { kind: kind_on_disk(&entry.path()), name: entry.file_name() })
    }))
}

fn kind_on_disk(path: &std::path::Path) -> EntryKind {
    match path.symlink_metadata().map(|metadata| metadata.file_type()) {
        Ok(kind) if kind.is_file() => EntryKind::File,
        Ok(kind) if kind.is_dir() => EntryKind::Folder,
        Ok(kind) if kind.is_symlink() => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

/// Whether a relative path names something at or below a folder, without asking the disk.
pub fn is_beneath(relative: &Utf8Path) -> bool {
    let mut components = relative.components();
    !relative.as_str().is_empty()
        && !relative.as_str().contains('\0')
        && components.all(|part| matches!(part, Utf8Component::Normal(_) | Utf8Component::CurDir))
}

fn text_of(bytes: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(bytes)
        .map_err(|error| ReadError::NotUtf8 { at: error.utf8_error().valid_up_to() })
}

fn bytes_of(
    file: &mut File,
    metadata: &std::fs::Metadata,
    bytes_max: u64,
) -> Result<Vec<u8>, ReadError> {
    if !metadata.is_file() {
        return Err(ReadError::NotRegular { kind: kind_of(&metadata.file_type()) });
    }
    let size = metadata.len();
    if size > bytes_max {
        return Err(ReadError::TooLarge { bytes: size, limit: bytes_max });
    }
    // What was promised is read and no more, which saves asking for the end of every file. A file that
    // says it is empty may still give something (as those of the kernel do), within the limit.
    let most = if size == 0 { bytes_max + 1 } else { size };
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(most).read_to_end(&mut bytes)?;
    let read = bytes.len() as u64;
    if read > bytes_max {
        return Err(ReadError::TooLarge { bytes: read, limit: bytes_max });
    }
    Ok(bytes)
}

fn not_found_or_io(error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::NotFound => ReadError::NotFound,
        _ => ReadError::Io(error),
    }
}

#[cfg(unix)]
fn stamp_of(metadata: &std::fs::Metadata) -> Stamp {
    use std::os::unix::fs::MetadataExt;
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    Stamp {
        bytes: metadata.size(),
        modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
    }
}

#[cfg(not(unix))]
fn stamp_of(metadata: &std::fs::Metadata) -> Stamp {
    let modified = metadata.modified().ok().and_then(|time| {
        time.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_nanos() as i128)
    });
    Stamp { bytes: metadata.len(), modified_ns: modified.unwrap_or(0), ..Stamp::default() }
}

#[cfg(unix)]
fn kind_of(kind: &std::fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "something else",
    }
}

#[cfg(not(unix))]
fn kind_of(kind: &std::fs::FileType) -> &'static str {
    if kind.is_dir() { "a folder" } else { "something else" }
}

/// Opens without following a final link and without waiting for the other end of a pipe.
#[cfg(unix)]
fn open_no_follow(path: &Utf8Path) -> Result<File, ReadError> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path).map_err(|error| {
        match error.raw_os_error() {
            Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => ReadError::LinkLeaves,
            Some(code) if code == rustix::io::Errno::NXIO.raw_os_error() => {
                ReadError::NotRegular { kind: "a socket or pipe" }
            }
            _ => not_found_or_io(error),
        }
    })
}

#[cfg(not(unix))]
fn open_no_follow(path: &Utf8Path) -> Result<File, ReadError> {
    let metadata = std::fs::symlink_metadata(path).map_err(not_found_or_io)?;
    if metadata.is_symlink() {
        return Err(ReadError::LinkLeaves);
    }
    OpenOptions::new().read(true).open(path).map_err(not_found_or_io)
}

/// Opens a file below a folder. On Linux the kernel itself enforces the boundary, so that swapping a
/// link between check and use gains nothing; elsewhere the resolved paths are compared.
fn open_beneath(dir: &Utf8Path, relative: &Utf8Path) -> Result<File, ReadError> {
    if !is_beneath(relative) {
        return Err(ReadError::PathRefused);
    }
    #[cfg(target_os = "linux")]
    if let Some(opened) = open_beneath_by_kernel(dir, relative) {
        return opened;
    }
    let base = dir.canonicalize_utf8().map_err(not_found_or_io)?;
    let target = base.join(relative).canonicalize_utf8().map_err(not_found_or_io)?;
    if !target.starts_with(&base) {
        return Err(ReadError::LinkLeaves);
    }
    open_no_follow(&target)
}

#[cfg(target_os = "linux")]
fn open_beneath_by_kernel(dir: &Utf8Path, relative: &Utf8Path) -> Option<Result<File, ReadError>> {
    use rustix::fs::{Mode, OFlags, ResolveFlags};
    use rustix::io::Errno;
    let folder = match rustix::fs::open(
        dir.as_std_path(),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        Ok(folder) => folder,
        Err(error) => return Some(Err(not_found_or_io(error.into()))),
    };
    let open = || {
        rustix::fs::openat2(
            &folder,
            relative.as_std_path(),
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        )
    };
    match open_again(open) {
        Ok(file) => Some(Ok(File::from(file))),
        // Only a kernel without the call, or a sandbox that refuses it, is worth the weaker check.
        Err(Errno::NOSYS | Errno::PERM) => None,
        Err(Errno::XDEV | Errno::LOOP) => Some(Err(ReadError::LinkLeaves)),
        Err(Errno::NXIO) => Some(Err(ReadError::NotRegular { kind: "a socket or pipe" })),
        Err(error) => Some(Err(not_found_or_io(error.into()))),
    }
}

/// How often an open is tried while something is renamed on the way to the file.
#[cfg(target_os = "linux")]
const OPEN_TRIES_MAX: usize = 16;

/// The kernel gives up when a `..` in a link meets a rename; whoever renames all the time gets an error,
/// not the weaker check.
#[cfg(target_os = "linux")]
fn open_again<T>(mut open: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    for _ in 1..OPEN_TRIES_MAX {
        match open() {
            Err(rustix::io::Errno::AGAIN) => {}
            opened => return opened,
        }
    }
    open()
}

/// Most symbolic links that are followed to a file that does not exist yet.
const LINK_HOPS_MAX: usize = 8;

/// The place that a path means once its links are followed, whether or not something is there.
fn behind_links(path: &Utf8Path) -> io::Result<Utf8PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..=LINK_HOPS_MAX {
        if let Ok(real) = place.canonicalize_utf8() {
            return Ok(real);
        }
        // What is no link is a new file.
        let Ok(next) = place.read_link_utf8() else { return Ok(place) };
        place = place.parent().unwrap_or(Utf8Path::new("")).join(next);
    }
    let message =
        format!("{path} is a symbolic link that leads in a circle or through too many links");
    Err(io::Error::other(message))
}

/// A file that will take the place of `target`. It has its permissions before it has any content, so
/// that what is private is never open for a moment.
#[cfg(unix)]
fn temporary_file(dir: &Utf8Path, target: &Utf8Path) -> io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_PREFIX);
    if let Ok(existing) = std::fs::metadata(target) {
        let file = builder.tempfile_in(dir)?;
        file.as_file().set_permissions(existing.permissions())?;
        return Ok(file);
    }
    // The kernel takes away what the user's mask says.
    builder.permissions(std::fs::Permissions::from_mode(0o666)).tempfile_in(dir)
}

#[cfg(not(unix))]
fn temporary_file(dir: &Utf8Path, _target: &Utf8Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(dir)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        (dir, path)
    }

    #[test]
    fn a_file_over_the_limit_is_refused_unread() {
        let (_keep, dir) = folder();
        let path = dir.join("big");
        File::create(&path).unwrap().set_len(1 << 30).unwrap();
        let error = read_text(&path, 1024).unwrap_err();
        assert_eq!(error.to_string(), "the file has 1073741824 bytes; the limit is 1024");
    }

    #[test]
    fn folders_devices_and_bytes_that_are_not_text_are_told_apart() {
        let (_keep, dir) = folder();
        write_atomic(&dir.join("latin"), b"caf\xe9").unwrap();
        let check = |path: &Utf8Path, expect: &str| {
            assert_eq!(read_text(path, 1024).unwrap_err().to_string(), expect);
        };
        check(&dir, "this is a folder, not a regular file");
        check(Utf8Path::new("/dev/zero"), "this is a device, not a regular file");
        check(&dir.join("latin"), "the file is not UTF-8: byte 3 is wrong");
        check(&dir.join("gone"), "there is no such file");
    }

    #[test]
    fn nothing_outside_the_folder_is_read() {
        let (_keep, dir) = folder();
        let inside = dir.join("skill");
        write_atomic(&inside.join("references/a.md"), b"a").unwrap();
        write_atomic(&dir.join("secret"), b"s").unwrap();
        symlink("../secret", inside.join("out")).unwrap();
        symlink("/etc", inside.join("etc")).unwrap();
        symlink("references/a.md", inside.join("in")).unwrap();
        let read = |path: &str| read_text_beneath(&inside, Utf8Path::new(path), 1024);
        assert_eq!(read("references/a.md").unwrap(), "a");
        assert_eq!(read("in").unwrap(), "a");
        assert!(matches!(read("out"), Err(ReadError::LinkLeaves)));
        assert!(matches!(read("etc/passwd"), Err(ReadError::LinkLeaves)));
        assert!(matches!(read("../secret"), Err(ReadError::PathRefused)));
        assert!(matches!(read("references/../../secret"), Err(ReadError::PathRefused)));
        assert!(matches!(read("/etc/passwd"), Err(ReadError::PathRefused)));
        assert!(matches!(read(""), Err(ReadError::PathRefused)));
    }

    #[test]
    fn an_atomic_write_keeps_permissions_and_writes_through_links() {
        use std::os::unix::fs::PermissionsExt;
        let (_keep, dir) = folder();
        let real = dir.join("real.md");
        write_atomic(&real, b"1").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
        let link = dir.join("link.md");
        symlink("real.md", &link).unwrap();
        write_atomic(&link, b"2").unwrap();
        assert_eq!(read_text(&real, 9).unwrap(), "2");
        assert!(link.is_symlink());
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
    }

    #[test]
    fn a_new_file_has_the_permissions_that_the_mask_leaves() {
        use std::os::unix::fs::PermissionsExt;
        let (_keep, dir) = folder();
        let mode =
            |name: &str| std::fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777;
        // The mask belongs to the whole process, so it is not set here but compared with what it does.
        File::create(dir.join("plain")).unwrap();
        write_atomic(&dir.join("new"), b"1").unwrap();
        assert_eq!(mode("new"), mode("plain"));
    }

    #[test]
    fn a_write_through_a_dangling_link_makes_its_target() {
        let (_keep, dir) = folder();
        std::fs::create_dir(dir.join("sub")).unwrap();
        symlink("sub/second", dir.join("first")).unwrap();
        symlink("../real.md", dir.join("sub/second")).unwrap();
        write_atomic(&dir.join("first"), b"1").unwrap();
        assert!(dir.join("first").is_symlink() && dir.join("sub/second").is_symlink());
        assert_eq!(read_text(&dir.join("real.md"), 9).unwrap(), "1");
        symlink("round", dir.join("round")).unwrap();
        let error = write_atomic(&dir.join("round"), b"1").unwrap_err().to_string();
        assert!(error.contains("in a circle"), "{error}");
        assert!(dir.join("round").is_symlink());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_open_that_meets_renames_is_tried_again_and_then_fails() {
        use rustix::io::Errno;
        let mut tries = 0;
        let opened = open_again(|| {
            tries += 1;
            if tries < 3 { Err(Errno::AGAIN) } else { Ok(tries) }
        });
        assert_eq!(opened, Ok(3));
        assert_eq!(open_again::<()>(|| Err(Errno::AGAIN)), Err(Errno::AGAIN));
    }
}
