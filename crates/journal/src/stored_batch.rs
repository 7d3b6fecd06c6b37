//! Recognises events that were stored although the answer of the store was lost.

use crate::error::JournalError;
use crate::event::Payload;
use crate::journal::Journal;
use crate::run::RunId;
use crate::sanitise;

impl Journal {
    /// Returns true if the events of a run after number `after_seq` begin with exactly these. After
    /// [`JournalError::Unreachable`] an append may have been stored. Its retry then gets
    /// [`JournalError::Conflict`], as if another process had continued the run.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn is_batch_stored(
        &self,
        id: &RunId,
        after_seq: u64,
        payloads: &[Payload],
    ) -> Result<bool, JournalError> {
        let count = u32::try_from(payloads.len()).unwrap_or(u32::MAX);
        let stored = self.events(id, after_seq, count).await?;
        if stored.len() != payloads.len() {
            return Ok(false);
        }
        for (event, payload) in stored.iter().zip(payloads) {
            if event.payload != as_stored(id, payload)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns a payload as it is read back from the store: truncated, and with its numbers as text
/// gives them.
fn as_stored(id: &RunId, payload: &Payload) -> Result<Payload, JournalError> {
    let fitted = sanitise::fit_payload(id, payload.clone())?;
    let text = sanitise::serialise_payload(&fitted)?;
    serde_json::from_str(&text).map_err(|source| JournalError::Unreadable {
        run: id.to_string(),
        what: "an event that was to be stored".to_owned(),
        source,
    })
}
