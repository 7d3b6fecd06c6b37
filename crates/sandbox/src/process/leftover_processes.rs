//! Finds and kills processes of a worker that was killed before it could end them.

use std::time::Duration;

use camino::Utf8Path;

/// The maximum number of searches: a process may start another one while it is being killed.
const PASSES_MAX: usize = 50;
/// The pause between two searches.
const PASS_WAIT: Duration = Duration::from_millis(10);

/// A process that uses a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderOccupant {
    pub process: u32,
    pub program: String,
}

/// Kills all processes whose environment has a variable `name` with a value accepted by `is_left`, along with their
/// descendants, and returns their number. Only Linux shows the environment of other processes; elsewhere this does
/// nothing.
///
/// Blocks until the processes have ended.
pub fn kill_marked_processes(name: &str, is_left: impl Fn(&str) -> bool) -> usize {
    let mut ended = std::collections::BTreeSet::new();
    for _ in 0..PASSES_MAX {
        let found = system::find(name, &is_left);
        if found.is_empty() {
            break;
        }
        system::kill(&found);
        ended.extend(found);
        std::thread::sleep(PASS_WAIT);
    }
    ended.len()
}

/// The processes that work in a folder or have a file beneath it open for writing, except this process, its ancestors
/// and its descendants. Empty where the system does not show other processes.
pub fn occupants(folder: &Utf8Path) -> Vec<FolderOccupant> {
    system::occupants(folder)
}

#[cfg(target_os = "linux")]
mod system {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    use camino::Utf8Path;
    use rustix::process::Signal;

    use super::FolderOccupant;
    use crate::process::supervisor;
    use crate::process::table::{
        ProcessEntry, ProcessTable, living_descendants, reap_process, send_signal,
    };

    /// The marked processes and all their descendants.
    pub(super) fn find(name: &str, is_left: &impl Fn(&str) -> bool) -> BTreeSet<i32> {
        let Ok(table) = ProcessTable::open() else { return BTreeSet::new() };
        let entries = table.entries().unwrap_or_default();
        let own = std::process::id().cast_signed();
        let is_marked = |entry: &&ProcessEntry| {
            entry.id != own
                && variable_of(&table, entry.id, name).is_some_and(|value| is_left(&value))
        };
        let marked: Vec<i32> = entries.iter().filter(is_marked).map(|entry| entry.id).collect();
        let mut found: BTreeSet<i32> = marked.iter().copied().collect();
        for id in marked {
            found.extend(living_descendants(&entries, id).iter().map(|entry| entry.id));
        }
        found.remove(&own);
        found
    }

    /// Stops all of them before killing the first, so that none of them can start another.
    pub(super) fn kill(found: &BTreeSet<i32>) {
        found.iter().for_each(|id| send_signal(*id, Signal::STOP));
        found.iter().for_each(|id| send_signal(*id, Signal::KILL));
        // Some may have become our children, and have to be reaped here.
        let orphans = found.iter().filter(|id| supervisor::is_adopted(**id));
        orphans.for_each(|id| reap_process(*id));
    }

    /// The value of a variable in a process's initial environment; `None` if the process has ended.
    fn variable_of(table: &ProcessTable, id: i32, name: &str) -> Option<String> {
        let bytes = table.read(&format!("{id}/environ")).ok()?;
        let mut entries = bytes.split(|byte| *byte == 0);
        entries.find_map(|entry| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            String::from_utf8(value.to_vec()).ok()
        })
    }

    pub(super) fn occupants(folder: &Utf8Path) -> Vec<FolderOccupant> {
        let Ok(table) = ProcessTable::open() else { return Vec::new() };
        let entries = table.entries().unwrap_or_default();
        let related = related_processes(&entries, std::process::id().cast_signed());
        let others =
            entries.iter().filter(|entry| entry.is_alive() && !related.contains(&entry.id));
        let inside = others.filter(|entry| works_in(entry.id, folder));
        inside
            .map(|entry| FolderOccupant {
                process: entry.id.cast_unsigned(),
                program: program_name(&table, entry.id),
            })
            .collect()
    }

    /// A process, its ancestors and its descendants.
    fn related_processes(entries: &[ProcessEntry], own: i32) -> BTreeSet<i32> {
        let parents: BTreeMap<i32, i32> =
            entries.iter().map(|entry| (entry.id, entry.parent)).collect();
        let mut related: BTreeSet<i32> =
            living_descendants(entries, own).iter().map(|entry| entry.id).collect();
        let mut next = Some(own);
        while let Some(id) = next.filter(|id| related.insert(*id)) {
            next = parents.get(&id).copied();
        }
        related
    }

    fn works_in(id: i32, folder: &Utf8Path) -> bool {
        let is_inside = |path: PathBuf| path.starts_with(folder);
        std::fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(is_inside) || writes_in(id, folder)
    }

    fn writes_in(id: i32, folder: &Utf8Path) -> bool {
        let Ok(descriptors) = std::fs::read_dir(format!("/proc/{id}/fd")) else { return false };
        let mut inside = descriptors.flatten().filter(|descriptor| {
            std::fs::read_link(descriptor.path()).is_ok_and(|path| path.starts_with(folder))
        });
        inside.any(|descriptor| {
            let number = descriptor.file_name().to_string_lossy().into_owned();
            is_for_writing(id, &number)
        })
    }

    fn is_for_writing(id: i32, descriptor: &str) -> bool {
        let Ok(table) = ProcessTable::open() else { return false };
        let bytes = table.read(&format!("{id}/fdinfo/{descriptor}")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        // The lowest two bits are the access mode; 0 means read-only.
        flags.is_some_and(|flags| flags & 0b11 != 0)
    }

    fn program_name(table: &ProcessTable, id: i32) -> String {
        let bytes = table.read(&format!("{id}/comm")).unwrap_or_default();
        let name = String::from_utf8_lossy(&bytes);
        name.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::collections::BTreeSet;

    use camino::Utf8Path;

    use super::FolderOccupant;

    pub(super) fn find(_name: &str, _is_left: &impl Fn(&str) -> bool) -> BTreeSet<i32> {
        BTreeSet::new()
    }

    pub(super) fn kill(_found: &BTreeSet<i32>) {}

    pub(super) fn occupants(_folder: &Utf8Path) -> Vec<FolderOccupant> {
        Vec::new()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper(value: &str) -> Child {
        Command::new("sleep")
            .arg("600")
            .env("REPERTOIRE_TEST_LEFT", value)
            .spawn()
            .expect("there is a sleep")
    }

    #[test]
    fn only_those_that_are_meant_are_ended() {
        let mark = format!("left-{}", std::process::id());
        let (mut left, mut other) = (sleeper(&mark), sleeper(&format!("{mark}-not")));
        assert_eq!(kill_marked_processes("REPERTOIRE_TEST_LEFT", |value| value == mark), 1);
        assert!(!left.wait().unwrap().success());
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(
            kill_marked_processes("REPERTOIRE_TEST_LEFT", |value| value.starts_with(&mark)),
            0
        );
    }

    #[test]
    fn processes_beneath_a_marked_one_are_ended_without_the_mark() {
        let mark = format!("above-{}", std::process::id());
        let script = "env -i sleep 600 & wait";
        let mut above = Command::new("sh")
            .args(["-c", script])
            .env("REPERTOIRE_TEST_LEFT", &mark)
            .spawn()
            .expect("there is a shell");
        let has_child = || system::find("REPERTOIRE_TEST_LEFT", &|value| value == mark).len() == 2;
        while !has_child() {
            std::thread::yield_now();
        }
        assert_eq!(kill_marked_processes("REPERTOIRE_TEST_LEFT", |value| value == mark), 2);
        let _ = above.wait();
    }

    #[test]
    fn this_process_does_not_occupy_a_folder_and_neither_do_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        let _file = std::fs::File::create(folder.join("open")).unwrap();
        let mut child = Command::new("sleep").arg("600").current_dir(&folder).spawn().unwrap();
        assert_eq!(occupants(&folder), []);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
