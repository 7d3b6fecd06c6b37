//! Declared checks: commands whose exit codes say whether work is done. A model's word is not asked for.
//!
//! They run in the surroundings of an agent's own commands. What depends on a check waits for it, and is skipped when it
//! does not pass; the rest runs at once, within bounds. Output is drained as it comes: errors are read from as much of it as
//! is analysed, and its start, its end and the lines that look like errors are stored.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use repertoire_sandbox::workplace::Workplace;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::limits::{CHECK_TIMEOUT, CHECKS_AT_ONCE};

mod notes;
mod output;
mod run;
mod schedule;
pub mod time;
mod validate;
mod variables;

pub use self::notes::fenced;
pub use self::notes::{notes, setup_failure};
pub use self::validate::{CheckError, validate};
pub use self::variables::{AllowedVariables, HARMLESS_VARIABLES, VariableRefusal};

/// A declared check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// What bash is given.
    pub command: String,
    /// How long an attempt may take.
    #[serde(default = "usual_timeout", with = "time")]
    pub timeout: Duration,
    /// Whether it has to pass.
    #[serde(default = "yes")]
    pub critical: bool,
    /// Checks that have to pass before it is worth running.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// How many more attempts it has.
    #[serde(default)]
    pub retries: u32,
    /// Whether it may reach the network.
    #[serde(default)]
    pub network: bool,
    /// Variables of its environment, as far as [`AllowedVariables`] has them.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl Check {
    /// A critical check with the usual limits.
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> Self {
        Check {
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

/// What came of some checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Of each, in the order in which they are declared.
    pub results: Vec<CheckResult>,
    /// Whether every critical one has passed.
    pub green: bool,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Its name.
    pub name: String,
    /// What was run.
    pub command: String,
    /// Whether it has to pass.
    pub critical: bool,
    /// How it ended.
    pub status: CheckStatus,
    /// The exit code of the last attempt; `None` if it was not run, stopped, or ended by a signal.
    pub exit_code: Option<i32>,
    /// The limit on memory, processes or disk space that the last attempt was stopped for, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceeded: Option<String>,
    /// How often it was run.
    pub attempts: u32,
    /// Whether it passed after it had failed.
    pub flaky: bool,
    /// How long it took, all attempts together.
    pub duration_ms: u64,
    /// The start and the end of what the last attempt said.
    pub output: String,
    /// Lines from anywhere in it that look like errors.
    pub telling: Vec<String>,
    /// How much the last attempt said in all.
    pub bytes_total: u64,
    /// What it said, as far as errors are read from it, where that is more than `output`. It is not stored.
    #[serde(skip)]
    pub heard: Arc<str>,
}

impl CheckResult {
    /// What the last attempt said: all that is known of it, which is more than is stored.
    pub fn said(&self) -> &str {
        if self.heard.is_empty() { &self.output } else { &self.heard }
    }

    /// Whether some of what it said is not known: an error that is not seen may be there all the same.
    pub fn is_cut(&self) -> bool {
        self.said().contains(LEFT_OUT)
    }
}

/// The end of the line that stands for what is missing.
pub(crate) const LEFT_OUT: &str = " bytes left out …]";

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// With exit code 0.
    Passed,
    /// With another one, or by a signal, or it could not be started.
    Failed,
    /// It took too long and was stopped, with all that it had started.
    TimedOut,
    /// It was not run to an end, for this reason.
    Skipped(String),
}

/// What happens while checks run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckEvent {
    /// An attempt begins.
    Started {
        /// The check.
        name: String,
        /// Counted from one.
        attempt: u32,
    },
    /// A check is over, run or not.
    Ended(CheckResult),
}

/// How checks are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// How many run at once.
    pub parallel: usize,
    /// Whether nothing more is begun once a critical one is red.
    pub fail_fast: bool,
}

impl Default for CheckOptions {
    fn default() -> Self {
        CheckOptions { parallel: CHECKS_AT_ONCE, fail_fast: false }
    }
}

impl From<usize> for CheckOptions {
    /// All of them, so many at once.
    fn from(parallel: usize) -> Self {
        CheckOptions { parallel, fail_fast: false }
    }
}

/// On which level each check is: 0 if it depends on nothing, otherwise one more than the highest that it depends on.
/// Checks that make no sense are on level 0.
pub fn levels(checks: &[Check]) -> Vec<usize> {
    let mut levels = vec![0; checks.len()];
    if validate(checks).is_err() {
        return levels;
    }
    // A chain is at most as long as there are checks.
    for _ in 0..checks.len() {
        for (at, check) in checks.iter().enumerate() {
            let below = |name: &String| checks.iter().position(|other| other.name == *name);
            let below = check.depends_on.iter().filter_map(below).map(|on| levels[on] + 1).max();
            levels[at] = below.unwrap_or(0);
        }
    }
    levels
}

/// Runs checks, each as soon as those that it depends on have passed.
///
/// # Errors
///
/// When the checks make no sense; nothing has run then. A check that fails is no error.
pub async fn run_checks(
    checks: &[Check],
    workplace: &Workplace,
    cancel: &CancellationToken,
    on_event: &(dyn Fn(CheckEvent) + Sync),
    options: impl Into<CheckOptions>,
) -> Result<Verdict, CheckError> {
    validate(checks)?;
    let results = schedule::run(checks, workplace, cancel, on_event, options.into()).await;
    let fine = |result: &CheckResult| !result.critical || result.status == CheckStatus::Passed;
    Ok(Verdict { green: results.iter().all(fine), results })
}

fn usual_timeout() -> Duration {
    CHECK_TIMEOUT
}

fn yes() -> bool {
    true
}
