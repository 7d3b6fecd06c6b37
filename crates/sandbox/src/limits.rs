//! The caps of this crate.

use std::time::Duration;

use crate::process::UsageLimits;

/// Limits on tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolLimits {
    /// The maximum number of characters of a result in the conversation; the full result goes to a
    /// file.
    pub output_chars_max: usize,
    /// The maximum size of that file.
    pub spill_bytes_max: u64,
    /// The maximum size of a file that tools read.
    pub file_bytes_max: u64,
    /// The default timeout of a command.
    pub timeout: Duration,
    /// The maximum timeout that a call may request.
    pub timeout_max: Duration,
    /// The time that a command has to exit after a termination request.
    pub grace: Duration,
    /// Limits on a command and all its descendants together.
    pub usage: UsageLimits,
}

impl Default for ToolLimits {
    fn default() -> Self {
        ToolLimits {
            output_chars_max: 30_000,
            spill_bytes_max: 16 * 1024 * 1024,
            file_bytes_max: 50 * 1024 * 1024,
            timeout: Duration::from_secs(120),
            timeout_max: Duration::from_secs(600),
            grace: Duration::from_secs(2),
            usage: UsageLimits::default_limits(),
        }
    }
}

/// The maximum length of a line of a process's output; longer lines are delivered in pieces.
pub const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The buffer size for reading a process's output.
pub const PIPE_CHUNK_BYTES: usize = 64 * 1024;

/// The maximum output of a sandbox probe.
pub const PROBE_OUTPUT_BYTES_MAX: usize = 8 * 1024;

/// The maximum number of protected files whose contents are saved while a program runs. Hooks, configuration and
/// instructions come first. A change to any other file is noticed, but cannot be undone.
pub const GUARDED_FILES_MAX: usize = 4096;

/// The maximum number of protected files and folders that are compared after a program. With more, a folder is mounted
/// read-only instead, or the program is not started.
pub const GUARDED_ENTRIES_MAX: usize = 65_536;

/// The maximum depth of a protected folder whose entries are compared.
pub const GUARDED_DEPTH_MAX: usize = 128;

/// The maximum number of folders that are mounted read-only because they have too many entries to compare.
pub const LARGE_MOUNTED_MAX: usize = 64;

/// The maximum size of a git configuration that is searched for files of the work folder.
pub const GIT_CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// The maximum number of files and folders in a work folder that git configuration names.
pub const FOLLOWED_PATHS_MAX: usize = 4_096;

/// The maximum work of a search through git configuration: bytes, and 64 for each name that is looked up.
pub const FOLLOWED_WORK_MAX: u64 = 64 * 1024 * 1024;

/// The maximum total size of protected files saved while a program runs.
pub const GUARDED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The maximum number of folders below a working folder that are searched for protected paths,
/// nearest first.
pub const SEARCHED_FOLDERS_MAX: usize = 20_000;

/// The maximum number of nested protected paths and Unix sockets before a search ends.
pub const NESTED_FOUND_MAX: usize = 4_096;

/// The maximum number of nested protected paths that are mounted read-only for a command. The
/// contents of others are compared and restored.
pub const NESTED_MOUNTED_MAX: usize = 512;

/// The maximum total length of nested protected paths mounted read-only: a command's policy must
/// fit into an environment variable.
pub const NESTED_MOUNTED_BYTES_MAX: usize = 48 * 1024;

/// The maximum size of a new nested repository's configuration for it to be inspected; larger ones
/// are moved aside.
pub const NESTED_CONFIG_BYTES_MAX: u64 = 64 * 1024;

/// The maximum number of linked worktrees of a repository whose pointers are mounted read-only for
/// a command.
pub const WORKTREES_MOUNTED_MAX: usize = 128;

/// Time between SIGTERM and SIGKILL for programs that the engine runs.
pub const PROGRAM_GRACE: Duration = Duration::from_secs(5);
