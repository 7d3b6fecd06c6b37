//! The rows of runs and steps: verifying them, and decoding them to values.

use serde::de::DeserializeOwned;
use serde_json::json;

use super::StoreFault;
use super::row_digest::{RowDigest, request_digest, run_digest, step_digest};
use super::sql::{FromSqlRow, IdentifiedRow, SqlRow};
use super::tx::to_signed;
use crate::error::JournalError;
use crate::run::{Run, RunId, Step};
use crate::sanitise;

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

/// A step as stored: its number, status, state and digest.
pub(crate) type StepRow = (i64, String, String, RowDigest);

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
