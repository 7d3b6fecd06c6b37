//! The caps on checks, error analysis, memory and recovery.

use std::time::Duration;

/// Timeout of a workflow's declared check.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Maximum number of bytes of each output stream in the record of a check.
pub const CHECK_NOTE_BYTES_MAX: usize = 2 * 1024;

/// Maximum number of declared checks.
pub const CHECKS_MAX: usize = 200;

/// Maximum length of a check's name.
pub const CHECK_NAME_BYTES_MAX: usize = 100;

/// Maximum number of retries of a check.
pub const CHECK_RETRIES_MAX: u32 = 10;

/// Maximum timeout that a check may declare.
pub const CHECK_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum length of a check's command.
pub const CHECK_COMMAND_BYTES_MAX: usize = 100_000;

/// Maximum number of bytes stored of the start of a check's output.
pub const CHECK_HEAD_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of bytes stored of the end of a check's output.
pub const CHECK_TAIL_BYTES_MAX: usize = 48 * 1024;

/// Maximum number of bytes of each end of a check's output that are analysed for errors. Both ends
/// and the note about the gap between them fit into [`ANALYSED_BYTES_MAX`].
pub const CHECK_HEARD_BYTES_MAX: usize = ANALYSED_BYTES_MAX / 2 - 1024;

/// Maximum number of lines kept from the middle of a check's output because they look like errors.
pub const CHECK_TELLING_LINES_MAX: usize = 40;

/// Maximum length of such a line.
pub const CHECK_TELLING_CHARS_MAX: usize = 400;

/// Maximum number of bytes about failed checks in a prompt.
pub const CHECK_NOTES_BYTES_MAX: usize = 16 * 1024;

/// Minimum number of bytes for each failed check that a prompt describes.
pub const CHECK_NOTES_EACH_BYTES_MIN: usize = 2 * 1024;

/// Maximum number of characters of a failed check's command in a prompt.
pub const CHECK_NOTES_COMMAND_CHARS_MAX: usize = 1_000;

/// Maximum number of bytes of a command's output that are analysed: half from its start, half from
/// its end.
pub const ANALYSED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Maximum analysed length of an output line; the rest of the line is ignored.
pub const ANALYSED_LINE_BYTES_MAX: usize = 4 * 1024;

/// Maximum number of errors in one analysis; the rest is reported as cut.
pub const ANALYSED_ERRORS_MAX: usize = 1_000;

/// Maximum number of characters of an error's message.
pub const ERROR_MESSAGE_CHARS_MAX: usize = 2_000;

/// Maximum number of lines of an error's message.
pub const ERROR_MESSAGE_LINES_MAX: usize = 20;

/// Lines of source code shown on each side of an error.
pub const ERROR_CONTEXT_LINES: usize = 3;

/// Maximum number of characters of such a line.
pub const ERROR_CONTEXT_CHARS_MAX: usize = 240;

/// Maximum number of files read for the context of one analysis.
pub const ERROR_CONTEXT_FILES_MAX: usize = 50;

/// Number of last lines shown of an output that no parser understood.
pub const UNKNOWN_LINES_SHOWN: usize = 20;

/// Errors of one file that are at most this many lines apart are grouped.
pub const NEIGHBOURING_LINES: u32 = 5;

/// Maximum number of failures in the memory file.
pub const MEMORY_FAILURES_MAX: usize = 5_000;

/// Maximum number of remembered failures that are compared with a new one.
pub const MEMORY_COMPARED_MAX: u32 = 500;

/// Maximum number of similar failures shown.
pub const MEMORY_SIMILAR_MAX: usize = 3;

/// Maximum number of different failures remembered per verification.
pub const RECOVER_FAILURES_MAX: usize = 50;

/// Maximum number of recovery attempts per failure.
pub const RECOVER_ATTEMPTS_MAX: u32 = 3;

/// Maximum number of recovery attempts in total.
pub const RECOVER_ATTEMPTS_TOTAL_MAX: u32 = 6;

/// Number of ineffective fixes after which a failure is assumed to have a different cause.
pub const RECOVER_WITHOUT_EFFECT_MAX: u32 = 2;

/// Timeout of one recovery attempt, not counting the checks.
pub const RECOVER_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum time to wait for a rate limit; for a longer one the run is deferred.
pub const RECOVER_WAIT_MAX: Duration = Duration::from_secs(120);

/// Default wait for a rate limit that names no time.
pub const RECOVER_WAIT_USUAL: Duration = Duration::from_secs(60);

/// Maximum time to defer a run for a rate limit; a longer one needs a person.
pub const RECOVER_DEFERRAL_MAX: Duration = Duration::from_secs(6 * 60 * 60);

/// Maximum length of the file names passed to a linter.
pub const LINTER_FILES_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of lines that a linter may change.
pub const LINTER_LINES_MAX: u64 = 200;

/// Maximum number of lines of a lock file that a fix may change.
pub const LOCK_LINES_MAX: u64 = 100;

/// Maximum size of a recovery's diff; a larger change is reverted.
pub const RECOVER_DIFF_BYTES_MAX: usize = 1024 * 1024;

/// Maximum number of lines of a change that is learnt.
pub const LEARNT_LINES_MAX: usize = 60;

/// Maximum number of files of a change that is learnt.
pub const LEARNT_FILES_MAX: usize = 5;

/// Maximum number of output bytes kept of a program that recovery runs.
pub const RECOVER_SAID_BYTES_MAX: usize = 16 * 1024;

/// Default number of checks of a verification that run concurrently.
pub const CHECKS_AT_ONCE: usize = 3;

/// Minimum percentage of an earlier run's tests that must run again for a pass to be trusted.
pub const TESTS_PERCENT_MIN: u64 = 75;

/// Maximum number of errors per check listed in a report; the rest is counted.
pub const REPORT_ERRORS_SHOWN: usize = 50;

/// Maximum size of a project file from which the lines around an error are read.
pub const ERROR_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum size of a stored verification.
pub const VERIFICATION_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Maximum size of the memory file.
pub const MEMORY_FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;
