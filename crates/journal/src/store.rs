//! The storage of the journal. All stores run the same statements ([`sql`]); a store is one file
//! here that implements [`SqlStore`], with its migrations and a line in [`STORES`].

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8Path;
use sqlx::{Database, Transaction};

use crate::changes::ChangeNotifier;
use crate::error::JournalError;
use crate::fold::FoldError;
use crate::journal::{DamagedRow, JournalPage};
use crate::lease::StoreReach;
use crate::limits::{ATTEMPT_WAIT, ATTEMPT_WAIT_MAX, ATTEMPTS_MAX};
use crate::run::RunId;
use crate::sanitise;

pub(crate) mod events;
pub(crate) mod letters;
pub(crate) mod memory;
mod migrate;
mod postgres;
pub(crate) mod read;
pub(crate) mod row_digest;
pub(crate) mod rows;
mod seal;
mod sql;
mod sqlite;
pub(crate) mod tx;

use sql::{FromSqlRow, SqlConnection, SqlDialect, SqlRow, SqlStatement, StoreFuture};
pub(crate) use tx::{ClaimConditions, LeaseChange, LeaseTerm, StoreTx};

/// A clock that returns milliseconds since 1970.
pub type JournalClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// A kind of store, chosen by the start of its address.
pub(crate) struct StoreKind {
    /// The name for people.
    name: &'static str,
    schemes: &'static [&'static str],
    open: for<'a> fn(&'a str, JournalClock) -> StoreFuture<'a, OpenedStore>,
}

type OpenedStore = Result<Box<dyn SqlStore>, JournalError>;

/// All kinds of stores.
const STORES: &[StoreKind] = &[postgres::KIND, sqlite::KIND];

/// Returns the kind of the store with this address.
fn find_kind(url: &str) -> Option<&'static StoreKind> {
    STORES.iter().find(|kind| kind.schemes.iter().any(|scheme| url.starts_with(scheme)))
}

/// Returns the name of the store with this address, for people.
pub(crate) fn store_name(url: &str) -> &'static str {
    find_kind(url).map_or("unknown", |kind| kind.name)
}

/// The name of the store that is a file.
pub(crate) const FILE_STORE_NAME: &str = sqlite::KIND.name;

/// An open store: its connections, its dialect, and everything else in which stores differ.
pub(crate) trait SqlStore: Send + Sync {
    fn dialect(&self) -> &'static SqlDialect;

    /// Returns the rows of a query outside of a transaction.
    fn fetch<'a>(
        &'a self,
        statement: SqlStatement<'a>,
    ) -> StoreFuture<'a, Result<Vec<SqlRow>, sqlx::Error>>;

    /// Begins a write transaction.
    fn begin(&self) -> StoreFuture<'_, Result<Box<dyn SqlTransaction>, StoreFault>>;

    fn close(&self) -> StoreFuture<'_, ()>;

    /// Returns the clock that gives statements the time; `None` if the database has its own.
    fn clock(&self) -> Option<&JournalClock>;

    /// Returns the machines this store can be used from.
    fn reach(&self) -> StoreReach;

    /// Checks everything for damage that the database can detect, if it does not do so by itself.
    fn check_damage(&self) -> StoreFuture<'_, Result<(), StoreFault>>;

    /// Makes sure that no row of a table is missing, if damage to the store can hide rows: reading
    /// rows does not show that others are missing.
    fn require_complete(&self, table: CheckedTable) -> StoreFuture<'_, Result<(), StoreFault>>;

    /// Checks the store once more after a row was found damaged: if the damage is not limited to the
    /// row, nothing may be written any more.
    fn check_after_row_damage(&self) -> StoreFuture<'_, Result<(), StoreFault>>;

    /// Returns the error for a damaged store, to which nothing more is written.
    fn damage_error(&self, what: String) -> JournalError;

    /// Converts a permanent error of the database.
    fn explain_error(&self, error: sqlx::Error) -> JournalError;

    /// Returns true for a transient error: a lost connection, a conflict, a busy file.
    fn is_transient(&self, error: &sqlx::Error) -> bool;

    /// Returns true if it is certain that a commit with this error stored nothing.
    fn was_rolled_back(&self, error: &sqlx::Error) -> bool;

    /// Notifies of changes that other processes make. Returns only when the connection is lost.
    fn watch_changes<'a>(
        &'a self,
        bell: &'a ChangeNotifier,
    ) -> StoreFuture<'a, Result<(), sqlx::Error>>;
}

/// A write transaction of a store.
pub(crate) trait SqlTransaction: SqlConnection {
    fn commit(self: Box<Self>) -> StoreFuture<'static, Result<(), sqlx::Error>>;

    fn rollback(self: Box<Self>) -> StoreFuture<'static, Result<(), sqlx::Error>>;
}

impl<DB> SqlTransaction for Transaction<'static, DB>
where
    DB: Database,
    DB::Connection: SqlConnection,
{
    fn commit(self: Box<Self>) -> StoreFuture<'static, Result<(), sqlx::Error>> {
        Box::pin(Transaction::commit(*self))
    }

    fn rollback(self: Box<Self>) -> StoreFuture<'static, Result<(), sqlx::Error>> {
        Box::pin(Transaction::rollback(*self))
    }
}

/// A table whose rows are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CheckedTable {
    Run,
    Event,
    Failure,
    Fix,
    Memory,
    Letter,
}

/// The open store of a journal.
pub(crate) struct JournalStore {
    store: Box<dyn SqlStore>,
    damaged_runs: DamagedRuns,
}

/// The runs in which this process has found a damaged row. Nothing is appended to them.
#[derive(Clone, Default)]
pub(crate) struct DamagedRuns(Arc<Mutex<BTreeSet<String>>>);

impl DamagedRuns {
    fn add(&self, run: &RunId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run.to_string());
    }

    fn ids(&self) -> BTreeSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn contains(&self, run: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(run)
    }
}

impl JournalStore {
    fn new(store: Box<dyn SqlStore>) -> Self {
        JournalStore { store, damaged_runs: DamagedRuns::default() }
    }

    /// Opens a SQLite file.
    pub(crate) async fn open_file(
        path: &Utf8Path,
        clock: JournalClock,
    ) -> Result<Self, JournalError> {
        Ok(JournalStore::new(sqlite::open_file(path, clock).await?))
    }

    /// Opens the store with this address.
    pub(crate) async fn open_url(url: &str, clock: JournalClock) -> Result<Self, JournalError> {
        if let Some(kind) = find_kind(url) {
            return Ok(JournalStore::new((kind.open)(url, clock).await?));
        }
        // Show nothing but the scheme: the rest may contain a password.
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        let is_plain = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_lowercase());
        let place = if is_plain { scheme } else { "?" };
        let addresses: Vec<_> =
            STORES.iter().map(|kind| format!("`{}`", kind.schemes[0])).collect();
        let why = format!("its address begins with {}", addresses.join(" or "));
        Err(JournalError::Open { place: sanitise::name(place), why })
    }

    /// Begins a write transaction.
    pub(crate) async fn begin_write(&self) -> Result<StoreTx, StoreFault> {
        let transaction = self.store.begin().await?;
        let clock = self.store.clock().cloned();
        Ok(StoreTx::new(transaction, self.store.dialect(), clock, self.damaged_runs.clone()))
    }

    pub(crate) async fn close(&self) {
        self.store.close().await;
    }

    pub(crate) fn reach(&self) -> StoreReach {
        self.store.reach()
    }

    pub(crate) async fn check_damage(&self) -> Result<(), StoreFault> {
        self.store.check_damage().await
    }

    pub(crate) fn is_transient(&self, error: &sqlx::Error) -> bool {
        self.store.is_transient(error)
    }

    pub(crate) fn was_rolled_back(&self, error: &sqlx::Error) -> bool {
        self.store.was_rolled_back(error)
    }

    pub(crate) async fn watch_changes(&self, bell: &ChangeNotifier) -> Result<(), sqlx::Error> {
        self.store.watch_changes(bell).await
    }

    /// Converts a permanent fault to an error.
    pub(crate) async fn explain_fault(&self, fault: StoreFault) -> JournalError {
        let noted = match &fault {
            StoreFault::RowDamage(damage) => self.note_damage(damage).await,
            _ => Ok(()),
        };
        match noted.err().unwrap_or(fault) {
            StoreFault::Journal(error) => error,
            StoreFault::FileDamage(what) => self.store.damage_error(what),
            StoreFault::RowDamage(RowDamage { run, what }) => JournalError::Altered { run, what },
            StoreFault::Sql(source) => self.store.explain_error(source),
        }
    }

    /// Records that a run is damaged, and fails if more than the row is damaged.
    async fn note_damage(&self, damage: &RowDamage) -> Result<(), StoreFault> {
        if let Some(run) = &damage.run {
            self.damaged_runs.add(run);
        }
        self.store.check_after_row_damage().await
    }

    /// Separates the rows of a page that can be read from the damaged ones.
    async fn collect_page<T>(
        &self,
        rows: impl Iterator<Item = (String, Result<T, StoreFault>)>,
        next: Option<u64>,
    ) -> Result<JournalPage<T>, StoreFault> {
        let mut page = JournalPage { items: Vec::new(), damaged: Vec::new(), next };
        for (id, row) in rows {
            match row {
                Ok(item) => page.items.push(item),
                Err(fault) => {
                    if let StoreFault::RowDamage(damage) = &fault {
                        self.note_damage(damage).await?;
                    }
                    let what = fault.into_row_problem()?;
                    page.damaged.push(DamagedRow { id: sanitise::name(&id), what });
                }
            }
        }
        Ok(page)
    }

    fn dialect(&self) -> &'static SqlDialect {
        self.store.dialect()
    }

    async fn require_complete(&self, table: CheckedTable) -> Result<(), StoreFault> {
        self.store.require_complete(table).await
    }

    async fn fetch_all<T: FromSqlRow>(
        &self,
        statement: SqlStatement<'_>,
    ) -> Result<Vec<T>, StoreFault> {
        let rows = self.store.fetch(statement).await?.into_iter();
        Ok(rows.map(T::from_row).collect::<Result<_, _>>()?)
    }

    /// Returns the first row, if there is one.
    async fn fetch_optional<T: FromSqlRow>(
        &self,
        statement: SqlStatement<'_>,
    ) -> Result<Option<T>, StoreFault> {
        Ok(self.fetch_all(statement).await?.into_iter().next())
    }

    /// Returns the first row; no row is an error.
    async fn fetch_one<T: FromSqlRow>(&self, statement: SqlStatement<'_>) -> Result<T, StoreFault> {
        Ok(self.fetch_optional(statement).await?.ok_or(sqlx::Error::RowNotFound)?)
    }
}

/// Opens a store. Retries while other processes hold the same file, or the server is still
/// starting.
pub(crate) async fn retry_open<T, F>(
    may_pass: fn(&sqlx::Error) -> bool,
    mut open: impl FnMut() -> F,
) -> Result<T, StoreFault>
where
    F: Future<Output = Result<T, StoreFault>>,
{
    let mut attempts = 1;
    loop {
        match open().await {
            Err(StoreFault::Sql(error)) if may_pass(&error) && attempts < ATTEMPTS_MAX => {
                tokio::time::sleep(retry_delay(attempts)).await;
                attempts += 1;
            }
            done => return done,
        }
    }
}

/// Returns the delay after this number of attempts.
pub(crate) fn retry_delay(attempts: u32) -> Duration {
    ATTEMPT_WAIT.saturating_mul(1 << attempts.clamp(1, 16).saturating_sub(1)).min(ATTEMPT_WAIT_MAX)
}

/// Returns true if the connection was lost, or none could be had in time.
fn is_lost_connection(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Io(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::Protocol(_)
            | sqlx::Error::BeginFailed
    )
}

/// The cause of a failed transaction: an error of the store, a violation of the journal's rules, or
/// stored content that is not what was written.
#[derive(Debug)]
pub(crate) enum StoreFault {
    Sql(sqlx::Error),
    Journal(JournalError),
    /// The database has found that its file is damaged.
    FileDamage(String),
    RowDamage(RowDamage),
}

/// A row that does not fit its digest, or rows that contradict each other. Everything else in the
/// store can still be used.
#[derive(Debug)]
pub(crate) struct RowDamage {
    /// The run that the row belongs to, if it belongs to one.
    pub(crate) run: Option<RunId>,
    /// Names the row.
    pub(crate) what: String,
}

impl StoreFault {
    pub(crate) fn damaged_row(what: impl Into<String>) -> Self {
        StoreFault::RowDamage(RowDamage { run: None, what: what.into() })
    }

    /// Adds the run that a damaged row belongs to.
    #[must_use]
    pub(crate) fn of_run(self, id: &str) -> Self {
        match self {
            StoreFault::RowDamage(RowDamage { what, .. }) => {
                StoreFault::RowDamage(RowDamage { run: Some(RunId::known(id)), what })
            }
            fault => fault,
        }
    }

    /// Returns the problem of a row that is damaged or cannot be decoded, and every other fault as an
    /// error.
    pub(crate) fn into_row_problem(self) -> Result<String, StoreFault> {
        match self {
            StoreFault::RowDamage(damage) => Ok(damage.what),
            StoreFault::Journal(error @ JournalError::Unreadable { .. }) => Ok(error.to_string()),
            fault => Err(fault),
        }
    }
}

impl From<sqlx::Error> for StoreFault {
    fn from(error: sqlx::Error) -> Self {
        match error {
            // The journal never writes a value that it cannot read.
            sqlx::Error::ColumnDecode { index, source } => StoreFault::damaged_row(format!(
                "the value in column {index} cannot be read: {source}"
            )),
            error => StoreFault::Sql(error),
        }
    }
}

impl From<std::io::Error> for StoreFault {
    fn from(error: std::io::Error) -> Self {
        StoreFault::Sql(error.into())
    }
}

impl From<JournalError> for StoreFault {
    fn from(error: JournalError) -> Self {
        StoreFault::Journal(error)
    }
}

impl From<FoldError> for StoreFault {
    fn from(error: FoldError) -> Self {
        StoreFault::Journal(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        assert_eq!(retry_delay(1), ATTEMPT_WAIT);
        assert_eq!(retry_delay(3), ATTEMPT_WAIT * 4);
        assert_eq!(retry_delay(40), ATTEMPT_WAIT_MAX);
    }
}
