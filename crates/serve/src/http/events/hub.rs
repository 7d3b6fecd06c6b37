//! A single journal reader for all listeners. Recent events are kept in one shared ring, and a listener is just a
//! position in it.
//!
//! A listener that is too slow for the ring loses its position, and gets a cursor with which it can resume without
//! loss. Listeners have no queue of their own that could grow.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use repertoire_journal::{Event, EventCursor, Journal, JournalError, Payload, RunId};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use super::messages::SkillsReloaded;
use crate::serve_state::CatalogNews;

/// The maximum number of events in the ring.
pub const RING_EVENTS_MAX: usize = 4_096;
/// The maximum size of the ring in bytes: a single event may be large.
pub const RING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The maximum number of events read at once.
const READ_MAX: u32 = 500;
/// The maximum number of bytes handed to a listener at once, unless a single item exceeds it.
const HANDED_BYTES_MAX: usize = 32 * 1024;
/// The maximum size of the data of a kind's event in the stream; beyond it, large fields are replaced by a mark.
pub const STREAM_DATA_BYTES_MAX: usize = 16 * 1024;
/// The maximum size of a field that is kept when the data is cut.
pub const STREAM_FIELD_BYTES_MAX: usize = 1024;
/// The polling interval, in case the journal does not notify.
const LOOK: Duration = Duration::from_secs(2);
/// The delay after a failed read of the journal.
const AGAIN: Duration = Duration::from_secs(1);

/// An item that is sent to listeners.
#[derive(Clone, Debug)]
pub(super) struct HubItem {
    /// The cursor after it; `None` for news that are not in the journal.
    pub(super) cursor: Option<EventCursor>,
    /// The run it is about.
    pub(super) run: Option<RunId>,
    /// The text as sent.
    pub(super) text: Bytes,
}

impl HubItem {
    pub(super) fn from_event(cursor: EventCursor, event: &Event) -> Self {
        let data = serde_json::to_string(&*cut_for_stream(event)).unwrap_or_default();
        let text = format!("id: {cursor}\nevent: run\ndata: {data}\n\n");
        HubItem { cursor: Some(cursor), run: Some(event.run.clone()), text: text.into() }
    }

    fn from_skills_news(news: &SkillsReloaded) -> Self {
        let data = serde_json::to_string(news).unwrap_or_default();
        let text = format!("event: skills\ndata: {data}\n\n");
        HubItem { cursor: None, run: None, text: text.into() }
    }
}

/// Cuts the data of a kind's event to what a listener needs to notice it. The whole event is in `/runs/{id}/events`.
fn cut_for_stream(event: &Event) -> Cow<'_, Event> {
    let Payload::KindEvent { name, data } = &event.payload else { return Cow::Borrowed(event) };
    if json_bytes(data) <= STREAM_DATA_BYTES_MAX {
        return Cow::Borrowed(event);
    }
    let mut cut = data.clone();
    let fields = cut.as_object_mut().map(|fields| fields.values_mut()).into_iter().flatten();
    for field in fields.filter(|field| json_bytes(field) > STREAM_FIELD_BYTES_MAX) {
        *field = cut_mark(field);
    }
    if json_bytes(&cut) > STREAM_DATA_BYTES_MAX {
        cut = cut_mark(data);
    }
    let payload = Payload::KindEvent { name: name.clone(), data: cut };
    Cow::Owned(Event { payload, ..event.clone() })
}

/// The mark in place of a value that was cut.
fn cut_mark(value: &Value) -> Value {
    json!({ "cut_bytes": json_bytes(value) })
}

fn json_bytes(value: &Value) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}

/// The ring and the task that fills it. The task ends when the hub is dropped.
pub struct EventHub {
    shared: Arc<HubShared>,
    task: AbortHandle,
}

struct HubShared {
    ring: Mutex<EventRing>,
    /// The number after that of the newest item.
    head: watch::Sender<u64>,
    listeners: Arc<()>,
}

/// The newest items, with increasing numbers.
#[derive(Debug, Default)]
struct EventRing {
    items: VecDeque<HubItem>,
    bytes: usize,
    /// The number of the oldest item.
    first: u64,
    /// The cursor just before the oldest item.
    before: EventCursor,
    /// The cursor of the newest item.
    at: EventCursor,
}

impl EventRing {
    fn end_number(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    fn push(&mut self, item: HubItem) {
        self.bytes += item.text.len();
        self.at = item.cursor.unwrap_or(self.at);
        self.items.push_back(item);
        while self.items.len() > RING_EVENTS_MAX
            || self.bytes > RING_BYTES_MAX && self.items.len() > 1
        {
            let Some(oldest) = self.items.pop_front() else { break };
            self.bytes -= oldest.text.len();
            self.first += 1;
            self.before = oldest.cursor.unwrap_or(self.before);
        }
    }

    /// The number of the first item after a cursor, if the ring still has everything after it.
    fn number_after(&self, cursor: EventCursor) -> Option<u64> {
        if cursor < self.before {
            return None;
        }
        let is_seen = |item: &HubItem| item.cursor.is_some_and(|at| at <= cursor);
        // News without a cursor belong to the event before them.
        let last_seen = self.items.iter().rposition(is_seen);
        Some(self.first + last_seen.map_or(0, |at| at as u64 + 1))
    }
}

/// A position in the ring.
pub(super) struct EventListener {
    shared: Arc<HubShared>,
    next: u64,
    at: EventCursor,
    head: watch::Receiver<u64>,
    /// Held only for its reference count, which is the number of listeners.
    _counted: Arc<()>,
}

/// The result of waiting for items.
pub(super) enum ListenResult {
    /// Items in order, at least one.
    Items(Vec<HubItem>),
    /// The next item is no longer in the ring.
    Lost,
}

impl EventHub {
    /// Starts reading the journal, from now on.
    ///
    /// # Errors
    ///
    /// If the journal cannot be used.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub(crate) async fn start_reading(
        journal: Journal,
        news: broadcast::Receiver<CatalogNews>,
    ) -> Result<Self, JournalError> {
        let at = journal.last_cursor().await?;
        let ring = EventRing { before: at, at, ..EventRing::default() };
        let shared = Arc::new(HubShared {
            ring: Mutex::new(ring),
            head: watch::Sender::new(0),
            listeners: Arc::new(()),
        });
        let task = tokio::spawn(fill_ring(Arc::clone(&shared), journal, news, at)).abort_handle();
        Ok(EventHub { shared, task })
    }

    /// Listens for items that are added from now on.
    pub(super) fn listen_from_now(&self) -> EventListener {
        let (next, at) = {
            let ring = self.shared.lock_ring();
            (ring.end_number(), ring.at)
        };
        self.shared.new_listener(next, at)
    }

    /// Listens after a cursor; `None` if the ring no longer has everything after it.
    pub(super) fn listen_after(&self, cursor: EventCursor) -> Option<EventListener> {
        let next = self.shared.lock_ring().number_after(cursor)?;
        Some(self.shared.new_listener(next, cursor))
    }

    /// The cursor just before the oldest item of the ring.
    pub(super) fn oldest_cursor(&self) -> EventCursor {
        self.shared.lock_ring().before
    }

    /// The number of listeners.
    pub fn listener_count(&self) -> usize {
        Arc::strong_count(&self.shared.listeners) - 1
    }

    /// The size of the ring in bytes.
    pub fn ring_bytes(&self) -> usize {
        self.shared.lock_ring().bytes
    }
}

impl Drop for EventHub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HubShared {
    fn lock_ring(&self) -> MutexGuard<'_, EventRing> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_listener(self: &Arc<Self>, next: u64, at: EventCursor) -> EventListener {
        let (shared, head) = (Arc::clone(self), self.head.subscribe());
        EventListener { shared, next, at, head, _counted: Arc::clone(&self.listeners) }
    }

    fn push_items(&self, items: impl IntoIterator<Item = HubItem>) {
        let end = {
            let mut ring = self.lock_ring();
            items.into_iter().for_each(|item| ring.push(item));
            ring.end_number()
        };
        self.head.send_replace(end);
    }
}

impl EventListener {
    /// The cursor of the last item received.
    pub(super) fn cursor(&self) -> EventCursor {
        self.at
    }

    /// Waits for the next items, at most `items_max`.
    pub(super) async fn next_items(&mut self, items_max: usize) -> ListenResult {
        loop {
            self.head.borrow_and_update();
            match self.take_items(items_max) {
                Some(ListenResult::Items(items)) if items.is_empty() => {}
                Some(heard) => return heard,
                None => {}
            }
            if self.head.changed().await.is_err() {
                // The hub was dropped, so nothing can follow.
                return ListenResult::Lost;
            }
        }
    }

    fn take_items(&mut self, items_max: usize) -> Option<ListenResult> {
        let ring = self.shared.lock_ring();
        if self.next < ring.first {
            return Some(ListenResult::Lost);
        }
        let start = usize::try_from(self.next - ring.first).ok()?;
        let mut bytes = 0;
        let fits = |item: &&HubItem| {
            let first = bytes == 0;
            bytes += item.text.len();
            first || bytes <= HANDED_BYTES_MAX
        };
        let waiting = ring.items.iter().skip(start).take(items_max);
        let items: Vec<HubItem> = waiting.take_while(fits).cloned().collect();
        self.next += items.len() as u64;
        self.at = items.iter().rev().find_map(|item| item.cursor).unwrap_or(self.at);
        Some(ListenResult::Items(items))
    }
}

/// Fills the ring until the task is aborted.
async fn fill_ring(
    shared: Arc<HubShared>,
    journal: Journal,
    mut news: broadcast::Receiver<CatalogNews>,
    mut at: EventCursor,
) {
    let mut changes = journal.subscribe_changes();
    loop {
        // Damaged events are left out: the lists of runs name the damaged runs.
        match journal.list_all_events(at, READ_MAX).await {
            Ok(page) if page.is_end() => {}
            Ok(page) => {
                at = page.next;
                shared.push_items(
                    page.events.iter().map(|(cursor, event)| HubItem::from_event(*cursor, event)),
                );
                continue;
            }
            // Retry later: listeners get the events then, and there is no caller to report the error to.
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
        tokio::select! {
            _ = changes.next(LOOK) => {}
            told = news.recv() => match told {
                Ok(CatalogNews::Skills(reload)) => shared.push_items([HubItem::from_skills_news(&SkillsReloaded::from_reload(&reload))]),
                Err(RecvError::Lagged(_)) => shared.push_items(missed_items(&mut news)),
                Err(RecvError::Closed) => {
                    changes.next(LOOK).await;
                }
            },
        }
    }
}

/// The items to send after news were missed: an unspecific reload first, followed by the news that are still
/// available.
fn missed_items(news: &mut broadcast::Receiver<CatalogNews>) -> Vec<HubItem> {
    let mut kept = Vec::new();
    loop {
        match news.try_recv() {
            Ok(CatalogNews::Skills(reload)) => kept.push(SkillsReloaded::from_reload(&reload)),
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        }
    }
    let missed = kept.last().map(|newest| SkillsReloaded {
        generation: newest.generation,
        added: Vec::new(),
        removed: Vec::new(),
        changed: Vec::new(),
        broken: Vec::new(),
        findings: 0,
    });
    missed.iter().chain(&kept).map(HubItem::from_skills_news).collect()
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use repertoire_skill::discover::DiscoveryRequest;
    use repertoire_skill::library::SkillLibrary;
    use repertoire_skill::profile::{ProfileId, Root, SearchDirectories};
    use repertoire_text::fs::write_atomic;

    use super::*;

    #[test]
    fn whoever_missed_news_is_told_the_newest_generation() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap();
        let places = SearchDirectories {
            here: dir.join("here"),
            home: dir.join("home"),
            pack: dir.join("pack"),
        };
        let roots = Some(vec![Root::named_by_user(dir.join("skills"))]);
        let request =
            DiscoveryRequest { roots, ..DiscoveryRequest::new(ProfileId::Repertoire, places) };
        let library = SkillLibrary::open(request);
        let before = library.snapshot().generation();
        let (sender, mut news) = broadcast::channel(2);
        for name in ["a", "b", "c", "d", "e"] {
            let text = format!("---\nname: {name}\ndescription: d\n---\n");
            let file = dir.join("skills").join(name).join("SKILL.md");
            write_atomic(&file, text.as_bytes()).unwrap();
            assert!(sender.send(CatalogNews::Skills(Arc::new(library.reload()))).is_ok());
        }
        assert!(matches!(news.try_recv(), Err(TryRecvError::Lagged(3))));
        let told: Vec<(u64, serde_json::Value)> = missed_items(&mut news)
            .iter()
            .map(|item| {
                let text = std::str::from_utf8(&item.text).unwrap();
                let data = text.strip_prefix("event: skills\ndata: ").unwrap();
                let data: serde_json::Value = serde_json::from_str(data).unwrap();
                (data["generation"].as_u64().unwrap() - before, data["added"].clone())
            })
            .collect();
        let added = |name: &str| serde_json::json!([name]);
        assert_eq!(told, [(5, serde_json::json!([])), (4, added("d")), (5, added("e"))]);
    }

    #[test]
    fn a_large_event_of_a_kind_is_cut_for_listeners() {
        let event = |data: Value| Event {
            v: 1,
            run: RunId::known("a-run"),
            seq: 2,
            at_ms: 3,
            payload: Payload::KindEvent { name: "said".into(), data },
        };
        let sent = |data: Value| match cut_for_stream(&event(data)).into_owned().payload {
            Payload::KindEvent { data, .. } => data,
            other => panic!("{other:?}"),
        };
        let small = json!({ "agent": "x", "text": "a".repeat(STREAM_DATA_BYTES_MAX / 2) });
        assert_eq!(sent(small.clone()), small);
        let bytes = 2 * STREAM_DATA_BYTES_MAX;
        let large = json!({ "agent": "x", "text": "a".repeat(bytes) });
        assert_eq!(sent(large), json!({ "agent": "x", "text": { "cut_bytes": bytes + 2 } }));
        let list = Value::Array(vec![json!("a"); bytes]);
        assert_eq!(sent(list.clone()), json!({ "cut_bytes": json_bytes(&list) }));
    }

    fn cursor(id: u64) -> EventCursor {
        format!("0-{id}").parse().expect("a cursor")
    }

    fn item(id: u64, bytes: usize) -> HubItem {
        HubItem { cursor: Some(cursor(id)), run: None, text: vec![b'x'; bytes].into() }
    }

    fn ring(ids: impl IntoIterator<Item = u64>, bytes: usize) -> EventRing {
        let mut ring = EventRing::default();
        ids.into_iter().for_each(|id| ring.push(item(id, bytes)));
        ring
    }

    #[test]
    fn a_ring_keeps_no_more_than_it_may() {
        let full = ring(1..=RING_EVENTS_MAX as u64 + 10, 1);
        assert_eq!((full.items.len(), full.first), (RING_EVENTS_MAX, 10));
        assert_eq!((full.before, full.bytes), (cursor(10), RING_EVENTS_MAX));
        let large = ring(1..=20, RING_BYTES_MAX / 4);
        assert_eq!((large.items.len(), large.bytes), (4, RING_BYTES_MAX));
        let huge = ring(1..=2, RING_BYTES_MAX + 1);
        assert_eq!(huge.items.len(), 1, "one that is too large alone is still told");
    }

    #[test]
    fn a_place_is_found_as_long_as_nothing_behind_it_is_lost() {
        let mut ring = ring(1..=RING_EVENTS_MAX as u64 + 10, 1);
        ring.push(HubItem { cursor: None, run: None, text: Bytes::new() });
        // The oldest remaining item has number 11 in the journal.
        assert_eq!(ring.number_after(cursor(10)), None);
        assert_eq!(ring.number_after(cursor(11)), Some(ring.first));
        assert_eq!(ring.number_after(cursor(12)), Some(ring.first + 1));
        let last = RING_EVENTS_MAX as u64 + 10;
        assert_eq!(ring.number_after(cursor(last)), Some(ring.end_number() - 1), "news come again");
        assert_eq!(ring.number_after(cursor(last + 99)), Some(ring.end_number() - 1));
    }
}
