//! Who may come in: a token in a file that only its owner can read, and codes that open a page once.
//!
//! There are no cookies, so no browser sends anything along by itself.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8Path;
use repertoire_text::fs;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// How long a code that was printed can be used.
pub const CODE_LIFE: Duration = Duration::from_secs(10 * 60);
/// How long a page that was opened with one may stay.
pub const SESSION_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
const SECRET_BYTES: usize = 32;
const TOKEN_FILE_BYTES_MAX: u64 = 1024;
/// Codes and sessions that are kept at most, each; the oldest goes first.
const KEPT_MAX: usize = 64;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
    /// The file of the token.
    #[error("the token cannot be kept in {path}: {source}")]
    File {
        /// Where.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

/// The token, and what was given out in its stead. Only digests are kept in memory.
pub struct Keys {
    token: [u8; 32],
    lent: Mutex<Lent>,
}

#[derive(Default)]
struct Lent {
    /// What expires when, by its digest.
    codes: BTreeMap<[u8; 32], u64>,
    sessions: BTreeMap<[u8; 32], u64>,
}

impl Keys {
    /// The token in `path`, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// [`TokenError`].
    pub fn open(path: &Utf8Path) -> Result<(Self, String), TokenError> {
        let failed = |source| TokenError::File { path: path.to_string(), source };
        let token = match read(path) {
            Some(token) => token,
            None => {
                let token = secret()?;
                fs::write_private(path, format!("{token}\n").as_bytes()).map_err(failed)?;
                token
            }
        };
        Ok((Keys { token: digest(&token), lent: Mutex::default() }, token))
    }

    /// A code that opens one page, once and soon.
    ///
    /// # Errors
    ///
    /// When the system gives no random numbers.
    pub fn lend_code(&self, now_ms: u64) -> Result<String, TokenError> {
        let code = secret()?;
        let mut lent = self.lent();
        keep(&mut lent.codes, digest(&code), now_ms, CODE_LIFE);
        Ok(code)
    }

    /// Takes a code back and gives a session for it, if it is still good.
    ///
    /// # Errors
    ///
    /// When the system gives no random numbers.
    pub fn redeem(&self, code: &str, now_ms: u64) -> Result<Option<String>, TokenError> {
        let mut lent = self.lent();
        match lent.codes.remove(&digest(code)) {
            Some(until) if until > now_ms => {}
            _ => return Ok(None),
        }
        let session = secret()?;
        keep(&mut lent.sessions, digest(&session), now_ms, SESSION_LIFE);
        Ok(Some(session))
    }

    /// Whether somebody who shows this may come in.
    pub fn lets_in(&self, shown: &str, now_ms: u64) -> bool {
        let shown = digest(shown);
        let is_token = bool::from(shown.ct_eq(&self.token));
        // A digest of something random: looking it up tells nothing about others.
        let is_session = self.lent().sessions.get(&shown).is_some_and(|until| *until > now_ms);
        is_token || is_session
    }

    fn lent(&self) -> std::sync::MutexGuard<'_, Lent> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(kept: &mut BTreeMap<[u8; 32], u64>, digest: [u8; 32], now_ms: u64, life: Duration) {
    kept.retain(|_, until| *until > now_ms);
    while kept.len() >= KEPT_MAX {
        let Some(oldest) = kept.iter().min_by_key(|(_, until)| **until).map(|(key, _)| *key) else {
            break;
        };
        kept.remove(&oldest);
    }
    let life = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
    kept.insert(digest, now_ms.saturating_add(life));
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn secret() -> Result<String, TokenError> {
    let mut bytes = [0_u8; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| TokenError::Random(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The token that is kept, if it is one. What is not is replaced.
fn read(path: &Utf8Path) -> Option<String> {
    let (dir, name) = (path.parent()?, path.file_name()?);
    let bytes = fs::read_bytes_beneath(dir, name.into(), TOKEN_FILE_BYTES_MAX).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let token = text.trim();
    let is_one = token.len() == SECRET_BYTES * 2 && token.bytes().all(|b| b.is_ascii_hexdigit());
    is_one.then(|| token.to_owned())
}
