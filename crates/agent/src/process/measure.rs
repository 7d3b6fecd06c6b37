//! Adds up what a tree of processes uses, and compares it with the limits.
//!
//! Each look starts with cheap figures: resident memory, the number of processes, and the free space of the disks. Only
//! when those pass a limit are the exact ones read: memory without what processes share, and the files that were written.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::table::{ProcessEntry, ProcessTable};
use super::usage::{Exceeded, UsageLimits, kib_field};
use crate::clock::{Clock, SystemClock};

/// Threads that are allowed for each process of the limit.
pub(crate) const THREADS_PER_PROCESS: u64 = 4;
/// The free space that no command may use up.
const DISK_FREE_BYTES_MIN: u64 = 512 * 1024 * 1024;
/// The size of files below which a command is not blamed for a full disk.
const DISK_BLAME_BYTES_MIN: u64 = 64 * 1024 * 1024;
/// The number of files and folders after which counting stops; a command that hides among so many has passed the limit.
const FILES_MAX: usize = 2_000_000;
/// Times of files are taken from a coarse clock, which is behind by one tick.
const COARSE_CLOCK_MS: u64 = 20;

/// Watches what the descendants of a process use.
#[derive(Debug)]
pub(crate) struct UsageWatch {
    limits: UsageLimits,
    root: i32,
    folders: Vec<Utf8PathBuf>,
    disks: Vec<Disk>,
    started_ms: u64,
    available_memory: u64,
    /// The number of tasks of the machine that is taken for the usual one.
    tasks: u64,
    /// The loss of free space at which the files are counted next.
    count_files_at: u64,
}

/// A file system that a command writes to.
#[derive(Debug)]
struct Disk {
    folder: OwnedFd,
    device: u64,
    free_at_start: u64,
}

impl UsageWatch {
    /// Watches the descendants of `root`, which write to these folders.
    pub(crate) fn new(
        table: &ProcessTable,
        limits: UsageLimits,
        root: i32,
        folders: &[Utf8PathBuf],
    ) -> UsageWatch {
        let mut disks: Vec<Disk> = Vec::new();
        for disk in folders.iter().filter_map(|folder| Disk::open(folder)) {
            if disks.iter().all(|known| known.device != disk.device) {
                disks.push(disk);
            }
        }
        UsageWatch {
            limits,
            root,
            folders: outermost(folders),
            disks,
            started_ms: SystemClock.now_ms().saturating_sub(COARSE_CLOCK_MS),
            available_memory: available_memory(table),
            tasks: tasks(table),
            count_files_at: limits.disk_bytes_max.unwrap_or(u64::MAX),
        }
    }

    /// Returns the limit that the descendants exceed now.
    pub(crate) fn exceeded(&mut self, table: &ProcessTable) -> Option<Exceeded> {
        let found = table.descendants(self.root).unwrap_or_default();
        if self.too_many_processes(&found) {
            return Some(Exceeded::Processes);
        }
        if self.too_much_memory(table, &found) {
            return Some(Exceeded::Memory);
        }
        self.too_much_disk(table, &found).then_some(Exceeded::Disk)
    }

    /// Whether the machine has so many more tasks than before that a fork bomb may be the reason. One small file answers
    /// that, also when reading the whole table would take too long.
    pub(crate) fn is_crowded(&self, table: &ProcessTable) -> bool {
        let Some(most) = self.limits.processes_max else { return false };
        tasks(table).saturating_sub(self.tasks) > most
    }

    /// Takes the number of tasks for the usual one, because others than the descendants have started them.
    pub(crate) fn accept_crowd(&mut self, table: &ProcessTable) {
        self.tasks = tasks(table);
    }

    fn too_many_processes(&self, found: &[ProcessEntry]) -> bool {
        let Some(most) = self.limits.processes_max else { return false };
        let threads: u64 = found.iter().map(|entry| u64::from(entry.threads)).sum();
        found.len() as u64 > most || threads > most.saturating_mul(THREADS_PER_PROCESS)
    }

    fn too_much_memory(&self, table: &ProcessTable, found: &[ProcessEntry]) -> bool {
        let Some(most) = self.limits.memory_bytes_max else { return false };
        let resident: u64 = found.iter().map(|entry| resident_bytes(table, entry.id)).sum();
        let lost = self.available_memory.saturating_sub(available_memory(table));
        // Memory behind a descriptor that is not mapped belongs to no process, but it is missing on the machine.
        let held = if lost > most { held_files(table, found).memory } else { 0 };
        if resident.saturating_add(held) <= most {
            return false;
        }
        let exact: u64 = found.iter().map(|entry| proportional_bytes(table, entry.id)).sum();
        exact.saturating_add(held) > most
    }

    fn too_much_disk(&mut self, table: &ProcessTable, found: &[ProcessEntry]) -> bool {
        let Some(most) = self.limits.disk_bytes_max else { return false };
        let lost: u64 = self.disks.iter().map(Disk::lost).sum();
        let is_full = self.disks.iter().any(Disk::is_almost_full);
        if lost < self.count_files_at && !(is_full && lost >= DISK_BLAME_BYTES_MIN) {
            return false;
        }
        let most = if is_full { most.min(DISK_BLAME_BYTES_MIN) } else { most };
        let held = held_files(table, found).disk;
        let written = held.saturating_add(self.written_bytes(most.saturating_sub(held)));
        // Another program may use the disk as well; then it takes this much more before it is worth counting again.
        self.count_files_at = lost.saturating_add(most.saturating_sub(written)).max(1);
        written > most
    }

    /// The size of the files in the folders that changed since the start, counted until it is more than `enough`.
    fn written_bytes(&self, enough: u64) -> u64 {
        let (mut bytes, mut files, mut seen) = (0_u64, 0_usize, BTreeSet::new());
        let mut folders: Vec<PathBuf> = self.folders.iter().map(PathBuf::from).collect();
        while let Some(folder) = folders.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                // A command may have closed a folder in order to hide what is in it.
                Err(_) if self.is_new(&folder) => return enough.saturating_add(1),
                Err(_) => continue,
            };
            for entry in entries.flatten() {
                files += 1;
                if files > FILES_MAX || bytes > enough {
                    return bytes.max(enough.saturating_add(1));
                }
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_dir() {
                    folders.push(entry.path());
                } else if changed_ms(&metadata) >= self.started_ms
                    && (metadata.nlink() == 1 || seen.insert((metadata.dev(), metadata.ino())))
                {
                    bytes = bytes.saturating_add(metadata.blocks() * 512);
                }
            }
        }
        bytes
    }

    fn is_new(&self, folder: &Path) -> bool {
        let metadata = folder.symlink_metadata();
        metadata.is_ok_and(|metadata| changed_ms(&metadata) >= self.started_ms)
    }
}

fn changed_ms(metadata: &std::fs::Metadata) -> u64 {
    let ms = metadata.ctime().saturating_mul(1_000) + metadata.ctime_nsec() / 1_000_000;
    u64::try_from(ms).unwrap_or(0)
}

impl Disk {
    fn open(folder: &Utf8Path) -> Option<Disk> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder.as_str(), flags, Mode::empty()).ok()?;
        let device = rustix::fs::fstat(&folder).ok()?.st_dev;
        let mut disk = Disk { folder, device, free_at_start: 0 };
        disk.free_at_start = disk.free()?;
        Some(disk)
    }

    fn free(&self) -> Option<u64> {
        let state = rustix::fs::fstatvfs(&self.folder).ok()?;
        Some(state.f_bavail.saturating_mul(state.f_frsize))
    }

    fn lost(&self) -> u64 {
        self.free().map_or(0, |free| self.free_at_start.saturating_sub(free))
    }

    fn is_almost_full(&self) -> bool {
        self.free().is_some_and(|free| free < DISK_FREE_BYTES_MIN)
    }
}

/// The folders that are beneath no other one of the list, without links in their paths.
fn outermost(folders: &[Utf8PathBuf]) -> Vec<Utf8PathBuf> {
    let real: BTreeSet<Utf8PathBuf> =
        folders.iter().filter_map(|folder| folder.canonicalize_utf8().ok()).collect();
    let is_inner =
        |folder: &Utf8Path| real.iter().any(|other| other != folder && folder.starts_with(other));
    real.iter().filter(|folder| !is_inner(folder)).cloned().collect()
}

/// The number of tasks of the machine: the second part of `3/1234` in `/proc/loadavg`.
pub(crate) fn tasks(table: &ProcessTable) -> u64 {
    let number = |text: String| text.split(' ').nth(3)?.split('/').nth(1)?.parse().ok();
    text(table, "loadavg").and_then(number).unwrap_or(0)
}

fn available_memory(table: &ProcessTable) -> u64 {
    text(table, "meminfo").and_then(|text| kib_field(&text, "MemAvailable:")).unwrap_or(0) * 1024
}

/// Memory of a process that no file backs. Memory that several processes share counts for each of them.
fn resident_bytes(table: &ProcessTable, id: i32) -> u64 {
    let Some(text) = text(table, &format!("{id}/status")) else { return 0 };
    let field = |name| kib_field(&text, name).unwrap_or(0);
    (field("RssAnon:") + field("RssShmem:") + field("VmSwap:")) * 1024
}

/// Memory of a process that no file backs, with its share of what it has in common with others.
fn proportional_bytes(table: &ProcessTable, id: i32) -> u64 {
    let Some(text) = text(table, &format!("{id}/smaps_rollup")) else {
        return resident_bytes(table, id);
    };
    let field = |name| kib_field(&text, name);
    let parts = [field("Pss_Anon:"), field("Pss_Shmem:")];
    let memory = match parts {
        [None, None] => field("Pss:").unwrap_or(0),
        parts => parts.into_iter().flatten().sum(),
    };
    (memory + field("SwapPss:").unwrap_or(0)) * 1024
}

fn text(table: &ProcessTable, path: &str) -> Option<String> {
    // A process that has ended has empty files.
    let bytes = table.read(path).ok().filter(|bytes| !bytes.is_empty())?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The size of files that have no name any more and that only descriptors keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HeldBytes {
    memory: u64,
    disk: u64,
}

fn held_files(table: &ProcessTable, found: &[ProcessEntry]) -> HeldBytes {
    let (mut held, mut seen) = (HeldBytes::default(), BTreeSet::new());
    for entry in found {
        for (name, file) in nameless_files(table, entry.id) {
            if seen.insert((file.st_dev, file.st_ino)) {
                let bytes = u64::try_from(file.st_blocks).unwrap_or(0).saturating_mul(512);
                match is_in_memory(&name) {
                    true => held.memory += bytes,
                    false => held.disk += bytes,
                }
            }
        }
    }
    held
}

fn is_in_memory(name: &str) -> bool {
    ["/memfd:", "/dev/shm/", "/SYSV"].iter().any(|prefix| name.starts_with(prefix))
}

/// The regular files without a name that a process has open, with the name that each of them had.
fn nameless_files(table: &ProcessTable, id: i32) -> Vec<(String, rustix::fs::Stat)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(table.folder(), format!("{id}/fd"), flags, Mode::empty());
    let Ok(folder) = folder else { return Vec::new() };
    let Ok(entries) = rustix::fs::Dir::read_from(&folder) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let Ok(file) = rustix::fs::statat(&folder, entry.file_name(), AtFlags::empty()) else {
            continue;
        };
        let is_regular = FileType::from_raw_mode(file.st_mode) == FileType::RegularFile;
        if is_regular && file.st_nlink == 0 {
            let name = rustix::fs::readlinkat(&folder, entry.file_name(), Vec::new());
            files.push((name.unwrap_or_default().to_string_lossy().into_owned(), file));
        }
    }
    files
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
        assert_eq!(watch.written_bytes(u64::MAX), 0);
        put("new");
        assert!((100_000..200_000).contains(&watch.written_bytes(u64::MAX)));
    }

    #[test]
    fn a_process_above_the_limit_is_noticed_with_what_it_holds() {
        let (_keep, folder) = folder();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let limits = UsageLimits { processes_max: Some(0), ..UsageLimits::default() };
        assert_eq!(watch(&folder, limits).exceeded(&table()), Some(Exceeded::Processes));
        let limits = UsageLimits { memory_bytes_max: Some(1), ..UsageLimits::default() };
        assert_eq!(watch(&folder, limits).exceeded(&table()), Some(Exceeded::Memory));
        assert_eq!(watch(&folder, UsageLimits::usual()).exceeded(&table()), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn files_without_a_name_are_found_behind_descriptors() {
        use std::io::Write;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 500_000]).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let held: i64 = nameless_files(&table(), own).iter().map(|(_, file)| file.st_blocks).sum();
        assert!(held * 512 >= 500_000);
        assert!(is_in_memory("/memfd:x (deleted)") && !is_in_memory("/tmp/x (deleted)"));
    }

    #[test]
    fn folders_within_others_are_counted_once() {
        let (_keep, folder) = folder();
        let inner = folder.join("inner");
        std::fs::create_dir(&inner).unwrap();
        let real = folder.canonicalize_utf8().unwrap();
        assert_eq!(outermost(&[inner, folder]), [real]);
    }
}
