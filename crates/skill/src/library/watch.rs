//! Reloads a library when its files change. A separate thread debounces the events around an edit, and
//! rescans everything at intervals whether events came or not: events are only a hint. Folders that cannot be
//! watched are reported once and then covered by the rescan.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use notify::{Config, ErrorKind, RecommendedWatcher, Watcher as _};
use repertoire_text::Diagnostic;

use super::folders::{WatchEventMeaning, WatchedFolders};
use super::{LibraryReload, SkillLibrary, SuspectFiles};
use crate::codes;
use crate::limits::{NOTICES_MAX, SETTLE_ROUNDS_MAX, SUSPECTS_MAX};

/// The timing of reloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchOptions {
    /// The debounce time: reload when there were no events for this long.
    pub quiet: Duration,
    /// The maximum time to wait for the events to stop.
    pub storm_max: Duration,
    /// The time without events after which everything is scanned again.
    pub rescan: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        WatchOptions {
            quiet: Duration::from_millis(150),
            storm_max: Duration::from_secs(2),
            rescan: Duration::from_secs(45),
        }
    }
}

/// A handle that keeps a library watched until it is dropped.
#[derive(Debug)]
pub struct LibraryWatchHandle {
    line: NoticeSender,
    thread: Option<JoinHandle<()>>,
}

impl SkillLibrary {
    /// Watches the roots, including those that do not exist yet, and reloads after changes. `on_reload` is
    /// called on the watching thread whenever the snapshot was replaced or watching failed.
    ///
    /// # Panics
    /// If the system cannot start a thread.
    pub fn watch(
        self: &Arc<Self>,
        options: WatchOptions,
        on_reload: impl Fn(&LibraryReload) + Send + 'static,
    ) -> LibraryWatchHandle {
        let (sender, notices) = sync_channel(NOTICES_MAX);
        let line = NoticeSender { sender, stop: Arc::default(), lost: Arc::default() };
        let mut watch = LibraryWatchLoop {
            library: Arc::clone(self),
            options,
            on_reload,
            notices,
            line: line.clone(),
            folders: Arc::default(),
            watcher: None,
            is_failing: false,
            told: BTreeSet::new(),
        };
        // Set up the watches before returning, so that no later change is missed.
        let failures =
            watch.watch_folders(WatchedFolders::for_catalog(&self.request, &self.snapshot()));
        let thread = thread::Builder::new()
            .name("skill-watch".to_owned())
            .spawn(move || watch.run(failures))
            .expect("a thread can be started");
        LibraryWatchHandle { line, thread: Some(thread) }
    }
}

impl Drop for LibraryWatchHandle {
    fn drop(&mut self) {
        self.line.stop.store(true, Ordering::Release);
        self.line.send(WatchNotice::Stop);
        let Some(thread) = self.thread.take() else { return };
        // If `on_reload` drops the handle, this is the watching thread itself, which cannot join itself.
        if thread.thread().id() != thread::current().id() {
            // A panic in `on_reload` has been printed already.
            let _ = thread.join();
        }
    }
}

/// A message to the watching thread.
#[derive(Debug)]
enum WatchNotice {
    Event(WatchEventMeaning),
    Failed(Diagnostic),
    Stop,
}

/// The channel to the watching thread. Sending never blocks: if the channel is full, `lost` makes the thread
/// read every file again.
#[derive(Clone, Debug)]
struct NoticeSender {
    sender: SyncSender<WatchNotice>,
    stop: Arc<AtomicBool>,
    lost: Arc<AtomicBool>,
}

impl NoticeSender {
    fn send(&self, notice: WatchNotice) {
        if self.sender.try_send(notice).is_err() {
            self.lost.store(true, Ordering::Release);
        }
    }
}

/// The notices collected while waiting.
#[derive(Debug)]
struct PendingReload {
    suspects: SuspectFiles,
    failures: Vec<Diagnostic>,
    has_moved: bool,
    is_rescan: bool,
}

impl PendingReload {
    fn without_changes() -> Self {
        PendingReload {
            suspects: SuspectFiles::Paths(BTreeSet::new()),
            failures: Vec::new(),
            has_moved: false,
            is_rescan: false,
        }
    }

    fn add_notice(&mut self, notice: WatchNotice) {
        match notice {
            WatchNotice::Event(WatchEventMeaning::Touched(paths)) => self.add_suspects(paths),
            WatchNotice::Event(WatchEventMeaning::Moved) => self.has_moved = true,
            WatchNotice::Event(WatchEventMeaning::Lost) => self.suspects = SuspectFiles::All,
            WatchNotice::Failed(found) => self.failures.push(found),
            WatchNotice::Stop => {}
        }
    }

    fn add_suspects(&mut self, paths: Vec<Utf8PathBuf>) {
        let SuspectFiles::Paths(known) = &mut self.suspects else { return };
        known.extend(paths);
        if known.len() > SUSPECTS_MAX {
            self.suspects = SuspectFiles::All;
        }
    }
}

/// The state of the watching thread.
struct LibraryWatchLoop<F> {
    library: Arc<SkillLibrary>,
    options: WatchOptions,
    on_reload: F,
    notices: Receiver<WatchNotice>,
    line: NoticeSender,
    folders: Arc<WatchedFolders>,
    watcher: Option<RecommendedWatcher>,
    is_failing: bool,
    told: BTreeSet<String>,
}

impl<F: Fn(&LibraryReload)> LibraryWatchLoop<F> {
    fn run(mut self, failures: Vec<Diagnostic>) {
        // The first round finds what has changed since the library was opened.
        let mut pending = PendingReload { failures, ..PendingReload::without_changes() };
        loop {
            self.reload_until_settled(pending);
            match self.wait_for_changes() {
                Some(next) => pending = next,
                None => return,
            }
        }
    }

    /// Waits for events until they stop. Returns `None` when the thread should end.
    fn wait_for_changes(&self) -> Option<PendingReload> {
        let mut pending = PendingReload::without_changes();
        match self.notices.recv_timeout(self.options.rescan) {
            Ok(first) => self.collect_until_quiet(first, &mut pending),
            Err(_) => pending.is_rescan = true,
        }
        if self.line.lost.swap(false, Ordering::AcqRel) {
            pending.suspects = SuspectFiles::All;
        }
        (!self.is_stopped()).then_some(pending)
    }

    fn collect_until_quiet(&self, first: WatchNotice, pending: &mut PendingReload) {
        let end = Instant::now() + self.options.storm_max;
        pending.add_notice(first);
        while !self.is_stopped() {
            let left = end.saturating_duration_since(Instant::now());
            match self.notices.recv_timeout(left.min(self.options.quiet)) {
                Ok(notice) if !left.is_zero() => pending.add_notice(notice),
                Ok(notice) => return pending.add_notice(notice),
                Err(_) => return,
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.line.stop.load(Ordering::Acquire)
    }

    /// Reloads, and repeats this as long as the set of folders to watch changes.
    fn reload_until_settled(&mut self, mut pending: PendingReload) {
        let mut is_outdated = pending.has_moved || (pending.is_rescan && self.is_failing);
        for _ in 0..SETTLE_ROUNDS_MAX {
            let reload = self.library.reload_suspecting(&pending.suspects);
            let catalog = Arc::clone(&reload.catalog);
            self.report_reload(reload, pending.failures);
            let wanted = WatchedFolders::for_catalog(&self.library.request, &catalog);
            is_outdated |= wanted != *self.folders;
            if !is_outdated || self.is_stopped() {
                return;
            }
            // The next round finds changes made before the new folders were watched.
            pending = PendingReload {
                failures: self.watch_folders(wanted),
                ..PendingReload::without_changes()
            };
            is_outdated = false;
        }
    }

    fn report_reload(&mut self, mut reload: LibraryReload, failures: Vec<Diagnostic>) {
        let told = &mut self.told;
        let is_news = |found: &Diagnostic| told.insert(format!("{:?}", found.sort_key()));
        reload.findings.extend(failures.into_iter().filter(is_news));
        if reload.replaced || !reload.findings.is_empty() {
            (self.on_reload)(&reload);
        }
    }

    /// Watches exactly these folders. The watcher is created anew, because watches on folders that were
    /// removed or replaced in the meantime are not reliable.
    fn watch_folders(&mut self, folders: WatchedFolders) -> Vec<Diagnostic> {
        self.watcher = None;
        self.folders = Arc::new(folders);
        let mut failures = Vec::new();
        match create_watcher(Arc::clone(&self.folders), self.line.clone()) {
            Ok(mut watcher) => {
                for (dir, mode) in self.folders.watches() {
                    let watched = watcher.watch(dir.as_std_path(), mode);
                    failures.extend(
                        watched.err().and_then(|error| failure_diagnostic(error, Some(dir))),
                    );
                }
                self.watcher = Some(watcher);
            }
            Err(error) => failures.extend(failure_diagnostic(error, None)),
        }
        self.is_failing = !failures.is_empty();
        if !self.is_failing {
            self.told.clear();
        }
        failures
    }
}

fn create_watcher(
    folders: Arc<WatchedFolders>,
    line: NoticeSender,
) -> notify::Result<RecommendedWatcher> {
    let handle = move |event: notify::Result<notify::Event>| match event {
        Ok(event) => {
            if let Some(meaning) = folders.interpret_event(&event) {
                line.send(WatchNotice::Event(meaning));
            }
        }
        Err(error) => {
            if let Some(found) = failure_diagnostic(error, None) {
                line.send(WatchNotice::Failed(found));
            }
        }
    };
    RecommendedWatcher::new(handle, Config::default().with_follow_symlinks(false))
}

/// Converts an error into a diagnostic. Returns `None` for a folder that no longer exists, because the next
/// round notices that by itself.
fn failure_diagnostic(mut error: notify::Error, dir: Option<&Utf8Path>) -> Option<Diagnostic> {
    if matches!(error.kind, ErrorKind::PathNotFound | ErrorKind::WatchNotFound) {
        return None;
    }
    let named = std::mem::take(&mut error.paths);
    let path = dir.or(named.first().and_then(|path| Utf8Path::from_path(path)));
    let code = &codes::WATCH_FAILED;
    let message = format!("changes cannot be watched: {error}");
    let found = Diagnostic::new(code, message).help(code.remedy);
    Some(path.into_iter().fold(found, Diagnostic::in_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_folder_and_one_that_has_gone_is_none() {
        let dir = Utf8Path::new("/p");
        let limit = notify::Error::new(ErrorKind::MaxFilesWatch).add_path("/p/deep".into());
        let found = failure_diagnostic(limit, Some(dir)).unwrap();
        assert_eq!((found.code.id, found.path.as_deref()), ("RS317", Some(dir)));
        assert_eq!(found.message, "changes cannot be watched: OS file watch limit reached.");
        assert!(failure_diagnostic(notify::Error::path_not_found(), Some(dir)).is_none());
    }

    #[test]
    fn more_suspects_than_can_be_remembered_are_all_files() {
        let mut pending = PendingReload::without_changes();
        let path = |number: usize| vec![Utf8PathBuf::from(number.to_string())];
        (0..SUSPECTS_MAX).for_each(|n| {
            pending.add_notice(WatchNotice::Event(WatchEventMeaning::Touched(path(n))))
        });
        assert_ne!(pending.suspects, SuspectFiles::All);
        pending.add_notice(WatchNotice::Event(WatchEventMeaning::Touched(path(SUSPECTS_MAX))));
        assert_eq!(pending.suspects, SuspectFiles::All);
    }

    #[test]
    fn what_does_not_fit_is_remembered_as_lost() {
        let (sender, _notices) = sync_channel(1);
        let line = NoticeSender { sender, stop: Arc::default(), lost: Arc::default() };
        line.send(WatchNotice::Event(WatchEventMeaning::Moved));
        assert!(!line.lost.load(Ordering::Acquire));
        line.send(WatchNotice::Event(WatchEventMeaning::Moved));
        assert!(line.lost.load(Ordering::Acquire));
    }
}
