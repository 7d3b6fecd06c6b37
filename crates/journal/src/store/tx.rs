//! Write transactions, on either store.

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::QueryBuilder;

use super::complete_query::CompleteAnswer;
use super::postgres::PostgresTx;
use super::sqlite::SqliteTx;
use super::{StoreFault, on, postgres_now};
use crate::event::Event;
use crate::lease::LeaseRow;
use crate::queue::{ClaimRules, QueueOrder, QueueWorker};
use crate::run::{Run, RunId, Step};
use crate::store::read::{StoredRunRow, decode_run, decode_step};

/// A write transaction.
pub(crate) enum StoreTx {
    Sqlite(SqliteTx),
    Postgres(PostgresTx),
}

/// The change to the lease of a run whose row is written.
#[derive(Clone, Copy)]
pub(crate) enum LeaseChange<'a> {
    Keep,
    End,
    From(LeaseTerm<'a>),
}

/// The length of a lease from now on.
#[derive(Clone, Copy)]
pub(crate) struct LeaseTerm<'a> {
    pub(crate) length: Duration,
    /// The boot of this machine.
    pub(crate) boot: Option<&'a str>,
    /// The end of the lease, in milliseconds of that boot's clock.
    pub(crate) boot_until_ms: i64,
}

/// The conditions a run must meet to be claimed.
pub(crate) struct ClaimConditions<'a> {
    pub(crate) worker: &'a QueueWorker,
    pub(crate) rules: &'a ClaimRules,
    pub(crate) only: Option<&'a RunId>,
    pub(crate) except: &'a BTreeSet<String>,
}

/// An event with its serialised payload.
pub(crate) struct SerialisedEvent {
    pub(crate) event: Event,
    pub(crate) payload: String,
}

/// The key of the advisory lock: an arbitrary number that is used for nothing else.
const CAP_LOCK: i64 = 0x7265_705f_6361_7000;

/// Parameters: `$1` only this run, `$2` kinds, `$3` labels, `$4` maximum per workspace, `$5` now,
/// `$6` excluded runs. The indexes are forced, so that runs that have ended are never scanned.
macro_rules! candidate_sqlite {
    ($index:literal, $order:literal) => {
        concat!(
            "SELECT r.id, r.state, q.body FROM run r INDEXED BY ",
            $index,
            " JOIN request q ON q.run = r.id \
             WHERE r.status = 'queued' AND ($1 IS NULL OR r.id = $1) AND r.not_before_ms <= $5 \
             AND r.id NOT IN (SELECT value FROM json_each($6)) \
             AND r.kind IN (SELECT value FROM json_each($2)) \
             AND NOT EXISTS (SELECT 1 FROM json_each(r.labels) AS l \
                 WHERE l.value NOT IN (SELECT value FROM json_each($3))) \
             AND ($4 IS NULL OR $4 > (SELECT count(*) FROM run AS o INDEXED BY run_under_way \
                 WHERE o.status = 'running' AND o.worker IS NOT NULL \
                 AND o.workspace = r.workspace)) \
             ORDER BY ",
            $order,
            " LIMIT 1"
        )
    };
}
macro_rules! candidate_postgres {
    ($order:literal) => {
        concat!(
            "SELECT r.id, r.state, q.body FROM run r JOIN request q ON q.run = r.id \
             WHERE r.status = 'queued' AND ($1::text IS NULL OR r.id = $1) AND r.not_before_ms <= ",
            postgres_now!("$5"),
            " AND NOT $6::jsonb ? r.id \
             AND r.kind IN (SELECT jsonb_array_elements_text($2::jsonb)) \
             AND r.labels::jsonb <@ $3::jsonb \
             AND ($4::bigint IS NULL OR $4 > (SELECT count(*) FROM run AS o \
                 WHERE o.status = 'running' AND o.worker IS NOT NULL \
                 AND o.workspace = r.workspace)) \
             ORDER BY ",
            $order,
            " LIMIT 1 FOR UPDATE OF r SKIP LOCKED"
        )
    };
}

pub(crate) fn candidate_sqlite(order: QueueOrder) -> &'static str {
    match order {
        QueueOrder::Fifo => candidate_sqlite!("run_oldest_first", "r.priority DESC, r.number"),
        QueueOrder::NewestFirst => {
            candidate_sqlite!("run_newest_first", "r.priority DESC, r.number DESC")
        }
    }
}

pub(crate) fn candidate_postgres(order: QueueOrder) -> &'static str {
    match order {
        QueueOrder::Fifo => candidate_postgres!("r.priority DESC, r.number"),
        QueueOrder::NewestFirst => candidate_postgres!("r.priority DESC, r.number DESC"),
    }
}

impl StoreTx {
    /// The wall clock in milliseconds since 1970; `None` on PostgreSQL, which has its own.
    fn now_ms(&self) -> Option<i64> {
        match self {
            StoreTx::Sqlite(tx) => Some(tx.now_ms()),
            StoreTx::Postgres(_) => None,
        }
    }

    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            StoreTx::Sqlite(tx) => tx.commit().await,
            StoreTx::Postgres(tx) => tx.commit().await,
        }
    }

    /// Rolls back and waits for it. A transaction that is only dropped holds its row locks a moment
    /// longer, and a claim in that moment skips the locked run and finds nothing.
    pub(crate) async fn rollback(self) -> Result<(), sqlx::Error> {
        match self {
            StoreTx::Sqlite(tx) => tx.rollback().await,
            StoreTx::Postgres(tx) => tx.rollback().await,
        }
    }

    /// Returns a run and locks it until the transaction ends.
    pub(crate) async fn run(&mut self, id: &RunId) -> Result<Option<Run>, StoreFault> {
        let row: Option<StoredRunRow> = on!(self, (conn, sql =
            "SELECT r.id, r.state, q.body FROM run r JOIN request q ON q.run = r.id WHERE r.id = $1",
            "SELECT r.id, r.state, q.body FROM run r JOIN request q ON q.run = r.id WHERE r.id = $1 FOR UPDATE OF r") => sqlx::query_as(sql).bind(id.as_str()).complete_optional(conn).await?);
        Ok(row.map(|row| decode_run(&row)).transpose()?)
    }

    /// Returns the step in progress of a run.
    pub(crate) async fn open_step(&mut self, run: &Run) -> Result<Option<Step>, StoreFault> {
        let Some(number) = run.open_step else { return Ok(None) };
        const SQL: &str = "SELECT state FROM step WHERE run = $1 AND number = $2";
        let row: Option<(String,)> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(run.id.as_str())
            .bind(i64::from(number))
            .complete_optional(conn)
            .await?);
        Ok(row.map(|(state,)| decode_step(run, number, &state)).transpose()?)
    }

    /// Locks claiming under limits on concurrent runs. Without the lock, two workers could count
    /// the same runs.
    pub(crate) async fn lock_caps(&mut self) -> Result<(), StoreFault> {
        if let StoreTx::Postgres(tx) = self {
            let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(CAP_LOCK);
            lock.execute(tx.connection()).await?;
        }
        Ok(())
    }

    /// Returns the number of runs that workers carry out. Attended runs have no worker, so they
    /// don't count towards the caps.
    pub(crate) async fn running(&mut self) -> Result<u64, StoreFault> {
        const SQL: &str =
            "SELECT count(*) FROM run WHERE status = 'running' AND worker IS NOT NULL";
        let (count,): (i64,) =
            on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql).complete_one(conn).await?);
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Returns and locks the next run in the queue that meets the conditions.
    pub(crate) async fn next_candidate(
        &mut self,
        wanted: &ClaimConditions<'_>,
    ) -> Result<Option<StoredRunRow>, StoreFault> {
        let now_ms = self.now_ms();
        let kinds = serde_json::json!(wanted.worker.kinds).to_string();
        let labels = serde_json::json!(wanted.worker.labels).to_string();
        let order = wanted.rules.order;
        Ok(on!(self, (conn, sql =
            candidate_sqlite(order),
            candidate_postgres(order)) => sqlx::query_as(sql)
                .bind(wanted.only.map(RunId::as_str))
                .bind(kinds)
                .bind(labels)
                .bind(wanted.rules.per_workspace_max.map(i64::from))
                .bind(now_ms)
                .bind(serde_json::json!(wanted.except).to_string())
                .complete_optional(conn)
                .await?))
    }

    /// Returns and locks the run of a lease, or `None` if the lease has changed since it was read
    /// or another process is putting the run back.
    pub(crate) async fn lock_unchanged_lease(
        &mut self,
        lease: &LeaseRow,
    ) -> Result<Option<StoredRunRow>, StoreFault> {
        macro_rules! unchanged {
            ($lock:literal) => {
                concat!(
                    "SELECT r.id, r.state, q.body FROM run r JOIN request q ON q.run = r.id \
                     WHERE r.id = $1 AND r.status = 'running' AND r.token = $2 AND r.lease_beat = $3 \
                     AND COALESCE(r.lease_shown_until_ms, r.lease_until_ms) IS NOT DISTINCT FROM $4",
                    $lock
                )
            };
        }
        Ok(on!(self, (conn, sql =
            unchanged!(""),
            unchanged!(" FOR UPDATE OF r SKIP LOCKED")) => sqlx::query_as(sql)
                .bind(lease.id.as_str())
                .bind(lease.token)
                .bind(lease.lease_beat)
                .bind(lease.shown_until_ms)
                .complete_optional(conn)
                .await?))
    }

    /// Inserts a run. Returns false if a run with this id exists.
    pub(crate) async fn insert_run(&mut self, run: &mut Run) -> Result<bool, StoreFault> {
        const RUN: &str = "INSERT INTO run (id, kind, name, workspace, labels, priority, status, seq, token, \
            not_before_ms, state) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
            ON CONFLICT (id) DO NOTHING";
        const REQUEST: &str = "INSERT INTO request (run, body) VALUES ($1, $2)";
        let state = serialise_state(run);
        let added = on!(self, (conn, sql = RUN, RUN) => sqlx::query(sql)
            .bind(run.id.as_str())
            .bind(run.kind.as_str())
            .bind(run.name.as_str())
            .bind(run.workspace.as_str())
            .bind(serde_json::json!(run.labels).to_string())
            .bind(i64::from(run.priority))
            .bind(run.status.as_str())
            .bind(to_signed(run.seq))
            .bind(to_signed(run.token))
            .bind(to_signed(run.not_before_ms))
            .bind(state)
            .execute(conn)
            .await?
            .rows_affected());
        if added == 0 {
            return Ok(false);
        }
        on!(self, (conn, sql = REQUEST, REQUEST) => sqlx::query(sql)
            .bind(run.id.as_str())
            .bind(run.request.to_string())
            .execute(conn)
            .await
            .map(drop))?;
        Ok(true)
    }

    /// Writes a changed run, and notifies listeners.
    pub(crate) async fn update_run(
        &mut self,
        run: &mut Run,
        lease: LeaseChange<'_>,
    ) -> Result<(), StoreFault> {
        let (now_ms, state) = (self.now_ms(), serialise_state(run));
        let (change, term) = match lease {
            LeaseChange::Keep => (0_i64, None),
            LeaseChange::End => (1, None),
            LeaseChange::From(term) => (2, Some(term)),
        };
        macro_rules! update {
            ($now:expr, $told:literal) => {
                concat!(
                    "UPDATE run SET status = $2, seq = $3, token = $4, worker = $5, not_before_ms = $6, state = $7, \
                     lease_until_ms = CASE $8 WHEN 0 THEN lease_until_ms END, \
                     lease_shown_until_ms = CASE $8 WHEN 0 THEN lease_shown_until_ms WHEN 2 THEN ",
                    $now,
                    " + $10 END, \
                     lease_beat = CASE $8 WHEN 2 THEN lease_beat + 1 ELSE lease_beat END, \
                     lease_length_ms = CASE $8 WHEN 0 THEN lease_length_ms ELSE $10 END, \
                     lease_boot = CASE $8 WHEN 0 THEN lease_boot ELSE $11 END, \
                     lease_boot_until_ms = CASE $8 WHEN 0 THEN lease_boot_until_ms ELSE $12 END \
                     WHERE id = $1",
                    $told
                )
            };
        }
        on!(self, (conn, sql =
            update!("$9", ""),
            update!(postgres_now!("$9"), " RETURNING pg_notify('rep_journal', id)")) => sqlx::query(sql)
                .bind(run.id.as_str())
                .bind(run.status.as_str())
                .bind(to_signed(run.seq))
                .bind(to_signed(run.token))
                .bind(run.worker.as_deref())
                .bind(to_signed(run.not_before_ms))
                .bind(state)
                .bind(change)
                .bind(now_ms)
                .bind(term.map(|term| duration_millis(term.length)))
                .bind(term.and_then(|term| term.boot))
                .bind(term.map(|term| term.boot_until_ms))
                .execute(conn)
                .await
                .map(drop))?;
        Ok(())
    }

    /// Notifies listeners of a new run.
    pub(crate) async fn notify_new_run(&mut self, id: &RunId) -> Result<(), StoreFault> {
        if let StoreTx::Postgres(tx) = self {
            let notify = sqlx::query("SELECT pg_notify('rep_journal', $1)").bind(id.as_str());
            notify.execute(tx.connection()).await?;
        }
        Ok(())
    }

    /// Renews the lease of a locked run.
    pub(crate) async fn renew_lease(
        &mut self,
        id: &RunId,
        term: LeaseTerm<'_>,
    ) -> Result<(), StoreFault> {
        let now_ms = self.now_ms();
        macro_rules! renew {
            ($now:expr) => {
                concat!(
                    "UPDATE run SET lease_until_ms = NULL, lease_beat = lease_beat + 1, lease_length_ms = $3, \
                     lease_boot = $4, lease_boot_until_ms = $5, lease_shown_until_ms = ",
                    $now,
                    " + $3 WHERE id = $1"
                )
            };
        }
        on!(self, (conn, sql = renew!("$2"), renew!(postgres_now!("$2"))) => sqlx::query(sql)
            .bind(id.as_str())
            .bind(now_ms)
            .bind(duration_millis(term.length))
            .bind(term.boot)
            .bind(term.boot_until_ms)
            .execute(conn)
            .await
            .map(drop))?;
        Ok(())
    }

    /// Inserts or updates a step.
    pub(crate) async fn put_step(&mut self, step: &Step) -> Result<(), StoreFault> {
        const SQL: &str = "INSERT INTO step (run, number, status, state) VALUES ($1, $2, $3, $4) \
            ON CONFLICT (run, number) DO UPDATE SET status = excluded.status, state = excluded.state";
        let status = serde_json::json!(step.status);
        on!(self, (conn, sql = SQL, SQL) => sqlx::query(sql)
            .bind(step.run.as_str())
            .bind(i64::from(step.number))
            .bind(status.as_str().unwrap_or_default())
            .bind(serde_json::json!(step).to_string())
            .execute(conn)
            .await
            .map(drop))?;
        Ok(())
    }

    /// Deletes a run and everything that belongs to it.
    pub(crate) async fn delete_run(&mut self, id: &RunId) -> Result<(), StoreFault> {
        const ALL: [&str; 4] = [
            "DELETE FROM event WHERE run = $1",
            "DELETE FROM step WHERE run = $1",
            "DELETE FROM request WHERE run = $1",
            "DELETE FROM run WHERE id = $1",
        ];
        for one in ALL {
            on!(self, (conn, sql = one, one) => sqlx::query(sql)
                .bind(id.as_str())
                .execute(conn)
                .await
                .map(drop))?;
        }
        Ok(())
    }

    pub(crate) async fn insert_events(
        &mut self,
        lines: &[SerialisedEvent],
        batch: &str,
    ) -> Result<(), StoreFault> {
        const SQL: &str = "INSERT INTO event (run, seq, v, at_ms, type, payload, batch) ";
        on!(self, (conn, sql = SQL, SQL) => QueryBuilder::new(sql)
            .push_values(lines, |mut row, line| {
                row.push_bind(line.event.run.as_str())
                    .push_bind(to_signed(line.event.seq))
                    .push_bind(i64::from(line.event.v))
                    .push_bind(to_signed(line.event.at_ms))
                    .push_bind(line.event.payload.name())
                    .push_bind(line.payload.as_str())
                    .push_bind(batch);
            })
            .build()
            .execute(conn)
            .await
            .map(drop))?;
        Ok(())
    }

    /// Returns true if this batch wrote the event.
    pub(crate) async fn has_batch(
        &mut self,
        run: &RunId,
        seq: u64,
        batch: &str,
    ) -> Result<bool, StoreFault> {
        const SQL: &str = "SELECT count(*) FROM event WHERE run = $1 AND seq = $2 AND batch = $3";
        let (count,): (i64,) = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(run.as_str())
            .bind(to_signed(seq))
            .bind(batch)
            .complete_one(conn)
            .await?);
        Ok(count > 0)
    }
}

/// Converts a number for the store; both stores have only signed integers.
pub(crate) fn to_signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn duration_millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

/// Serialises a run without its request, which is stored separately.
fn serialise_state(run: &mut Run) -> String {
    let request = std::mem::take(&mut run.request);
    let state = serde_json::json!(run).to_string();
    run.request = request;
    state
}
