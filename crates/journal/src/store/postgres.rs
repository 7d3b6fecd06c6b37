//! The PostgreSQL store, shared by many hosts. The server's clock sets only the displayed end of a
//! lease; [`crate::lease`] decides when it expires.

use std::borrow::Cow;
use std::io;
use std::str::FromStr;

use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgListener, PgPool, PgPoolOptions, PgRow};
use sqlx::{
    Arguments, ConnectOptions, Connection, PgConnection, Postgres, Row, TypeInfo, ValueRef,
};

use super::migrate::{SqlMigration, apply_migrations};
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
use crate::limits::{ACQUIRE_TIMEOUT, POSTGRES_CONNECTIONS_MAX};

pub(super) const KIND: StoreKind = StoreKind {
    name: "postgres",
    schemes: &["postgres://", "postgresql://"],
    open: |address, _| Box::pin(open_database(address)),
};

async fn open_database(url: &str) -> OpenedStore {
    Ok(Box::new(PostgresStore::open(url).await?))
}

const DIALECT: SqlDialect = SqlDialect {
    // The server's own clock, unless a time is given. The clocks of the hosts may be wrong.
    now: |parameter| {
        format!(
            "COALESCE({parameter}::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
        )
    },
    use_index: |_| String::new(),
    json_texts: |array| format!("SELECT jsonb_array_elements_text({array}::jsonb)"),
    json_within: |inner, outer| format!("{inner}::jsonb <@ {outer}::jsonb"),
    lock_run: " FOR UPDATE OF r",
    lock_free_run: " FOR UPDATE OF r SKIP LOCKED",
    lock_name: Some("SELECT pg_advisory_xact_lock($1)"),
    notify_run: Some("SELECT pg_notify('rep_journal', $1)"),
    and_notify: " RETURNING pg_notify('rep_journal', id)",
    event_transaction: "xact",
    event_follows: "(xact, id) > ($1, $2) \
        AND xact < pg_snapshot_xmin(pg_current_snapshot())::text::bigint",
    event_order: "xact, id",
    last_event: "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1, \
        9223372036854775807",
    explain: "EXPLAIN ",
};

const MIGRATIONS: &[SqlMigration] = &[
    include_str!("../../migrations/postgres/0001_journal.sql"),
    include_str!("../../migrations/postgres/0002_memory.sql"),
    include_str!("../../migrations/postgres/0003_leases.sql"),
    include_str!("../../migrations/postgres/0004_digests.sql"),
];

/// The key of the advisory lock of a migration: an arbitrary number that is used for nothing else.
const MIGRATION_LOCK: i64 = 0x7265_705f_6a6e_6c00;

/// Counts the tables that the first migration creates.
const OURS: &str = "SELECT count(*) FROM unnest(ARRAY['run', 'request', 'step', 'event']) AS t \
    WHERE to_regclass(quote_ident(current_schema()) || '.' || t) IS NOT NULL";

/// Counts the table of versions.
const VERSIONS: &str =
    "SELECT count(to_regclass(quote_ident(current_schema()) || '.journal_version'))";

/// Resets foreign transaction numbers. The server numbers transactions, so the events of a dump
/// restored from another server may have numbers this server has not reached, and would stay
/// invisible until it does. In that case the numbers of all events are meaningless here; with 0
/// they are ordered by id.
const FROM_ELSEWHERE: &str = "UPDATE event SET xact = 0 WHERE xact > 0 AND EXISTS (SELECT 1 FROM event \
    WHERE xact >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint)";

/// The channel on which every change is notified.
const CHANNEL: &str = "rep_journal";

/// SQLSTATE codes of transient errors: conflicts, too many connections, a server that is starting
/// or stopping, and a connection that was lost or that the server closed because it was idle.
const MAY_PASS: &[&str] = &[
    "40001", "40P01", "53300", "55P03", "57P01", "57P02", "57P03", "57P05", "25P03", "25P04",
    "08000", "08001", "08003", "08006",
];
/// SQLSTATE codes after which it is certain that nothing was stored.
const ROLLED_BACK: &[&str] = &["40001", "40P01"];

/// Session settings, whatever the defaults of the database or role are. Timeouts, so that no
/// session waits forever for one that has disappeared. Read committed, because a count taken after
/// a lock must see what other sessions have committed. Synchronous commit, because an acknowledged
/// commit must be on disk.
const SESSION: &str = "SET lock_timeout = '10s'; SET statement_timeout = '60s'; \
    SET idle_in_transaction_session_timeout = '60s'; \
    SET default_transaction_isolation = 'read committed'; \
    SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'";

/// An open PostgreSQL database.
struct PostgresStore {
    pool: PgPool,
    options: PgConnectOptions,
}

impl PostgresStore {
    async fn open(url: &str) -> Result<Self, JournalError> {
        let place = display_url(url);
        let failed = |error: sqlx::Error| open_error(&place, url, &error);
        let options = PgConnectOptions::from_str(url).map_err(failed)?;
        let options = options.application_name("rep").disable_statement_logging();
        // Connect once without the pool, which would retry for a long time: a wrong address should
        // fail at once.
        let opened = retry_open(is_transient_response, || async {
            let connected = tokio::time::timeout(ACQUIRE_TIMEOUT, options.connect()).await;
            let mut first = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            migrate(&mut first, &place).await?;
            Ok(first.close().await?)
        });
        match opened.await {
            Ok(()) => {}
            Err(StoreFault::Sql(error)) => return Err(failed(error)),
            Err(StoreFault::Journal(error)) => return Err(error),
            Err(StoreFault::RowDamage(RowDamage { what, .. }) | StoreFault::FileDamage(what)) => {
                return Err(JournalError::Altered { run: None, what });
            }
        }
        let pool = pool_options().max_connections(POSTGRES_CONNECTIONS_MAX);
        Ok(PostgresStore { pool: pool.connect_lazy_with(options.clone()), options })
    }

    async fn listen_for_changes(&self, bell: &ChangeNotifier) -> Result<(), sqlx::Error> {
        let mut listener = self.open_listener().await?;
        bell.notify_all();
        // `None` means that the connection was lost; the listener has already reconnected.
        while listener.try_recv().await?.is_some() {
            bell.notify_all();
        }
        Ok(())
    }

    /// Opens a separate connection that listens for changes.
    async fn open_listener(&self) -> Result<PgListener, sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .max_lifetime(None)
            .idle_timeout(None)
            .connect_lazy_with(self.options.clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(listener)
    }
}

impl SqlStore for PostgresStore {
    fn dialect(&self) -> &'static SqlDialect {
        &DIALECT
    }

    fn fetch<'a>(
        &'a self,
        statement: SqlStatement<'a>,
    ) -> StoreFuture<'a, Result<Vec<SqlRow>, sqlx::Error>> {
        Box::pin(fetch_rows(statement, &self.pool))
    }

    fn begin(&self) -> StoreFuture<'_, Result<Box<dyn SqlTransaction>, StoreFault>> {
        Box::pin(async { Ok(Box::new(self.pool.begin().await?) as Box<dyn SqlTransaction>) })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.pool.close())
    }

    fn clock(&self) -> Option<&JournalClock> {
        None
    }

    fn reach(&self) -> StoreReach {
        StoreReach::ManyMachines
    }

    fn check_damage(&self) -> StoreFuture<'_, Result<(), StoreFault>> {
        Box::pin(async { Ok(()) })
    }

    fn require_complete(&self, _: CheckedTable) -> StoreFuture<'_, Result<(), StoreFault>> {
        Box::pin(async { Ok(()) })
    }

    /// The server checks its own files.
    fn check_after_row_damage(&self) -> StoreFuture<'_, Result<(), StoreFault>> {
        Box::pin(async { Ok(()) })
    }

    fn damage_error(&self, what: String) -> JournalError {
        JournalError::Altered { run: None, what }
    }

    fn explain_error(&self, error: sqlx::Error) -> JournalError {
        JournalError::Store { source: error.into() }
    }

    fn is_transient(&self, error: &sqlx::Error) -> bool {
        is_lost_connection(error) || is_transient_response(error)
    }

    /// A lost acknowledgement of a commit leaves open whether it was stored.
    fn was_rolled_back(&self, error: &sqlx::Error) -> bool {
        error_code(error).is_some_and(|code| ROLLED_BACK.contains(&code.as_ref()))
    }

    fn watch_changes<'a>(
        &'a self,
        bell: &'a ChangeNotifier,
    ) -> StoreFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(self.listen_for_changes(bell))
    }
}

impl StoreDatabase for Postgres {
    fn add_value(arguments: &mut PgArguments, value: SqlValue<'_>) -> Result<(), BoxDynError> {
        match value {
            SqlValue::Text(text) => arguments.add(text.as_deref()),
            SqlValue::Number(number) => arguments.add(number),
            SqlValue::Bytes(bytes) => arguments.add(&*bytes),
        }
    }

    fn read_cells(row: &PgRow) -> Result<Vec<SqlCell>, sqlx::Error> {
        (0..row.len()).map(|at| SqlCell::keep_unreadable(read_cell(row, at))).collect()
    }
}

fn read_cell(row: &PgRow, at: usize) -> Result<SqlCell, sqlx::Error> {
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(SqlCell::Null);
    }
    Ok(match value.type_info().name() {
        "TEXT" => SqlCell::Text(row.try_get(at)?),
        "INT8" => SqlCell::Number(row.try_get(at)?),
        "BOOL" => SqlCell::Number(row.try_get::<bool, _>(at)?.into()),
        "BYTEA" => SqlCell::Bytes(row.try_get(at)?),
        name => return Err(foreign_type(at, name)),
    })
}

impl SqlConnection for PgConnection {
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

/// Migrates the schema to the current version. Concurrent callers wait for the lock.
async fn migrate(connection: &mut PgConnection, place: &str) -> Result<(), StoreFault> {
    let mut tx = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(MIGRATION_LOCK).execute(&mut *tx).await?;
    let (tables,): (i64,) = fetch_one(&mut *tx, SqlStatement::new(OURS)).await?;
    let (versions,): (i64,) = fetch_one(&mut *tx, SqlStatement::new(VERSIONS)).await?;
    if tables > 0 && versions == 0 {
        return Err(JournalError::NotAJournal { place: place.to_owned() }.into());
    }
    apply_migrations(&mut *tx, MIGRATIONS, place, None).await?;
    sqlx::query(FROM_ELSEWHERE).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(())
}

/// Returns true if a server responded with a transient error. A server that cannot be reached is
/// not included.
fn is_transient_response(error: &sqlx::Error) -> bool {
    error_code(error).is_some_and(|code| MAY_PASS.contains(&code.as_ref()))
}

fn error_code(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error().and_then(|database| database.code())
}

fn pool_options() -> PgPoolOptions {
    PgPoolOptions::new()
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // A connection that died in the meantime fails at its first query, which is then retried.
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move { sqlx::raw_sql(SESSION).execute(connection).await.map(drop) })
        })
}

fn open_error(place: &str, url: &str, error: &sqlx::Error) -> JournalError {
    let mut why = error.to_string();
    for secret in secrets_of(url) {
        why = why.replace(secret, "***");
    }
    JournalError::Open { place: place.to_owned(), why }
}

/// Returns the URL without user, password and parameters.
fn display_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", ""));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{host}")
}

/// Returns the parts of a URL that must not be shown: the URL itself, the user name with the
/// password, and passwords in parameters.
fn secrets_of(url: &str) -> Vec<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let user = address.rsplit_once('@').map_or("", |(user, _)| user);
    let (_, password) = user.split_once(':').unwrap_or_default();
    let user = if password.is_empty() { "" } else { user };
    let values = parameters.split('&').filter_map(|pair| pair.split_once('='));
    let secret = values.filter(|(key, _)| key.contains("pass")).map(|(_, value)| value);
    [url, user, password].into_iter().chain(secret).filter(|text| !text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let url = "postgres://me:s3cret@db.example:5432/rep?password=0ther&sslmode=disable";
        assert_eq!(display_url(url), "postgres://db.example:5432/rep");
        let words = "cannot use s3cret or 0ther".to_owned();
        let shown = open_error(&display_url(url), url, &sqlx::Error::Protocol(words)).to_string();
        assert!(!shown.contains("s3cret") && !shown.contains("0ther"), "{shown}");
        // A name alone is no secret, and may be a part of other words.
        let words = sqlx::Error::Protocol("the time is over".to_owned());
        let shown = open_error("here", "postgres://me@db/rep", &words).to_string();
        assert!(shown.contains("the time is over"), "{shown}");
    }
}
