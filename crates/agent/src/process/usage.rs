//! Limits on the memory, the processes and the disk space that a program and its descendants use together.
//!
//! Resource limits of the kernel (`setrlimit`) count a process or a user, never a tree of processes. `RLIMIT_AS` counts
//! addresses, of which node, Java and Go reserve far more than they use; `RLIMIT_FSIZE` also refuses sparse files. So a
//! supervisor adds up what is really used, and ends the whole tree.

use serde::{Deserialize, Serialize};

/// The smallest default for memory.
const MEMORY_BYTES_MIN: u64 = 2 * GIB;
/// The default for memory is the machine's memory divided by this, if that is more.
const MEMORY_SHARE: u64 = 10;
/// The default number of processes.
const PROCESSES_MAX: u64 = 1024;
/// The default growth of the files that a command writes.
const DISK_BYTES_MAX: u64 = 2 * GIB;
const GIB: u64 = 1024 * 1024 * 1024;

/// Limits on a program and its descendants together. A limit that is `None` is not enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageLimits {
    /// The maximum memory, in bytes, without file caches; memory that processes share counts once.
    pub memory_bytes_max: Option<u64>,
    /// The maximum number of processes.
    pub processes_max: Option<u64>,
    /// The maximum size of the files that were written since the start, in bytes.
    pub disk_bytes_max: Option<u64>,
}

impl UsageLimits {
    /// The limits that hold unless the user configures others: a tenth of the machine's memory but at least 2 GiB, 1024
    /// processes, and 2 GiB of files.
    pub fn usual() -> UsageLimits {
        UsageLimits {
            memory_bytes_max: Some((machine_memory() / MEMORY_SHARE).max(MEMORY_BYTES_MIN)),
            processes_max: Some(PROCESSES_MAX),
            disk_bytes_max: Some(DISK_BYTES_MAX),
        }
    }

    /// The limits on an external agent, which runs many commands one after another: its memory and the files that it
    /// writes are not limited, its processes are.
    #[must_use]
    pub fn of_agent(self) -> UsageLimits {
        UsageLimits { memory_bytes_max: None, disk_bytes_max: None, ..self }
    }
}

/// The limit that a program exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// [`UsageLimits::memory_bytes_max`].
    Memory,
    /// [`UsageLimits::processes_max`].
    Processes,
    /// [`UsageLimits::disk_bytes_max`], or the disk is almost full.
    Disk,
}

impl Exceeded {
    /// All limits.
    pub const ALL: [Exceeded; 3] = [Exceeded::Memory, Exceeded::Processes, Exceeded::Disk];

    /// The configuration key of the limit.
    pub fn key(self) -> &'static str {
        match self {
            Exceeded::Memory => "limits.command_memory",
            Exceeded::Processes => "limits.command_processes",
            Exceeded::Disk => "limits.command_disk",
        }
    }

    /// The end of a sentence that begins with "stopped, because it".
    pub fn reason(self) -> &'static str {
        match self {
            Exceeded::Memory => "and its descendants used more memory than allowed",
            Exceeded::Processes => "started more processes than allowed",
            Exceeded::Disk => "wrote more to the disk than allowed",
        }
    }
}

/// Names the exceeded limit and the configuration key that sets it.
impl std::fmt::Display for Exceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "stopped with everything that it had started, because it {}; `{}` in the configuration sets the limit",
            self.reason(),
            self.key()
        )
    }
}

/// The memory of the machine in bytes; 0 if it is unknown.
#[cfg(target_os = "linux")]
fn machine_memory() -> u64 {
    static MEMORY: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *MEMORY.get_or_init(|| {
        let table = super::table::ProcessTable::open();
        let bytes = table.and_then(|table| table.read("meminfo")).unwrap_or_default();
        kib_field(&String::from_utf8_lossy(&bytes), "MemTotal:").unwrap_or(0) * 1024
    })
}

#[cfg(not(target_os = "linux"))]
fn machine_memory() -> u64 {
    0
}

/// Reads a line such as `MemTotal:  24684100 kB` from a file of `/proc`.
#[cfg(any(target_os = "linux", test))]
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_was_exceeded_names_the_key_that_sets_it() {
        for exceeded in Exceeded::ALL {
            assert!(exceeded.to_string().contains(exceeded.key()), "{exceeded}");
        }
    }

    #[test]
    fn the_usual_limits_stop_three_gigabytes_on_small_machines() {
        let limits = UsageLimits::usual();
        assert!(limits.memory_bytes_max.unwrap() >= MEMORY_BYTES_MIN);
        assert!(limits.disk_bytes_max.unwrap() < 3_000_000_000);
    }

    #[test]
    fn fields_are_read_by_their_whole_name() {
        let text = "MemTotal:       24684100 kB\nMemFree:  12 kB\n";
        assert_eq!(kib_field(text, "MemFree:"), Some(12));
        assert_eq!(kib_field(text, "Mem:"), None);
    }
}
