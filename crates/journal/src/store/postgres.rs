//! The PostgreSQL store, shared by many hosts. The server's clock sets only the displayed end of a
//! lease; [`crate::lease`] decides when it expires.

use std::borrow::Cow;
use std::io;
use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Executor, PgConnection, Postgres, Transaction};

use super::{StoreFault, migrate, retry_open};
use crate::error::JournalError;
use crate::limits::{ACQUIRE_TIMEOUT, POSTGRES_CONNECTIONS_MAX};

/// The channel on which every change is notified.
pub(crate) const CHANNEL: &str = "rep_journal";

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
pub(crate) struct PostgresStore {
    pool: PgPool,
    options: PgConnectOptions,
}

pub(crate) struct PostgresTx {
    transaction: Transaction<'static, Postgres>,
}

impl PostgresStore {
    pub(crate) async fn open(url: &str) -> Result<Self, JournalError> {
        let place = display_url(url);
        let failed = |error: sqlx::Error| open_error(&place, url, &error);
        let options = PgConnectOptions::from_str(url).map_err(failed)?;
        let options = options.application_name("rep").disable_statement_logging();
        // Connect once without the pool, which would retry for a long time: a wrong address should
        // fail at once.
        let opened = retry_open(is_transient_response, || async {
            let connected = tokio::time::timeout(ACQUIRE_TIMEOUT, options.connect()).await;
            let mut first = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            migrate::migrate_postgres(&mut first, &place).await?;
            Ok(first.close().await?)
        });
        match opened.await {
            Ok(()) => {}
            Err(StoreFault::Sql(error)) => return Err(failed(error)),
            Err(StoreFault::Journal(error)) => return Err(error),
            Err(StoreFault::Damage(what)) => return Err(JournalError::Altered { what }),
        }
        let pool = pool_options().max_connections(POSTGRES_CONNECTIONS_MAX);
        Ok(PostgresStore { pool: pool.connect_lazy_with(options.clone()), options })
    }

    pub(crate) fn connection(&self) -> &PgPool {
        &self.pool
    }

    pub(crate) async fn begin(&self) -> Result<PostgresTx, StoreFault> {
        Ok(PostgresTx { transaction: self.pool.begin().await? })
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }

    /// Opens a separate connection that listens for changes.
    pub(crate) async fn open_listener(&self) -> Result<PgListener, sqlx::Error> {
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

impl PostgresTx {
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        self.transaction.commit().await
    }

    pub(crate) async fn rollback(self) -> Result<(), sqlx::Error> {
        self.transaction.rollback().await
    }
}

/// Returns true if the error is transient.
pub(crate) fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::Protocol(_) => true,
        sqlx::Error::BeginFailed => true,
        error => is_transient_response(error),
    }
}

/// Returns true if a server responded with a transient error. A server that cannot be reached is
/// not included.
fn is_transient_response(error: &sqlx::Error) -> bool {
    error_code(error).is_some_and(|code| MAY_PASS.contains(&code.as_ref()))
}

fn error_code(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error().and_then(|database| database.code())
}

/// Returns true if it is certain that nothing was stored. A lost acknowledgement of a commit leaves
/// that open.
pub(crate) fn was_rolled_back(error: &sqlx::Error) -> bool {
    error_code(error).is_some_and(|code| ROLLED_BACK.contains(&code.as_ref()))
}

fn pool_options() -> PgPoolOptions {
    PgPoolOptions::new()
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // A connection that died in the meantime fails at its first query, which is then retried.
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute(sqlx::raw_sql(SESSION)).await.map(drop) })
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
