//! A single journal reader for all listeners. Recent events are kept in one shared ring, and a listener is just a
//! position in it.
//!
//! A listener that is too slow for the ring loses its position, and gets a cursor with which it can resume without
//! loss. Listeners have no queue of their own that could grow.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use repertoire_journal::{Cursor, Event, Journal, JournalError, RunId};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use super::news::SkillsNews;
use crate::house::News;

/// The maximum number of events in the ring.
pub const RING_EVENTS_MAX: usize = 4_096;
/// The maximum size of the ring in bytes: a single event may be large.
pub const RING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The maximum number of events read at once.
const READ_MAX: u32 = 500;
/// The maximum number of bytes handed to a listener at once, unless a single item exceeds it.
const HANDED_BYTES_MAX: usize = 32 * 1024;
/// The polling interval, in case the journal does not notify.
const LOOK: Duration = Duration::from_secs(2);
/// The delay after a failed read of the journal.
const AGAIN: Duration = Duration::from_secs(1);

/// An item that is sent to listeners.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// The cursor after it; `None` for news that are not in the journal.
    pub(super) cursor: Option<Cursor>,
    /// The run it is about.
    pub(super) run: Option<RunId>,
    /// The text as sent.
    pub(super) text: Bytes,
}

impl Item {
    pub(super) fn event(cursor: Cursor, event: &Event) -> Self {
        let data = serde_json::to_string(event).unwrap_or_default();
        let text = format!("id: {cursor}\nevent: run\ndata: {data}\n\n");
        Item { cursor: Some(cursor), run: Some(event.run.clone()), text: text.into() }
    }

    fn skills(news: &SkillsNews) -> Self {
        let data = serde_json::to_string(news).unwrap_or_default();
        let text = format!("event: skills\ndata: {data}\n\n");
        Item { cursor: None, run: None, text: text.into() }
    }
}

/// The ring and the task that fills it. The task ends when the hub is dropped.
pub struct Hub {
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    ring: Mutex<Ring>,
    /// The number after that of the newest item.
    head: watch::Sender<u64>,
    listeners: Arc<()>,
}

/// The newest items, with increasing numbers.
#[derive(Debug, Default)]
struct Ring {
    items: VecDeque<Item>,
    bytes: usize,
    /// The number of the oldest item.
    first: u64,
    /// The cursor just before the oldest item.
    before: Cursor,
    /// The cursor of the newest item.
    at: Cursor,
}

impl Ring {
    fn end(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    fn push(&mut self, item: Item) {
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
    fn number_after(&self, cursor: Cursor) -> Option<u64> {
        if cursor < self.before {
            return None;
        }
        let is_seen = |item: &Item| item.cursor.is_some_and(|at| at <= cursor);
        // News without a cursor belong to the event before them.
        let last_seen = self.items.iter().rposition(is_seen);
        Some(self.first + last_seen.map_or(0, |at| at as u64 + 1))
    }
}

/// A position in the ring.
pub(super) struct Listener {
    shared: Arc<Shared>,
    next: u64,
    at: Cursor,
    head: watch::Receiver<u64>,
    /// Held only for its reference count, which is the number of listeners.
    _counted: Arc<()>,
}

/// The result of waiting for items.
pub(super) enum Heard {
    /// Items in order, at least one.
    Items(Vec<Item>),
    /// The next item is no longer in the ring.
    Lost,
}

impl Hub {
    /// Starts reading the journal, from now on.
    ///
    /// # Errors
    ///
    /// If the journal cannot be used.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub(crate) async fn start(
        journal: Journal,
        news: broadcast::Receiver<News>,
    ) -> Result<Self, JournalError> {
        let at = journal.last_cursor().await?;
        let ring = Ring { before: at, at, ..Ring::default() };
        let shared = Arc::new(Shared {
            ring: Mutex::new(ring),
            head: watch::Sender::new(0),
            listeners: Arc::new(()),
        });
        let task = tokio::spawn(fill(Arc::clone(&shared), journal, news, at)).abort_handle();
        Ok(Hub { shared, task })
    }

    /// Listens for items that are added from now on.
    pub(super) fn listen(&self) -> Listener {
        let (next, at) = {
            let ring = self.shared.ring();
            (ring.end(), ring.at)
        };
        self.shared.listener(next, at)
    }

    /// Listens after a cursor; `None` if the ring no longer has everything after it.
    pub(super) fn listen_after(&self, cursor: Cursor) -> Option<Listener> {
        let next = self.shared.ring().number_after(cursor)?;
        Some(self.shared.listener(next, cursor))
    }

    /// The cursor just before the oldest item of the ring.
    pub(super) fn begins_behind(&self) -> Cursor {
        self.shared.ring().before
    }

    /// The number of listeners.
    pub fn listeners(&self) -> usize {
        Arc::strong_count(&self.shared.listeners) - 1
    }

    /// The size of the ring in bytes.
    pub fn bytes(&self) -> usize {
        self.shared.ring().bytes
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listener(self: &Arc<Self>, next: u64, at: Cursor) -> Listener {
        let (shared, head) = (Arc::clone(self), self.head.subscribe());
        Listener { shared, next, at, head, _counted: Arc::clone(&self.listeners) }
    }

    fn push(&self, items: impl IntoIterator<Item = Item>) {
        let end = {
            let mut ring = self.ring();
            items.into_iter().for_each(|item| ring.push(item));
            ring.end()
        };
        self.head.send_replace(end);
    }
}

impl Listener {
    /// The cursor of the last item received.
    pub(super) fn cursor(&self) -> Cursor {
        self.at
    }

    /// Waits for the next items, at most `items_max`.
    pub(super) async fn next(&mut self, items_max: usize) -> Heard {
        loop {
            self.head.borrow_and_update();
            match self.take(items_max) {
                Some(Heard::Items(items)) if items.is_empty() => {}
                Some(heard) => return heard,
                None => {}
            }
            if self.head.changed().await.is_err() {
                // The hub was dropped, so nothing can follow.
                return Heard::Lost;
            }
        }
    }

    fn take(&mut self, items_max: usize) -> Option<Heard> {
        let ring = self.shared.ring();
        if self.next < ring.first {
            return Some(Heard::Lost);
        }
        let start = usize::try_from(self.next - ring.first).ok()?;
        let mut bytes = 0;
        let fits = |item: &&Item| {
            let first = bytes == 0;
            bytes += item.text.len();
            first || bytes <= HANDED_BYTES_MAX
        };
        let waiting = ring.items.iter().skip(start).take(items_max);
        let items: Vec<Item> = waiting.take_while(fits).cloned().collect();
        self.next += items.len() as u64;
        self.at = items.iter().rev().find_map(|item| item.cursor).unwrap_or(self.at);
        Some(Heard::Items(items))
    }
}

/// Fills the ring until the task is aborted.
async fn fill(
    shared: Arc<Shared>,
    journal: Journal,
    mut news: broadcast::Receiver<News>,
    mut at: Cursor,
) {
    let mut changes = journal.changes();
    loop {
        match journal.tail(at, READ_MAX).await {
            Ok(events) if events.is_empty() => {}
            Ok(events) => {
                at = events.last().map_or(at, |(cursor, _)| *cursor);
                shared.push(events.iter().map(|(cursor, event)| Item::event(*cursor, event)));
                continue;
            }
            // Retry later: listeners get the events then, and there is no caller to report the error to.
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
        tokio::select! {
            _ = changes.next(LOOK) => {}
            told = news.recv() => match told {
                Ok(News::Skills(reload)) => shared.push([Item::skills(&SkillsNews::of(&reload))]),
                Err(RecvError::Lagged(_)) => shared.push(caught_up(&mut news)),
                Err(RecvError::Closed) => {
                    changes.next(LOOK).await;
                }
            },
        }
    }
}

/// The items to send after news were missed: an unspecific reload first, followed by the news that are still
/// available.
fn caught_up(news: &mut broadcast::Receiver<News>) -> Vec<Item> {
    let mut kept = Vec::new();
    loop {
        match news.try_recv() {
            Ok(News::Skills(reload)) => kept.push(SkillsNews::of(&reload)),
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        }
    }
    let missed = kept.last().map(|newest| SkillsNews {
        generation: newest.generation,
        added: Vec::new(),
        removed: Vec::new(),
        changed: Vec::new(),
        broken: Vec::new(),
        findings: 0,
    });
    missed.iter().chain(&kept).map(Item::skills).collect()
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use repertoire_skill::discover::Request;
    use repertoire_skill::library::Library;
    use repertoire_skill::profile::{Places, ProfileId, Root};
    use repertoire_text::fs::write_atomic;

    use super::*;

    #[test]
    fn whoever_missed_news_is_told_the_newest_generation() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap();
        let places =
            Places { here: dir.join("here"), home: dir.join("home"), pack: dir.join("pack") };
        let roots = Some(vec![Root::extra(dir.join("skills"))]);
        let request = Request { roots, ..Request::new(ProfileId::Repertoire, places) };
        let library = Library::open(request);
        let before = library.snapshot().generation();
        let (sender, mut news) = broadcast::channel(2);
        for name in ["a", "b", "c", "d", "e"] {
            let text = format!("---\nname: {name}\ndescription: d\n---\n");
            let file = dir.join("skills").join(name).join("SKILL.md");
            write_atomic(&file, text.as_bytes()).unwrap();
            assert!(sender.send(News::Skills(Arc::new(library.reload()))).is_ok());
        }
        assert!(matches!(news.try_recv(), Err(TryRecvError::Lagged(3))));
        let told: Vec<(u64, serde_json::Value)> = caught_up(&mut news)
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

    fn cursor(id: u64) -> Cursor {
        format!("0-{id}").parse().expect("a cursor")
    }

    fn item(id: u64, bytes: usize) -> Item {
        Item { cursor: Some(cursor(id)), run: None, text: vec![b'x'; bytes].into() }
    }

    fn ring(ids: impl IntoIterator<Item = u64>, bytes: usize) -> Ring {
        let mut ring = Ring::default();
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
        ring.push(Item { cursor: None, run: None, text: Bytes::new() });
        // The oldest remaining item has number 11 in the journal.
        assert_eq!(ring.number_after(cursor(10)), None);
        assert_eq!(ring.number_after(cursor(11)), Some(ring.first));
        assert_eq!(ring.number_after(cursor(12)), Some(ring.first + 1));
        let last = RING_EVENTS_MAX as u64 + 10;
        assert_eq!(ring.number_after(cursor(last)), Some(ring.end() - 1), "news come again");
        assert_eq!(ring.number_after(cursor(last + 99)), Some(ring.end() - 1));
    }
}
