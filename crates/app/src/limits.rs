//! The caps of this crate.

use std::time::Duration;

/// Maximum size of the messages in one event of a conversation, in estimated tokens of 4 bytes. More
/// messages are split over several events.
pub const SAVED_TOKENS_MAX: u64 = 512 * 1024;

/// Maximum size of the events of a conversation that are stored in one transaction, without escapes.
pub const RECORD_BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Time for which an event of a conversation waits for others, to be stored with them.
pub const RECORD_DELAY: Duration = Duration::from_millis(50);

/// The first pause after a failed attempt to store events of a conversation. Each failure doubles it.
pub const RECORD_RETRY_PAUSE_MIN: Duration = Duration::from_millis(200);

/// Maximum pause between two attempts to store events of a conversation.
pub const RECORD_RETRY_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Maximum number of characters of an answer in a list of runs.
pub const SUMMARY_CHARS_MAX: usize = 200;

/// Minimum length of the end of an id that finds a conversation.
pub const ID_END_CHARS_MIN: usize = 4;

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

/// The time by which runs are removed automatically is at most this far ahead of the newest change in
/// the journal, whatever the clock of the machine says.
pub const RETENTION_CLOCK_LEAD_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of closed spans that wait for a collector; further ones are counted and dropped.
pub const SPANS_MAX: usize = 4_096;

/// Maximum number of spans that are sent to a collector at once.
pub const SPAN_BATCH_MAX: usize = 512;

/// Maximum number of characters of a text in a span.
pub const SPAN_TEXT_CHARS_MAX: usize = 200;

/// Maximum time for which the end of a command waits for a collector.
pub const SPAN_FLUSH_MAX: Duration = Duration::from_secs(1);
