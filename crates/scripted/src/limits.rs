//! Limits on requests, and on scripts.

/// The maximum size of a request's head.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The maximum size of a request's body.
pub const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The maximum size of a script file.
pub const SCRIPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The maximum number of recorded requests, so that benchmarks don't exhaust memory; the oldest are
/// dropped.
pub const REQUESTS_MAX: usize = 10_000;
