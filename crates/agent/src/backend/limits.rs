//! The caps on what somebody else's agent says.

use std::time::Duration;

/// Most bytes of each stream of a CLI that are kept; lines are read as they come.
pub const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// Longest output of a command whose output is the answer.
pub const COMMAND_OUTPUT_BYTES_MAX: usize = ANSWER_BYTES_MAX;

/// Longest answer that is kept.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Longest text of one event: a piece of an answer, a thought.
pub const EVENT_TEXT_BYTES_MAX: usize = 256 * 1024;

/// Longest string among the arguments of a call that an event carries.
pub const ARGUMENT_CHARS_MAX: usize = 4_000;

/// Longest start of a tool's answer that an event carries.
pub const SUMMARY_CHARS_MAX: usize = 500;

/// Longest line that says what a call is about.
pub const SUBJECT_CHARS_MAX: usize = 200;

/// Longest end of the complaints that goes into an error.
pub const COMPLAINT_CHARS_MAX: usize = 2_000;

/// Most calls whose names are remembered until their answers come.
pub const OPEN_CALLS_MAX: usize = 10_000;

/// Longest text that is put on a command line; a longer one goes by a file or with the prompt.
pub const ARGUMENT_BYTES_MAX: usize = 100 * 1024;

/// How long a CLI has to end by itself after its result.
pub const GRACE: Duration = Duration::from_secs(10);

/// Largest transcript that is replayed.
pub const TRANSCRIPT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Most steps of a transcript.
pub const TRANSCRIPT_STEPS_MAX: usize = 100_000;

/// Most values in a transcript that is a list of steps.
pub const TRANSCRIPT_NODES_MAX: usize = 400_000;

/// Longest wait of one step of a transcript.
pub const TRANSCRIPT_WAIT_MAX: Duration = Duration::from_secs(3_600);

/// Most replies to an agent of the Agent Client Protocol that wait to be read by it.
pub const REPLIES_WAITING_MAX: usize = 1_024;

/// How long such an agent has to end after its input was closed.
pub const ACP_GRACE: Duration = Duration::from_secs(2);

/// The largest configuration file of an agent CLI that is read.
pub const CLI_CONFIG_BYTES_MAX: u64 = 1024 * 1024;
