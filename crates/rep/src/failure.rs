//! What went wrong with a command: one message, what to do next, and the exit code.

use std::fmt;

/// Exit codes, the same for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// The answer is no: lint errors, something not found, a check that failed.
    No = 1,
    /// Wrong use.
    Usage = 2,
    /// Could not run.
    CannotRun = 3,
    /// Somebody pressed Ctrl-C.
    Interrupted = 130,
}

/// A command that did not happen.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do next.
    pub hints: Vec<String>,
}

impl Failure {
    /// The answer is no.
    pub fn no(message: impl Into<String>) -> Self {
        Failure { exit: Exit::No, message: message.into(), hints: Vec::new() }
    }

    /// The user asked for something that makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { exit: Exit::Usage, message: message.into(), hints: Vec::new() }
    }

    /// The world is in the way.
    pub fn cannot_run(message: impl Into<String>) -> Self {
        Failure { exit: Exit::CannotRun, message: message.into(), hints: Vec::new() }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// A reader that went away is no failure: `rep list | head` is done.
pub(crate) fn is_broken_pipe(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let exit = if is_broken_pipe(&error) { Exit::Done } else { Exit::CannotRun };
        Failure { exit, message: format!("cannot write the output: {error}"), hints: Vec::new() }
    }
}

/// What a command gives back.
pub type Outcome = Result<Exit, Failure>;
