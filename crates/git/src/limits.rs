//! The caps on calls of git and on worktrees.

use std::time::Duration;

/// The oldest git that will do: `merge-tree` without a checkout, paths from a file, and locks with a reason.
pub const GIT_VERSION_MIN: (u32, u32) = (2, 41);

/// How long a call of git may take: a checkout of a large repository does.
pub const GIT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Longest time that git may take to read configuration.
pub const GIT_CONFIG_TIMEOUT: Duration = Duration::from_secs(10);

/// How long git has to end after it was asked to.
pub const GIT_GRACE: Duration = Duration::from_secs(5);

/// Most of what git says that is read.
pub const GIT_OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most of git's complaints that go into an error.
pub const GIT_SAID_BYTES_MAX: usize = 2 * 1024;

/// The largest index that is searched for submodules; git is asked about a larger one.
pub const GIT_INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The largest list of repositories that another one borrows objects from.
pub const GIT_ALTERNATES_BYTES_MAX: u64 = 64 * 1024;

/// The maximum number of repositories that another one borrows objects from.
pub const GIT_ALTERNATES_MAX: usize = 16;

/// The largest list of commits whose history was not fetched.
pub const GIT_SHALLOW_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How often a change to the configuration is tried while another process makes one.
pub const GIT_CONFIG_TRIES: u32 = 40;

/// How long it waits in between.
pub const GIT_CONFIG_POLL: Duration = Duration::from_millis(50);

/// Most commits of a log.
pub const LOG_COMMITS_MAX: usize = 10_000;

/// Most characters of a run's name in the name of its branch.
pub const WORKTREE_NAME_CHARS_MAX: usize = 40;

/// How long a change to worktrees waits for another one: a checkout may take its time.
pub const WORKTREE_LOCK_WAIT: Duration = Duration::from_secs(10 * 60);

/// How long processes of a former owner have to leave a worktree before taking it over fails.
pub const WORKTREE_FREE_WAIT: Duration = Duration::from_secs(3);

/// How often it looks.
pub const WORKTREE_LOCK_POLL: Duration = Duration::from_millis(20);

/// How long a git that works in a worktree has to end before it is in the way.
pub const AT_WORK_WAIT: Duration = Duration::from_secs(2);

/// How often it is looked for.
pub const AT_WORK_POLL: Duration = Duration::from_millis(50);

/// Largest file that says whose a worktree is, or where.
pub const OWNER_BYTES_MAX: u64 = 64 * 1024;

/// Largest log of what was checked out that is read.
pub const REFLOG_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Most names that are tried for what is moved aside or rescued.
pub const ASIDE_NAMES_MAX: usize = 100;

/// Most repositories within a worktree that are opened up after a step.
pub const NESTED_REPOSITORIES_MAX: usize = 20;

/// Largest file that is copied into a new worktree.
pub const COPY_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Most bytes that are copied into a new worktree.
pub const COPY_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Most files that are copied into a new worktree.
pub const COPY_FILES_MAX: usize = 1_000;
