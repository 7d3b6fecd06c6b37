//! File access that cannot hang, cannot escape a folder, and cannot read more than a limit. Pipes and devices are
//! refused before a byte is read; writes are atomic.
//!
//! [`FolderHandle`] is for paths that come from a model, a skill or a project: they are resolved once, from a handle. The
//! functions that take a path are for paths that the user or `rep` itself chose.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use crate::codes;
use crate::diagnostic::Diagnostic;

mod folder;

pub use folder::{FileLocation, FolderHandle, LocationError, OpenedEntry};

/// The reason why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("there is no such file")]
    NotFound,
    /// The file is larger than allowed; nothing was read.
    #[error("the file has {bytes} bytes; the limit is {limit}")]
    TooLarge { bytes: u64, limit: u64 },
    /// A pipe, device, socket or folder.
    #[error("this is {kind}, not a regular file")]
    NotRegular {
        /// The kind of file, with its article.
        kind: &'static str,
    },
    #[error("the file is not UTF-8: byte {at} is wrong")]
    NotUtf8 {
        /// Offset of the first invalid byte.
        at: usize,
    },
    /// The path is absolute, or climbs out of the folder with `..`.
    #[error("the path is absolute or climbs out of the folder")]
    PathRefused,
    /// A symbolic link leads out of the folder.
    #[error("a symbolic link leads out of the folder")]
    LinkLeaves,
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl ReadError {
    /// Converts the error to a diagnostic.
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

/// A fingerprint of a file's state that does not require reading its contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStamp {
    bytes: u64,
    modified_ns: i128,
    changed_ns: i128,
    inode: u64,
}

impl FileStamp {
    /// The stamp of a file; `None` if its metadata cannot be read.
    pub fn of_file(path: &Utf8Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| stamp_of(&metadata))
    }
}

/// Reads a regular file as text, at most `bytes_max` bytes. A final symbolic link is not followed.
pub fn read_text(path: &Utf8Path, bytes_max: u64) -> Result<String, ReadError> {
    read_stamped(path, bytes_max).map(|(text, _)| text)
}

/// Like [`read_text`], with the stamp of the state that was read.
pub fn read_stamped(path: &Utf8Path, bytes_max: u64) -> Result<(String, FileStamp), ReadError> {
    let mut file = open_no_follow(path)?;
    let metadata = file.metadata()?;
    let bytes = bytes_of(&mut file, &metadata, bytes_max)?;
    Ok((text_of(bytes)?, stamp_of(&metadata)))
}

/// Refuses a pipe, device, socket or folder without opening it.
pub fn refuse_irregular(path: &Utf8Path) -> Result<(), ReadError> {
    let metadata = std::fs::symlink_metadata(path).map_err(not_found_or_io)?;
    if metadata.is_file() {
        Ok(())
    } else {
        Err(ReadError::NotRegular { kind: kind_of(&metadata.file_type()) })
    }
}

/// Reads a text file below `dir`. Symbolic links are followed as long as they stay below it.
pub fn read_text_beneath(
    dir: &Utf8Path,
    relative: &Utf8Path,
    bytes_max: u64,
) -> Result<String, ReadError> {
    text_of(read_bytes_beneath(dir, relative, bytes_max)?)
}

/// Reads a file below `dir`, at most `bytes_max` bytes.
pub fn read_bytes_beneath(
    dir: &Utf8Path,
    relative: &Utf8Path,
    bytes_max: u64,
) -> Result<Vec<u8>, ReadError> {
    if !is_beneath(relative) {
        return Err(ReadError::PathRefused);
    }
    FolderHandle::open(dir).map_err(not_found_or_io)?.read_bytes(relative, bytes_max)
}

/// The prefix of temporary files, which a killed process may leave behind.
const TEMPORARY_PREFIX: &str = ".rep-";

/// Returns true if a name is one of [`write_atomic`]'s temporary names, now or in earlier versions.
pub fn is_temporary_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(TEMPORARY_PREFIX) else { return false };
    let is_earlier = rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_earlier
        || rest.split_once('-').is_some_and(|(hash, number)| is_hash(hash) && is_number(number))
}

fn is_hash(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_number(text: &str) -> bool {
    (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Writes a file atomically: readers see the old text or the new, never half of it, even after a crash. An existing
/// file keeps its permissions, a new one follows the umask. A symbolic link is written through to its target, even if
/// that does not exist yet.
pub fn write_atomic(path: &Utf8Path, contents: &[u8]) -> io::Result<()> {
    write_with_mode(path, contents, folder::NewMode::KeptOrMasked)
}

/// Like [`write_atomic`], but only the owner may read the file, even if others could read the previous one.
pub fn write_private(path: &Utf8Path, contents: &[u8]) -> io::Result<()> {
    write_with_mode(path, contents, folder::NewMode::Private)
}

fn write_with_mode(path: &Utf8Path, contents: &[u8], mode: folder::NewMode) -> io::Result<()> {
    let target = behind_links(path)?;
    let Some(name) = target.file_name() else { return Err(rustix::io::Errno::ISDIR.into()) };
    let dir = match target.parent() {
        Some(dir) if dir != "" => dir,
        _ => Utf8Path::new("."),
    };
    std::fs::create_dir_all(dir)?;
    folder::replace_file(FolderHandle::open(dir)?.as_fd(), name, contents, mode)
}

/// The kind of a folder entry, without following links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Folder,
    Link,
    /// A pipe, device or socket.
    Other,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// The name, which need not be UTF-8.
    pub name: OsString,
    pub kind: EntryKind,
}

/// Iterates over the entries of a folder, in directory order.
pub fn list_entries(dir: &Utf8Path) -> io::Result<impl Iterator<Item = io::Result<FolderEntry>>> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    iterate_dir(rustix::fs::Dir::new(rustix::fs::open(dir.as_std_path(), flags, Mode::empty())?)?)
}

/// Iterates over the entries of an open folder.
fn iterate_dir(
    mut folder: rustix::fs::Dir,
) -> io::Result<impl Iterator<Item = io::Result<FolderEntry>>> {
    use std::os::unix::ffi::OsStrExt;
    Ok(std::iter::from_fn(move || {
        loop {
            let entry = match folder.next()? {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error.into())),
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not report the type in listings.
                rustix::fs::FileType::Unknown => kind_on_disk(&folder, name),
                kind => entry_kind(kind),
            };
            let name = std::ffi::OsStr::from_bytes(name.to_bytes()).to_owned();
            return Some(Ok(FolderEntry { name, kind }));
        }
    }))
}

fn entry_kind(kind: rustix::fs::FileType) -> EntryKind {
    match kind {
        rustix::fs::FileType::RegularFile => EntryKind::File,
        rustix::fs::FileType::Directory => EntryKind::Folder,
        rustix::fs::FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

fn kind_on_disk(folder: &rustix::fs::Dir, name: &std::ffi::CStr) -> EntryKind {
    let no_follow = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    let stat = folder.fd().and_then(|handle| rustix::fs::statat(handle, name, no_follow));
    match stat {
        Ok(stat) => entry_kind(rustix::fs::FileType::from_raw_mode(stat.st_mode)),
        Err(_) => EntryKind::Other,
    }
}

/// Creates a folder that only the user can look into, with those above it that are missing.
pub fn make_private_dir(dir: &Utf8Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Returns true if a relative path stays at or below a folder, judging by the path alone.
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
    file: &mut impl Read,
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
    // Reading just the reported size saves a system call per file. Files of the kernel report size 0 but have content;
    // read those up to the limit.
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

fn stamp_of(metadata: &std::fs::Metadata) -> FileStamp {
    use std::os::unix::fs::MetadataExt;
    FileStamp {
        bytes: metadata.size(),
        modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}

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

/// Opens a file without following a final link, and without blocking on a pipe.
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

/// The maximum number of symbolic links that are followed to a file that does not exist yet.
const LINK_HOPS_MAX: usize = 8;

/// Resolves the links of a path, whether or not the target exists.
fn behind_links(path: &Utf8Path) -> io::Result<Utf8PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..=LINK_HOPS_MAX {
        if let Ok(real) = place.canonicalize_utf8() {
            return Ok(real);
        }
        // Not a link: a new file.
        let Ok(next) = place.read_link_utf8() else { return Ok(place) };
        place = place.parent().unwrap_or(Utf8Path::new("")).join(next);
    }
    let message =
        format!("{path} is a symbolic link that leads in a circle or through too many links");
    Err(io::Error::other(message))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        (dir, path)
    }

    #[test]
    fn only_names_of_files_that_are_being_written_are_temporary() {
        for (name, expected) in [
            (".rep-a1B2c3", true),
            (".rep-0123abcd-0", true),
            (".rep-0123abcd-255", true),
            (".rep-0123abcd-", false),
            (".rep-0123abcd-notes", false),
            (".rep-notes.txt", false),
            (".rep-", false),
            ("a.rep-a1B2c3", false),
        ] {
            assert_eq!(is_temporary_name(name), expected, "{name}");
        }
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
        // The umask belongs to the whole process, so the test does not set it but compares with its effect.
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
}
