//! A disk that is full, or cannot be written any more, while a plan is worked through.

use std::io::Write;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use super::audit::{self, Counts, Seen};
use super::field::{Field, Store, Work, WorkerProcess};
use crate::workspace::Workspace;

/// A small disk of its own. It goes when this does.
pub(crate) struct Disk {
    dir: Utf8PathBuf,
}

impl Disk {
    /// Puts a disk at a folder; without the right to do that it says so.
    pub(crate) fn at(dir: &Utf8Path) -> Option<Disk> {
        std::fs::create_dir_all(dir).unwrap();
        if !mount(&["-t", "tmpfs", "-o", "size=8m", "tmpfs", dir.as_str()]) {
            // Past the test harness, which would swallow it.
            let _ = writeln!(std::io::stderr(), "SKIPPED: no right to mount a disk for a test");
            return None;
        }
        Some(Disk { dir: dir.to_owned() })
    }

    fn is_writable(&self, how: &str) {
        assert!(mount(&["-o", &format!("remount,{how}"), self.dir.as_str()]));
    }

    /// Leaves no room.
    pub(crate) fn fill(&self) {
        let mut file = std::fs::File::create(self.dir.join("filler")).unwrap();
        for size in [64 * 1024, 512, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    pub(crate) fn empty(&self) {
        std::fs::remove_file(self.dir.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["--lazy", self.dir.as_str()]).status();
    }
}

fn mount(args: &[&str]) -> bool {
    let output = Command::new("mount").args(args).output();
    output.is_ok_and(|output| output.status.success())
}

/// The disk gives out in the middle of a step, and comes back.
fn give_out(out: impl Fn(&Disk), back: impl Fn(&Disk), complaint: &str) {
    // The journal and the logs are on the small disk; the repository is not.
    let place = tempfile::tempdir().unwrap();
    let place = Utf8PathBuf::from_path_buf(place.path().canonicalize().unwrap()).unwrap();
    let Some(disk) = Disk::at(&place) else { return };
    let data = place.join("data");
    std::fs::create_dir_all(&data).unwrap();
    let mut field = Field::with(
        Store::Sqlite,
        &[("REPERTOIRE_QUEUE_LEASE", "1s"), ("REPERTOIRE_DATA_DIR", data.as_str())],
    );
    let work = Work::new("p", 2);
    let repository = field.repository("one", &[(work.path(), work.plan())]);
    field.ws.write("agent.yaml", work.transcript(700));
    let backend = format!("scripted:{}", field.ws.path("agent.yaml"));
    let id = field.queue(&repository, &work.path(), &["--backend", &backend]);
    let seen = Seen::default();
    field.spawn(seen.clone().follow(field.journal.clone()));
    let mut daemon = field.worker(&["daemon"]);
    field.until("a step", |field| field.run(&id).open_step.is_some());
    out(&disk);
    field.until("a complaint", |_| daemon.said().contains(complaint));
    assert!(daemon.child.try_wait().unwrap().is_none(), "{}", daemon.said());
    back(&disk);
    field.until_completed(std::slice::from_ref(&id));
    is_clear(&mut daemon, complaint);
    let run = field.run(&id);
    audit::journal(&field, &run, &mut Counts::default());
    audit::branch(&field, &run, &work);
    audit::worktree(&field, &run);
    seen.is_kept(&field);
    audit::repository(&field, &repository);
    audit::nobody_is_left(&field);
}

/// Complaints are lines that people understand, and not many of them.
fn is_clear(daemon: &mut WorkerProcess, complaint: &str) {
    assert_eq!(daemon.stop(), Some(0), "{}", daemon.said());
    let said = daemon.said();
    let complaints = said.lines().filter(|line| line.contains(complaint)).count();
    assert!((1..=10).contains(&complaints), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_full_disk_is_told_and_nothing_is_lost() {
    give_out(Disk::fill, Disk::empty, "disk is full");
}

#[test]
fn a_data_folder_that_cannot_be_written_is_told() {
    let ws = Workspace::new();
    let place = ws.path("small");
    let Some(disk) = Disk::at(&place) else { return };
    let mut command = ws.command(&["daemon"]);
    command.env("REPERTOIRE_DATA_DIR", place.join("data"));
    disk.is_writable("ro");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.to_lowercase().contains("read-only file system"), "{said}");
    assert!(said.contains(place.as_str()), "{said}");
    assert!(said.lines().count() <= 3, "{said}");
}
