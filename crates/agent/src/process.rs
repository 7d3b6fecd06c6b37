//! Child processes under supervision: input closed, a process group of their own, output drained while they run and
//! kept within bounds, time limits, the whole group killed and reaped, and the exit told.

use std::time::Duration;

use camino::Utf8PathBuf;
use tokio_util::sync::CancellationToken;

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
/// line longer than the cap comes in pieces.
///
/// # Errors
///
/// When it cannot be started. Everything else is in [`Ended`].
pub async fn run(
    spawn: &Spawn,
    cancel: &CancellationToken,
    on_line: &mut (dyn FnMut(&[u8]) -> Flow + Send),
) -> Result<Ended, ProcessError> {
    let _ = (spawn, cancel, on_line);
    unimplemented!()
}
