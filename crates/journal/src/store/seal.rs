//! Computes the digests of rows that were written before the journal had digests, once, when its
//! schema is migrated. Whatever the rows hold by then counts as written.

use super::StoreFault;
use super::letters::letter_digest;
use super::memory::{failure_digest, fix_digest, observation_digest};
use super::row_digest::{
    EventColumns, NO_PREDECESSOR, RowDigest, event_digest, request_digest, run_digest, step_digest,
};
use super::sql::{SqlConnection, SqlStatement, fetch_all};

/// The number of rows that are read at once. Each may be large.
const SEALED_ROWS_MAX: i64 = 100;

/// Computes the digests of all rows.
pub(super) async fn seal_all(connection: &mut dyn SqlConnection) -> Result<(), StoreFault> {
    seal_runs(connection).await?;
    seal_failures(connection).await?;
    seal_fixes(connection).await?;
    seal_observations(connection).await?;
    seal_letters(connection).await
}

async fn seal_runs(connection: &mut dyn SqlConnection) -> Result<(), StoreFault> {
    const SQL: &str = "SELECT r.number, r.id, r.state, q.body FROM run r \
        JOIN request q ON q.run = r.id WHERE r.number > $1 ORDER BY r.number LIMIT $2";
    const RUN: &str = "UPDATE run SET head = $2, row_digest = $3 WHERE id = $1";
    const REQUEST: &str = "UPDATE request SET row_digest = $2 WHERE run = $1";
    let mut last = i64::MIN;
    loop {
        let rows: Vec<(i64, String, String, String)> =
            fetch_all(connection, SqlStatement::new(SQL).bind(last).bind(SEALED_ROWS_MAX)).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for (number, id, state, body) in rows {
            last = number;
            let head = seal_events(connection, &id).await?;
            seal_steps(connection, &id).await?;
            let (row_digest, body_digest) =
                (run_digest(&id, &state, &head), request_digest(&id, &body));
            connection
                .execute(SqlStatement::new(RUN).bind(id.as_str()).bind(head).bind(row_digest))
                .await?;
            connection
                .execute(SqlStatement::new(REQUEST).bind(id.as_str()).bind(body_digest))
                .await?;
        }
    }
}

/// Chains the events of a run and returns the digest of the last one.
async fn seal_events(
    connection: &mut dyn SqlConnection,
    run: &str,
) -> Result<RowDigest, StoreFault> {
    const SQL: &str = "SELECT seq, v, at_ms, type, payload FROM event \
        WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    const SEAL: &str = "UPDATE event SET prev = $3, row_digest = $4 WHERE run = $1 AND seq = $2";
    let (mut last, mut head) = (i64::MIN, NO_PREDECESSOR.to_vec());
    loop {
        let rows: Vec<(i64, i64, i64, String, String)> = fetch_all(
            connection,
            SqlStatement::new(SQL).bind(run).bind(last).bind(SEALED_ROWS_MAX),
        )
        .await?;
        if rows.is_empty() {
            return Ok(head);
        }
        for (seq, v, at_ms, name, payload) in rows {
            last = seq;
            let event = EventColumns { run, seq, v, at_ms, name: &name, payload: &payload };
            let digest = event_digest(&head, &event);
            connection
                .execute(
                    SqlStatement::new(SEAL)
                        .bind(run)
                        .bind(seq)
                        .bind(head.as_slice())
                        .bind(digest.as_slice()),
                )
                .await?;
            head = digest;
        }
    }
}

async fn seal_steps(connection: &mut dyn SqlConnection, run: &str) -> Result<(), StoreFault> {
    const SQL: &str = "SELECT number, status, state FROM step WHERE run = $1 ORDER BY number";
    const SEAL: &str = "UPDATE step SET row_digest = $3 WHERE run = $1 AND number = $2";
    let rows: Vec<(i64, String, String)> =
        fetch_all(connection, SqlStatement::new(SQL).bind(run)).await?;
    for (number, status, state) in rows {
        let digest = step_digest(run, number, &status, &state);
        connection.execute(SqlStatement::new(SEAL).bind(run).bind(number).bind(digest)).await?;
    }
    Ok(())
}

async fn seal_failures(connection: &mut dyn SqlConnection) -> Result<(), StoreFault> {
    const SQL: &str = "SELECT scope, signature, category, seen, last_ms, state FROM failure \
        WHERE length(row_digest) = 0 LIMIT $1";
    const SEAL: &str = "UPDATE failure SET row_digest = $3 WHERE scope = $1 AND signature = $2";
    loop {
        let rows: Vec<(String, String, String, i64, i64, String)> =
            fetch_all(connection, SqlStatement::new(SQL).bind(SEALED_ROWS_MAX)).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for (scope, signature, category, seen, last_ms, state) in rows {
            let key = (scope.as_str(), signature.as_str(), category.as_str());
            let digest = failure_digest(key, seen, last_ms, &state);
            connection
                .execute(
                    SqlStatement::new(SEAL)
                        .bind(scope.as_str())
                        .bind(signature.as_str())
                        .bind(digest),
                )
                .await?;
        }
    }
}

async fn seal_fixes(connection: &mut dyn SqlConnection) -> Result<(), StoreFault> {
    const SQL: &str = "SELECT scope, signature, id, state FROM fix \
        WHERE length(row_digest) = 0 LIMIT $1";
    const SEAL: &str =
        "UPDATE fix SET row_digest = $4 WHERE scope = $1 AND signature = $2 AND id = $3";
    loop {
        let rows: Vec<(String, String, String, String)> =
            fetch_all(connection, SqlStatement::new(SQL).bind(SEALED_ROWS_MAX)).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for (scope, signature, id, state) in rows {
            let digest = fix_digest(&scope, &signature, &id, &state);
            connection
                .execute(
                    SqlStatement::new(SEAL)
                        .bind(scope.as_str())
                        .bind(signature.as_str())
                        .bind(id.as_str())
                        .bind(digest),
                )
                .await?;
        }
    }
}

async fn seal_observations(connection: &mut dyn SqlConnection) -> Result<(), StoreFault> {
    const SQL: &str = "SELECT id, scope, signature, at_ms, run, body FROM memory \
        WHERE length(row_digest) = 0 LIMIT $1";
    const SEAL: &str = "UPDATE memory SET row_digest = $2 WHERE id = $1";
    loop {
        let rows: Vec<(i64, String, String, i64, Option<String>, String)> =
            fetch_all(connection, SqlStatement::new(SQL).bind(SEALED_ROWS_MAX)).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for (id, scope, signature, at_ms, run, body) in rows {
            let digest = observation_digest(&scope, &signature, at_ms, run.as_deref(), &body);
            connection.execute(SqlStatement::new(SEAL).bind(id).bind(digest)).await?;
        }
    }
}

async fn seal_letters(connection: &mut dyn SqlConnection) -> Result<(), StoreFault> {
    const SQL: &str = "SELECT number, id, scope, status, priority, state FROM letter \
        WHERE length(row_digest) = 0 LIMIT $1";
    const SEAL: &str = "UPDATE letter SET row_digest = $2 WHERE number = $1";
    loop {
        let rows: Vec<(i64, String, String, String, i64, String)> =
            fetch_all(connection, SqlStatement::new(SQL).bind(SEALED_ROWS_MAX)).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for (number, id, scope, status, priority, state) in rows {
            let digest = letter_digest((&id, &scope, &status), priority, &state);
            connection.execute(SqlStatement::new(SEAL).bind(number).bind(digest)).await?;
        }
    }
}
