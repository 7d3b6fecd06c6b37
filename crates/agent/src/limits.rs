//! The limits of this crate.

use std::time::Duration;

use crate::process::UsageLimits;

/// The maximum number of turns that an agent definition may set.
pub const ITERATIONS_MAX: u32 = 1_000;
/// The minimum token budget for thinking.
pub const THINKING_TOKENS_MIN: u32 = 512;
/// The maximum token budget for thinking.
pub const THINKING_TOKENS_MAX: u32 = 200_000;

/// The maximum number of entries in a list of a form.
pub const FORM_ITEMS_MAX: usize = 500;
/// The maximum size of an answer submitted through a form.
pub const FORM_BYTES_MAX: usize = 1024 * 1024;

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
            usage: UsageLimits::usual(),
        }
    }
}

/// The context window assumed for models whose window is unknown.
pub const CONTEXT_TOKENS_UNKNOWN: u64 = 128_000;
/// The share of the context window at which the conversation is compacted.
pub const COMPACT_AT: f64 = 0.8;
/// The share of that for the last turns, which are kept unchanged.
pub const COMPACT_KEPT_SHARE: f64 = 0.4;
/// The maximum number of characters of earlier turns that are summarised.
pub const SUMMARY_INPUT_CHARS_MAX: usize = 200_000;
/// The maximum length of a summary.
pub const SUMMARY_TOKENS_MAX: u32 = 2_000;
/// The maximum number of concurrent tool calls.
pub const TOOLS_AT_ONCE_MAX: usize = 10;
/// The maximum number of tool calls in one answer; the rest are rejected.
pub const TOOL_CALLS_MAX: usize = 64;
/// The maximum number of times an answer that does not match its schema is sent back.
pub const RESHAPE_MAX: u32 = 2;
/// The maximum length of the skill list in the prompt.
pub const CATALOG_CHARS_MAX: usize = 8_000;
/// The maximum number of names in the schema of the `skill` tool; with more skills, the schema
/// accepts any name.
pub const SKILL_NAMES_MAX: usize = 200;
/// The maximum number of conversations that a system keeps in memory.
pub const CONVERSATIONS_MAX: usize = 1_000;
/// The maximum number of characters of a tool result in an event.
pub const SUMMARY_CHARS_MAX: usize = 400;
/// The maximum time without output from an external agent.
pub const BACKEND_IDLE: Duration = Duration::from_secs(300);
/// The maximum number of skills executed concurrently.
pub const EXECUTIONS_AT_ONCE_MAX: usize = 3;
/// The delay after the first failed execution; it doubles with each retry.
pub const EXECUTION_BACKOFF_MS: u64 = 1_000;
/// The maximum of that delay.
pub const EXECUTION_BACKOFF_MAX_MS: u64 = 30_000;
/// The lifetime of a cached result.
pub const RESULT_TTL_MS: u64 = 60_000;
/// The maximum number of cached results.
pub const RESULTS_KEPT_MAX: usize = 100;
/// The maximum length of a line of a process's output; longer lines are delivered in pieces.
pub const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The buffer size for reading a process's output.
pub const PIPE_CHUNK_BYTES: usize = 64 * 1024;

/// The maximum output of a sandbox probe.
pub const PROBE_OUTPUT_BYTES_MAX: usize = 8 * 1024;

/// The maximum number of protected files whose contents are saved while a program runs.
pub const GUARDED_FILES_MAX: usize = 4096;

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
