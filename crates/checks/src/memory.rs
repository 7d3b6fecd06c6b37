//! The memory of failures in a repository: which fixes worked before, which may be applied
//! automatically, and which are withheld and why. The journal stores and counts; the decisions are
//! made here.

use std::collections::BTreeSet;

use camino::Utf8Path;
use repertoire_journal::memory::FixOrigin;
use repertoire_journal::{FailureFilter, Journal, JournalError, KnownFailure, KnownFix};
use schemars::JsonSchema;
use serde::Serialize;

use super::error::{ParsedError, ReportingTool};
use super::signature::{compute_signature, normalise_message};
use crate::limits::{MEMORY_COMPARED_MAX, MEMORY_SIMILAR_MAX};
use repertoire_git::repo::{GitClient, GitError};

mod exchange;
pub(crate) mod fix_policy;
pub(crate) mod patch;

pub use self::exchange::{
    ExchangeError, MEMORY_VERSION, MemoryFile, MemoryImportResult, MemoryImportTrust,
    parse_memory_file,
};
pub use self::fix_policy::{
    FixState, FixTrustPolicy, refuse_automatic, refuse_to_remember, state_of,
};

/// The memory of one repository.
#[derive(Clone)]
pub struct FailureMemory {
    journal: Journal,
    scope: String,
    policy: FixTrustPolicy,
}

/// A fix that is offered.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FixOffer {
    /// The signature of the failure at hand.
    pub signature: String,
    /// The fix and its record.
    pub fix: KnownFix,
    /// The trust in the fix.
    pub state: FixState,
    /// Why the fix is offered.
    pub reason: String,
    /// The similarity to the failure that the fix is known from, from 0 to 1; absent if it is the
    /// same failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
}

/// A fix that is withheld.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WithheldFix {
    /// The signature of the failure at hand.
    pub signature: String,
    /// The id of the fix.
    pub id: String,
    /// The trust in the fix.
    pub state: FixState,
    /// The confidence in the fix, from 0 to 1.
    pub confidence: f64,
    /// Why the fix is withheld.
    pub reason: String,
}

/// The memory's knowledge about some failures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FixAdvice {
    /// Fixes that may help, the most trusted first.
    pub offers: Vec<FixOffer>,
    /// Fixes that are withheld.
    pub withheld: Vec<WithheldFix>,
    /// The signatures of failures that were not seen before.
    pub unknown: Vec<String>,
}

/// The fixes that a run has tried already, as pairs of signature and fix id.
pub type TriedFixes = BTreeSet<(String, String)>;

impl FailureMemory {
    pub fn new(journal: Journal, scope: impl Into<String>) -> Self {
        FailureMemory { journal, scope: scope.into(), policy: FixTrustPolicy::default() }
    }

    /// The name of the repository, as returned by [`scope_of`].
    pub fn scope(&self) -> &str {
        &self.scope
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The current trust in a fix, and the reason.
    pub fn state_of(&self, known: &KnownFix, now_ms: u64) -> (FixState, String) {
        state_of(known, now_ms, &self.policy)
    }

    /// Looks up fixes for these failures. Fixes in `tried` are withheld, since trying the same fix
    /// twice is pointless.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be used.
    pub async fn look_up(
        &self,
        errors: &[ParsedError],
        dir: &Utf8Path,
        tried: &TriedFixes,
        now_ms: u64,
    ) -> Result<FixAdvice, JournalError> {
        let mut advice = FixAdvice::default();
        let mut seen = BTreeSet::new();
        for error in errors {
            let name = compute_signature(error).to_string();
            if !seen.insert(name.clone()) {
                continue;
            }
            let failure = self.journal.find_failure(&self.scope, &name).await?;
            let fixes = self.journal.list_fixes(&self.scope, &name).await?;
            let look = FailureLookup { memory: self, name: &name, dir, tried, now_ms };
            match failure {
                Some(failure) if !fixes.is_empty() => {
                    look.add_exact(&failure, fixes, error.source, &mut advice);
                }
                failure => {
                    if failure.is_none() {
                        advice.unknown.push(name.clone());
                    }
                    look.add_similar(error, &mut advice).await?;
                }
            }
        }
        let rank =
            |offer: &FixOffer| (offer.state != FixState::Automatic, offer.similarity.is_some());
        advice.offers.sort_by(|a, b| {
            rank(a).cmp(&rank(b)).then(b.fix.confidence.total_cmp(&a.fix.confidence))
        });
        Ok(advice)
    }
}

/// The lookup of one failure.
struct FailureLookup<'a> {
    memory: &'a FailureMemory,
    name: &'a str,
    dir: &'a Utf8Path,
    tried: &'a TriedFixes,
    now_ms: u64,
}

impl FailureLookup<'_> {
    fn add_exact(
        &self,
        failure: &KnownFailure,
        fixes: Vec<KnownFix>,
        tool: ReportingTool,
        advice: &mut FixAdvice,
    ) {
        let same_tool = failure.tool == tool_name(tool);
        for fix in fixes {
            let (state, reason) = self.memory.state_of(&fix, self.now_ms);
            let (state, reason) = match state {
                FixState::Automatic if !same_tool => {
                    let why = format!("it is known from {}, not from this tool", failure.tool);
                    (FixState::Suggested, why)
                }
                state => (state, format!("same failure: {reason}")),
            };
            match self.withhold_reason(&fix, state) {
                Some(why) => advice.withheld.push(self.build_withheld(&fix, state, why)),
                // Built-in fixes are not offered: the strategies choose them, with the files of the
                // present change.
                None if fix.fix.origin == FixOrigin::Builtin => {}
                None => advice.offers.push(FixOffer {
                    signature: self.name.to_owned(),
                    fix,
                    state,
                    reason,
                    similarity: None,
                }),
            }
        }
    }

    /// Offers fixes of similar failures of the same category, never as more than suggestions.
    async fn add_similar(
        &self,
        error: &ParsedError,
        advice: &mut FixAdvice,
    ) -> Result<(), JournalError> {
        let filter = FailureFilter {
            scope: self.memory.scope.clone(),
            category: Some(error.category.as_str().to_owned()),
            limit: MEMORY_COMPARED_MAX,
            ..FailureFilter::default()
        };
        let known = self.memory.journal.list_failures(&filter).await?.items;
        let words = words_of(&error.message);
        let mut near: Vec<(f64, KnownFailure)> = known
            .into_iter()
            .filter(|failure| failure.signature != self.name)
            .map(|failure| (word_similarity(&words, &words_of(&failure.example)), failure))
            .filter(|(likeness, _)| *likeness >= 0.5)
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.signature.cmp(&b.1.signature)));
        let mut left = MEMORY_SIMILAR_MAX;
        for (likeness, failure) in near {
            let fixes =
                self.memory.journal.list_fixes(&self.memory.scope, &failure.signature).await?;
            let best =
                fixes.into_iter().filter(|fix| fix.fix.origin != FixOrigin::Builtin).find(|fix| {
                    self.withhold_reason(fix, self.memory.state_of(fix, self.now_ms).0).is_none()
                });
            let Some(fix) = best.filter(|_| left > 0) else { continue };
            left -= 1;
            advice.offers.push(FixOffer {
                signature: self.name.to_owned(),
                reason: format!("it helped against {}, which is alike", failure.signature),
                fix,
                state: FixState::Suggested,
                similarity: Some((likeness * 100.0).round() / 100.0),
            });
        }
        Ok(())
    }

    fn withhold_reason(&self, fix: &KnownFix, state: FixState) -> Option<String> {
        if state == FixState::Retired {
            return Some(format!("it failed {} of {} times", fix.failed, fix.tried));
        }
        if self.tried.contains(&(self.name.to_owned(), fix.id.clone())) {
            return Some("it was tried in this run".to_owned());
        }
        fix.fix.preconditions.iter().find_map(|condition| unmet_reason(condition, self.dir))
    }

    fn build_withheld(&self, fix: &KnownFix, state: FixState, reason: String) -> WithheldFix {
        WithheldFix {
            signature: self.name.to_owned(),
            id: fix.id.clone(),
            state,
            confidence: fix.confidence,
            reason,
        }
    }
}

/// The reason why a precondition does not hold. An unknown precondition never holds.
fn unmet_reason(condition: &str, dir: &Utf8Path) -> Option<String> {
    let Some(path) = condition.strip_prefix("exists ") else {
        return Some(format!("nobody knows whether this holds: {condition}"));
    };
    let path = Utf8Path::new(path.trim());
    let is_there = repertoire_text::fs::is_beneath(path) && dir.join(path).exists();
    (!is_there).then(|| format!("`{path}` does not exist"))
}

/// The serialised name of a tool.
pub(crate) fn tool_name(tool: ReportingTool) -> String {
    let name = serde_json::json!(tool);
    name.as_str().unwrap_or_default().to_owned()
}

fn words_of(message: &str) -> BTreeSet<String> {
    let text = normalise_message(message);
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1);
    words.map(str::to_owned).collect()
}

/// The Jaccard similarity of two sets of words.
fn word_similarity(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let all = one.union(other).count();
    match all {
        0 => 0.0,
        _ => one.intersection(other).count() as f64 / all as f64,
    }
}

/// The name of the repository that a checkout belongs to: its remote, or its path if it has none.
///
/// # Errors
///
/// Fails if git cannot be used.
pub async fn scope_of(git: &GitClient) -> Result<String, GitError> {
    let place = git.common_dir().await?;
    let origin = git.config_value("remote.origin.url").await?;
    let scope = origin.and_then(|url| remote_name(&url));
    Ok(scope.unwrap_or_else(|| format!("path:{place}")))
}

/// Converts a URL to `github.com/owner/name`, without credentials. `None` for a path, which is
/// meaningless on another machine.
fn remote_name(url: &str) -> Option<String> {
    let url = url.trim();
    let (host, path) = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split_once('/')?,
        None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?,
    };
    let host = host.rsplit('@').next()?;
    let path = path.trim_matches('/').trim_end_matches(".git");
    (!host.is_empty() && !path.is_empty()).then(|| format!("{host}/{path}").to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_known_by_where_it_comes_from() {
        for (url, scope) in [
            ("https://github.com/Somebody/Something.git", Some("github.com/somebody/something")),
            ("https://x-access-token:abc@github.com/a/b", Some("github.com/a/b")),
            ("git@github.com:a/b.git", Some("github.com/a/b")),
            ("ssh://git@host:22/a/b.git", Some("host:22/a/b")),
            ("/srv/git/a.git", None),
            ("file:///srv/git/a.git", None),
            ("../a", None),
        ] {
            assert_eq!(remote_name(url).as_deref(), scope, "{url}");
        }
    }

    #[test]
    fn a_precondition_is_checked_beneath_the_folder_only() {
        let dir = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(unmet_reason("exists Cargo.toml", dir), None);
        for not in
            ["exists nothing.toml", "exists ../drive/Cargo.toml", "exists /etc/passwd", "npm >= 9"]
        {
            assert!(unmet_reason(not, dir).is_some(), "{not}");
        }
    }

    #[test]
    fn likeness_is_a_share_of_words() {
        let one = words_of("cannot find module `left-pad` in scope");
        assert!(word_similarity(&one, &words_of("cannot find module `right-pad` in scope")) > 0.9);
        assert!(word_similarity(&one, &words_of("assertion failed")) < 0.1);
    }
}
