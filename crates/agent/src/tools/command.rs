//! Runs programs for tools: in the sandbox, with timeouts, and with a result that says how the program ended.

use std::time::Duration;

use crate::effect::RunEffect;
use crate::event::EventKind;
use crate::spill;
use crate::tool::{ToolInvocation, ToolOutput};
use repertoire_sandbox::confinement::{NetworkAccess, ProtectedPathChange, ProtectedPathGuard};
use repertoire_sandbox::limits::SEARCHED_FOLDERS_MAX;
use repertoire_sandbox::process::{
    self, CapturedStream, ProcessInput, ProcessLimits, ProcessResult, ProcessSpec,
    ProcessStopReason, TerminationSettings,
};
use repertoire_sandbox::workplace::RunWorkplace;

/// The maximum total size of a command's arguments.
const COMMAND_BYTES_MAX: usize = 100_000;

/// The maximum number of changes to protected paths that are listed individually.
const CHANGES_TOLD_MAX: usize = 50;

pub(super) struct ToolCommand {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    /// Added to the workplace's environment, and takes precedence over it.
    pub(super) environment: Vec<(String, String)>,
    pub(super) timeout: Duration,
    pub(super) network: bool,
    /// Suffixes of protected paths that this program may change.
    pub(super) may_change: &'static [&'static str],
}

impl ToolCommand {
    /// Runs a text with `bash`.
    pub(super) fn shell(text: &str, timeout: Duration, network: bool) -> Result<Self, ToolOutput> {
        if text.trim().is_empty() {
            return Err(ToolOutput::error("the command is empty"));
        }
        let args = ["--noprofile", "--norc", "-c", text].map(str::to_owned).to_vec();
        check_args(&args)?;
        Ok(ToolCommand {
            program: "bash".to_owned(),
            args,
            environment: Vec::new(),
            timeout,
            network,
            may_change: &[],
        })
    }
}

/// Rejects arguments that cannot be passed to a program.
pub(super) fn check_args(args: &[String]) -> Result<(), ToolOutput> {
    if args.iter().any(|arg| arg.contains('\0')) {
        return Err(ToolOutput::error("the command has a NUL byte, which no program can be given"));
    }
    match args.iter().map(String::len).sum::<usize>() {
        0..=COMMAND_BYTES_MAX => Ok(()),
        many => Err(ToolOutput::error(format!(
            "the command has {many} bytes, more than {COMMAND_BYTES_MAX}; write it to a file first"
        ))),
    }
}

/// The timeout of a call: the requested or default one, limited to the workplace's maximum.
pub(super) fn call_timeout(
    call: &ToolInvocation<'_>,
    asked_ms: Option<u64>,
    usual: Duration,
) -> Duration {
    let limits = &call.run.workplace.limits;
    asked_ms
        .map_or(usual, Duration::from_millis)
        .clamp(Duration::from_millis(1), limits.timeout_max)
}

/// Runs a program. Restores protected paths afterwards and reports changes to them. The error is a result for the
/// model.
pub(super) async fn run(
    call: &ToolInvocation<'_>,
    command: ToolCommand,
) -> Result<ToolCommandResult, ToolOutput> {
    let mut workplace = call.run.workplace.clone();
    workplace.is_read_only |= !call.run.limit().effects().has(RunEffect::ChangeFiles);
    if !workplace.has_real_spill_folder() {
        return Err(ToolOutput::error(format!(
            "no program is started: the folder {} is reached through a link; the user has to remove it",
            workplace.spill_dir
        )));
    }
    let network = if command.network { NetworkAccess::On } else { NetworkAccess::Off };
    let prepared = run_blocking(move || {
        let may_change = command.may_change;
        // The guard comes before `confine`, which mounts the paths that it found.
        let guard = ProtectedPathGuard::allowing_changes(&workplace, may_change);
        if let Some(refusal) = guard.refusal() {
            return Err(refusal);
        }
        // Paths that the program may change must not be mounted read-only.
        workplace.protected.retain(|path| !may_change.iter().any(|may| path.ends_with(may)));
        let spawn = workplace.sandbox.confine(spawn_of(&workplace, command), &workplace, network);
        Ok((spawn, guard))
    })
    .await?;
    let (spawn, guard) = prepared.map_err(|refusal| {
        let message = format!("nothing was run: {refusal}");
        call.run.events.emit(EventKind::Warning { message: message.clone() });
        ToolOutput::error(message)
    })?;
    if guard.search_was_cut() {
        let message = format!(
            "Nested protected paths are searched for in the nearest {SEARCHED_FOLDERS_MAX} folders only; the work folder has more."
        );
        call.run.events.emit_once(EventKind::Degraded { what: "sandbox".to_owned(), message });
    }
    for folder in guard.closed_folders() {
        let message = format!(
            "The folder `{folder}` cannot be listed, so it is not searched for protected paths."
        );
        call.run.events.emit_once(EventKind::Degraded { what: "sandbox".to_owned(), message });
    }
    let mut pass = |_: &[u8]| process::OutputFlow::Continue;
    let ended = process::run(&spawn, &call.run.cancel, &mut pass).await;
    let changes = run_blocking(move || guard.restore_paths()).await?;
    let told = describe_changes(&changes);
    for message in &told {
        call.run.events.emit(EventKind::Warning { message: message.clone() });
    }
    let ended = ended.map_err(|error| ToolOutput::error(error.to_string()))?;
    Ok(ToolCommandResult { ended, changes: told })
}

/// The result of running a program.
pub(super) struct ToolCommandResult {
    pub ended: ProcessResult,
    /// Descriptions of its changes to protected paths.
    pub changes: Vec<String>,
}

impl ToolCommandResult {
    /// The changes to protected paths, one per line, each preceded by a line break.
    pub(super) fn format_changes(&self) -> String {
        self.changes.iter().map(|change| format!("\n[{change}]")).collect()
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolOutput> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        ToolOutput::error(format!("protected paths could not be looked at: {error}"))
    })
}

fn spawn_of(workplace: &RunWorkplace, command: ToolCommand) -> ProcessSpec {
    let mut environment = workplace.environment.clone();
    environment.retain(|(name, _)| !command.environment.iter().any(|(added, _)| added == name));
    environment.extend(command.environment);
    ProcessSpec {
        program: command.program,
        args: command.args,
        dir: workplace.dir.clone(),
        environment,
        stdin: ProcessInput::Closed,
        limits: ProcessLimits {
            idle: None,
            absolute: command.timeout,
            grace: workplace.limits.grace,
            kept_bytes_max: usize::try_from(workplace.limits.spill_bytes_max).unwrap_or(usize::MAX),
        },
        termination: TerminationSettings::default(),
    }
}

/// Describes the changes, one per line and up to a limit, failures first.
fn describe_changes(changes: &[ProtectedPathChange]) -> Vec<String> {
    let mut sorted: Vec<&ProtectedPathChange> = changes.iter().collect();
    sorted.sort_by_key(|change| !change.is_failure());
    let mut told: Vec<String> =
        sorted.iter().take(CHANGES_TOLD_MAX).map(|change| change.describe()).collect();
    if let Some(more) = changes.len().checked_sub(CHANGES_TOLD_MAX).filter(|more| *more > 0) {
        told.push(format!(
            "{more} more protected paths were changed, and put right or moved aside"
        ));
    }
    told
}

/// Describes how the program failed; `None` if it succeeded.
pub(super) fn describe_failure(ended: &ProcessResult, timeout: Duration) -> Option<String> {
    let stopped = match ended.stopped {
        Some(ProcessStopReason::Absolute | ProcessStopReason::Idle) => {
            let seconds = timeout.as_secs_f64();
            Some(format!(
                "stopped after {seconds} s with all that it had started; ask for more time with `timeout_ms`"
            ))
        }
        Some(ProcessStopReason::Cancelled) => Some("stopped, because the run was".to_owned()),
        Some(ProcessStopReason::Exceeded(exceeded)) => Some(exceeded.to_string()),
        Some(ProcessStopReason::AfterResult) | None => None,
    };
    stopped.or_else(|| match (ended.code, ended.signal) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit code {code}")),
        (None, Some(signal)) => Some(format!("ended by signal {signal}")),
        (None, None) => Some("ended, and nobody knows how".to_owned()),
    })
}

/// Builds the result for the model: how the program ended and its output, labelled where both streams have some.
pub(super) fn build_output(
    call: &ToolInvocation<'_>,
    ran: &ToolCommandResult,
    timeout: Duration,
) -> ToolOutput {
    let ended = &ran.ended;
    let failure = describe_failure(ended, timeout);
    let mut pieces: Vec<&[u8]> = Vec::new();
    let has_output = !(ended.stdout.bytes.is_empty() && ended.stderr.bytes.is_empty());
    let both = !ended.stdout.bytes.is_empty() && !ended.stderr.bytes.is_empty();
    let lost = [describe_lost("stdout", &ended.stdout), describe_lost("stderr", &ended.stderr)];
    // The ending comes first, because a one-line display shows only the first line.
    let ending = match (&failure, has_output) {
        (Some(failure), false) => format!("[{failure}; no output]"),
        (Some(failure), true) => format!("[{failure}]"),
        (None, false) => "[exit code 0; no output]".to_owned(),
        (None, true) => String::new(),
    };
    if !ending.is_empty() {
        pieces.push(ending.as_bytes());
    }
    for ((name, stream), lost) in
        [("stdout", &ended.stdout), ("stderr", &ended.stderr)].iter().zip(&lost)
    {
        if stream.bytes.is_empty() {
            continue;
        }
        if !pieces.is_empty() {
            pieces.push(b"\n");
        }
        if both || *name == "stderr" {
            pieces.push(if *name == "stdout" { b"stdout:\n" } else { b"stderr:\n" });
        }
        pieces.push(stream.bytes.trim_ascii_end());
        pieces.push(lost.as_bytes());
    }
    let changes = ran.format_changes();
    pieces.push(changes.as_bytes());
    let mut output = spill::bound_output(&pieces, &call.run.workplace, call.id);
    output.is_error = failure.is_some() || !ran.changes.is_empty();
    output
}

fn describe_lost(name: &str, stream: &CapturedStream) -> String {
    match stream.total.saturating_sub(stream.bytes.len() as u64) {
        0 => String::new(),
        bytes => format!("\n[{bytes} more bytes of {name} were not kept]"),
    }
}
