//! Adds up the resources that a tree of processes uses, and compares them with the limits.
//!
//! Each measurement starts with cheap figures: resident memory, the number of processes, and the free space of the
//! disks. Only if these exceed a limit are the exact ones computed: memory without double-counting shared pages, and
//! the size of the written files.
//!
//! Other programs write to the same folders. The kernel counts the bytes that each process writes, and adds a child's
//! count to its parent when the parent waits for it. So the sum over this process and all descendants is an upper bound
//! of what the command wrote. It is not used where it may be too low: on file systems without such counts (`tmpfs`,
//! FUSE), for processes with unreadable counters, and once a process has ignored `SIGCHLD`. Because a process can do
//! that unnoticed, file growth of several times the limit always counts.
//!
//! Memory that belongs to no process, such as socket buffers and unlinked files, is included as well. Where its size
//! cannot be determined, an upper bound is used: the growth of the machine's shared memory, or the loss of free disk
//! space.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{Mode, OFlags};

use super::socket_memory::unix_socket_bytes;
use super::table::{ProcessEntry, ProcessTable, all_descendants};
use super::uncharged::HeldObjects;
use super::usage::{
    DISK_BLAME_BYTES_MIN, DISK_FREE_BYTES_MIN, LimitedResource, UsageLimits, kib_field,
};
use repertoire_text::clock::{Clock, SystemClock};

/// The number of threads allowed for each process of the limit.
pub(crate) const THREADS_PER_PROCESS: u64 = 4;
/// Counting stops after this many files and folders, and the limit counts as exceeded.
const FILES_MAX: usize = 2_000_000;
/// File growth above this multiple of the limit always counts, whatever the kernel's counters say.
const DISK_BACKSTOP_FACTOR: u64 = 4;
/// The number of measurements in a row with different unreadable counters after which the sum counts as unknown.
const DEFERRALS_MAX: u32 = 10;
/// Each new file or folder counts with this many additional bytes, because a file system has a limited number of
/// inodes.
const FILE_ENTRY_BYTES: u64 = 1024;
/// The `statfs` types of file systems whose writes the kernel counts: ext4, XFS, Btrfs, F2FS and overlayfs.
const COUNTED_FILE_SYSTEMS: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x794c_7630];
/// The bit of `SIGCHLD` in the masks of `/proc/PID/status`.
const CHILD_SIGNAL_BIT: u64 = 1 << 16;
/// File times come from a coarse clock, which lags by up to one tick.
const COARSE_CLOCK_MS: u64 = 20;

/// Watches the resource use of a process's descendants.
#[derive(Debug)]
pub(crate) struct UsageWatch {
    limits: UsageLimits,
    root: i32,
    folders: Vec<Utf8PathBuf>,
    disks: Vec<WatchedDisk>,
    started_ms: u64,
    available_memory: u64,
    shared_memory: u64,
    /// The bytes in Unix socket buffers when the program was started.
    socket_bytes: u64,
    /// The bytes of System V shared memory when the program was started.
    system_v_bytes: u64,
    /// The machine's usual number of tasks.
    tasks: u64,
    next_file_count: NextFileCount,
    /// The bytes that this process and its former children had written before the start.
    written_before: u64,
    /// True if the kernel may have lost the count of a descendant.
    counts_are_lost: bool,
    unreadable: UnreadableCounters,
    /// The counters of the first process, opened while that was still allowed.
    first_counters: Option<(i32, OwnedFd)>,
}

/// A file system that a command writes to.
#[derive(Debug)]
struct WatchedDisk {
    folder: OwnedFd,
    device: u64,
    /// True if the kernel counts the bytes that processes write to it.
    is_counted: bool,
    free_at_start: u64,
    free_entries_at_start: u64,
}

impl UsageWatch {
    /// Watches the descendants of `root`, which write to these folders.
    pub(crate) fn new(
        table: &ProcessTable,
        limits: UsageLimits,
        root: i32,
        folders: &[Utf8PathBuf],
    ) -> UsageWatch {
        let mut disks: Vec<WatchedDisk> = Vec::new();
        for disk in folders.iter().filter_map(|folder| WatchedDisk::open(folder)) {
            if disks.iter().all(|known| known.device != disk.device) {
                disks.push(disk);
            }
        }
        UsageWatch {
            limits,
            root,
            folders: outermost_folders(folders),
            disks,
            started_ms: SystemClock.now_ms().saturating_sub(COARSE_CLOCK_MS),
            available_memory: memory_field(table, "MemAvailable:"),
            shared_memory: memory_field(table, "Shmem:"),
            socket_bytes: unix_socket_bytes().unwrap_or(0),
            system_v_bytes: system_v_bytes(table),
            tasks: count_tasks(table),
            next_file_count: NextFileCount { at_bytes: limits.disk_bytes_max.unwrap_or(u64::MAX) },
            written_before: counted_bytes(table, "self").unwrap_or(0),
            counts_are_lost: false,
            unreadable: UnreadableCounters::default(),
            first_counters: None,
        }
    }

    /// Opens the counters of a process that has just been started. PID 1 of a PID namespace soon makes itself
    /// unreadable to others, and then only an open file can still be read. This also resets the baselines for sockets
    /// and shared memory, since this process may be in different namespaces than before.
    pub(crate) fn open_counters(&mut self, table: &ProcessTable, id: i32) {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(table.folder(), format!("{id}/io"), flags, Mode::empty());
        self.first_counters = file.ok().map(|file| (id, file));
        self.socket_bytes = self.socket_bytes.min(unix_socket_bytes().unwrap_or(0));
        self.system_v_bytes = self.system_v_bytes.min(system_v_bytes(table));
    }

    /// Returns the limit that the descendants currently exceed.
    pub(crate) fn exceeded_limit(&mut self, table: &ProcessTable) -> Option<LimitedResource> {
        let found = table.find_descendants(self.root).unwrap_or_default();
        if self.too_many_processes(&found) {
            return Some(LimitedResource::Processes);
        }
        if self.too_much_memory(table, &found) {
            return Some(LimitedResource::Memory);
        }
        self.too_much_disk(table, &found)
    }

    /// Returns the limit that the program exceeded between the last measurement and its end. All descendants have
    /// ended and been waited for, so that every count is known.
    pub(crate) fn exceeded_at_end(&mut self, table: &ProcessTable) -> Option<LimitedResource> {
        let lost: u64 = self.disks.iter().map(WatchedDisk::lost_bytes).sum();
        // This process has inherited the counts of descendants that have ended.
        let counted = counted_bytes(table, "self").unwrap_or(0).saturating_sub(self.written_before);
        if self.limits.disk_bytes_max.is_none()
            || !self.next_file_count.is_due(Some(lost.max(counted)))
        {
            return None;
        }
        let found = table.find_descendants(self.root).unwrap_or_default();
        self.too_much_disk(table, &found)
    }

    /// Returns true if the machine has so many more tasks than usual that a fork bomb is likely. This reads a single
    /// small file, even when reading the whole process table would take too long.
    pub(crate) fn is_crowded(&self, table: &ProcessTable) -> bool {
        let Some(most) = self.limits.processes_max else { return false };
        count_tasks(table).saturating_sub(self.tasks) > most
    }

    /// Accepts the present number of tasks as usual, because processes other than the descendants caused the increase.
    pub(crate) fn accept_crowd(&mut self, table: &ProcessTable) {
        self.tasks = count_tasks(table);
    }

    fn too_many_processes(&self, found: &[ProcessEntry]) -> bool {
        let Some(most) = self.limits.processes_max else { return false };
        let threads: u64 = found.iter().map(|entry| u64::from(entry.threads)).sum();
        found.len() as u64 > most || threads > most.saturating_mul(THREADS_PER_PROCESS)
    }

    fn too_much_memory(&self, table: &ProcessTable, found: &[ProcessEntry]) -> bool {
        let Some(most) = self.limits.memory_bytes_max else { return false };
        let lost = self.available_memory.saturating_sub(memory_field(table, "MemAvailable:"));
        // Check descriptors every time: memory that other programs free at the same moment could mask held memory.
        let unowned = self.unowned_memory(table, found, lost);
        let sum = |of_process: fn(&ProcessTable, &ProcessEntry) -> ProcessMemory| {
            let parts = found.iter().map(|entry| of_process(table, entry));
            unowned.total_with(parts.fold(ProcessMemory::default(), ProcessMemory::plus))
        };
        // The cheap figure counts shared memory several times; compute the exact one only if it exceeds the limit.
        sum(resident_memory) > most && sum(proportional_memory) > most
    }

    fn unowned_memory(
        &self,
        table: &ProcessTable,
        found: &[ProcessEntry],
        lost: u64,
    ) -> UnownedMemory {
        let held = HeldObjects::collect_from(table, found);
        let near = match unix_socket_bytes() {
            _ if held.near_sockets == 0 && !held.hides_memory => 0,
            Some(bytes) => bytes.saturating_sub(self.socket_bytes),
            None => HeldObjects::socket_bytes_max(table, held.near_sockets),
        };
        let far = HeldObjects::socket_bytes_max(table, held.far_sockets);
        let has_segments = system_v_bytes(table) > self.system_v_bytes;
        let shared_growth =
            memory_field(table, "Shmem:").saturating_sub(self.shared_memory).min(lost);
        UnownedMemory {
            buffers: near.saturating_add(far).saturating_add(held.pipe_bytes_max(table)).min(lost),
            held: held.memory,
            shared_bound: if held.hides_memory || has_segments { shared_growth } else { 0 },
        }
    }

    fn too_much_disk(
        &mut self,
        table: &ProcessTable,
        found: &[ProcessEntry],
    ) -> Option<LimitedResource> {
        let most = self.limits.disk_bytes_max?;
        let lost: u64 = self.disks.iter().map(WatchedDisk::lost_bytes).sum();
        let is_full = self.disks.iter().any(WatchedDisk::is_almost_full);
        let written = self.counted_bytes_of_all(table);
        // Use the larger figure: other programs may free as much space as the command takes.
        let used = written.known().map(|counted| counted.max(lost));
        let counted = written.bound();
        let is_blamed = is_full && lost >= DISK_BLAME_BYTES_MIN;
        if !self.next_file_count.is_due(used) && !is_blamed {
            return None;
        }
        let (most, resource) = if is_full && most > DISK_BLAME_BYTES_MIN {
            (DISK_BLAME_BYTES_MIN, LimitedResource::FreeDisk)
        } else {
            (most, LimitedResource::Disk)
        };
        let objects = HeldObjects::collect_from(table, found);
        let held = objects.disk;
        // Other programs' files can be told apart only while the descendants themselves have written less than the
        // limit.
        let backstop = most.saturating_mul(DISK_BACKSTOP_FACTOR);
        let enough = match counted {
            Some(counted) if counted <= most => backstop,
            _ => most.saturating_sub(held),
        };
        let growth = self.measure_growth(most.saturating_sub(held), enough);
        let own = match counted {
            Some(counted) if growth.counted <= backstop => growth.counted.min(counted),
            _ => growth.counted,
        };
        let mut written = held.saturating_add(own).saturating_add(growth.uncounted);
        if objects.hides_disk {
            let is_counted = self.disks.iter().all(|disk| disk.is_counted);
            let bound = counted.filter(|_| is_counted).unwrap_or(lost).min(lost);
            written = written.max(bound);
        }
        // If another program uses the disk as well, wait until this much more space is used before counting again.
        self.next_file_count.postpone(used, most.saturating_sub(written));
        (written > most).then_some(resource)
    }

    /// The bytes that all descendants have written according to the kernel, including those that have ended.
    fn counted_bytes_of_all(&mut self, table: &ProcessTable) -> WrittenBytes {
        let (Ok(entries), Some(own)) = (table.entries(), counted_bytes(table, "self")) else {
            return WrittenBytes::Unknown;
        };
        let mut bytes = own.saturating_sub(self.written_before);
        let mut unreadable = BTreeSet::new();
        for entry in all_descendants(&entries, self.root) {
            let counted = match &self.first_counters {
                Some((id, file)) if *id == entry.id => counted_bytes_in(file),
                _ => counted_bytes(table, &entry.id.to_string()),
            };
            let Some(counted) = counted else {
                // The process may have ended in the meantime, which moves its count to the parent.
                if table.entry(entry.id).is_some() {
                    unreadable.insert((entry.id, entry.started));
                }
                continue;
            };
            self.counts_are_lost |= ignores_children(table, entry.id);
            bytes = bytes.saturating_add(counted);
        }
        let is_deferred = !unreadable.is_empty();
        if self.unreadable.stay_unknown(unreadable) || self.counts_are_lost {
            WrittenBytes::Unknown
        } else if is_deferred {
            WrittenBytes::Deferred
        } else {
            WrittenBytes::Known(bytes)
        }
    }

    /// The size of files in the folders that changed since the start. Stops counting once either sum exceeds its
    /// threshold.
    fn measure_growth(&self, uncounted_enough: u64, counted_enough: u64) -> FileGrowth {
        let (mut growth, mut files, mut seen) = (FileGrowth::default(), 0_usize, BTreeSet::new());
        let too_much = FileGrowth { counted: u64::MAX, uncounted: u64::MAX };
        let mut folders: Vec<PathBuf> = self.folders.iter().map(PathBuf::from).collect();
        while let Some(folder) = folders.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                // A command may have made a folder unreadable to hide its contents.
                Err(_) if self.is_new(&folder) => return too_much,
                Err(_) => continue,
            };
            for entry in entries.flatten() {
                files += 1;
                if files > FILES_MAX {
                    return too_much;
                }
                if growth.counted > counted_enough || growth.uncounted > uncounted_enough {
                    return growth;
                }
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_dir() {
                    folders.push(entry.path());
                }
                if changed_ms(&metadata) < self.started_ms {
                    continue;
                }
                // Count a file with several hard links once.
                let is_once = metadata.is_dir() || metadata.nlink() == 1;
                if is_once || seen.insert((metadata.dev(), metadata.ino())) {
                    // The kernel's count includes file contents, but not directory entries.
                    growth.add(FILE_ENTRY_BYTES, false);
                    let is_counted = !metadata.is_dir() && self.is_counted(metadata.dev());
                    growth.add(metadata.blocks() * 512, is_counted);
                }
            }
        }
        growth
    }

    fn is_counted(&self, device: u64) -> bool {
        self.disks.iter().any(|disk| disk.device == device && disk.is_counted)
    }

    fn is_new(&self, folder: &Path) -> bool {
        let metadata = folder.symlink_metadata();
        metadata.is_ok_and(|metadata| changed_ms(&metadata) >= self.started_ms)
    }
}

/// Decides when to count files, which is slow: only after enough was written to possibly exceed the limit.
#[derive(Debug)]
struct NextFileCount {
    /// The threshold of used bytes: the loss of free space, or the bytes written according to the kernel.
    at_bytes: u64,
}

impl NextFileCount {
    /// Returns true if files should be counted now. `used` is `None` if the kernel's count is unknown; then files are
    /// counted every time.
    fn is_due(&self, used: Option<u64>) -> bool {
        used.is_none_or(|used| used >= self.at_bytes)
    }

    /// Waits until `room` more bytes are used. Does nothing if `used` is unknown, since it may be known next time.
    fn postpone(&mut self, used: Option<u64>, room: u64) {
        if let Some(used) = used {
            self.at_bytes = used.saturating_add(room).max(1);
        }
    }
}

/// The bytes that descendants have written according to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WrittenBytes {
    Known(u64),
    /// A process is ending, and its count will be known soon. Until then, only growth that always counts does.
    Deferred,
    /// The kernel may not have counted everything, so all growth counts.
    Unknown,
}

impl WrittenBytes {
    fn known(self) -> Option<u64> {
        match self {
            WrittenBytes::Known(bytes) => Some(bytes),
            WrittenBytes::Deferred | WrittenBytes::Unknown => None,
        }
    }

    /// The growth of files that can be the command's; `None` if all of it can.
    fn bound(self) -> Option<u64> {
        match self {
            WrittenBytes::Known(bytes) => Some(bytes),
            WrittenBytes::Deferred => Some(0),
            WrittenBytes::Unknown => None,
        }
    }
}

/// The processes whose counters could not be read at the last measurement.
#[derive(Debug, Default)]
struct UnreadableCounters {
    /// Process ids with the times of their start.
    processes: BTreeSet<(i32, u64)>,
    measurements_in_a_row: u32,
}

impl UnreadableCounters {
    /// Returns true if a process was unreadable at the last measurement as well, or if there were new ones at too many
    /// measurements in a row: a command could otherwise hide its writes behind processes that it lets end all the time.
    fn stay_unknown(&mut self, processes: BTreeSet<(i32, u64)>) -> bool {
        let is_same = self.processes.intersection(&processes).next().is_some();
        let in_a_row = if processes.is_empty() { 0 } else { self.measurements_in_a_row + 1 };
        *self = UnreadableCounters { processes, measurements_in_a_row: in_a_row };
        is_same || in_a_row > DEFERRALS_MAX
    }
}

/// The size of changed files, split by whether the kernel counts writes to their file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FileGrowth {
    counted: u64,
    uncounted: u64,
}

impl FileGrowth {
    fn add(&mut self, bytes: u64, is_counted: bool) {
        let sum = if is_counted { &mut self.counted } else { &mut self.uncounted };
        *sum = sum.saturating_add(bytes);
    }
}

/// The bytes that a process and the children it waited for have written to disks; `None` if unknown.
fn counted_bytes(table: &ProcessTable, process: &str) -> Option<u64> {
    written_field(&read_proc_text(table, &format!("{process}/io"))?)
}

/// Like [`counted_bytes`], from an open `/proc/PID/io`.
fn counted_bytes_in(file: &OwnedFd) -> Option<u64> {
    let mut bytes = [0; 1024];
    let count = rustix::io::pread(file, &mut bytes, 0).ok()?;
    written_field(&String::from_utf8_lossy(&bytes[..count]))
}

fn written_field(text: &str) -> Option<u64> {
    let written = number_field(text, "write_bytes:")?;
    Some(written.saturating_sub(number_field(text, "cancelled_write_bytes:")?))
}

fn number_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse::<u64>().ok()
}

/// Returns true if the process ignores `SIGCHLD`: then the kernel discards its children's counts when they end.
fn ignores_children(table: &ProcessTable, id: i32) -> bool {
    let Some(text) = read_proc_text(table, &format!("{id}/status")) else { return false };
    let mask = text.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask & CHILD_SIGNAL_BIT != 0)
}

fn changed_ms(metadata: &std::fs::Metadata) -> u64 {
    let ms = metadata.ctime().saturating_mul(1_000) + metadata.ctime_nsec() / 1_000_000;
    u64::try_from(ms).unwrap_or(0)
}

impl WatchedDisk {
    fn open(folder: &Utf8Path) -> Option<WatchedDisk> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder.as_str(), flags, Mode::empty()).ok()?;
        let device = rustix::fs::fstat(&folder).ok()?.st_dev;
        let kind = rustix::fs::fstatfs(&folder).ok()?.f_type;
        let is_counted = u64::try_from(kind).is_ok_and(|kind| COUNTED_FILE_SYSTEMS.contains(&kind));
        let mut disk =
            WatchedDisk { folder, device, is_counted, free_at_start: 0, free_entries_at_start: 0 };
        disk.free_at_start = disk.free_bytes()?;
        disk.free_entries_at_start = disk.free_entries();
        Some(disk)
    }

    fn free_bytes(&self) -> Option<u64> {
        let state = rustix::fs::fstatvfs(&self.folder).ok()?;
        Some(state.f_bavail.saturating_mul(state.f_frsize))
    }

    /// The number of inodes that are still free; 0 if the file system has no fixed number.
    fn free_entries(&self) -> u64 {
        rustix::fs::fstatvfs(&self.folder).map_or(0, |state| state.f_favail)
    }

    /// The loss of free space since the start, or the equivalent of the lost inodes if that is more.
    fn lost_bytes(&self) -> u64 {
        let bytes = self.free_bytes().map_or(0, |free| self.free_at_start.saturating_sub(free));
        let entries = self.free_entries_at_start.saturating_sub(self.free_entries());
        bytes.max(entries.saturating_mul(FILE_ENTRY_BYTES))
    }

    fn is_almost_full(&self) -> bool {
        self.free_bytes().is_some_and(|free| free < DISK_FREE_BYTES_MIN)
    }
}

/// The folders that are not beneath another folder of the list, with symlinks resolved.
fn outermost_folders(folders: &[Utf8PathBuf]) -> Vec<Utf8PathBuf> {
    let real: BTreeSet<Utf8PathBuf> =
        folders.iter().filter_map(|folder| folder.canonicalize_utf8().ok()).collect();
    let is_inner =
        |folder: &Utf8Path| real.iter().any(|other| other != folder && folder.starts_with(other));
    real.iter().filter(|folder| !is_inner(folder)).cloned().collect()
}

/// The machine's number of tasks: the second part of `3/1234` in `/proc/loadavg`.
pub(crate) fn count_tasks(table: &ProcessTable) -> u64 {
    read_proc_text(table, "loadavg").and_then(|text| task_count(&text)).unwrap_or(0)
}

fn task_count(load: &str) -> Option<u64> {
    load.split(' ').nth(3)?.split('/').nth(1)?.parse().ok()
}

/// A field of `/proc/meminfo`, in bytes.
fn memory_field(table: &ProcessTable, name: &str) -> u64 {
    read_proc_text(table, "meminfo").and_then(|text| kib_field(&text, name)).unwrap_or(0) * 1024
}

/// The bytes of all System V shared memory in the IPC namespace, mapped or not.
fn system_v_bytes(table: &ProcessTable) -> u64 {
    let Some(text) = read_proc_text(table, "sysvipc/shm") else { return 0 };
    let mut lines = text.lines();
    let names = lines.next().unwrap_or_default();
    let Some(at) = names.split_ascii_whitespace().position(|name| name == "rss") else { return 0 };
    let value = |line: &str| line.split_ascii_whitespace().nth(at)?.parse::<u64>().ok();
    lines.filter_map(value).sum()
}

/// Memory of processes that is not backed by files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProcessMemory {
    /// Anonymous memory, swapped memory and page tables.
    own: u64,
    shared: u64,
}

impl ProcessMemory {
    fn plus(self, other: ProcessMemory) -> ProcessMemory {
        ProcessMemory {
            own: self.own.saturating_add(other.own),
            shared: self.shared.saturating_add(other.shared),
        }
    }
}

/// Memory that descendants hold without being charged for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UnownedMemory {
    /// The buffers of sockets and pipes.
    buffers: u64,
    /// Files in memory behind descriptors.
    held: u64,
    /// An upper bound of all shared memory, if the size of some of it is unknown.
    shared_bound: u64,
}

impl UnownedMemory {
    fn total_with(self, processes: ProcessMemory) -> u64 {
        let shared = processes.shared.saturating_add(self.held).max(self.shared_bound);
        processes.own.saturating_add(self.buffers).saturating_add(shared)
    }
}

/// The memory of a process. Shared pages count in full for every process.
fn resident_memory(table: &ProcessTable, entry: &ProcessEntry) -> ProcessMemory {
    let path = format!("{}/status", table.living_thread(entry));
    let Some(text) = read_proc_text(table, &path) else { return ProcessMemory::default() };
    let field = |name| kib_field(&text, name).unwrap_or(0) * 1024;
    ProcessMemory {
        own: field("RssAnon:") + field("VmSwap:") + field("VmPTE:"),
        shared: field("RssShmem:"),
    }
}

/// The memory of a process. Shared pages count proportionally (PSS).
fn proportional_memory(table: &ProcessTable, entry: &ProcessEntry) -> ProcessMemory {
    let thread = table.living_thread(entry);
    let Some(rollup) = read_proc_text(table, &format!("{thread}/smaps_rollup")) else {
        return resident_memory(table, entry);
    };
    let page_tables = read_proc_text(table, &format!("{thread}/status"))
        .and_then(|status| kib_field(&status, "VmPTE:"))
        .unwrap_or(0);
    let field = |name| kib_field(&rollup, name);
    let anonymous = match (field("Pss_Anon:"), field("Pss_Shmem:")) {
        (None, None) => field("Pss:").unwrap_or(0),
        (anonymous, _) => anonymous.unwrap_or(0),
    };
    ProcessMemory {
        own: (anonymous + field("SwapPss:").unwrap_or(0) + page_tables) * 1024,
        shared: field("Pss_Shmem:").unwrap_or(0) * 1024,
    }
}

fn read_proc_text(table: &ProcessTable, path: &str) -> Option<String> {
    // The files of a process that has ended are empty.
    let bytes = table.read(path).ok().filter(|bytes| !bytes.is_empty())?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ProcessTable {
        ProcessTable::open().unwrap()
    }

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        (dir, path)
    }

    fn watch(folder: &Utf8Path, limits: UsageLimits) -> UsageWatch {
        let own = i32::try_from(std::process::id()).unwrap();
        UsageWatch::new(&table(), limits, own, &[folder.to_owned()])
    }

    #[test]
    fn only_files_that_were_written_since_the_start_count() {
        let (_keep, folder) = folder();
        let put = |name: &str| {
            let bytes = vec![7; 100_000];
            repertoire_text::fs::write_atomic(&folder.join(name), &bytes).unwrap();
        };
        put("old");
        std::thread::sleep(std::time::Duration::from_millis(2 * COARSE_CLOCK_MS));
        let watch = watch(&folder, UsageLimits::default());
        let written = || {
            let growth = watch.measure_growth(u64::MAX, u64::MAX);
            growth.counted + growth.uncounted
        };
        assert_eq!(written(), 0);
        put("new");
        assert!((100_000..200_000).contains(&written()));
    }

    #[test]
    fn a_process_above_the_limit_is_noticed_with_what_it_holds() {
        let (_keep, folder) = folder();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let limits = UsageLimits { processes_max: Some(0), ..UsageLimits::default() };
        assert_eq!(
            watch(&folder, limits).exceeded_limit(&table()),
            Some(LimitedResource::Processes)
        );
        let limits = UsageLimits { memory_bytes_max: Some(1), ..UsageLimits::default() };
        assert_eq!(watch(&folder, limits).exceeded_limit(&table()), Some(LimitedResource::Memory));
        assert_eq!(watch(&folder, UsageLimits::default_limits()).exceeded_limit(&table()), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_kernel_counts_what_this_process_and_its_children_write() {
        let (_keep, folder) = folder();
        if !watch(&folder, UsageLimits::default()).disks[0].is_counted {
            return;
        }
        let before = counted_bytes(&table(), "self").unwrap();
        let script = format!("head -c 3000000 /dev/zero > {folder}/new");
        assert!(std::process::Command::new("sh").args(["-c", &script]).status().unwrap().success());
        let counted = counted_bytes(&table(), "self").unwrap() - before;
        assert!(counted >= 3_000_000, "{counted}");
    }

    #[test]
    fn an_unknown_count_does_not_postpone_the_next_one() {
        let mut next = NextFileCount { at_bytes: 100 };
        assert!(!next.is_due(Some(99)) && next.is_due(Some(100)) && next.is_due(None));
        next.postpone(None, 60);
        assert!(next.is_due(Some(100)));
        next.postpone(Some(120), 60);
        assert!(!next.is_due(Some(179)) && next.is_due(Some(180)));
    }

    #[test]
    fn a_process_that_is_just_ending_does_not_make_files_of_others_count() {
        let mut unreadable = UnreadableCounters::default();
        let only = |id: i32| BTreeSet::from([(id, 7)]);
        assert!(!unreadable.stay_unknown(only(1)), "it may be ending");
        assert!(!unreadable.stay_unknown(BTreeSet::new()), "it has ended");
        assert!(!unreadable.stay_unknown(only(2)));
        assert!(unreadable.stay_unknown(only(2)), "it stays unreadable");
        assert!(!unreadable.stay_unknown(BTreeSet::new()));
        for id in 1..=DEFERRALS_MAX.cast_signed() {
            assert!(!unreadable.stay_unknown(only(id)), "{id}");
        }
        assert!(unreadable.stay_unknown(only(99)), "there is a new one each time");
        assert_eq!(WrittenBytes::Deferred.bound(), Some(0));
        assert_eq!(WrittenBytes::Unknown.bound(), None);
    }

    #[test]
    fn memory_file_systems_are_not_counted() {
        if let Some(disk) = WatchedDisk::open(Utf8Path::new("/dev/shm")) {
            assert!(!disk.is_counted);
        }
        assert!(!ignores_children(&table(), std::process::id().cast_signed()));
    }

    #[test]
    fn page_tables_and_memory_of_unknown_size_count() {
        let own = table().entry(std::process::id().cast_signed()).unwrap();
        for memory in [resident_memory(&table(), &own), proportional_memory(&table(), &own)] {
            assert!(memory.own > 4096, "{memory:?}");
        }
        let processes = ProcessMemory { own: 10, shared: 5 };
        let unowned = UnownedMemory { buffers: 100, held: 20, shared_bound: 0 };
        assert_eq!(unowned.total_with(processes), 135);
        // The bound includes the memory that processes share and hold.
        let bound = UnownedMemory { shared_bound: 1000, ..unowned };
        assert_eq!(bound.total_with(processes), 1110);
    }

    #[test]
    fn empty_files_count() {
        let (_keep, folder) = folder();
        let watch = watch(&folder, UsageLimits::default());
        for number in 0..100 {
            std::fs::File::create(folder.join(number.to_string())).unwrap();
        }
        assert_eq!(watch.measure_growth(u64::MAX, u64::MAX).uncounted, 100 * FILE_ENTRY_BYTES);
    }

    #[test]
    fn folders_within_others_are_counted_once() {
        let (_keep, folder) = folder();
        let inner = folder.join("inner");
        std::fs::create_dir(&inner).unwrap();
        let real = folder.canonicalize_utf8().unwrap();
        assert_eq!(outermost_folders(&[inner, folder]), [real]);
    }
}
