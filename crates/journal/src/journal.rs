//! The journal that programs use.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};

use crate::boot_clock::BootClock;
use crate::changes::{Bell, Changes, Watch};
use crate::error::JournalError;
use crate::event::Event;
use crate::lease::{LeaseRow, Observer, Standing};
use crate::limits::{AMBIGUOUS_MAX, ID_PART_CHARS_MIN, PAGE_MAX};
use crate::queue::Order;
use crate::run::{Run, RunId, RunStatus, Step};
use crate::store::postgres::PostgresStore;
use crate::store::read::unsigned;
use crate::store::sqlite::SqliteStore;
use crate::store::{Clock, Store};
use crate::text;

/// Where the journal is kept.
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    /// A SQLite file. Folders that are missing are made so that only their owner can read them.
    File(Utf8PathBuf),
    /// `postgres://…`, or `sqlite://` and a path.
    Url(String),
}

impl fmt::Debug for Target {
    /// An address may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::File(path) => f.debug_tuple("File").field(path).finish(),
            Target::Url(_) => f.write_str("Url(…)"),
        }
    }
}

/// Everything that runs did, and the queue of those that are to come. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<Store>,
    clock: Clock,
    boot_clock: BootClock,
    observer: Observer,
    bell: Bell,
    watch: OnceLock<Watch>,
}

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only these; all if empty.
    pub statuses: Vec<RunStatus>,
    /// Only runs of this kind.
    pub kind: Option<String>,
    /// Only runs of this workspace.
    pub workspace: Option<String>,
    /// How many at most; 0 for as many as a page may have.
    pub limit: u32,
    /// Only those before: what [`Page::next`] said.
    pub before: Option<u64>,
}

/// A part of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The part.
    pub items: Vec<T>,
    /// Where it goes on, if it does.
    pub next: Option<u64>,
}

/// A place among the events of all runs. As text it is `xact-id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub(crate) xact: u64,
    pub(crate) id: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.xact, self.id)
    }
}

/// Text that is no place among events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no place in the journal: it looks like `12-345`")]
pub struct NoCursor(String);

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let parts = text
            .split_once('-')
            .and_then(|(xact, id)| Some(Cursor { xact: xact.parse().ok()?, id: id.parse().ok()? }));
        parts.ok_or_else(|| NoCursor(text::name(text)))
    }
}

impl Journal {
    /// Opens a journal, and makes it or brings it up to date if need be.
    ///
    /// `clock` gives milliseconds since 1970. It stamps events; leases go by the [`BootClock`] of this machine.
    ///
    /// # Errors
    ///
    /// When the place cannot be used, is damaged, belongs to something else or was made by a newer version.
    pub async fn open(target: &Target, clock: Clock) -> Result<Self, JournalError> {
        Journal::open_with(target, clock, BootClock::of_this_machine()).await
    }

    /// As [`Journal::open`], with a clock for leases.
    ///
    /// # Errors
    ///
    /// As [`Journal::open`].
    pub async fn open_with(
        target: &Target,
        clock: Clock,
        boot_clock: BootClock,
    ) -> Result<Self, JournalError> {
        let store = match target {
            Target::File(path) => Store::Sqlite(SqliteStore::open(path, clock.clone()).await?),
            Target::Url(url) => open_url(url, &clock).await?,
        };
        let inner = Inner {
            store: Arc::new(store),
            clock,
            boot_clock,
            observer: Observer::default(),
            bell: Bell::new(),
            watch: OnceLock::new(),
        };
        Ok(Journal { inner: Arc::new(inner) })
    }

    /// Checks a SQLite file for damage, as far as SQLite can see it. This reads the whole file. PostgreSQL looks after its
    /// own files.
    ///
    /// # Errors
    ///
    /// [`JournalError::Damaged`] says what was found; nothing is written to the file from then on.
    pub async fn check(&self) -> Result<(), JournalError> {
        match self.store() {
            Store::Sqlite(store) => self.read(|| store.check()).await,
            Store::Postgres(_) => Ok(()),
        }
    }

    /// Closes it, for everybody who has a clone.
    pub async fn close(self) {
        if let Some(watch) = self.inner.watch.get() {
            watch.stop();
        }
        self.inner.store.close().await;
    }

    /// A run.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn run(&self, id: &RunId) -> Result<Option<Run>, JournalError> {
        match text::is_id(id.as_str()) {
            true => self.read(|| self.store().run(id.as_str())).await,
            false => Ok(None),
        }
    }

    /// The run that somebody means: by its id, by the start or the end of it, by its name, or by `last`.
    ///
    /// # Errors
    ///
    /// [`JournalError::NotFound`] and [`JournalError::Ambiguous`] say what there is.
    pub async fn find(&self, text: &str) -> Result<Run, JournalError> {
        let text = text.trim();
        let not_found =
            |hint: &str| JournalError::NotFound { text: text::name(text), hint: hint.to_owned() };
        if text == "last" {
            let id = self.read(|| self.store().last_id()).await?;
            let id = id.ok_or_else(|| not_found("this journal has no runs yet"))?;
            return self.existing(&id).await;
        }
        if text::is_id(text)
            && let Some(run) = self.read(|| self.store().run(text)).await?
        {
            return Ok(run);
        }
        let most = i64::try_from(AMBIGUOUS_MAX + 1).unwrap_or(i64::MAX);
        let name = text::name(text);
        let mut ids = self.read(|| self.store().ids_by_name(&name, most)).await?;
        if ids.is_empty() && text::is_id(text) {
            if text.len() < ID_PART_CHARS_MIN {
                return Err(not_found("a part of an id has at least 4 characters"));
            }
            ids = self.read(|| self.store().ids_by_part(text, most)).await?;
        }
        match ids.as_slice() {
            [] => Err(not_found("no run has this id or name; list them to see which there are")),
            [id] => self.existing(id).await,
            _ => Err(ambiguous(name, ids)),
        }
    }

    /// Runs, newest first.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn runs(&self, filter: &Filter) -> Result<Page<Run>, JournalError> {
        let limit = page(filter.limit);
        let clean = Filter {
            kind: filter.kind.as_deref().map(text::name),
            workspace: filter.workspace.as_ref().map(|text| text.replace('\0', " ")),
            ..filter.clone()
        };
        let mut rows = self.read(|| self.store().runs(&clean, limit + 1)).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().filter(|_| more).map(|(number, _)| unsigned(*number));
        Ok(Page { items: rows.into_iter().map(|(_, run)| run).collect(), next })
    }

    /// The steps of a run.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn steps(&self, id: &RunId) -> Result<Vec<Step>, JournalError> {
        match text::is_id(id.as_str()) {
            true => self.read(|| self.store().steps(id)).await,
            false => Ok(Vec::new()),
        }
    }

    /// Events of a run after the one with this number. An event that a later version wrote, or that is damaged, is a note
    /// whose name begins with `unknown:`, followed by its type.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn events(
        &self,
        id: &RunId,
        after_seq: u64,
        limit: u32,
    ) -> Result<Vec<Event>, JournalError> {
        match text::is_id(id.as_str()) {
            true => self.read(|| self.store().events(id, after_seq, page(limit))).await,
            false => Ok(Vec::new()),
        }
    }

    /// Events of all runs after a place, and the place to go on from. Whoever goes on from there misses nothing.
    ///
    /// On PostgreSQL an event shows up only when all transactions that began before it have ended: a long one, of
    /// whatever program on that server, holds the tail up. What one run did is at hand at once by [`Journal::events`].
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn events_all(
        &self,
        after: Cursor,
        limit: u32,
    ) -> Result<(Vec<Event>, Cursor), JournalError> {
        let tail = self.tail(after, limit).await?;
        let last = tail.last().map_or(after, |(cursor, _)| *cursor);
        Ok((tail.into_iter().map(|(_, event)| event).collect(), last))
    }

    /// As [`Journal::events_all`], with the place behind every event.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn tail(
        &self,
        after: Cursor,
        limit: u32,
    ) -> Result<Vec<(Cursor, Event)>, JournalError> {
        self.read(|| self.store().tail(after, page(limit))).await
    }

    /// The place behind everything that [`Journal::events_all`] would show now.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn last_cursor(&self) -> Result<Cursor, JournalError> {
        self.read(|| self.store().tail_end()).await
    }

    /// The end of a run's lease for people, in milliseconds since 1970 by the clock of the store. Nothing is decided by it.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn lease_until(&self, id: &RunId) -> Result<Option<u64>, JournalError> {
        match text::is_id(id.as_str()) {
            true => Ok(self.read(|| self.store().lease_until(id)).await?.map(unsigned)),
            false => Ok(None),
        }
    }

    /// Runs that workers have, with the worker and the end of its lease.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn leased(&self) -> Result<Vec<(RunId, String, u64)>, JournalError> {
        let rows = self.read(|| self.store().leased()).await?;
        let rows = rows.into_iter();
        Ok(rows.map(|(id, worker, until)| (RunId::known(id), worker, unsigned(until))).collect())
    }

    /// Something that waits for changes, of this process and of others.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn changes(&self) -> Changes {
        let inner = &self.inner;
        inner.watch.get_or_init(|| Watch::start(inner.store.clone(), inner.bell.clone()));
        self.inner.bell.changes()
    }

    /// How the store looks for the next run. For tests: it must not look at runs that have ended.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    #[doc(hidden)]
    pub async fn claim_plan(&self, order: Order) -> Result<String, JournalError> {
        self.read(|| self.store().claim_plan(order)).await
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.store
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    pub(crate) fn boot_clock(&self) -> &BootClock {
        &self.inner.boot_clock
    }

    /// Reads all leases, and judges each of them.
    pub(crate) async fn look_at_leases(&self) -> Result<Vec<(LeaseRow, Standing)>, JournalError> {
        let rows = self.read(|| self.store().leases()).await?;
        Ok(self.inner.observer.look(rows, self.store().reach(), self.boot_clock()))
    }

    pub(crate) fn ring(&self) {
        self.inner.bell.ring();
    }

    async fn existing(&self, id: &str) -> Result<Run, JournalError> {
        let run = self.read(|| self.store().run(id)).await?;
        run.ok_or_else(|| JournalError::unknown(&RunId::known(id)))
    }
}

async fn open_url(url: &str, clock: &Clock) -> Result<Store, JournalError> {
    if let Some(path) = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")) {
        let store = SqliteStore::open(Utf8Path::new(path), clock.clone()).await?;
        return Ok(Store::Sqlite(store));
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(Store::Postgres(Box::new(PostgresStore::open(url).await?)));
    }
    // Anything else of it may be a password.
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let is_plain = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_lowercase());
    let place = if is_plain { scheme } else { "?" };
    let why = "its address begins with `postgres://` or `sqlite://`".to_owned();
    Err(JournalError::Open { place: text::name(place), why })
}

pub(crate) fn page(limit: u32) -> u32 {
    if limit == 0 { PAGE_MAX } else { limit.min(PAGE_MAX) }
}

fn ambiguous(text: String, mut ids: Vec<String>) -> JournalError {
    let more = ids.len() > AMBIGUOUS_MAX;
    ids.truncate(AMBIGUOUS_MAX);
    JournalError::Ambiguous { text, ids, more }
}
