//! Reads outside of transactions, and the conversion of rows to runs, steps and events.

use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::{AssertSqlSafe, QueryBuilder};

use super::complete_query::CompleteAnswer;
use super::tx::{self, to_signed};
use super::{JournalStore, StoreFault, on};
use crate::error::JournalError;
use crate::event::{EVENT_VERSION, Event, Payload};
use crate::journal::{EventCursor, Filter};
use crate::lease::{LeaseRow, StoreReach};
use crate::limits::{LEASE_AHEAD_MAX, LEASES_MAX};
use crate::queue::QueueOrder;
use crate::run::{Run, RunId, Step};

/// The prefix of the name of a note that stands in for an event this version cannot read.
pub(crate) const UNKNOWN: &str = "unknown:";

/// The columns of a run that the queue uses. They repeat parts of its state.
#[derive(Debug, PartialEq)]
pub(crate) struct QueueColumns {
    pub(crate) status: String,
    pub(crate) seq: i64,
    pub(crate) token: i64,
    pub(crate) worker: Option<String>,
    pub(crate) not_before_ms: i64,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) workspace: String,
    pub(crate) labels: String,
    pub(crate) priority: i64,
    pub(crate) has_lease: bool,
}

/// The id, state and request of a run.
pub(crate) type StoredRunRow = (String, String, String);
type ColumnsRow =
    (String, i64, i64, Option<String>, i64, String, String, String, String, i64, bool);
type LeaseColumns = (String, i64, i64, Option<i64>, Option<String>, Option<i64>, Option<i64>, bool);
type EventRow = (i64, i64, String, i64, i64, i64, String, String);

impl JournalStore {
    pub(crate) async fn run(&self, id: &str) -> Result<Option<Run>, StoreFault> {
        const SQL: &str = "SELECT r.id, r.state, q.body FROM run r JOIN request q ON q.run = r.id WHERE r.id = $1";
        let row = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(id)
            .complete_optional(conn)
            .await?);
        Ok(row.map(|row| decode_run(&row)).transpose()?)
    }

    pub(crate) async fn last_id(&self, kind: Option<&str>) -> Result<Option<String>, StoreFault> {
        const SQL: &str =
            "SELECT id FROM run WHERE kind = COALESCE($1, kind) ORDER BY number DESC LIMIT 1";
        let row: Option<(String,)> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(kind)
            .complete_optional(conn)
            .await?);
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
        let rows: Vec<(String,)> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(name)
            .bind(limit)
            .bind(kind)
            .complete_all(conn)
            .await?);
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
        let rows: Vec<(String,)> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(part)
            .bind(limit)
            .bind(kind)
            .complete_all(conn)
            .await?);
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }

    /// Returns runs, newest first, with their row numbers.
    pub(crate) async fn runs(
        &self,
        filter: &Filter,
        limit: u32,
    ) -> Result<Vec<(i64, Run)>, StoreFault> {
        const SQL: &str = "SELECT r.number, r.id, r.state, q.body FROM run r \
            JOIN request q ON q.run = r.id WHERE r.number < ";
        let rows: Vec<(i64, String, String, String)> = on!(self, (conn, sql = SQL, SQL) => {
            let mut query = QueryBuilder::new(sql);
            query.push_bind(filter.before.map_or(i64::MAX, to_signed));
            if !filter.statuses.is_empty() {
                query.push(" AND r.status IN (");
                let mut words = query.separated(", ");
                for status in &filter.statuses {
                    words.push_bind(status.as_str());
                }
                query.push(")");
            }
            if let Some(kind) = &filter.kind {
                query.push(" AND r.kind = ").push_bind(kind.as_str());
            }
            if let Some(workspace) = &filter.workspace {
                query.push(" AND r.workspace = ").push_bind(workspace.as_str());
            }
            query.push(" ORDER BY r.number DESC LIMIT ").push_bind(i64::from(limit));
            query.build_query_as().complete_all(conn).await?
        });
        rows.into_iter()
            .map(|(number, id, state, body)| Ok((number, decode_run(&(id, state, body))?)))
            .collect()
    }

    pub(crate) async fn steps(&self, id: &RunId) -> Result<Vec<Step>, StoreFault> {
        const SQL: &str = "SELECT state FROM step WHERE run = $1 ORDER BY number";
        let rows: Vec<(String,)> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(id.as_str())
            .complete_all(conn)
            .await?);
        rows.iter().map(|(state,)| Ok(decode_json(id.as_str(), "a step", state)?)).collect()
    }

    pub(crate) async fn load_queue_columns(
        &self,
        id: &RunId,
    ) -> Result<Option<QueueColumns>, StoreFault> {
        const SQL: &str = "SELECT status, seq, token, worker, not_before_ms, kind, name, workspace, \
            labels, priority, \
            COALESCE(lease_shown_until_ms, lease_until_ms) IS NOT NULL AS has_lease FROM run WHERE id = $1";
        let row: Option<ColumnsRow> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(id.as_str())
            .complete_optional(conn)
            .await?);
        Ok(row.map(|row| {
            let (status, seq, token, worker, not_before_ms, ..) = row;
            let (.., kind, name, workspace, labels, priority, has_lease) = row;
            QueueColumns {
                status,
                seq,
                token,
                worker,
                not_before_ms,
                kind,
                name,
                workspace,
                labels,
                priority,
                has_lease,
            }
        }))
    }

    pub(crate) async fn events(
        &self,
        id: &RunId,
        after_seq: u64,
        limit: u32,
    ) -> Result<Vec<Event>, StoreFault> {
        const SQL: &str = "SELECT id, id, run, seq, v, at_ms, type, payload FROM event \
            WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        let rows: Vec<EventRow> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(id.as_str())
            .bind(to_signed(after_seq))
            .bind(i64::from(limit))
            .complete_all(conn)
            .await?);
        // With a damaged index, a reader that continues after the last event could get the same
        // events again and loop forever.
        if !is_ascending(to_signed(after_seq), rows.iter().map(|row| row.3)) {
            let what = format!("the events of run {id} are out of order");
            return Err(self.contradiction_error(what).into());
        }
        Ok(rows.into_iter().map(decode_event).collect())
    }

    pub(crate) async fn last_kind_event(&self, id: &RunId) -> Result<Option<Event>, StoreFault> {
        const SQL: &str = "SELECT id, id, run, seq, v, at_ms, type, payload FROM event \
            WHERE run = $1 AND type = 'KIND_EVENT' ORDER BY seq DESC LIMIT 1";
        let row: Option<EventRow> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(id.as_str())
            .complete_optional(conn)
            .await?);
        Ok(row.map(decode_event))
    }

    /// Returns events of all runs. On PostgreSQL, transactions commit in a different order than
    /// they began, so only events are returned that no later commit can precede.
    pub(crate) async fn tail_events(
        &self,
        after: EventCursor,
        limit: u32,
    ) -> Result<Vec<(EventCursor, Event)>, StoreFault> {
        let rows: Vec<EventRow> = on!(self, (conn, sql =
            "SELECT 0, id, run, seq, v, at_ms, type, payload FROM event \
             WHERE $1 = $1 AND id > $2 ORDER BY id LIMIT $3",
            "SELECT xact, id, run, seq, v, at_ms, type, payload FROM event \
             WHERE (xact, id) > ($1, $2) AND xact < pg_snapshot_xmin(pg_current_snapshot())::text::bigint \
             ORDER BY xact, id LIMIT $3") => sqlx::query_as(sql)
                .bind(to_signed(after.xact))
                .bind(to_signed(after.id))
                .bind(i64::from(limit))
                .complete_all(conn)
                .await?);
        let place =
            |row: &EventRow| EventCursor { xact: to_unsigned(row.0), id: to_unsigned(row.1) };
        if !is_ascending(after, rows.iter().map(place)) {
            let what = "the events of all runs are out of order".to_owned();
            return Err(self.contradiction_error(what).into());
        }
        Ok(rows.into_iter().map(|row| (place(&row), decode_event(row))).collect())
    }

    /// Returns the cursor after the last event that [`Store::tail`] would currently return.
    pub(crate) async fn tail_end(&self) -> Result<EventCursor, StoreFault> {
        let (xact, id): (i64, i64) = on!(self, (conn, sql =
            "SELECT 0, COALESCE(MAX(id), 0) FROM event",
            "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1, 9223372036854775807") => sqlx::query_as(sql).complete_one(conn).await?);
        Ok(EventCursor { xact: to_unsigned(xact), id: to_unsigned(id) })
    }

    /// Returns the leased runs with their worker and the wall-clock end of the lease.
    pub(crate) async fn list_leased_runs(&self) -> Result<Vec<(String, String, i64)>, StoreFault> {
        const SQL: &str = "SELECT id, worker, COALESCE(lease_shown_until_ms, lease_until_ms) AS until FROM run \
            WHERE status = 'running' AND worker IS NOT NULL \
            AND COALESCE(lease_shown_until_ms, lease_until_ms) IS NOT NULL ORDER BY number";
        Ok(on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql).complete_all(conn).await?))
    }

    pub(crate) async fn lease_until(&self, id: &RunId) -> Result<Option<i64>, StoreFault> {
        const SQL: &str = "SELECT COALESCE(lease_shown_until_ms, lease_until_ms) FROM run WHERE id = $1 \
            AND COALESCE(lease_shown_until_ms, lease_until_ms) IS NOT NULL";
        let row: Option<(i64,)> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(id.as_str())
            .complete_optional(conn)
            .await?);
        Ok(row.map(|(until,)| until))
    }

    /// Returns the query plan for claiming the next run, one node per line.
    pub(crate) async fn claim_plan(&self, order: QueueOrder) -> Result<String, StoreFault> {
        let lines: Vec<String> = match self {
            JournalStore::Sqlite(store) => {
                let sql = format!("EXPLAIN QUERY PLAN {}", tx::candidate_sqlite(order));
                let rows: Vec<(i64, i64, i64, String)> = sqlx::query_as(AssertSqlSafe(sql))
                    .bind(None::<&str>)
                    .bind("[]")
                    .bind("[]")
                    .bind(Some(1_i64))
                    .bind(0_i64)
                    .bind("[]")
                    .complete_all(store.connection())
                    .await?;
                rows.into_iter().map(|(_, _, _, line)| line).collect()
            }
            JournalStore::Postgres(store) => {
                let sql = format!("EXPLAIN {}", tx::candidate_postgres(order));
                let rows: Vec<(String,)> = sqlx::query_as(AssertSqlSafe(sql))
                    .bind(None::<&str>)
                    .bind("[]")
                    .bind("[]")
                    .bind(Some(1_i64))
                    .bind(None::<i64>)
                    .bind("[]")
                    .complete_all(store.connection())
                    .await?;
                rows.into_iter().map(|(line,)| line).collect()
            }
        };
        Ok(lines.join("\n"))
    }

    /// Returns true if any run is queued. The order is that of a partial index on queued runs, so
    /// the query uses it.
    pub(crate) async fn has_queued(&self) -> Result<bool, StoreFault> {
        const SQL: &str = "SELECT number FROM run WHERE status = 'queued' \
            ORDER BY priority DESC, number LIMIT 1";
        let row: Option<(i64,)> =
            on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql).complete_optional(conn).await?);
        Ok(row.is_some())
    }

    /// Returns the machines this store can be used from.
    pub(crate) fn reach(&self) -> StoreReach {
        match self {
            JournalStore::Sqlite(_) => StoreReach::OneMachine,
            JournalStore::Postgres(_) => StoreReach::ManyMachines,
        }
    }

    /// Returns all leases. A lease whose end is farther ahead than its length is also over by the
    /// wall clock: the clock was set back.
    pub(crate) async fn list_leases(&self) -> Result<Vec<LeaseRow>, StoreFault> {
        macro_rules! leases {
            ($now:expr) => {
                concat!(
                    "SELECT id, token, lease_beat, lease_length_ms, lease_boot, lease_boot_until_ms, \
                     COALESCE(lease_shown_until_ms, lease_until_ms) AS shown_until_ms, \
                     COALESCE(COALESCE(lease_shown_until_ms, lease_until_ms) - ",
                    $now,
                    " NOT BETWEEN 1 AND COALESCE(lease_length_ms, $2), FALSE) AS is_over_by_wall_clock \
                     FROM run WHERE status = 'running' AND worker IS NOT NULL ORDER BY number LIMIT $3"
                )
            };
        }
        let now_ms = match self {
            JournalStore::Sqlite(store) => Some(store.now_ms()),
            JournalStore::Postgres(_) => None,
        };
        let rows: Vec<LeaseColumns> = on!(self, (conn, sql =
            leases!("$1"),
            leases!(super::postgres_now!("$1"))) => sqlx::query_as(sql)
                .bind(now_ms)
                .bind(tx::duration_millis(LEASE_AHEAD_MAX))
                .bind(i64::from(LEASES_MAX))
                .complete_all(conn)
                .await?);
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

/// Decodes a run from its row.
pub(crate) fn decode_run((id, state, body): &StoredRunRow) -> Result<Run, JournalError> {
    let mut run: Run = decode_json(id, "its state", state)?;
    run.request = decode_json(id, "its request", body)?;
    Ok(run)
}

/// Decodes a step from its row.
pub(crate) fn decode_step(run: &Run, number: u32, state: &str) -> Result<Step, JournalError> {
    decode_json(run.id.as_str(), &format!("step {number}"), state)
}

/// Decodes an event from its row. A damaged event, or one written by a later version, becomes a
/// note, so that it can be shown and the events after it can be read.
fn decode_event(row: EventRow) -> Event {
    let (_, _, run, seq, v, at_ms, name, text) = row;
    let known = if v <= i64::from(EVENT_VERSION) {
        serde_json::from_str::<Payload>(&text).ok()
    } else {
        None
    };
    let unknown = || Payload::Note {
        name: format!("{UNKNOWN}{name}"),
        data: serde_json::from_str(&text).unwrap_or(Value::String(text)),
    };
    Event {
        v: u32::try_from(v).unwrap_or(u32::MAX),
        run: RunId::known(run),
        seq: to_unsigned(seq),
        at_ms: to_unsigned(at_ms),
        payload: known.unwrap_or_else(unknown),
    }
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
