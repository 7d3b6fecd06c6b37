//! The caps of this crate.

use std::time::Duration;

use crate::process::UsageLimits;

/// Most turns that an agent may ask for.
pub const ITERATIONS_MAX: u32 = 1_000;
/// Fewest tokens for thinking.
pub const THINKING_TOKENS_MIN: u32 = 512;
/// Most tokens for thinking.
pub const THINKING_TOKENS_MAX: u32 = 200_000;

/// Most entries of one list of a form.
pub const FORM_ITEMS_MAX: usize = 500;
/// Most bytes of an answer that is handed in on a form.
pub const FORM_BYTES_MAX: usize = 1024 * 1024;

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

/// Tokens that a model is taken to be able to read when nobody knows better.
pub const CONTEXT_TOKENS_UNKNOWN: u64 = 128_000;
/// The share of a model's context at which the conversation is made shorter.
pub const COMPACT_AT: f64 = 0.8;
/// The share of that which the last turns may keep.
pub const COMPACT_KEPT_SHARE: f64 = 0.4;
/// Most characters of earlier turns that a summary is made of.
pub const SUMMARY_INPUT_CHARS_MAX: usize = 200_000;
/// Most tokens of a summary.
pub const SUMMARY_TOKENS_MAX: u32 = 2_000;
/// Most calls of tools at once.
pub const TOOLS_AT_ONCE_MAX: usize = 10;
/// Most calls of tools in one answer; the rest are refused.
pub const TOOL_CALLS_MAX: usize = 64;
/// How often an answer of the wrong shape is sent back.
pub const RESHAPE_MAX: u32 = 2;
/// Most characters that a description of the skills takes in the prompt.
pub const CATALOG_CHARS_MAX: usize = 8_000;
/// Most names in the schema of the `skill` tool; beyond that any name is taken and looked up.
pub const SKILL_NAMES_MAX: usize = 200;
/// Most conversations that a system keeps in memory.
pub const CONVERSATIONS_MAX: usize = 1_000;
/// Characters of a tool's answer that an event shows.
pub const SUMMARY_CHARS_MAX: usize = 400;
/// Longest silence of somebody else's agent.
pub const BACKEND_IDLE: Duration = Duration::from_secs(300);
/// Most skills that are executed at once.
pub const EXECUTIONS_AT_ONCE_MAX: usize = 3;
/// The wait after the first failed execution; it doubles.
pub const EXECUTION_BACKOFF_MS: u64 = 1_000;
/// The longest such wait.
pub const EXECUTION_BACKOFF_MAX_MS: u64 = 30_000;
/// How long a result is kept.
pub const RESULT_TTL_MS: u64 = 60_000;
/// Most results that are kept.
pub const RESULTS_KEPT_MAX: usize = 100;
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
