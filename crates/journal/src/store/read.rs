//! Reads outside of transactions, and the conversion of rows to runs, steps and events.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::row_digest::{
    EventColumns, NO_PREDECESSOR, RowDigest, event_digest, request_digest, run_digest, step_digest,
};
use super::sql::{FromSqlRow, IdentifiedRow, SqlRow, SqlStatement};
use super::tx::{candidate_statement, duration_millis, to_signed};
use super::{CheckedTable, JournalStore, StoreFault};
use crate::error::JournalError;
use crate::event::{EVENT_VERSION, Event, Payload};
use crate::journal::{EventCursor, EventPage, Filter, JournalPage};
use crate::lease::LeaseRow;
use crate::limits::{LEASE_AHEAD_MAX, LEASES_MAX};
use crate::queue::QueueOrder;
use crate::run::{Run, RunId, Step};
use crate::sanitise;

/// The prefix of the name of a note that stands in for an event this version cannot read.
pub(crate) const UNKNOWN: &str = "unknown:";

/// The columns of a run that the queue uses. They repeat parts of its state.
#[derive(Debug, PartialEq)]
struct QueueColumns {
    status: String,
    seq: i64,
    token: i64,
    worker: Option<String>,
    not_before_ms: i64,
    kind: String,
    name: String,
    workspace: String,
    labels: String,
    priority: i64,
}

impl QueueColumns {
    /// Returns the columns that a run with this state must have.
    fn of_run(run: &Run) -> Self {
        QueueColumns {
            status: run.status.as_str().to_owned(),
            seq: to_signed(run.seq),
            token: to_signed(run.token),
            worker: run.worker.clone(),
            not_before_ms: to_signed(run.not_before_ms),
            kind: run.kind.clone(),
            name: run.name.clone(),
            workspace: run.workspace.clone(),
            labels: json!(run.labels).to_string(),
            priority: run.priority.into(),
        }
    }
}

/// The start of every query for runs. Its columns are those of [`RunRow`]; `q` is the request.
pub(crate) const SELECT_RUNS: &str = "SELECT r.number, r.id, r.state, r.head, r.row_digest, \
    q.body, q.row_digest, r.status, r.seq, r.token, r.worker, r.not_before_ms, r.kind, r.name, \
    r.workspace, r.labels, r.priority FROM run r";
pub(crate) const WITH_REQUEST: &str = " LEFT JOIN request q ON q.run = r.id";

/// A run as stored, with its request.
pub(crate) struct RunRow {
    pub(crate) number: i64,
    pub(crate) id: String,
    /// An error if one of the values cannot be read.
    cells: Result<RunCells, sqlx::Error>,
}

struct RunCells {
    state: String,
    head: RowDigest,
    row_digest: RowDigest,
    body: Option<String>,
    body_digest: Option<RowDigest>,
    columns: QueueColumns,
}

/// A run that was read and verified, and the digest of its last event.
pub(crate) struct StoredRun {
    pub(crate) run: Run,
    pub(crate) head: RowDigest,
}

impl FromSqlRow for RunRow {
    fn from_row(mut row: SqlRow) -> Result<Self, sqlx::Error> {
        let number = row.take()?;
        let IdentifiedRow { id, cells } = FromSqlRow::from_row(row)?;
        Ok(RunRow { number, id, cells })
    }
}

impl FromSqlRow for RunCells {
    fn from_row(mut row: SqlRow) -> Result<Self, sqlx::Error> {
        Ok(RunCells {
            state: row.take()?,
            head: row.take()?,
            row_digest: row.take()?,
            body: row.take()?,
            body_digest: row.take()?,
            columns: QueueColumns {
                status: row.take()?,
                seq: row.take()?,
                token: row.take()?,
                worker: row.take()?,
                not_before_ms: row.take()?,
                kind: row.take()?,
                name: row.take()?,
                workspace: row.take()?,
                labels: row.take()?,
                priority: row.take()?,
            },
        })
    }
}

impl RunRow {
    /// Verifies the row and decodes the run.
    pub(crate) fn decode(self) -> Result<StoredRun, StoreFault> {
        let RunRow { id, cells, .. } = self;
        let decoded = cells.map_err(StoreFault::from).and_then(|cells| cells.decode(&id));
        decoded.map_err(|fault| fault.of_run(&id))
    }

    /// Returns the number of the run's events and the digest of the last one, unverified. `None` if
    /// they cannot be read.
    pub(crate) fn chain_end(&self) -> Option<(u64, RowDigest)> {
        let cells = self.cells.as_ref().ok()?;
        Some((to_unsigned(cells.columns.seq), cells.head.clone()))
    }
}

impl RunCells {
    fn decode(self, stored_id: &str) -> Result<StoredRun, StoreFault> {
        let id = sanitise::name(stored_id);
        require_fit(run_digest(stored_id, &self.state, &self.head) == self.row_digest, || {
            format!("the state of run {id} does not fit its digest")
        })?;
        let body = self.body.unwrap_or_default();
        require_fit(Some(request_digest(stored_id, &body)) == self.body_digest, || {
            format!("the request of run {id} does not fit its digest")
        })?;
        let mut run: Run = decode_json(&id, "its state", &self.state)?;
        require_fit(
            run.id.as_str() == stored_id && QueueColumns::of_run(&run) == self.columns,
            || format!("the columns of run {id} do not fit its state"),
        )?;
        run.request = decode_json(&id, "its request", &body)?;
        Ok(StoredRun { run, head: self.head })
    }
}

/// An event as stored.
pub(crate) struct EventRow {
    run: String,
    pub(crate) seq: i64,
    v: i64,
    at_ms: i64,
    name: String,
    payload: String,
    prev: RowDigest,
    pub(crate) row_digest: RowDigest,
}

/// An event of the stream of all runs. The event is an error if one of its values cannot be read.
struct StreamRow {
    place: EventCursor,
    run: String,
    event: Result<EventRow, sqlx::Error>,
}

impl FromSqlRow for StreamRow {
    fn from_row(mut row: SqlRow) -> Result<Self, sqlx::Error> {
        let place = EventCursor { xact: to_unsigned(row.take()?), id: to_unsigned(row.take()?) };
        let run: String = row.take()?;
        Ok(StreamRow { event: EventRow::from_cells(run.clone(), row), place, run })
    }
}

impl StreamRow {
    /// Verifies the event without the event before it, and decodes it.
    fn decode(self) -> Result<Event, StoreFault> {
        let run = RunId::known(self.run);
        let event = self.event.map_err(|error| StoreFault::from(error).of_run(run.as_str()))?;
        if event.fits_digest() {
            return Ok(event.decode());
        }
        let broken = ChainBreak { seq: to_unsigned(event.seq), problem: OTHER_DIGEST };
        Err(chain_fault(&run, &broken))
    }
}

impl FromSqlRow for EventRow {
    fn from_row(row: SqlRow) -> Result<Self, sqlx::Error> {
        let StreamRow { event, .. } = StreamRow::from_row(row)?;
        event
    }
}

impl EventRow {
    fn from_cells(run: String, mut row: SqlRow) -> Result<Self, sqlx::Error> {
        Ok(EventRow {
            run,
            seq: row.take()?,
            v: row.take()?,
            at_ms: row.take()?,
            name: row.take()?,
            payload: row.take()?,
            prev: row.take()?,
            row_digest: row.take()?,
        })
    }
}

impl EventRow {
    fn columns(&self) -> EventColumns<'_> {
        EventColumns {
            run: &self.run,
            seq: self.seq,
            v: self.v,
            at_ms: self.at_ms,
            name: &self.name,
            payload: &self.payload,
        }
    }

    pub(crate) fn fits_digest(&self) -> bool {
        event_digest(&self.prev, &self.columns()) == self.row_digest
    }

    /// Decodes an event that was verified. An event written by a later version becomes a note, so
    /// that it can be shown and the events after it can be read.
    fn decode(self) -> Event {
        let known = if self.v <= i64::from(EVENT_VERSION) {
            serde_json::from_str::<Payload>(&self.payload).ok()
        } else {
            None
        };
        let unknown = || Payload::Note {
            name: format!("{UNKNOWN}{}", self.name),
            data: serde_json::from_str(&self.payload).unwrap_or(Value::String(self.payload)),
        };
        Event {
            v: u32::try_from(self.v).unwrap_or(u32::MAX),
            run: RunId::known(self.run),
            seq: to_unsigned(self.seq),
            at_ms: to_unsigned(self.at_ms),
            payload: known.unwrap_or_else(unknown),
        }
    }
}

/// The first event of a run that is damaged or missing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChainBreak {
    pub(crate) seq: u64,
    pub(crate) problem: &'static str,
}

const OTHER_DIGEST: &str = "does not fit its digest";
pub(crate) const MISSING_EVENT: &str = "is missing";
pub(crate) const OTHER_LAST_EVENT: &str = "is not the last one that the run has recorded";

/// Returns the first event that does not continue the chain after event `after_seq`. `before` is the
/// digest of that event, if it is known.
pub(crate) fn find_chain_break(
    after_seq: u64,
    before: Option<&[u8]>,
    rows: &[EventRow],
) -> Option<ChainBreak> {
    let mut before = before.or((after_seq == 0).then_some(&NO_PREDECESSOR[..]));
    for (row, seq) in rows.iter().zip(after_seq.saturating_add(1)..) {
        if to_unsigned(row.seq) != seq {
            return Some(ChainBreak { seq, problem: MISSING_EVENT });
        }
        if !row.fits_digest() {
            return Some(ChainBreak { seq, problem: OTHER_DIGEST });
        }
        if before.is_some_and(|before| before != row.prev) {
            return Some(ChainBreak { seq, problem: "does not follow the event before it" });
        }
        before = Some(&row.row_digest);
    }
    None
}

/// A step as stored: its number, status, state and digest.
pub(crate) type StepRow = (i64, String, String, RowDigest);
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

    /// Returns the events of a run after the one with this number, and fails if one of them is
    /// damaged or missing.
    pub(crate) async fn events(
        &self,
        id: &RunId,
        after_seq: u64,
        limit: u32,
    ) -> Result<Vec<Event>, StoreFault> {
        let before = self.event_before(id, after_seq).await?;
        let mut rows = self.event_rows(id, after_seq, limit).await?;
        if rows.len() < limit as usize {
            let (end, head) = self.chain_end(id).await?;
            let last_seq =
                |rows: &[EventRow]| rows.last().map_or(to_signed(after_seq), |row| row.seq);
            if last_seq(&rows) < end {
                // Other processes may have appended events since. They are there by now.
                rows = self.event_rows(id, after_seq, limit).await?;
            }
            // A run that was deleted meanwhile has no events any more.
            let is_short = last_seq(&rows) < end && rows.len() < limit as usize;
            if is_short && self.chain_end(id).await?.0 >= end {
                let seq = after_seq + rows.len() as u64 + 1;
                return Err(chain_fault(id, &ChainBreak { seq, problem: MISSING_EVENT }));
            }
            if let Some(last) = rows.last().filter(|last| last.seq == end)
                && last.row_digest != head
            {
                let broken = ChainBreak { seq: to_unsigned(last.seq), problem: OTHER_LAST_EVENT };
                return Err(chain_fault(id, &broken));
            }
        }
        if let Some(broken) = find_chain_break(after_seq, before.as_deref(), &rows) {
            return Err(chain_fault(id, &broken));
        }
        Ok(rows.into_iter().map(EventRow::decode).collect())
    }

    /// Returns the digest of an event, which the next one is chained to. `None` if there is no such
    /// event.
    async fn event_before(&self, id: &RunId, seq: u64) -> Result<Option<RowDigest>, StoreFault> {
        const SQL: &str = "SELECT row_digest FROM event WHERE run = $1 AND seq = $2";
        if seq == 0 {
            return Ok(None);
        }
        let statement = SqlStatement::new(SQL).bind(id.as_str()).bind(to_signed(seq));
        let row: Option<(RowDigest,)> =
            self.fetch_optional(statement).await.map_err(|fault| fault.of_run(id.as_str()))?;
        Ok(row.map(|(digest,)| digest))
    }

    /// Returns the rows of a run's events without verifying them.
    pub(crate) async fn event_rows(
        &self,
        id: &RunId,
        after_seq: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>, StoreFault> {
        const SQL: &str = "SELECT id, id, run, seq, v, at_ms, type, payload, prev, row_digest \
            FROM event WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        let statement = SqlStatement::new(SQL)
            .bind(id.as_str())
            .bind(to_signed(after_seq))
            .bind(i64::from(limit));
        self.fetch_all(statement).await.map_err(|fault| fault.of_run(id.as_str()))
    }

    /// Returns the number and the digest of the last event by the row of its run; 0 if there is no
    /// such run.
    async fn chain_end(&self, id: &RunId) -> Result<(i64, RowDigest), StoreFault> {
        const SQL: &str = "SELECT seq, head FROM run WHERE id = $1";
        let row = self.fetch_optional(SqlStatement::new(SQL).bind(id.as_str())).await;
        let row: Option<(i64, RowDigest)> = row.map_err(|fault| fault.of_run(id.as_str()))?;
        Ok(row.unwrap_or_default())
    }

    /// Returns the number of the last event of a run's kind; 0 if there is none.
    pub(crate) async fn last_kind_seq(&self, id: &RunId) -> Result<u64, StoreFault> {
        const SQL: &str = "SELECT seq FROM event WHERE run = $1 AND type = 'KIND_EVENT' \
            ORDER BY seq DESC LIMIT 1";
        let row: Option<(i64,)> =
            self.fetch_optional(SqlStatement::new(SQL).bind(id.as_str())).await?;
        Ok(row.map_or(0, |(seq,)| to_unsigned(seq)))
    }

    /// Returns events of all runs, and names the damaged ones. On PostgreSQL, transactions commit in a
    /// different order than they began, so only events are returned that no later commit can precede.
    pub(crate) async fn tail_events(
        &self,
        after: EventCursor,
        limit: u32,
    ) -> Result<EventPage, StoreFault> {
        self.require_complete(CheckedTable::Event).await?;
        let dialect = self.dialect();
        let sql = format!(
            "SELECT {}, id, run, seq, v, at_ms, type, payload, prev, row_digest FROM event \
             WHERE {} ORDER BY {} LIMIT $3",
            dialect.event_transaction, dialect.event_follows, dialect.event_order
        );
        let statement = SqlStatement::new(sql)
            .bind(to_signed(after.xact))
            .bind(to_signed(after.id))
            .bind(i64::from(limit));
        let rows: Vec<StreamRow> = self.fetch_all(statement).await?;
        if !is_ascending(after, rows.iter().map(|row| row.place)) {
            return Err(StoreFault::damaged_row("the events of all runs are out of order"));
        }
        let next = rows.last().map_or(after, |row| row.place);
        let rows = rows.into_iter().map(|row| {
            let (run, place) = (row.run.clone(), row.place);
            (run, row.decode().map(|event| (place, event)))
        });
        let JournalPage { items, damaged, .. } = self.collect_page(rows, None).await?;
        Ok(EventPage { events: items, damaged, next })
    }

    /// Returns the cursor after the last event that [`JournalStore::tail_events`] would currently return.
    pub(crate) async fn tail_end(&self) -> Result<EventCursor, StoreFault> {
        let statement = SqlStatement::new(self.dialect().last_event);
        let (xact, id): (i64, i64) = self.fetch_one(statement).await?;
        Ok(EventCursor { xact: to_unsigned(xact), id: to_unsigned(id) })
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

/// Returns true if the numbers are strictly ascending and larger than `after`.
fn is_ascending<T: PartialOrd + Copy>(after: T, numbers: impl Iterator<Item = T>) -> bool {
    let mut last = after;
    numbers.into_iter().all(|number| std::mem::replace(&mut last, number) < number)
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

/// Verifies a step and decodes it.
pub(crate) fn decode_step(
    run: &RunId,
    (number, status, state, row_digest): StepRow,
) -> Result<Step, StoreFault> {
    require_fit(step_digest(run.as_str(), number, &status, &state) == row_digest, || {
        format!("step {number} of run {run} does not fit its digest")
    })
    .map_err(|fault| fault.of_run(run.as_str()))?;
    Ok(decode_json(run.as_str(), &format!("step {number}"), &state)?)
}

fn chain_fault(run: &RunId, broken: &ChainBreak) -> StoreFault {
    let name = sanitise::name(run.as_str());
    StoreFault::damaged_row(format!("event {} of run {name} {}", broken.seq, broken.problem))
        .of_run(run.as_str())
}

/// Fails if a row does not fit its digest. `what` names the row.
pub(crate) fn require_fit(fits: bool, what: impl FnOnce() -> String) -> Result<(), StoreFault> {
    if fits { Ok(()) } else { Err(StoreFault::damaged_row(what())) }
}

pub(crate) fn decode_json<T: DeserializeOwned>(
    run: &str,
    what: &str,
    text: &str,
) -> Result<T, JournalError> {
    serde_json::from_str(text).map_err(|source| JournalError::Unreadable {
        run: run.to_owned(),
        what: what.to_owned(),
        source,
    })
}

pub(crate) fn to_unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
