//! Verification: runs the declared checks, analyses failures, and computes a verdict from these
//! results alone.
//!
//! Nothing here changes a file: a verifier that also repairs would verify its own repair. A
//! suspicious pass, such as a test run without tests, does not count as a pass.

use std::time::Instant;

use camino::Utf8Path;
use repertoire_sandbox::workplace::Workplace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::analyse::{Analysis, analyse_check, redacted};
use super::error::ParsedError;
use super::signature::{Signature, signature};
use crate::declared::{
    Check, CheckError, CheckEvent, CheckOptions, CheckResult, CheckStatus, levels, run_checks,
};
use crate::limits::ERROR_FILE_BYTES_MAX;
use repertoire_git::repo::Git;

mod compare;
mod counts;
mod html;
mod suspect;
mod text;

pub use self::compare::{Comparison, compare};
pub use self::counts::{TestCounts, counts};
pub use self::html::html;
pub use self::suspect::{Suspicion, SuspicionKind, brought, suspicions};
pub use self::text::{analysis_text, text};

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// The verified commit and files.
    pub state: State,
    /// The overall result.
    pub verdict: Verdict,
    /// The way checks were run after a failure.
    pub mode: Mode,
    /// The checks, in the order in which they are declared.
    pub checks: Vec<CheckReport>,
    /// Suspicious passes (possible false positives).
    pub suspicions: Vec<Suspicion>,
    /// The differences from an earlier verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Comparison>,
    /// The duration in milliseconds.
    pub duration_ms: u64,
}

/// The state of the files that was verified. A result without it proves nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct State {
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
pub enum Verdict {
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
pub enum Mode {
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
    pub analysis: Analysis,
    /// The signatures of the errors, in the same order.
    pub signatures: Vec<Signature>,
    /// The start and the end of the output.
    pub output: String,
    /// The size of the whole output in bytes.
    pub output_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    pub checks: CheckOptions,
    /// An earlier verification to compare with.
    pub before: Option<&'a Verification>,
}

/// Runs the checks in a workplace and analyses the results.
///
/// # Errors
///
/// Fails if the checks are invalid; none has run then. A failing check is not an error.
pub async fn verify(
    checks: &[Check],
    workplace: &Workplace,
    options: Options<'_>,
    cancel: &CancellationToken,
    on_event: &(dyn Fn(CheckEvent) + Sync),
) -> Result<Verification, CheckError> {
    let begun = Instant::now();
    let before = state(workplace).await;
    let ran = run_checks(checks, workplace, cancel, on_event, options.checks).await?;
    let after = state(workplace).await;
    let read = |file: &str| project_file(&workplace.dir, file);
    let reports = ran.results.into_iter().zip(levels(checks));
    let reports = reports.map(|(result, level)| report(result, level, &workplace.dir, &read));
    let reports: Vec<CheckReport> = reports.collect();
    let mut suspicions = suspect::of_reports(&reports, options.before);
    suspicions.extend(suspect::changed(&before, &after));
    let mode = if options.checks.fail_fast { Mode::Fast } else { Mode::Full };
    let mut verification = Verification {
        state: before,
        verdict: verdict(&reports, &suspicions),
        mode,
        checks: reports,
        suspicions,
        compared: None,
        duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    verification.compared = options.before.map(|before| compare(before, &verification));
    Ok(verification)
}

/// Computes the verdict from the recorded results and nothing else.
pub fn verdict(checks: &[CheckReport], suspicions: &[Suspicion]) -> Verdict {
    let critical = || checks.iter().filter(|check| check.critical);
    if checks.is_empty() {
        return Verdict::NotVerifiable;
    }
    let red =
        |check: &CheckReport| matches!(check.result, CheckOutcome::Failed | CheckOutcome::TimedOut);
    if critical().any(red) {
        return Verdict::Failed;
    }
    if critical().all(|check| check.result == CheckOutcome::Passed) && suspicions.is_empty() {
        Verdict::Passed
    } else {
        Verdict::Inconclusive
    }
}

/// Reads a file of the project. Tools can print any path, so nothing outside the project is read.
pub fn project_file(dir: &Utf8Path, file: &str) -> Option<String> {
    let inner = Utf8Path::new(file);
    let inner = inner.strip_prefix(dir).unwrap_or(inner);
    repertoire_text::fs::read_text_beneath(dir, inner, ERROR_FILE_BYTES_MAX).ok()
}

impl Verification {
    /// All errors with their checks and signatures.
    pub fn errors(&self) -> impl Iterator<Item = (&CheckReport, &ParsedError, Signature)> {
        self.checks.iter().flat_map(|check| {
            let both = check.analysis.errors.iter().zip(check.signatures.iter().copied());
            both.map(move |(error, signature)| (check, error, signature))
        })
    }
}

impl Verdict {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotVerifiable => "not_verifiable",
        }
    }
}

/// The current state. Unknown parts are `None`: outside a git repository, and if git fails.
async fn state(workplace: &Workplace) -> State {
    let (environment, sandbox) = (workplace.environment.clone(), workplace.sandbox.clone());
    let git = Git::new(workplace.dir.clone(), environment, sandbox);
    let commit = git.head().await.ok().map(|oid| oid.as_str().to_owned());
    let tree = git.tree_of_work().await.ok().map(|tree| tree.0.as_str().to_owned());
    State { commit, clean: git.is_clean().await.ok(), tree }
}

fn report(
    result: CheckResult,
    level: usize,
    dir: &Utf8Path,
    read: &dyn Fn(&str) -> Option<String>,
) -> CheckReport {
    let (outcome, reason) = outcome(&result);
    let ran = !matches!(outcome, CheckOutcome::Skipped);
    let mut analysis = if ran { analyse_check(&result, read) } else { Analysis::default() };
    for error in &mut analysis.errors {
        error.file = error.file.take().map(|file| below(dir, file));
    }
    let signatures = analysis.errors.iter().map(signature).collect();
    CheckReport {
        tests: counts(result.said()).filter(|_| ran),
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
        output: redacted(&result.output).into_owned(),
        output_bytes: result.bytes_total,
    }
}

fn outcome(result: &CheckResult) -> (CheckOutcome, Option<String>) {
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
fn below(dir: &Utf8Path, file: String) -> String {
    match Utf8Path::new(&file).strip_prefix(dir) {
        Ok(inner) => inner.to_string(),
        Err(_) => file,
    }
}
