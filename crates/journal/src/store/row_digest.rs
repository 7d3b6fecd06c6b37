//! Digests of rows. A byte that changes in the store is noticed when its row is read.
//!
//! The events of a run form a chain: the digest of an event covers the digest of the event before
//! it. The row of a run holds the digest of its last event, and its own digest covers that. Every
//! other row that is shown to people has a digest of its own.

use sha2::{Digest, Sha256};

/// A SHA-256 digest, as it is stored.
pub(crate) type RowDigest = Vec<u8>;

/// Stands for the predecessor of a run's first event.
pub(crate) const NO_PREDECESSOR: [u8; 32] = [0; 32];

/// The columns of an event that its digest covers.
pub(crate) struct EventColumns<'a> {
    pub(crate) run: &'a str,
    pub(crate) seq: i64,
    pub(crate) v: i64,
    pub(crate) at_ms: i64,
    pub(crate) name: &'a str,
    pub(crate) payload: &'a str,
}

/// Hashes the values of a row. Each value is preceded by its length, so that no two rows have the
/// same input.
pub(crate) struct RowHasher(Sha256);

impl RowHasher {
    pub(crate) fn for_table(name: &str) -> Self {
        RowHasher(Sha256::new()).text(name)
    }

    #[must_use]
    pub(crate) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    #[must_use]
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    #[must_use]
    pub(crate) fn number(mut self, number: i64) -> Self {
        self.0.update(number.to_le_bytes());
        self
    }

    pub(crate) fn finish(self) -> RowDigest {
        self.0.finalize().to_vec()
    }
}

pub(crate) fn event_digest(predecessor: &[u8], event: &EventColumns<'_>) -> RowDigest {
    RowHasher::for_table("event")
        .bytes(predecessor)
        .text(event.run)
        .number(event.seq)
        .number(event.v)
        .number(event.at_ms)
        .text(event.name)
        .text(event.payload)
        .finish()
}

/// Returns the digest of a run's row. `head` is the digest of the run's last event. The columns of
/// the queue repeat parts of the state and are compared with it.
pub(crate) fn run_digest(id: &str, state: &str, head: &[u8]) -> RowDigest {
    RowHasher::for_table("run").text(id).text(state).bytes(head).finish()
}

pub(crate) fn request_digest(run: &str, body: &str) -> RowDigest {
    RowHasher::for_table("request").text(run).text(body).finish()
}

pub(crate) fn step_digest(run: &str, number: i64, status: &str, state: &str) -> RowDigest {
    RowHasher::for_table("step").text(run).number(number).text(status).text(state).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> EventColumns<'static> {
        EventColumns { run: "r", seq: 2, v: 1, at_ms: 5, name: "NOTE", payload: "{}" }
    }

    #[test]
    fn every_column_of_an_event_changes_its_digest() {
        let digest = |event: &EventColumns<'_>| event_digest(&NO_PREDECESSOR, event);
        let same = digest(&event());
        assert_eq!(same.len(), 32);
        assert_eq!(same, digest(&event()));
        for other in [
            EventColumns { run: "s", ..event() },
            EventColumns { seq: 3, ..event() },
            EventColumns { v: 2, ..event() },
            EventColumns { at_ms: 6, ..event() },
            EventColumns { name: "NOTF", ..event() },
            EventColumns { payload: "{ }", ..event() },
            // The same bytes, divided in another way.
            EventColumns { name: "NOTE{", payload: "}", ..event() },
        ] {
            assert_ne!(digest(&other), same);
        }
        assert_ne!(event_digest(&same, &event()), same);
    }
}
