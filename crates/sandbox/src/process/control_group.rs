//! A control group (cgroup v2) of a program's own, where the system has delegated one to the user: the kernel then
//! enforces the limits on memory and tasks itself, at once, and ends everything in the group in one go.
//!
//! systemd delegates the groups of a user's session; a container or a plain login usually has none, and then the
//! supervisor alone watches. Controllers are never switched on here: the group above ours belongs to the system.
//!
//! A process is moved by its supervisor: it enters the group, starts the program, and leaves again. Nothing that the
//! program starts can be outside, and the supervisor is not counted.

use std::io::Write;
use std::os::fd::OwnedFd;

use repertoire_text::fs::read_text;
use rustix::fs::{AtFlags, Mode, OFlags};

use super::measure::THREADS_PER_PROCESS;
use super::usage::{LimitedResource, UsageLimits};

/// The places at which systems mount the version 2 hierarchy.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// The type that `statfs` reports for it.
const CGROUP2_MAGIC: u64 = 0x6367_7270;
/// The beginning of the names of our groups. The process id of the supervisor follows.
const NAME_PREFIX: &str = "repertoire-";
/// The maximum number of bytes of a control file that are read.
const FILE_BYTES_MAX: usize = 4096;

/// A control group with one program in it. It is removed on drop.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    /// The group that holds the supervisor's group and this one.
    parent: OwnedFd,
    name: String,
    group: OwnedFd,
    /// `cgroup.procs` of the supervisor's group, opened before the supervisor gives up any right.
    way_back: std::fs::File,
}

impl ControlGroup {
    /// Makes a group with these limits and moves this process into it. `None` if no group is delegated, or its controllers
    /// are not enabled.
    pub(crate) fn enter(limits: &UsageLimits) -> Option<ControlGroup> {
        let settings = settings_of(limits);
        if settings.is_empty() {
            return None;
        }
        let own = own_path(&read_text("/proc/self/cgroup".into(), FILE_BYTES_MAX as u64).ok()?)?;
        let home = MOUNTS.iter().find_map(|mount| open_hierarchy(mount, &own))?;
        // A group that holds processes cannot have limited groups beneath it; only the root can.
        let above = if own.is_empty() { "." } else { ".." };
        let parent = open_folder(&home, above)?;
        let enabled = read(&parent, "cgroup.subtree_control")?;
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
            write(&group.group, setting.file, &setting.value)?;
        }
        // Without it the kernel kills one process of the group and leaves the others; older kernels do not have it.
        let _ = write(&group.group, "memory.oom.group", "1");
        write(&group.group, "cgroup.procs", "0")?;
        Some(group)
    }

    /// Moves this process back to the group that it came from.
    pub(crate) fn leave(&mut self) {
        // If it fails, the supervisor is counted with the program, and ends with it.
        let _ = self.way_back.write_all(b"0");
    }

    /// The limit that the kernel had to enforce.
    pub(crate) fn exceeded(&self) -> Option<LimitedResource> {
        let count = |file, field| {
            read(&self.group, file).is_some_and(|text| field_of(&text, field).unwrap_or(0) > 0)
        };
        if count("memory.events", "oom_kill") {
            return Some(LimitedResource::Memory);
        }
        count("pids.events", "max").then_some(LimitedResource::Processes)
    }

    /// Ends everything in the group.
    pub(crate) fn kill(&self) {
        // Linux 5.14 and later; before, the supervisor kills the processes one by one.
        let _ = write(&self.group, "cgroup.kill", "1");
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Processes that cannot be ended keep it; the next supervisor tries again.
        let _ = rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR);
    }
}

/// A limit as a control file has it.
#[derive(Debug, PartialEq, Eq)]
struct ControlSetting {
    controller: &'static str,
    file: &'static str,
    value: String,
}

impl ControlSetting {
    fn is_enabled(&self, enabled: &str) -> bool {
        enabled.split_ascii_whitespace().any(|controller| controller == self.controller)
    }
}

fn settings_of(limits: &UsageLimits) -> Vec<ControlSetting> {
    let setting = |controller, file, value: u64| ControlSetting {
        controller,
        file,
        value: value.to_string(),
    };
    let memory = limits.memory_bytes_max.map(|bytes| setting("memory", "memory.max", bytes));
    let swap = limits.memory_bytes_max.map(|_| setting("memory", "memory.swap.max", 0));
    // The kernel counts threads. The supervisor counts processes.
    let tasks = limits.processes_max.map(|most| most.saturating_mul(THREADS_PER_PROCESS));
    let tasks = tasks.map(|most| setting("pids", "pids.max", most));
    [memory, swap, tasks].into_iter().flatten().collect()
}

/// The path of a process's group beneath the mount, without the leading slash, from `/proc/PID/cgroup`.
fn own_path(text: &str) -> Option<String> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // A process outside the root of its own cgroup namespace has a path that leads up.
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

fn write(folder: &OwnedFd, name: &str, value: &str) -> Option<()> {
    open_for_writing(folder, name)?.write_all(value.as_bytes()).ok()
}

fn read(folder: &OwnedFd, name: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?;
    let mut bytes = vec![0; FILE_BYTES_MAX];
    let count = rustix::io::read(&file, &mut bytes).ok()?;
    bytes.truncate(count);
    String::from_utf8(bytes).ok()
}

/// The number behind a word, as in `oom_kill 3`.
fn field_of(text: &str, field: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(' ')?.parse().ok())
}

/// Removes the groups of supervisors that were killed. The kernel refuses as long as a process is inside.
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
