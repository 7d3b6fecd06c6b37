//! What happens, as it happens: `text/event-stream`, with cursors to go on from.
//!
//! `event: run` is an event of the journal and has an `id`, the place behind it; `event: skills` says that the skills were
//! read again. `event: hello` comes first and `event: dropped` last, to a client that was too slow. Comments come between.

mod hub;
mod news;

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, header};
use repertoire_journal::{Cursor, RunId};
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use hub::{Hub, RING_BYTES_MAX, RING_EVENTS_MAX};
pub use news::{Dropped, Hello, SkillsNews};

use self::hub::{Heard, Item, Listener};
use super::problem::Problem;
use crate::house::House;

/// How often a client hears at least something, so that it knows that the connection is good.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// Items that are handed on at once.
const ITEMS_MAX: usize = 128;
/// Events that are read at once for a client that is far behind.
const READ_MAX: u32 = 32;
/// The maximum number of bytes that are handed at once to a client that is far behind, unless one event alone has more.
const BEHIND_BYTES_MAX: usize = 256 * 1024;
/// The maximum number of clients for which the journal is read at the same time: an event may have a megabyte.
const READERS_MAX: usize = 4;

/// Gives each of those who are far behind its turn.
static READERS: Semaphore = Semaphore::const_new(READERS_MAX);

/// What a client wants to hear.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// Everything behind this place; from now on if nothing is said.
    pub(super) after: Option<Cursor>,
    /// Only of this run.
    pub(super) run: Option<RunId>,
}

impl Wanted {
    /// Where to go on: as the query says, or as a client does that lost its connection.
    pub(super) fn cursor(
        after: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<Option<Cursor>, Problem> {
        let last = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
        let text = after.or(last.filter(|text| !text.is_empty()));
        let wrong = |error: repertoire_journal::NoCursor| {
            Problem::bad_request(error.to_string()).hint(
                "Send the `id` of the last event that was heard, or nothing to hear what is new.",
            )
        };
        text.map(|text| text.parse().map_err(wrong)).transpose()
    }

    fn wants(&self, item: &Item) -> bool {
        match &self.run {
            None => true,
            Some(run) => item.run.as_ref() == Some(run),
        }
    }
}

/// A stream of events as a response.
pub(super) async fn respond(house: &House, wanted: Wanted) -> Result<Response, Problem> {
    let hub = house.hub().await.map_err(|error| {
        Problem::new(http::StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    })?;
    let listener = match wanted.after {
        None => Some(hub.listen()),
        Some(cursor) => hub.listen_after(cursor),
    };
    let place = match listener {
        Some(listener) => Place::Live(listener),
        None => Place::Behind(wanted.after.unwrap_or_default()),
    };
    let hello =
        Hello { cursor: place.cursor().to_string(), generation: house.catalog().generation() };
    let first = line("hello", Some(place.cursor()), &hello);
    let reader = Reader { house: house.clone(), wanted, place };
    let rest = stream::unfold(Some(reader), |reader| async move { reader?.next().await });
    let all: Pin<Box<dyn Stream<Item = Result<Bytes, Infallible>> + Send>> =
        Box::pin(stream::once(async move { first }).chain(rest).map(Ok));
    let mut response = Response::new(Body::from_stream(all));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Where a client is.
enum Place {
    /// In the ring.
    Live(Listener),
    /// Farther behind than the ring reaches: the journal is read until it does.
    Behind(Cursor),
}

impl Place {
    fn cursor(&self) -> Cursor {
        match self {
            Place::Live(listener) => listener.cursor(),
            Place::Behind(cursor) => *cursor,
        }
    }
}

struct Reader {
    house: House,
    wanted: Wanted,
    place: Place,
}

impl Reader {
    /// What is sent next, and the reader that goes on, if it does.
    async fn next(mut self) -> Option<(Bytes, Option<Self>)> {
        // Counted from what was sent last, so that what others do does not keep a client in the dark.
        let beat = Instant::now() + HEARTBEAT;
        loop {
            let text = match &mut self.place {
                Place::Live(listener) => {
                    match tokio::time::timeout_at(beat, listener.next(ITEMS_MAX)).await {
                        Err(_) => heartbeat(listener.cursor()),
                        Ok(Heard::Lost) => {
                            let reason = "this client was too slow, and was dropped";
                            return Some((dropped(listener.cursor(), reason), None));
                        }
                        Ok(Heard::Items(items)) => self.wanted(&items),
                    }
                }
                Place::Behind(cursor) => {
                    let cursor = *cursor;
                    match self.catch_up(cursor).await {
                        Ok(text) => text,
                        Err(reason) => return Some((dropped(cursor, &reason), None)),
                    }
                }
            };
            if !text.is_empty() {
                return Some((text, Some(self)));
            }
        }
    }

    /// Reads on from a place that the ring does not reach.
    async fn catch_up(&mut self, cursor: Cursor) -> Result<Bytes, String> {
        let hub = self.house.hub().await.map_err(|error| error.to_string())?;
        if let Some(listener) = hub.listen_after(cursor) {
            self.place = Place::Live(listener);
            return Ok(Bytes::new());
        }
        let ring_begins = hub.begins_behind();
        let journal = self.house.journal().await.map_err(|error| error.to_string())?;
        let _turn = READERS.acquire().await.map_err(|error| error.to_string())?;
        let events = journal.tail(cursor, READ_MAX).await;
        let events = events.map_err(|error| error.to_string())?;
        let items = first_of(events.iter().map(|(cursor, event)| Item::event(*cursor, event)));
        // With nothing between this place and the ring, the ring is next.
        let last = items.last().and_then(|item| item.cursor);
        self.place = Place::Behind(last.unwrap_or(ring_begins));
        Ok(self.wanted(&items))
    }

    fn wanted(&self, items: &[Item]) -> Bytes {
        let mut wanted = items.iter().filter(|item| self.wanted.wants(item));
        match (wanted.next(), wanted.next()) {
            (None, _) => Bytes::new(),
            (Some(one), None) => one.text.clone(),
            (Some(_), Some(_)) => {
                let wanted = items.iter().filter(|item| self.wanted.wants(item));
                wanted.flat_map(|item| item.text.iter().copied()).collect()
            }
        }
    }
}

/// The first items, up to the one with which they are too large.
fn first_of(items: impl Iterator<Item = Item>) -> Vec<Item> {
    let (mut first, mut bytes) = (Vec::new(), 0);
    for item in items {
        bytes += item.text.len();
        first.push(item);
        if bytes > BEHIND_BYTES_MAX {
            break;
        }
    }
    first
}

fn line(event: &str, cursor: Option<Cursor>, data: &impl serde::Serialize) -> Bytes {
    let id = cursor.map(|cursor| format!("id: {cursor}\n")).unwrap_or_default();
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("{id}event: {event}\ndata: {data}\n\n").into()
}

/// A comment, and the place of a client that hears nothing: so that it does not go back far when it goes on.
fn heartbeat(cursor: Cursor) -> Bytes {
    format!(": still here\nid: {cursor}\n\n").into()
}

fn dropped(cursor: Cursor, reason: &str) -> Bytes {
    let told = Dropped { cursor: cursor.to_string(), reason: reason.to_owned() };
    line("dropped", Some(cursor), &told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_far_behind_is_handed_a_little_at_once() {
        let item = |bytes: usize| Item { cursor: None, run: None, text: vec![b'x'; bytes].into() };
        let count = |bytes: &[usize]| first_of(bytes.iter().map(|bytes| item(*bytes))).len();
        assert_eq!(count(&[10, 20, 30]), 3);
        assert_eq!(count(&[BEHIND_BYTES_MAX, 1, 1]), 2);
        assert_eq!(count(&[4 * BEHIND_BYTES_MAX, 1]), 1, "one that is large alone is still told");
    }
}
