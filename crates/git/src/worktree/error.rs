//! What could not be done with a worktree.

use camino::{Utf8Path, Utf8PathBuf};

use repertoire_sandbox::process::Occupant;

use crate::repo::{GitError, Progress};

/// Something that could not be done with a worktree.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// git said no.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The disk said no.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: Utf8PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The folder of a worktree is not there any more.
    #[error(
        "the worktree {dir} is gone; its branch is there, and it is made again when the run is resumed"
    )]
    Gone {
        /// The folder.
        dir: Utf8PathBuf,
    },
    /// Not the id of a run.
    #[error("`{run}` cannot be the id of a run: letters, digits, `-`, `_` and `.` can")]
    BadRun {
        /// What was given.
        run: String,
    },
    /// The user's checkout has changes, which the worktree would not have.
    #[error(
        "{dir} has changes that are not committed, and a worktree would be without them: {}; commit or stash them, or leave them behind with `--allow-dirty`",
        some(files)
    )]
    Dirty {
        /// The checkout.
        dir: Utf8PathBuf,
        /// The files.
        files: Vec<String>,
    },
    /// A checkout is in the middle of something.
    #[error("{dir} is in the middle of {}; finish or abort it first", progress.as_str())]
    InTheMiddle {
        /// The checkout.
        dir: Utf8PathBuf,
        /// Of what.
        progress: Progress,
    },
    /// No branch is checked out, and none was named.
    #[error(
        "{dir} has no branch checked out; check one out, or name the one that the work builds on with `--base`"
    )]
    NoBranch {
        /// The checkout.
        dir: Utf8PathBuf,
    },
    /// There is no such branch.
    #[error("there is no branch `{branch}`")]
    NoSuchBranch {
        /// What was asked for.
        branch: String,
    },
    /// The name of a branch is taken.
    #[error(
        "there is a branch `{branch}` already, and it is of something else; rename or delete it"
    )]
    BranchTaken {
        /// The branch.
        branch: String,
    },
    /// The branch of the run is checked out elsewhere.
    #[error("the branch `{branch}` is checked out in {dir}; switch to another one there")]
    BranchElsewhere {
        /// The branch.
        branch: String,
        /// Where.
        dir: Utf8PathBuf,
    },
    /// Somebody else has the run now.
    #[error(
        "the worktree of run {run} belongs to {worker} now (token {theirs}, ours was {ours}); stop working on it"
    )]
    Fenced {
        /// The run.
        run: String,
        /// Who has it.
        worker: String,
        /// Their token.
        theirs: u64,
        /// Ours.
        ours: u64,
    },
    /// What says whose a worktree is cannot be read.
    #[error(
        "{path} says whose a worktree is, and cannot be read: {why}; remove it if no worker is on that run"
    )]
    BadOwner {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        why: String,
    },
    /// A process is at work in the worktree.
    #[error("process {process} still works on {path}; wait for it, or end it")]
    AtWork {
        /// The process.
        process: u32,
        /// What it holds.
        path: Utf8PathBuf,
    },
    /// Processes that belong to no known worker work in the worktree.
    #[error(
        "the worktree {dir} is not taken over while other processes work in it: {}; end them, or leave the folder, then resume the run",
        named(processes)
    )]
    Occupied {
        /// The worktree.
        dir: Utf8PathBuf,
        /// The processes.
        processes: Vec<Occupant>,
    },
    /// Somebody else changes worktrees for too long.
    #[error("another process holds {path} for too long; is it stuck?")]
    Waited {
        /// The lock.
        path: Utf8PathBuf,
    },
    /// There is no worktree of that run.
    #[error("there is no worktree of run {run}")]
    NoSuchRun {
        /// The run.
        run: String,
    },
    /// The worktree has changes that are not committed.
    #[error(
        "the worktree {dir} has changes that are not committed: {}; commit them first",
        some(files)
    )]
    Uncommitted {
        /// The worktree.
        dir: Utf8PathBuf,
        /// The files.
        files: Vec<String>,
    },
    /// Something else is checked out in the worktree, and may have commits of its own.
    #[error("`{branch}` is not what is checked out in {dir}; prepare the worktree again")]
    Elsewhere {
        /// The worktree.
        dir: Utf8PathBuf,
        /// The run's branch.
        branch: String,
    },
    /// It is not safe to remove it.
    #[error("the worktree of run {run} is kept: {why}")]
    NotSafe {
        /// The run.
        run: String,
        /// Why.
        why: String,
    },
    /// A merge would conflict. Nothing was changed.
    #[error("merging `{branch}` into `{into}` conflicts, and nothing was changed: {}", some(files))]
    Conflict {
        /// The branch of the run.
        branch: String,
        /// Where it should go.
        into: String,
        /// The files.
        files: Vec<String>,
    },
    /// The checkout of the branch to merge into has changes.
    #[error(
        "`{into}` is checked out in {dir}, with changes: {}; commit or stash them first",
        some(files)
    )]
    IntoDirty {
        /// The branch.
        into: String,
        /// Where.
        dir: Utf8PathBuf,
        /// The files.
        files: Vec<String>,
    },
    /// A pattern of files to copy that leads out of the repository.
    #[error("`{pattern}` does not stay beneath the repository")]
    BadPattern {
        /// The pattern.
        pattern: String,
    },
}

impl WorktreeError {
    pub(super) fn io(path: &Utf8Path, source: std::io::Error) -> Self {
        WorktreeError::Io { path: path.to_owned(), source }
    }
}

/// The ids of processes, each with the name of its program.
fn named(processes: &[Occupant]) -> String {
    let name = |one: &Occupant| format!("{} (`{}`)", one.process, one.program.escape_debug());
    processes.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The first files, and how many more there are.
fn some(files: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<String> =
        files.iter().take(SHOWN).map(|file| format!("`{}`", file.escape_debug())).collect();
    match files.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
