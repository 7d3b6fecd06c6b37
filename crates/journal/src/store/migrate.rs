//! The schema: numbered SQL files, each applied once, in an exclusive transaction.
//!
//! Processes of the previous version that are open during a migration continue with their own SQL,
//! and notice the new version only when they open the journal again. So a migration may add things
//! they can ignore (a table, an index, a column with a default). If they must not continue, the
//! migration has to rename the table they use.

use sqlx::sqlite::SqlitePool;
use sqlx::{Connection, PgConnection, SqliteConnection};

use super::StoreFault;
use super::complete_query::CompleteAnswer;
use super::seal::{PostgresSeal, SealConnection, SqliteSeal};
use crate::error::JournalError;

const SQLITE: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_journal.sql"),
    include_str!("../../migrations/sqlite/0002_memory.sql"),
    include_str!("../../migrations/sqlite/0003_leases.sql"),
    include_str!("../../migrations/sqlite/0004_digests.sql"),
];
const POSTGRES: &[&str] = &[
    include_str!("../../migrations/postgres/0001_journal.sql"),
    include_str!("../../migrations/postgres/0002_memory.sql"),
    include_str!("../../migrations/postgres/0003_leases.sql"),
    include_str!("../../migrations/postgres/0004_digests.sql"),
];

/// The migration that adds digests. The rows of an older journal get theirs right after it.
const DIGESTS: i64 = 4;

/// The key of the advisory lock: an arbitrary number that is used for nothing else.
const LOCK: i64 = 0x7265_705f_6a6e_6c00;

const MAKE_VERSIONS: &str =
    "CREATE TABLE IF NOT EXISTS journal_version (version BIGINT NOT NULL PRIMARY KEY)";
/// Counts the tables that the first migration creates.
const OURS: &str = "SELECT count(*) FROM unnest(ARRAY['run', 'request', 'step', 'event']) AS t \
    WHERE to_regclass(quote_ident(current_schema()) || '.' || t) IS NOT NULL";
const VERSION: &str = "SELECT COALESCE(MAX(version), 0) FROM journal_version";
const ADD_VERSION: &str = "INSERT INTO journal_version (version) VALUES ($1)";

/// Resets foreign transaction numbers. The server numbers transactions, so the events of a dump
/// restored from another server may have numbers this server has not reached, and would stay
/// invisible until it does. In that case the numbers of all events are meaningless here; with 0
/// they are ordered by id.
const FROM_ELSEWHERE: &str = "UPDATE event SET xact = 0 WHERE xact > 0 AND EXISTS (SELECT 1 FROM event \
    WHERE xact >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint)";

/// Migrates a SQLite file to the current schema.
pub(crate) async fn migrate_sqlite(pool: &SqlitePool, place: &str) -> Result<(), StoreFault> {
    let mut tx = pool.begin_with(super::sqlite::BEGIN).await?;
    let tables: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    )
    .fetch_one(&mut *tx)
    .await?;
    let ours: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'journal_version'",
    )
    .fetch_one(&mut *tx)
    .await?;
    if tables > 0 && ours == 0 {
        return Err(JournalError::NotAJournal { place: place.to_owned() }.into());
    }
    sqlx::query(MAKE_VERSIONS).execute(&mut *tx).await?;
    let version: i64 = sqlx::query_scalar(VERSION).fetch_one(&mut *tx).await?;
    let missing: Vec<_> = missing_migrations(SQLITE, version, place)?.collect();
    if version > 0 && !missing.is_empty() {
        refuse_damaged(&mut tx, place).await?;
    }
    for (number, sql) in missing {
        sqlx::raw_sql(sql).execute(&mut *tx).await?;
        sqlx::query(ADD_VERSION).bind(number).execute(&mut *tx).await?;
        if number == DIGESTS && version > 0 {
            SealConnection::Sqlite(SqliteSeal(&mut tx)).seal_all().await?;
        }
    }
    tx.commit().await?;
    Ok(())
}

/// Checks a file of an older version for damage before it is migrated.
async fn refuse_damaged(connection: &mut SqliteConnection, place: &str) -> Result<(), StoreFault> {
    let found: Vec<(String,)> = sqlx::query_as(super::CHECK).complete_all(connection).await?;
    match found.into_iter().map(|(line,)| line).find(|line| line != "ok") {
        Some(what) => Err(JournalError::Damaged { place: place.to_owned(), what }.into()),
        None => Ok(()),
    }
}

/// Migrates a PostgreSQL schema to the current version. Concurrent callers wait for the lock.
pub(crate) async fn migrate_postgres(
    connection: &mut PgConnection,
    place: &str,
) -> Result<(), StoreFault> {
    let mut tx = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *tx).await?;
    sqlx::query(MAKE_VERSIONS).execute(&mut *tx).await?;
    let version: i64 = sqlx::query_scalar(VERSION).fetch_one(&mut *tx).await?;
    let tables: i64 = sqlx::query_scalar(OURS).fetch_one(&mut *tx).await?;
    if version == 0 && tables > 0 {
        return Err(JournalError::NotAJournal { place: place.to_owned() }.into());
    }
    for (number, sql) in missing_migrations(POSTGRES, version, place)? {
        sqlx::raw_sql(sql).execute(&mut *tx).await?;
        sqlx::query(ADD_VERSION).bind(number).execute(&mut *tx).await?;
        if number == DIGESTS && version > 0 {
            SealConnection::Postgres(PostgresSeal(&mut tx)).seal_all().await?;
        }
    }
    sqlx::query(FROM_ELSEWHERE).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(())
}

/// Returns the migrations still to be applied, with their numbers.
fn missing_migrations(
    migrations: &'static [&'static str],
    found: i64,
    place: &str,
) -> Result<impl Iterator<Item = (i64, &'static str)>, JournalError> {
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(JournalError::Newer { place: place.to_owned(), found, known });
    }
    Ok((1..).zip(migrations.iter().copied()).filter(move |(number, _)| *number > found))
}
