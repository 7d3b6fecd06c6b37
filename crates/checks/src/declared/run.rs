//! Running a single check with its retries.

use std::sync::Arc;
use std::time::Duration;

use repertoire_sandbox::confinement::NetworkAccess;
use repertoire_sandbox::process::{OutputFlow, ProcessStopReason};
use repertoire_sandbox::workplace::RunWorkplace;
use tokio_util::sync::CancellationToken;

use super::output::{CheckOutputCollector, CollectedOutput};
use super::{CheckDefinition, CheckEvent, CheckRunResult, CheckStatus};
use repertoire_sandbox::program::{self, EngineProgram};

/// Runs a check until it passes or has no attempts left.
pub(super) async fn run_check(
    check: &CheckDefinition,
    workplace: &RunWorkplace,
    cancel: &CancellationToken,
    on_event: &(dyn Fn(CheckEvent) + Sync),
) -> CheckRunResult {
    let mut spent = Duration::ZERO;
    let mut attempts = 0;
    loop {
        attempts += 1;
        on_event(CheckEvent::Started { name: check.name.clone(), attempt: attempts });
        let attempt = run_attempt(check, workplace, cancel).await;
        spent += attempt.duration;
        let again = matches!(attempt.status, CheckStatus::Failed | CheckStatus::TimedOut);
        if again && attempts <= check.retries && !cancel.is_cancelled() {
            continue;
        }
        return CheckRunResult {
            flaky: attempts > 1 && attempt.status == CheckStatus::Passed,
            status: attempt.status,
            exit_code: attempt.exit_code,
            exceeded: attempt.exceeded,
            attempts,
            duration_ms: u64::try_from(spent.as_millis()).unwrap_or(u64::MAX),
            output: attempt.output,
            telling: attempt.telling,
            bytes_total: attempt.bytes_total,
            heard: attempt.heard,
            ..skipped_result(check, "")
        };
    }
}

/// The result of a check that was not run.
pub(super) fn skipped_result(check: &CheckDefinition, why: &str) -> CheckRunResult {
    CheckRunResult {
        name: check.name.clone(),
        command: check.command.clone(),
        critical: check.critical,
        status: CheckStatus::Skipped(why.to_owned()),
        exit_code: None,
        exceeded: None,
        attempts: 0,
        flaky: false,
        duration_ms: 0,
        output: String::new(),
        telling: Vec::new(),
        bytes_total: 0,
        heard: Arc::default(),
    }
}

/// The reason why checks of a stopped run are skipped or incomplete.
pub(super) const STOPPED: &str = "the run was stopped";

struct CheckAttempt {
    status: CheckStatus,
    exit_code: Option<i32>,
    exceeded: Option<String>,
    duration: Duration,
    output: String,
    heard: Arc<str>,
    telling: Vec<String>,
    bytes_total: u64,
}

async fn run_attempt(
    check: &CheckDefinition,
    workplace: &RunWorkplace,
    cancel: &CancellationToken,
) -> CheckAttempt {
    let mut output = CheckOutputCollector::default();
    let mut take = |line: &[u8]| {
        output.add_line(line);
        OutputFlow::Continue
    };
    let ran = match program::run(check_program(check), workplace, cancel, &mut take).await {
        Ok(ran) => ran,
        Err(error) => {
            return CheckAttempt {
                status: CheckStatus::Failed,
                exit_code: None,
                exceeded: None,
                duration: Duration::ZERO,
                output: error.to_string(),
                heard: Arc::default(),
                telling: Vec::new(),
                bytes_total: 0,
            };
        }
    };
    let ended = ran.ended;
    let status = match (ended.stopped, ended.code) {
        (Some(ProcessStopReason::Cancelled), _) => CheckStatus::Skipped(STOPPED.to_owned()),
        (Some(ProcessStopReason::Exceeded(_)), _) => CheckStatus::Failed,
        (Some(_), _) => CheckStatus::TimedOut,
        (None, Some(0)) => CheckStatus::Passed,
        (None, _) => CheckStatus::Failed,
    };
    // The shell redirects its stderr to stdout, so this stderr contains only messages of the
    // sandbox itself.
    let mut bytes_total = ended.stdout.total + ended.stderr.total;
    String::from_utf8_lossy(&ended.stderr.bytes)
        .lines()
        .for_each(|line| output.add_line(line.as_bytes()));
    for change in &ran.changes {
        output.add_line(format!("[{}]", change.describe()).as_bytes());
    }
    let exceeded = match ended.stopped {
        Some(ProcessStopReason::Exceeded(exceeded)) => Some(exceeded.to_string()),
        _ => None,
    };
    if let Some(reason) = &exceeded {
        bytes_total += reason.len() as u64;
        output.add_line(reason.as_bytes());
    }
    let CollectedOutput { shown, heard, telling } = output.finish();
    let exit_code = if ended.stopped.is_none() { ended.code } else { None };
    CheckAttempt {
        status,
        exit_code,
        exceeded,
        duration: ended.duration,
        output: shown,
        heard: heard.into(),
        telling,
        bytes_total,
    }
}

fn check_program(check: &CheckDefinition) -> EngineProgram {
    // Join the two streams in the order of a terminal, so that an error follows the line that it
    // belongs to.
    let joined = "exec bash --noprofile --norc -c \"$1\" 2>&1";
    let args = ["--noprofile", "--norc", "-c", joined, "check", &check.command];
    EngineProgram {
        program: "bash".to_owned(),
        args: args.map(str::to_owned).to_vec(),
        environment: check.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        timeout: check.timeout,
        network: if check.network { NetworkAccess::On } else { NetworkAccess::Off },
        kept_bytes_max: crate::limits::CHECK_NOTE_BYTES_MAX,
    }
}
