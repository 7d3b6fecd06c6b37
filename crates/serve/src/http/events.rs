//! The event stream: `text/event-stream`, with cursors to resume from.
//!
//! `event: run` is an event of the journal, with large data of a kind's own events cut, and has an `id`, the cursor after
//! it; `event: skills` reports that the
//! skills were reloaded. `event: hello` comes first, and `event: dropped` last, if the client was too slow. Heartbeat
//! comments are sent in between.

mod hub;
mod messages;

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, header};
use repertoire_journal::{EventCursor, RunId};
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use hub::{
    EventHub, RING_BYTES_MAX, RING_EVENTS_MAX, STREAM_DATA_BYTES_MAX, STREAM_FIELD_BYTES_MAX,
};
pub use messages::{DroppedMessage, HelloMessage, SkillsReloaded};

use self::hub::{EventListener, HubItem, ListenResult};
use super::problem::HttpProblem;
use crate::serve_state::ServeState;

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
pub(super) struct EventSubscription {
    /// Start after this cursor; `None` for new events only.
    pub(super) after: Option<EventCursor>,
    /// Only events of this run.
    pub(super) run: Option<RunId>,
}

impl EventSubscription {
    /// The cursor to resume from: from the query, or from the `Last-Event-ID` header of a reconnecting client.
    pub(super) fn resume_cursor(
        after: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<Option<EventCursor>, HttpProblem> {
        let last = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
        let text = after.or(last.filter(|text| !text.is_empty()));
        text.map(|text| text.parse().map_err(invalid_cursor)).transpose()
    }

    fn matches_item(&self, item: &HubItem) -> bool {
        match &self.run {
            None => true,
            Some(run) => item.run.as_ref() == Some(run),
        }
    }
}

fn invalid_cursor(error: repertoire_journal::CursorParseError) -> HttpProblem {
    HttpProblem::bad_request(error.to_string())
        .hint("Send the `id` of the last event that was heard, or nothing to hear what is new.")
}

/// Responds with a stream of events.
pub(super) async fn respond_with_events(
    serve_state: &ServeState,
    wanted: EventSubscription,
) -> Result<Response, HttpProblem> {
    let hub = serve_state.hub().await.map_err(|error| {
        HttpProblem::new(http::StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    })?;
    let listener = match wanted.after {
        None => Some(hub.listen_from_now()),
        Some(cursor) => hub.listen_after(cursor),
    };
    let place = match listener {
        Some(listener) => StreamPosition::Live(listener),
        None => StreamPosition::Behind(wanted.after.unwrap_or_default()),
    };
    let hello = HelloMessage {
        cursor: place.cursor().to_string(),
        generation: serve_state.catalog().generation(),
    };
    let first = event_message("hello", Some(place.cursor()), &hello);
    let reader = EventStreamReader { serve_state: serve_state.clone(), wanted, place };
    let rest = stream::unfold(Some(reader), |reader| async move { reader?.next_bytes().await });
    let all: Pin<Box<dyn Stream<Item = Result<Bytes, Infallible>> + Send>> =
        Box::pin(stream::once(async move { first }).chain(rest).map(Ok));
    let mut response = Response::new(Body::from_stream(all));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The position of a client.
enum StreamPosition {
    /// Within the ring.
    Live(EventListener),
    /// Behind the ring: the journal is read until the client reaches it.
    Behind(EventCursor),
}

impl StreamPosition {
    fn cursor(&self) -> EventCursor {
        match self {
            StreamPosition::Live(listener) => listener.cursor(),
            StreamPosition::Behind(cursor) => *cursor,
        }
    }
}

struct EventStreamReader {
    serve_state: ServeState,
    wanted: EventSubscription,
    place: StreamPosition,
}

impl EventStreamReader {
    /// Returns the next bytes to send, and the reader if the stream continues.
    async fn next_bytes(mut self) -> Option<(Bytes, Option<Self>)> {
        // Counted from the last message sent, so that events that are filtered out don't postpone the heartbeat.
        let beat = Instant::now() + HEARTBEAT;
        loop {
            let text = match &mut self.place {
                StreamPosition::Live(listener) => {
                    match tokio::time::timeout_at(beat, listener.next_items(ITEMS_MAX)).await {
                        Err(_) => heartbeat_message(listener.cursor()),
                        Ok(ListenResult::Lost) => {
                            let reason = "this client was too slow, and was dropped";
                            return Some((dropped_message(listener.cursor(), reason), None));
                        }
                        Ok(ListenResult::Items(items)) => self.matching_text(&items),
                    }
                }
                StreamPosition::Behind(cursor) => {
                    let cursor = *cursor;
                    match self.catch_up(cursor).await {
                        Ok(text) => text,
                        Err(reason) => return Some((dropped_message(cursor, &reason), None)),
                    }
                }
            };
            if !text.is_empty() {
                return Some((text, Some(self)));
            }
        }
    }

    /// Reads the journal from a cursor that is older than the ring.
    async fn catch_up(&mut self, cursor: EventCursor) -> Result<Bytes, String> {
        let hub = self.serve_state.hub().await.map_err(|error| error.to_string())?;
        if let Some(listener) = hub.listen_after(cursor) {
            self.place = StreamPosition::Live(listener);
            return Ok(Bytes::new());
        }
        let ring_begins = hub.oldest_cursor();
        let journal = self.serve_state.journal().await.map_err(|error| error.to_string())?;
        let _turn = READERS.acquire().await.map_err(|error| error.to_string())?;
        let page = journal.list_all_events(cursor, READ_MAX).await;
        let page = page.map_err(|error| error.to_string())?;
        let items = take_within_limit(
            page.events.iter().map(|(cursor, event)| HubItem::from_event(*cursor, event)),
        );
        let last = items.last().and_then(|item| item.cursor);
        let next = match last {
            // If there is nothing between this cursor and the ring, continue with the ring.
            _ if page.is_end() => ring_begins,
            Some(last) if items.len() < page.events.len() => last,
            _ => page.next,
        };
        self.place = StreamPosition::Behind(next);
        Ok(self.matching_text(&items))
    }

    fn matching_text(&self, items: &[HubItem]) -> Bytes {
        let mut wanted = items.iter().filter(|item| self.wanted.matches_item(item));
        match (wanted.next(), wanted.next()) {
            (None, _) => Bytes::new(),
            (Some(one), None) => one.text.clone(),
            (Some(_), Some(_)) => {
                let wanted = items.iter().filter(|item| self.wanted.matches_item(item));
                wanted.flat_map(|item| item.text.iter().copied()).collect()
            }
        }
    }
}

/// Takes items up to and including the one that exceeds the byte limit.
fn take_within_limit(items: impl Iterator<Item = HubItem>) -> Vec<HubItem> {
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

fn event_message(event: &str, cursor: Option<EventCursor>, data: &impl serde::Serialize) -> Bytes {
    let id = cursor.map(|cursor| format!("id: {cursor}\n")).unwrap_or_default();
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("{id}event: {event}\ndata: {data}\n\n").into()
}

/// A comment and the current cursor, so that an idle client does not have to go back far when it reconnects.
fn heartbeat_message(cursor: EventCursor) -> Bytes {
    format!(": still here\nid: {cursor}\n\n").into()
}

fn dropped_message(cursor: EventCursor, reason: &str) -> Bytes {
    let told = DroppedMessage { cursor: cursor.to_string(), reason: reason.to_owned() };
    event_message("dropped", Some(cursor), &told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_far_behind_is_handed_a_little_at_once() {
        let item =
            |bytes: usize| HubItem { cursor: None, run: None, text: vec![b'x'; bytes].into() };
        let count =
            |bytes: &[usize]| take_within_limit(bytes.iter().map(|bytes| item(*bytes))).len();
        assert_eq!(count(&[10, 20, 30]), 3);
        assert_eq!(count(&[BEHIND_BYTES_MAX, 1, 1]), 2);
        assert_eq!(count(&[4 * BEHIND_BYTES_MAX, 1]), 1, "one that is large alone is still told");
    }
}
