//! The handle to an open journal, and its read operations.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::Serialize;

use crate::boot_clock::BootClock;
use crate::changes::{ChangeNotifier, ChangeSubscription, ChangeWatcher};
use crate::error::JournalError;
use crate::event::{Event, Payload};
use crate::lease::{LeaseObserver, LeaseRow, LeaseState, StoreReach};
use crate::limits::{AMBIGUOUS_MAX, ID_PART_CHARS_MIN, PAGE_MAX};
use crate::queue::QueueOrder;
use crate::run::{Run, RunId, RunKind, RunStatus, Step};
use crate::sanitise;
use crate::store::rows::to_unsigned;
use crate::store::{self, JournalClock, JournalStore, StoreFault};

/// The location of a journal.
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    /// A SQLite file. Missing parent folders are created, readable only by their owner.
    File(Utf8PathBuf),
    /// `postgres://…`, or `sqlite://` and a path.
    Url(String),
}

impl Target {
    /// The name of the database, for people.
    pub fn store_name(&self) -> &'static str {
        match self {
            Target::File(_) => store::FILE_STORE_NAME,
            Target::Url(url) => store::store_name(url),
        }
    }
}

impl fmt::Debug for Target {
    /// Leaves out the URL, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::File(path) => f.debug_tuple("File").field(path).finish(),
            Target::Url(_) => f.write_str("Url(…)"),
        }
    }
}

/// The events of all runs, and the queue of pending ones. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<JournalInner>,
}

struct JournalInner {
    store: Arc<JournalStore>,
    clock: JournalClock,
    boot_clock: BootClock,
    observer: LeaseObserver,
    bell: ChangeNotifier,
    watch: OnceLock<ChangeWatcher>,
}

/// Selects the runs to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only runs with one of these statuses; all if empty.
    pub statuses: Vec<RunStatus>,
    pub kind: Option<String>,
    pub workspace: Option<String>,
    /// The maximum number of runs; 0 for the maximum page size.
    pub limit: u32,
    /// Only runs before this position, as returned in [`JournalPage::next`].
    pub before: Option<u64>,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct JournalPage<T> {
    pub items: Vec<T>,
    /// The entries of the page that cannot be read.
    pub damaged: Vec<DamagedRow>,
    /// The position of the next page, or `None` on the last page.
    pub next: Option<u64>,
}

/// An entry of a list that is damaged, or that only a later version can read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DamagedRow {
    /// The id of the run or dead letter.
    pub id: String,
    /// The problem, as a sentence.
    pub what: String,
}

/// One page of the events of all runs.
#[derive(Clone, Debug)]
pub struct EventPage {
    /// The events that can be read, each with the cursor after it.
    pub events: Vec<(EventCursor, Event)>,
    /// The damaged events of the page, named by their runs.
    pub damaged: Vec<DamagedRow>,
    /// The cursor to continue from.
    pub next: EventCursor,
}

impl EventPage {
    /// Returns true if no events follow the cursor that the page was read from.
    pub fn is_end(&self) -> bool {
        self.events.is_empty() && self.damaged.is_empty()
    }
}

/// A position in the event stream of all runs, written as `xact-id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventCursor {
    pub(crate) xact: u64,
    pub(crate) id: u64,
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.xact, self.id)
    }
}

/// The error for text that is not a [`EventCursor`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no place in the journal: it looks like `12-345`")]
pub struct CursorParseError(String);

impl FromStr for EventCursor {
    type Err = CursorParseError;

    fn from_str(text: &str) -> Result<Self, CursorParseError> {
        let parts = text.split_once('-').and_then(|(xact, id)| {
            Some(EventCursor { xact: xact.parse().ok()?, id: id.parse().ok()? })
        });
        parts.ok_or_else(|| CursorParseError(sanitise::name(text)))
    }
}

impl Journal {
    /// Opens a journal. Creates it or migrates its schema if necessary.
    ///
    /// `clock` returns milliseconds since 1970. It stamps events; leases are measured by the
    /// [`BootClock`] of this machine.
    ///
    /// # Errors
    ///
    /// If the location cannot be used, is damaged, is not a journal, or was written by a newer
    /// version.
    pub async fn open(target: &Target, clock: JournalClock) -> Result<Self, JournalError> {
        Journal::open_with(target, clock, BootClock::of_this_machine()).await
    }

    /// Like [`Journal::open`], with a given clock for leases.
    ///
    /// # Errors
    ///
    /// As [`Journal::open`].
    pub async fn open_with(
        target: &Target,
        clock: JournalClock,
        boot_clock: BootClock,
    ) -> Result<Self, JournalError> {
        let store = match target {
            Target::File(path) => JournalStore::open_file(path, clock.clone()).await?,
            Target::Url(url) => JournalStore::open_url(url, clock.clone()).await?,
        };
        let inner = JournalInner {
            store: Arc::new(store),
            clock,
            boot_clock,
            observer: LeaseObserver::default(),
            bell: ChangeNotifier::new(),
            watch: OnceLock::new(),
        };
        Ok(Journal { inner: Arc::new(inner) })
    }

    /// Checks a SQLite file for damage that SQLite can detect. This reads the whole file.
    /// PostgreSQL checks its own files, so nothing is done for it.
    ///
    /// # Errors
    ///
    /// [`JournalError::Damaged`] with the problem found; nothing is written to the file from then
    /// on.
    pub async fn check_damage(&self) -> Result<(), JournalError> {
        self.perform_read(|| self.store().check_damage()).await
    }

    /// Leaves the journal open until the process ends, for commands that end soon. Closing the last
    /// connection copies the write-ahead log of a SQLite file into the file, which waits for the
    /// disk several times. The log is as durable as the file, and the next process reads it.
    pub fn leave_open(&self) {
        std::mem::forget(self.clone());
    }

    /// Closes the journal, for all clones.
    pub async fn close(self) {
        if let Some(watch) = self.inner.watch.get() {
            watch.stop();
        }
        self.inner.store.close().await;
    }

    /// Returns a run, or `None` if there is none with this id.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn run(&self, id: &RunId) -> Result<Option<Run>, JournalError> {
        if !sanitise::is_id(id.as_str()) {
            return Ok(None);
        }
        self.perform_read(|| self.store().run(id.as_str())).await
    }

    /// Finds a run by its id, by the start or end of its id, by its name, or by `last`.
    ///
    /// # Errors
    ///
    /// [`JournalError::NotFound`] or [`JournalError::Ambiguous`].
    pub async fn find_run(&self, text: &str) -> Result<Run, JournalError> {
        self.find_among(text, None).await
    }

    /// Like [`Journal::find_run`], among the runs of one kind.
    ///
    /// # Errors
    ///
    /// As [`Journal::find_run`].
    pub async fn find_run_of_kind(&self, kind: RunKind, text: &str) -> Result<Run, JournalError> {
        self.find_among(text, Some(kind)).await
    }

    /// Finds the id of a run like [`Journal::find_run`], without reading the run: it may be damaged.
    ///
    /// # Errors
    ///
    /// As [`Journal::find_run`].
    pub async fn find_run_id(&self, text: &str) -> Result<RunId, JournalError> {
        Ok(RunId::known(self.find_id_among(text, None).await?))
    }

    /// Returns the ids of all runs, the newest first, without reading the runs.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn list_run_ids(&self) -> Result<Vec<RunId>, JournalError> {
        let ids = self.perform_read(|| self.store().all_ids()).await?;
        Ok(ids.into_iter().map(RunId::known).collect())
    }

    /// Returns the ids of the runs of one kind, and of one workspace if one is given, without reading
    /// the runs. The run with the latest event comes first, whatever clocks said at the time.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn list_latest_ids(
        &self,
        kind: RunKind,
        workspace: Option<&str>,
    ) -> Result<Vec<RunId>, JournalError> {
        let workspace = workspace.map(|text| text.replace('\0', " "));
        let workspace = workspace.as_deref();
        let ids = self.perform_read(|| self.store().latest_ids(kind.as_str(), workspace)).await?;
        Ok(ids.into_iter().map(RunId::known).collect())
    }

    /// Returns true if all runs of the journal belong to this machine: a file is not shared.
    pub fn serves_one_machine(&self) -> bool {
        self.store().reach() == StoreReach::OneMachine
    }

    async fn find_among(&self, text: &str, kind: Option<RunKind>) -> Result<Run, JournalError> {
        let id = self.find_id_among(text, kind).await?;
        self.require_run(&id).await
    }

    async fn find_id_among(
        &self,
        text: &str,
        kind: Option<RunKind>,
    ) -> Result<String, JournalError> {
        let text = text.trim();
        let kind = kind.map(RunKind::as_str);
        let not_found = |hint: &str| JournalError::NotFound {
            text: sanitise::name(text),
            hint: hint.to_owned(),
        };
        if text == "last" {
            let id = self.perform_read(|| self.store().last_id(kind)).await?;
            return id.ok_or_else(|| not_found("this journal has no runs"));
        }
        if sanitise::is_id(text) && self.perform_read(|| self.store().has_run(text, kind)).await? {
            return Ok(text.to_owned());
        }
        let most = i64::try_from(AMBIGUOUS_MAX + 1).unwrap_or(i64::MAX);
        let name = sanitise::name(text);
        let mut ids = self.perform_read(|| self.store().ids_by_name(&name, kind, most)).await?;
        if ids.is_empty() && sanitise::is_id(text) {
            if text.len() < ID_PART_CHARS_MIN {
                return Err(not_found("a part of an id has at least 4 characters"));
            }
            ids = self.perform_read(|| self.store().ids_by_part(text, kind, most)).await?;
        }
        match ids.as_slice() {
            [] => Err(not_found("no run has this id or name; list them to see which there are")),
            [_] => Ok(ids.swap_remove(0)),
            _ => Err(ambiguous_error(name, ids)),
        }
    }

    /// Returns the ids of the runs of one kind that start with a text, in order, at most
    /// [`PAGE_MAX`].
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn ids_with_prefix(
        &self,
        kind: RunKind,
        prefix: &str,
    ) -> Result<Vec<RunId>, JournalError> {
        if !sanitise::is_id(prefix) {
            return Ok(Vec::new());
        }
        let most = i64::from(PAGE_MAX);
        let ids =
            self.perform_read(|| self.store().ids_by_prefix(kind.as_str(), prefix, most)).await?;
        Ok(ids.into_iter().map(RunId::known).collect())
    }

    /// Lists runs, newest first. Damaged ones are listed by their ids.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn runs(&self, filter: &Filter) -> Result<JournalPage<Run>, JournalError> {
        let limit = page(filter.limit);
        let clean = Filter {
            kind: filter.kind.as_deref().map(sanitise::name),
            workspace: filter.workspace.as_ref().map(|text| text.replace('\0', " ")),
            ..filter.clone()
        };
        self.perform_read(|| self.store().runs(&clean, limit)).await
    }

    /// Returns the steps of a run.
    ///
    /// # Errors
    ///
    /// If a step is damaged or missing, or the store cannot be used.
    pub async fn steps(&self, id: &RunId) -> Result<Vec<Step>, JournalError> {
        if !sanitise::is_id(id.as_str()) {
            return Ok(Vec::new());
        }
        // The run is read first: steps that other processes add meanwhile are more than it has.
        let expected = self.run(id).await?.map_or(0, |run| run.steps as usize);
        let steps = self.perform_read(|| self.store().steps(id)).await?;
        let is_complete = (1..).zip(&steps).all(|(number, step)| step.number == number);
        let is_complete = is_complete && steps.len() >= expected;
        if !is_complete && self.run(id).await?.is_some() {
            let what = format!("run {id} has {expected} steps, and not all of them can be found");
            let fault = StoreFault::damaged_row(what).of_run(id.as_str());
            return Err(self.store().explain_fault(fault).await);
        }
        Ok(steps)
    }

    /// Returns the events of a run after the one with this number. An event that was written by a
    /// later version is returned as a note whose name is `unknown:` followed by its type.
    ///
    /// # Errors
    ///
    /// If an event is damaged or missing, or the store cannot be used.
    pub async fn events(
        &self,
        id: &RunId,
        after_seq: u64,
        limit: u32,
    ) -> Result<Vec<Event>, JournalError> {
        if !sanitise::is_id(id.as_str()) {
            return Ok(Vec::new());
        }
        self.perform_read(|| self.store().events(id, after_seq, page(limit))).await
    }

    /// Returns the last event of a run's kind, and `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn last_kind_event(&self, id: &RunId) -> Result<Option<Event>, JournalError> {
        if !sanitise::is_id(id.as_str()) {
            return Ok(None);
        }
        // Every event from there to the end is read and verified, so that damage to the last event of
        // the kind does not bring back the one before it.
        let seq = self.perform_read(|| self.store().last_kind_seq(id)).await?;
        let (mut after, mut last) = (seq.saturating_sub(1), None);
        loop {
            let page = self.events(id, after, PAGE_MAX).await?;
            let is_end = page.len() < PAGE_MAX as usize;
            after += page.len() as u64;
            let is_of_kind = |event: &Event| matches!(event.payload, Payload::KindEvent { .. });
            last = page.into_iter().rfind(is_of_kind).or(last);
            if is_end {
                return Ok(last);
            }
        }
    }

    /// Returns events of all runs after a cursor, and the cursor to continue from. Continuing from
    /// there misses no event. A damaged event hides no other: it is listed by its run.
    ///
    /// On PostgreSQL an event becomes visible only when all transactions that began before it have
    /// ended, so a long transaction of any program on that server delays the stream. The events of
    /// a single run are available at once from [`Journal::events`].
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn list_all_events(
        &self,
        after: EventCursor,
        limit: u32,
    ) -> Result<EventPage, JournalError> {
        self.perform_read(|| self.store().tail_events(after, page(limit))).await
    }

    /// Returns the cursor after the last event that [`Journal::list_all_events`] would currently return.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn last_cursor(&self) -> Result<EventCursor, JournalError> {
        self.perform_read(|| self.store().tail_end()).await
    }

    /// Returns the end of a run's lease for display, in milliseconds since 1970 by the clock of the
    /// store. No decision is based on it.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn lease_until(&self, id: &RunId) -> Result<Option<u64>, JournalError> {
        if !sanitise::is_id(id.as_str()) {
            return Ok(None);
        }
        Ok(self.perform_read(|| self.store().lease_until(id)).await?.map(to_unsigned))
    }

    /// Lists the leased runs, with the worker and the end of its lease.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn list_leased_runs(&self) -> Result<Vec<(RunId, String, u64)>, JournalError> {
        let rows = self.perform_read(|| self.store().list_leased_runs()).await?;
        let rows = rows.into_iter();
        Ok(rows.map(|(id, worker, until)| (RunId::known(id), worker, to_unsigned(until))).collect())
    }

    /// Subscribes to changes made by this process and by others.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn subscribe_changes(&self) -> ChangeSubscription {
        let inner = &self.inner;
        inner.watch.get_or_init(|| ChangeWatcher::start(inner.store.clone(), inner.bell.clone()));
        self.inner.bell.subscribe()
    }

    /// Returns the query plan for claiming the next run. For tests: the query must not scan runs
    /// that have ended.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    #[doc(hidden)]
    pub async fn claim_plan(&self, order: QueueOrder) -> Result<String, JournalError> {
        self.perform_read(|| self.store().claim_plan(order)).await
    }

    pub(crate) fn store(&self) -> &JournalStore {
        &self.inner.store
    }

    pub(crate) fn clock(&self) -> &JournalClock {
        &self.inner.clock
    }

    pub(crate) fn boot_clock(&self) -> &BootClock {
        &self.inner.boot_clock
    }

    /// Reads all leases and determines the state of each.
    pub(crate) async fn observe_leases(&self) -> Result<Vec<(LeaseRow, LeaseState)>, JournalError> {
        let rows = self.perform_read(|| self.store().list_leases()).await?;
        Ok(self.inner.observer.observe_leases(rows, self.store().reach(), self.boot_clock()))
    }

    pub(crate) fn notify_changes(&self) {
        self.inner.bell.notify_all();
    }

    async fn require_run(&self, id: &str) -> Result<Run, JournalError> {
        let run = self.perform_read(|| self.store().run(id)).await?;
        run.ok_or_else(|| JournalError::unknown_run(&RunId::known(id)))
    }
}

pub(crate) fn page(limit: u32) -> u32 {
    if limit == 0 { PAGE_MAX } else { limit.min(PAGE_MAX) }
}

fn ambiguous_error(text: String, mut ids: Vec<String>) -> JournalError {
    let more = ids.len() > AMBIGUOUS_MAX;
    ids.truncate(AMBIGUOUS_MAX);
    JournalError::Ambiguous { text, ids, more }
}
