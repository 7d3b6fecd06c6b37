//! Events: reading those of one run and of all runs, and verifying the chain of their digests.

use serde_json::Value;

use super::row_digest::{EventColumns, NO_PREDECESSOR, RowDigest, event_digest};
use super::rows::to_unsigned;
use super::sql::{FromSqlRow, SqlRow, SqlStatement};
use super::tx::to_signed;
use super::{CheckedTable, JournalStore, StoreFault};
use crate::event::{EVENT_VERSION, Event, Payload};
use crate::journal::{EventCursor, EventPage, JournalPage};
use crate::run::RunId;
use crate::sanitise;

/// The prefix of the name of a note that stands in for an event this version cannot read.
pub(crate) const UNKNOWN: &str = "unknown:";

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

impl JournalStore {
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
}

/// Returns true if the numbers are strictly ascending and larger than `after`.
fn is_ascending<T: PartialOrd + Copy>(after: T, numbers: impl Iterator<Item = T>) -> bool {
    let mut last = after;
    numbers.into_iter().all(|number| std::mem::replace(&mut last, number) < number)
}

fn chain_fault(run: &RunId, broken: &ChainBreak) -> StoreFault {
    let name = sanitise::name(run.as_str());
    StoreFault::damaged_row(format!("event {} of run {name} {}", broken.seq, broken.problem))
        .of_run(run.as_str())
}
