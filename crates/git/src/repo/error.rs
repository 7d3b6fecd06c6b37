//! What git did not do.

use camino::Utf8PathBuf;
use repertoire_sandbox::process::ProcessError;

use crate::limits::GIT_VERSION_MIN;

/// Something that git did not do.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It is not there.
    #[error("{0}; install git {major}.{minor} or later", major = GIT_VERSION_MIN.0, minor = GIT_VERSION_MIN.1)]
    Start(#[from] ProcessError),
    /// It is too old.
    #[error(
        "git is too old: this is `{found}`, and {major}.{minor} or later is needed",
        major = GIT_VERSION_MIN.0, minor = GIT_VERSION_MIN.1
    )]
    TooOld {
        /// What it says of itself.
        found: String,
    },
    /// The folder is in no repository.
    #[error("{dir} is in no git repository; run `git init` there, or go to one")]
    NotARepository {
        /// The folder.
        dir: Utf8PathBuf,
    },
    /// Another user owns the repository.
    #[error(
        "the repository at {top} belongs to another user, whose configuration could run programs as you; if you trust it, \
         run `git config --global --add safe.directory {top}`"
    )]
    OtherOwner {
        /// The root of its files.
        top: Utf8PathBuf,
    },
    /// The sandbox did not start git.
    #[error("git could not be started in the sandbox: {said}")]
    NoWalls {
        /// The message of the sandbox.
        said: String,
    },
    /// There is no commit yet.
    #[error("the repository at {dir} has no commit yet; commit something first")]
    Unborn {
        /// The folder.
        dir: Utf8PathBuf,
    },
    /// There is no such commit.
    #[error("there is no branch, tag or commit `{revision}`")]
    NoSuchRevision {
        /// What was asked for.
        revision: String,
    },
    /// Not the name of a branch.
    #[error("`{branch}` cannot be the name of a branch; see `git help check-ref-format`")]
    BadBranchName {
        /// What was asked for.
        branch: String,
    },
    /// A path that git cannot be asked about.
    #[error("`{path}` is not a path beneath the repository")]
    BadPath {
        /// The path.
        path: String,
    },
    /// A commit needs a message.
    #[error("a commit needs a message, and this one is empty")]
    NoMessage,
    /// A partial clone lacks objects.
    #[error(
        "the repository at {dir} is a partial clone and lacks objects that are needed, and git may not fetch them here; \
         run `git fetch --refetch --no-filter` first"
    )]
    MissingObjects {
        /// The folder.
        dir: Utf8PathBuf,
    },
    /// Another process has locked something.
    #[error(
        "another git process seems to be at work (`{command}`: {said}); wait for it, or remove the lock if it is dead"
    )]
    Locked {
        /// What was run.
        command: String,
        /// What git said.
        said: String,
    },
    /// It said no.
    #[error("`{command}` failed in {dir} with exit code {code}: {said}")]
    Failed {
        /// What was run.
        command: String,
        /// Where.
        dir: Utf8PathBuf,
        /// Its exit code; -1 if a signal ended it.
        code: i32,
        /// The end of what git said.
        said: String,
    },
    /// It took too long.
    #[error(
        "`{command}` was stopped after {seconds} s in {dir}; is the disk slow, or does a filter hang?"
    )]
    TimedOut {
        /// What was run.
        command: String,
        /// Where.
        dir: Utf8PathBuf,
        /// How long it had.
        seconds: u64,
    },
    /// It said more than is read.
    #[error(
        "`{command}` said {bytes} bytes, more than are read; are there files that should be ignored?"
    )]
    TooMuch {
        /// What was run.
        command: String,
        /// How much it said.
        bytes: u64,
    },
    /// It said something that is not understood.
    #[error("`{command}` gave an answer that is not understood: {said}")]
    Unclear {
        /// What was run.
        command: String,
        /// The answer, shortened.
        said: String,
    },
    /// The disk said no.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: Utf8PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
