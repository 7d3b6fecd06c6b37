//! Caps on what clients send, and on scripts.

/// Most bytes of a request's line and headers.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Most bytes of a request's body.
pub const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most bytes of a file with a script.
pub const SCRIPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Most requests that are kept, so that a benchmark does not fill the memory; the oldest are dropped.
pub const REQUESTS_MAX: usize = 10_000;
