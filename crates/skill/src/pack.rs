//! The built-in pack: the project's `skills/` folder, embedded in the binary and kept as files in the
//! data folder, where agents can open its resources. Where it cannot be written, it is used in place.

use std::borrow::Cow;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::{Diagnostic, fs};
use rust_embed::RustEmbed;

use crate::codes;
use crate::skill::Digest;

#[derive(RustEmbed)]
#[folder = "../../skills"]
struct Embedded;

/// The name of the file that says which pack a folder holds.
const STAMP: &str = ".pack";

/// The paths of all files of the pack, sorted.
pub fn files() -> Vec<Cow<'static, str>> {
    let mut files: Vec<_> = Embedded::iter().collect();
    files.sort();
    files
}

/// A file of the pack.
pub fn read(path: &str) -> Option<Cow<'static, [u8]>> {
    Embedded::get(path).map(|file| file.data)
}

/// The digest of the whole pack: every path with the digest of its file.
pub fn digest() -> Digest {
    // The digests of the files were taken when they were embedded; only the list is hashed here.
    let mut list = Vec::new();
    for path in files() {
        let hash = Embedded::get(&path).map(|file| file.metadata.sha256_hash()).unwrap_or_default();
        list.extend_from_slice(&hash);
        list.extend_from_slice(path.as_bytes());
    }
    Digest::of(&list)
}

/// Brings a folder up to date with the pack. Nothing is written if it is already; files that an older
/// pack had and this one has not are removed, everything else in the folder is left alone.
pub fn sync(dir: &Utf8Path) -> Result<(), Box<Diagnostic>> {
    let stamp = dir.join(STAMP);
    let old = fs::read_text(&stamp, 1024 * 1024).unwrap_or_default();
    let new = manifest();
    if old == new {
        return Ok(());
    }
    write_all(dir, &old, &new).map_err(|error| {
        let code = &codes::PACK_NOT_SYNCED;
        let message = format!("the built-in skills cannot be written to this folder: {error}");
        Box::new(Diagnostic::new(code, message).in_file(dir).help(code.remedy))
    })
}

/// The digest on the first line, then the paths.
fn manifest() -> String {
    let mut text = format!("{}\n", digest());
    for path in files() {
        text.push_str(&path);
        text.push('\n');
    }
    text
}

fn write_all(dir: &Utf8Path, old: &str, new: &str) -> std::io::Result<()> {
    for path in files() {
        let content = read(&path).unwrap_or_default();
        fs::write_atomic(&dir.join(path.as_ref()), &content)?;
    }
    let gone = old.lines().skip(1).filter(|path| !new.lines().any(|kept| kept == *path));
    for path in gone.map(Utf8PathBuf::from).filter(|path| fs::is_beneath(path)) {
        // A file that the user has removed already is gone as well.
        let _ = std::fs::remove_file(dir.join(path));
    }
    fs::write_atomic(&dir.join(STAMP), new.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_brought_up_to_date_and_then_left_alone() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().join("pack");
        sync(&dir).unwrap();
        let file = dir.join("error-analyzer/SKILL.md");
        let first = std::fs::metadata(&file).unwrap().modified().unwrap();
        sync(&dir).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), first);
        fs::write_atomic(&dir.join("mine/SKILL.md"), b"x").unwrap();
        fs::write_atomic(&dir.join("old.md"), b"x").unwrap();
        fs::write_atomic(&dir.join(STAMP), b"sha256:0\nold.md\n../evil\n").unwrap();
        sync(&dir).unwrap();
        assert!(dir.join("mine/SKILL.md").exists() && !dir.join("old.md").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_a_diagnostic() {
        let keep = tempfile::tempdir().unwrap();
        let file = Utf8Path::from_path(keep.path()).unwrap().join("file");
        fs::write_atomic(&file, b"").unwrap();
        assert_eq!(sync(&file.join("pack")).unwrap_err().code.id, "RS316");
    }
}
