//! Runs the programs of a workflow: declared checks, and scripts that print their steps.

use std::time::Duration;

use crate::check_command::render_check_command;
use crate::engine::CheckRecord;
use crate::state::{CheckProof, GateCheckResult, ItemStatus};
use crate::template::{TemplateError, TemplateScope, render_template};
use crate::workflow::DeclaredCheck;
use camino::Utf8Path;
use repertoire_plan::document;
use repertoire_sandbox::confinement::NetworkAccess;
use repertoire_sandbox::process::{self, CapturedStream, OutputFlow, ProcessResult};
use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_text::{Severity, fs};
use tokio_util::sync::CancellationToken;

use super::StoredWorkflowRun;
use super::work_state::fingerprint_work;
use crate::limits::CHECK_NOTE_BYTES_MAX;
use crate::limits::{CHECKED_FILE_BYTES_MAX, PROGRAM_OUTPUT_BYTES_MAX};
use repertoire_sandbox::program::{self, EngineProgram};

/// The reason a program was not run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The workflow declares no such check.
    #[error("workflow `{workflow}` has no check `{name}`")]
    NoSuchCheck { workflow: String, name: String },
    /// The check has no command.
    #[error("check `{name}` has no command, so there is nothing to run")]
    NoCommand { name: String },
    /// The skill is not trusted.
    #[error(
        "the skill of workflow `{workflow}` is not trusted, so nothing that it declares is run"
    )]
    NotTrusted { workflow: String },
    /// A template in the command cannot be filled.
    #[error("the command of check `{name}` cannot be worked out: {error}")]
    Template { name: String, error: TemplateError },
    /// The program could not be started.
    #[error(transparent)]
    Process(#[from] process::ProcessError),
    /// The program was cancelled.
    #[error("it was stopped")]
    Cancelled,
}

/// Returns the command of a declared check, with the run's values filled in; empty if it has none.
pub fn check_command(run: &StoredWorkflowRun, name: &str) -> Result<String, ProgramError> {
    let workflow = run.workflow.workflow();
    let check = workflow.checks.get(name).ok_or_else(|| ProgramError::NoSuchCheck {
        workflow: workflow.name.clone(),
        name: name.to_owned(),
    })?;
    render_check_command(workflow, check, &TemplateScope::new(&run.state))
        .map_err(|error| ProgramError::Template { name: name.to_owned(), error })
}

/// Returns true if the engine performs a declared check itself, without a command.
pub fn is_built_in_check(run: &StoredWorkflowRun, name: &str) -> bool {
    run.workflow.workflow().checks.get(name).is_some_and(DeclaredCheck::is_built_in)
}

/// Performs a built-in check of a file, which must be inside the folder of the run.
fn check_file(
    run: &StoredWorkflowRun,
    name: &str,
    command: String,
) -> Result<CheckRecord, ProgramError> {
    let checks = &run.workflow.workflow().checks;
    let check = checks.get(name).cloned().unwrap_or_default();
    let path = render_template(check.path_template(), &TemplateScope::new(&run.state))
        .map_err(|error| ProgramError::Template { name: name.to_owned(), error })?;
    let folder = &run.head.folder;
    let path = Utf8Path::new(path.trim());
    let relative = path.strip_prefix(folder).unwrap_or(path);
    let wrong = match fs::read_text_beneath(folder, relative, CHECKED_FILE_BYTES_MAX) {
        Err(error) => Some(format!("`{relative}` cannot be read: {error}")),
        Ok(text) if text.trim().is_empty() => Some(format!("`{relative}` is empty")),
        Ok(_) if check.plan.is_empty() => None,
        Ok(text) => plan_errors(folder, relative, &text),
    };
    let (status, exit_code) = match &wrong {
        None => (ItemStatus::Pass, Some(0)),
        Some(_) => (ItemStatus::Fail, Some(1)),
    };
    let note = wrong.unwrap_or_else(|| format!("`{relative}` is there"));
    let proof = CheckProof::Run { command, exit_code, work: None };
    let result = GateCheckResult { status, note, proof };
    Ok(CheckRecord { name: name.to_owned(), result })
}

/// Returns the first errors of a plan, if it has any. Whether the skills it names exist is not
/// checked here.
fn plan_errors(folder: &Utf8Path, relative: &Utf8Path, text: &str) -> Option<String> {
    let plan = document::parse_plan(text, relative);
    let beside = relative.parent().unwrap_or(Utf8Path::new(""));
    let exists =
        |path: &str| folder.join(beside).join(path).is_file() || folder.join(path).is_file();
    let found = document::check_plan(&plan, &|_| true, &exists);
    let errors = found.iter().filter(|found| found.severity == Severity::Error);
    let said: Vec<String> =
        errors.take(PLAN_ERRORS_SHOWN).map(|found| found.message.to_string()).collect();
    (!said.is_empty())
        .then(|| format!("{}; `rep plan check {relative}` shows all errors", said.join("; ")))
}

/// The maximum number of errors of a plan in the note of a check.
const PLAN_ERRORS_SHOWN: usize = 3;

/// Runs a declared check. Only exit code 0 is a pass. The result says what work it is about, unless the work changed while
/// the command ran.
pub async fn run_check(
    run: &StoredWorkflowRun,
    name: &str,
    workplace: &RunWorkplace,
    timeout: Duration,
    cancel: &CancellationToken,
) -> Result<CheckRecord, ProgramError> {
    let command = check_command(run, name)?;
    if command.is_empty() {
        return Err(ProgramError::NoCommand { name: name.to_owned() });
    }
    if is_built_in_check(run, name) {
        return check_file(run, name, command);
    }
    if !run.head.trusted {
        return Err(ProgramError::NotTrusted { workflow: run.state.workflow.clone() });
    }
    let args = ["--noprofile", "--norc", "-c", &command].map(str::to_owned).to_vec();
    let before = fingerprint_work(workplace).await;
    let ended = run_program("bash", args, workplace, timeout, cancel).await?;
    let passed = ended.code == Some(0) && ended.stopped.is_none();
    let mut note = describe_end(&ended);
    let mut work = None;
    if passed && before.is_some() {
        work = fingerprint_work(workplace).await.filter(|after| Some(after) == before.as_ref());
        if work.is_none() {
            note.push_str(CHANGED_MEANWHILE);
        }
    }
    let result = GateCheckResult {
        status: if passed { ItemStatus::Pass } else { ItemStatus::Fail },
        note,
        proof: CheckProof::Run { command, exit_code: ended.code, work },
    };
    Ok(CheckRecord { name: name.to_owned(), result })
}

/// Added to the note of a check that proves nothing, because it has not looked at one state of the work.
const CHANGED_MEANWHILE: &str = "; files of the project changed while it ran, so it proves nothing (have git ignore files that it writes)";

/// Runs a program to its end.
pub(super) async fn run_program(
    program: &str,
    args: Vec<String>,
    workplace: &RunWorkplace,
    timeout: Duration,
    cancel: &CancellationToken,
) -> Result<ProcessResult, ProgramError> {
    let program = EngineProgram {
        program: program.to_owned(),
        args,
        environment: Vec::new(),
        timeout,
        network: NetworkAccess::Off,
        kept_bytes_max: PROGRAM_OUTPUT_BYTES_MAX,
    };
    let ran = program::run(program, workplace, cancel, &mut |_| OutputFlow::Continue).await?;
    let ended = ran.ended;
    match ended.stopped {
        Some(process::ProcessStopReason::Cancelled) => Err(ProgramError::Cancelled),
        _ => Ok(ended),
    }
}

/// Describes how a program ended, with the tail of its output, where the reason usually is.
pub(super) fn describe_end(ended: &ProcessResult) -> String {
    let how = match (ended.stopped, ended.code, ended.signal) {
        (Some(process::ProcessStopReason::Exceeded(exceeded)), _, _) => exceeded.to_string(),
        (Some(_), _, _) => format!("stopped after {} s", ended.duration.as_secs()),
        (None, Some(code), _) => format!("exit code {code}"),
        (None, None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None, None) => "ended".to_owned(),
    };
    if ended.code == Some(0) && ended.stopped.is_none() {
        return how;
    }
    let said = [output_tail(&ended.stdout), output_tail(&ended.stderr)];
    let said: Vec<&str> =
        said.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
    if said.is_empty() { how } else { format!("{how}\n{}", said.join("\n")) }
}

fn output_tail(captured: &CapturedStream) -> String {
    let start = captured.bytes.len().saturating_sub(CHECK_NOTE_BYTES_MAX);
    let text = String::from_utf8_lossy(&captured.bytes[start..]);
    if start > 0 || captured.total > captured.bytes.len() as u64 {
        format!("[…] {text}")
    } else {
        text.into_owned()
    }
}
