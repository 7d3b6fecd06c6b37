//! The storage of the journal: SQLite or PostgreSQL. Both run the same code: [`on`] expands an
//! expression for each store, with SQL that differs side by side.

use std::sync::Arc;
use std::time::Duration;

use crate::error::JournalError;
use crate::fold::FoldError;
use crate::limits::{ATTEMPT_WAIT, ATTEMPT_WAIT_MAX, ATTEMPTS_MAX};

pub(crate) mod complete_query;
pub(crate) mod letters;
pub(crate) mod memory;
pub(crate) mod migrate;
pub(crate) mod postgres;
pub(crate) mod read;
pub(crate) mod row_digest;
pub(crate) mod seal;
pub(crate) mod sqlite;
pub(crate) mod tx;

pub(crate) use tx::{ClaimConditions, LeaseChange, LeaseTerm, StoreTx};

/// A clock that returns milliseconds since 1970.
pub type JournalClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Checks a SQLite file for damage, including its indexes, and stops at the first problem.
pub(crate) const CHECK: &str = "PRAGMA integrity_check(1)";

/// Expands an expression for each kind of store. The first SQL is for SQLite, the second for
/// PostgreSQL.
macro_rules! on {
    ($store:expr, ($conn:ident, $sql:ident = $sqlite:expr, $postgres:expr) => $body:expr) => {
        match $store {
            Self::Sqlite(store) => {
                let ($conn, $sql) = (store.connection(), $sqlite);
                $body
            }
            Self::Postgres(store) => {
                let ($conn, $sql) = (store.connection(), $postgres);
                $body
            }
        }
    };
}
pub(crate) use on;

/// PostgreSQL's own clock in milliseconds since 1970, unless a time is given. The clocks of the
/// hosts may be wrong.
macro_rules! postgres_now {
    ($parameter:literal) => {
        concat!(
            "COALESCE(",
            $parameter,
            "::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
        )
    };
}
pub(crate) use postgres_now;

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

/// An open store.
pub(crate) enum JournalStore {
    Sqlite(sqlite::SqliteStore),
    Postgres(Box<postgres::PostgresStore>),
}

impl JournalStore {
    /// Begins a write transaction.
    pub(crate) async fn begin_write(&self) -> Result<StoreTx, StoreFault> {
        Ok(match self {
            JournalStore::Sqlite(store) => StoreTx::Sqlite(store.begin().await?),
            JournalStore::Postgres(store) => StoreTx::Postgres(store.begin().await?),
        })
    }

    pub(crate) async fn close(&self) {
        match self {
            JournalStore::Sqlite(store) => store.close().await,
            JournalStore::Postgres(store) => store.close().await,
        }
    }

    /// Returns the error for rows that do not fit their digests or each other.
    fn damage_error(&self, what: String) -> JournalError {
        match self {
            JournalStore::Sqlite(store) => store.found_damage(what),
            JournalStore::Postgres(_) => JournalError::Altered { what },
        }
    }

    /// Checks a table of a SQLite file once, before its rows are listed: reading rows does not show
    /// that others are missing. PostgreSQL checks its own files.
    pub(crate) async fn require_complete(&self, table: CheckedTable) -> Result<(), StoreFault> {
        match self {
            JournalStore::Sqlite(store) => store.check_table(table).await,
            JournalStore::Postgres(_) => Ok(()),
        }
    }

    /// Converts a permanent fault to an error.
    pub(crate) fn explain_fault(&self, fault: StoreFault) -> JournalError {
        match fault {
            StoreFault::Journal(error) => error,
            StoreFault::Damage(what) => self.damage_error(what),
            StoreFault::Sql(source) => match self {
                JournalStore::Sqlite(store) if sqlite::is_damage(&source) => {
                    store.found_damage(source.to_string())
                }
                JournalStore::Sqlite(store) if matches!(source, sqlx::Error::WorkerCrashed) => {
                    store.crashed_error()
                }
                _ => JournalError::Store { source: source.into() },
            },
        }
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

/// The cause of a failed transaction: an error of the store, a violation of the journal's rules, or
/// stored content that is not what was written.
#[derive(Debug)]
pub(crate) enum StoreFault {
    Sql(sqlx::Error),
    Journal(JournalError),
    /// Names the row that does not fit its digest, or the rows that contradict each other.
    Damage(String),
}

impl StoreFault {
    /// Returns true for a transient error: a lost connection, a conflict, a busy file.
    pub(crate) fn is_transient_sql(error: &sqlx::Error) -> bool {
        sqlite::is_busy(error) || postgres::is_transient(error)
    }
}

impl From<sqlx::Error> for StoreFault {
    fn from(error: sqlx::Error) -> Self {
        StoreFault::Sql(error)
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
