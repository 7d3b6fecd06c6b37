//! The error of assembling and configuring: its kind, a message and hints for the user.

use repertoire_skill::trust::TrustLockError;

/// The kind of an [`AppError`], by what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppErrorKind {
    /// The operation ran, and its answer is no.
    NegativeAnswer,
    /// An option or a setting is wrong.
    WrongUsage,
    /// The operation could not run.
    CannotRun,
}

/// An operation that failed, with a message and hints for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AppError {
    pub kind: AppErrorKind,
    /// The problem, in one sentence.
    pub message: String,
    /// Suggestions for the user.
    pub hints: Vec<String>,
}

impl AppError {
    /// Creates an error for a negative answer.
    pub fn negative_answer(message: impl Into<String>) -> Self {
        AppError { kind: AppErrorKind::NegativeAnswer, message: message.into(), hints: Vec::new() }
    }

    /// Creates an error for a wrong option or setting.
    pub fn wrong_usage(message: impl Into<String>) -> Self {
        AppError { kind: AppErrorKind::WrongUsage, message: message.into(), hints: Vec::new() }
    }

    /// Creates an error for an operation that could not run.
    pub fn cannot_run(message: impl Into<String>) -> Self {
        AppError { kind: AppErrorKind::CannotRun, message: message.into(), hints: Vec::new() }
    }

    /// Adds a suggestion for the user.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<TrustLockError> for AppError {
    fn from(error: TrustLockError) -> Self {
        AppError::cannot_run(error.to_string())
    }
}
