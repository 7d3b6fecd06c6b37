//! The SQLite store: one file, used by many processes. Each process has one writing connection and
//! several reading ones.

use std::io::Read as _;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, Sqlite, SqliteConnection, Transaction};

use super::complete_query::CompleteAnswer;
use super::{JournalClock, StoreFault, migrate, retry_open};
use crate::error::JournalError;
use crate::limits::{ACQUIRE_TIMEOUT, BUSY_TIMEOUT, CHECKED_FILE_BYTES_MAX, SQLITE_READERS_MAX};

/// SQLite's result codes for a corrupt file (`SQLITE_CORRUPT`) and for a file that is not a
/// database (`SQLITE_NOTADB`).
const DAMAGED: [i64; 2] = [11, 26];
/// SQLite's primary result codes for a locked file (`SQLITE_BUSY`, `SQLITE_LOCKED`). Extended codes
/// add higher bits.
const BUSY: [i64; 2] = [5, 6];

/// Takes the write lock at once: a transaction that reads first could fail to upgrade its lock
/// later.
pub(crate) const BEGIN: &str = "BEGIN IMMEDIATE";
/// The size the write-ahead log is truncated to after a checkpoint. A burst of writes can make it
/// larger in between.
const LOG_BYTES_KEPT: &str = "67108864";

/// An open SQLite file.
pub(crate) struct SqliteStore {
    path: Utf8PathBuf,
    writer: SqlitePool,
    reader: SqlitePool,
    clock: JournalClock,
    health: SqliteHealth,
}

/// The result of the damage check of the file.
#[derive(Default)]
struct SqliteHealth {
    /// Set once the file was checked, or is too large to be checked.
    is_checked: AtomicBool,
    /// The first problem found. It stays until the file is opened again.
    damage: OnceLock<String>,
}

/// A transaction that holds the file's only write lock.
pub(crate) struct SqliteTx {
    transaction: Transaction<'static, Sqlite>,
    clock: JournalClock,
}

impl SqliteStore {
    pub(crate) async fn open(path: &Utf8Path, clock: JournalClock) -> Result<Self, JournalError> {
        create_private_file(path).map_err(|error| JournalError::Open {
            place: path.to_string(),
            why: error.to_string(),
        })?;
        let place = path.as_str();
        let opened = retry_open(is_busy, || async {
            let writer = connect_writer(path).await?;
            migrate::migrate_sqlite(&writer, place).await?;
            Ok(writer)
        });
        let writer = match opened.await {
            Ok(writer) => writer,
            Err(StoreFault::Sql(error)) => return Err(open_error(place, error)),
            Err(StoreFault::Journal(error)) => return Err(error),
        };
        let reader = SqlitePoolOptions::new()
            .max_connections(SQLITE_READERS_MAX)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .connect_lazy_with(connect_options(path).pragma("query_only", "on"));
        Ok(SqliteStore {
            path: path.to_owned(),
            writer,
            reader,
            clock,
            health: SqliteHealth::default(),
        })
    }

    /// Checks the whole file, whatever its size, for damage that SQLite can detect.
    pub(crate) async fn check_damage(&self) -> Result<(), StoreFault> {
        let found: Vec<(String,)> = sqlx::query_as(super::CHECK).complete_all(&self.reader).await?;
        let damage = found.into_iter().map(|(line,)| line).find(|line| line != "ok");
        match damage {
            Some(what) => Err(self.found_damage(what).into()),
            None => {
                self.health.is_checked.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Records that the file is damaged, so that nothing more is written to it.
    pub(crate) fn found_damage(&self, what: String) -> JournalError {
        let what = self.health.damage.get_or_init(|| what).clone();
        JournalError::Damaged { place: self.path.to_string(), what }
    }

    /// Returns the error for a connection whose thread has ended unexpectedly.
    pub(crate) fn crashed_error(&self) -> JournalError {
        JournalError::WorkerCrashed { place: self.path.to_string() }
    }

    /// Refuses to write to a damaged file. Unless the file is too large, it is checked before the
    /// first write.
    async fn require_sound(&self) -> Result<(), StoreFault> {
        if let Some(what) = self.health.damage.get() {
            return Err(self.found_damage(what.clone()).into());
        }
        if self.health.is_checked.load(Ordering::Relaxed) {
            return Ok(());
        }
        let bytes = std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        if bytes <= CHECKED_FILE_BYTES_MAX {
            return self.check_damage().await;
        }
        self.health.is_checked.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the pool of reading connections.
    pub(crate) fn connection(&self) -> &SqlitePool {
        &self.reader
    }

    pub(crate) async fn begin(&self) -> Result<SqliteTx, StoreFault> {
        self.require_sound().await?;
        let transaction = match self.writer.begin_with(BEGIN).await {
            // SQLite rolled back the last transaction by itself, for instance because the disk was
            // full, but sqlx still counts it as open. A new connection does not have that state.
            Err(sqlx::Error::InvalidSavePointStatement) => {
                self.writer.acquire().await?.close().await?;
                self.writer.begin_with(BEGIN).await?
            }
            begun => begun?,
        };
        Ok(SqliteTx { transaction, clock: self.clock.clone() })
    }

    pub(crate) async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }

    pub(crate) fn now_ms(&self) -> i64 {
        i64::try_from((self.clock)()).unwrap_or(i64::MAX)
    }

    /// Opens a connection that only polls for changes of the file.
    pub(crate) async fn open_watcher(&self) -> Result<SqliteConnection, sqlx::Error> {
        connect_options(&self.path).pragma("query_only", "on").connect().await
    }
}

impl SqliteTx {
    pub(crate) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }

    pub(crate) fn now_ms(&self) -> i64 {
        i64::try_from((self.clock)()).unwrap_or(i64::MAX)
    }

    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        self.transaction.commit().await
    }

    pub(crate) async fn rollback(self) -> Result<(), sqlx::Error> {
        self.transaction.rollback().await
    }
}

/// Returns true if the file is corrupt or not a database.
pub(crate) fn is_damage(error: &sqlx::Error) -> bool {
    error_code(error).is_some_and(|code| DAMAGED.contains(&(code & 0xff)))
}

/// Returns true if another process holds the lock.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
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

/// Opens the writing connection. Only a first, separate connection switches to write-ahead logging,
/// because the mode is stored in the file. It is left out if the file has that mode already: a short
/// command opens few connections.
async fn connect_writer(path: &Utf8Path) -> Result<SqlitePool, sqlx::Error> {
    if !has_write_ahead_log(path) {
        let mut first =
            connect_options(path).journal_mode(SqliteJournalMode::Wal).connect().await?;
        first.ping().await?;
        first.close().await?;
    }
    SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_with(connect_options(path))
        .await
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
