use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::fs::{read_text, write_atomic};

struct Ground {
    _keep: tempfile::TempDir,
    inside: Utf8PathBuf,
    outside: Utf8PathBuf,
}

impl Ground {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(keep.path().canonicalize().unwrap()).unwrap();
        let (inside, outside) = (dir.join("inside"), dir.join("outside"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::create_dir(&outside).unwrap();
        Ground { _keep: keep, inside, outside }
    }

    fn folder(&self) -> FolderHandle {
        FolderHandle::open(&self.inside).unwrap()
    }

    fn file(&self, path: &str, text: &str) {
        write_atomic(&self.inside.join(path), text.as_bytes()).unwrap();
    }

    fn link(&self, target: impl AsRef<std::path::Path>, name: &str) {
        symlink(target, self.inside.join(name)).unwrap();
    }

    fn names(&self, of: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.inside.join(of)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[cfg(target_os = "linux")]
/// Runs `attempt` many times while another thread replaces the folder `swapped` with a link to the outside and back.
fn while_a_folder_is_swapped(ground: &Ground, mut attempt: impl FnMut(&FolderHandle, usize)) {
    std::fs::create_dir(ground.inside.join("swapped")).unwrap();
    let (swapped, link) = (ground.inside.join("swapped"), ground.inside.join("link"));
    symlink(&ground.outside, &link).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (here, exchange) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
            while !is_over.load(Ordering::Relaxed) {
                let (swapped, link) = (swapped.as_std_path(), link.as_std_path());
                rustix::fs::renameat_with(here, swapped, here, link, exchange).unwrap();
            }
        });
        let folder = ground.folder();
        let deadline = std::time::Instant::now() + std::time::Duration::from_millis(500);
        let mut round = 0;
        while round < 200 || std::time::Instant::now() < deadline {
            attempt(&folder, round);
            round += 1;
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_is_swapped_for_a_link_during_a_write_leads_nowhere() {
    let ground = Ground::new();
    while_a_folder_is_swapped(&ground, |folder, round| {
        let path = Utf8PathBuf::from(format!("swapped/{round}/chosen.txt"));
        // Either refused or written inside, depending on the timing.
        let _ = folder.write_atomic(&path, b"chosen");
        let _ = folder.write_atomic(Utf8Path::new("swapped/chosen.txt"), b"chosen");
    });
    assert_eq!(std::fs::read_dir(&ground.outside).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_is_swapped_for_a_link_during_a_read_shows_nothing_from_outside() {
    let ground = Ground::new();
    write_atomic(&ground.outside.join("secret.txt"), b"secret").unwrap();
    while_a_folder_is_swapped(&ground, |folder, _| {
        let read = folder.read_text(Utf8Path::new("swapped/secret.txt"), 100);
        assert!(read.is_err(), "{read:?}");
        let by_steps = folder.place(Utf8Path::new("swapped/secret.txt"));
        let read = by_steps.map_err(ReadError::from).and_then(|place| place.read_text(100));
        assert!(read.is_err(), "{read:?}");
    });
}

#[test]
fn links_that_stay_beneath_are_followed_and_the_place_is_the_real_one() {
    let ground = Ground::new();
    ground.file("a/b/real.txt", "1");
    ground.link("a/b", "relative");
    ground.link(ground.inside.join("a"), "absolute");
    ground.link("../b/../b/real.txt", "a/climbs");
    for path in ["relative/real.txt", "absolute/b/real.txt", "a/climbs", "./a/b/real.txt"] {
        let found = ground.folder().find(Utf8Path::new(path));
        let place = ground.folder().place(Utf8Path::new(path));
        match path {
            "a/climbs" => {
                assert!(matches!(found, Err(LocationError::Dangling { .. })), "{found:?}");
                assert!(matches!(place, Err(LocationError::Dangling { .. })), "{place:?}");
            }
            path => {
                assert_eq!(found.unwrap().relative(), "a/b/real.txt", "{path}");
                assert_eq!(place.unwrap().relative(), "a/b/real.txt", "{path}");
            }
        }
    }
    ground.folder().write_atomic(Utf8Path::new("relative/new/file"), b"2").unwrap();
    assert_eq!(ground.folder().read_text(Utf8Path::new("a/b/new/file"), 9).unwrap(), "2");
    assert_eq!(ground.folder().find(Utf8Path::new(".")).unwrap().relative(), ".");
}

#[test]
fn links_that_leave_say_where_they_lead() {
    let ground = Ground::new();
    ground.link("../outside", "out");
    ground.link(&ground.outside, "absolute");
    ground.link("round", "round");
    for path in ["out/new", "absolute/new", "out", "absolute/deep/new"] {
        let error = ground.folder().place(Utf8Path::new(path)).unwrap_err();
        let LocationError::LinkLeaves { link, to } = error else { panic!("{path}: {error}") };
        assert!(path.starts_with(link.as_str()), "{link}");
        assert!(to.unwrap().as_str().contains("outside"));
        assert!(ground.folder().write_atomic(Utf8Path::new(path), b"1").is_err());
        assert!(ground.folder().find(Utf8Path::new(path)).is_err());
    }
    let error = ground.folder().place(Utf8Path::new("round/x")).unwrap_err();
    assert!(matches!(error, LocationError::TooManyLinks { .. }), "{error}");
    assert_eq!(std::fs::read_dir(&ground.outside).unwrap().count(), 0);
}

#[test]
fn where_no_link_is_followed_one_on_the_way_is_named() {
    let ground = Ground::new();
    ground.file("real/x", "1");
    ground.link("real", "link");
    let error = ground.folder().resolve_without_links(Utf8Path::new("link/x")).unwrap_err();
    assert!(matches!(&error, LocationError::Link { link } if link == "link"), "{error}");
    assert!(ground.folder().make_folder(Utf8Path::new("link/new"), 0o700).is_err());
    ground.folder().make_folder(Utf8Path::new("made/deep"), 0o700).unwrap();
    let mode = std::fs::metadata(ground.inside.join("made/deep")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn folders_are_listed_from_their_handles() {
    let ground = Ground::new();
    ground.file("a/b/file", "1");
    let names = |folder: &FolderHandle| -> Vec<String> {
        let entries = folder.entries().unwrap();
        entries.map(|entry| entry.unwrap().name.into_string().unwrap()).collect()
    };
    let folder = ground.folder();
    assert_eq!(names(&folder), ["a"]);
    assert_eq!(names(&folder.open_child("a").unwrap().open_child("b").unwrap()), ["file"]);
    let found = folder.find(Utf8Path::new("a/b")).unwrap();
    let inner = found.to_folder(ground.inside.join("a/b")).unwrap();
    assert_eq!(names(&inner), ["file"]);
    assert_eq!(inner.child_bytes("file"), Some(1));
    assert!(folder.open_child("..").is_err() && folder.open_child("a/b").is_err());
}

#[test]
fn a_tree_is_removed_without_following_links() {
    let ground = Ground::new();
    write_atomic(&ground.outside.join("kept"), b"1").unwrap();
    ground.file("tree/deep/er/file", "1");
    ground.link(&ground.outside, "tree/deep/out");
    ground.link(&ground.outside, "way");
    ground.folder().remove_all(Utf8Path::new("tree")).unwrap();
    ground.folder().remove_all(Utf8Path::new("not there")).unwrap();
    assert!(ground.folder().remove_all(Utf8Path::new("way/kept")).is_err());
    ground.folder().remove_all(Utf8Path::new("way")).unwrap();
    assert_eq!(ground.names("."), Vec::<String>::new());
    assert!(ground.outside.join("kept").exists());
}

#[test]
fn a_temporary_file_of_a_dead_process_is_removed_by_the_next_write() {
    let ground = Ground::new();
    let folder = ground.folder();
    let path = Utf8Path::new("notes.txt");
    folder.write_atomic(path, b"1").unwrap();
    let temporary = replace::temporary_names("notes.txt").next().unwrap();
    ground.file(&temporary, "half of it");
    folder.write_atomic(path, b"2").unwrap();
    assert_eq!(ground.names("."), ["notes.txt"]);
    assert_eq!(read_text(&ground.inside.join("notes.txt"), 9).unwrap(), "2");
}

#[test]
fn a_temporary_file_of_a_live_process_is_left_alone() {
    let ground = Ground::new();
    let folder = ground.folder();
    folder.write_atomic(Utf8Path::new("notes.txt"), b"1").unwrap();
    let temporary = replace::temporary_names("notes.txt").next().unwrap();
    ground.file(&temporary, "half of it");
    let live = std::fs::File::open(ground.inside.join(&temporary)).unwrap();
    live.lock().unwrap();
    folder.write_atomic(Utf8Path::new("notes.txt"), b"2").unwrap();
    assert_eq!(ground.names("."), [temporary.as_str(), "notes.txt"]);
}

#[test]
fn writers_of_the_same_file_do_not_disturb_each_other() {
    let ground = Ground::new();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let ground = &ground;
            scope.spawn(move || {
                for round in 0..20 {
                    let text = format!("{writer} {round}");
                    let path = Utf8Path::new("notes.txt");
                    ground.folder().write_atomic(path, text.as_bytes()).unwrap();
                }
            });
        }
    });
    assert_eq!(ground.names("."), ["notes.txt"]);
}

#[test]
fn a_file_system_without_locks_is_written_to_and_nothing_is_left() {
    use rustix::io::Errno;
    use std::os::fd::AsFd;
    let ground = Ground::new();
    for error in [Errno::NOSYS, Errno::NOLCK, Errno::OPNOTSUPP] {
        replace::LOCK_ERROR.set(Some(error));
        for text in ["1", "2"] {
            ground.folder().write_atomic(Utf8Path::new("notes.txt"), text.as_bytes()).unwrap();
            assert_eq!(ground.names("."), ["notes.txt"]);
        }
        // The fallback without unnamed files.
        let folder = std::fs::File::open(&ground.inside).unwrap();
        let (_file, temporary) =
            replace::create_temporary(folder.as_fd(), "notes.txt", None).unwrap();
        assert!(crate::fs::is_temporary_name(&temporary), "{temporary}");
        assert_eq!(ground.names("."), [temporary.as_str(), "notes.txt"]);
        std::fs::remove_file(ground.inside.join(temporary)).unwrap();
    }
    replace::LOCK_ERROR.set(None);
}

#[test]
fn bits_that_change_the_user_are_not_kept() {
    let ground = Ground::new();
    ground.file("program", "1");
    let path = ground.inside.join("program");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    ground.folder().write_atomic(Utf8Path::new("program"), b"2").unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o755);
}
