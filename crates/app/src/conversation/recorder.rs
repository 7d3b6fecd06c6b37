//! Records a conversation in the journal while its turns are in progress. A task of its own writes,
//! so that no run waits for the disk; what a run has handed over is stored before its turn ends.

use std::time::Duration;

use repertoire_agent::conversation::Conversation;
use repertoire_agent::{AgentEvent, AgentRunStatus, EventKind, RunReport};
use repertoire_journal::event::StepOutcome;
use repertoire_journal::limits::BATCH_EVENTS_MAX;
use repertoire_journal::run::RunUsage;
use repertoire_journal::{Journal, JournalError, NewRun, Payload, RunId, RunKind, RunLock};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::event::{CONVERSATION_RECORD_VERSION, ConversationEvent, ConversationRequest};
use super::state::{ConversationMetadata, ConversationState, RecordedBaseline};
use super::store::{ConversationStore, ConversationStoreError};
use crate::limits::{
    RECORD_BATCH_BYTES_MAX, RECORD_DELAY, RECORD_RETRY_PAUSE_MAX, RECORD_RETRY_PAUSE_MIN,
    SUMMARY_CHARS_MAX,
};
use crate::plan_setup::host_name;

/// The kind of step that a turn is in the listings of all runs.
const TURN: &str = "turn";

/// Something that a run hands over to be recorded.
pub(super) enum TurnRecord {
    Agent(AgentEvent),
    /// The conversation before a call of the model.
    Checkpoint(Conversation),
    Ended(Box<TurnEnd>),
}

/// The end of a turn.
pub(super) struct TurnEnd {
    pub(super) conversation: Conversation,
    pub(super) event: ConversationEvent,
    pub(super) outcome: StepOutcome,
    /// The error of the run.
    pub(super) reason: Option<String>,
    pub(super) spent: RunUsage,
    /// The event that all runs end with.
    pub(super) status: Payload,
}

/// The record of an open conversation: the events that are not stored yet, and the place after
/// which they belong.
#[derive(Debug)]
pub(super) struct ConversationRecorder {
    store: ConversationStore,
    id: RunId,
    /// `None` until the first event of a new conversation is stored.
    lock: Option<RunLock>,
    /// True if the folder of a new conversation was created here.
    has_new_folder: bool,
    /// The run to create; `None` once it is created.
    new_run: Option<NewRun>,
    /// The number of stored events.
    seq: u64,
    turns: u32,
    is_turn_open: bool,
    baseline: RecordedBaseline,
    /// Events that are not stored yet. They stay here if the journal cannot be written, and are
    /// stored with the next ones.
    pending: Vec<Payload>,
    /// The number of pending events of the last attempt, if it failed. They may be stored all the
    /// same, so the next attempt is about the same events.
    attempted: usize,
}

impl Drop for ConversationRecorder {
    /// Removes the folder of a conversation of which nothing was stored.
    fn drop(&mut self) {
        if self.new_run.is_some() && self.has_new_folder {
            self.lock = None;
            // An empty folder of no run does no harm.
            let _ = self.store.folder(&self.id).remove();
        }
    }
}

impl ConversationRecorder {
    /// Prepares a new conversation. Nothing is created before the first turn.
    pub(super) fn for_new(store: ConversationStore, head: &ConversationMetadata) -> Self {
        let request =
            ConversationRequest { version: CONVERSATION_RECORD_VERSION, agent: head.agent.clone() };
        let id = RunId::known(&head.id);
        let new_run = NewRun {
            id: id.clone(),
            kind: RunKind::Conversation.as_str().to_owned(),
            name: String::new(),
            workspace: head.folder.clone(),
            labels: Default::default(),
            priority: 0,
            limits: Default::default(),
            request: serde_json::json!(request),
        };
        ConversationRecorder {
            store,
            id,
            lock: None,
            has_new_folder: false,
            new_run: Some(new_run),
            seq: 0,
            turns: 0,
            is_turn_open: false,
            baseline: RecordedBaseline::default(),
            pending: Vec::new(),
            attempted: 0,
        }
    }

    /// Continues a stored conversation.
    pub(super) fn for_stored(
        store: ConversationStore,
        lock: RunLock,
        head: &ConversationMetadata,
        state: &ConversationState,
    ) -> Self {
        ConversationRecorder {
            store,
            id: RunId::known(&head.id),
            lock: Some(lock),
            has_new_folder: false,
            new_run: None,
            seq: state.run().map_or(0, |run| run.seq),
            turns: head.turns,
            is_turn_open: state.run().is_some_and(|run| run.open_step.is_some()),
            baseline: RecordedBaseline::new(&state.conversation),
            pending: Vec::new(),
            attempted: 0,
        }
    }

    /// Adds the events with which a turn starts. `title` names a new conversation.
    pub(super) fn begin_turn(&mut self, title: &str, prompt: &str) {
        if self.turns == 0 {
            if let Some(new_run) = &mut self.new_run {
                new_run.name = title.to_owned();
            }
            let worker = format!("{} (process {})", host_name(), std::process::id());
            self.pending.push(Payload::RunStarted { worker });
        } else {
            if self.is_turn_open {
                let reason = "its process ended before the turn did".to_owned();
                self.pending.push(Payload::StepInterrupted { step: self.turns, reason });
            }
            self.pending.push(Payload::RunResumed { by: "user".to_owned(), limits: None });
        }
        self.turns += 1;
        self.is_turn_open = true;
        self.pending.push(Payload::StepStarted {
            step: self.turns,
            kind: TURN.to_owned(),
            task: None,
            attempt: 1,
            iteration: self.turns,
            head: None,
            detail: Value::Null,
        });
        let started = ConversationEvent::TurnStarted { prompt: prompt.to_owned() };
        self.pending.push(started.to_payload());
    }

    fn add_record(&mut self, record: TurnRecord) {
        match record {
            TurnRecord::Agent(event) => {
                let event = ConversationEvent::AgentEvent(Box::new(event));
                self.pending.push(event.to_payload());
            }
            TurnRecord::Checkpoint(conversation) => self.add_conversation(conversation),
            TurnRecord::Ended(end) => self.end_turn(*end),
        }
    }

    fn add_conversation(&mut self, conversation: Conversation) {
        let increments = self.baseline.advance(conversation);
        let events = increments.into_iter().map(ConversationEvent::Saved);
        self.pending.extend(events.map(|event| event.to_payload()));
    }

    fn end_turn(&mut self, end: TurnEnd) {
        self.add_conversation(end.conversation);
        self.is_turn_open = false;
        let finished = Payload::StepFinished {
            step: self.turns,
            outcome: end.outcome,
            reason: end.reason,
            head: None,
            spent: end.spent,
            result: Value::Null,
        };
        self.pending.extend([end.event.to_payload(), finished, end.status]);
    }

    /// Stores the pending events. Those that could not be stored stay pending.
    async fn store_pending(&mut self) -> Result<(), ConversationStoreError> {
        if self.lock.is_none() {
            let folder = self.store.folder(&self.id);
            self.has_new_folder |= !folder.path().exists();
            self.lock = Some(folder.acquire_lock().map_err(ConversationStoreError::from_folder)?);
        }
        let journal = self.store.journal().await?.clone();
        while !self.pending.is_empty() {
            if self.attempted == 0 {
                self.attempted = next_batch(&self.pending).len();
            }
            self.seq = self.store_batch(&journal, &self.pending[..self.attempted]).await?;
            self.new_run = None;
            self.pending.drain(..self.attempted);
            self.attempted = 0;
        }
        Ok(())
    }

    /// Stores events, and returns the number of stored events.
    async fn store_batch(
        &self,
        journal: &Journal,
        batch: &[Payload],
    ) -> Result<u64, ConversationStoreError> {
        // The first event of a new run is its creation.
        let (before, stored) = match &self.new_run {
            Some(new_run) => (1, journal.create_attended(new_run.clone(), batch.to_vec()).await),
            None => (self.seq, journal.append_attended(&self.id, self.seq, batch.to_vec()).await),
        };
        match stored {
            Ok(run) => Ok(run.seq),
            // The last attempt has stored them, and only its answer was lost.
            Err(JournalError::Conflict { .. } | JournalError::Exists { .. })
                if journal.is_batch_stored(&self.id, before, batch).await? =>
            {
                Ok(before + batch.len() as u64)
            }
            Err(error) => Err(ConversationStoreError::from_append(error)),
        }
    }
}

/// Returns the first events that fit into one transaction; at least one.
fn next_batch(pending: &[Payload]) -> &[Payload] {
    let mut bytes = 0;
    let fitting = pending.iter().take(BATCH_EVENTS_MAX).take_while(|payload| {
        if let Payload::KindEvent { data, .. } = payload {
            bytes += estimate_bytes(data);
        }
        bytes <= RECORD_BATCH_BYTES_MAX
    });
    &pending[..fitting.count().max(1)]
}

/// Estimates the size of a value as JSON, without escapes.
fn estimate_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(estimate_bytes).sum::<usize>() + 2,
        Value::Object(entries) => {
            let entry = |(name, value): (&String, &Value)| name.len() + 4 + estimate_bytes(value);
            entries.iter().map(entry).sum::<usize>() + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// Writes the records of one turn as they arrive, until the turn has ended or was dropped. Several
/// records that arrive together are stored in one transaction. What could not be stored is tried
/// again during the turn, so that a crash loses little, and at its end.
pub(super) async fn write_turn(
    mut recorder: OwnedMutexGuard<ConversationRecorder>,
    mut records: UnboundedReceiver<TurnRecord>,
) -> Result<(), ConversationStoreError> {
    let mut failure: Option<StoreFailure> = None;
    loop {
        let retry_at = failure.as_ref().map(|failure| failure.retry_at);
        let is_over = match next_record(&mut records, retry_at).await {
            NextRecord::Record(first) => add_records(&mut recorder, &mut records, *first).await,
            NextRecord::RetryDue => false,
            // A turn that was dropped before its first record leaves nothing behind.
            NextRecord::Dropped if failure.is_none() => return Ok(()),
            NextRecord::Dropped => true,
        };
        // Each attempt may take long, so don't make one for every record.
        if is_over || failure.as_ref().is_none_or(StoreFailure::is_retry_due) {
            let stored = recorder.store_pending().await;
            failure = stored.err().map(|error| StoreFailure::after(failure, error));
        }
        if is_over {
            return failure.map_or(Ok(()), |failure| Err(failure.error));
        }
    }
}

/// A failed attempt to store events.
struct StoreFailure {
    error: ConversationStoreError,
    pause: Duration,
    retry_at: Instant,
}

impl StoreFailure {
    fn after(last: Option<StoreFailure>, error: ConversationStoreError) -> Self {
        let pause = last.map_or(RECORD_RETRY_PAUSE_MIN, |last| last.pause * 2);
        let pause = pause.min(RECORD_RETRY_PAUSE_MAX);
        StoreFailure { error, pause, retry_at: Instant::now() + pause }
    }

    fn is_retry_due(&self) -> bool {
        Instant::now() >= self.retry_at
    }
}

/// The next thing to do during a turn.
enum NextRecord {
    Record(Box<TurnRecord>),
    RetryDue,
    /// The turn was dropped before its end.
    Dropped,
}

async fn next_record(
    records: &mut UnboundedReceiver<TurnRecord>,
    retry_at: Option<Instant>,
) -> NextRecord {
    let next = match retry_at {
        None => Ok(records.recv().await),
        Some(retry_at) => tokio::time::timeout_at(retry_at, records.recv()).await,
    };
    match next {
        Ok(Some(record)) => NextRecord::Record(Box::new(record)),
        Ok(None) => NextRecord::Dropped,
        Err(_) => NextRecord::RetryDue,
    }
}

/// Adds a record, and others that arrive soon after it. Returns true if the turn has ended.
async fn add_records(
    recorder: &mut ConversationRecorder,
    records: &mut UnboundedReceiver<TurnRecord>,
    first: TurnRecord,
) -> bool {
    let mut is_ended = false;
    let deadline = Instant::now() + RECORD_DELAY;
    let mut next = Some(first);
    while let Some(record) = next {
        let is_urgent = is_urgent(&record);
        is_ended |= matches!(record, TurnRecord::Ended(_));
        recorder.add_record(record);
        next = if is_urgent {
            records.try_recv().ok()
        } else {
            tokio::time::timeout_at(deadline, records.recv()).await.ok().flatten()
        };
    }
    is_ended
}

/// Returns true if the record must not wait for others: what follows has effects that a crash would
/// otherwise leave unexplained, or costs money.
fn is_urgent(record: &TurnRecord) -> bool {
    match record {
        TurnRecord::Agent(event) => matches!(event.kind, EventKind::ToolCall { .. }),
        TurnRecord::Checkpoint(_) | TurnRecord::Ended(_) => true,
    }
}

impl TurnEnd {
    pub(super) fn from_report(report: &RunReport, conversation: Conversation) -> Self {
        let cost_usd = report.cost_usd;
        let usage = report.usage;
        TurnEnd {
            conversation,
            event: ConversationEvent::TurnEnded { usage, cost_usd },
            outcome: match report.status {
                AgentRunStatus::Done => StepOutcome::Ok,
                AgentRunStatus::Cancelled => StepOutcome::Stopped,
                AgentRunStatus::Failed | AgentRunStatus::Limited | AgentRunStatus::Paused => {
                    StepOutcome::Failed
                }
            },
            reason: report.error.as_ref().map(ToString::to_string),
            spent: RunUsage {
                cost_micro_usd: (cost_usd.unwrap_or_default().max(0.0) * 1e6).round() as u64,
                unpriced: cost_usd.is_none(),
                input_tokens: usage.total().saturating_sub(usage.output_tokens),
                output_tokens: usage.output_tokens,
                time_ms: u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
            },
            status: run_status(report),
        }
    }
}

/// Returns the event that ends the run until the next prompt.
fn run_status(report: &RunReport) -> Payload {
    let reason = || report.error.as_ref().map(ToString::to_string).unwrap_or_default();
    match report.status {
        AgentRunStatus::Done => {
            let line = report.text.lines().map(str::trim).find(|line| !line.is_empty());
            let summary = line.unwrap_or_default().chars().take(SUMMARY_CHARS_MAX).collect();
            Payload::RunCompleted { summary, head: None }
        }
        AgentRunStatus::Cancelled => Payload::RunCancelled { reason: reason() },
        AgentRunStatus::Failed | AgentRunStatus::Limited | AgentRunStatus::Paused => {
            Payload::RunFailed { reason: reason() }
        }
    }
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
