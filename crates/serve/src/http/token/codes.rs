//! Codes that another process stores for the daemon: files named by digest, next to the token. Redeeming a code means
//! removing its file, which only one process can do.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs;

use super::to_hex;
use crate::limits::{LENT_MAX, SMALL_FILE_BYTES_MAX};

pub(super) struct CodeStore {
    dir: Utf8PathBuf,
}

impl CodeStore {
    pub(super) fn beside_token(token_file: &Utf8Path) -> Self {
        CodeStore { dir: token_file.with_file_name("codes") }
    }

    /// Stores a code until it is redeemed or expires.
    pub(super) fn store_code(
        &self,
        digest: &[u8; 32],
        now_ms: u64,
        until_ms: u64,
    ) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        self.remove_expired(now_ms);
        fs::write_private(&self.dir.join(to_hex(digest)), until_ms.to_string().as_bytes())
    }

    /// Removes a code and returns its expiry; `None` if there is no such code.
    pub(super) fn take_code(&self, digest: &[u8; 32]) -> Option<u64> {
        let path = self.dir.join(to_hex(digest));
        let until = self.read_expiry(&path)?;
        std::fs::remove_file(path).ok()?;
        Some(until)
    }

    fn read_expiry(&self, path: &Utf8Path) -> Option<u64> {
        fs::read_text(path, SMALL_FILE_BYTES_MAX).ok()?.parse().ok()
    }

    /// Removes expired and invalid codes, and the oldest ones if there are too many.
    fn remove_expired(&self, now_ms: u64) {
        let Ok(entries) = self.dir.read_dir_utf8() else { return };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.into_path()));
        let mut kept: Vec<(u64, Utf8PathBuf)> =
            paths.map(|path| (self.read_expiry(&path).unwrap_or(0), path)).collect();
        kept.sort();
        let too_many = (kept.len() + 1).saturating_sub(LENT_MAX);
        for (at, (until, path)) in kept.into_iter().enumerate() {
            if until <= now_ms || at < too_many {
                // Another process may have removed it already.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}
