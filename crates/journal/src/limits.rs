//! The limits of this crate.

use std::time::Duration;

/// The maximum length of a reason, note or error in an event, in characters. Longer text is
/// truncated with a marker.
pub const TEXT_CHARS_MAX: usize = 8 * 1024;
/// The maximum size of the payload of one event.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// The maximum size of a request, and of the payload of an event of the run's kind.
pub const KIND_PAYLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The maximum number of names in one event.
pub const NAMES_MAX: usize = 1_000;
/// The maximum number of events in one batch.
pub const BATCH_EVENTS_MAX: usize = 1_000;
/// The maximum size of all payloads in one batch.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The maximum length of a run id.
pub const ID_CHARS_MAX: usize = 128;
/// The maximum length of the name of a run, kind, label or worker. Longer names are truncated.
pub const NAME_CHARS_MAX: usize = 512;
/// The maximum length of a workspace path. Longer ones are refused, because a truncated path would
/// name another workspace.
pub const WORKSPACE_CHARS_MAX: usize = 4_096;
/// The maximum number of labels of a run or a worker.
pub const LABELS_MAX: usize = 64;
/// The minimum length of a partial id that finds a run.
pub const ID_PART_CHARS_MIN: usize = 4;
/// The maximum number of runs listed for an ambiguous name.
pub const AMBIGUOUS_MAX: usize = 10;
/// The maximum number of rows in one page.
pub const PAGE_MAX: u32 = 1_000;
/// The maximum length of a lease.
pub const LEASE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The maximum distance of a legacy lease's wall-clock end from now. If it is farther ahead, the
/// clock was set back.
pub const LEASE_AHEAD_MAX: Duration = Duration::from_secs(48 * 60 * 60);
/// The time for which a legacy lease must stay unchanged, besides being over by the wall clock,
/// before it expires.
pub const LEGACY_SILENCE: Duration = Duration::from_secs(30);
/// The poll interval for a lease while a command waits.
pub const LEASE_WAIT_POLL: Duration = Duration::from_millis(500);
/// The maximum number of leases read at once.
pub const LEASES_MAX: u32 = 10_000;

/// The maximum size of a SQLite file in which a table is checked for damage before its rows are
/// first listed. Larger files are checked only by `rep doctor`.
pub const CHECKED_FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The maximum size of a SQLite file that is checked as a whole before the first write of a process.
/// The check of a larger one would take longer than a short command. What a write depends on is
/// verified by digests, whatever the size.
pub const CHECKED_BEFORE_WRITE_BYTES_MAX: u64 = 256 * 1024;
/// The time another process may hold the SQLite lock before the file counts as busy.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for getting a connection.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for a response before the connection counts as lost. PostgreSQL's own statement
/// timeout is shorter.
pub const ANSWER_MAX: Duration = Duration::from_secs(75);
/// The maximum number of replay attempts if the run changes in the meantime.
pub const REPLAY_ATTEMPTS_MAX: u32 = 10;
/// The maximum number of attempts after a transient error: a lost connection, a conflict, a busy
/// file.
pub const ATTEMPTS_MAX: u32 = 12;
/// The delay before the first retry. It doubles each time.
pub const ATTEMPT_WAIT: Duration = Duration::from_millis(20);
/// The maximum delay between two attempts.
pub const ATTEMPT_WAIT_MAX: Duration = Duration::from_secs(2);
/// The maximum number of reading connections to a SQLite file.
pub const SQLITE_READERS_MAX: u32 = 4;
/// The maximum number of connections to PostgreSQL, besides the listening one.
pub const POSTGRES_CONNECTIONS_MAX: u32 = 10;
/// The interval at which a SQLite file is polled for changes of other processes, while there are
/// subscribers.
pub const CHANGE_POLL: Duration = Duration::from_millis(100);
/// The delay before the listening connection is reopened after a failure.
pub const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// The maximum number of distinct driver-defined label values in metrics.
pub const METRIC_WORDS_MAX: usize = 100;
/// The maximum length of a driver-defined label value. Longer values are truncated.
pub const METRIC_WORD_CHARS_MAX: usize = 64;
/// The maximum number of open steps whose kind the metrics remember.
pub const METRIC_STEPS_MAX: usize = 10_000;
/// The maximum length of a failure's example message, in characters.
pub const EXAMPLE_CHARS_MAX: usize = 500;
/// The maximum size of a fix. A larger patch does not fix a single mistake.
pub const FIX_BYTES_MAX: usize = 32 * 1024;
/// The maximum number of fixes per failure. The one with the lowest confidence is dropped first.
pub const FIXES_MAX: usize = 20;
/// The maximum number of preconditions of a fix.
pub const PRECONDITIONS_MAX: usize = 10;
/// The maximum number of runs recorded as evidence for a fix. The oldest are dropped first.
pub const EVIDENCE_MAX: usize = 20;
/// The maximum number of failures imported at once.
pub const LESSONS_MAX: usize = 10_000;
/// The maximum size of the data of a dead letter.
pub const LETTER_BYTES_MAX: usize = 256 * 1024;
/// The maximum number of entries in a dead letter's history. The oldest but the first are dropped.
pub const HISTORY_MAX: usize = 100;
