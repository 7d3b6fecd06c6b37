//! The process table, read from `/proc`: finds the descendants of a process, and kills them.
//!
//! `/proc` is opened once and kept open, so that a process that changes its root directory still reads the original
//! table.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The maximum number of bytes read from a file in `/proc`.
const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The time after which to give up killing descendants: the remaining ones cannot be signalled or hang in the kernel.
const KILL_TIME_MAX: Duration = Duration::from_secs(10);
/// The pause between two checks of killed processes.
const KILL_PAUSE: Duration = Duration::from_millis(1);

/// An entry of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) id: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// The state as one letter: `R`, `S`, `D`, `T`, `Z` and others.
    pub(crate) state: u8,
    /// The number of threads.
    pub(crate) threads: u32,
    /// The start time, in clock ticks since boot.
    pub(crate) started: u64,
}

impl ProcessEntry {
    /// Parses `/proc/PID/stat`. The second field is the program name in parentheses, which may itself contain any
    /// character.
    fn parse(text: &str) -> Option<ProcessEntry> {
        let id = text.split(' ').next()?.parse().ok()?;
        let rest = &text[text.rfind(')')? + 1..];
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(ProcessEntry {
            id,
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// Returns true if the process still executes or can be continued. A zombie cannot, unless only its first thread
    /// has ended.
    pub(crate) fn is_alive(&self) -> bool {
        self.has_first_thread() || (self.state == b'Z' && self.threads > 1)
    }

    fn has_first_thread(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }
}

/// The process table of the machine or container.
#[derive(Debug)]
pub(crate) struct ProcessTable {
    folder: OwnedFd,
}

impl ProcessTable {
    /// Opens `/proc`.
    pub(crate) fn open() -> io::Result<ProcessTable> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(ProcessTable { folder: rustix::fs::open("/proc", flags, Mode::empty())? })
    }

    /// Returns every visible process.
    pub(crate) fn entries(&self) -> io::Result<Vec<ProcessEntry>> {
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.folder)? {
            let id = entry?.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok());
            entries.extend(id.and_then(|id| self.entry(id)));
        }
        Ok(entries)
    }

    /// Returns one process; `None` if it has ended and was reaped.
    pub(crate) fn entry(&self, id: i32) -> Option<ProcessEntry> {
        let bytes = self.read(&format!("{id}/stat")).ok()?;
        ProcessEntry::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Returns the folders of a process's threads, relative to `/proc`. Each thread may have descriptors of its own.
    pub(crate) fn threads(&self, entry: &ProcessEntry) -> Vec<String> {
        let process = entry.id.to_string();
        if entry.threads <= 1 {
            return vec![process];
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder =
            rustix::fs::openat(&self.folder, format!("{process}/task"), flags, Mode::empty());
        let Ok(entries) = folder.and_then(rustix::fs::Dir::read_from) else {
            return vec![process];
        };
        let ids = entries.flatten().filter_map(|thread| {
            thread.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok())
        });
        ids.map(|id| format!("{process}/task/{id}")).collect()
    }

    /// Returns the folder of a running thread, relative to `/proc`. If the first thread has ended before the others,
    /// its memory files are empty.
    pub(crate) fn living_thread(&self, entry: &ProcessEntry) -> String {
        let process = entry.id.to_string();
        if entry.has_first_thread() {
            return process;
        }
        let threads = self.threads(entry);
        threads.into_iter().find(|thread| self.is_living(thread)).unwrap_or(process)
    }

    fn is_living(&self, thread: &str) -> bool {
        let bytes = self.read(&format!("{thread}/stat")).unwrap_or_default();
        let parsed = ProcessEntry::parse(&String::from_utf8_lossy(&bytes));
        parsed.is_some_and(|thread| thread.has_first_thread())
    }

    /// Reads a file beneath `/proc`, up to a maximum size.
    pub(crate) fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.read_up_to_limit(path).map(|(bytes, _)| bytes)
    }

    /// Reads a file beneath `/proc` up to a maximum size. The flag is true if that is the whole file.
    pub(crate) fn read_up_to_limit(&self, path: &str) -> io::Result<(Vec<u8>, bool)> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, path, flags, Mode::empty())?;
        let mut bytes = Vec::with_capacity(1024);
        let mut chunk = [0; 4096];
        loop {
            match rustix::io::read(&file, &mut chunk) {
                Ok(0) => return Ok((bytes, true)),
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if bytes.len() > FILE_BYTES_MAX {
                return Ok((bytes, false));
            }
        }
    }

    /// The open folder `/proc`.
    pub(crate) fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// Returns the living descendants of `root`, without `root` itself.
    pub(crate) fn find_descendants(&self, root: i32) -> io::Result<Vec<ProcessEntry>> {
        Ok(living_descendants(&self.entries()?, root))
    }

    /// Returns the children of this process from the kernel's own list. It includes those hidden by `hidepid`, and
    /// those that have ended but were not reaped. Returns `None` if the kernel has no such list.
    pub(crate) fn own_children(&self) -> Option<Vec<i32>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let threads = rustix::fs::openat(&self.folder, "self/task", flags, Mode::empty()).ok()?;
        let mut children = Vec::new();
        for thread in rustix::fs::Dir::read_from(&threads).ok()? {
            let thread = thread.ok()?;
            let Some(id) = thread.file_name().to_str().ok().filter(|name| !name.starts_with('.'))
            else {
                continue;
            };
            let bytes = self.read(&format!("self/task/{id}/children")).ok()?;
            let text = String::from_utf8_lossy(&bytes);
            children.extend(text.split_ascii_whitespace().filter_map(|id| id.parse::<i32>().ok()));
        }
        Some(children)
    }

    /// Kills and reaps the children of this process until none is left, including those missing from the table. This
    /// process must be a subreaper, so that it adopts orphaned descendants. Returns true if none is left.
    pub(crate) fn kill_own_children(&self) -> bool {
        let deadline = Instant::now() + KILL_TIME_MAX;
        loop {
            match rustix::process::wait(rustix::process::WaitOptions::NOHANG) {
                Err(rustix::io::Errno::CHILD) => return true,
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => continue,
                Ok(None) | Err(_) if Instant::now() >= deadline => return false,
                Ok(None) | Err(_) => {}
            }
            for id in self.own_children().unwrap_or_default() {
                send_signal(id, Signal::KILL);
            }
            std::thread::sleep(KILL_PAUSE);
        }
    }

    /// Kills all descendants of `root`, and reaps them if `root` is this process. Direct children that `keep` accepts
    /// are left alone, with their descendants. Returns the number of processes that did not end.
    ///
    /// Whole process groups are killed first: the kernel does that atomically, so a fork bomb cannot outrun it. The
    /// remaining processes are stopped, pass by pass, before they are killed: a stopped process cannot start another
    /// one in the meantime.
    pub(crate) fn kill_descendants(
        &self,
        root: i32,
        keep: &dyn Fn(&ProcessEntry) -> bool,
    ) -> usize {
        let deadline = Instant::now() + KILL_TIME_MAX;
        let mut stopped: BTreeSet<i32> = BTreeSet::new();
        loop {
            let entries = self.entries().unwrap_or_default();
            let found = living_descendants(&without_kept(&entries, root, keep), root);
            if found.is_empty() || Instant::now() >= deadline {
                return found.len();
            }
            let groups = own_groups(&entries, &found);
            groups.iter().for_each(|group| signal_group(*group, Signal::KILL));
            let others = found.iter().filter(|entry| !groups.contains(&entry.group));
            let (old, new): (Vec<i32>, Vec<i32>) =
                others.map(|entry| entry.id).partition(|id| stopped.contains(id));
            if new.is_empty() {
                old.iter().for_each(|id| send_signal(*id, Signal::KILL));
            }
            new.iter().for_each(|id| send_signal(*id, Signal::STOP));
            stopped.extend(new);
            found.iter().for_each(|entry| reap_process(entry.id));
            std::thread::sleep(KILL_PAUSE);
        }
    }
}

fn without_kept(
    entries: &[ProcessEntry],
    root: i32,
    keep: &dyn Fn(&ProcessEntry) -> bool,
) -> Vec<ProcessEntry> {
    entries.iter().filter(|entry| entry.parent != root || !keep(entry)).copied().collect()
}

/// The process groups whose members are all in `found`.
fn own_groups(entries: &[ProcessEntry], found: &[ProcessEntry]) -> BTreeSet<i32> {
    let ids: BTreeSet<i32> = found.iter().map(|entry| entry.id).collect();
    let others = entries.iter().filter(|entry| entry.is_alive() && !ids.contains(&entry.id));
    let foreign: BTreeSet<i32> = others.map(|entry| entry.group).collect();
    found.iter().map(|entry| entry.group).filter(|group| !foreign.contains(group)).collect()
}

/// Returns the living descendants of `root`. A zombie without living threads is left out, but its children are
/// included.
pub(crate) fn living_descendants(entries: &[ProcessEntry], root: i32) -> Vec<ProcessEntry> {
    let mut found = all_descendants(entries, root);
    found.retain(ProcessEntry::is_alive);
    found
}

/// Returns all descendants of `root`, including zombies.
pub(crate) fn all_descendants(entries: &[ProcessEntry], root: i32) -> Vec<ProcessEntry> {
    let mut children: BTreeMap<i32, Vec<&ProcessEntry>> = BTreeMap::new();
    for entry in entries {
        children.entry(entry.parent).or_default().push(entry);
    }
    let (mut found, mut parents, mut seen) = (Vec::new(), vec![root], BTreeSet::from([root]));
    while let Some(parent) = parents.pop() {
        for entry in children.get(&parent).into_iter().flatten() {
            // Process ids may be reused while the table is read, so it may contain cycles.
            if seen.insert(entry.id) {
                parents.push(entry.id);
                found.push(**entry);
            }
        }
    }
    found
}

/// Sends a signal. Errors are ignored: the process may have ended, or belong to another user.
pub(crate) fn send_signal(id: i32, signal: Signal) {
    if let Some(id) = Pid::from_raw(id) {
        let _ = kill_process(id, signal);
    }
}

/// Sends a signal to a process group. Ignores 0 and 1, which would address the caller's own group or all processes.
fn signal_group(group: i32, signal: Signal) {
    if group > 1
        && let Some(group) = Pid::from_raw(group)
    {
        let _ = kill_process_group(group, signal);
    }
}

/// Reaps a process if it is our child and has ended.
pub(crate) fn reap_process(id: i32) {
    if let Some(id) = Pid::from_raw(id) {
        let _ = rustix::process::waitpid(Some(id), rustix::process::WaitOptions::NOHANG);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: i32, parent: i32, state: u8) -> ProcessEntry {
        ProcessEntry { id, parent, group: id, state, threads: 1, started: 0 }
    }

    #[test]
    fn names_of_programs_do_not_confuse_the_parser() {
        let text = "42 (a) R 7 (b)) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 9876 1 2 3\n";
        let parsed = ProcessEntry::parse(text).unwrap();
        assert_eq!((parsed.id, parsed.parent, parsed.state), (42, 1, b'S'));
        assert_eq!((parsed.threads, parsed.started), (3, 9876));
        assert_eq!(ProcessEntry::parse("42"), None);
    }

    #[test]
    fn descendants_are_found_behind_zombies_and_circles_end() {
        let entries = [
            entry(2, 1, b'S'),
            entry(3, 2, b'Z'),
            entry(4, 3, b'R'),
            entry(5, 6, b'S'),
            entry(6, 5, b'S'),
            entry(9, 8, b'S'),
        ];
        let ids = |root| {
            living_descendants(&entries, root).iter().map(|entry| entry.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(1), [2, 4]);
        assert_eq!(ids(5), [6]);
        assert_eq!(ids(7), [0; 0]);
    }

    #[test]
    fn a_process_lives_as_long_as_one_of_its_threads() {
        let two_threads = ProcessEntry { threads: 2, ..entry(3, 2, b'Z') };
        assert!(two_threads.is_alive() && !entry(3, 2, b'Z').is_alive());
        assert_eq!(living_descendants(&[two_threads], 2), [two_threads]);
    }

    #[test]
    fn groups_that_other_processes_belong_to_are_not_killed() {
        let in_group = |id, group| ProcessEntry { group, ..entry(id, 1, b'S') };
        let entries = [in_group(2, 2), in_group(3, 2), in_group(4, 9), in_group(9, 9)];
        assert_eq!(own_groups(&entries, &entries[..3]), BTreeSet::from([2]));
    }

    #[test]
    fn children_are_listed_by_the_kernel() {
        let table = ProcessTable::open().unwrap();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let children = table.own_children();
        child.kill().unwrap();
        child.wait().unwrap();
        // The list requires a kernel with checkpoint support.
        let id = child.id().cast_signed();
        assert!(children.is_none_or(|children| children.contains(&id)));
    }

    #[test]
    fn the_table_knows_this_process() {
        let table = ProcessTable::open().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(table.entries().unwrap().iter().any(|entry| entry.id == own && entry.is_alive()));
        assert!(table.entry(own).unwrap().threads >= 1);
    }
}
