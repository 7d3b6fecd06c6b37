//! Authentication: a token in a file that only its owner can read, and one-time codes that open a page.
//!
//! There are no cookies, so a browser never sends credentials by itself.

mod codes;
mod file;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8Path;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::limits::LENT_MAX;
pub use crate::limits::{CODE_LIFE, SESSION_LIFE};
use codes::CodeStore;

const SECRET_BYTES: usize = 32;

/// The reason why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("the system gives no random numbers: {0}")]
    Random(String),
    /// The token file or its folder has the wrong type or owner.
    #[error("{path} {what}")]
    Refused {
        path: String,
        /// The problem, as the rest of a sentence that begins with the path.
        what: &'static str,
    },
    #[error("the token cannot be kept in {path}: {source}")]
    File { path: String, source: std::io::Error },
}

/// The token, and the codes and sessions issued in its place. Only digests are kept in memory.
pub struct AccessKeys {
    token: [u8; 32],
    notes: Vec<String>,
    codes: CodeStore,
    lent: Mutex<IssuedKeys>,
}

#[derive(Default)]
struct IssuedKeys {
    /// The expiry of each code, by its digest.
    codes: BTreeMap<[u8; 32], u64>,
    sessions: BTreeMap<[u8; 32], u64>,
}

impl AccessKeys {
    /// Reads the token from `path`. It is created if it does not exist, and replaced if other users could read it.
    ///
    /// # Errors
    ///
    /// [`TokenError`].
    pub fn open_token_file(path: &Utf8Path) -> Result<(Self, String), TokenError> {
        let (token, notes) = file::open_token(path)?;
        let codes = CodeStore::beside_token(path);
        let keys = AccessKeys { token: digest_text(&token), notes, codes, lent: Mutex::default() };
        Ok((keys, token))
    }

    /// Notes about problems of the token file that were fixed.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Issues a short-lived code that opens one page.
    ///
    /// # Errors
    ///
    /// If the system provides no random numbers.
    pub fn issue_code(&self, now_ms: u64) -> Result<String, TokenError> {
        let code = random_secret()?;
        let mut lent = self.lock_issued();
        keep_until_expiry(&mut lent.codes, digest_text(&code), now_ms, CODE_LIFE);
        Ok(code)
    }

    /// Exchanges a code for a session. Returns `None` if the code is unknown or expired; a code can be used once.
    ///
    /// # Errors
    ///
    /// If the system provides no random numbers.
    pub fn redeem(&self, code: &str, now_ms: u64) -> Result<Option<String>, TokenError> {
        let digest_of_code = digest_text(code);
        let until = self.lock_issued().codes.remove(&digest_of_code);
        let until = until.or_else(|| self.codes.take_code(&digest_of_code));
        if until.is_none_or(|until| until <= now_ms) {
            return Ok(None);
        }
        let session = random_secret()?;
        keep_until_expiry(
            &mut self.lock_issued().sessions,
            digest_text(&session),
            now_ms,
            SESSION_LIFE,
        );
        Ok(Some(session))
    }

    /// Returns true if this is the token or a valid session.
    pub fn is_valid(&self, shown: &str, now_ms: u64) -> bool {
        let shown = digest_text(shown);
        let is_token = bool::from(shown.ct_eq(&self.token));
        // The key is the digest of a random secret, so a lookup leaks nothing about other sessions.
        let is_session =
            self.lock_issued().sessions.get(&shown).is_some_and(|until| *until > now_ms);
        is_token || is_session
    }

    fn lock_issued(&self) -> std::sync::MutexGuard<'_, IssuedKeys> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores a code for a daemon in another process. A caller that can write next to the token file could read the token
/// as well, so this grants nothing new.
///
/// # Errors
///
/// [`TokenError`].
pub fn store_code(token_file: &Utf8Path, now_ms: u64) -> Result<String, TokenError> {
    file::private_folder(token_file)?;
    let code = random_secret()?;
    let until = now_ms.saturating_add(duration_ms(CODE_LIFE));
    let kept = CodeStore::beside_token(token_file).store_code(&digest_text(&code), now_ms, until);
    kept.map_err(|source| TokenError::File { path: token_file.to_string(), source })?;
    Ok(code)
}

fn keep_until_expiry(
    kept: &mut BTreeMap<[u8; 32], u64>,
    digest: [u8; 32],
    now_ms: u64,
    life: Duration,
) {
    kept.retain(|_, until| *until > now_ms);
    while kept.len() >= LENT_MAX {
        let Some(oldest) = kept.iter().min_by_key(|(_, until)| **until).map(|(key, _)| *key) else {
            break;
        };
        kept.remove(&oldest);
    }
    kept.insert(digest, now_ms.saturating_add(duration_ms(life)));
}

fn duration_ms(life: Duration) -> u64 {
    u64::try_from(life.as_millis()).unwrap_or(u64::MAX)
}

fn digest_text(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn random_secret() -> Result<String, TokenError> {
    let mut bytes = [0_u8; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| TokenError::Random(error.to_string()))?;
    Ok(to_hex(&bytes))
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    fn keys() -> (tempfile::TempDir, Utf8PathBuf, AccessKeys, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("serve/token")).unwrap();
        let (keys, token) = AccessKeys::open_token_file(&path).unwrap();
        (dir, path, keys, token)
    }

    #[test]
    fn only_the_whole_token_lets_in() {
        let (_keep, _, keys, token) = keys();
        assert!(keys.is_valid(&token, 0));
        let longer = format!("{token}0");
        let upper = token.to_ascii_uppercase();
        for wrong in
            ["", " ", "0", &token[..63], &token[1..], &longer, &upper, &to_hex(&keys.token)]
        {
            assert!(!keys.is_valid(wrong, 0), "{wrong:?}");
        }
    }

    #[test]
    fn a_code_opens_one_page_and_only_soon() {
        let (_keep, _, keys, _) = keys();
        let code = keys.issue_code(1000).unwrap();
        assert!(!keys.is_valid(&code, 1000), "a code is not a token");
        let session = keys.redeem(&code, 2000).unwrap().unwrap();
        assert_eq!(keys.redeem(&code, 2000).unwrap(), None);
        assert!(keys.is_valid(&session, 2000));
        assert_eq!(keys.redeem("", 2000).unwrap(), None);

        let late = keys.issue_code(1000).unwrap();
        assert_eq!(keys.redeem(&late, 1000 + duration_ms(CODE_LIFE)).unwrap(), None);
    }

    #[test]
    fn a_session_ends_by_itself() {
        let (_keep, _, keys, _) = keys();
        let code = keys.issue_code(0).unwrap();
        let session = keys.redeem(&code, 0).unwrap().unwrap();
        assert!(keys.is_valid(&session, duration_ms(SESSION_LIFE) - 1));
        assert!(!keys.is_valid(&session, duration_ms(SESSION_LIFE)));
    }

    #[test]
    fn a_code_that_another_process_left_opens_one_page() {
        let (_keep, path, keys, _) = keys();
        let code = store_code(&path, 1000).unwrap();
        assert!(keys.redeem(&code, 2000).unwrap().is_some());
        assert_eq!(keys.redeem(&code, 2000).unwrap(), None);
        let late = store_code(&path, 1000).unwrap();
        assert_eq!(keys.redeem(&late, 1000 + duration_ms(CODE_LIFE)).unwrap(), None);
    }

    #[test]
    fn codes_that_nobody_uses_do_not_pile_up() {
        let (_keep, path, keys, _) = keys();
        for at in 0..200 {
            keys.issue_code(at).unwrap();
            store_code(&path, at).unwrap();
        }
        assert_eq!(keys.lock_issued().codes.len(), LENT_MAX);
        let left = || std::fs::read_dir(path.with_file_name("codes")).unwrap().count();
        assert_eq!(left(), LENT_MAX);
        store_code(&path, 200 + duration_ms(CODE_LIFE)).unwrap();
        assert_eq!(left(), 1);
    }
}
