//! Verification: the declared checks are run, what failed is analysed, and a verdict is computed from that alone.
//!
//! Nothing here changes a file: a verifier that also repairs verifies its own repair. A pass that is none, such as a test
//! run without tests, is called suspicious and does not count as one.

use std::time::Instant;

use camino::Utf8Path;
use repertoire_sandbox::workplace::Workplace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::analyse::{Analysis, analyse_check, redacted};
use super::error::ParsedError;
use super::signature::{Signature, signature};
use crate::declared::{Check, CheckError, CheckEvent, CheckOptions, CheckResult, CheckStatus, levels, run_checks};
use repertoire_git::repo::Git;
use crate::limits::ERROR_FILE_BYTES_MAX;

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

/// What a verification has found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// What was verified.
    pub state: State,
    /// What came of it.
    pub verdict: Verdict,
    /// How it was run.
    pub mode: Mode,
    /// The checks, in the order in which they are declared.
    pub checks: Vec<CheckReport>,
    /// Passes that may be none.
    pub suspicions: Vec<Suspicion>,
    /// What is different from an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Comparison>,
    /// How long it took.
    pub duration_ms: u64,
}

/// What was verified: a result without it proves nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct State {
    /// The commit; absent outside of git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether nothing differs from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean: Option<bool>,
    /// Everything in the folder that git does not ignore, as git names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// What came of a verification. Only a pass opens a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every critical check passed.
    Passed,
    /// A critical check failed, or took too long.
    Failed,
    /// None failed, but a critical one was not run to its end, or a pass is suspicious.
    Inconclusive,
    /// There are no checks.
    NotVerifiable,
}

/// How a verification is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The first critical red ends it.
    Fast,
    /// Everything runs that can.
    Full,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// With exit code 0.
    Passed,
    /// With another one, or by a signal.
    Failed,
    /// It took too long.
    TimedOut,
    /// It was not run, or not to its end.
    Skipped,
    /// Its command is not there or may not be run, or the sandbox could not start it.
    CouldNotRun,
}

/// What came of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// Its name.
    pub name: String,
    /// What was run.
    pub command: String,
    /// How it ended.
    pub result: CheckOutcome,
    /// Why it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the verdict depends on it.
    pub critical: bool,
    /// Its level: 0 depends on nothing.
    pub level: usize,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How often it was run.
    pub attempts: u32,
    /// Whether it passed after it had failed, with no change: it is unstable, not mended.
    pub flaky: bool,
    /// How long it took.
    pub duration_ms: u64,
    /// How many tests it ran, where its output says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// What its output says.
    pub analysis: Analysis,
    /// The signatures of its errors, in their order.
    pub signatures: Vec<Signature>,
    /// The start and the end of its output.
    pub output: String,
    /// How much it said in all.
    pub output_bytes: u64,
}

/// How to verify.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// How the checks are run.
    pub checks: CheckOptions,
    /// An earlier verification to compare with.
    pub before: Option<&'a Verification>,
}

/// Verifies what is in a workplace.
///
/// # Errors
///
/// When the checks make no sense; nothing has run then. A check that fails is no error.
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

/// The verdict, from what is recorded and nothing else.
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
    match critical().all(|check| check.result == CheckOutcome::Passed) && suspicions.is_empty() {
        true => Verdict::Passed,
        false => Verdict::Inconclusive,
    }
}

/// The text of a file of the project. Tools name what they like; nothing outside is read.
pub fn project_file(dir: &Utf8Path, file: &str) -> Option<String> {
    let inner = Utf8Path::new(file);
    let inner = inner.strip_prefix(dir).unwrap_or(inner);
    repertoire_text::fs::read_text_beneath(dir, inner, ERROR_FILE_BYTES_MAX).ok()
}

impl Verification {
    /// All errors, with the checks that they belong to.
    pub fn errors(&self) -> impl Iterator<Item = (&CheckReport, &ParsedError, Signature)> {
        self.checks.iter().flat_map(|check| {
            let both = check.analysis.errors.iter().zip(check.signatures.iter().copied());
            both.map(move |(error, signature)| (check, error, signature))
        })
    }
}

impl Verdict {
    /// Its name, as it is written down.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotVerifiable => "not_verifiable",
        }
    }
}

/// Outside of git, and where git does not answer, nothing is known.
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
    let mut analysis = match ran {
        true => analyse_check(&result, read),
        false => Analysis::default(),
    };
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
        // What the shell says of a command that is not there, or that may not be run.
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

/// A file of the project as a path below its folder.
fn below(dir: &Utf8Path, file: String) -> String {
    match Utf8Path::new(&file).strip_prefix(dir) {
        Ok(inner) => inner.to_string(),
        Err(_) => file,
    }
}
