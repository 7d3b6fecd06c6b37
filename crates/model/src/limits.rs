//! Caps on what comes from servers, and on waiting.

/// Most bytes of one event of a stream.
pub const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most bytes of a whole answer.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most bytes that are read of an answer that says what went wrong.
pub const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;

/// Most characters of a server's message that are shown.
pub const MESSAGE_CHARS_MAX: usize = 500;

/// Most calls of tools in one answer.
pub const TOOL_CALLS_MAX: usize = 256;

/// A server that asks for a longer wait than this does not want to be asked again soon: the run pauses.
pub const RETRY_WAIT_MS_MAX: u64 = 5 * 60 * 1000;

/// How long the end of a finished answer is waited for, so that its connection can be used again.
pub const DRAIN_MS_MAX: u64 = 50;

/// Most tokens of an answer, where neither the request nor the table says.
pub const OUTPUT_TOKENS_DEFAULT: u32 = 8192;

/// Fewest tokens that Anthropic accepts for thinking.
pub const THINKING_TOKENS_MIN: u32 = 1024;
