//! Declared checks: commands whose exit codes decide if work is done, whatever a model claims.
//!
//! Checks run in the same environment as an agent's own commands. A check waits for those it
//! depends on, and is skipped if one of them does not pass; the others run concurrently. Output is
//! read as it arrives: a large part of it is analysed for errors, and its start, its end and the
//! lines that look like errors are stored.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use repertoire_sandbox::workplace::RunWorkplace;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::limits::{CHECK_TIMEOUT, CHECKS_AT_ONCE};

mod notes;
mod output;
mod run;
mod schedule;
mod validate;
mod variables;

pub use self::notes::fence_block;
pub use self::notes::{describe_setup_failure, failure_notes};
pub use self::validate::{CheckError, validate_checks};
pub use self::variables::{AllowedVariables, HARMLESS_VARIABLES, VariableRefusal};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckDefinition {
    pub name: String,
    /// A bash command line.
    pub command: String,
    /// The timeout of each attempt.
    #[serde(default = "usual_timeout", with = "repertoire_text::duration")]
    pub timeout: Duration,
    /// True if the check has to pass.
    #[serde(default = "yes")]
    pub critical: bool,
    /// The names of checks that have to pass before this one runs.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// The number of attempts after the first one.
    #[serde(default)]
    pub retries: u32,
    /// True if the check may use the network.
    #[serde(default)]
    pub network: bool,
    /// Environment variables, limited to those in [`AllowedVariables`].
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl CheckDefinition {
    /// A critical check with default limits.
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> Self {
        CheckDefinition {
            name: name.into(),
            command: command.into(),
            timeout: CHECK_TIMEOUT,
            critical: true,
            depends_on: Vec::new(),
            retries: 0,
            network: false,
            env: BTreeMap::new(),
        }
    }
}

/// The results of a set of checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRunVerdict {
    /// In the order in which the checks are declared.
    pub results: Vec<CheckRunResult>,
    /// True if all critical checks have passed.
    pub green: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRunResult {
    pub name: String,
    pub command: String,
    pub critical: bool,
    pub status: CheckStatus,
    /// The exit code of the last attempt; `None` if it did not run, was stopped, or ended by a
    /// signal.
    pub exit_code: Option<i32>,
    /// The limit on memory, processes or disk space for which the last attempt was stopped, as a
    /// sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceeded: Option<String>,
    pub attempts: u32,
    /// True if it passed after a failed attempt.
    pub flaky: bool,
    /// The duration of all attempts together.
    pub duration_ms: u64,
    /// The start and the end of the last attempt's output.
    pub output: String,
    /// Lines from anywhere in the output that look like errors.
    pub telling: Vec<String>,
    /// The size of the last attempt's whole output.
    pub bytes_total: u64,
    /// The part of the output that is analysed for errors, if that is more than `output`. Not
    /// stored.
    #[serde(skip)]
    pub heard: Arc<str>,
}

impl CheckRunResult {
    /// The last attempt's output, as far as it is available. Longer than what is stored.
    pub fn available_output(&self) -> &str {
        if self.heard.is_empty() { &self.output } else { &self.heard }
    }

    /// Returns true if part of the output is missing, which may contain errors.
    pub fn is_cut(&self) -> bool {
        self.available_output().contains(LEFT_OUT)
    }
}

/// The end of the line that marks missing output.
pub(crate) const LEFT_OUT: &str = " bytes left out …]";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Passed,
    /// Exited with another code or by a signal, or could not be started.
    Failed,
    /// Stopped at its timeout, together with its child processes.
    TimedOut,
    /// Not run, or not to its end, for this reason.
    Skipped(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckEvent {
    Started {
        name: String,
        /// Counted from one.
        attempt: u32,
    },
    /// A check is over, even if it was skipped.
    Ended(CheckRunResult),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Maximum number of concurrent checks.
    pub parallel: usize,
    /// True to start no more checks after a critical one has failed.
    pub fail_fast: bool,
}

impl Default for CheckOptions {
    fn default() -> Self {
        CheckOptions { parallel: CHECKS_AT_ONCE, fail_fast: false }
    }
}

impl From<usize> for CheckOptions {
    /// Runs all checks, `parallel` of them at a time.
    fn from(parallel: usize) -> Self {
        CheckOptions { parallel, fail_fast: false }
    }
}

/// The level of each check: 0 if it depends on no other, otherwise one more than the highest level
/// it depends on. All 0 if the checks are invalid.
pub fn dependency_levels(checks: &[CheckDefinition]) -> Vec<usize> {
    let mut levels = vec![0; checks.len()];
    if validate_checks(checks).is_err() {
        return levels;
    }
    // Levels propagate by one dependency per pass, and a chain has at most as many links as checks.
    for _ in 0..checks.len() {
        for (at, check) in checks.iter().enumerate() {
            let below = |name: &String| checks.iter().position(|other| other.name == *name);
            let below = check.depends_on.iter().filter_map(below).map(|on| levels[on] + 1).max();
            levels[at] = below.unwrap_or(0);
        }
    }
    levels
}

/// Runs checks, each as soon as those it depends on have passed.
///
/// # Errors
///
/// Fails if the checks are invalid; none has run then. A failing check is not an error.
pub async fn run_checks(
    checks: &[CheckDefinition],
    workplace: &RunWorkplace,
    cancel: &CancellationToken,
    on_event: &(dyn Fn(CheckEvent) + Sync),
    options: impl Into<CheckOptions>,
) -> Result<CheckRunVerdict, CheckError> {
    validate_checks(checks)?;
    let results =
        schedule::run_scheduled(checks, workplace, cancel, on_event, options.into()).await;
    Ok(CheckRunVerdict { green: all_critical_passed(&results), results })
}

pub(crate) fn all_critical_passed(results: &[CheckRunResult]) -> bool {
    results.iter().all(|result| !result.critical || result.status == CheckStatus::Passed)
}

fn usual_timeout() -> Duration {
    CHECK_TIMEOUT
}

fn yes() -> bool {
    true
}
