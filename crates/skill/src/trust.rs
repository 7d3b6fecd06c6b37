//! Trust: built-in skills and the user's own are trusted; those of projects and plugins only after the user
//! has agreed. The agreement is bound to the digest of every file, so a changed skill has to be trusted
//! again.
//!
//! The same holds for the settings of a project that start programs, widen the sandbox or open the network.
//!
//! The lock file lives with the user's configuration, never in a project, which could otherwise vouch for
//! itself.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{self, ReadError};
use repertoire_text::{Diagnostic, codes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::ResourceLimits;
use crate::resources::digest_all_files;
use crate::skill::{ContentDigest, Scope, Skill};

mod settings;

use self::settings::PinnedSettings;
pub use self::settings::{ActingSettings, SettingChange};

/// The maximum size of a lock file.
const LOCK_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The newest supported format.
const VERSION: u32 = 2;
/// The format of a lock without settings of projects, which earlier versions can read as well.
const VERSION_WITHOUT_PROJECTS: u32 = 1;

/// The trust in a skill, which decides whether it may be given capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrustLevel {
    /// Built in, the user's own, named by the user, or pinned.
    Trusted,
    /// Not trusted yet.
    Untrusted,
    /// Trusted before, but changed since.
    Changed,
}

/// The skills and settings that the user has agreed to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustLock {
    /// The format of the file.
    #[serde(default)]
    version: u32,
    /// The digest of all files of a skill, by the path of its main file.
    #[serde(default)]
    skills: BTreeMap<Utf8PathBuf, ContentDigest>,
    /// The acting settings that were agreed to, by the folder of the file that declares them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    projects: BTreeMap<Utf8PathBuf, PinnedSettings>,
}

/// The reason why a lock could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustLockError {
    #[error("{path} cannot be read: {source}")]
    Read { path: Utf8PathBuf, source: ReadError },
    #[error("{path} cannot be written: {source}")]
    Write { path: Utf8PathBuf, source: std::io::Error },
    /// The file is not a valid lock.
    #[error("{path} is damaged: {message}")]
    Damaged { path: Utf8PathBuf, message: String },
    /// A newer version of the program has written the file.
    #[error(
        "{path} has format {version}, written by a newer version; this one knows format {VERSION}"
    )]
    Newer {
        path: Utf8PathBuf,
        /// The format of the file.
        version: u32,
    },
}

impl TrustLockError {
    /// Help for a lock that cannot be read.
    pub const REMEDY: &str =
        "Nothing is trusted until it can be read: mend it, or move it away to start anew.";

    /// Converts the error to a diagnostic, for callers that continue without trust.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let path = match self {
            TrustLockError::Read { path, .. }
            | TrustLockError::Write { path, .. }
            | TrustLockError::Damaged { path, .. }
            | TrustLockError::Newer { path, .. } => path,
        };
        let message = format!("the lock that says what is trusted cannot be used: {self}");
        Diagnostic::new(&codes::UNREADABLE, message).in_file(path).help(Self::REMEDY)
    }
}

/// The part of a lock that every version has.
#[derive(Deserialize)]
struct LockVersion {
    #[serde(default)]
    version: u32,
}

impl TrustLock {
    /// Reads a lock; a missing one is empty. A damaged one, or one that a newer version has written, is an
    /// error and never overwritten.
    pub fn read(path: &Utf8Path) -> Result<Self, TrustLockError> {
        let text = match fs::read_text(path, LOCK_BYTES_MAX) {
            Ok(text) => text,
            Err(ReadError::NotFound) => return Ok(TrustLock::default()),
            Err(source) => return Err(TrustLockError::Read { path: path.to_owned(), source }),
        };
        // Check the version first: a newer format may contain what this one would consider damage.
        if let Ok(LockVersion { version }) = serde_json::from_str(&text)
            && version > VERSION
        {
            return Err(TrustLockError::Newer { path: path.to_owned(), version });
        }
        serde_json::from_str(&text).map_err(|error| TrustLockError::Damaged {
            path: path.to_owned(),
            message: error.to_string(),
        })
    }

    /// Reads the lock, lets `change` modify it and writes it, while other processes are kept out. Nothing is
    /// written if the change fails.
    pub fn update<T, E: From<TrustLockError>>(
        path: &Utf8Path,
        change: impl FnOnce(&mut TrustLock) -> Result<T, E>,
    ) -> Result<T, E> {
        let _guard = acquire_guard(path)
            .map_err(|source| TrustLockError::Write { path: path.to_owned(), source })?;
        let mut lock = TrustLock::read(path)?;
        let done = change(&mut lock)?;
        lock.write(path)?;
        Ok(done)
    }

    fn write(&self, path: &Utf8Path) -> Result<(), TrustLockError> {
        let failed = |source| TrustLockError::Write { path: path.to_owned(), source };
        let version = if self.projects.is_empty() { VERSION_WITHOUT_PROJECTS } else { VERSION };
        let lock = TrustLock { version, ..self.clone() };
        let mut text = serde_json::to_string_pretty(&lock).map_err(|error| failed(error.into()))?;
        text.push('\n');
        fs::write_atomic(path, text.as_bytes()).map_err(failed)
    }

    /// Returns the trust in a skill. Files are only read for skills that the lock contains.
    pub fn trust_in_skill(&self, skill: &Skill, limits: &ResourceLimits) -> TrustLevel {
        match skill.origin.scope {
            Scope::Builtin | Scope::User | Scope::Extra => TrustLevel::Trusted,
            Scope::Project | Scope::Plugin => match self.skills.get(&skill.origin.file) {
                None => TrustLevel::Untrusted,
                Some(pinned) if digest_all_files(skill, limits).as_ref() == Some(pinned) => {
                    TrustLevel::Trusted
                }
                Some(_) => TrustLevel::Changed,
            },
        }
    }

    /// Records the user's trust in a skill. Returns the digest, or `None` if not all files can be read.
    pub fn pin_skill(&mut self, skill: &Skill, limits: &ResourceLimits) -> Option<ContentDigest> {
        let digest = digest_all_files(skill, limits)?;
        self.skills.insert(skill.origin.file.clone(), digest);
        Some(digest)
    }

    /// Removes the trust in a skill. Returns true if it was recorded.
    pub fn unpin_skill(&mut self, skill: &Skill) -> bool {
        self.skills.remove(&skill.origin.file).is_some()
    }

    /// Returns the trust in the acting settings that a folder declares.
    pub fn trust_in_settings(&self, folder: &Utf8Path, settings: &ActingSettings) -> TrustLevel {
        match self.projects.get(folder) {
            None => TrustLevel::Untrusted,
            Some(pinned) if pinned.digest == settings.digest() => TrustLevel::Trusted,
            Some(_) => TrustLevel::Changed,
        }
    }

    /// Returns true if the user has agreed to the acting settings of these keys, as a folder declares them.
    /// Other keys may differ.
    pub fn covers_settings(
        &self,
        folder: &Utf8Path,
        settings: &ActingSettings,
        keys: &[&str],
    ) -> bool {
        self.projects.get(folder).is_some_and(|pinned| pinned.covers(settings, keys))
    }

    /// The acting settings of a folder that the user has agreed to.
    pub fn agreed_settings(&self, folder: &Utf8Path) -> Option<&ActingSettings> {
        self.projects.get(folder).map(|pinned| &pinned.settings)
    }

    /// Records the user's agreement to the acting settings that a folder declares.
    pub fn pin_settings(&mut self, folder: &Utf8Path, settings: &ActingSettings) {
        self.projects.insert(folder.to_owned(), PinnedSettings::from_settings(settings));
    }

    /// Removes the agreement. Returns true if there was one.
    pub fn unpin_settings(&mut self, folder: &Utf8Path) -> bool {
        self.projects.remove(folder).is_some()
    }
}

/// Waits until no other process is changing the lock, and keeps others waiting until the file is dropped. The
/// guard is a separate file, because the lock is replaced and not written in place. It is never removed,
/// since that would let two processes hold a guard of the same name.
fn acquire_guard(path: &Utf8Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let place = Utf8PathBuf::from(format!("{path}.guard"));
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(place)?;
    match file.lock() {
        // Some file systems do not support file locks; a single user can do without.
        Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(error),
        _ => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_skill;
    use crate::skill::SkillOrigin;
    use repertoire_text::{Limits, Source};

    #[test]
    fn a_pinned_skill_is_trusted_until_one_of_its_files_changes() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap();
        let file = dir.join("a/SKILL.md");
        let text = "---\nname: a\ndescription: d\n---\n";
        fs::write_atomic(&file, text.as_bytes()).unwrap();
        let origin = SkillOrigin { scope: Scope::Project, ..SkillOrigin::from_file(file.clone()) };
        let skill = load_skill(Source::new(file, text), origin, &Limits::default()).skill.unwrap();
        let limits = ResourceLimits::default();
        let mut lock = TrustLock::default();
        assert_eq!(lock.trust_in_skill(&skill, &limits), TrustLevel::Untrusted);
        lock.pin_skill(&skill, &limits).unwrap();
        assert_eq!(lock.trust_in_skill(&skill, &limits), TrustLevel::Trusted);
        let path = dir.join("repertoire.lock");
        lock.write(&path).unwrap();
        let lock = TrustLock::read(&path).unwrap();
        fs::write_atomic(&dir.join("a/scripts/new.sh"), b"curl").unwrap();
        assert_eq!(lock.trust_in_skill(&skill, &limits), TrustLevel::Changed);
    }

    #[test]
    fn settings_are_agreed_to_until_one_of_them_changes() {
        let keep = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(keep.path()).unwrap().join("repertoire.lock");
        let folder = Utf8Path::new("/project");
        let key = "plan.checks.test.command";
        let settings = ActingSettings::from_iter([(key, "\"cargo test\"")]);
        let mut lock = TrustLock::default();
        assert_eq!(lock.trust_in_settings(folder, &settings), TrustLevel::Untrusted);
        lock.pin_settings(folder, &settings);
        lock.write(&path).unwrap();
        let mut lock = TrustLock::read(&path).unwrap();
        assert_eq!(lock.trust_in_settings(folder, &settings), TrustLevel::Trusted);
        assert_eq!(lock.trust_in_settings("/other".into(), &settings), TrustLevel::Untrusted);
        let changed = ActingSettings::from_iter([(key, "\"curl evil.example\"")]);
        assert_eq!(lock.trust_in_settings(folder, &changed), TrustLevel::Changed);
        assert_eq!(lock.agreed_settings(folder), Some(&settings));
        assert!(lock.unpin_settings(folder) && !lock.unpin_settings(folder));
        lock.write(&path).unwrap();
        assert!(fs::read_text(&path, 999).unwrap().contains("\"version\": 1"));
    }

    #[test]
    fn a_damaged_lock_is_told_from_a_missing_one() {
        let keep = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(keep.path()).unwrap().join("repertoire.lock");
        assert_eq!(TrustLock::read(&path).unwrap(), TrustLock::default());
        fs::write_atomic(&path, b"{\"skills\": 7}").unwrap();
        assert!(matches!(TrustLock::read(&path), Err(TrustLockError::Damaged { .. })));
    }

    #[test]
    fn a_lock_of_a_newer_version_is_refused_and_left_as_it_is() {
        let keep = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(keep.path()).unwrap().join("repertoire.lock");
        let text = "{\"version\": 3, \"keys\": []}";
        fs::write_atomic(&path, text.as_bytes()).unwrap();
        let updated = TrustLock::update(&path, |_| Ok::<_, TrustLockError>(()));
        let error = updated.unwrap_err().to_string();
        assert!(
            error.ends_with("has format 3, written by a newer version; this one knows format 2")
        );
        assert_eq!(fs::read_text(&path, 99).unwrap(), text);
    }

    #[test]
    fn many_who_change_the_lock_at_once_lose_no_word() {
        let keep = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(keep.path()).unwrap().join("new/repertoire.lock");
        let add = |number: usize| {
            TrustLock::update(&path, |lock| {
                let file = Utf8PathBuf::from(format!("/{number}/SKILL.md"));
                lock.skills.insert(file, ContentDigest::hash_bytes(b""));
                Ok::<_, TrustLockError>(())
            })
            .unwrap();
        };
        std::thread::scope(|scope| {
            (0..8).for_each(|number| drop(scope.spawn(move || add(number))));
        });
        assert_eq!(TrustLock::read(&path).unwrap().skills.len(), 8);
        let failed = TrustLock::update(&path, |lock| {
            lock.skills.clear();
            let path = path.clone();
            Err::<(), _>(TrustLockError::Damaged { path, message: "no".to_owned() })
        });
        assert!(failed.is_err());
        assert_eq!(TrustLock::read(&path).unwrap().skills.len(), 8);
    }
}
