//! Limits on data from servers, and on delays.

/// The maximum size of one event of a stream.
pub const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The maximum size of a whole answer.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The maximum number of bytes read of an error response.
pub const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;

/// The maximum length of a server's message.
pub const MESSAGE_CHARS_MAX: usize = 500;

/// The maximum number of tool calls in one answer.
pub const TOOL_CALLS_MAX: usize = 256;

/// The maximum delay for a retry. If a server requests a longer one, the run pauses.
pub const RETRY_WAIT_MS_MAX: u64 = 5 * 60 * 1000;

/// The timeout for draining a finished answer, so that its connection can be reused.
pub const DRAIN_MS_MAX: u64 = 50;

/// The maximum number of tokens of an answer, if neither the request nor the model table sets one.
pub const OUTPUT_TOKENS_DEFAULT: u32 = 8192;

/// The minimum thinking budget that Anthropic accepts.
pub const THINKING_TOKENS_MIN: u32 = 1024;
