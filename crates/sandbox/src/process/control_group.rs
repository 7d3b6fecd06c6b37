//! A control group (cgroup v2) for one program, if the system has delegated one to the user: then the kernel itself
//! enforces the limits on memory and tasks immediately, and kills everything in the group at once.
//!
//! systemd delegates the groups of a user's session. A container or a plain login usually has none; then only the
//! supervisor enforces the limits. This module never enables controllers: the parent group belongs to the system.
//!
//! The supervisor enters the group, starts the program, and leaves again. So every process of the program is inside,
//! and the supervisor is not counted.

use std::io::Write;
use std::os::fd::OwnedFd;

use repertoire_text::fs::read_text;
use rustix::fs::{AtFlags, Mode, OFlags};

use super::measure::THREADS_PER_PROCESS;
use super::usage::{LimitedResource, UsageLimits};

/// The mount points of the version 2 hierarchy.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// The file system type that `statfs` reports for cgroup v2.
const CGROUP2_MAGIC: u64 = 0x6367_7270;
/// The prefix of our group names, followed by the supervisor's process id.
const NAME_PREFIX: &str = "repertoire-";
/// The maximum number of bytes read from a control file.
const FILE_BYTES_MAX: usize = 4096;

/// A control group with one program in it. Removed on drop.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    /// The parent of the supervisor's group and of this one.
    parent: OwnedFd,
    name: String,
    group: OwnedFd,
    /// `cgroup.procs` of the supervisor's group, opened before the supervisor drops privileges.
    way_back: std::fs::File,
}

impl ControlGroup {
    /// Creates a group with these limits and moves this process into it. Returns `None` if no group is delegated, or if
    /// its controllers are not enabled.
    pub(crate) fn enter(limits: &UsageLimits) -> Option<ControlGroup> {
        let settings = settings_of(limits);
        if settings.is_empty() {
            return None;
        }
        let own = own_path(&read_text("/proc/self/cgroup".into(), FILE_BYTES_MAX as u64).ok()?)?;
        let home = MOUNTS.iter().find_map(|mount| open_hierarchy(mount, &own))?;
        // Only the root group may contain both processes and limited subgroups, so create a sibling.
        let above = if own.is_empty() { "." } else { ".." };
        let parent = open_folder(&home, above)?;
        let enabled = read_control(&parent, "cgroup.subtree_control")?;
        let settings: Vec<_> =
            settings.into_iter().filter(|setting| setting.is_enabled(&enabled)).collect();
        if settings.is_empty() {
            return None;
        }
        remove_abandoned(&parent);
        ControlGroup::create(home, parent, &settings)
    }

    fn create(home: OwnedFd, parent: OwnedFd, settings: &[ControlSetting]) -> Option<ControlGroup> {
        let way_back = open_for_writing(&home, "cgroup.procs")?;
        let name = format!("{NAME_PREFIX}{}", std::process::id());
        rustix::fs::mkdirat(&parent, &name, Mode::from_raw_mode(0o755)).ok()?;
        let group = open_folder(&parent, &name)?;
        let group = ControlGroup { parent, name, group, way_back };
        for setting in settings {
            write_control(&group.group, setting.file, &setting.value)?;
        }
        // Without this setting the OOM killer kills only one process of the group. Older kernels do not support it.
        let _ = write_control(&group.group, "memory.oom.group", "1");
        write_control(&group.group, "cgroup.procs", "0")?;
        Some(group)
    }

    /// Moves this process back to its original group.
    pub(crate) fn leave(&mut self) {
        // If this fails, the supervisor is counted with the program and killed with it.
        let _ = self.way_back.write_all(b"0");
    }

    /// The limit that the kernel had to enforce.
    pub(crate) fn exceeded_limit(&self) -> Option<LimitedResource> {
        if self.has_counted("memory.events", "oom_kill") {
            return Some(LimitedResource::Memory);
        }
        self.has_counted("pids.events", "max").then_some(LimitedResource::Processes)
    }

    /// Returns true if a counter in a control file is above zero.
    fn has_counted(&self, file: &str, field: &str) -> bool {
        read_control(&self.group, file).is_some_and(|text| field_of(&text, field).unwrap_or(0) > 0)
    }

    /// Kills everything in the group.
    pub(crate) fn kill_all(&self) {
        // Needs Linux 5.14. On older kernels the supervisor kills the processes one by one.
        let _ = write_control(&self.group, "cgroup.kill", "1");
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // This fails while a process is inside; the next supervisor tries again.
        let _ = rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR);
    }
}

/// A limit in the form of a control file and its value.
#[derive(Debug, PartialEq, Eq)]
struct ControlSetting {
    controller: &'static str,
    file: &'static str,
    value: String,
}

impl ControlSetting {
    fn new(controller: &'static str, file: &'static str, value: u64) -> Self {
        ControlSetting { controller, file, value: value.to_string() }
    }

    fn is_enabled(&self, enabled: &str) -> bool {
        enabled.split_ascii_whitespace().any(|controller| controller == self.controller)
    }
}

fn settings_of(limits: &UsageLimits) -> Vec<ControlSetting> {
    let memory =
        limits.memory_bytes_max.map(|bytes| ControlSetting::new("memory", "memory.max", bytes));
    let swap = limits.memory_bytes_max.map(|_| ControlSetting::new("memory", "memory.swap.max", 0));
    // The kernel counts threads. The supervisor counts processes.
    let tasks = limits.processes_max.map(|most| most.saturating_mul(THREADS_PER_PROCESS));
    let tasks = tasks.map(|most| ControlSetting::new("pids", "pids.max", most));
    [memory, swap, tasks].into_iter().flatten().collect()
}

/// Parses `/proc/PID/cgroup`: the path of the process's group beneath the mount, without the leading slash.
fn own_path(text: &str) -> Option<String> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // For a process outside the root of its cgroup namespace, the path leads upwards.
    (!path.split('/').any(|part| part == "..")).then(|| path.to_owned())
}

fn open_hierarchy(mount: &str, path: &str) -> Option<OwnedFd> {
    let folder = rustix::fs::open(mount, folder_flags(), Mode::empty()).ok()?;
    // The type of the field differs between systems.
    let kind = u64::from_ne_bytes(rustix::fs::fstatfs(&folder).ok()?.f_type.to_ne_bytes());
    if kind != CGROUP2_MAGIC {
        return None;
    }
    open_folder(&folder, if path.is_empty() { "." } else { path })
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

fn open_folder(folder: &OwnedFd, path: &str) -> Option<OwnedFd> {
    rustix::fs::openat(folder, path, folder_flags(), Mode::empty()).ok()
}

fn open_for_writing(folder: &OwnedFd, name: &str) -> Option<std::fs::File> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    Some(rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?.into())
}

fn write_control(folder: &OwnedFd, name: &str, value: &str) -> Option<()> {
    open_for_writing(folder, name)?.write_all(value.as_bytes()).ok()
}

fn read_control(folder: &OwnedFd, name: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?;
    let mut bytes = vec![0; FILE_BYTES_MAX];
    let count = rustix::io::read(&file, &mut bytes).ok()?;
    bytes.truncate(count);
    String::from_utf8(bytes).ok()
}

/// Finds the number of a field, as in `oom_kill 3`.
fn field_of(text: &str, field: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(' ')?.parse().ok())
}

/// Removes the groups of supervisors that were killed. The kernel refuses while a process is inside.
fn remove_abandoned(parent: &OwnedFd) {
    let Ok(entries) = rustix::fs::Dir::read_from(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let supervisor = name.to_str().ok().and_then(|name| name.strip_prefix(NAME_PREFIX));
        let supervisor =
            supervisor.and_then(|id| id.parse().ok()).and_then(rustix::process::Pid::from_raw);
        let is_gone = |id| rustix::process::test_kill_process(id) == Err(rustix::io::Errno::SRCH);
        if supervisor.is_some_and(is_gone) {
            let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_the_one_of_version_2() {
        let hybrid = "9:name=systemd:/\n4:memory:/a\n0::/user.slice/app.scope\n";
        assert_eq!(own_path(hybrid).as_deref(), Some("user.slice/app.scope"));
        assert_eq!(own_path("0::/\n").as_deref(), Some(""));
        assert_eq!(own_path("4:memory:/a\n"), None);
        assert_eq!(own_path("0::/../../other\n"), None);
    }

    #[test]
    fn only_limits_whose_controller_is_enabled_are_set() {
        let limits =
            UsageLimits { memory_bytes_max: Some(7), processes_max: Some(2), disk_bytes_max: None };
        let files = |enabled: &str| {
            let settings = settings_of(&limits).into_iter();
            settings.filter(|s| s.is_enabled(enabled)).map(|s| s.file).collect::<Vec<_>>()
        };
        assert_eq!(files("cpu memory pids\n"), ["memory.max", "memory.swap.max", "pids.max"]);
        assert_eq!(files("pids\n"), ["pids.max"]);
        assert!(files("cpuset\n").is_empty());
        assert!(settings_of(&UsageLimits::default()).is_empty());
    }

    #[test]
    fn events_are_read_by_their_whole_name() {
        let text = "low 0\noom 4\noom_kill 1\noom_group_kill 2\n";
        assert_eq!(field_of(text, "oom_kill"), Some(1));
        assert_eq!(field_of(text, "max"), None);
    }
}
