//! The caps of this crate.

use std::time::Duration;

/// Largest conversation that is read.
pub const CONVERSATION_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Largest log of events of which the end is looked at.
pub const LOG_TAIL_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Characters of the first prompt that a list shows.
pub const FIRST_WORDS_CHARS_MAX: usize = 200;

/// Characters of what an interrupted run had said that the next one is told.
pub const INTERRUPTED_CHARS_MAX: usize = 4_000;

/// Calls of an interrupted run that the next one is told.
pub const INTERRUPTED_CALLS_MAX: usize = 20;

/// Largest count of uses that is read.
pub const USE_BYTES_MAX: u64 = 1024 * 1024;

/// Skills whose uses are counted.
pub const USE_SKILLS_MAX: usize = 2_000;

/// How often a worker looks for runs when nobody calls it.
pub const CLAIM_POLL: Duration = Duration::from_secs(2);

/// How long it waits after the journal could not be reached.
pub const CLAIM_PAUSE: Duration = Duration::from_secs(3);


