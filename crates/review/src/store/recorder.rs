//! Records a review while it goes on: its events in the journal, and its files at the end.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_journal::limits::BATCH_EVENTS_MAX;
use repertoire_journal::run::Limits;
use repertoire_journal::run_folder::{RunFolder, RunLock};
use repertoire_journal::{Journal, JournalError, NewRun, Payload, RunId, RunKind};
use repertoire_skill::skill::ContentDigest;
use repertoire_text::fs;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::{CHANGE, RECORD, ReviewStore, ReviewStoreError};
use crate::change::ReviewChange;
use crate::limits::{RECORD_RETRY_PAUSES, RECORDED_AT_ONCE_MAX};
use crate::pipeline::Progress;
use crate::record::{ReviewCall, ReviewRecord};
use crate::run_event::{ReviewEvent, ReviewRequest, ReviewResult, step_events};

/// Records a running review. If it is dropped before [`ReviewRecorder::finish_review`], the review
/// counts as interrupted.
pub struct ReviewRecorder {
    /// Not bounded, because a review must not wait for the disk; a review has only so many calls.
    notes: mpsc::UnboundedSender<ReviewNote>,
    writer: AbortOnDropHandle<ReviewWriter>,
    folder: RunFolder,
    /// Held until the review is over.
    _lock: RunLock,
}

/// Something to record.
enum ReviewNote {
    Happened(ReviewEvent),
    Ended(ReviewCall),
}

/// The end of the run in the journal, to which the next events are appended.
struct ReviewWriter {
    journal: Journal,
    id: RunId,
    seq: u64,
    steps: u32,
    /// Events that are not stored yet. If the journal cannot be written, they are stored with the
    /// next ones.
    pending: Vec<Payload>,
    /// The number of pending events of the last attempt, if it failed. They may be stored all the
    /// same, so the next attempt is about the same events.
    attempted: usize,
}

impl ReviewStore {
    /// Starts to record a review.
    ///
    /// # Errors
    ///
    /// Fails if the folder of the run cannot be created or the journal cannot be used.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn start_review(
        &self,
        id: &str,
        request: &ReviewRequest,
    ) -> Result<ReviewRecorder, ReviewStoreError> {
        let id = RunId::known(id);
        let folder = self.folder(&id);
        // The folder of another run with this id is not ours to remove.
        let is_new_folder = !folder.path().exists();
        // Lock first: a run without a lock looks interrupted.
        let lock = folder.acquire_lock()?;
        let new = NewRun {
            id: id.clone(),
            kind: RunKind::Review.as_str().to_owned(),
            name: request.scope.words.clone(),
            workspace: self.workspace.to_string(),
            labels: BTreeSet::new(),
            priority: 0,
            limits: Limits::default(),
            request: serde_json::to_value(request).unwrap_or_default(),
        };
        let run = match self.journal.create_attended(new, Vec::new()).await {
            Ok(run) => run,
            Err(error) => {
                drop(lock);
                if is_new_folder {
                    // An empty folder of no run does no harm.
                    let _ = folder.remove();
                }
                return Err(error.into());
            }
        };
        let journal = self.journal.clone();
        let (seq, pending) = (run.seq, Vec::new());
        let writer = ReviewWriter { journal, id, seq, steps: 0, pending, attempted: 0 };
        let (notes, heard) = mpsc::unbounded_channel();
        let writer = AbortOnDropHandle::new(tokio::spawn(writer.write_notes(heard)));
        Ok(ReviewRecorder { notes, writer, folder, _lock: lock })
    }
}

impl ReviewRecorder {
    /// Records progress. Returns at once; an error is returned at the end of the review.
    pub fn note_progress(&self, progress: Progress<'_>) {
        let note = match progress {
            Progress::Phase(phase, calls) => {
                let calls = u32::try_from(calls).unwrap_or(u32::MAX);
                ReviewNote::Happened(ReviewEvent::PhaseStarted { phase, calls })
            }
            Progress::Asked(phase, agent) => {
                ReviewNote::Happened(ReviewEvent::AgentAsked { phase, agent: agent.to_owned() })
            }
            Progress::Answered(call) => ReviewNote::Ended(call.clone()),
            Progress::Checked(call) => ReviewNote::Happened(ReviewEvent::AnswerChecked {
                phase: call.phase,
                agent: call.agent.clone(),
                answered: call.answered,
                admitted: call.admitted,
            }),
        };
        // The writer ends only after this sender is gone.
        let _ = self.notes.send(note);
    }

    /// Writes the record and the change, and completes the run. Returns the folder.
    ///
    /// # Errors
    ///
    /// Fails if the files cannot be written, which makes the run a failed one, or if something could
    /// not be recorded.
    pub async fn finish_review(
        self,
        review: &ReviewRecord,
        change: &ReviewChange,
    ) -> Result<Utf8PathBuf, ReviewStoreError> {
        let dir = self.folder.path().to_owned();
        let result = match write_files(&dir, review, change) {
            Ok(result) => result,
            Err(error) => {
                // The files are the result, so their error is the one to report.
                let _ = self.end_run(vec![Payload::RunFailed { reason: error.to_string() }]).await;
                return Err(error);
            }
        };
        let completed = Payload::RunCompleted { summary: result.summary(), head: None };
        let finished = ReviewEvent::ReviewFinished(result).to_payload();
        self.end_run(vec![finished, completed]).await?;
        Ok(dir)
    }

    /// Records that the review ended without a result.
    ///
    /// # Errors
    ///
    /// Fails if something could not be recorded.
    pub async fn fail_review(self, reason: String) -> Result<(), ReviewStoreError> {
        self.end_run(vec![Payload::RunFailed { reason }]).await
    }

    /// Waits for the events so far, and appends the last ones.
    async fn end_run(self, payloads: Vec<Payload>) -> Result<(), ReviewStoreError> {
        let ReviewRecorder { notes, writer, folder, _lock } = self;
        drop(notes);
        let mut writer = writer.await.map_err(|error| ReviewStoreError::Write {
            path: folder.path().to_owned(),
            source: std::io::Error::other(error),
        })?;
        writer.pending.extend(payloads);
        Ok(writer.store_with_retries().await?)
    }
}

impl ReviewWriter {
    async fn write_notes(mut self, mut heard: mpsc::UnboundedReceiver<ReviewNote>) -> Self {
        let mut notes = Vec::new();
        while heard.recv_many(&mut notes, RECORDED_AT_ONCE_MAX).await > 0 {
            for note in notes.drain(..) {
                let payloads = self.payloads_of(note);
                self.pending.extend(payloads);
            }
            // The events stay pending, and the review goes on.
            let _ = self.store_pending().await;
        }
        self
    }

    fn payloads_of(&mut self, note: ReviewNote) -> Vec<Payload> {
        match note {
            ReviewNote::Happened(event) => vec![event.to_payload()],
            ReviewNote::Ended(call) => {
                self.steps += 1;
                step_events(self.steps, &call).into()
            }
        }
    }

    /// Stores the pending events. Those that could not be stored stay pending.
    async fn store_pending(&mut self) -> Result<(), JournalError> {
        while !self.pending.is_empty() {
            if self.attempted == 0 {
                self.attempted = self.pending.len().min(BATCH_EVENTS_MAX);
            }
            let batch = &self.pending[..self.attempted];
            match self.journal.append_attended(&self.id, self.seq, batch.to_vec()).await {
                Ok(run) => self.seq = run.seq,
                // An earlier attempt has stored them, and only its answer was lost.
                Err(JournalError::Conflict { .. })
                    if self.journal.is_batch_stored(&self.id, self.seq, batch).await? =>
                {
                    self.seq += batch.len() as u64;
                }
                Err(error) => return Err(error),
            }
            self.pending.drain(..self.attempted);
            self.attempted = 0;
        }
        Ok(())
    }

    /// Stores the last events. No later ones would bring another attempt with them.
    async fn store_with_retries(&mut self) -> Result<(), JournalError> {
        for pause in RECORD_RETRY_PAUSES {
            match self.store_pending().await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_permanent() => return Err(error),
                Err(_) => tokio::time::sleep(pause).await,
            }
        }
        self.store_pending().await
    }
}

/// Writes the files of a review, and returns its result with their digests.
fn write_files(
    dir: &Utf8Path,
    review: &ReviewRecord,
    change: &ReviewChange,
) -> Result<ReviewResult, ReviewStoreError> {
    let change_digest = write_json(&dir.join(CHANGE), change)?;
    let record_digest = write_json(&dir.join(RECORD), review)?;
    Ok(ReviewResult::from_record(review, record_digest, change_digest))
}

/// Writes a file and returns its digest.
fn write_json(path: &Utf8Path, value: &impl Serialize) -> Result<String, ReviewStoreError> {
    let written = serde_json::to_vec_pretty(value).map_err(std::io::Error::other);
    let written = written.and_then(|json| fs::write_atomic(path, &json).map(|()| json));
    match written {
        Ok(json) => Ok(ContentDigest::hash_bytes(&json).to_string()),
        Err(source) => Err(ReviewStoreError::Write { path: path.to_owned(), source }),
    }
}
