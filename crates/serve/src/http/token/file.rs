//! The token file: readable by its owner only, in a folder of which the same is true.

use std::fs::{DirBuilder, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};

use camino::Utf8Path;
use repertoire_text::fs;

use super::{SECRET_BYTES, TokenError, secret};
use crate::limits::SMALL_FILE_BYTES_MAX;

/// The permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Reads the token, and returns notes about problems that were fixed.
pub(super) fn open(path: &Utf8Path) -> Result<(String, Vec<String>), TokenError> {
    let mut notes = Vec::new();
    if private_folder(path)? == Folder::Mended {
        notes.push(format!("others could look into {}; now they cannot", folder(path)));
    }
    match kept(path)? {
        Kept::Good(token) => Ok((token, notes)),
        Kept::Nothing => Ok((make(path)?, notes)),
        Kept::Seen => {
            notes.push(format!("others could read {path}, so it has a new token"));
            Ok((replace(path)?, notes))
        }
        Kept::Broken => {
            notes.push(format!("{path} held no token, so it has a new one"));
            Ok((replace(path)?, notes))
        }
    }
}

#[derive(PartialEq, Eq)]
pub(super) enum Folder {
    Good,
    Mended,
}

/// Makes sure that the folder of a file exists and is accessible to its owner only.
pub(super) fn private_folder(path: &Utf8Path) -> Result<Folder, TokenError> {
    let dir = folder(path);
    let failed = |source| TokenError::File { path: path.to_string(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    let metadata = std::fs::symlink_metadata(dir).map_err(failed)?;
    if !metadata.is_dir() {
        return Err(refused(dir, "is a link: the folder of the token has to be a real one"));
    }
    owned(dir, &metadata)?;
    if metadata.mode() & OTHERS == 0 {
        return Ok(Folder::Good);
    }
    std::fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(failed)?;
    Ok(Folder::Mended)
}

enum Kept {
    Good(String),
    /// Other users could read it.
    Seen,
    /// The file does not hold a token.
    Broken,
    Nothing,
}

fn kept(path: &Utf8Path) -> Result<Kept, TokenError> {
    let failed = |source| TokenError::File { path: path.to_string(), source };
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kept::Nothing),
        Err(error) => return Err(failed(error)),
    };
    if metadata.is_symlink() {
        return Err(refused(path, "is a link: the token is kept here, and nowhere else"));
    }
    if !metadata.is_file() {
        return Err(refused(path, "is no file"));
    }
    owned(path, &metadata)?;
    if metadata.mode() & OTHERS != 0 {
        return Ok(Kept::Seen);
    }
    let text = match fs::read_text(path, SMALL_FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(fs::ReadError::Io(error)) => return Err(failed(error)),
        Err(_) => return Ok(Kept::Broken),
    };
    let token = text.trim();
    let is_one = token.len() == SECRET_BYTES * 2 && token.bytes().all(|b| b.is_ascii_hexdigit());
    Ok(if is_one { Kept::Good(token.to_owned()) } else { Kept::Broken })
}

/// Creates a token. If another process was faster, returns that process's token.
fn make(path: &Utf8Path) -> Result<String, TokenError> {
    let failed = |source| TokenError::File { path: path.to_string(), source };
    let token = secret()?;
    // `NamedTempFile` creates files with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder(path)).map_err(failed)?;
    file.write_all(format!("{token}\n").as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(token),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => match kept(path)? {
            Kept::Good(token) => Ok(token),
            Kept::Nothing | Kept::Seen | Kept::Broken => Err(failed(error.error)),
        },
        Err(error) => Err(failed(error.error)),
    }
}

fn replace(path: &Utf8Path) -> Result<String, TokenError> {
    let token = secret()?;
    fs::write_private(path, format!("{token}\n").as_bytes())
        .map_err(|source| TokenError::File { path: path.to_string(), source })?;
    Ok(token)
}

fn owned(path: &Utf8Path, metadata: &Metadata) -> Result<(), TokenError> {
    if metadata.uid() == rustix::process::geteuid().as_raw() {
        Ok(())
    } else {
        Err(refused(path, "belongs to another user"))
    }
}

fn refused(path: &Utf8Path, what: &'static str) -> TokenError {
    TokenError::Refused { path: path.to_string(), what }
}

fn folder(path: &Utf8Path) -> &Utf8Path {
    path.parent().filter(|dir| *dir != "").unwrap_or(Utf8Path::new("."))
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    fn place() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("data/serve/token")).unwrap();
        (dir, path)
    }

    fn mode(path: &Utf8Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    fn chmod(path: &Utf8Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_new_token_is_its_owners_alone_and_stays() {
        let (_keep, path) = place();
        let (token, notes) = open(&path).unwrap();
        assert_eq!((token.len(), notes.len()), (64, 0));
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(open(&path).unwrap(), (token, vec![]));
    }

    #[test]
    fn a_token_that_others_could_read_is_a_token_no_more() {
        for seen in [0o640, 0o604, 0o644, 0o666, 0o620] {
            let (_keep, path) = place();
            let (token, _) = open(&path).unwrap();
            chmod(&path, seen);
            let (other, notes) = open(&path).unwrap();
            assert_ne!(token, other);
            assert_eq!(notes, [format!("others could read {path}, so it has a new token")]);
            assert_eq!(mode(&path), 0o600);
        }
    }

    #[test]
    fn a_folder_that_others_could_look_into_is_closed() {
        let (_keep, path) = place();
        let (token, _) = open(&path).unwrap();
        chmod(path.parent().unwrap(), 0o755);
        let (same, notes) = open(&path).unwrap();
        assert_eq!((same, notes.len()), (token, 1));
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    #[test]
    fn what_is_no_token_is_replaced() {
        let long = "a".repeat(10_000);
        for text in ["", "\n", "short", &"z".repeat(64), &"a".repeat(63), &long] {
            let (_keep, path) = place();
            open(&path).unwrap();
            fs::write_private(&path, text.as_bytes()).unwrap();
            let (token, notes) = open(&path).unwrap();
            assert_eq!((token.len(), notes.len()), (64, 1), "{text:?}");
        }
    }

    #[test]
    fn links_and_folders_in_its_place_are_refused() {
        let (_keep, path) = place();
        open(&path).unwrap();
        let real = path.with_file_name("real");
        std::fs::rename(&path, &real).unwrap();
        std::os::unix::fs::symlink("real", &path).unwrap();
        let message = open(&path).unwrap_err().to_string();
        assert_eq!(message, format!("{path} is a link: the token is kept here, and nowhere else"));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(open(&path).unwrap_err().to_string(), format!("{path} is no file"));

        let dir = path.parent().unwrap();
        let elsewhere = dir.with_file_name("elsewhere");
        std::fs::rename(dir, &elsewhere).unwrap();
        std::os::unix::fs::symlink("elsewhere", dir).unwrap();
        assert!(open(&path).unwrap_err().to_string().contains("has to be a real one"));
    }
}
