//! The caps of this crate.

use std::time::Duration;

/// Maximum size of a conversation file.
pub const CONVERSATION_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Maximum size of an event log whose last events are read.
pub const LOG_TAIL_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Maximum number of characters of the first prompt in a list of conversations.
pub const FIRST_WORDS_CHARS_MAX: usize = 200;

/// Maximum number of characters of an interrupted run's answer that are passed to the next run.
pub const INTERRUPTED_CHARS_MAX: usize = 4_000;

/// Maximum number of an interrupted run's tool calls that are passed to the next run.
pub const INTERRUPTED_CALLS_MAX: usize = 20;

/// Maximum size of the file of skill use counts.
pub const USE_BYTES_MAX: u64 = 1024 * 1024;

/// Maximum number of skills in the file of skill use counts; the least used ones are dropped.
pub const USE_SKILLS_MAX: usize = 2_000;

/// Interval at which a worker polls the queue when it gets no notification.
pub const CLAIM_POLL: Duration = Duration::from_secs(2);

/// Pause of a worker after it could not reach the journal.
pub const CLAIM_PAUSE: Duration = Duration::from_secs(3);

/// Time between two removals of runs that are older than `runs.keep_days`.
pub const RETENTION_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
