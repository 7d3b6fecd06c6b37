//! The failure of a command: a message, hints and the exit code.

use std::fmt;

use repertoire::error::{AppError, AppErrorKind};

/// The exit code of a command, with the same meaning for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CliExit {
    Done = 0,
    /// A negative answer: lint errors, something not found, a failed check.
    No = 1,
    /// Wrong usage.
    Usage = 2,
    /// The command could not run.
    CannotRun = 3,
    /// Interrupted with Ctrl-C.
    Interrupted = 130,
}

/// A command that failed, with its message and exit code.
#[derive(Debug)]
pub struct CliFailure {
    pub exit: CliExit,
    /// The problem, in one sentence.
    pub message: String,
    /// Suggestions for the user.
    pub hints: Vec<String>,
}

impl CliFailure {
    /// Creates a failure for a negative answer.
    pub fn negative_answer(message: impl Into<String>) -> Self {
        CliFailure { exit: CliExit::No, message: message.into(), hints: Vec::new() }
    }

    /// Creates a failure for wrong usage.
    pub fn wrong_usage(message: impl Into<String>) -> Self {
        CliFailure { exit: CliExit::Usage, message: message.into(), hints: Vec::new() }
    }

    /// Creates a failure for a command that could not run.
    pub fn cannot_run(message: impl Into<String>) -> Self {
        CliFailure { exit: CliExit::CannotRun, message: message.into(), hints: Vec::new() }
    }

    /// Adds a suggestion for the user.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for CliFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CliFailure {}

impl From<AppError> for CliFailure {
    fn from(error: AppError) -> Self {
        let exit = match error.kind {
            AppErrorKind::NegativeAnswer => CliExit::No,
            AppErrorKind::WrongUsage => CliExit::Usage,
            AppErrorKind::CannotRun => CliExit::CannotRun,
        };
        CliFailure { exit, message: error.message, hints: error.hints }
    }
}

/// Returns true if the reader has closed the pipe, which is no failure: see `rep list | head`.
pub(crate) fn is_broken_pipe(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}

impl From<std::io::Error> for CliFailure {
    fn from(error: std::io::Error) -> Self {
        let exit = if is_broken_pipe(&error) { CliExit::Done } else { CliExit::CannotRun };
        CliFailure { exit, message: format!("cannot write the output: {error}"), hints: Vec::new() }
    }
}

/// The result of a command.
pub type CliResult = Result<CliExit, CliFailure>;
