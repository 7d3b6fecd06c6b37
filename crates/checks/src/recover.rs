//! Recovery: what failed is mended by what helped before or by the tool's own correction, and by nothing that cannot be
//! undone. An attempt is a success when the checks say so; until then it is an attempt.
//!
//! Every attempt is named, backed up, applied in the sandbox, looked at, and verified; what did not help is taken back, and
//! it is made sure that the files are as before. Only then there is something to record. Asking an agent and giving up are
//! the caller's: this says when their time has come.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use repertoire_sandbox::workplace::Workplace;
use repertoire_journal::memory::FixOrigin;
use repertoire_journal::{Fix, FixOutcome, JournalError, Payload, Remedy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::ParsedError;
use super::memory::{Advice, Memory, Tried, tool_name};
use super::signature::{Fingerprint, fingerprints, signature};
use crate::declared::{Check, CheckError, CheckEvent, CheckResult, CheckStatus, Verdict};
use repertoire_git::repo::{Git, GitError, Oid};
use crate::limits::{RECOVER_ATTEMPTS_MAX, RECOVER_ATTEMPTS_TOTAL_MAX, RECOVER_FAILURES_MAX, RECOVER_TIMEOUT, RECOVER_WAIT_MAX};

mod attempt;
mod backup;
mod classify;
mod facts;
mod inspect;
mod install;
mod learn;
mod learned;
mod limit;
mod linter;
mod session;

pub use self::backup::Backup;
pub use self::classify::{Class, classify};
pub use self::facts::Facts;
pub use self::learn::{Learnt, learn};
pub use self::limit::{Backoff, is_limit, wait_for_limit};

/// A way out of a failure, in the order in which they are preferred.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Wait until a limit ends.
    WaitForLimit,
    /// Wait a little, and look again.
    Backoff,
    /// Install what the manifest names and the lock file pins.
    InstallDependency,
    /// Let the linter mend it.
    LinterFix,
    /// Apply what helped before.
    LearnedFix,
}

impl Strategy {
    /// All of them.
    pub const ALL: &[Strategy] = &[
        Strategy::WaitForLimit,
        Strategy::Backoff,
        Strategy::InstallDependency,
        Strategy::LinterFix,
        Strategy::LearnedFix,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Strategy::WaitForLimit => "wait_for_limit",
            Strategy::Backoff => "backoff",
            Strategy::InstallDependency => "install_dependency",
            Strategy::LinterFix => "linter_fix",
            Strategy::LearnedFix => "learned_fix",
        }
    }
}

/// The bounds of recovery.
#[derive(Clone, Debug)]
pub struct RecoverRules {
    /// Attempts at one failure.
    pub attempts_max: u32,
    /// Attempts in all.
    pub attempts_total_max: u32,
    /// What may be tried.
    pub strategies: BTreeSet<Strategy>,
    /// Whether what mends may reach the network.
    pub network: bool,
    /// How long is waited at most; what takes longer is put off.
    pub wait_max: Duration,
    /// How long a program that mends may take.
    pub timeout: Duration,
    /// Checks that run at once.
    pub parallel: usize,
}

impl Default for RecoverRules {
    fn default() -> Self {
        RecoverRules {
            attempts_max: RECOVER_ATTEMPTS_MAX,
            attempts_total_max: RECOVER_ATTEMPTS_TOTAL_MAX,
            strategies: Strategy::ALL.iter().copied().collect(),
            network: false,
            wait_max: RECOVER_WAIT_MAX,
            timeout: RECOVER_TIMEOUT,
            parallel: 1,
        }
    }
}

/// Reads errors from what a check said.
pub type Analyse<'a> = dyn Fn(&CheckResult) -> Vec<ParsedError> + Sync + 'a;

/// What is to be recovered.
pub struct RecoverRequest<'a> {
    /// The checkout that the work is in.
    pub git: &'a Git,
    /// Where programs run; the same folder.
    pub workplace: &'a Workplace,
    /// The checks that have to pass, all of them.
    pub checks: &'a [Check],
    /// What they said: it is red.
    pub verdict: &'a Verdict,
    /// How errors are read from it.
    pub analyse: &'a Analyse<'a>,
    /// What is known.
    pub memory: &'a Memory,
    /// The bounds.
    pub rules: &'a RecoverRules,
    /// What this run has tried already.
    pub tried: Tried,
    /// The commit before the present change.
    pub base: &'a Oid,
    /// The commit before everything that agents did: only what it declares is installed.
    pub declared: &'a Oid,
    /// Ends it.
    pub cancel: &'a CancellationToken,
    /// Hears what happens.
    pub on_event: &'a (dyn Fn(RecoverEvent) + Sync),
    /// Milliseconds since 1970.
    pub clock: &'a (dyn Fn() -> u64 + Sync),
    /// From 0 to 1, by chance.
    pub jitter: f64,
}

/// What happens while something is recovered.
#[derive(Clone, Debug, PartialEq)]
pub enum RecoverEvent {
    /// An attempt begins.
    Trying {
        /// The failure.
        signature: String,
        /// How.
        strategy: Strategy,
        /// What is done.
        what: String,
    },
    /// It is over.
    Tried(Attempt),
    /// Nothing is done for a while.
    Waiting {
        /// How long.
        length: Duration,
        /// Why.
        why: String,
    },
    /// Something of the checks.
    Check(CheckEvent),
}

/// An attempt, as it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// The failure that it was for.
    pub signature: String,
    /// What kind of failure that is.
    pub class: Class,
    /// How.
    pub strategy: Strategy,
    /// What was done; nothing for a wait.
    pub fix: Option<Fix>,
    /// The commit that has everything as it was before.
    pub backup: Option<String>,
    /// Files that it changed.
    pub changed: Vec<String>,
    /// What the checks said.
    pub outcome: FixOutcome,
    /// What was seen.
    pub reason: String,
    /// How long it took, the checks included.
    pub seconds: f64,
}

/// How a recovery ended.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// All checks pass. What has changed is in the files, and not committed.
    Green,
    /// They do not: an agent has to be asked.
    Red {
        /// Why nothing more is tried.
        reason: String,
    },
    /// It makes sense to look again later.
    Deferred {
        /// When, in milliseconds since 1970.
        until_ms: u64,
        /// Why.
        reason: String,
    },
    /// Only a person can help.
    Permanent {
        /// Why.
        reason: String,
    },
}

/// What came of a recovery.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// What was tried, in this order.
    pub attempts: Vec<Attempt>,
    /// How it ended.
    pub state: State,
    /// What is to be recorded, now that the checks have spoken.
    pub payloads: Vec<Payload>,
    /// What the memory suggests to whoever goes on.
    pub advice: Advice,
    /// What the checks said last.
    pub verdict: Verdict,
    /// What this run has tried by now.
    pub tried: Tried,
}

/// Something that was not done.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// Git did not do it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The checks make no sense.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The memory cannot be asked.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The files are not as they were before. Nothing must be written until a person has looked.
    #[error(
        "what was tried could not be taken back, so stop here: the files as they were are in the commit {backup} ({why})"
    )]
    NotRolledBack {
        /// The commit.
        backup: String,
        /// What is wrong.
        why: String,
    },
}

/// An error of a check that is red.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) check: String,
    pub(crate) command: String,
    pub(crate) signature: String,
    pub(crate) class: Class,
    pub(crate) error: ParsedError,
}

impl Found {
    pub(crate) fn new(check: &str, command: &str, error: ParsedError, output: &str) -> Self {
        Found {
            check: check.to_owned(),
            command: command.to_owned(),
            signature: signature(&error).to_string(),
            class: classify(&error, output),
            error,
        }
    }
}

/// What checks said, as far as it is red.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    pub(crate) verdict: Verdict,
    pub(crate) found: Vec<Found>,
}

impl Red {
    pub(crate) fn of(verdict: Verdict, analyse: &Analyse<'_>) -> Self {
        let mut found: Vec<Found> = Vec::new();
        let failed = verdict.results.iter().filter(|result| has_failed(result));
        for result in failed.filter(|result| result.critical) {
            let errors = analyse(result).into_iter();
            found.extend(
                errors
                    .map(|error| Found::new(&result.name, &result.command, error, &result.output)),
            );
        }
        Red { verdict, found }
    }

    pub(crate) fn has(&self, signature: &str) -> bool {
        self.found.iter().any(|found| found.signature == signature)
    }

    /// How often each failure is there, and where.
    pub(crate) fn fingerprints(&self) -> BTreeMap<Fingerprint, usize> {
        fingerprints(self.found.iter().map(|found| (found.check.as_str(), &found.error)))
    }

    /// Whether nothing of a failure has gone since.
    pub(crate) fn is_still_there(&self, after: &Red, signature: &str) -> bool {
        let after = after.fingerprints();
        let before = self.fingerprints();
        let mut mine = before.keys().filter(|one| one.signature.to_string() == signature);
        mine.all(|one| after.contains_key(one))
    }

    /// What the checks said in all.
    pub(crate) fn output(&self) -> String {
        let failed = self.verdict.results.iter().filter(|result| has_failed(result));
        failed.map(|result| format!("{}\n{}\n", result.output, result.telling.join("\n"))).collect()
    }
}

pub fn has_failed(result: &CheckResult) -> bool {
    matches!(result.status, CheckStatus::Failed | CheckStatus::TimedOut)
}

/// Something that is to be tried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Action {
    pub(crate) signature: String,
    pub(crate) class: Class,
    pub(crate) strategy: Strategy,
    /// What is recorded of it.
    pub(crate) fix: Fix,
    /// The files that a program of ours is given besides: those of the present change, and none of the record.
    pub(crate) files: Vec<String>,
}

pub(crate) fn builtin(words: Vec<String>) -> Fix {
    Fix { remedy: Remedy::Command(words), preconditions: Vec::new(), origin: FixOrigin::Builtin }
}

/// Mends what can be mended without an agent.
///
/// # Errors
///
/// When git, the journal or the checks cannot be used, and above all [`RecoverError::NotRolledBack`].
pub async fn recover(request: RecoverRequest<'_>) -> Result<Recovered, RecoverError> {
    let red = Red::of(request.verdict.clone(), request.analyse);
    let payloads = seen(&red, request.memory.scope());
    let tried = request.tried.clone();
    let session = session::Session {
        request: &request,
        red,
        payloads,
        tried,
        attempts: Vec::new(),
        waits: 0,
    };
    session.run().await
}

/// The failures that are remembered. What comes of the surroundings is none of the project's.
fn seen(red: &Red, scope: &str) -> Vec<Payload> {
    let mut known = BTreeSet::new();
    let lasting = red
        .found
        .iter()
        .filter(|found| !matches!(found.class, Class::Transient | Class::Permanent));
    let new = lasting.filter(|found| known.insert(found.signature.clone()));
    let payloads = new.take(RECOVER_FAILURES_MAX).map(|found| Payload::FailureSeen {
        scope: scope.to_owned(),
        signature: found.signature.clone(),
        category: found.error.category.as_str().to_owned(),
        code: found.error.code.clone(),
        tool: tool_name(found.error.source),
        example: found.error.message.clone(),
    });
    payloads.collect()
}

pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}
