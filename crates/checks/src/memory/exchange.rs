//! Export and import of the memory as a file, for inspection or for use on another machine.

use std::collections::BTreeMap;

use repertoire_journal::memory::FixOrigin;
use repertoire_journal::{FailureFilter, JournalError, KnownFailure, KnownFix, MemoryLesson};
use repertoire_text::invisible;
use repertoire_text::secrets::redact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::signature::FailureSignature;
use super::{FailureMemory, refuse_to_remember};
use crate::limits::MEMORY_FAILURES_MAX;

pub const MEMORY_VERSION: u32 = 1;

/// The memory of a repository, as a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryFile {
    /// The version of this format.
    pub version: u32,
    /// The name of the repository.
    pub scope: String,
    /// The failures, the most frequent first: a list of what the project should prevent.
    pub failures: Vec<MemoryFileEntry>,
}

/// A failure with all fixes that were tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryFileEntry {
    /// The failure.
    pub failure: KnownFailure,
    /// The fix that worked, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helped: Option<String>,
    /// The fixes, the most trusted first.
    pub fixes: Vec<KnownFix>,
}

/// The trust in an imported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryImportTrust {
    /// Its records are taken over. For one's own file, such as a cache.
    Records,
    /// Its fixes are suggestions until they have worked here.
    Nothing,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryImportResult {
    /// The number of imported failures.
    pub failures: usize,
    /// The number of imported fixes.
    pub fixes: usize,
    /// Descriptions of what was left out, and why.
    pub left_out: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    #[error("this is no memory as `rep verify memory export` writes it: {0}")]
    Shape(serde_json::Error),
    /// The file was written by a newer version.
    #[error("this memory has version {found}, and this `rep` knows {MEMORY_VERSION}")]
    Version { found: u64 },
    #[error("this memory has {count} failures, and at most {MEMORY_FAILURES_MAX} are taken")]
    TooMany { count: usize },
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Parses a memory file.
///
/// # Errors
///
/// Fails if the file is not a memory file, is too new, or has too many failures.
pub fn parse_memory_file(text: &str) -> Result<MemoryFile, ExchangeError> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(ExchangeError::Shape)?;
    let found = value.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if found > u64::from(MEMORY_VERSION) {
        return Err(ExchangeError::Version { found });
    }
    let file: MemoryFile = serde_json::from_value(value).map_err(ExchangeError::Shape)?;
    match file.failures.len() {
        count if count > MEMORY_FAILURES_MAX => Err(ExchangeError::TooMany { count }),
        _ => Ok(file),
    }
}

impl FailureMemory {
    /// Exports all failures and fixes.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be used.
    pub async fn export(&self) -> Result<MemoryFile, JournalError> {
        let scope = self.scope.clone();
        let mut filter = FailureFilter { scope: scope.clone(), ..FailureFilter::default() };
        let mut failures = Vec::new();
        while failures.len() < MEMORY_FAILURES_MAX {
            let page = self.journal.list_failures(&filter).await?;
            for failure in page.items {
                let fixes = self.journal.list_fixes(&scope, &failure.signature).await?;
                let helped = fixes.iter().find(|fix| fix.worked > 0).map(summarise_fix);
                failures.push(MemoryFileEntry { failure, helped, fixes });
            }
            match page.next {
                Some(next) => filter.after = next,
                None => break,
            }
        }
        failures.truncate(MEMORY_FAILURES_MAX);
        Ok(MemoryFile { version: MEMORY_VERSION, scope, failures })
    }

    /// Imports a file into the memory of this repository. Existing records are kept; of two records
    /// of one fix, the one with more attempts wins.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be used; nothing is stored then.
    pub async fn import(
        &self,
        file: MemoryFile,
        trust: MemoryImportTrust,
    ) -> Result<MemoryImportResult, ExchangeError> {
        let mut imported = MemoryImportResult::default();
        let mut lessons: BTreeMap<String, MemoryLesson> = BTreeMap::new();
        for entry in file.failures {
            let name = entry.failure.signature.clone();
            if name.parse::<FailureSignature>().is_err() {
                imported.left_out.push(format!("`{}` is no signature", displayable_text(&name)));
                continue;
            }
            let mut fixes = Vec::new();
            for fix in entry.fixes {
                match refuse_to_remember(&fix.fix) {
                    Some(why) => imported.left_out.push(format!("a fix for {name}: {why}")),
                    None => fixes.push(apply_trust(fix, trust)),
                }
            }
            match lessons.get_mut(&name) {
                // A failure may occur twice, for instance if two files were concatenated by hand.
                Some(known) => {
                    known.failure.seen = known.failure.seen.max(entry.failure.seen);
                    fixes.retain(|fix| known.fixes.iter().all(|other| other.id != fix.id));
                    known.fixes.extend(fixes);
                }
                None => drop(lessons.insert(name, MemoryLesson { failure: entry.failure, fixes })),
            }
        }
        imported.failures = lessons.len();
        imported.fixes = lessons.values().map(|lesson| lesson.fixes.len()).sum();
        self.journal.store_lessons(&self.scope, lessons.into_values().collect()).await?;
        Ok(imported)
    }
}

/// Resets the record of a fix that was verified elsewhere, so that it is only a suggestion here.
fn apply_trust(fix: KnownFix, trust: MemoryImportTrust) -> KnownFix {
    match trust {
        MemoryImportTrust::Records => fix,
        MemoryImportTrust::Nothing => {
            let origin = match fix.fix.origin {
                FixOrigin::Builtin => FixOrigin::Builtin,
                FixOrigin::Learnt | FixOrigin::Taught => FixOrigin::Learnt,
            };
            let fresh = repertoire_journal::FailureFix { origin, ..fix.fix };
            KnownFix::new(fresh, fix.added_ms)
        }
    }
}

fn summarise_fix(fix: &KnownFix) -> String {
    let text = redact(&fix.fix.remedy.to_text()).into_owned();
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    format!("{}: {}", fix.fix.remedy.kind(), displayable_text(first))
}

fn displayable_text(text: &str) -> String {
    invisible::shown(text).chars().filter(|c| !c.is_control()).take(120).collect()
}
