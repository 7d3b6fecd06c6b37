//! Computes the digests of rows that were written before the journal had digests, once, when its
//! schema is migrated. Whatever the rows hold by then counts as written.

use sqlx::{PgConnection, SqliteConnection};

use super::complete_query::CompleteAnswer;
use super::letters::letter_digest;
use super::memory::{failure_digest, fix_digest, observation_digest};
use super::row_digest::{
    EventColumns, NO_PREDECESSOR, RowDigest, event_digest, request_digest, run_digest, step_digest,
};
use super::{StoreFault, on};

/// The number of rows that are read at once. Each may be large.
const SEALED_ROWS_MAX: i64 = 100;

/// The connection that migrates a store.
pub(crate) enum SealConnection<'a> {
    Sqlite(SqliteSeal<'a>),
    Postgres(PostgresSeal<'a>),
}

pub(crate) struct SqliteSeal<'a>(pub(crate) &'a mut SqliteConnection);
pub(crate) struct PostgresSeal<'a>(pub(crate) &'a mut PgConnection);

impl SqliteSeal<'_> {
    fn connection(&mut self) -> &mut SqliteConnection {
        self.0
    }
}

impl PostgresSeal<'_> {
    fn connection(&mut self) -> &mut PgConnection {
        self.0
    }
}

impl SealConnection<'_> {
    /// Computes the digests of all rows.
    pub(crate) async fn seal_all(&mut self) -> Result<(), StoreFault> {
        self.seal_runs().await?;
        self.seal_failures().await?;
        self.seal_fixes().await?;
        self.seal_observations().await?;
        self.seal_letters().await
    }

    async fn seal_runs(&mut self) -> Result<(), StoreFault> {
        const SQL: &str = "SELECT r.number, r.id, r.state, q.body FROM run r \
            JOIN request q ON q.run = r.id WHERE r.number > $1 ORDER BY r.number LIMIT $2";
        const RUN: &str = "UPDATE run SET head = $2, row_digest = $3 WHERE id = $1";
        const REQUEST: &str = "UPDATE request SET row_digest = $2 WHERE run = $1";
        let mut last = i64::MIN;
        loop {
            let rows: Vec<(i64, String, String, String)> = on!(self, (conn, sql = SQL, SQL) => {
                sqlx::query_as(sql).bind(last).bind(SEALED_ROWS_MAX).complete_all(conn).await?
            });
            if rows.is_empty() {
                return Ok(());
            }
            for (number, id, state, body) in rows {
                last = number;
                let head = self.seal_events(&id).await?;
                self.seal_steps(&id).await?;
                let (row_digest, body_digest) =
                    (run_digest(&id, &state, &head), request_digest(&id, &body));
                on!(self, (conn, sql = RUN, RUN) => sqlx::query(sql)
                    .bind(id.as_str())
                    .bind(head)
                    .bind(row_digest)
                    .execute(conn)
                    .await
                    .map(drop))?;
                on!(self, (conn, sql = REQUEST, REQUEST) => sqlx::query(sql)
                    .bind(id.as_str())
                    .bind(body_digest)
                    .execute(conn)
                    .await
                    .map(drop))?;
            }
        }
    }

    /// Chains the events of a run and returns the digest of the last one.
    async fn seal_events(&mut self, run: &str) -> Result<RowDigest, StoreFault> {
        const SQL: &str = "SELECT seq, v, at_ms, type, payload FROM event \
            WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        const SEAL: &str =
            "UPDATE event SET prev = $3, row_digest = $4 WHERE run = $1 AND seq = $2";
        let (mut last, mut head) = (i64::MIN, NO_PREDECESSOR.to_vec());
        loop {
            let rows: Vec<(i64, i64, i64, String, String)> = on!(self, (conn, sql = SQL, SQL) => {
                sqlx::query_as(sql)
                    .bind(run)
                    .bind(last)
                    .bind(SEALED_ROWS_MAX)
                    .complete_all(conn)
                    .await?
            });
            if rows.is_empty() {
                return Ok(head);
            }
            for (seq, v, at_ms, name, payload) in rows {
                last = seq;
                let event = EventColumns { run, seq, v, at_ms, name: &name, payload: &payload };
                let digest = event_digest(&head, &event);
                on!(self, (conn, sql = SEAL, SEAL) => sqlx::query(sql)
                    .bind(run)
                    .bind(seq)
                    .bind(head.as_slice())
                    .bind(digest.as_slice())
                    .execute(conn)
                    .await
                    .map(drop))?;
                head = digest;
            }
        }
    }

    async fn seal_steps(&mut self, run: &str) -> Result<(), StoreFault> {
        const SQL: &str = "SELECT number, status, state FROM step WHERE run = $1 ORDER BY number";
        const SEAL: &str = "UPDATE step SET row_digest = $3 WHERE run = $1 AND number = $2";
        let rows: Vec<(i64, String, String)> = on!(self, (conn, sql = SQL, SQL) => {
            sqlx::query_as(sql).bind(run).complete_all(conn).await?
        });
        for (number, status, state) in rows {
            let digest = step_digest(run, number, &status, &state);
            on!(self, (conn, sql = SEAL, SEAL) => sqlx::query(sql)
                .bind(run)
                .bind(number)
                .bind(digest)
                .execute(conn)
                .await
                .map(drop))?;
        }
        Ok(())
    }

    async fn seal_failures(&mut self) -> Result<(), StoreFault> {
        const SQL: &str = "SELECT scope, signature, category, seen, last_ms, state FROM failure \
            WHERE length(row_digest) = 0 LIMIT $1";
        const SEAL: &str = "UPDATE failure SET row_digest = $3 WHERE scope = $1 AND signature = $2";
        loop {
            let rows: Vec<(String, String, String, i64, i64, String)> = on!(self, (conn, sql = SQL, SQL) => {
                sqlx::query_as(sql).bind(SEALED_ROWS_MAX).complete_all(conn).await?
            });
            if rows.is_empty() {
                return Ok(());
            }
            for (scope, signature, category, seen, last_ms, state) in rows {
                let key = (scope.as_str(), signature.as_str(), category.as_str());
                let digest = failure_digest(key, seen, last_ms, &state);
                on!(self, (conn, sql = SEAL, SEAL) => sqlx::query(sql)
                    .bind(scope.as_str())
                    .bind(signature.as_str())
                    .bind(digest)
                    .execute(conn)
                    .await
                    .map(drop))?;
            }
        }
    }

    async fn seal_fixes(&mut self) -> Result<(), StoreFault> {
        const SQL: &str = "SELECT scope, signature, id, state FROM fix \
            WHERE length(row_digest) = 0 LIMIT $1";
        const SEAL: &str =
            "UPDATE fix SET row_digest = $4 WHERE scope = $1 AND signature = $2 AND id = $3";
        loop {
            let rows: Vec<(String, String, String, String)> = on!(self, (conn, sql = SQL, SQL) => {
                sqlx::query_as(sql).bind(SEALED_ROWS_MAX).complete_all(conn).await?
            });
            if rows.is_empty() {
                return Ok(());
            }
            for (scope, signature, id, state) in rows {
                let digest = fix_digest(&scope, &signature, &id, &state);
                on!(self, (conn, sql = SEAL, SEAL) => sqlx::query(sql)
                    .bind(scope.as_str())
                    .bind(signature.as_str())
                    .bind(id.as_str())
                    .bind(digest)
                    .execute(conn)
                    .await
                    .map(drop))?;
            }
        }
    }

    async fn seal_observations(&mut self) -> Result<(), StoreFault> {
        const SQL: &str = "SELECT id, scope, signature, at_ms, run, body FROM memory \
            WHERE length(row_digest) = 0 LIMIT $1";
        const SEAL: &str = "UPDATE memory SET row_digest = $2 WHERE id = $1";
        loop {
            let rows: Vec<(i64, String, String, i64, Option<String>, String)> = on!(self, (conn, sql = SQL, SQL) => {
                sqlx::query_as(sql).bind(SEALED_ROWS_MAX).complete_all(conn).await?
            });
            if rows.is_empty() {
                return Ok(());
            }
            for (id, scope, signature, at_ms, run, body) in rows {
                let digest = observation_digest(&scope, &signature, at_ms, run.as_deref(), &body);
                on!(self, (conn, sql = SEAL, SEAL) => sqlx::query(sql)
                    .bind(id)
                    .bind(digest)
                    .execute(conn)
                    .await
                    .map(drop))?;
            }
        }
    }

    async fn seal_letters(&mut self) -> Result<(), StoreFault> {
        const SQL: &str = "SELECT number, id, scope, status, priority, state FROM letter \
            WHERE length(row_digest) = 0 LIMIT $1";
        const SEAL: &str = "UPDATE letter SET row_digest = $2 WHERE number = $1";
        loop {
            let rows: Vec<(i64, String, String, String, i64, String)> = on!(self, (conn, sql = SQL, SQL) => {
                sqlx::query_as(sql).bind(SEALED_ROWS_MAX).complete_all(conn).await?
            });
            if rows.is_empty() {
                return Ok(());
            }
            for (number, id, scope, status, priority, state) in rows {
                let digest = letter_digest((&id, &scope, &status), priority, &state);
                on!(self, (conn, sql = SEAL, SEAL) => sqlx::query(sql)
                    .bind(number)
                    .bind(digest)
                    .execute(conn)
                    .await
                    .map(drop))?;
            }
        }
    }
}
