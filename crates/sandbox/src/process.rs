//! Child processes under supervision: input closed, a process group of their own, output drained while they run and
//! kept within bounds, time limits, everything that they started killed and reaped, and the exit reported.
//!
//! A program in the [sandbox](crate::confinement) and one that was [`supervised`] runs beneath a supervisor, which ends every
//! descendant, also one that has left its process group (`setsid`). Without a supervisor only the process group is ended,
//! and a process that left it no longer delays the caller after the grace time.

use std::io;
use std::time::Duration;

use camino::Utf8PathBuf;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::group::Group;
use self::lines::Lines;
use self::supervisor::KnownChild;

#[cfg(target_os = "linux")]
pub(crate) mod control_group;
mod group;
#[cfg(target_os = "linux")]
mod held;
mod left;
mod lines;
#[cfg(target_os = "linux")]
pub(crate) mod measure;
#[cfg(target_os = "linux")]
mod socket_memory;
mod supervise;
pub(crate) mod supervisor;
#[cfg(target_os = "linux")]
pub(crate) mod table;
mod usage;

pub use self::left::{Occupant, end_left, occupants};
pub use self::supervisor::{install_supervisor, supervised};
pub use self::usage::{Exceeded, LimitedResource, UsageLimits};

/// What to start.
#[derive(Clone, Debug)]
pub struct Spawn {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it runs.
    pub dir: Utf8PathBuf,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// What it reads.
    pub stdin: Stdin,
    /// Caps.
    pub limits: ProcessLimits,
    /// How it is ended.
    pub termination: Termination,
}

/// The way in which a program is ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Termination {
    /// The processes that end with the program. [`supervised`] and the sandbox set it.
    pub scope: TerminationScope,
    /// The signals that ask the program to end, before everything is killed.
    pub request: TerminationRequest,
}

/// The processes that end with a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TerminationScope {
    /// Its process group.
    #[default]
    ProcessGroup,
    /// All its descendants: the process that is started is a supervisor.
    Descendants,
}

/// The signals that ask a program to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TerminationRequest {
    /// `SIGTERM`.
    #[default]
    Terminate,
    /// `SIGINT`, and `SIGTERM` after half of the grace time: for agents that stop their own commands only on `SIGINT`.
    InterruptThenTerminate,
}

/// What a process reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    #[default]
    Closed,
    /// This text, then nothing.
    Text(String),
}

/// Caps on a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Longest silence.
    pub idle: Option<Duration>,
    /// Longest life.
    pub absolute: Duration,
    /// How long a group has to end after it was asked to, before it is killed; and how long its output is drained
    /// after the process itself has ended, in case a grandchild holds it open.
    pub grace: Duration,
    /// Most bytes of each stream that are kept; the rest is drained and counted.
    pub kept_bytes_max: usize,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why we ended it, if we did.
    pub stopped: Option<Stopped>,
    /// What it wrote, as far as it was kept.
    pub stdout: Captured,
    /// What it complained, as far as it was kept.
    pub stderr: Captured,
    /// How long it ran.
    pub duration: Duration,
}

/// Why a process was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It was silent for too long.
    Idle,
    /// It took too long.
    Absolute,
    /// Somebody stopped the run.
    Cancelled,
    /// It had said all there was to say and did not end.
    AfterResult,
    /// It exceeded a resource limit.
    Exceeded(Exceeded),
}

/// A stream as far as it was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The start.
    pub bytes: Vec<u8>,
    /// How many bytes there were in all.
    pub total: u64,
}

/// A process that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The program is not there or may not be run.
    #[error("`{program}` cannot be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
}

/// What the reader of a process's output wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// More.
    Continue,
    /// The result is there: the process has the grace time to end by itself.
    Finished,
}

/// Runs a process to its end. `on_line` is given each line of its standard output as it comes, without the line break; a
/// line longer than the cap comes in pieces. After [`Flow::Finished`] it is not called again.
///
/// Whatever is left of the processes in [`Termination::scope`] is killed before this returns, and also when the future is
/// dropped.
///
/// # Errors
///
/// When it cannot be started. Everything else is in [`Ended`].
pub async fn run(
    spawn: &Spawn,
    cancel: &CancellationToken,
    on_line: &mut (dyn FnMut(&[u8]) -> Flow + Send),
) -> Result<Ended, ProcessError> {
    let started = Instant::now();
    let (mut child, group) = start(spawn)?;
    let feeding = supervise::feed(child.stdin.take(), &spawn.stdin);
    let lines = Lines::new(on_line);
    Ok(supervise::to_the_end(&mut child, group, lines, feeding, spawn, cancel, started).await)
}

/// Like [`run`], for a process that is talked with: it reads what comes through `said` as it comes, and its input
/// ends when the channel is closed. What `spawn` says of its input is given first.
///
/// # Errors
///
/// When it cannot be started. Everything else is in [`Ended`].
pub async fn converse(
    spawn: &Spawn,
    cancel: &CancellationToken,
    said: mpsc::Receiver<String>,
    on_line: &mut (dyn FnMut(&[u8]) -> Flow + Send),
) -> Result<Ended, ProcessError> {
    let started = Instant::now();
    let (mut child, group) = start(spawn)?;
    let feeding = supervise::feed_as_said(child.stdin.take(), &spawn.stdin, said);
    let lines = Lines::new(on_line);
    Ok(supervise::to_the_end(&mut child, group, lines, feeding, spawn, cancel, started).await)
}

/// Starts a process whose streams the caller reads and writes.
pub fn start(spawn: &Spawn) -> Result<(tokio::process::Child, Group), ProcessError> {
    let started = KnownChild::start(&mut command(spawn)).map_err(|source| ProcessError::Start {
        program: spawn.program.clone(),
        source: told(source, spawn),
    });
    started.map(|(child, known)| (child, Group::new(known, spawn)))
}

fn command(spawn: &Spawn) -> tokio::process::Command {
    use std::process::Stdio;
    let mut command = tokio::process::Command::new(&spawn.program);
    command
        .args(&spawn.args)
        .current_dir(&spawn.dir)
        .env_clear()
        .envs(spawn.environment.iter().map(|(name, value)| (name, value)))
        .stdin(match spawn.stdin {
            Stdin::Closed => Stdio::null(),
            Stdin::Text(_) => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        // A supervisor has to outlive this value: it ends the others first.
        .kill_on_drop(spawn.termination.scope == TerminationScope::ProcessGroup);
    command
}

/// A missing folder and a missing program are the same error to the system; a person needs to know which.
fn told(error: io::Error, spawn: &Spawn) -> io::Error {
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
