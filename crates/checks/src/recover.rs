//! Recovery: repairs failures with fixes that worked before or with a tool's own corrections, and
//! with nothing that cannot be undone. An attempt succeeds only if the checks confirm it.
//!
//! Every attempt is announced, backed up, applied in the sandbox, inspected and verified. If it did
//! not help, it is rolled back, and the files are compared with the backup. Only then is it
//! recorded. Asking an agent or giving up is left to the caller; the result tells when it is time
//! to do so.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use repertoire_journal::memory::FixOrigin;
use repertoire_journal::{FailureFix, FixOutcome, FixRemedy, JournalError, Payload};
use repertoire_sandbox::workplace::RunWorkplace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::ParsedError;
use super::memory::{FailureMemory, FixAdvice, TriedFixes, tool_name};
use super::signature::{FailureFingerprint, compute_signature, count_fingerprints};
use crate::declared::{
    CheckDefinition, CheckError, CheckEvent, CheckRunResult, CheckRunVerdict, CheckStatus,
};
use crate::limits::{
    RECOVER_ATTEMPTS_MAX, RECOVER_ATTEMPTS_TOTAL_MAX, RECOVER_FAILURES_MAX, RECOVER_TIMEOUT,
    RECOVER_WAIT_MAX,
};
use repertoire_git::repo::{GitClient, GitError, GitObjectId};

mod attempt;
mod backup;
mod classify;
mod facts;
mod inspect;
mod install;
mod learn;
mod learned_fix;
mod linter;
mod rate_limit;
mod session;

pub use self::backup::WorkBackup;
pub use self::classify::{FailureClass, classify_error};
pub use self::facts::ProjectFacts;
pub use self::learn::{LearntFix, learn_fix};
pub use self::rate_limit::{RetryBackoff, is_limit, wait_for_limit};

/// The strategies for recovery, in order of preference.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RecoverStrategy {
    /// Wait until a rate limit resets.
    WaitForLimit,
    /// Wait a little and run the checks again.
    Backoff,
    /// Install what the manifest declares and the lock file pins.
    InstallDependency,
    /// Let the linter fix its findings.
    LinterFix,
    /// Apply a fix that worked before.
    LearnedFix,
}

impl RecoverStrategy {
    pub const ALL: &[RecoverStrategy] = &[
        RecoverStrategy::WaitForLimit,
        RecoverStrategy::Backoff,
        RecoverStrategy::InstallDependency,
        RecoverStrategy::LinterFix,
        RecoverStrategy::LearnedFix,
    ];

    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            RecoverStrategy::WaitForLimit => "wait_for_limit",
            RecoverStrategy::Backoff => "backoff",
            RecoverStrategy::InstallDependency => "install_dependency",
            RecoverStrategy::LinterFix => "linter_fix",
            RecoverStrategy::LearnedFix => "learned_fix",
        }
    }
}

/// The limits of a recovery.
#[derive(Clone, Debug)]
pub struct RecoverRules {
    /// Maximum number of attempts per failure.
    pub attempts_max: u32,
    /// Maximum number of attempts in total.
    pub attempts_total_max: u32,
    /// The allowed strategies.
    pub strategies: BTreeSet<RecoverStrategy>,
    /// True if fixes may use the network.
    pub network: bool,
    /// Maximum time to wait; for a longer wait the run is deferred.
    pub wait_max: Duration,
    /// Timeout of a program that applies a fix.
    pub timeout: Duration,
    /// Maximum number of concurrent checks.
    pub parallel: usize,
}

impl Default for RecoverRules {
    fn default() -> Self {
        RecoverRules {
            attempts_max: RECOVER_ATTEMPTS_MAX,
            attempts_total_max: RECOVER_ATTEMPTS_TOTAL_MAX,
            strategies: RecoverStrategy::ALL.iter().copied().collect(),
            network: false,
            wait_max: RECOVER_WAIT_MAX,
            timeout: RECOVER_TIMEOUT,
            parallel: 1,
        }
    }
}

/// Extracts errors from the output of a check.
pub type AnalyseFn<'a> = dyn Fn(&CheckRunResult) -> Vec<ParsedError> + Sync + 'a;

pub struct RecoverRequest<'a> {
    /// The checkout with the work.
    pub git: &'a GitClient,
    /// The workplace for programs, in the same folder.
    pub workplace: &'a RunWorkplace,
    /// All checks that have to pass.
    pub checks: &'a [CheckDefinition],
    /// The failed result of the checks.
    pub verdict: &'a CheckRunVerdict,
    pub analyse: &'a AnalyseFn<'a>,
    pub memory: &'a FailureMemory,
    pub rules: &'a RecoverRules,
    /// The fixes that this run has already tried.
    pub tried: TriedFixes,
    /// The commit before the present change.
    pub base: &'a GitObjectId,
    /// The commit before all changes by agents. Only dependencies declared there are installed.
    pub declared: &'a GitObjectId,
    pub cancel: &'a CancellationToken,
    pub on_event: &'a (dyn Fn(RecoverEvent) + Sync),
    /// Returns milliseconds since 1970.
    pub clock: &'a (dyn Fn() -> u64 + Sync),
    /// A random number from 0 to 1.
    pub jitter: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RecoverEvent {
    /// An attempt starts.
    Trying {
        signature: String,
        strategy: RecoverStrategy,
        /// A description of the fix.
        what: String,
    },
    /// An attempt has ended.
    Tried(RecoverAttempt),
    Waiting {
        length: Duration,
        why: String,
    },
    /// An event of the checks.
    Check(CheckEvent),
}

/// A completed attempt to recover.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecoverAttempt {
    /// The signature of the failure.
    pub signature: String,
    /// The class of the failure.
    pub class: FailureClass,
    /// The strategy.
    pub strategy: RecoverStrategy,
    /// The applied fix; absent if the attempt was a wait.
    pub fix: Option<FailureFix>,
    /// The commit with the state before the attempt.
    pub backup: Option<String>,
    /// The files that the attempt changed.
    pub changed: Vec<String>,
    /// The result according to the checks.
    pub outcome: FixOutcome,
    /// The reason for the outcome.
    pub reason: String,
    /// The duration in seconds, including the checks.
    pub seconds: f64,
}

/// The state in which a recovery ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RecoverState {
    /// All checks pass. The changes are in the files, not committed.
    Green,
    /// Checks still fail. An agent has to continue.
    Red {
        /// The reason why nothing more is tried.
        reason: String,
    },
    /// Try again later.
    Deferred {
        /// When, in milliseconds since 1970.
        until_ms: u64,
        reason: String,
    },
    /// Only a person can help.
    Permanent { reason: String },
}

#[derive(Clone, Debug)]
pub struct RecoverResult {
    /// In chronological order.
    pub attempts: Vec<RecoverAttempt>,
    pub state: RecoverState,
    /// The events to record, now that the checks have confirmed the outcomes.
    pub payloads: Vec<Payload>,
    /// Fixes to suggest to the agent that continues.
    pub advice: FixAdvice,
    /// The last result of the checks.
    pub verdict: CheckRunVerdict,
    /// The fixes that this run has tried, including earlier recoveries.
    pub tried: TriedFixes,
}

#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    #[error(transparent)]
    Git(#[from] GitError),
    /// The checks are invalid.
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The rollback failed, so the files differ from the backup. Write nothing until a person has
    /// examined them.
    #[error(
        "what was tried could not be taken back, so stop here: the files as they were are in the commit {backup} ({why})"
    )]
    NotRolledBack { backup: String, why: String },
}

/// An error of a failed check.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CheckFailure {
    pub(crate) check: String,
    pub(crate) command: String,
    pub(crate) signature: String,
    pub(crate) class: FailureClass,
    pub(crate) error: ParsedError,
}

impl CheckFailure {
    pub(crate) fn new(check: &str, command: &str, error: ParsedError, output: &str) -> Self {
        CheckFailure {
            check: check.to_owned(),
            command: command.to_owned(),
            signature: compute_signature(&error).to_string(),
            class: classify_error(&error, output),
            error,
        }
    }
}

/// The failed checks with their errors.
#[derive(Clone, Debug)]
pub(crate) struct FailedChecks {
    pub(crate) verdict: CheckRunVerdict,
    pub(crate) found: Vec<CheckFailure>,
}

impl FailedChecks {
    pub(crate) fn from_verdict(verdict: CheckRunVerdict, analyse: &AnalyseFn<'_>) -> Self {
        let mut found: Vec<CheckFailure> = Vec::new();
        let failed = verdict.results.iter().filter(|result| has_failed(result));
        for result in failed.filter(|result| result.critical) {
            let errors = analyse(result).into_iter();
            found.extend(errors.map(|error| {
                CheckFailure::new(&result.name, &result.command, error, &result.output)
            }));
        }
        FailedChecks { verdict, found }
    }

    pub(crate) fn has_failure(&self, signature: &str) -> bool {
        self.found.iter().any(|found| found.signature == signature)
    }

    /// The number of occurrences of each failure.
    pub(crate) fn count_fingerprints(&self) -> BTreeMap<FailureFingerprint, usize> {
        count_fingerprints(self.found.iter().map(|found| (found.check.as_str(), &found.error)))
    }

    /// Returns true if every occurrence of a failure is still there.
    pub(crate) fn is_still_there(&self, after: &FailedChecks, signature: &str) -> bool {
        let after = after.count_fingerprints();
        let before = self.count_fingerprints();
        let mut mine = before.keys().filter(|one| one.signature.to_string() == signature);
        mine.all(|one| after.contains_key(one))
    }

    /// The output of all failed checks.
    pub(crate) fn failed_output(&self) -> String {
        let failed = self.verdict.results.iter().filter(|result| has_failed(result));
        failed.map(|result| format!("{}\n{}\n", result.output, result.telling.join("\n"))).collect()
    }
}

pub fn has_failed(result: &CheckRunResult) -> bool {
    matches!(result.status, CheckStatus::Failed | CheckStatus::TimedOut)
}

/// A fix to try.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecoverAction {
    pub(crate) signature: String,
    pub(crate) class: FailureClass,
    pub(crate) strategy: RecoverStrategy,
    /// The recorded form of the fix.
    pub(crate) fix: FailureFix,
    /// Additional arguments: the files of the present change. Not recorded.
    pub(crate) files: Vec<String>,
}

pub(crate) fn builtin_fix(words: Vec<String>) -> FailureFix {
    FailureFix {
        remedy: FixRemedy::Command(words),
        preconditions: Vec::new(),
        origin: FixOrigin::Builtin,
    }
}

/// Repairs what can be repaired without an agent.
///
/// # Errors
///
/// Fails if git, the journal or the checks cannot be used, or with [`RecoverError::NotRolledBack`].
pub async fn recover_failures(request: RecoverRequest<'_>) -> Result<RecoverResult, RecoverError> {
    let red = FailedChecks::from_verdict(request.verdict.clone(), request.analyse);
    let payloads = failure_events(&red, request.memory.scope());
    let tried = request.tried.clone();
    let session = session::RecoverSession {
        request: &request,
        red,
        payloads,
        tried,
        attempts: Vec::new(),
        waits: 0,
    };
    session.run().await
}

/// The events for failures to remember. Transient and permanent ones come from the environment, not
/// from the project.
fn failure_events(red: &FailedChecks, scope: &str) -> Vec<Payload> {
    let mut known = BTreeSet::new();
    let lasting = red
        .found
        .iter()
        .filter(|found| !matches!(found.class, FailureClass::Transient | FailureClass::Permanent));
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
