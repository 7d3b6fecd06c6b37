//! Errors of git calls.

use camino::Utf8PathBuf;
use repertoire_sandbox::process::ProcessError;

use crate::limits::GIT_VERSION_MIN;

/// An error of a git call.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git is not installed, or could not be started.
    #[error("{0}; install git {major}.{minor} or later", major = GIT_VERSION_MIN.0, minor = GIT_VERSION_MIN.1)]
    Start(#[from] ProcessError),
    #[error(
        "git is too old: this is `{found}`, and {major}.{minor} or later is needed",
        major = GIT_VERSION_MIN.0, minor = GIT_VERSION_MIN.1
    )]
    TooOld {
        /// The output of `git --version`.
        found: String,
    },
    #[error("{dir} is in no git repository; run `git init` there, or go to one")]
    NotARepository { dir: Utf8PathBuf },
    #[error(
        "the repository at {top} belongs to another user, whose configuration could run programs as you; if you trust it, \
         run `git config --global --add safe.directory {top}`"
    )]
    OtherOwner {
        /// The root of the work tree.
        top: Utf8PathBuf,
    },
    #[error(
        "the `.git` of {top} leads to the git folder of another work tree, which does not name this one; a moved worktree is \
         repaired by `git worktree repair`, and if you made the link yourself, run \
         `git config --global --add safe.directory {top}`"
    )]
    OtherWorkTree {
        /// The root of the work tree.
        top: Utf8PathBuf,
    },
    #[error("git could not be started in the sandbox: {said}")]
    NoWalls { said: String },
    #[error("the repository at {dir} has no commit yet; commit something first")]
    Unborn { dir: Utf8PathBuf },
    #[error("there is no branch, tag or commit `{revision}`")]
    NoSuchRevision { revision: String },
    #[error("`{branch}` cannot be the name of a branch; see `git help check-ref-format`")]
    BadBranchName { branch: String },
    #[error("`{path}` is not a path beneath the repository")]
    BadPath { path: String },
    #[error("a commit needs a message, and this one is empty")]
    NoMessage,
    #[error(
        "the repository at {dir} is a partial clone and lacks objects that are needed, and git may not fetch them here; \
         run `git fetch --refetch --no-filter` first"
    )]
    MissingObjects { dir: Utf8PathBuf },
    #[error(
        "another git process seems to be at work (`{command}`: {said}); wait for it, or remove the lock if it is dead"
    )]
    Locked { command: String, said: String },
    #[error("`{command}` failed in {dir} with exit code {code}: {said}")]
    Failed {
        command: String,
        dir: Utf8PathBuf,
        /// -1 if a signal ended git.
        code: i32,
        /// The end of git's standard error.
        said: String,
    },
    #[error(
        "`{command}` was stopped after {seconds} s in {dir}; is the disk slow, or does a filter hang?"
    )]
    TimedOut {
        command: String,
        dir: Utf8PathBuf,
        /// The timeout.
        seconds: u64,
    },
    /// The output is larger than the limit.
    #[error(
        "`{command}` said {bytes} bytes, more than are read; are there files that should be ignored?"
    )]
    TooMuch {
        command: String,
        /// The size of the whole output.
        bytes: u64,
    },
    /// The output has an unknown format.
    #[error("`{command}` gave an answer that is not understood: {said}")]
    Unclear {
        command: String,
        /// The start of the output.
        said: String,
    },
    #[error("{path}: {source}")]
    Io { path: Utf8PathBuf, source: std::io::Error },
}
