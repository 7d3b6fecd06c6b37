//! The caps of this crate.

use std::time::Duration;

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
