//! Programs that a workflow asks for: declared checks, and scripts that print their steps.

use std::time::Duration;

use repertoire_agent::process::{self, Captured, Ended, Flow};
use repertoire_agent::sandbox::Network;
use repertoire_agent::workplace::Workplace;
use repertoire_flow::engine::CheckRecord;
use repertoire_flow::state::{CheckResult, ItemStatus, Proof};
use repertoire_flow::template::{Scope, TemplateError, fill};
use tokio_util::sync::CancellationToken;

use super::Run;
use crate::limits::{CHECK_NOTE_BYTES_MAX, PROGRAM_OUTPUT_BYTES_MAX};
use crate::program::{self, Program};

/// A program that was not run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is no such check.
    #[error("workflow `{workflow}` has no check `{name}`")]
    NoSuchCheck {
        /// The workflow.
        workflow: String,
        /// What was asked for.
        name: String,
    },
    /// The check has no command.
    #[error("check `{name}` has no command, so there is nothing to run")]
    NoCommand {
        /// The check.
        name: String,
    },
    /// Nobody has said that the skill may run anything.
    #[error(
        "the skill of workflow `{workflow}` is not trusted, so nothing that it declares is run"
    )]
    NotTrusted {
        /// The workflow.
        workflow: String,
    },
    /// The command cannot be worked out.
    #[error("the command of check `{name}` cannot be worked out: {error}")]
    Template {
        /// The check.
        name: String,
        /// Why.
        error: TemplateError,
    },
    /// It could not be started.
    #[error(transparent)]
    Process(#[from] process::ProcessError),
    /// Somebody stopped it.
    #[error("it was stopped")]
    Cancelled,
}

/// The command of a declared check, with the run's values; empty if it has none.
pub fn check_command(run: &Run, name: &str) -> Result<String, ProgramError> {
    let workflow = run.workflow.workflow();
    let check = workflow.checks.get(name).ok_or_else(|| ProgramError::NoSuchCheck {
        workflow: workflow.name.clone(),
        name: name.to_owned(),
    })?;
    let filled = fill(&check.command, &Scope::new(&run.state))
        .map_err(|error| ProgramError::Template { name: name.to_owned(), error })?;
    Ok(filled.trim().to_owned())
}

/// Runs a declared check: exit code 0 is a pass, everything else is not.
pub async fn run_check(
    run: &Run,
    name: &str,
    workplace: &Workplace,
    timeout: Duration,
    cancel: &CancellationToken,
) -> Result<CheckRecord, ProgramError> {
    let command = check_command(run, name)?;
    if command.is_empty() {
        return Err(ProgramError::NoCommand { name: name.to_owned() });
    }
    if !run.head.trusted {
        return Err(ProgramError::NotTrusted { workflow: run.state.workflow.clone() });
    }
    let args = ["--noprofile", "--norc", "-c", &command].map(str::to_owned).to_vec();
    let ended = run_program("bash", args, workplace, timeout, cancel).await?;
    let passed = ended.code == Some(0) && ended.stopped.is_none();
    let result = CheckResult {
        status: if passed { ItemStatus::Pass } else { ItemStatus::Fail },
        note: note(&ended),
        proof: Proof::Run { command, exit_code: ended.code },
    };
    Ok(CheckRecord { name: name.to_owned(), result })
}

/// Runs a program to its end.
pub(super) async fn run_program(
    program: &str,
    args: Vec<String>,
    workplace: &Workplace,
    timeout: Duration,
    cancel: &CancellationToken,
) -> Result<Ended, ProgramError> {
    let program = Program {
        program: program.to_owned(),
        args,
        environment: Vec::new(),
        timeout,
        network: Network::Off,
        kept_bytes_max: PROGRAM_OUTPUT_BYTES_MAX,
    };
    let ran = program::run(program, workplace, cancel, &mut |_| Flow::Continue).await?;
    let ended = ran.ended;
    match ended.stopped {
        Some(process::Stopped::Cancelled) => Err(ProgramError::Cancelled),
        _ => Ok(ended),
    }
}

/// How it ended, and the end of what it said: that is where the reason is.
pub(super) fn note(ended: &Ended) -> String {
    let how = match (ended.stopped, ended.code, ended.signal) {
        (Some(process::Stopped::Exceeded(exceeded)), _, _) => exceeded.to_string(),
        (Some(_), _, _) => format!("stopped after {} s", ended.duration.as_secs()),
        (None, Some(code), _) => format!("exit code {code}"),
        (None, None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None, None) => "ended".to_owned(),
    };
    if ended.code == Some(0) && ended.stopped.is_none() {
        return how;
    }
    let said = [tail(&ended.stdout), tail(&ended.stderr)];
    let said: Vec<&str> =
        said.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
    match said.is_empty() {
        true => how,
        false => format!("{how}\n{}", said.join("\n")),
    }
}

fn tail(captured: &Captured) -> String {
    let start = captured.bytes.len().saturating_sub(CHECK_NOTE_BYTES_MAX);
    let text = String::from_utf8_lossy(&captured.bytes[start..]);
    match start > 0 || captured.total > captured.bytes.len() as u64 {
        true => format!("[…] {text}"),
        false => text.into_owned(),
    }
}
