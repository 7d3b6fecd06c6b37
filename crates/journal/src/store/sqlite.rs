//! The SQLite store: one file, used by many processes. Each process has one writing connection and
//! several reading ones. A short command opens few of them: one to read, and one more to write.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use sqlx::error::BoxDynError;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{
    Arguments, ConnectOptions, Connection, Row, Sqlite, SqliteConnection, Transaction, TypeInfo,
    ValueRef,
};

use super::migrate::{SqlMigration, apply_migrations, is_newest_version, read_version};
use super::sql::{
    SqlCell, SqlConnection, SqlDialect, SqlRow, SqlStatement, SqlValue, StoreDatabase, StoreFuture,
    execute_statement, fetch_one, fetch_rows, foreign_type,
};
use super::{
    CheckedTable, JournalClock, OpenedStore, RowDamage, SqlStore, SqlTransaction, StoreFault,
    StoreKind, is_lost_connection, retry_open,
};
use crate::changes::ChangeNotifier;
use crate::error::JournalError;
use crate::lease::StoreReach;
use crate::limits::{
    ACQUIRE_TIMEOUT, BUSY_TIMEOUT, CHANGE_POLL, CHECKED_BEFORE_WRITE_BYTES_MAX,
    CHECKED_FILE_BYTES_MAX, SQLITE_READERS_MAX,
};

pub(super) const KIND: StoreKind = StoreKind {
    name: "sqlite",
    schemes: &["sqlite://", "sqlite:"],
    open: |address, clock| {
        let path = address.strip_prefix("sqlite:").unwrap_or(address);
        let path = Utf8Path::new(path.strip_prefix("//").unwrap_or(path));
        Box::pin(open_file(path, clock))
    },
};

pub(super) async fn open_file(path: &Utf8Path, clock: JournalClock) -> OpenedStore {
    Ok(Box::new(SqliteStore::open(path, clock).await?))
}

/// A file has a single writer, so nothing has to be locked, and ids are in the order of commits.
const DIALECT: SqlDialect = SqlDialect {
    now: str::to_owned,
    // Forced, so that a query never falls back to scanning the table.
    use_index: |index| format!(" INDEXED BY {index}"),
    json_texts: |array| format!("SELECT value FROM json_each({array})"),
    json_within: |inner, outer| {
        format!(
            "NOT EXISTS (SELECT 1 FROM json_each({inner}) AS l \
             WHERE l.value NOT IN (SELECT value FROM json_each({outer})))"
        )
    },
    lock_run: "",
    lock_free_run: "",
    lock_name: None,
    notify_run: None,
    and_notify: "",
    event_transaction: "0",
    event_follows: "$1 = $1 AND id > $2",
    event_order: "id",
    last_event: "SELECT 0, COALESCE(MAX(id), 0) FROM event",
    explain: "EXPLAIN QUERY PLAN ",
};

const MIGRATIONS: &[SqlMigration] = &[
    include_str!("../../migrations/sqlite/0001_journal.sql"),
    include_str!("../../migrations/sqlite/0002_memory.sql"),
    include_str!("../../migrations/sqlite/0003_leases.sql"),
    include_str!("../../migrations/sqlite/0004_digests.sql"),
];

/// Checks the file for damage, including its indexes, and stops at the first problem.
const CHECK: &str = "PRAGMA integrity_check(1)";

/// SQLite's result codes for a corrupt file (`SQLITE_CORRUPT`) and for a file that is not a
/// database (`SQLITE_NOTADB`).
const DAMAGED: [i64; 2] = [11, 26];
/// SQLite's primary result codes for a locked file (`SQLITE_BUSY`, `SQLITE_LOCKED`). Extended codes
/// add higher bits.
const BUSY: [i64; 2] = [5, 6];

/// Takes the write lock at once: a transaction that reads first could fail to upgrade its lock
/// later.
const BEGIN: &str = "BEGIN IMMEDIATE";
/// The size the write-ahead log is truncated to after a checkpoint. A burst of writes can make it
/// larger in between.
const LOG_BYTES_KEPT: &str = "67108864";

/// An open SQLite file.
struct SqliteStore {
    path: Utf8PathBuf,
    /// Connects when something is written for the first time.
    writer: SqlitePool,
    /// The connection to read with, `None` while it is in use, and after an error. A pool takes a
    /// connection back only after a detour, so the next statement would open another one.
    first_reader: Mutex<Option<SqliteConnection>>,
    /// Connects when something is read while the first connection is in use.
    more_readers: SqlitePool,
    clock: JournalClock,
    health: SqliteHealth,
}

/// The results of the damage checks of the file.
#[derive(Default)]
struct SqliteHealth {
    /// The tables that were checked before their rows were listed.
    checked_tables: Mutex<BTreeSet<CheckedTable>>,
    /// Set once the whole file was checked.
    is_checked: AtomicBool,
    /// Set once the file is known to be too large to be checked before a write.
    may_write: AtomicBool,
    /// Set once a damaged row was read. The file is then checked before the next write, whatever its
    /// size.
    has_damaged_row: AtomicBool,
    /// The first problem found in the file. It stays until the file is opened again.
    damage: OnceLock<String>,
}

impl SqliteStore {
    async fn open(path: &Utf8Path, clock: JournalClock) -> Result<Self, JournalError> {
        create_private_file(path).map_err(|error| JournalError::Open {
            place: path.to_string(),
            why: error.to_string(),
        })?;
        let place = path.as_str();
        let first_reader = match retry_open(is_busy, || open_first_reader(path)).await {
            Ok(reader) => reader,
            Err(StoreFault::Sql(error)) => return Err(open_error(place, error)),
            Err(StoreFault::Journal(error)) => return Err(error),
            Err(StoreFault::FileDamage(what) | StoreFault::RowDamage(RowDamage { what, .. })) => {
                return Err(JournalError::Damaged { place: place.to_owned(), what });
            }
        };
        let pool =
            || SqlitePoolOptions::new().acquire_timeout(ACQUIRE_TIMEOUT).test_before_acquire(false);
        let writer = pool()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .after_release(|connection, _| Box::pin(is_reusable(connection)));
        let more_readers = pool().max_connections(SQLITE_READERS_MAX - 1);
        Ok(SqliteStore {
            path: path.to_owned(),
            writer: writer.connect_lazy_with(connect_options(path)),
            first_reader: Mutex::new(Some(first_reader)),
            more_readers: more_readers.connect_lazy_with(reader_options(path)),
            clock,
            health: SqliteHealth::default(),
        })
    }

    /// Returns the rows of a statement that only reads.
    async fn read_rows(&self, statement: SqlStatement<'_>) -> Result<Vec<SqlRow>, sqlx::Error> {
        let Some(mut connection) = self.lock_first_reader().take() else {
            return fetch_rows(statement, &self.more_readers).await;
        };
        let rows = fetch_rows(statement, &mut connection).await;
        if rows.is_ok() {
            *self.lock_first_reader() = Some(connection);
        }
        rows
    }

    fn lock_first_reader(&self) -> MutexGuard<'_, Option<SqliteConnection>> {
        self.first_reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the whole file, whatever its size, for damage that SQLite can detect.
    async fn check_file(&self) -> Result<(), StoreFault> {
        self.run_check(CHECK).await?;
        self.health.is_checked.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Checks a table with its indexes once, unless the file is too large: rows that damage hides
    /// would be missing from a list.
    async fn check_table(&self, table: CheckedTable) -> Result<(), StoreFault> {
        if self.health.is_checked.load(Ordering::Relaxed) || self.has_checked(table) {
            return Ok(());
        }
        if self.file_bytes() <= CHECKED_FILE_BYTES_MAX {
            self.run_check(table_check(table)).await?;
        }
        let mut checked = self.health.checked_tables.lock().unwrap_or_else(PoisonError::into_inner);
        checked.insert(table);
        Ok(())
    }

    fn has_checked(&self, table: CheckedTable) -> bool {
        let checked = self.health.checked_tables.lock().unwrap_or_else(PoisonError::into_inner);
        checked.contains(&table)
    }

    async fn run_check(&self, sql: &'static str) -> Result<(), StoreFault> {
        for mut row in self.read_rows(SqlStatement::new(sql)).await? {
            let line: String = row.take()?;
            if line != "ok" {
                return Err(StoreFault::FileDamage(line));
            }
        }
        Ok(())
    }

    fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    /// Records that the file is damaged, so that nothing more is written to it.
    fn found_damage(&self, what: String) -> JournalError {
        self.health.damage.get_or_init(|| what.clone());
        JournalError::Damaged { place: self.path.to_string(), what }
    }

    /// Refuses to write to a damaged file. The file is checked before the first write, unless it is
    /// too large, and once more after the first damaged row.
    async fn require_sound(&self) -> Result<(), StoreFault> {
        if let Some(what) = self.health.damage.get() {
            return Err(self.found_damage(what.clone()).into());
        }
        let health = &self.health;
        if health.is_checked.load(Ordering::Relaxed) || health.may_write.load(Ordering::Relaxed) {
            return Ok(());
        }
        if health.has_damaged_row.load(Ordering::Relaxed)
            || self.file_bytes() <= CHECKED_BEFORE_WRITE_BYTES_MAX
        {
            return self.check_file().await;
        }
        health.may_write.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Withdraws the results of earlier checks after the first damaged row. A small file is checked
    /// at once, so that the error names the damage to the file; a large one before the next write.
    async fn check_suspect_file(&self) -> Result<(), StoreFault> {
        let health = &self.health;
        if let Some(what) = health.damage.get() {
            return Err(StoreFault::FileDamage(what.clone()));
        }
        if health.has_damaged_row.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        health.is_checked.store(false, Ordering::Relaxed);
        health.may_write.store(false, Ordering::Relaxed);
        if self.file_bytes() <= CHECKED_FILE_BYTES_MAX {
            self.check_file().await?;
        }
        Ok(())
    }

    async fn begin_transaction(&self) -> Result<Transaction<'static, Sqlite>, StoreFault> {
        self.require_sound().await?;
        Ok(self.writer.begin_with(BEGIN).await?)
    }

    /// Polls the file with a cheap pragma, only while there are subscribers.
    async fn poll_changes(&self, bell: &ChangeNotifier) -> Result<(), sqlx::Error> {
        let mut connection = reader_options(&self.path).connect().await?;
        let mut last: Option<i64> = None;
        loop {
            if bell.has_subscribers() {
                let version =
                    sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut connection).await?;
                if last.replace(version) != Some(version) {
                    bell.notify_all();
                }
            }
            tokio::time::sleep(CHANGE_POLL).await;
        }
    }
}

impl SqlStore for SqliteStore {
    fn dialect(&self) -> &'static SqlDialect {
        &DIALECT
    }

    fn fetch<'a>(
        &'a self,
        statement: SqlStatement<'a>,
    ) -> StoreFuture<'a, Result<Vec<SqlRow>, sqlx::Error>> {
        Box::pin(self.read_rows(statement))
    }

    fn begin(&self) -> StoreFuture<'_, Result<Box<dyn SqlTransaction>, StoreFault>> {
        Box::pin(async { Ok(Box::new(self.begin_transaction().await?) as Box<dyn SqlTransaction>) })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async {
            let first = self.lock_first_reader().take();
            if let Some(reader) = first {
                // A connection that cannot be closed has nothing left to write.
                let _ = reader.close().await;
            }
            self.more_readers.close().await;
            self.writer.close().await;
        })
    }

    fn clock(&self) -> Option<&JournalClock> {
        Some(&self.clock)
    }

    fn reach(&self) -> StoreReach {
        StoreReach::OneMachine
    }

    fn check_damage(&self) -> StoreFuture<'_, Result<(), StoreFault>> {
        Box::pin(self.check_file())
    }

    fn require_complete(&self, table: CheckedTable) -> StoreFuture<'_, Result<(), StoreFault>> {
        Box::pin(self.check_table(table))
    }

    fn check_after_row_damage(&self) -> StoreFuture<'_, Result<(), StoreFault>> {
        Box::pin(self.check_suspect_file())
    }

    fn damage_error(&self, what: String) -> JournalError {
        self.found_damage(what)
    }

    fn explain_error(&self, error: sqlx::Error) -> JournalError {
        if is_damage(&error) {
            return self.found_damage(error.to_string());
        }
        if matches!(error, sqlx::Error::WorkerCrashed) {
            return JournalError::WorkerCrashed { place: self.path.to_string() };
        }
        JournalError::Store { source: error.into() }
    }

    fn is_transient(&self, error: &sqlx::Error) -> bool {
        is_busy(error) || is_lost_connection(error)
    }

    fn was_rolled_back(&self, _: &sqlx::Error) -> bool {
        false
    }

    fn watch_changes<'a>(
        &'a self,
        bell: &'a ChangeNotifier,
    ) -> StoreFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(self.poll_changes(bell))
    }
}

impl StoreDatabase for Sqlite {
    fn add_value(arguments: &mut SqliteArguments, value: SqlValue<'_>) -> Result<(), BoxDynError> {
        match value {
            SqlValue::Text(text) => arguments.add(text.as_deref()),
            SqlValue::Number(number) => arguments.add(number),
            SqlValue::Bytes(bytes) => arguments.add(&*bytes),
        }
    }

    fn read_cells(row: &SqliteRow) -> Result<Vec<SqlCell>, sqlx::Error> {
        (0..row.len()).map(|at| SqlCell::keep_unreadable(read_cell(row, at))).collect()
    }
}

/// SQLite stores a type with every value.
fn read_cell(row: &SqliteRow, at: usize) -> Result<SqlCell, sqlx::Error> {
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(SqlCell::Null);
    }
    Ok(match value.type_info().name() {
        "TEXT" => SqlCell::Text(row.try_get(at)?),
        "INTEGER" => SqlCell::Number(row.try_get(at)?),
        "BLOB" => SqlCell::Bytes(row.try_get(at)?),
        name => return Err(foreign_type(at, name)),
    })
}

impl SqlConnection for SqliteConnection {
    fn fetch<'a>(
        &'a mut self,
        statement: SqlStatement<'a>,
    ) -> StoreFuture<'a, Result<Vec<SqlRow>, sqlx::Error>> {
        Box::pin(fetch_rows(statement, self))
    }

    fn execute<'a>(
        &'a mut self,
        statement: SqlStatement<'a>,
    ) -> StoreFuture<'a, Result<u64, sqlx::Error>> {
        Box::pin(async { Ok(execute_statement(statement, self).await?.rows_affected()) })
    }

    fn run_script(&mut self, sql: &'static str) -> StoreFuture<'_, Result<(), sqlx::Error>> {
        Box::pin(async move { sqlx::raw_sql(sql).execute(self).await.map(drop) })
    }
}

/// Opens the file for reading, after the migrations that are missing. A current file is opened
/// without its write lock, so reading waits for no writer.
async fn open_first_reader(path: &Utf8Path) -> Result<SqliteConnection, StoreFault> {
    if has_write_ahead_log(path) {
        let mut reader = reader_options(path).connect().await?;
        // The migration explains a version that cannot be read.
        if let Ok(version) = read_version(&mut reader).await
            && is_newest_version(version, MIGRATIONS)
        {
            return Ok(reader);
        }
        reader.close().await?;
    }
    migrate(path).await?;
    Ok(reader_options(path).connect().await?)
}

/// Migrates the file to the current schema. A file of another program is left as it is.
async fn migrate(path: &Utf8Path) -> Result<(), StoreFault> {
    // Stored in the file, so no other connection asks for it.
    const LOG_AHEAD: &str = "PRAGMA journal_mode = WAL";
    let mut connection = connect_options(path).connect().await?;
    if !is_empty_or_ours(&mut connection).await? {
        return Err(JournalError::NotAJournal { place: path.to_string() }.into());
    }
    connection.run_script(LOG_AHEAD).await?;
    let mut tx = connection.begin_with(BEGIN).await?;
    apply_migrations(&mut *tx, MIGRATIONS, path.as_str(), Some(CHECK)).await?;
    tx.commit().await?;
    Ok(connection.close().await?)
}

async fn is_empty_or_ours(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    const TABLES: &str = "SELECT count(*), COALESCE(SUM(name = 'journal_version'), 0) \
         FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let (tables, ours): (i64, i64) = fetch_one(connection, SqlStatement::new(TABLES)).await?;
    Ok(tables == 0 || ours > 0)
}

/// Returns true if the file is corrupt or not a database.
fn is_damage(error: &sqlx::Error) -> bool {
    error_code(error).is_some_and(|code| DAMAGED.contains(&(code & 0xff)))
}

fn table_check(table: CheckedTable) -> &'static str {
    match table {
        CheckedTable::Run => "PRAGMA integrity_check(run)",
        CheckedTable::Event => "PRAGMA integrity_check(event)",
        CheckedTable::Failure => "PRAGMA integrity_check(failure)",
        CheckedTable::Fix => "PRAGMA integrity_check(fix)",
        CheckedTable::Memory => "PRAGMA integrity_check(memory)",
        CheckedTable::Letter => "PRAGMA integrity_check(letter)",
    }
}

/// Returns false if SQLite has rolled back a transaction by itself, for instance because the disk was full, while sqlx
/// still counts it as open. On such a connection sqlx refuses the next transaction; and if the caller has given up by
/// then, sqlx's thread ends without answering what was sent after it, and the pool waits for the connection forever.
async fn is_reusable(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    // The rollback of the last transaction may still be on its way.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

/// Returns true if another process holds the lock.
fn is_busy(error: &sqlx::Error) -> bool {
    error_code(error).is_some_and(|code| BUSY.contains(&(code & 0xff)))
}

fn error_code(error: &sqlx::Error) -> Option<i64> {
    let database = error.as_database_error()?;
    database.try_downcast_ref::<sqlx::sqlite::SqliteError>()?;
    database.code()?.parse().ok()
}

fn connect_options(path: &Utf8Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout(BUSY_TIMEOUT)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .pragma("journal_size_limit", LOG_BYTES_KEPT)
        // Detect damaged pages when they are read, and don't let a manipulated schema call
        // functions.
        .pragma("cell_size_check", "on")
        .pragma("trusted_schema", "off")
        .disable_statement_logging()
}

fn reader_options(path: &Utf8Path) -> SqliteConnectOptions {
    connect_options(path).pragma("query_only", "on")
}

/// Returns true if the header of a SQLite file says that it uses write-ahead logging.
fn has_write_ahead_log(path: &Utf8Path) -> bool {
    /// The numbers of the file format for writing and for reading; 2 is write-ahead logging.
    const FORMAT_NUMBERS: std::ops::Range<usize> = 18..20;
    let mut header = [0; FORMAT_NUMBERS.end];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header.starts_with(b"SQLite format 3\0") && header[FORMAT_NUMBERS] == [2, 2]
}

fn open_error(place: &str, error: sqlx::Error) -> JournalError {
    let place = place.to_owned();
    if is_damage(&error) {
        JournalError::Damaged { place, what: error.to_string() }
    } else {
        JournalError::Open { place, why: error.to_string() }
    }
}

/// Creates the file and its parent folders, readable only by their owner. Existing ones are left as
/// they are.
fn create_private_file(path: &Utf8Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_str().is_empty()) {
        create_private_folder(folder.as_std_path())?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
