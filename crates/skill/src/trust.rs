//! Whom to believe. Built-in skills and the user's own are trusted; those of projects and plugins once a
//! person has said so. That word is bound to the digest of every file: a changed skill asks again.
//!
//! The lock lives with the user's configuration, never in a project, which could otherwise vouch for
//! itself.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{self, ReadError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::ResourceLimits;
use crate::resources::digest_of_all;
use crate::skill::{Digest, Scope, Skill};

/// Largest lock that is read.
const LOCK_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Whether a skill may be given capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Built in, the user's own, named by the user, or pinned.
    Trusted,
    /// Nobody has said anything yet.
    Untrusted,
    /// It was trusted, and has changed since.
    Changed,
}

/// The skills that a person has agreed to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Format of the file.
    #[serde(default)]
    version: u32,
    /// The digest of all files, by the path of the skill's file.
    #[serde(default)]
    skills: BTreeMap<Utf8PathBuf, Digest>,
}

/// Why a lock could not be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// It could not be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The lock.
        path: Utf8PathBuf,
        /// Why not.
        source: ReadError,
    },
    /// It could not be written.
    #[error("{path} cannot be written: {source}")]
    Write {
        /// The lock.
        path: Utf8PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It is not a lock.
    #[error("{path} is damaged: {message}")]
    Damaged {
        /// The lock.
        path: Utf8PathBuf,
        /// What is wrong.
        message: String,
    },
}

impl Lock {
    /// Reads a lock; a missing one is empty, a damaged one is an error and never overwritten.
    pub fn read(path: &Utf8Path) -> Result<Self, LockError> {
        let text = match fs::read_text(path, LOCK_BYTES_MAX) {
            Ok(text) => text,
            Err(ReadError::NotFound) => return Ok(Lock::default()),
            Err(source) => return Err(LockError::Read { path: path.to_owned(), source }),
        };
        serde_json::from_str(&text).map_err(|error| LockError::Damaged {
            path: path.to_owned(),
            message: error.to_string(),
        })
    }

    /// Writes the lock.
    pub fn write(&self, path: &Utf8Path) -> Result<(), LockError> {
        let mut text =
            serde_json::to_string_pretty(&Lock { version: 1, ..self.clone() }).unwrap_or_default();
        text.push('\n');
        fs::write_atomic(path, text.as_bytes())
            .map_err(|source| LockError::Write { path: path.to_owned(), source })
    }

    /// Whether a skill is trusted. Files are only read for skills that the lock names.
    pub fn trust(&self, skill: &Skill, limits: &ResourceLimits) -> Trust {
        match skill.origin.scope {
            Scope::Builtin | Scope::User | Scope::Extra => Trust::Trusted,
            Scope::Project | Scope::Plugin => match self.skills.get(&skill.origin.file) {
                None => Trust::Untrusted,
                Some(pinned) if digest_of_all(skill, limits).as_ref() == Some(pinned) => {
                    Trust::Trusted
                }
                Some(_) => Trust::Changed,
            },
        }
    }

    /// Records a person's word. Returns the digest, or `None` if not all files can be read.
    pub fn pin(&mut self, skill: &Skill, limits: &ResourceLimits) -> Option<Digest> {
        let digest = digest_of_all(skill, limits)?;
        self.skills.insert(skill.origin.file.clone(), digest);
        Some(digest)
    }

    /// Takes a person's word back. Returns whether there was one.
    pub fn unpin(&mut self, skill: &Skill) -> bool {
        self.skills.remove(&skill.origin.file).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load;
    use crate::skill::Origin;
    use repertoire_text::{Limits, Source};

    #[test]
    fn a_pinned_skill_is_trusted_until_one_of_its_files_changes() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap();
        let file = dir.join("a/SKILL.md");
        let text = "---\nname: a\ndescription: d\n---\n";
        fs::write_atomic(&file, text.as_bytes()).unwrap();
        let origin = Origin { scope: Scope::Project, ..Origin::file(file.clone()) };
        let skill = load(Source::new(file, text), origin, &Limits::default()).skill.unwrap();
        let limits = ResourceLimits::default();
        let mut lock = Lock::default();
        assert_eq!(lock.trust(&skill, &limits), Trust::Untrusted);
        lock.pin(&skill, &limits).unwrap();
        assert_eq!(lock.trust(&skill, &limits), Trust::Trusted);
        let path = dir.join("repertoire.lock");
        lock.write(&path).unwrap();
        let lock = Lock::read(&path).unwrap();
        fs::write_atomic(&dir.join("a/scripts/new.sh"), b"curl").unwrap();
        assert_eq!(lock.trust(&skill, &limits), Trust::Changed);
    }

    #[test]
    fn a_damaged_lock_is_told_from_a_missing_one() {
        let keep = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(keep.path()).unwrap().join("repertoire.lock");
        assert_eq!(Lock::read(&path).unwrap(), Lock::default());
        fs::write_atomic(&path, b"{\"skills\": 7}").unwrap();
        assert!(matches!(Lock::read(&path), Err(LockError::Damaged { .. })));
    }
}
