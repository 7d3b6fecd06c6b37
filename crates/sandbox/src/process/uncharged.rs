//! Memory and disk space that processes hold without being charged for it: unlinked files behind descriptors and
//! mappings, and the buffers of pipes and Unix sockets.
//!
//! The size of a file behind a descriptor can be read. An ordinary user cannot find the size of a file that is only
//! mapped, that is in transit through a socket, or that is held by a process without read access. These cases are
//! reported, so that the caller can use an upper bound instead.

use std::collections::BTreeSet;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::table::{ProcessEntry, ProcessTable};
use super::usage::kib_field;

/// The size of a pipe's buffer, in pages, once the user's pipes have used up their common allowance.
const PIPE_PAGES_MIN: u64 = 2;
/// The usual page size, in KiB.
const PAGE_KIB_USUAL: u64 = 4;
/// The default of `net.core.wmem_max`.
const SOCKET_BYTES_USUAL: u64 = 212_992;
/// The default of `fs.pipe-max-size`.
const PIPE_BYTES_USUAL: u64 = 1024 * 1024;

/// The files, pipes and sockets that a set of processes holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldObjects {
    /// The bytes of unlinked files in memory that are reachable through descriptors.
    pub(crate) memory: u64,
    /// The bytes of unlinked files on disks that are reachable through descriptors.
    pub(crate) disk: u64,
    /// True if there may be more in memory, of unknown size.
    pub(crate) hides_memory: bool,
    /// True if there may be more on disks, of unknown size.
    pub(crate) hides_disk: bool,
    /// The number of sockets in this process's network namespace.
    pub(crate) near_sockets: u64,
    /// The number of sockets in other network namespaces.
    pub(crate) far_sockets: u64,
    pub(crate) pipes: u64,
    seen: BTreeSet<(u64, u64)>,
}

impl HeldObjects {
    /// Collects the descriptors and mappings of processes.
    pub(crate) fn collect_from(table: &ProcessTable, found: &[ProcessEntry]) -> HeldObjects {
        let own_network = network_of(table, "self");
        let mut held = HeldObjects::default();
        for entry in found {
            let is_near =
                own_network.is_some() && own_network == network_of(table, &entry.id.to_string());
            for thread in table.threads(entry) {
                held.add_descriptors(table, &thread, is_near);
            }
        }
        // Mappings come last: a mapping is ignored if a descriptor leads to the same file.
        for entry in found {
            held.add_mappings(table, entry);
        }
        held
    }

    fn add_descriptors(&mut self, table: &ProcessTable, thread: &str, is_near: bool) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder =
            rustix::fs::openat(table.folder(), format!("{thread}/fd"), flags, Mode::empty());
        let folder = match folder {
            Ok(folder) => folder,
            Err(Errno::ACCESS | Errno::PERM) if is_program(table, thread) => {
                return self.hide_all();
            }
            Err(_) => return,
        };
        let Ok(entries) = rustix::fs::Dir::read_from(&folder) else { return };
        for entry in entries.flatten() {
            let Ok(file) = rustix::fs::statat(&folder, entry.file_name(), AtFlags::empty()) else {
                continue;
            };
            let kind = FileType::from_raw_mode(file.st_mode);
            let is_nameless = kind == FileType::RegularFile && file.st_nlink == 0;
            let is_counted = is_nameless || matches!(kind, FileType::Fifo | FileType::Socket);
            if !is_counted || !self.seen.insert((file.st_dev, file.st_ino)) {
                continue;
            }
            let name = entry.file_name().to_string_lossy();
            match kind {
                FileType::Fifo => self.pipes += 1,
                FileType::Socket => {
                    let count =
                        if is_near { &mut self.near_sockets } else { &mut self.far_sockets };
                    *count += 1;
                    if has_passed_descriptors(table, &format!("{thread}/fdinfo/{name}")) {
                        self.hide_all();
                    }
                }
                _ => {
                    let name = rustix::fs::readlinkat(&folder, entry.file_name(), Vec::new());
                    let name = name.unwrap_or_default();
                    let bytes = u64::try_from(file.st_blocks).unwrap_or(0).saturating_mul(512);
                    let is_memory = is_in_memory(&name.to_string_lossy());
                    let sum = if is_memory { &mut self.memory } else { &mut self.disk };
                    *sum = sum.saturating_add(bytes);
                }
            }
        }
    }

    fn add_mappings(&mut self, table: &ProcessTable, entry: &ProcessEntry) {
        let path = format!("{}/maps", table.living_thread(entry));
        let Ok((bytes, is_whole)) = table.read_up_to_limit(&path) else { return };
        if !is_whole {
            self.hide_all();
        }
        for mapping in String::from_utf8_lossy(&bytes).lines().filter_map(UnlinkedMapping::parse) {
            if self.seen.contains(&(mapping.device, mapping.inode)) {
                continue;
            }
            if is_in_memory(mapping.name) {
                self.hides_memory = true;
            } else {
                self.hides_disk = true;
            }
        }
    }

    fn hide_all(&mut self) {
        self.hides_memory = true;
        self.hides_disk = true;
    }

    /// The maximum memory that the buffers of the pipes can use.
    pub(crate) fn pipe_bytes_max(&self, table: &ProcessTable) -> u64 {
        let setting = |name: &str| read_number(table, &format!("sys/fs/{name}"));
        let each = setting("pipe-max-size").unwrap_or(PIPE_BYTES_USUAL);
        let most = self.pipes.saturating_mul(each);
        // The kernel limits the pipe buffers of a user. For root this applies only without capabilities, so it is not
        // assumed.
        let pages = setting("pipe-user-pages-soft").filter(|pages| *pages > 0);
        match pages {
            Some(pages) if !rustix::process::geteuid().is_root() => {
                let small = self.pipes.saturating_mul(PIPE_PAGES_MIN);
                most.min(pages.saturating_add(small).saturating_mul(page_bytes(table)))
            }
            _ => most,
        }
    }

    /// The maximum memory that the buffers of this many sockets can use.
    pub(crate) fn socket_bytes_max(table: &ProcessTable, sockets: u64) -> u64 {
        let each = read_number(table, "sys/net/core/wmem_max").unwrap_or(SOCKET_BYTES_USUAL);
        // The kernel doubles the size that a program asks for.
        sockets.saturating_mul(each.saturating_mul(2))
    }
}

/// A mapping of an unlinked file.
struct UnlinkedMapping<'a> {
    device: u64,
    inode: u64,
    name: &'a str,
}

impl<'a> UnlinkedMapping<'a> {
    /// Parses a line of `/proc/PID/maps`: `ADDRESSES MODE OFFSET MAJOR:MINOR INODE    NAME (deleted)`.
    fn parse(line: &'a str) -> Option<UnlinkedMapping<'a>> {
        let name = line.strip_suffix(" (deleted)")?;
        let mut fields = name.splitn(6, ' ');
        let (major, minor) = fields.nth(3)?.split_once(':')?;
        let device = rustix::fs::makedev(hex_number(major)?, hex_number(minor)?);
        let inode = fields.next()?.parse().ok()?;
        Some(UnlinkedMapping { device, inode, name: fields.next()?.trim_start() })
    }
}

fn hex_number(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

/// Returns true if the name of an unlinked file shows that it is kept in memory.
fn is_in_memory(name: &str) -> bool {
    let prefixes = ["/memfd:", "/dev/shm/", "/dev/zero", "/SYSV", "/anon_hugepage", "/[aio]"];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Identifies the network namespace of a process; `None` if it cannot be read.
fn network_of(table: &ProcessTable, process: &str) -> Option<Vec<u8>> {
    let name = rustix::fs::readlinkat(table.folder(), format!("{process}/ns/net"), Vec::new());
    name.ok().map(std::ffi::CString::into_bytes)
}

/// Returns true if a thread without read access belongs to a program of the command. A thread that is exiting has no
/// memory left, and PID 1 of a PID namespace is our helper, which holds nothing.
fn is_program(table: &ProcessTable, thread: &str) -> bool {
    let Ok(bytes) = table.read(&format!("{thread}/status")) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    let ids = text.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    let is_first = ids.split_ascii_whitespace().skip(1).last() == Some("1");
    text.contains("\nVmSize:") && !is_first
}

/// Returns true if descriptors are queued in a socket.
fn has_passed_descriptors(table: &ProcessTable, path: &str) -> bool {
    let Ok(bytes) = table.read(path) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    let count = text.lines().find_map(|line| line.strip_prefix("scm_fds:"));
    count.is_some_and(|count| count.trim() != "0")
}

/// The size of a memory page, in bytes.
fn page_bytes(table: &ProcessTable) -> u64 {
    let bytes = table.read("self/smaps").unwrap_or_default();
    let kib = kib_field(&String::from_utf8_lossy(&bytes), "KernelPageSize:");
    kib.unwrap_or(PAGE_KIB_USUAL) * 1024
}

fn read_number(table: &ProcessTable, path: &str) -> Option<u64> {
    String::from_utf8_lossy(&table.read(path).ok()?).trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_objects() -> HeldObjects {
        let table = ProcessTable::open().unwrap();
        let own = table.entry(std::process::id().cast_signed()).unwrap();
        HeldObjects::collect_from(&table, &[own])
    }

    #[test]
    fn files_without_a_name_are_found_behind_descriptors() {
        use std::io::Write;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 500_000]).unwrap();
        let _pair = std::os::unix::net::UnixStream::pair().unwrap();
        let _pipe = std::io::pipe().unwrap();
        let held = own_objects();
        assert!(held.disk >= 500_000, "{held:?}");
        assert!(held.near_sockets >= 2 && held.far_sockets == 0 && held.pipes >= 1, "{held:?}");
        assert!(is_in_memory("/memfd:x (deleted)") && !is_in_memory("/tmp/x (deleted)"));
    }

    #[test]
    fn mappings_of_files_without_a_name_are_recognised() {
        let line = "7f1c9d3f9000-7f1c9d3fa000 r--s 00000000 fe:00 1835      /tmp/a b (deleted)";
        let mapping = UnlinkedMapping::parse(line).unwrap();
        assert_eq!((mapping.device, mapping.inode), (rustix::fs::makedev(0xfe, 0), 1835));
        assert_eq!(mapping.name, "/tmp/a b");
        assert!(UnlinkedMapping::parse("7f-80 r--s 00000000 fe:00 1835   /tmp/a").is_none());
        assert!(UnlinkedMapping::parse("7f-80 rw-p 00000000 00:00 0 ").is_none());
    }
}
