//! Verification: runs the declared checks, analyses failures, and computes a verdict from these
//! results alone.
//!
//! Nothing here changes a file: a verifier that also repairs would verify its own repair. A
//! suspicious pass, such as a test run without tests, does not count as a pass.

use std::time::Instant;

use camino::Utf8Path;
use repertoire_sandbox::workplace::RunWorkplace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::analyse::{OutputAnalysis, analyse_check, redact_secrets};
use super::error::ParsedError;
use super::signature::{FailureSignature, compute_signature};
use crate::declared::{
    CheckDefinition, CheckError, CheckEvent, CheckOptions, CheckRunResult, CheckStatus,
    dependency_levels, run_checks,
};
use crate::limits::ERROR_FILE_BYTES_MAX;
use repertoire_git::repo::GitClient;

mod compare;
mod html;
mod suspicion;
mod test_counts;
mod text;

pub use self::compare::{VerificationComparison, compare_verifications};
pub use self::html::render_html;
pub use self::suspicion::{PassSuspicion, SuspicionKind, find_suspicions, new_suspicions};
pub use self::test_counts::{TestCounts, count_tests};
pub use self::text::{analysis_text, render_text};

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerificationReport {
    /// The verified commit and files.
    pub state: VerifiedState,
    /// The overall result.
    pub verdict: VerificationVerdict,
    /// The way checks were run after a failure.
    pub mode: VerificationMode,
    /// The checks, in the order in which they are declared.
    pub checks: Vec<CheckReport>,
    /// Suspicious passes (possible false positives).
    pub suspicions: Vec<PassSuspicion>,
    /// The differences from an earlier verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<VerificationComparison>,
    /// The duration in milliseconds.
    pub duration_ms: u64,
}

/// The state of the files that was verified. A result without it proves nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedState {
    /// The commit; absent outside a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// True if nothing differs from the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean: Option<bool>,
    /// The tree object of all files that git does not ignore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// The result of a verification. Only `passed` opens a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerificationVerdict {
    /// Every critical check passed.
    Passed,
    /// A critical check failed or timed out.
    Failed,
    /// No critical check failed, but one did not run to its end, or a pass is suspicious.
    Inconclusive,
    /// No checks are configured.
    NotVerifiable,
}

/// The way checks are run after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerificationMode {
    /// Stop at the first critical failure.
    Fast,
    /// Run every check that can run.
    Full,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// Exit code 0.
    Passed,
    /// Another exit code, or a signal.
    Failed,
    /// Stopped at its timeout.
    TimedOut,
    /// Not run, or not to its end.
    Skipped,
    /// The command does not exist or is not executable, or the sandbox could not start it.
    CouldNotRun,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// The name of the check.
    pub name: String,
    /// The command that was run.
    pub command: String,
    /// The outcome of the check.
    pub result: CheckOutcome,
    /// Why the check was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// True if the verdict depends on this check.
    pub critical: bool,
    /// The level of the check: 0 if it depends on no other.
    pub level: usize,
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The number of attempts.
    pub attempts: u32,
    /// True if the check passed after a failed attempt without a change: it is unstable, not
    /// repaired.
    pub flaky: bool,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The number of tests, if the output tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// The errors in the output.
    pub analysis: OutputAnalysis,
    /// The signatures of the errors, in the same order.
    pub signatures: Vec<FailureSignature>,
    /// The start and the end of the output.
    pub output: String,
    /// The size of the whole output in bytes.
    pub output_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct VerifyOptions<'a> {
    pub checks: CheckOptions,
    /// An earlier verification to compare with.
    pub before: Option<&'a VerificationReport>,
}

/// Runs the checks in a workplace and analyses the results.
///
/// # Errors
///
/// Fails if the checks are invalid; none has run then. A failing check is not an error.
pub async fn run_verification(
    checks: &[CheckDefinition],
    workplace: &RunWorkplace,
    options: VerifyOptions<'_>,
    cancel: &CancellationToken,
    on_event: &(dyn Fn(CheckEvent) + Sync),
) -> Result<VerificationReport, CheckError> {
    let begun = Instant::now();
    let before = read_state(workplace).await;
    let ran = run_checks(checks, workplace, cancel, on_event, options.checks).await?;
    let after = read_state(workplace).await;
    let read = |file: &str| project_file(&workplace.dir, file);
    let reports = ran.results.into_iter().zip(dependency_levels(checks));
    let reports = reports.map(|(result, level)| build_report(result, level, &workplace.dir, &read));
    let reports: Vec<CheckReport> = reports.collect();
    let mut suspicions = suspicion::of_reports(&reports, options.before);
    suspicions.extend(suspicion::state_suspicion(&before, &after));
    let mode =
        if options.checks.fail_fast { VerificationMode::Fast } else { VerificationMode::Full };
    let mut verification = VerificationReport {
        state: before,
        verdict: compute_verdict(&reports, &suspicions),
        mode,
        checks: reports,
        suspicions,
        compared: None,
        duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    verification.compared =
        options.before.map(|before| compare_verifications(before, &verification));
    Ok(verification)
}

/// Computes the verdict from the recorded results and nothing else.
pub fn compute_verdict(
    checks: &[CheckReport],
    suspicions: &[PassSuspicion],
) -> VerificationVerdict {
    let critical = || checks.iter().filter(|check| check.critical);
    if checks.is_empty() {
        return VerificationVerdict::NotVerifiable;
    }
    let red =
        |check: &CheckReport| matches!(check.result, CheckOutcome::Failed | CheckOutcome::TimedOut);
    if critical().any(red) {
        return VerificationVerdict::Failed;
    }
    if critical().all(|check| check.result == CheckOutcome::Passed) && suspicions.is_empty() {
        VerificationVerdict::Passed
    } else {
        VerificationVerdict::Inconclusive
    }
}

/// Reads a file of the project. Tools can print any path, so nothing outside the project is read.
pub fn project_file(dir: &Utf8Path, file: &str) -> Option<String> {
    let inner = Utf8Path::new(file);
    let inner = inner.strip_prefix(dir).unwrap_or(inner);
    repertoire_text::fs::read_text_beneath(dir, inner, ERROR_FILE_BYTES_MAX).ok()
}

impl VerificationReport {
    /// All errors with their checks and signatures.
    pub fn errors(&self) -> impl Iterator<Item = (&CheckReport, &ParsedError, FailureSignature)> {
        self.checks.iter().flat_map(|check| {
            let both = check.analysis.errors.iter().zip(check.signatures.iter().copied());
            both.map(move |(error, signature)| (check, error, signature))
        })
    }
}

impl VerificationVerdict {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            VerificationVerdict::Passed => "passed",
            VerificationVerdict::Failed => "failed",
            VerificationVerdict::Inconclusive => "inconclusive",
            VerificationVerdict::NotVerifiable => "not_verifiable",
        }
    }
}

/// The current state. Unknown parts are `None`: outside a git repository, and if git fails.
async fn read_state(workplace: &RunWorkplace) -> VerifiedState {
    let (environment, sandbox) = (workplace.environment.clone(), workplace.sandbox.clone());
    let git = GitClient::new(workplace.dir.clone(), environment, sandbox);
    let commit = git.head_commit().await.ok().map(|oid| oid.as_str().to_owned());
    let tree = git.tree_of_work().await.ok().map(|tree| tree.0.as_str().to_owned());
    VerifiedState { commit, clean: git.is_clean().await.ok(), tree }
}

fn build_report(
    result: CheckRunResult,
    level: usize,
    dir: &Utf8Path,
    read: &dyn Fn(&str) -> Option<String>,
) -> CheckReport {
    let (outcome, reason) = check_outcome(&result);
    let ran = !matches!(outcome, CheckOutcome::Skipped);
    let mut analysis = if ran { analyse_check(&result, read) } else { OutputAnalysis::default() };
    for error in &mut analysis.errors {
        error.file = error.file.take().map(|file| relative_path(dir, file));
    }
    let signatures = analysis.errors.iter().map(compute_signature).collect();
    CheckReport {
        tests: count_tests(result.available_output()).filter(|_| ran),
        name: result.name,
        command: result.command,
        result: outcome,
        reason,
        critical: result.critical,
        level,
        exit_code: result.exit_code,
        attempts: result.attempts,
        flaky: result.flaky,
        duration_ms: result.duration_ms,
        analysis,
        signatures,
        output: redact_secrets(&result.output).into_owned(),
        output_bytes: result.bytes_total,
    }
}

fn check_outcome(result: &CheckRunResult) -> (CheckOutcome, Option<String>) {
    let said_nothing = result.exit_code.is_none() && result.bytes_total == 0;
    match &result.status {
        CheckStatus::Passed => (CheckOutcome::Passed, None),
        CheckStatus::TimedOut => (CheckOutcome::TimedOut, None),
        CheckStatus::Skipped(why) => (CheckOutcome::Skipped, Some(why.clone())),
        // Exit codes of the shell: 127 for a command that does not exist, 126 for one that cannot
        // be run.
        CheckStatus::Failed if result.exit_code == Some(127) => {
            (CheckOutcome::CouldNotRun, Some("a command is not there".to_owned()))
        }
        CheckStatus::Failed if result.exit_code == Some(126) => {
            let refused = result.output.lines().find(|line| line.starts_with("sandbox: "));
            let reason = refused.unwrap_or("a command may not be run");
            (CheckOutcome::CouldNotRun, Some(reason.to_owned()))
        }
        CheckStatus::Failed if said_nothing && !result.output.is_empty() => {
            (CheckOutcome::CouldNotRun, Some(result.output.clone()))
        }
        CheckStatus::Failed => (CheckOutcome::Failed, result.exceeded.clone()),
    }
}

/// Makes the path of a project file relative to the project's folder.
fn relative_path(dir: &Utf8Path, file: String) -> String {
    match Utf8Path::new(&file).strip_prefix(dir) {
        Ok(inner) => inner.to_string(),
        Err(_) => file,
    }
}
