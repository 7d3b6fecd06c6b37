//! Errors of worktree operations.

use camino::{Utf8Path, Utf8PathBuf};

use repertoire_sandbox::process::FolderOccupant;

use crate::repo::{GitError, Progress};

/// An error of a worktree operation.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{path}: {source}")]
    Io { path: Utf8PathBuf, source: std::io::Error },
    #[error(
        "the worktree {dir} is gone; its branch is there, and it is made again when the run is resumed"
    )]
    Gone { dir: Utf8PathBuf },
    #[error("`{run}` cannot be the id of a run: letters, digits, `-`, `_` and `.` can")]
    BadRun { run: String },
    #[error(
        "{dir} has changes that are not committed, and a worktree would be without them: {}; commit or stash them, or leave them behind with `--allow-dirty`",
        some(files)
    )]
    Dirty { dir: Utf8PathBuf, files: Vec<String> },
    /// A checkout has an unfinished operation, such as a rebase.
    #[error("{dir} is in the middle of {}; finish or abort it first", progress.as_str())]
    InTheMiddle { dir: Utf8PathBuf, progress: Progress },
    #[error(
        "{dir} has no branch checked out; check one out, or name the one that the work builds on with `--base`"
    )]
    NoBranch { dir: Utf8PathBuf },
    #[error("there is no branch `{branch}`")]
    NoSuchBranch { branch: String },
    /// A branch of this name exists and does not belong to the run.
    #[error(
        "there is a branch `{branch}` already, and it is of something else; rename or delete it"
    )]
    BranchTaken { branch: String },
    #[error("the branch `{branch}` is checked out in {dir}; switch to another one there")]
    BranchElsewhere { branch: String, dir: Utf8PathBuf },
    /// The lease has passed to another worker.
    #[error(
        "the worktree of run {run} belongs to {worker} now (token {theirs}, ours was {ours}); stop working on it"
    )]
    Fenced {
        run: String,
        /// The current owner.
        worker: String,
        theirs: u64,
        ours: u64,
    },
    /// The owner file cannot be read.
    #[error(
        "{path} says whose a worktree is, and cannot be read: {why}; remove it if no worker is on that run"
    )]
    BadOwner { path: Utf8PathBuf, why: String },
    /// A process may hold a lock in the worktree.
    #[error("process {process} still works on {path}; wait for it, or end it")]
    AtWork {
        /// The process id; 0 if it is unknown.
        process: u32,
        /// The lock file.
        path: Utf8PathBuf,
    },
    /// Unknown processes run in the worktree.
    #[error(
        "the worktree {dir} is not taken over while other processes work in it: {}; end them, or leave the folder, then resume the run",
        named(processes)
    )]
    Occupied { dir: Utf8PathBuf, processes: Vec<FolderOccupant> },
    /// Timeout while waiting for the worktree lock.
    #[error("another process holds {path} for too long; is it stuck?")]
    Waited {
        /// The lock file.
        path: Utf8PathBuf,
    },
    #[error("there is no worktree of run {run}")]
    NoSuchRun { run: String },
    #[error(
        "the worktree {dir} has changes that are not committed: {}; commit them first",
        some(files)
    )]
    Uncommitted { dir: Utf8PathBuf, files: Vec<String> },
    /// Something other than the run's branch is checked out in the worktree, and may have its own
    /// commits.
    #[error("`{branch}` is not what is checked out in {dir}; prepare the worktree again")]
    Elsewhere {
        dir: Utf8PathBuf,
        /// The run's branch.
        branch: String,
    },
    #[error("the worktree of run {run} is kept: {why}")]
    NotSafe { run: String, why: String },
    /// A merge would conflict. Nothing was changed.
    #[error("merging `{branch}` into `{into}` conflicts, and nothing was changed: {}", some(files))]
    Conflict {
        /// The branch of the run.
        branch: String,
        /// The target branch.
        into: String,
        /// The files with conflicts.
        files: Vec<String>,
    },
    /// The target branch is checked out, and that checkout has changes.
    #[error(
        "`{into}` is checked out in {dir}, with changes: {}; commit or stash them first",
        some(files)
    )]
    IntoDirty {
        /// The target branch.
        into: String,
        /// The checkout of the target branch.
        dir: Utf8PathBuf,
        files: Vec<String>,
    },
    #[error("`{pattern}` does not stay beneath the repository")]
    BadPattern { pattern: String },
}

impl WorktreeError {
    pub(super) fn from_io(path: &Utf8Path, source: std::io::Error) -> Self {
        WorktreeError::Io { path: path.to_owned(), source }
    }
}

/// Formats process ids with the names of their programs.
fn named(processes: &[FolderOccupant]) -> String {
    let names = processes
        .iter()
        .map(|occupant| format!("{} (`{}`)", occupant.process, occupant.program.escape_debug()));
    names.collect::<Vec<_>>().join(", ")
}

/// Formats the first files, and the number of further ones.
fn some(files: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<String> =
        files.iter().take(SHOWN).map(|file| format!("`{}`", file.escape_debug())).collect();
    match files.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
