//! The caps of this crate.

use std::time::Duration;

/// Most characters of a reason, a note or an error in an event; what is longer is cut, and says so.
pub const TEXT_CHARS_MAX: usize = 8 * 1024;
/// Largest payload of one event.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// Most names that one event lists.
pub const NAMES_MAX: usize = 1_000;
/// Most events that are added at once.
pub const BATCH_EVENTS_MAX: usize = 1_000;
/// Largest payloads of all events that are added at once.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest id of a run.
pub const ID_CHARS_MAX: usize = 128;
/// Longest name of a run, kind, label or worker; what is longer is cut.
pub const NAME_CHARS_MAX: usize = 512;
/// Longest workspace; what is longer is refused, because cut it would be another one.
pub const WORKSPACE_CHARS_MAX: usize = 4_096;
/// Most labels of a run or a worker.
pub const LABELS_MAX: usize = 64;
/// Shortest part of an id that a run is found by.
pub const ID_PART_CHARS_MIN: usize = 4;
/// Most runs that an ambiguous name lists.
pub const AMBIGUOUS_MAX: usize = 10;
/// Most rows of one page.
pub const PAGE_MAX: u32 = 1_000;
/// Longest lease.
pub const LEASE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The farthest that the wall-clock end of a lease of an older version can be ahead. If it is farther, the clock was set back.
pub const LEASE_AHEAD_MAX: Duration = Duration::from_secs(48 * 60 * 60);
/// The time for which a lease of an older version must not change, besides being over by the wall clock, until it has run out.
pub const LEGACY_SILENCE: Duration = Duration::from_secs(30);
/// The pause between two looks at a lease while a command waits.
pub const LEASE_WAIT_POLL: Duration = Duration::from_millis(500);
/// The maximum number of leases that are looked at at once.
pub const LEASES_MAX: u32 = 10_000;

/// The largest SQLite file that is checked for damage before the first write of a process; larger ones only by `rep doctor`.
pub const CHECKED_FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// How long another process may hold the SQLite file before it counts as busy.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection is waited for.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer is waited for before the connection counts as lost. PostgreSQL itself gives up on a statement earlier.
pub const ANSWER_MAX: Duration = Duration::from_secs(75);
/// How often a replay is begun anew because the run went on meanwhile.
pub const REPLAY_ATTEMPTS_MAX: u32 = 10;
/// How often something that may pass is tried: a lost connection, a conflict, a busy file.
pub const ATTEMPTS_MAX: u32 = 12;
/// The first wait between two tries; it doubles each time.
pub const ATTEMPT_WAIT: Duration = Duration::from_millis(20);
/// The longest wait between two tries.
pub const ATTEMPT_WAIT_MAX: Duration = Duration::from_secs(2);
/// Connections that read a SQLite file.
pub const SQLITE_READERS_MAX: u32 = 4;
/// Connections to PostgreSQL, besides the one that listens.
pub const POSTGRES_CONNECTIONS_MAX: u32 = 10;
/// How often a SQLite file is asked whether another process has changed it, while somebody waits for that.
pub const CHANGE_POLL: Duration = Duration::from_millis(100);
/// How long after a failure the connection that listens is opened again.
pub const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// Most different words of drivers that become labels of metrics.
pub const METRIC_WORDS_MAX: usize = 100;
/// Longest of them; what is longer is cut.
pub const METRIC_WORD_CHARS_MAX: usize = 64;
/// Most steps under way that metrics remember the kind of.
pub const METRIC_STEPS_MAX: usize = 10_000;
/// Most characters of the message that a failure is remembered by.
pub const EXAMPLE_CHARS_MAX: usize = 500;
/// Largest content of a fix: a patch that is larger is no remedy for one mistake.
pub const FIX_BYTES_MAX: usize = 32 * 1024;
/// Most fixes that are remembered for one failure; the weakest makes room.
pub const FIXES_MAX: usize = 20;
/// Most preconditions of a fix.
pub const PRECONDITIONS_MAX: usize = 10;
/// Most runs that are named as evidence for a fix; the newest stay.
pub const EVIDENCE_MAX: usize = 20;
/// Most failures that are taught at once.
pub const LESSONS_MAX: usize = 10_000;
/// Largest data of a dead letter.
pub const LETTER_BYTES_MAX: usize = 256 * 1024;
/// Most lines of a dead letter's history; the oldest but the first make room.
pub const HISTORY_MAX: usize = 100;
