//! The caps on calls of git and on worktrees.

use std::time::Duration;

/// Minimum git version: needs `merge-tree --write-tree`, `--pathspec-from-file`, and worktree locks
/// with a reason.
pub const GIT_VERSION_MIN: (u32, u32) = (2, 41);

/// Timeout of a git call. Long, since a checkout of a large repository takes minutes.
pub const GIT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Timeout of a git call that reads configuration.
pub const GIT_CONFIG_TIMEOUT: Duration = Duration::from_secs(10);

/// Time between SIGTERM and SIGKILL for git.
pub const GIT_GRACE: Duration = Duration::from_secs(5);

/// Maximum number of bytes read from git's standard output.
pub const GIT_OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum number of bytes of git's standard error in an error message.
pub const GIT_SAID_BYTES_MAX: usize = 2 * 1024;

/// Maximum size of an index that is searched for submodules; for a larger one, git lists them.
pub const GIT_INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Maximum size of `objects/info/alternates`.
pub const GIT_ALTERNATES_BYTES_MAX: u64 = 64 * 1024;

/// Maximum number of repositories that a repository borrows objects from.
pub const GIT_ALTERNATES_MAX: usize = 16;

/// Maximum size of the `shallow` file, which lists commits whose parents were not fetched.
pub const GIT_SHALLOW_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Maximum number of attempts to change the configuration while another process holds its lock.
pub const GIT_CONFIG_TRIES: u32 = 40;

/// Pause between these attempts.
pub const GIT_CONFIG_POLL: Duration = Duration::from_millis(50);

/// Maximum number of commits returned by `git log`.
pub const LOG_COMMITS_MAX: usize = 10_000;

/// Maximum number of characters of a run's name in the name of its branch.
pub const WORKTREE_NAME_CHARS_MAX: usize = 40;

/// Timeout for the worktree lock. Long, since its holder may be checking out a large repository.
pub const WORKTREE_LOCK_WAIT: Duration = Duration::from_secs(10 * 60);

/// Timeout for a former owner's processes to leave a worktree; after that, a takeover fails.
pub const WORKTREE_FREE_WAIT: Duration = Duration::from_secs(3);

/// Interval between attempts to take the worktree lock.
pub const WORKTREE_LOCK_POLL: Duration = Duration::from_millis(20);

/// Timeout for a git process in a worktree to end.
pub const AT_WORK_WAIT: Duration = Duration::from_secs(2);

/// Interval between checks for such a git process.
pub const AT_WORK_POLL: Duration = Duration::from_millis(50);

/// Maximum size of a worktree's owner file, and of its `gitdir` file.
pub const OWNER_BYTES_MAX: u64 = 64 * 1024;

/// Maximum size of the reflog of `HEAD`.
pub const REFLOG_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Maximum number of names tried for a folder that is moved aside or a rescue branch.
pub const ASIDE_NAMES_MAX: usize = 100;

/// Maximum number of nested repositories whose git folder is moved out of a worktree after a step.
pub const NESTED_REPOSITORIES_MAX: usize = 20;

/// Maximum size of a file copied into a new worktree.
pub const COPY_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Maximum number of bytes copied into a new worktree.
pub const COPY_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Maximum number of files copied into a new worktree.
pub const COPY_FILES_MAX: usize = 1_000;
