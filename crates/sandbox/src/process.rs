//! Supervised child processes: standard input closed, a process group of their own, output drained concurrently into
//! bounded buffers, timeouts, and all descendants killed and reaped.
//!
//! A program in the [sandbox](crate::confinement), or one that is [`with_supervisor`], runs beneath a supervisor process. It
//! kills every descendant, including those that left the process group (`setsid`). Without a supervisor only the
//! process group is killed, and a process that left it delays the caller at most for the grace time.

use std::io;
use std::time::Duration;

use camino::Utf8PathBuf;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::group::SupervisedGroup;
use self::lines::LineSplitter;
use self::supervisor::KnownChild;

#[cfg(target_os = "linux")]
pub(crate) mod control_group;
mod group;
mod leftover_processes;
mod lines;
#[cfg(target_os = "linux")]
pub(crate) mod measure;
#[cfg(target_os = "linux")]
mod socket_memory;
mod supervise;
pub(crate) mod supervisor;
#[cfg(target_os = "linux")]
pub(crate) mod table;
#[cfg(target_os = "linux")]
mod uncharged;
mod usage;

pub use self::leftover_processes::{FolderOccupant, kill_marked_processes, occupants};
pub use self::supervisor::{install_supervisor, with_supervisor};
pub use self::usage::{ExceededLimit, LimitedResource, UsageLimits};

/// A process to start.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    pub program: String,
    pub args: Vec<String>,
    /// The working directory.
    pub dir: Utf8PathBuf,
    /// The complete environment; nothing is inherited.
    pub environment: Vec<(String, String)>,
    pub stdin: ProcessInput,
    pub limits: ProcessLimits,
    pub termination: TerminationSettings,
}

/// Settings for ending a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminationSettings {
    /// The processes that end with the program. Set by [`with_supervisor`] and the sandbox.
    pub scope: TerminationScope,
    /// The signals that ask the program to end before it is killed.
    pub request: TerminationRequest,
}

/// The processes that end with a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TerminationScope {
    /// The program's process group.
    #[default]
    ProcessGroup,
    /// All descendants of the program. The process that is started is a supervisor.
    Descendants,
}

/// The signals that ask a program to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TerminationRequest {
    /// `SIGTERM`.
    #[default]
    Terminate,
    /// `SIGINT`, then `SIGTERM` after half of the grace time: for agents that stop their own commands only on `SIGINT`.
    InterruptThenTerminate,
}

/// Standard input of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProcessInput {
    #[default]
    Closed,
    /// This text, followed by end of file.
    Text(String),
}

/// Limits on a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// The maximum time without output.
    pub idle: Option<Duration>,
    /// The maximum run time.
    pub absolute: Duration,
    /// How long a process group has to end after it was asked to, before it is killed. Also how long output is drained
    /// after the process itself has ended, in case a grandchild holds it open.
    pub grace: Duration,
    /// The maximum number of bytes kept per stream. The rest is drained and counted.
    pub kept_bytes_max: usize,
}

/// The result of a process that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessResult {
    /// The exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// The signal that ended the process.
    pub signal: Option<i32>,
    /// The reason why we ended the process, if we did.
    pub stopped: Option<ProcessStopReason>,
    /// Standard output, up to [`ProcessLimits::kept_bytes_max`].
    pub stdout: CapturedStream,
    /// Standard error, up to [`ProcessLimits::kept_bytes_max`].
    pub stderr: CapturedStream,
    pub duration: Duration,
}

/// The reason why a process was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessStopReason {
    /// It wrote no output for too long.
    Idle,
    /// It ran for too long.
    Absolute,
    /// The run was cancelled.
    Cancelled,
    /// It had delivered its result but did not exit.
    AfterResult,
    Exceeded(ExceededLimit),
}

/// The captured part of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedStream {
    /// The first bytes of the stream.
    pub bytes: Vec<u8>,
    /// The total number of bytes, including those not kept.
    pub total: u64,
}

/// A process that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The program does not exist or cannot be executed.
    #[error("`{program}` cannot be started: {source}")]
    Start { program: String, source: std::io::Error },
}

/// The response of a reader to a line of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFlow {
    /// Keep reading.
    Continue,
    /// The result is complete: the process gets the grace time to exit by itself.
    Finished,
}

/// Runs a process to its end. `on_line` gets each line of standard output as it arrives, without the line break; a line
/// longer than the cap arrives in pieces. After [`OutputFlow::Finished`] it is not called again.
///
/// All remaining processes in [`TerminationSettings::scope`] are killed before this returns, and also when the future is
/// dropped.
///
/// # Errors
///
/// If the process cannot be started. Every other outcome is in [`ProcessResult`].
#[tracing::instrument(name = "process", level = "debug", skip_all, fields(program = %spawn.program))]
pub async fn run(
    spawn: &ProcessSpec,
    cancel: &CancellationToken,
    on_line: &mut (dyn FnMut(&[u8]) -> OutputFlow + Send),
) -> Result<ProcessResult, ProcessError> {
    let started = Instant::now();
    let (mut child, group) = start(spawn)?;
    let feeding = supervise::feed_stdin(child.stdin.take(), &spawn.stdin);
    let lines = LineSplitter::new(on_line);
    Ok(supervise::supervise_to_end(&mut child, group, lines, feeding, spawn, cancel, started).await)
}

/// Like [`run`], for an interactive process: text sent through `said` is written to its standard input, which is closed
/// when the channel closes. The text in [`ProcessSpec::stdin`] is written first.
///
/// # Errors
///
/// If the process cannot be started. Every other outcome is in [`ProcessResult`].
pub async fn run_interactive(
    spawn: &ProcessSpec,
    cancel: &CancellationToken,
    said: mpsc::Receiver<String>,
    on_line: &mut (dyn FnMut(&[u8]) -> OutputFlow + Send),
) -> Result<ProcessResult, ProcessError> {
    let started = Instant::now();
    let (mut child, group) = start(spawn)?;
    let feeding = supervise::feed_messages(child.stdin.take(), &spawn.stdin, said);
    let lines = LineSplitter::new(on_line);
    Ok(supervise::supervise_to_end(&mut child, group, lines, feeding, spawn, cancel, started).await)
}

/// Starts a process whose streams the caller reads and writes.
pub fn start(
    spawn: &ProcessSpec,
) -> Result<(tokio::process::Child, SupervisedGroup), ProcessError> {
    let started =
        KnownChild::start(&mut build_command(spawn)).map_err(|source| ProcessError::Start {
            program: spawn.program.clone(),
            source: clarify_start_error(source, spawn),
        });
    started.map(|(child, known)| (child, SupervisedGroup::new(known, spawn)))
}

fn build_command(spawn: &ProcessSpec) -> tokio::process::Command {
    use std::process::Stdio;
    let mut command = tokio::process::Command::new(&spawn.program);
    command
        .args(&spawn.args)
        .current_dir(&spawn.dir)
        .env_clear()
        .envs(spawn.environment.iter().map(|(name, value)| (name, value)))
        .stdin(match spawn.stdin {
            ProcessInput::Closed => Stdio::null(),
            ProcessInput::Text(_) => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        // A supervisor must outlive this value, because it still has to kill its descendants.
        .kill_on_drop(spawn.termination.scope == TerminationScope::ProcessGroup);
    command
}

/// Clarifies a start error: the system reports a missing folder and a missing program alike.
fn clarify_start_error(error: io::Error, spawn: &ProcessSpec) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound if !spawn.dir.is_dir() => {
            io::Error::new(error.kind(), format!("there is no folder `{}` to run it in", spawn.dir))
        }
        io::ErrorKind::NotFound if spawn.program.contains('/') => {
            io::Error::new(error.kind(), "there is no such file")
        }
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), "it is in none of the folders of PATH")
        }
        _ => error,
    }
}
