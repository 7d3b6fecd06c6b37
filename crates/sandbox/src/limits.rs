//! The caps of this crate.

use std::time::Duration;

use crate::process::UsageLimits;

/// Caps on tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolLimits {
    /// Most characters of an answer that the model reads; the rest is in a file.
    pub output_chars_max: usize,
    /// Most bytes that are kept in that file.
    pub spill_bytes_max: u64,
    /// Largest file that is read.
    pub file_bytes_max: u64,
    /// How long a command may take.
    pub timeout: Duration,
    /// The longest time that a call may ask for.
    pub timeout_max: Duration,
    /// How long a command has to end after it was asked to.
    pub grace: Duration,
    /// Limits on a command and everything that it starts together.
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
            usage: UsageLimits::usual(),
        }
    }
}

/// The longest line of a process's output that is held; a longer one comes in pieces.
pub const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How much of a process's output is read at once.
pub const PIPE_CHUNK_BYTES: usize = 64 * 1024;

/// How much of what a probed sandbox says is read.
pub const PROBE_OUTPUT_BYTES_MAX: usize = 8 * 1024;

/// Most protected files whose contents are remembered while a program runs.
pub const GUARDED_FILES_MAX: usize = 4096;

/// Most bytes of protected files that are remembered while a program runs.
pub const GUARDED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Most folders below a work folder that are searched for protected paths, the nearest first.
pub const SEARCHED_FOLDERS_MAX: usize = 20_000;

/// Most nested protected paths and Unix sockets that a search finds before it ends.
pub const NESTED_FOUND_MAX: usize = 4_096;

/// Most nested protected paths that are mounted read-only for a command. The contents of others are compared and restored.
pub const NESTED_MOUNTED_MAX: usize = 512;

/// Most bytes of nested protected paths that are mounted read-only: the policy of a command has to fit into a variable.
pub const NESTED_MOUNTED_BYTES_MAX: usize = 48 * 1024;

/// Largest configuration of a new nested repository that is looked at; a larger one is moved aside.
pub const NESTED_CONFIG_BYTES_MAX: u64 = 64 * 1024;

/// Most linked worktrees of a repository whose pointers are mounted read-only for a command.
pub const WORKTREES_MOUNTED_MAX: usize = 128;

/// How long programs have to end after they were asked to.
pub const PROGRAM_GRACE: Duration = Duration::from_secs(5);
