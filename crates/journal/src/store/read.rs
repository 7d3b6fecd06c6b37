//! Reads of runs, steps and leases outside of transactions.

use super::rows::{RunRow, SELECT_RUNS, StepRow, WITH_REQUEST, decode_step, to_unsigned};
use super::sql::{SqlRow, SqlStatement};
use super::tx::{candidate_statement, duration_millis, to_signed};
use super::{CheckedTable, JournalStore, StoreFault};
use crate::journal::{Filter, JournalPage};
use crate::lease::LeaseRow;
use crate::limits::{LEASE_AHEAD_MAX, LEASES_MAX};
use crate::queue::QueueOrder;
use crate::run::{Run, RunId, Step};

type LeaseColumns = (String, i64, i64, Option<i64>, Option<String>, Option<i64>, Option<i64>, bool);

impl JournalStore {
    pub(crate) async fn run(&self, id: &str) -> Result<Option<Run>, StoreFault> {
        if let Some(row) = self.run_row(id).await? {
            return Ok(Some(row.decode()?.run));
        }
        // The request is in a table of its own, so damage that hides the run does not hide it.
        if !self.has_request(id).await? {
            return Ok(None);
        }
        // Other processes may have created the run since, and deleted it again.
        match self.run_row(id).await? {
            Some(row) => Ok(Some(row.decode()?.run)),
            None if self.has_request(id).await? => {
                Err(StoreFault::damaged_row(format!("run {id} cannot be found")).of_run(id))
            }
            None => Ok(None),
        }
    }

    /// Returns the row of a run without verifying it.
    pub(crate) async fn run_row(&self, id: &str) -> Result<Option<RunRow>, StoreFault> {
        let sql = format!("{SELECT_RUNS}{WITH_REQUEST} WHERE r.id = $1");
        self.fetch_optional(SqlStatement::new(sql).bind(id)).await
    }

    async fn has_request(&self, id: &str) -> Result<bool, StoreFault> {
        const SQL: &str = "SELECT count(*) FROM request WHERE run = $1";
        let (count,): (i64,) = self.fetch_one(SqlStatement::new(SQL).bind(id)).await?;
        Ok(count > 0)
    }

    /// Returns true if there is a run with this id, and of this kind if one is given.
    pub(crate) async fn has_run(&self, id: &str, kind: Option<&str>) -> Result<bool, StoreFault> {
        const SQL: &str = "SELECT count(*) FROM run WHERE id = $1 AND kind = COALESCE($2, kind)";
        let (count,): (i64,) = self.fetch_one(SqlStatement::new(SQL).bind(id).bind(kind)).await?;
        Ok(count > 0)
    }

    /// Returns the ids of all runs, the newest first.
    pub(crate) async fn all_ids(&self) -> Result<Vec<String>, StoreFault> {
        const SQL: &str = "SELECT id FROM run ORDER BY number DESC";
        self.require_complete(CheckedTable::Run).await?;
        let rows: Vec<(String,)> = self.fetch_all(SqlStatement::new(SQL)).await?;
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }

    /// Returns the ids of the runs of one kind, the one with the latest event first.
    pub(crate) async fn latest_ids(
        &self,
        kind: &str,
        workspace: Option<&str>,
    ) -> Result<Vec<String>, StoreFault> {
        const SQL: &str = "SELECT r.id FROM run r \
            LEFT JOIN event e ON e.run = r.id AND e.seq = r.seq \
            WHERE r.kind = $1 AND r.workspace = COALESCE($2, r.workspace) \
            ORDER BY COALESCE(e.id, 0) DESC, r.number DESC";
        self.require_complete(CheckedTable::Run).await?;
        let rows: Vec<(String,)> =
            self.fetch_all(SqlStatement::new(SQL).bind(kind).bind(workspace)).await?;
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }

    pub(crate) async fn last_id(&self, kind: Option<&str>) -> Result<Option<String>, StoreFault> {
        const SQL: &str =
            "SELECT id FROM run WHERE kind = COALESCE($1, kind) ORDER BY number DESC LIMIT 1";
        self.require_complete(CheckedTable::Run).await?;
        let row: Option<(String,)> = self.fetch_optional(SqlStatement::new(SQL).bind(kind)).await?;
        Ok(row.map(|(id,)| id))
    }

    pub(crate) async fn ids_by_name(
        &self,
        name: &str,
        kind: Option<&str>,
        limit: i64,
    ) -> Result<Vec<String>, StoreFault> {
        const SQL: &str = "SELECT id FROM run WHERE name = $1 AND kind = COALESCE($3, kind) \
            ORDER BY number DESC LIMIT $2";
        self.require_complete(CheckedTable::Run).await?;
        let rows: Vec<(String,)> =
            self.fetch_all(SqlStatement::new(SQL).bind(name).bind(limit).bind(kind)).await?;
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }

    /// Returns the ids of one kind that start with a text, in order.
    pub(crate) async fn ids_by_prefix(
        &self,
        kind: &str,
        prefix: &str,
        limit: i64,
    ) -> Result<Vec<String>, StoreFault> {
        const SQL: &str = "SELECT id FROM run WHERE kind = $1 \
            AND substr(id, 1, length($2)) = $2 ORDER BY id LIMIT $3";
        self.require_complete(CheckedTable::Run).await?;
        let rows: Vec<(String,)> =
            self.fetch_all(SqlStatement::new(SQL).bind(kind).bind(prefix).bind(limit)).await?;
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }

    /// Returns the ids of runs whose id begins or ends with `part`.
    pub(crate) async fn ids_by_part(
        &self,
        part: &str,
        kind: Option<&str>,
        limit: i64,
    ) -> Result<Vec<String>, StoreFault> {
        const SQL: &str = "SELECT id FROM run WHERE length(id) >= length($1) \
            AND (substr(id, 1, length($1)) = $1 OR substr(id, length(id) - length($1) + 1) = $1) \
            AND kind = COALESCE($3, kind) ORDER BY number DESC LIMIT $2";
        self.require_complete(CheckedTable::Run).await?;
        let rows: Vec<(String,)> =
            self.fetch_all(SqlStatement::new(SQL).bind(part).bind(limit).bind(kind)).await?;
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }

    /// Returns a page of runs, newest first.
    pub(crate) async fn runs(
        &self,
        filter: &Filter,
        limit: u32,
    ) -> Result<JournalPage<Run>, StoreFault> {
        self.require_complete(CheckedTable::Run).await?;
        let sql = format!("{SELECT_RUNS}{WITH_REQUEST} WHERE r.number < $1");
        let before = filter.before.map_or(i64::MAX, to_signed);
        let mut query = SqlStatement::new(sql).bind(before);
        if !filter.statuses.is_empty() {
            let statuses = filter.statuses.iter().map(|status| status.as_str());
            query.push(" AND r.status IN (").push_list(statuses).push(")");
        }
        if let Some(kind) = &filter.kind {
            query.push(" AND r.kind = ").push_bind(kind.as_str());
        }
        if let Some(workspace) = &filter.workspace {
            query.push(" AND r.workspace = ").push_bind(workspace.as_str());
        }
        // One row more shows whether there is a next page.
        query.push(" ORDER BY r.number DESC LIMIT ").push_bind(i64::from(limit) + 1);
        let mut rows: Vec<RunRow> = self.fetch_all(query).await?;
        let has_more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().filter(|_| has_more).map(|row| to_unsigned(row.number));
        let rows = rows.into_iter();
        let rows = rows.map(|row| (row.id.clone(), row.decode().map(|stored| stored.run)));
        self.collect_page(rows, next).await
    }

    pub(crate) async fn steps(&self, id: &RunId) -> Result<Vec<Step>, StoreFault> {
        let rows = self.step_rows(id).await?.into_iter();
        rows.map(|row| decode_step(id, row)).collect()
    }

    /// Returns the rows of a run's steps without verifying them.
    pub(crate) async fn step_rows(&self, id: &RunId) -> Result<Vec<StepRow>, StoreFault> {
        const SQL: &str = "SELECT number, status, state, row_digest FROM step WHERE run = $1 \
            ORDER BY number";
        let rows = self.fetch_all(SqlStatement::new(SQL).bind(id.as_str())).await;
        rows.map_err(|fault| fault.of_run(id.as_str()))
    }

    /// Returns the leased runs with their worker and the wall-clock end of the lease.
    pub(crate) async fn list_leased_runs(&self) -> Result<Vec<(String, String, i64)>, StoreFault> {
        const SQL: &str = "SELECT id, worker, COALESCE(lease_shown_until_ms, lease_until_ms) AS until FROM run \
            WHERE status = 'running' AND worker IS NOT NULL \
            AND COALESCE(lease_shown_until_ms, lease_until_ms) IS NOT NULL ORDER BY number";
        self.require_complete(CheckedTable::Run).await?;
        self.fetch_all(SqlStatement::new(SQL)).await
    }

    pub(crate) async fn lease_until(&self, id: &RunId) -> Result<Option<i64>, StoreFault> {
        const SQL: &str = "SELECT COALESCE(lease_shown_until_ms, lease_until_ms) FROM run WHERE id = $1 \
            AND COALESCE(lease_shown_until_ms, lease_until_ms) IS NOT NULL";
        let row: Option<(i64,)> =
            self.fetch_optional(SqlStatement::new(SQL).bind(id.as_str())).await?;
        Ok(row.map(|(until,)| until))
    }

    /// Returns the query plan for claiming the next run, one node per line.
    pub(crate) async fn claim_plan(&self, order: QueueOrder) -> Result<String, StoreFault> {
        let dialect = self.dialect();
        let sql = format!("{}{}", dialect.explain, candidate_statement(dialect, order));
        let statement = SqlStatement::new(sql)
            .bind(None::<&str>)
            .bind("[]")
            .bind("[]")
            .bind(Some(1))
            .bind(self.store.clock().map(|_| 0))
            .bind("[]");
        let rows = self.store.fetch(statement).await?.into_iter();
        let lines: Vec<String> = rows.map(SqlRow::take_last).collect::<Result<_, _>>()?;
        Ok(lines.join("\n"))
    }

    /// Returns true if any run is queued. The order is that of a partial index on queued runs, so
    /// the query uses it.
    pub(crate) async fn has_queued(&self) -> Result<bool, StoreFault> {
        const SQL: &str = "SELECT number FROM run WHERE status = 'queued' \
            ORDER BY priority DESC, number LIMIT 1";
        let row: Option<(i64,)> = self.fetch_optional(SqlStatement::new(SQL)).await?;
        Ok(row.is_some())
    }

    /// Returns all leases. A lease whose end is farther ahead than its length is also over by the
    /// wall clock: the clock was set back.
    pub(crate) async fn list_leases(&self) -> Result<Vec<LeaseRow>, StoreFault> {
        let sql = format!(
            "SELECT id, token, lease_beat, lease_length_ms, lease_boot, lease_boot_until_ms, \
             COALESCE(lease_shown_until_ms, lease_until_ms) AS shown_until_ms, \
             COALESCE(COALESCE(lease_shown_until_ms, lease_until_ms) - {now} \
             NOT BETWEEN 1 AND COALESCE(lease_length_ms, $2), FALSE) AS is_over_by_wall_clock \
             FROM run WHERE status = 'running' AND worker IS NOT NULL \
             ORDER BY number LIMIT $3",
            now = (self.dialect().now)("$1")
        );
        let statement = SqlStatement::new(sql)
            .bind(self.store.clock().map(|clock| to_signed(clock())))
            .bind(duration_millis(LEASE_AHEAD_MAX))
            .bind(i64::from(LEASES_MAX));
        let rows: Vec<LeaseColumns> = self.fetch_all(statement).await?;
        Ok(rows.into_iter().map(decode_lease).collect())
    }
}

fn decode_lease(row: LeaseColumns) -> LeaseRow {
    let (id, token, lease_beat, lease_length_ms, lease_boot, lease_boot_until_ms, shown, over) =
        row;
    LeaseRow {
        id,
        token,
        lease_beat,
        lease_length_ms,
        lease_boot,
        lease_boot_until_ms,
        shown_until_ms: shown,
        is_over_by_wall_clock: over,
    }
}
