//! The caps on checks, error analysis, memory and recovery.

use std::time::Duration;

/// How long a declared check of a workflow may take.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Most of each stream that goes into the record of a check.
pub const CHECK_NOTE_BYTES_MAX: usize = 2 * 1024;

/// Most checks that are declared together.
pub const CHECKS_MAX: usize = 200;

/// Longest name of a check.
pub const CHECK_NAME_BYTES_MAX: usize = 100;

/// Most attempts of a check after the first one.
pub const CHECK_RETRIES_MAX: u32 = 10;

/// The longest time that a check may be given.
pub const CHECK_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Longest command of a check.
pub const CHECK_COMMAND_BYTES_MAX: usize = 100_000;

/// Most of the start of a check's output that is stored.
pub const CHECK_HEAD_BYTES_MAX: usize = 16 * 1024;

/// Most of the end of a check's output that is stored.
pub const CHECK_TAIL_BYTES_MAX: usize = 48 * 1024;

/// Most of each end of a check's output that errors are read from. Both together are what is analysed, with a word on what
/// is missing between them.
pub const CHECK_HEARD_BYTES_MAX: usize = ANALYSED_BYTES_MAX / 2 - 1024;

/// Most lines of a check's output that are kept because they look like errors.
pub const CHECK_TELLING_LINES_MAX: usize = 40;

/// Most of such a line.
pub const CHECK_TELLING_CHARS_MAX: usize = 400;

/// Most of what a prompt is told about failed checks.
pub const CHECK_NOTES_BYTES_MAX: usize = 16 * 1024;

/// The least that is told about a failed check, if anything is.
pub const CHECK_NOTES_EACH_BYTES_MIN: usize = 2 * 1024;

/// Most characters of a failed check's command that are told.
pub const CHECK_NOTES_COMMAND_CHARS_MAX: usize = 1_000;

/// Most bytes of a command's output that are analysed: half from its start and half from its end.
pub const ANALYSED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Longest line of it; what is beyond is not looked at.
pub const ANALYSED_LINE_BYTES_MAX: usize = 4 * 1024;

/// Most errors of one analysis; what is beyond is said to be cut.
pub const ANALYSED_ERRORS_MAX: usize = 1_000;

/// Longest message of an error.
pub const ERROR_MESSAGE_CHARS_MAX: usize = 2_000;

/// Most lines of a message that goes on.
pub const ERROR_MESSAGE_LINES_MAX: usize = 20;

/// Lines of a file on each side of an error.
pub const ERROR_CONTEXT_LINES: usize = 3;

/// Longest of them.
pub const ERROR_CONTEXT_CHARS_MAX: usize = 240;

/// Most files that are read for one analysis.
pub const ERROR_CONTEXT_FILES_MAX: usize = 50;

/// Last lines of output in which nothing was understood.
pub const UNKNOWN_LINES_SHOWN: usize = 20;

/// Lines between two errors of one file that are taken for neighbours.
pub const NEIGHBOURING_LINES: u32 = 5;

/// Most failures in it.
pub const MEMORY_FAILURES_MAX: usize = 5_000;

/// Most remembered failures that are compared with one that was not seen before.
pub const MEMORY_COMPARED_MAX: u32 = 500;

/// Most of them that are shown.
pub const MEMORY_SIMILAR_MAX: usize = 3;

/// Most different failures of one verification that are remembered.
pub const RECOVER_FAILURES_MAX: usize = 50;

/// Attempts at one failure.
pub const RECOVER_ATTEMPTS_MAX: u32 = 3;

/// Attempts in all.
pub const RECOVER_ATTEMPTS_TOTAL_MAX: u32 = 6;

/// Fixes of one failure without effect, after which its cause is probably another one.
pub const RECOVER_WITHOUT_EFFECT_MAX: u32 = 2;

/// How long one attempt may take, the checks not included.
pub const RECOVER_TIMEOUT: Duration = Duration::from_secs(300);

/// How long is waited at most before the work is put off.
pub const RECOVER_WAIT_MAX: Duration = Duration::from_secs(120);

/// How long is waited for a limit that names no time.
pub const RECOVER_WAIT_USUAL: Duration = Duration::from_secs(60);

/// How long a run is put off at most for a limit; above that a person is asked.
pub const RECOVER_DEFERRAL_MAX: Duration = Duration::from_secs(6 * 60 * 60);

/// Most bytes of the names of files that a linter is given.
pub const LINTER_FILES_BYTES_MAX: usize = 64 * 1024;

/// Most lines that a linter may change.
pub const LINTER_LINES_MAX: u64 = 200;

/// Most lines of a lock file that a fix may change.
pub const LOCK_LINES_MAX: u64 = 100;

/// Most bytes of a change that are looked at; a larger one is taken back.
pub const RECOVER_DIFF_BYTES_MAX: usize = 1024 * 1024;

/// Most lines of a change that is learnt.
pub const LEARNT_LINES_MAX: usize = 60;

/// Most files of a change that is learnt.
pub const LEARNT_FILES_MAX: usize = 5;

/// Most output of a program that mends something.
pub const RECOVER_SAID_BYTES_MAX: usize = 16 * 1024;

/// Checks of a verification that run at once, if nobody says otherwise.
pub const CHECKS_AT_ONCE: usize = 3;

/// Of the tests of an earlier run, how many hundredths have to run again for a pass to be believed.
pub const TESTS_PERCENT_MIN: u64 = 75;

/// Errors of one check that a report for people lists; the rest is counted.
pub const REPORT_ERRORS_SHOWN: usize = 50;

/// Largest file of the project that is read for the lines around an error.
pub const ERROR_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Largest verification that is read.
pub const VERIFICATION_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Largest file of what is remembered that is read.
pub const MEMORY_FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;
