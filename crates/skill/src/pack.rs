//! The built-in pack: the project's `skills/` folder, embedded in the binary and written to the data folder,
//! where agents can open its resources. If it cannot be written, it is used from memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::Diagnostic;
use repertoire_text::fs::{self, ReadError};
use rust_embed::RustEmbed;

use crate::codes;
use crate::skill::ContentDigest;

#[derive(RustEmbed)]
#[folder = "../../skills"]
struct EmbeddedPack;

/// The name of the file that records which pack a folder holds.
const STAMP: &str = ".pack";

/// Returns the paths of all files of the pack, sorted.
pub fn list_pack_files() -> Vec<Cow<'static, str>> {
    let mut files: Vec<_> = EmbeddedPack::iter().collect();
    files.sort();
    files
}

/// Reads a file of the pack.
pub fn read_pack_file(path: &str) -> Option<Cow<'static, [u8]>> {
    EmbeddedPack::get(path).map(|file| file.data)
}

/// Computes the digest of the whole pack: every path with the digest of its file.
pub fn pack_digest() -> ContentDigest {
    // The digests of the files were computed when they were embedded; only the list is hashed here.
    let mut list = Vec::new();
    for path in list_pack_files() {
        let hash =
            EmbeddedPack::get(&path).map(|file| file.metadata.sha256_hash()).unwrap_or_default();
        list.extend_from_slice(&hash);
        list.extend_from_slice(path.as_bytes());
    }
    ContentDigest::hash_bytes(&list)
}

/// The maximum size of a file that is compared with the pack's; a larger one was not written by us.
const COMPARED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Updates a folder to this pack. Missing files are written, and files that only an older pack had are
/// removed. A file that neither this pack nor an earlier one has written belongs to the user: it is left
/// alone and reported. All other files in the folder are left alone as well.
///
/// If the stamp is this pack's and every file has the right size, nothing is written or hashed.
pub fn sync_pack(dir: &Utf8Path) -> Result<Vec<Diagnostic>, Box<Diagnostic>> {
    let old = fs::read_text(&dir.join(STAMP), 1024 * 1024).unwrap_or_default();
    let mut left = Vec::new();
    update_folder(dir, &old, &mut left).map_err(|error| {
        let code = &codes::PACK_NOT_SYNCED;
        let message = format!("the built-in skills cannot be written to this folder: {error}");
        Box::new(Diagnostic::new(code, message).in_file(dir).help(code.remedy))
    })?;
    Ok(left.iter().map(|path| left_alone_diagnostic(path)).collect())
}

fn left_alone_diagnostic(path: &Utf8Path) -> Diagnostic {
    let code = &codes::PACK_FILE_CHANGED;
    let message = "this is not the file of the built-in pack; it was left alone";
    Diagnostic::new(code, message).in_file(path).help(code.remedy)
}

/// Renders the stamp: the digest of the pack on the first line, then each file's digest and path.
fn render_manifest() -> String {
    let mut text = format!("{}\n", pack_digest());
    for path in list_pack_files() {
        text.push_str(&format!("{} {path}\n", file_digest(&path)));
    }
    text
}

/// Returns the digest of one file, computed when it was embedded.
fn file_digest(path: &str) -> ContentDigest {
    ContentDigest::from(
        EmbeddedPack::get(path).map(|file| file.metadata.sha256_hash()).unwrap_or_default(),
    )
}

/// Parses the files that a stamp records. Invalid lines are skipped.
fn parse_stamp(stamp: &str) -> BTreeMap<&str, ContentDigest> {
    let lines = stamp.lines().skip(1).filter_map(|line| line.split_once(' '));
    lines.filter_map(|(digest, path)| Some((path, digest.parse().ok()?))).collect()
}

fn update_folder(dir: &Utf8Path, old: &str, left: &mut Vec<Utf8PathBuf>) -> io::Result<()> {
    let new = render_manifest();
    let mut before = parse_stamp(old);
    for path in list_pack_files() {
        let content = read_pack_file(&path).unwrap_or_default();
        let earlier = before.remove(path.as_ref());
        if old == new && has_right_size(&dir.join(path.as_ref()), &content) {
            continue;
        }
        match examine_file(dir, path.as_ref().into(), file_digest(&path), earlier) {
            PackFileState::Current => {}
            PackFileState::Missing | PackFileState::Earlier => {
                fs::write_atomic(&dir.join(path.as_ref()), &content)?;
            }
            PackFileState::Foreign => left.push(dir.join(path.as_ref())),
        }
    }
    if old == new {
        return Ok(());
    }
    for (path, digest) in before {
        remove_outdated(dir, path.into(), digest);
    }
    fs::write_atomic(&dir.join(STAMP), new.as_bytes())
}

/// Returns true if a file exists and has the right size, without reading it.
fn has_right_size(file: &Utf8Path, content: &[u8]) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.len() == content.len() as u64)
}

/// Removes a file that an older pack has written, unless it has been changed since.
fn remove_outdated(dir: &Utf8Path, path: &Utf8Path, digest: ContentDigest) {
    if fs::is_beneath(path)
        && matches!(examine_file(dir, path, digest, None), PackFileState::Current)
    {
        // A file that cannot be removed does no harm.
        let _ = std::fs::remove_file(dir.join(path));
    }
}

/// The state of a file of the pack on disk.
enum PackFileState {
    Missing,
    Current,
    /// Unchanged since an earlier pack has written it.
    Earlier,
    /// A file of the user, or a changed one.
    Foreign,
}

fn examine_file(
    dir: &Utf8Path,
    path: &Utf8Path,
    current: ContentDigest,
    earlier: Option<ContentDigest>,
) -> PackFileState {
    let found = fs::read_bytes_beneath(dir, path, COMPARED_BYTES_MAX);
    match found.map(|bytes| ContentDigest::hash_bytes(&bytes)) {
        Ok(digest) if digest == current => PackFileState::Current,
        Ok(digest) if Some(digest) == earlier => PackFileState::Earlier,
        // A dangling link belongs to the user as well.
        Err(ReadError::NotFound) if !dir.join(path).is_symlink() => PackFileState::Missing,
        _ => PackFileState::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "error-analyzer/SKILL.md";

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().join("pack");
        (keep, dir)
    }

    fn put(path: &Utf8Path, text: &str) {
        fs::write_atomic(path, text.as_bytes()).unwrap();
    }

    fn text(path: &Utf8Path) -> String {
        fs::read_text(path, COMPARED_BYTES_MAX).unwrap()
    }

    /// Syncs, and expects exactly these files to be left alone.
    #[track_caller]
    fn check(dir: &Utf8Path, left: &[&str]) {
        let found = sync_pack(dir).unwrap();
        let files: Vec<&Utf8Path> =
            found.iter().map(|found| found.path.as_deref().unwrap()).collect();
        let expect: Vec<Utf8PathBuf> = left.iter().map(|path| dir.join(path)).collect();
        assert_eq!(files, expect);
        assert!(found.iter().all(|found| found.code.id == "RS318"));
    }

    #[test]
    fn a_folder_is_brought_up_to_date_and_then_left_alone() {
        let (_keep, dir) = folder();
        check(&dir, &[]);
        let file = dir.join(FILE);
        let first = std::fs::metadata(&file).unwrap().modified().unwrap();
        check(&dir, &[]);
        assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), first);
        put(&dir.join("mine/SKILL.md"), "x");
        put(&dir.join("old.md"), "x");
        put(&dir.join("old-and-mine.md"), "mine");
        put(&dir.with_file_name("evil"), "x");
        put(&file, "of the old pack");
        let (x, of_old) =
            (ContentDigest::hash_bytes(b"x"), ContentDigest::hash_bytes(b"of the old pack"));
        let stamp = format!(
            "sha256:0\n{x} old.md\n{x} old-and-mine.md\n{x} ../evil\nbad\n{of_old} {FILE}\n"
        );
        put(&dir.join(STAMP), &stamp);
        check(&dir, &[]);
        assert!(dir.join("mine/SKILL.md").exists() && !dir.join("old.md").exists());
        assert!(dir.join("old-and-mine.md").exists() && dir.with_file_name("evil").exists());
        assert_eq!(text(&file).as_bytes(), read_pack_file(FILE).unwrap().as_ref());
    }

    #[test]
    fn a_file_that_was_removed_comes_back_and_one_that_was_changed_is_left() {
        let (_keep, dir) = folder();
        check(&dir, &[]);
        std::fs::remove_file(dir.join(FILE)).unwrap();
        check(&dir, &[]);
        assert!(dir.join(FILE).exists());
        put(&dir.join(FILE), "mine");
        // The file is reported every time, and also when the next pack comes.
        check(&dir, &[FILE]);
        check(&dir, &[FILE]);
        let next = text(&dir.join(STAMP)).replacen("sha256:", "sha256:0", 1);
        put(&dir.join(STAMP), &next);
        check(&dir, &[FILE]);
        assert_eq!(text(&dir.join(FILE)), "mine");
    }

    #[test]
    fn what_stands_in_a_folder_that_was_never_synced_is_left() {
        let (_keep, dir) = folder();
        put(&dir.join(FILE), "mine");
        put(
            &dir.join("recovery/SKILL.md"),
            &String::from_utf8_lossy(&read_pack_file("recovery/SKILL.md").unwrap()),
        );
        check(&dir, &[FILE]);
        assert_eq!(text(&dir.join(FILE)), "mine");
        assert!(dir.join("auto-merge/SKILL.md").exists());
    }

    #[test]
    #[cfg(unix)]
    fn nothing_is_written_through_links_that_lead_elsewhere() {
        let (_keep, dir) = folder();
        let elsewhere = dir.with_file_name("elsewhere");
        std::fs::create_dir_all(&elsewhere).unwrap();
        std::fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::symlink(&elsewhere, dir.join("error-analyzer")).unwrap();
        assert!(!sync_pack(&dir).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_a_diagnostic() {
        let keep = tempfile::tempdir().unwrap();
        let file = Utf8Path::from_path(keep.path()).unwrap().join("file");
        fs::write_atomic(&file, b"").unwrap();
        assert_eq!(sync_pack(&file.join("pack")).unwrap_err().code.id, "RS316");
    }
}
