//! Write transactions, on either store.

use std::collections::BTreeSet;
use std::time::Duration;

use super::row_digest::{RowDigest, request_digest, run_digest, step_digest};
use super::rows::{RunRow, SELECT_RUNS, StepRow, StoredRun, WITH_REQUEST, decode_step};
use super::sql::{FromSqlRow, SqlConnection, SqlDialect, SqlStatement, SqlValue, fetch_all};
use super::{DamagedRuns, JournalClock, SqlTransaction, StoreFault};
use crate::event::Event;
use crate::lease::LeaseRow;
use crate::queue::{ClaimRules, QueueOrder, QueueWorker};
use crate::run::{Run, RunId, Step};
use crate::sanitise;

/// A write transaction.
pub(crate) struct StoreTx {
    transaction: Box<dyn SqlTransaction>,
    dialect: &'static SqlDialect,
    /// `None` if the database has its own clock.
    clock: Option<JournalClock>,
    damaged_runs: DamagedRuns,
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

/// An event with its serialised payload and its place in the chain of digests.
pub(crate) struct SerialisedEvent {
    pub(crate) event: Event,
    pub(crate) payload: String,
    /// The digest of the event before it.
    pub(crate) prev: RowDigest,
    pub(crate) row_digest: RowDigest,
}

/// The key of the advisory lock: an arbitrary number that is used for nothing else.
const CAP_LOCK: i64 = 0x7265_705f_6361_7000;

/// Returns the query for the next run in the queue. Parameters: `$1` only this run, `$2` kinds, `$3`
/// labels, `$4` maximum per workspace, `$5` now, `$6` excluded runs. Each order has an index of the
/// queued runs alone, so that runs that have ended are never scanned.
pub(crate) fn candidate_statement(dialect: &SqlDialect, order: QueueOrder) -> String {
    let (index, order) = match order {
        QueueOrder::Fifo => ("run_oldest_first", "r.priority DESC, r.number"),
        QueueOrder::NewestFirst => ("run_newest_first", "r.priority DESC, r.number DESC"),
    };
    format!(
        "{SELECT_RUNS}{use_index}{WITH_REQUEST} WHERE r.status = 'queued' \
         AND (CAST($1 AS TEXT) IS NULL OR r.id = $1) AND r.not_before_ms <= {now} \
         AND r.id NOT IN ({excluded}) AND r.kind IN ({kinds}) AND {labels} \
         AND (CAST($4 AS BIGINT) IS NULL OR $4 > (SELECT count(*) FROM run AS o{under_way} \
             WHERE o.status = 'running' AND o.worker IS NOT NULL \
             AND o.workspace = r.workspace)) \
         ORDER BY {order} LIMIT 1{lock}",
        use_index = (dialect.use_index)(index),
        under_way = (dialect.use_index)("run_under_way"),
        now = (dialect.now)("$5"),
        excluded = (dialect.json_texts)("$6"),
        kinds = (dialect.json_texts)("$2"),
        labels = (dialect.json_within)("r.labels", "$3"),
        lock = dialect.lock_free_run,
    )
}

impl StoreTx {
    pub(crate) fn new(
        transaction: Box<dyn SqlTransaction>,
        dialect: &'static SqlDialect,
        clock: Option<JournalClock>,
        damaged_runs: DamagedRuns,
    ) -> Self {
        StoreTx { transaction, dialect, clock, damaged_runs }
    }

    /// The wall clock in milliseconds since 1970; `None` if the database has its own.
    fn now_ms(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| to_signed(clock()))
    }

    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        self.transaction.commit().await
    }

    /// Rolls back and waits for it. A transaction that is only dropped holds its row locks a moment
    /// longer, and a claim in that moment skips the locked run and finds nothing.
    pub(crate) async fn rollback(self) -> Result<(), sqlx::Error> {
        self.transaction.rollback().await
    }

    /// Returns the number of changed rows.
    pub(super) async fn execute(&mut self, statement: SqlStatement<'_>) -> Result<u64, StoreFault> {
        Ok(self.transaction.execute(statement).await?)
    }

    pub(super) async fn fetch_all<T: FromSqlRow>(
        &mut self,
        statement: SqlStatement<'_>,
    ) -> Result<Vec<T>, StoreFault> {
        let connection: &mut dyn SqlConnection = &mut *self.transaction;
        Ok(fetch_all(connection, statement).await?)
    }

    /// Returns the first row, if there is one.
    pub(super) async fn fetch_optional<T: FromSqlRow>(
        &mut self,
        statement: SqlStatement<'_>,
    ) -> Result<Option<T>, StoreFault> {
        Ok(self.fetch_all(statement).await?.into_iter().next())
    }

    /// Returns the first row; no row is an error.
    pub(super) async fn fetch_one<T: FromSqlRow>(
        &mut self,
        statement: SqlStatement<'_>,
    ) -> Result<T, StoreFault> {
        Ok(self.fetch_optional(statement).await?.ok_or(sqlx::Error::RowNotFound)?)
    }

    /// Locks a name until the transaction ends. A store with a single writer needs no locks.
    pub(super) async fn lock_name(&mut self, name: i64) -> Result<(), StoreFault> {
        if let Some(sql) = self.dialect.lock_name {
            self.execute(SqlStatement::new(sql).bind(name)).await?;
        }
        Ok(())
    }

    /// Returns the runs in which this process has found a damaged row.
    pub(crate) fn damaged_runs(&self) -> BTreeSet<String> {
        self.damaged_runs.ids()
    }

    /// Verifies a row and decodes a run that is about to be written. Nothing is appended to a run with
    /// a damaged row, even if the row of the run itself is sound.
    pub(crate) fn decode_run(&self, row: RunRow) -> Result<StoredRun, StoreFault> {
        if self.damaged_runs.contains(&row.id) {
            let id = sanitise::name(&row.id);
            let what = format!("a row of run {id} is damaged, so nothing is added to it");
            return Err(StoreFault::damaged_row(what).of_run(&row.id));
        }
        row.decode()
    }

    /// Returns a run and locks it until the transaction ends.
    pub(crate) async fn run(&mut self, id: &RunId) -> Result<Option<StoredRun>, StoreFault> {
        let row = self.run_row(id).await?;
        row.map(|row| self.decode_run(row)).transpose()
    }

    /// Returns the row of a run without verifying it, and locks the run until the transaction ends.
    pub(crate) async fn run_row(&mut self, id: &RunId) -> Result<Option<RunRow>, StoreFault> {
        let lock = self.dialect.lock_run;
        let sql = format!("{SELECT_RUNS}{WITH_REQUEST} WHERE r.id = $1{lock}");
        self.fetch_optional(SqlStatement::new(sql).bind(id.as_str())).await
    }

    /// Returns the step in progress of a run.
    pub(crate) async fn open_step(&mut self, run: &Run) -> Result<Option<Step>, StoreFault> {
        let Some(number) = run.open_step else { return Ok(None) };
        const SQL: &str =
            "SELECT number, status, state, row_digest FROM step WHERE run = $1 AND number = $2";
        let row: Option<StepRow> = self
            .fetch_optional(SqlStatement::new(SQL).bind(run.id.as_str()).bind(i64::from(number)))
            .await?;
        row.map(|row| decode_step(&run.id, row)).transpose()
    }

    /// Locks claiming under limits on concurrent runs. Without the lock, two workers could count
    /// the same runs.
    pub(crate) async fn lock_caps(&mut self) -> Result<(), StoreFault> {
        self.lock_name(CAP_LOCK).await
    }

    /// Returns the number of runs that workers carry out. Attended runs have no worker, so they
    /// don't count towards the caps.
    pub(crate) async fn running(&mut self) -> Result<u64, StoreFault> {
        const SQL: &str =
            "SELECT count(*) FROM run WHERE status = 'running' AND worker IS NOT NULL";
        let (count,): (i64,) = self.fetch_one(SqlStatement::new(SQL)).await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Returns and locks the next run in the queue that meets the conditions.
    pub(crate) async fn next_candidate(
        &mut self,
        wanted: &ClaimConditions<'_>,
    ) -> Result<Option<RunRow>, StoreFault> {
        let statement = SqlStatement::new(candidate_statement(self.dialect, wanted.rules.order))
            .bind(wanted.only.map(RunId::as_str))
            .bind(serde_json::json!(wanted.worker.kinds).to_string())
            .bind(serde_json::json!(wanted.worker.labels).to_string())
            .bind(wanted.rules.per_workspace_max.map(i64::from))
            .bind(self.now_ms())
            .bind(serde_json::json!(wanted.except).to_string());
        self.fetch_optional(statement).await
    }

    /// Returns and locks the run of a lease, or `None` if the lease has changed since it was read
    /// or another process is putting the run back.
    pub(crate) async fn lock_unchanged_lease(
        &mut self,
        lease: &LeaseRow,
    ) -> Result<Option<RunRow>, StoreFault> {
        let sql = format!(
            "{SELECT_RUNS}{WITH_REQUEST} \
             WHERE r.id = $1 AND r.status = 'running' AND r.token = $2 AND r.lease_beat = $3 \
             AND COALESCE(r.lease_shown_until_ms, r.lease_until_ms) IS NOT DISTINCT FROM $4{lock}",
            lock = self.dialect.lock_free_run
        );
        let statement = SqlStatement::new(sql)
            .bind(lease.id.as_str())
            .bind(lease.token)
            .bind(lease.lease_beat)
            .bind(lease.shown_until_ms);
        self.fetch_optional(statement).await
    }

    /// Inserts a run whose last event has the digest `head`. Returns false if a run with this id
    /// exists.
    pub(crate) async fn insert_run(
        &mut self,
        run: &mut Run,
        head: &[u8],
    ) -> Result<bool, StoreFault> {
        const RUN: &str = "INSERT INTO run (id, kind, name, workspace, labels, priority, status, seq, token, \
            not_before_ms, state, head, row_digest) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
            ON CONFLICT (id) DO NOTHING";
        const REQUEST: &str = "INSERT INTO request (run, body, row_digest) VALUES ($1, $2, $3)";
        let state = serialise_state(run);
        let row_digest = run_digest(run.id.as_str(), &state, head);
        let added = self
            .execute(
                SqlStatement::new(RUN)
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
                    .bind(head)
                    .bind(row_digest),
            )
            .await?;
        if added == 0 {
            return Ok(false);
        }
        let body = run.request.to_string();
        let body_digest = request_digest(run.id.as_str(), &body);
        self.execute(SqlStatement::new(REQUEST).bind(run.id.as_str()).bind(body).bind(body_digest))
            .await?;
        Ok(true)
    }

    /// Writes a changed run whose last event has the digest `head`, and notifies listeners.
    pub(crate) async fn update_run(
        &mut self,
        run: &mut Run,
        head: &[u8],
        lease: LeaseChange<'_>,
    ) -> Result<(), StoreFault> {
        let (now_ms, state) = (self.now_ms(), serialise_state(run));
        let row_digest = run_digest(run.id.as_str(), &state, head);
        let (change, term) = match lease {
            LeaseChange::Keep => (0_i64, None),
            LeaseChange::End => (1, None),
            LeaseChange::From(term) => (2, Some(term)),
        };
        let sql = format!(
            "UPDATE run SET status = $2, seq = $3, token = $4, worker = $5, not_before_ms = $6, state = $7, \
             lease_until_ms = CASE $8 WHEN 0 THEN lease_until_ms END, \
             lease_shown_until_ms = CASE $8 WHEN 0 THEN lease_shown_until_ms WHEN 2 THEN {now} + $10 END, \
             lease_beat = CASE $8 WHEN 2 THEN lease_beat + 1 ELSE lease_beat END, \
             lease_length_ms = CASE $8 WHEN 0 THEN lease_length_ms ELSE $10 END, \
             lease_boot = CASE $8 WHEN 0 THEN lease_boot ELSE $11 END, \
             lease_boot_until_ms = CASE $8 WHEN 0 THEN lease_boot_until_ms ELSE $12 END, \
             head = $13, row_digest = $14 WHERE id = $1{notify}",
            now = (self.dialect.now)("$9"),
            notify = self.dialect.and_notify
        );
        let statement = SqlStatement::new(sql)
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
            .bind(head)
            .bind(row_digest);
        self.execute(statement).await?;
        Ok(())
    }

    /// Notifies listeners of a new run.
    pub(crate) async fn notify_new_run(&mut self, id: &RunId) -> Result<(), StoreFault> {
        if let Some(sql) = self.dialect.notify_run {
            self.execute(SqlStatement::new(sql).bind(id.as_str())).await?;
        }
        Ok(())
    }

    /// Renews the lease of a locked run.
    pub(crate) async fn renew_lease(
        &mut self,
        id: &RunId,
        term: LeaseTerm<'_>,
    ) -> Result<(), StoreFault> {
        let sql = format!(
            "UPDATE run SET lease_until_ms = NULL, lease_beat = lease_beat + 1, lease_length_ms = $3, \
             lease_boot = $4, lease_boot_until_ms = $5, lease_shown_until_ms = {now} + $3 WHERE id = $1",
            now = (self.dialect.now)("$2")
        );
        let statement = SqlStatement::new(sql)
            .bind(id.as_str())
            .bind(self.now_ms())
            .bind(duration_millis(term.length))
            .bind(term.boot)
            .bind(term.boot_until_ms);
        self.execute(statement).await?;
        Ok(())
    }

    /// Inserts or updates a step.
    pub(crate) async fn put_step(&mut self, step: &Step) -> Result<(), StoreFault> {
        const SQL: &str = "INSERT INTO step (run, number, status, state, row_digest) \
            VALUES ($1, $2, $3, $4, $5) ON CONFLICT (run, number) DO UPDATE \
            SET status = excluded.status, state = excluded.state, row_digest = excluded.row_digest";
        let (number, status) = (i64::from(step.number), serde_json::json!(step.status));
        let status = status.as_str().unwrap_or_default();
        let state = serde_json::json!(step).to_string();
        let row_digest = step_digest(step.run.as_str(), number, status, &state);
        self.execute(
            SqlStatement::new(SQL)
                .bind(step.run.as_str())
                .bind(number)
                .bind(status)
                .bind(state)
                .bind(row_digest),
        )
        .await?;
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
            self.execute(SqlStatement::new(one).bind(id.as_str())).await?;
        }
        Ok(())
    }

    pub(crate) async fn insert_events(
        &mut self,
        lines: &[SerialisedEvent],
        batch: &str,
    ) -> Result<(), StoreFault> {
        let mut insert = SqlStatement::new(
            "INSERT INTO event (run, seq, v, at_ms, type, payload, batch, prev, row_digest) VALUES ",
        );
        for (at, line) in lines.iter().enumerate() {
            insert.push(if at == 0 { "(" } else { ", (" }).push_list([
                SqlValue::from(line.event.run.as_str()),
                to_signed(line.event.seq).into(),
                i64::from(line.event.v).into(),
                to_signed(line.event.at_ms).into(),
                line.event.payload.name().into(),
                line.payload.as_str().into(),
                batch.into(),
                line.prev.as_slice().into(),
                line.row_digest.as_slice().into(),
            ]);
            insert.push(")");
        }
        self.execute(insert).await?;
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
        let (count,): (i64,) = self
            .fetch_one(SqlStatement::new(SQL).bind(run.as_str()).bind(to_signed(seq)).bind(batch))
            .await?;
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
