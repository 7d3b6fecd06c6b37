//! The memory as a file, so that it can be looked at, or carried from one machine to another.

use std::collections::BTreeMap;

use repertoire_journal::memory::FixOrigin;
use repertoire_journal::{Failure, FailureFilter, JournalError, KnownFix, Lesson};
use repertoire_text::invisible;
use repertoire_text::secrets::redact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::signature::Signature;
use super::{Memory, refuse_to_remember};
use crate::limits::MEMORY_FAILURES_MAX;

/// The version of the file.
pub const MEMORY_VERSION: u32 = 1;

/// The memory of a repository, as a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exchanged {
    /// The version of this shape.
    pub version: u32,
    /// The repository that it is about.
    pub scope: String,
    /// The failures, the most frequent first: a list of what the project ought to prevent.
    pub failures: Vec<Entry>,
}

/// A failure with all that was tried against it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The failure.
    pub failure: Failure,
    /// What finally helped, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helped: Option<String>,
    /// The fixes, the most trusted first.
    pub fixes: Vec<KnownFix>,
}

/// How far what comes from elsewhere is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Its records stand. For a file of one's own: a cache, for instance.
    Records,
    /// Its fixes are suggestions until they have worked here.
    Nothing,
}

/// What became of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Imported {
    /// Failures that were taken.
    pub failures: usize,
    /// Fixes that were taken.
    pub fixes: usize,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}

/// A file that is no memory.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// It has another shape.
    #[error("this is no memory as `rep memory export` writes it: {0}")]
    Shape(serde_json::Error),
    /// It is of another version.
    #[error("this memory has version {found}, and this `rep` knows {MEMORY_VERSION}")]
    Version {
        /// The version.
        found: u64,
    },
    /// It is too large.
    #[error("this memory has {count} failures, and at most {MEMORY_FAILURES_MAX} are taken")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// The journal did not take it.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Reads a file.
///
/// # Errors
///
/// When it is none of ours.
pub fn parse(text: &str) -> Result<Exchanged, ExchangeError> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(ExchangeError::Shape)?;
    let found = value.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if found > u64::from(MEMORY_VERSION) {
        return Err(ExchangeError::Version { found });
    }
    let file: Exchanged = serde_json::from_value(value).map_err(ExchangeError::Shape)?;
    match file.failures.len() {
        count if count > MEMORY_FAILURES_MAX => Err(ExchangeError::TooMany { count }),
        _ => Ok(file),
    }
}

impl Memory {
    /// All that is known, as a file.
    ///
    /// # Errors
    ///
    /// When the journal cannot be used.
    pub async fn export(&self) -> Result<Exchanged, JournalError> {
        let scope = self.scope.clone();
        let mut filter = FailureFilter { scope: scope.clone(), ..FailureFilter::default() };
        let mut failures = Vec::new();
        while failures.len() < MEMORY_FAILURES_MAX {
            let page = self.journal.failures(&filter).await?;
            for failure in page.items {
                let fixes = self.journal.fixes(&scope, &failure.signature).await?;
                let helped = fixes.iter().find(|fix| fix.worked > 0).map(in_a_line);
                failures.push(Entry { failure, helped, fixes });
            }
            match page.next {
                Some(next) => filter.after = next,
                None => break,
            }
        }
        failures.truncate(MEMORY_FAILURES_MAX);
        Ok(Exchanged { version: MEMORY_VERSION, scope, failures })
    }

    /// Takes what a file says into the memory of this repository. What is known here stands; of two records of one fix it is
    /// the one with more tries.
    ///
    /// # Errors
    ///
    /// When the journal does not take it; nothing of it is stored then.
    pub async fn import(&self, file: Exchanged, trust: Trust) -> Result<Imported, ExchangeError> {
        let mut imported = Imported::default();
        let mut lessons: BTreeMap<String, Lesson> = BTreeMap::new();
        for entry in file.failures {
            let name = entry.failure.signature.clone();
            if name.parse::<Signature>().is_err() {
                imported.left_out.push(format!("`{}` is no signature", shown(&name)));
                continue;
            }
            let mut fixes = Vec::new();
            for fix in entry.fixes {
                match refuse_to_remember(&fix.fix) {
                    Some(why) => imported.left_out.push(format!("a fix for {name}: {why}")),
                    None => fixes.push(believed(fix, trust)),
                }
            }
            match lessons.get_mut(&name) {
                // Two files may have been put together by hand.
                Some(known) => {
                    known.failure.seen = known.failure.seen.max(entry.failure.seen);
                    fixes.retain(|fix| known.fixes.iter().all(|other| other.id != fix.id));
                    known.fixes.extend(fixes);
                }
                None => drop(lessons.insert(name, Lesson { failure: entry.failure, fixes })),
            }
        }
        imported.failures = lessons.len();
        imported.fixes = lessons.values().map(|lesson| lesson.fixes.len()).sum();
        self.journal.remember(&self.scope, lessons.into_values().collect()).await?;
        Ok(imported)
    }
}

/// What somebody else has verified is no more than a suggestion here.
fn believed(fix: KnownFix, trust: Trust) -> KnownFix {
    match trust {
        Trust::Records => fix,
        Trust::Nothing => {
            let origin = match fix.fix.origin {
                FixOrigin::Builtin => FixOrigin::Builtin,
                FixOrigin::Learnt | FixOrigin::Taught => FixOrigin::Learnt,
            };
            let fresh = repertoire_journal::Fix { origin, ..fix.fix };
            KnownFix::new(fresh, fix.added_ms)
        }
    }
}

fn in_a_line(fix: &KnownFix) -> String {
    let text = redact(&fix.fix.remedy.text()).into_owned();
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    format!("{}: {}", fix.fix.remedy.kind(), shown(first))
}

fn shown(text: &str) -> String {
    invisible::shown(text).chars().filter(|c| !c.is_control()).take(120).collect()
}
