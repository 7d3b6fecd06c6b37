//! Limits on the output of external agents.

use std::time::Duration;

/// The maximum number of bytes kept of each stream of a CLI; lines are parsed as they arrive.
pub const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// The maximum output of a command whose output is the answer.
pub const COMMAND_OUTPUT_BYTES_MAX: usize = ANSWER_BYTES_MAX;

/// The maximum length of an answer.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The maximum text of one event, such as a piece of an answer or of the model's thinking.
pub const EVENT_TEXT_BYTES_MAX: usize = 256 * 1024;

/// The maximum length of a string in the arguments of a call that an event carries.
pub const ARGUMENT_CHARS_MAX: usize = 4_000;

/// The maximum length of the excerpt of a tool result that an event carries.
pub const SUMMARY_CHARS_MAX: usize = 500;

/// The maximum length of the one-line subject of a call.
pub const SUBJECT_CHARS_MAX: usize = 200;

/// The maximum length of the stderr excerpt in an error, taken from its end.
pub const COMPLAINT_CHARS_MAX: usize = 2_000;

/// The maximum number of calls tracked while waiting for their results.
pub const OPEN_CALLS_MAX: usize = 10_000;

/// The maximum length of a text on a command line; longer ones are passed in a file or with the
/// prompt.
pub const ARGUMENT_BYTES_MAX: usize = 100 * 1024;

/// The time that a CLI has to exit after its result.
pub const GRACE: Duration = Duration::from_secs(10);

/// The maximum size of a transcript.
pub const TRANSCRIPT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The maximum number of steps in a transcript.
pub const TRANSCRIPT_STEPS_MAX: usize = 100_000;

/// The maximum number of YAML nodes in a transcript that is a list of steps.
pub const TRANSCRIPT_NODES_MAX: usize = 400_000;

/// The maximum wait of one step of a transcript.
pub const TRANSCRIPT_WAIT_MAX: Duration = Duration::from_secs(3_600);

/// The maximum number of queued replies that an ACP agent has not read yet.
pub const REPLIES_WAITING_MAX: usize = 1_024;

/// The time that an ACP agent has to exit after its stdin was closed.
pub const ACP_GRACE: Duration = Duration::from_secs(2);

/// The maximum size of an agent CLI's configuration file.
pub const CLI_CONFIG_BYTES_MAX: u64 = 1024 * 1024;
