//! Hot reload on real folders with real events. Nothing sleeps: tests wait for what they expect.

use std::fs::{self, File};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::discover::{DiscoveryRequest, RootState};
use repertoire_skill::library::watch::{LibraryWatchHandle, WatchOptions};
use repertoire_skill::library::{LibraryReload, SkillLibrary};
use repertoire_skill::limits::ResourceLimits;
use repertoire_skill::profile::{ProfileId, Root, SearchDirectories};
use repertoire_skill::skill::{ContentDigest, Scope, Skill};
use repertoire_skill::trust::{TrustLevel, TrustLock, TrustLockError};
use repertoire_text::fs::write_atomic;

/// Long enough for a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(30);
const BROKEN: &str = "---\nname: a\n";

struct Folder {
    _keep: tempfile::TempDir,
    dir: Utf8PathBuf,
}

impl Folder {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(keep.path().canonicalize().unwrap()).unwrap();
        fs::create_dir(dir.join("skills")).unwrap();
        Folder { _keep: keep, dir }
    }

    fn with(skills: &[&str]) -> Self {
        let folder = Folder::new();
        skills.iter().for_each(|name| folder.save(name, "first"));
        folder
    }

    fn file(&self, name: &str) -> Utf8PathBuf {
        self.dir.join("skills").join(name).join("SKILL.md")
    }

    /// Saves as many editors do: another file, put in place.
    fn save(&self, name: &str, word: &str) {
        self.write(name, &text(name, word));
    }

    fn write(&self, name: &str, text: &str) {
        write_atomic(&self.file(name), text.as_bytes()).unwrap();
    }

    fn places(&self) -> SearchDirectories {
        SearchDirectories {
            here: self.dir.join("project"),
            home: self.dir.join("home"),
            pack: self.dir.join("pack"),
        }
    }

    fn request(&self, roots: &[&str]) -> DiscoveryRequest {
        let roots = roots.iter().map(|root| Root::named_by_user(self.dir.join(root))).collect();
        let request = DiscoveryRequest::new(ProfileId::Repertoire, self.places());
        DiscoveryRequest { roots: Some(roots), ..request }
    }

    fn open(&self) -> Arc<SkillLibrary> {
        Arc::new(SkillLibrary::open(self.request(&["skills"])))
    }
}

fn text(path: &str, word: &str) -> String {
    let name = Utf8Path::new(path).file_name().unwrap();
    format!("---\nname: {name}\ndescription: Says {word}.\n---\nSay {word}.\n")
}

struct Watched {
    library: Arc<SkillLibrary>,
    reloads: Receiver<LibraryReload>,
    _watching: LibraryWatchHandle,
}

impl Watched {
    fn new(library: &Arc<SkillLibrary>) -> Self {
        // The rescan would hide that an event was missed.
        Self::with(library, WatchOptions { rescan: PATIENCE * 100, ..WatchOptions::default() })
    }

    fn with(library: &Arc<SkillLibrary>, options: WatchOptions) -> Self {
        let (sender, reloads) = channel();
        let watching = library.watch(options, move |reload| {
            let _ = sender.send(reload.clone());
        });
        Watched { library: Arc::clone(library), reloads, _watching: watching }
    }

    /// The first reload after which the catalog is as expected.
    #[track_caller]
    fn until(&self, expect: impl Fn(&Catalog) -> bool) -> LibraryReload {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(reload) = self.reloads.recv_timeout(left) else {
                panic!("not seen; there are {:?}", names(&self.library.snapshot()));
            };
            if expect(&reload.catalog) {
                return reload;
            }
        }
    }
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.entries().iter().map(|entry| entry.id.as_str()).collect()
}

fn says(catalog: &Catalog, name: &str, word: &str) -> bool {
    catalog.get(name).is_some_and(|entry| entry.skill.body() == format!("Say {word}.\n"))
}

fn skill(catalog: &Catalog, name: &str) -> Arc<Skill> {
    Arc::clone(&catalog.get(name).unwrap().skill)
}

fn codes(reload: &LibraryReload) -> Vec<&'static str> {
    reload.findings.iter().map(|found| found.code.id).collect()
}

fn trust(catalog: &Catalog) -> TrustLevel {
    catalog.get("a").unwrap().trust
}

/// A library of a stranger's skill `a`, and the lock that may trust it. Its folder is not there yet.
fn of_a_stranger(folder: &Folder) -> (Arc<SkillLibrary>, Utf8PathBuf) {
    let lock = folder.dir.join("config/repertoire/repertoire.lock");
    let root =
        Root { scope: Scope::Project, ..Root::named_by_user(folder.dir.join("project/skills")) };
    let request = DiscoveryRequest {
        roots: Some(vec![root]),
        lock_path: Some(lock.clone()),
        ..DiscoveryRequest::new(ProfileId::Repertoire, folder.places())
    };
    (Arc::new(SkillLibrary::open(request)), lock)
}

fn say(lock: &Utf8Path, word: impl FnOnce(&mut TrustLock)) {
    TrustLock::update(lock, |lock| {
        word(lock);
        Ok::<_, TrustLockError>(())
    })
    .unwrap();
}

#[test]
fn trust_that_is_given_or_taken_back_counts_at_once() {
    let folder = Folder::new();
    folder.save("../project/skills/a", "first");
    let (library, lock) = of_a_stranger(&folder);
    let watched = Watched::new(&library);
    assert_eq!(trust(&library.snapshot()), TrustLevel::Untrusted);
    let skill = skill(&library.snapshot(), "a");
    for _ in 0..2 {
        say(&lock, |lock| assert!(lock.pin_skill(&skill, &ResourceLimits::default()).is_some()));
        check(&watched.until(|catalog| trust(catalog) == TrustLevel::Trusted), "~a");
        say(&lock, |lock| assert!(lock.unpin_skill(&skill)));
        check(&watched.until(|catalog| trust(catalog) == TrustLevel::Untrusted), "~a");
    }
}

#[test]
fn a_lock_that_is_damaged_on_the_way_trusts_nothing_and_is_told() {
    let folder = Folder::new();
    folder.save("../project/skills/a", "first");
    let (library, lock) = of_a_stranger(&folder);
    let skill = skill(&library.snapshot(), "a");
    say(&lock, |lock| assert!(lock.pin_skill(&skill, &ResourceLimits::default()).is_some()));
    let whole = repertoire_text::fs::read_text(&lock, 9_999).unwrap();
    assert_eq!(trust(&library.reload().catalog), TrustLevel::Trusted);
    let watched = Watched::new(&library);
    write_atomic(&lock, b"{ \"skills\": 7 }").unwrap();
    let reload = watched.until(|catalog| trust(catalog) == TrustLevel::Untrusted);
    assert_eq!(codes(&reload), ["RS003"]);
    assert_eq!(reload.findings[0].path.as_deref(), Some(lock.as_path()));
    write_atomic(&lock, whole.as_bytes()).unwrap();
    let reload = watched.until(|catalog| trust(catalog) == TrustLevel::Trusted);
    assert!(reload.catalog.diagnostics().iter().all(|found| found.code.id != "RS003"));
}

/// `+added -removed ~changed !broken`, in that order.
#[track_caller]
fn check(reload: &LibraryReload, expect: &str) {
    let marked = |mark: &str, ids: &[String]| -> Vec<String> {
        ids.iter().map(|id| format!("{mark}{id}")).collect()
    };
    let all = [
        marked("+", &reload.added),
        marked("-", &reload.removed),
        marked("~", &reload.changed),
        marked("!", &reload.broken),
    ];
    assert_eq!(all.concat().join(" "), expect);
}

#[test]
fn a_reload_without_a_change_keeps_the_snapshot() {
    let folder = Folder::with(&["a", "b"]);
    let library = folder.open();
    let before = library.snapshot();
    let reload = library.reload();
    assert!(!reload.replaced && Arc::ptr_eq(&before, &reload.catalog));
    // Touched, but not changed.
    folder.save("a", "first");
    assert!(!library.reload().replaced);
    assert!(Arc::ptr_eq(&before, &library.snapshot()));
    assert_eq!(before.generation(), 1);
}

#[test]
fn a_reload_says_what_changed_and_reads_nothing_else() {
    let folder = Folder::with(&["a", "b", "c"]);
    let library = folder.open();
    let before = library.snapshot();
    folder.save("b", "second");
    folder.save("d", "first");
    fs::remove_dir_all(folder.dir.join("skills/c")).unwrap();
    let reload = library.reload();
    check(&reload, "+d -c ~b");
    assert_eq!(reload.catalog.generation(), 2);
    assert!(Arc::ptr_eq(&skill(&before, "a"), &skill(&reload.catalog, "a")));
    assert!(says(&before, "b", "first") && says(&reload.catalog, "b", "second"));
}

#[test]
fn a_broken_edit_keeps_the_last_good_version_however_often_until_it_is_fixed() {
    let folder = Folder::with(&["a"]);
    let library = folder.open();
    let good = skill(&library.snapshot(), "a");
    folder.write("a", BROKEN);
    let reload = library.reload();
    check(&reload, "!a");
    assert!(codes(&reload).contains(&"RS315"));
    assert!(!library.reload().replaced, "still broken is no change");
    folder.write("a", "no frontmatter");
    check(&library.reload(), "!a");
    File::create(folder.file("a")).unwrap().write_all(b"caf\xe9").unwrap();
    check(&library.reload(), "!a");
    assert!(Arc::ptr_eq(&good, &skill(&library.snapshot(), "a")));
    folder.save("a", "second");
    check(&library.reload(), "~a");
    assert!(library.snapshot().diagnostics().iter().all(|found| found.code.id != "RS315"));
}

#[test]
fn every_broken_edit_is_told_whatever_the_names_beside_it() {
    let folder = Folder::with(&["a", "a-b", "a.b"]);
    let library = folder.open();
    for name in ["a", "a-b", "a.b"] {
        folder.write(name, BROKEN);
    }
    check(&library.reload(), "!a !a-b");
}

#[test]
fn taking_a_broken_edit_back_is_told() {
    let folder = Folder::with(&["a"]);
    let library = folder.open();
    folder.write("a", BROKEN);
    check(&library.reload(), "!a");
    folder.save("a", "first");
    check(&library.reload(), "~a");
}

#[test]
fn a_broken_file_that_is_deleted_takes_its_last_good_version_along() {
    let folder = Folder::with(&["a"]);
    let library = folder.open();
    folder.write("a", BROKEN);
    library.reload();
    fs::remove_file(folder.file("a")).unwrap();
    check(&library.reload(), "-a");
    folder.write("a", BROKEN);
    let reload = library.reload();
    check(&reload, "");
    assert!(reload.replaced && reload.catalog.broken().len() == 1);
    assert!(!codes(&reload).contains(&"RS315") && !codes(&reload).is_empty());
}

#[test]
fn a_file_that_was_broken_from_the_start_is_added_once_it_is_fixed() {
    let folder = Folder::new();
    folder.write("a", BROKEN);
    let library = folder.open();
    assert_eq!(library.snapshot().broken().len(), 1);
    folder.save("a", "first");
    let reload = library.reload();
    check(&reload, "+a");
    assert!(reload.catalog.broken().is_empty());
}

#[test]
fn a_folder_in_place_of_the_file_is_no_last_good_version() {
    let folder = Folder::with(&["a"]);
    let library = folder.open();
    fs::remove_file(folder.file("a")).unwrap();
    fs::create_dir(folder.file("a")).unwrap();
    let reload = library.reload();
    check(&reload, "-a");
    assert_eq!(reload.catalog.broken().len(), 1);
}

#[test]
fn a_flat_file_keeps_its_last_good_version_but_may_stop_being_a_skill() {
    let folder = Folder::new();
    let file = folder.dir.join("skills/a.md");
    let write = |text: &str| write_atomic(&file, text.as_bytes()).unwrap();
    write(&text("a", "first"));
    let library = folder.open();
    write("");
    check(&library.reload(), "!a");
    write("---\ntitle: Notes\n---\nNotes.\n");
    check(&library.reload(), "-a");
    write("Notes.\n");
    assert!(!library.reload().replaced);
}

#[test]
#[cfg(unix)]
fn a_file_that_may_not_be_read_any_more_keeps_its_last_good_version() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::with(&["a"]);
    let library = folder.open();
    fs::set_permissions(folder.file("a"), fs::Permissions::from_mode(0o000)).unwrap();
    let reload = library.reload();
    // Whoever runs this as root may read everything.
    let is_root = File::open(folder.file("a")).is_ok();
    check(&reload, if is_root { "" } else { "!a" });
    assert!(says(&library.snapshot(), "a", "first"));
}

#[test]
fn overlapping_roots_do_not_push_each_others_files_out_of_the_cache() {
    let folder = Folder::with(&["a", "more/b"]);
    let library = SkillLibrary::open(folder.request(&["skills", "skills/more"]));
    let before = library.snapshot();
    assert_eq!(before.shadowed().len(), 1);
    folder.save("a", "second");
    let after = library.reload().catalog;
    let twins = |catalog: &Catalog| Arc::clone(&catalog.shadowed()[0].entry.skill);
    assert!(Arc::ptr_eq(&twins(&before), &twins(&after)));
    assert!(Arc::ptr_eq(&skill(&before, "b"), &skill(&after, "b")));
}

#[test]
fn readers_never_see_half_of_a_change() {
    let folder = Folder::with(&["a", "b", "c"]);
    let library = folder.open();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let read = || {
            let (mut loads, mut last) = (0, 0);
            while loads < 250 || !done.load(Ordering::Acquire) {
                last = check_whole(&library.snapshot(), last);
                loads += 1;
            }
        };
        for _ in 0..4 {
            scope.spawn(read);
        }
        for edit in 0..200 {
            folder.save(["a", "b", "c"][edit % 3], &format!("edit{edit}"));
            assert!(library.reload().replaced);
        }
        done.store(true, Ordering::Release);
    });
    assert_eq!(library.snapshot().generation(), 201);
}

/// One snapshot comes from one pass, holds each name once, and every skill in it is of one piece.
fn check_whole(catalog: &Catalog, last_generation: u64) -> u64 {
    assert!(catalog.generation() >= last_generation);
    assert_eq!(names(catalog), ["a", "b", "c"]);
    for entry in catalog.entries() {
        assert_eq!(entry.skill.digest(), ContentDigest::hash_bytes(entry.skill.text().as_bytes()));
        assert_eq!(entry.skill.description.replacen("Says", "Say", 1), entry.skill.body().trim());
    }
    catalog.generation()
}

#[test]
fn edits_are_seen_however_the_editor_saves() {
    let folder = Folder::with(&["a"]);
    let watched = Watched::new(&folder.open());
    folder.save("a", "second");
    check(&watched.until(|catalog| says(catalog, "a", "second")), "~a");
    let in_place = text("a", "third");
    File::create(folder.file("a")).unwrap().write_all(in_place.as_bytes()).unwrap();
    watched.until(|catalog| says(catalog, "a", "third"));
    let old = folder.dir.join("skills/a/SKILL.md~");
    fs::rename(folder.file("a"), old).unwrap();
    folder.save("a", "fourth");
    watched.until(|catalog| says(catalog, "a", "fourth"));
}

#[test]
fn an_edit_that_keeps_size_and_time_is_seen() {
    let folder = Folder::with(&["a"]);
    let modified = fs::metadata(folder.file("a")).unwrap().modified().unwrap();
    let watched = Watched::new(&folder.open());
    let mut file = File::create(folder.file("a")).unwrap();
    file.write_all(text("a", "worst").as_bytes()).unwrap();
    file.set_modified(modified).unwrap();
    watched.until(|catalog| says(catalog, "a", "worst"));
}

#[test]
fn skills_that_come_move_and_go_are_seen() {
    let folder = Folder::with(&["a"]);
    let watched = Watched::new(&folder.open());
    folder.save("deep/er/b", "first");
    watched.until(|catalog| names(catalog).len() == 2);
    let skills = folder.dir.join("skills");
    fs::rename(skills.join("a"), skills.join("c")).unwrap();
    let moved = |catalog: &Catalog| {
        catalog.get("a").is_some_and(|entry| entry.skill.origin.file == folder.file("c"))
    };
    check(&watched.until(moved), "~a");
    folder.write("c", &text("a", "second"));
    watched.until(|catalog| says(catalog, "a", "second"));
    fs::remove_dir_all(skills.join("c")).unwrap();
    check(&watched.until(|catalog| catalog.get("a").is_none()), "-a");
}

#[test]
fn a_broken_edit_and_its_correction_are_seen() {
    let folder = Folder::with(&["a"]);
    let watched = Watched::new(&folder.open());
    folder.write("a", BROKEN);
    let reload = watched.until(|_| true);
    check(&reload, "!a");
    assert!(says(&reload.catalog, "a", "first"));
    folder.save("a", "second");
    check(&watched.until(|catalog| says(catalog, "a", "second")), "~a");
}

#[test]
fn a_root_that_comes_later_is_found_and_watched_and_may_be_replaced() {
    let folder = Folder::new();
    fs::create_dir(folder.dir.join("project")).unwrap();
    let library = SkillLibrary::open(DiscoveryRequest::new(ProfileId::Claude, folder.places()));
    let watched = Watched::new(&Arc::new(library));
    let root = folder.dir.join("project/.claude/skills");
    let save = |word: &str| {
        write_atomic(&root.join("a/SKILL.md"), text("a", word).as_bytes()).unwrap();
    };
    save("first");
    watched.until(|catalog| says(catalog, "a", "first"));
    save("second");
    watched.until(|catalog| says(catalog, "a", "second"));
    fs::remove_dir_all(&root).unwrap();
    watched
        .until(|catalog| catalog.roots().iter().all(|report| report.state == RootState::Missing));
    fs::create_dir(&root).unwrap();
    save("third");
    watched.until(|catalog| says(catalog, "a", "third"));
    fs::rename(folder.dir.join("project/.claude"), folder.dir.join("project/.other")).unwrap();
    save("fourth");
    watched.until(|catalog| says(catalog, "a", "fourth"));
    save("fifth");
    watched.until(|catalog| says(catalog, "a", "fifth"));
}

#[test]
fn a_plugin_that_is_installed_later_is_found() {
    let folder = Folder::new();
    let library = SkillLibrary::open(DiscoveryRequest::new(ProfileId::Claude, folder.places()));
    let watched = Watched::new(&Arc::new(library));
    let version = |version: &str| {
        folder.dir.join(format!("home/.claude/plugins/cache/market/tools/{version}/skills/a"))
    };
    let save = |dir: Utf8PathBuf, word: &str| {
        write_atomic(&dir.join("SKILL.md"), text("a", word).as_bytes()).unwrap();
    };
    save(version("1.0.0"), "first");
    watched.until(|catalog| says(catalog, "tools:a", "first"));
    save(version("1.0.1"), "second");
    watched.until(|catalog| says(catalog, "tools:a", "second"));
}

#[test]
#[cfg(unix)]
fn a_skill_behind_a_link_is_watched_where_it_is() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let elsewhere = folder.dir.join("elsewhere");
    let save = |file: &Utf8Path, name: &str, word: &str| {
        write_atomic(file, text(name, word).as_bytes()).unwrap();
    };
    let (linked_folder, linked_file) = (elsewhere.join("a/SKILL.md"), elsewhere.join("b.md"));
    save(&linked_folder, "a", "first");
    save(&linked_file, "b", "first");
    symlink(elsewhere.join("a"), folder.dir.join("skills/a")).unwrap();
    fs::create_dir(folder.dir.join("skills/b")).unwrap();
    symlink(&linked_file, folder.file("b")).unwrap();
    let watched = Watched::new(&folder.open());
    save(&linked_folder, "a", "second");
    watched.until(|catalog| says(catalog, "a", "second"));
    save(&linked_file, "b", "second");
    watched.until(|catalog| says(catalog, "b", "second"));
    save(&linked_file, "b", "third");
    watched.until(|catalog| says(catalog, "b", "third"));
}

#[test]
#[cfg(unix)]
fn what_no_event_tells_is_found_by_looking() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let dir = &folder.dir;
    for word in ["first", "second"] {
        write_atomic(&dir.join(word).join("SKILL.md"), text("a", word).as_bytes()).unwrap();
    }
    fs::create_dir(dir.join("hops")).unwrap();
    symlink(dir.join("first"), dir.join("hops/hop")).unwrap();
    symlink(dir.join("hops/hop"), dir.join("skills/a")).unwrap();
    let options = WatchOptions { rescan: Duration::from_millis(20), ..WatchOptions::default() };
    let watched = Watched::with(&folder.open(), options);
    fs::remove_file(dir.join("hops/hop")).unwrap();
    symlink(dir.join("second"), dir.join("hops/hop")).unwrap();
    watched.until(|catalog| says(catalog, "a", "second"));
}

#[test]
fn a_change_between_opening_and_watching_is_not_missed() {
    let folder = Folder::with(&["a"]);
    let library = folder.open();
    folder.save("a", "second");
    Watched::new(&library).until(|catalog| says(catalog, "a", "second"));
}

#[test]
fn a_burst_of_edits_is_few_reloads() {
    let folder = Folder::with(&["a"]);
    let watched = Watched::new(&folder.open());
    for edit in 0..=100 {
        folder.save("a", &format!("edit{edit}"));
    }
    let last = watched.until(|catalog| says(catalog, "a", "edit100"));
    assert!(last.catalog.generation() < 20, "{} reloads", last.catalog.generation());
}

#[test]
fn a_storm_without_an_end_is_not_waited_for() {
    let folder = Folder::with(&["a"]);
    let options = WatchOptions {
        quiet: PATIENCE * 10,
        storm_max: Duration::from_millis(50),
        rescan: PATIENCE * 10,
    };
    let watched = Watched::with(&folder.open(), options);
    folder.save("a", "second");
    watched.until(|catalog| says(catalog, "a", "second"));
}

#[test]
fn dropping_ends_the_thread_at_once() {
    let folder = Folder::with(&["a"]);
    let library = folder.open();
    let watched = Watched::new(&library);
    folder.save("a", "second");
    let start = Instant::now();
    drop(watched);
    assert!(start.elapsed() < PATIENCE / 3);
    assert_eq!(Arc::strong_count(&library), 1, "the thread has let go of the library");
}
