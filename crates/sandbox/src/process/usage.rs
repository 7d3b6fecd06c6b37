//! Limits on the memory, processes and disk space used by a program and its descendants together.
//!
//! The kernel's resource limits (`setrlimit`) apply to a process or a user, never to a tree of processes. `RLIMIT_AS`
//! limits address space, of which node, Java and Go reserve far more than they use; `RLIMIT_FSIZE` also refuses sparse
//! files. So a supervisor measures the actual use, and kills the whole tree if it exceeds a limit.

use serde::{Deserialize, Serialize};

/// The minimum of the default memory limit.
const MEMORY_BYTES_MIN: u64 = 2 * GIB;
/// The default memory limit is the machine's memory divided by this, unless that is less than the minimum.
const MEMORY_SHARE: u64 = 10;
/// The default limit on the number of processes.
const PROCESSES_MAX: u64 = 1024;
/// The default limit on the growth of written files.
const DISK_BYTES_MAX: u64 = 2 * GIB;
/// The free disk space that commands may not use up.
pub(crate) const DISK_FREE_BYTES_MIN: u64 = 512 * MIB;
/// A command that has written less than this is not blamed for a full disk.
pub(crate) const DISK_BLAME_BYTES_MIN: u64 = 64 * MIB;
const GIB: u64 = 1024 * MIB;
const MIB: u64 = 1024 * 1024;

/// Limits on a program and its descendants together. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageLimits {
    /// The maximum memory, in bytes, without file caches. Shared memory counts once.
    pub memory_bytes_max: Option<u64>,
    pub processes_max: Option<u64>,
    /// The maximum size of the files written since the start, in bytes.
    pub disk_bytes_max: Option<u64>,
}

impl UsageLimits {
    /// The default limits: a tenth of the machine's memory but at least 2 GiB, 1024 processes, and 2 GiB of files.
    pub fn default_limits() -> UsageLimits {
        UsageLimits {
            memory_bytes_max: Some((machine_memory() / MEMORY_SHARE).max(MEMORY_BYTES_MIN)),
            processes_max: Some(PROCESSES_MAX),
            disk_bytes_max: Some(DISK_BYTES_MAX),
        }
    }

    /// The limits on an external agent, which runs many commands one after another: only its number of processes is
    /// limited.
    #[must_use]
    pub fn of_agent(self) -> UsageLimits {
        UsageLimits { memory_bytes_max: None, disk_bytes_max: None, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedResource {
    /// [`UsageLimits::memory_bytes_max`].
    Memory,
    /// [`UsageLimits::processes_max`].
    Processes,
    /// [`UsageLimits::disk_bytes_max`].
    Disk,
    /// The free space of a disk that is almost full. This limit is fixed.
    FreeDisk,
}

impl LimitedResource {
    pub const ALL: [LimitedResource; 4] = [
        LimitedResource::Memory,
        LimitedResource::Processes,
        LimitedResource::Disk,
        LimitedResource::FreeDisk,
    ];

    /// The configuration key of the limit; `None` if it is fixed.
    pub fn config_key(self) -> Option<&'static str> {
        match self {
            LimitedResource::Memory => Some("limits.command_memory"),
            LimitedResource::Processes => Some("limits.command_processes"),
            LimitedResource::Disk => Some("limits.command_disk"),
            LimitedResource::FreeDisk => None,
        }
    }
}

/// A limit that a program exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceededLimit {
    pub resource: LimitedResource,
    /// The limit, in bytes or as a number of processes.
    pub limit: u64,
}

impl ExceededLimit {
    pub(crate) fn new(resource: LimitedResource, limits: &UsageLimits) -> ExceededLimit {
        let limit = match resource {
            LimitedResource::Memory => limits.memory_bytes_max,
            LimitedResource::Processes => limits.processes_max,
            LimitedResource::Disk => limits.disk_bytes_max,
            LimitedResource::FreeDisk => Some(DISK_BLAME_BYTES_MIN),
        };
        ExceededLimit { resource, limit: limit.unwrap_or(0) }
    }
}

/// Names the exceeded limit with its value, and the setting that raises it.
impl std::fmt::Display for ExceededLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "stopped with everything that it had started: ")?;
        let size = size_text(self.limit);
        match self.resource {
            LimitedResource::Memory => write!(f, "it used more than {size} of memory")?,
            LimitedResource::Processes => {
                write!(f, "it had more than {} processes, or too many threads", self.limit)?;
            }
            LimitedResource::Disk => write!(f, "it wrote more than {size} to the disk")?,
            LimitedResource::FreeDisk => {
                let free = size_text(DISK_FREE_BYTES_MIN);
                write!(
                    f,
                    "it wrote more than {size} while less than {free} of the disk were free"
                )?;
            }
        }
        match self.resource.config_key() {
            Some(key) => {
                write!(f, "; raise `{key}` in the user's configuration (a project cannot set it)")
            }
            None => write!(f, "; free some space"),
        }
    }
}

/// Formats a size with the largest unit that divides it, or in tenths of a MiB.
fn size_text(bytes: u64) -> String {
    for (unit, name) in [(GIB, "GiB"), (MIB, "MiB"), (1024, "KiB")] {
        if bytes > 0 && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    if bytes >= MIB {
        format!("{}.{} MiB", bytes / MIB, bytes % MIB * 10 / MIB)
    } else {
        format!("{bytes} bytes")
    }
}

/// The machine's memory, in bytes; 0 if unknown.
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

/// Parses a line such as `MemTotal:  24684100 kB` of a file in `/proc`.
#[cfg(any(target_os = "linux", test))]
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_was_exceeded_has_its_number_and_the_key_that_sets_it() {
        let limits = UsageLimits {
            memory_bytes_max: Some(200 * MIB),
            processes_max: Some(77),
            disk_bytes_max: Some(150_000_000),
        };
        for (resource, number) in [
            (LimitedResource::Memory, "200 MiB"),
            (LimitedResource::Processes, "77 processes"),
            (LimitedResource::Disk, "143.0 MiB"),
            (LimitedResource::FreeDisk, "64 MiB"),
        ] {
            let said = ExceededLimit::new(resource, &limits).to_string();
            assert!(said.contains(number), "{said}");
            assert!(resource.config_key().is_none_or(|key| said.contains(key)), "{said}");
        }
    }

    #[test]
    fn the_usual_limits_stop_three_gigabytes_on_small_machines() {
        let limits = UsageLimits::default_limits();
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
