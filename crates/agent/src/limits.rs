//! The caps of this crate.

use std::time::Duration;

use repertoire_sandbox::process::UsageLimits;

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
