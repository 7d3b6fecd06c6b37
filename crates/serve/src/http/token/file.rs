//! The token file: readable by its owner only, in a folder of which the same is true.

use std::fs::{DirBuilder, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};

use camino::Utf8Path;
use repertoire_text::fs;

use super::{SECRET_BYTES, TokenError, random_secret};
use crate::limits::SMALL_FILE_BYTES_MAX;

/// The permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Reads the token, and returns notes about problems that were fixed.
pub(super) fn open_token(path: &Utf8Path) -> Result<(String, Vec<String>), TokenError> {
    let mut notes = Vec::new();
    if private_folder(path)? == FolderState::Mended {
        notes.push(format!("others could look into {}; now they cannot", parent_folder(path)));
    }
    match read_token(path)? {
        StoredToken::Good(token) => Ok((token, notes)),
        StoredToken::Nothing => Ok((create_token(path)?, notes)),
        StoredToken::Seen => {
            notes.push(format!("others could read {path}, so it has a new token"));
            Ok((replace_token(path)?, notes))
        }
        StoredToken::Broken => {
            notes.push(format!("{path} held no token, so it has a new one"));
            Ok((replace_token(path)?, notes))
        }
    }
}

#[derive(PartialEq, Eq)]
pub(super) enum FolderState {
    Good,
    Mended,
}

/// Makes sure that the folder of a file exists and is accessible to its owner only.
pub(super) fn private_folder(path: &Utf8Path) -> Result<FolderState, TokenError> {
    let dir = parent_folder(path);
    let failed = |source| TokenError::File { path: path.to_string(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    let metadata = std::fs::symlink_metadata(dir).map_err(failed)?;
    if !metadata.is_dir() {
        return Err(refuse_file(dir, "is a link: the folder of the token has to be a real one"));
    }
    check_owner(dir, &metadata)?;
    if metadata.mode() & OTHERS == 0 {
        return Ok(FolderState::Good);
    }
    std::fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(failed)?;
    Ok(FolderState::Mended)
}

enum StoredToken {
    Good(String),
    /// Other users could read it.
    Seen,
    /// The file does not hold a token.
    Broken,
    Nothing,
}

fn read_token(path: &Utf8Path) -> Result<StoredToken, TokenError> {
    let failed = |source| TokenError::File { path: path.to_string(), source };
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StoredToken::Nothing),
        Err(error) => return Err(failed(error)),
    };
    if metadata.is_symlink() {
        return Err(refuse_file(path, "is a link: the token is kept here, and nowhere else"));
    }
    if !metadata.is_file() {
        return Err(refuse_file(path, "is no file"));
    }
    check_owner(path, &metadata)?;
    if metadata.mode() & OTHERS != 0 {
        return Ok(StoredToken::Seen);
    }
    let text = match fs::read_text(path, SMALL_FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(fs::ReadError::Io(error)) => return Err(failed(error)),
        Err(_) => return Ok(StoredToken::Broken),
    };
    let token = text.trim();
    let is_one = token.len() == SECRET_BYTES * 2 && token.bytes().all(|b| b.is_ascii_hexdigit());
    Ok(if is_one { StoredToken::Good(token.to_owned()) } else { StoredToken::Broken })
}

/// Creates a token. If another process was faster, returns that process's token.
fn create_token(path: &Utf8Path) -> Result<String, TokenError> {
    let failed = |source| TokenError::File { path: path.to_string(), source };
    let token = random_secret()?;
    // `NamedTempFile` creates files with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(parent_folder(path)).map_err(failed)?;
    file.write_all(format!("{token}\n").as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(token),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => match read_token(path)?
        {
            StoredToken::Good(token) => Ok(token),
            StoredToken::Nothing | StoredToken::Seen | StoredToken::Broken => {
                Err(failed(error.error))
            }
        },
        Err(error) => Err(failed(error.error)),
    }
}

fn replace_token(path: &Utf8Path) -> Result<String, TokenError> {
    let token = random_secret()?;
    fs::write_private(path, format!("{token}\n").as_bytes())
        .map_err(|source| TokenError::File { path: path.to_string(), source })?;
    Ok(token)
}

fn check_owner(path: &Utf8Path, metadata: &Metadata) -> Result<(), TokenError> {
    if metadata.uid() == rustix::process::geteuid().as_raw() {
        Ok(())
    } else {
        Err(refuse_file(path, "belongs to another user"))
    }
}

fn refuse_file(path: &Utf8Path, what: &'static str) -> TokenError {
    TokenError::Refused { path: path.to_string(), what }
}

fn parent_folder(path: &Utf8Path) -> &Utf8Path {
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
        let (token, notes) = open_token(&path).unwrap();
        assert_eq!((token.len(), notes.len()), (64, 0));
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(open_token(&path).unwrap(), (token, vec![]));
    }

    #[test]
    fn a_token_that_others_could_read_is_a_token_no_more() {
        for seen in [0o640, 0o604, 0o644, 0o666, 0o620] {
            let (_keep, path) = place();
            let (token, _) = open_token(&path).unwrap();
            chmod(&path, seen);
            let (other, notes) = open_token(&path).unwrap();
            assert_ne!(token, other);
            assert_eq!(notes, [format!("others could read {path}, so it has a new token")]);
            assert_eq!(mode(&path), 0o600);
        }
    }

    #[test]
    fn a_folder_that_others_could_look_into_is_closed() {
        let (_keep, path) = place();
        let (token, _) = open_token(&path).unwrap();
        chmod(path.parent().unwrap(), 0o755);
        let (same, notes) = open_token(&path).unwrap();
        assert_eq!((same, notes.len()), (token, 1));
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    #[test]
    fn what_is_no_token_is_replaced() {
        let long = "a".repeat(10_000);
        for text in ["", "\n", "short", &"z".repeat(64), &"a".repeat(63), &long] {
            let (_keep, path) = place();
            open_token(&path).unwrap();
            fs::write_private(&path, text.as_bytes()).unwrap();
            let (token, notes) = open_token(&path).unwrap();
            assert_eq!((token.len(), notes.len()), (64, 1), "{text:?}");
        }
    }

    #[test]
    fn links_and_folders_in_its_place_are_refused() {
        let (_keep, path) = place();
        open_token(&path).unwrap();
        let real = path.with_file_name("real");
        std::fs::rename(&path, &real).unwrap();
        std::os::unix::fs::symlink("real", &path).unwrap();
        let message = open_token(&path).unwrap_err().to_string();
        assert_eq!(message, format!("{path} is a link: the token is kept here, and nowhere else"));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(open_token(&path).unwrap_err().to_string(), format!("{path} is no file"));

        let dir = path.parent().unwrap();
        let elsewhere = dir.with_file_name("elsewhere");
        std::fs::rename(dir, &elsewhere).unwrap();
        std::os::unix::fs::symlink("elsewhere", dir).unwrap();
        assert!(open_token(&path).unwrap_err().to_string().contains("has to be a real one"));
    }
}
