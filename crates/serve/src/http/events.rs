//! The event stream: `text/event-stream`, with cursors to resume from.
//!
//! `event: run` is an event of the journal and has an `id`, the cursor after it; `event: skills` reports that the
//! skills were reloaded. `event: hello` comes first, and `event: dropped` last, if the client was too slow. Heartbeat
//! comments are sent in between.

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

/// The maximum time between two messages, so that a client can tell that the connection is alive.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// The maximum number of items sent at once.
const ITEMS_MAX: usize = 128;
/// The maximum number of events read at once for a client that is behind the ring.
const READ_MAX: u32 = 32;
/// The maximum number of bytes sent at once to a client that is behind the ring, unless a single event exceeds it.
const BEHIND_BYTES_MAX: usize = 256 * 1024;
/// The maximum number of clients for which the journal is read at the same time: an event may have a megabyte.
const READERS_MAX: usize = 4;

/// Limits the concurrent journal reads for clients that are behind the ring.
static READERS: Semaphore = Semaphore::const_new(READERS_MAX);

/// The subscription of a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// Start after this cursor; `None` for new events only.
    pub(super) after: Option<Cursor>,
    /// Only events of this run.
    pub(super) run: Option<RunId>,
}

impl Wanted {
    /// The cursor to resume from: from the query, or from the `Last-Event-ID` header of a reconnecting client.
    pub(super) fn cursor(
        after: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<Option<Cursor>, Problem> {
        let last = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
        let text = after.or(last.filter(|text| !text.is_empty()));
        text.map(|text| text.parse().map_err(invalid_cursor)).transpose()
    }

    fn wants(&self, item: &Item) -> bool {
        match &self.run {
            None => true,
            Some(run) => item.run.as_ref() == Some(run),
        }
    }
}

fn invalid_cursor(error: repertoire_journal::NoCursor) -> Problem {
    Problem::bad_request(error.to_string())
        .hint("Send the `id` of the last event that was heard, or nothing to hear what is new.")
}

/// Responds with a stream of events.
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

/// The position of a client.
enum Place {
    /// Within the ring.
    Live(Listener),
    /// Behind the ring: the journal is read until the client reaches it.
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
    /// Returns the next bytes to send, and the reader if the stream continues.
    async fn next(mut self) -> Option<(Bytes, Option<Self>)> {
        // Counted from the last message sent, so that events that are filtered out don't postpone the heartbeat.
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

    /// Reads the journal from a cursor that is older than the ring.
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
        // If there is nothing between this cursor and the ring, continue with the ring.
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

/// Takes items up to and including the one that exceeds the byte limit.
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

/// A comment and the current cursor, so that an idle client does not have to go back far when it reconnects.
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
