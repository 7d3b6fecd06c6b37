//! Write transactions. A transaction is retried while it may still succeed, and its events are
//! never stored twice, although the acknowledgement of a commit can be lost.

use std::future::Future;
use std::time::Duration;

use crate::boot_clock::BootClock;
use crate::error::JournalError;
use crate::event::{EVENT_VERSION, Event, Payload};
use crate::fold::FoldedRun;
use crate::journal::Journal;
use crate::limits::{ANSWER_MAX, ATTEMPTS_MAX, BATCH_BYTES_MAX};
use crate::memory_operations::event_entry;
use crate::run::{Run, RunId, RunStatus, RunStopRequest, Step};
use crate::sanitise;
use crate::store::row_digest::{EventColumns, NO_PREDECESSOR, RowDigest, event_digest};
use crate::store::rows::StoredRun;
use crate::store::tx::{SerialisedEvent, duration_millis, to_signed};
use crate::store::{JournalClock, LeaseChange, LeaseTerm, StoreFault, StoreTx, retry_delay};

/// An operation performed in one transaction. It may be performed again if the transaction failed.
pub(crate) trait StoreOperation: Sync {
    type Out: Send;

    /// Performs the operation, without committing.
    fn perform(
        &self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> impl Future<Output = Result<OperationResult<Self::Out>, StoreFault>> + Send;
}

/// The context of an operation.
pub(crate) struct OperationContext<'a> {
    /// The id of the batch, the same for everything the operation writes, including its retries.
    pub(crate) batch: &'a str,
    /// The clock that stamps events.
    pub(crate) clock: &'a JournalClock,
    /// The clock that measures leases.
    pub(crate) boot_clock: &'a BootClock,
}

impl OperationContext<'_> {
    /// Returns a lease term of this length that starts now.
    pub(crate) fn lease_term(&self, length: Duration) -> LeaseTerm<'_> {
        LeaseTerm {
            length,
            boot: self.boot_clock.boot(),
            boot_until_ms: self.boot_clock.now_ms().saturating_add(duration_millis(length)),
        }
    }
}

/// The result of an operation.
pub(crate) struct OperationResult<T> {
    pub(crate) out: T,
    /// An event that exists if the operation was committed; `None` if the operation is safe to
    /// repeat.
    pub(crate) receipt: Option<EventReceipt>,
}

/// Identifies an event written by the operation.
pub(crate) struct EventReceipt {
    run: RunId,
    seq: u64,
}

impl<T> OperationResult<T> {
    /// A result without a receipt: the operation wrote nothing, or nothing that a repetition would
    /// duplicate.
    pub(crate) fn without_receipt(out: T) -> Self {
        OperationResult { out, receipt: None }
    }
}

impl Journal {
    /// Performs an operation in a transaction, with retries.
    pub(crate) async fn perform_write<O: StoreOperation>(
        &self,
        operation: &O,
    ) -> Result<O::Out, JournalError> {
        let batch = uuid::Uuid::now_v7().to_string();
        let mut sent = None;
        let mut attempts = 0;
        loop {
            attempts += 1;
            // On the heap, because callers nest these large futures deeply in theirs.
            match Box::pin(self.attempt_write(operation, &batch, &mut sent)).await {
                Ok(done) => {
                    // Operations without a receipt changed nothing, for instance a claim that found
                    // no run. Don't wake workers that wait for changes.
                    if done.receipt.is_some() {
                        self.notify_changes();
                    }
                    return Ok(done.out);
                }
                Err(fault) => self.wait_or_give_up(fault, attempts).await?,
            }
        }
    }

    /// Performs a read, with retries.
    pub(crate) async fn perform_read<T, F>(
        &self,
        mut ask: impl FnMut() -> F,
    ) -> Result<T, JournalError>
    where
        F: Future<Output = Result<T, StoreFault>>,
    {
        let mut attempts = 0;
        loop {
            attempts += 1;
            // On the heap, as in `perform_write`.
            match with_timeout(Box::pin(ask())).await {
                Ok(out) => return Ok(out),
                Err(fault) => self.wait_or_give_up(fault, attempts).await?,
            }
        }
    }

    /// Performs one attempt. `sent` holds the result of a commit that was never acknowledged.
    async fn attempt_write<O: StoreOperation>(
        &self,
        operation: &O,
        batch: &str,
        sent: &mut Option<OperationResult<O::Out>>,
    ) -> Result<OperationResult<O::Out>, StoreFault> {
        let mut tx = with_timeout(self.store().begin_write()).await?;
        if let Some(OperationResult { receipt: Some(receipt), .. }) = sent.as_ref() {
            // If the server is still processing the first commit, locking the run waits for it.
            with_timeout(tx.run(&receipt.run)).await?;
            if with_timeout(tx.has_batch(&receipt.run, receipt.seq, batch)).await?
                && let Some(done) = sent.take()
            {
                roll_back(tx).await;
                return Ok(done);
            }
        }
        *sent = None;
        let work = OperationContext { batch, clock: self.clock(), boot_clock: self.boot_clock() };
        let done = match with_timeout(operation.perform(&mut tx, &work)).await {
            Ok(done) => done,
            Err(fault) => {
                // A fault of the store may be a lost connection: a rollback would only wait for its
                // timeout.
                if !matches!(fault, StoreFault::Sql(_)) {
                    roll_back(tx).await;
                }
                return Err(fault);
            }
        };
        match with_timeout(async { Ok(tx.commit().await?) }).await {
            Ok(()) => Ok(done),
            Err(fault) => {
                let is_certain =
                    matches!(&fault, StoreFault::Sql(error) if self.store().was_rolled_back(error));
                *sent = (!is_certain).then_some(done);
                Err(fault)
            }
        }
    }

    async fn wait_or_give_up(&self, fault: StoreFault, attempts: u32) -> Result<(), JournalError> {
        match fault {
            StoreFault::Sql(source) if self.store().is_transient(&source) => {
                if attempts >= ATTEMPTS_MAX {
                    return Err(JournalError::Unreachable { attempts, source: source.into() });
                }
                tokio::time::sleep(retry_delay(attempts)).await;
                Ok(())
            }
            fault => Err(self.store().explain_fault(fault).await),
        }
    }
}

/// Rolls back a transaction. If that fails, the connection is gone, and the transaction with it.
async fn roll_back(tx: StoreTx) {
    drop(with_timeout(async { Ok(tx.rollback().await?) }).await);
}

/// Applies the response timeout. A connection that does not respond in time counts as lost.
async fn with_timeout<T>(
    asked: impl Future<Output = Result<T, StoreFault>>,
) -> Result<T, StoreFault> {
    match tokio::time::timeout(ANSWER_MAX, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
    }
}

/// Events that are about to be stored, and the state of the run they result in.
pub(crate) struct EventDraft {
    folded: FoldedRun,
    open_before: Option<Step>,
    wish_before: Option<RunStopRequest>,
    /// The digest of the run's last event, including the drafted ones.
    head: RowDigest,
    lines: Vec<SerialisedEvent>,
    clock: JournalClock,
}

impl EventDraft {
    /// Starts a draft with the first event of a run.
    pub(crate) fn for_new_run(
        id: &RunId,
        payload: Payload,
        clock: &JournalClock,
    ) -> Result<Self, JournalError> {
        let payload = sanitise::fit_payload(id, payload)?;
        let event = Event { v: EVENT_VERSION, run: id.clone(), seq: 1, at_ms: clock(), payload };
        let line = serialise_event(event, &NO_PREDECESSOR)?;
        let mut folded = FoldedRun::default();
        folded.apply(&line.event)?;
        let head = line.row_digest.clone();
        let (lines, clock) = (vec![line], clock.clone());
        Ok(EventDraft { folded, open_before: None, wish_before: None, head, lines, clock })
    }

    /// Starts a draft of further events of a locked run.
    pub(crate) async fn for_run(
        stored: StoredRun,
        tx: &mut StoreTx,
        clock: &JournalClock,
    ) -> Result<Self, StoreFault> {
        let StoredRun { run, head } = stored;
        let open_before = tx.open_step(&run).await?;
        Ok(EventDraft {
            wish_before: run.wish,
            folded: FoldedRun { run: Some(run), steps: open_before.clone().into_iter().collect() },
            open_before,
            head,
            lines: Vec::new(),
            clock: clock.clone(),
        })
    }

    pub(crate) fn run(&self) -> &Run {
        self.folded.run.as_ref().expect("a draft begins with a run")
    }

    /// Adds an event. Its time is never before that of the previous event, whatever the clock does.
    pub(crate) fn add_event(&mut self, payload: Payload) -> Result<(), JournalError> {
        let run = self.run();
        let payload = sanitise::fit_payload(&run.id, payload)?;
        let at_ms = (self.clock)().max(run.updated_ms);
        let (run, seq) = (run.id.clone(), run.seq + 1);
        let event = Event { v: EVENT_VERSION, run, seq, at_ms, payload };
        let line = serialise_event(event, &self.head)?;
        self.folded.apply(&line.event)?;
        self.head.clone_from(&line.row_digest);
        self.lines.push(line);
        Ok(())
    }

    /// Interrupts the step in progress, if there is one.
    pub(crate) fn interrupt_step(&mut self, reason: &str) -> Result<(), JournalError> {
        match self.run().open_step {
            Some(step) => {
                self.add_event(Payload::StepInterrupted { step, reason: reason.to_owned() })
            }
            None => Ok(()),
        }
    }

    /// Applies a pending pause or cancel request when the worker releases the run.
    pub(crate) fn apply_stop_request(&mut self) -> Result<(), JournalError> {
        let reason = || "as somebody asked while it was running".to_owned();
        match self.wish_before {
            Some(RunStopRequest::Cancel) if !self.run().status.is_over() => {
                self.add_event(Payload::RunCancelled { reason: reason() })
            }
            Some(RunStopRequest::Pause) if self.run().status == RunStatus::Queued => {
                self.add_event(Payload::RunPaused { reason: reason() })
            }
            _ => Ok(()),
        }
    }

    /// Writes the events of an existing run.
    pub(crate) async fn store_events(
        self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
        lease: LeaseChange<'_>,
    ) -> Result<OperationResult<Run>, StoreFault> {
        let EventDraft { folded: FoldedRun { run, steps }, open_before, head, lines, .. } = self;
        let mut run = run.expect("a draft begins with a run");
        if lines.is_empty() {
            return Ok(OperationResult::without_receipt(run));
        }
        insert_events(tx, work, &lines).await?;
        for step in steps.iter().filter(|step| Some(*step) != open_before.as_ref()) {
            tx.put_step(step).await?;
        }
        tx.update_run(&mut run, &head, lease).await?;
        store_observations(tx, work, &lines).await?;
        Ok(result_with_receipt(run, &lines))
    }

    /// Writes a new run. If a run with this id exists, returns that run.
    pub(crate) async fn store_new(
        self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> Result<OperationResult<Run>, StoreFault> {
        let mut run = self.folded.run.expect("a draft begins with a run");
        if tx.insert_run(&mut run, &self.head).await? {
            insert_events(tx, work, &self.lines).await?;
            for step in &self.folded.steps {
                tx.put_step(step).await?;
            }
            tx.notify_new_run(&run.id).await?;
            return Ok(result_with_receipt(run, &self.lines));
        }
        let there = tx.run(&run.id).await?;
        let there = there.ok_or_else(|| JournalError::unknown_run(&run.id))?;
        Ok(OperationResult::without_receipt(there.run))
    }
}

async fn insert_events(
    tx: &mut StoreTx,
    work: &OperationContext<'_>,
    lines: &[SerialisedEvent],
) -> Result<(), StoreFault> {
    let size = lines.iter().map(|line| line.payload.len()).sum();
    sanitise::refuse_larger("the list of events (in bytes)", size, BATCH_BYTES_MAX)?;
    tx.insert_events(lines, work.batch).await
}

/// Folds the observations in the events into the memory, in the same transaction.
async fn store_observations(
    tx: &mut StoreTx,
    work: &OperationContext<'_>,
    lines: &[SerialisedEvent],
) -> Result<(), StoreFault> {
    let entries: Vec<_> = lines.iter().filter_map(|line| event_entry(&line.event)).collect();
    if !entries.is_empty() {
        tx.lock_memory().await?;
    }
    for entry in &entries {
        tx.store_observation(entry, work.batch).await?;
    }
    Ok(())
}

fn result_with_receipt(run: Run, lines: &[SerialisedEvent]) -> OperationResult<Run> {
    let seq = lines.first().map_or(0, |line| line.event.seq);
    let receipt = EventReceipt { run: run.id.clone(), seq };
    OperationResult { out: run, receipt: Some(receipt) }
}

fn serialise_event(event: Event, prev: &[u8]) -> Result<SerialisedEvent, JournalError> {
    let payload = sanitise::serialise_payload(&event.payload)?;
    let columns = EventColumns {
        run: event.run.as_str(),
        seq: to_signed(event.seq),
        v: i64::from(event.v),
        at_ms: to_signed(event.at_ms),
        name: event.payload.name(),
        payload: &payload,
    };
    let row_digest = event_digest(prev, &columns);
    Ok(SerialisedEvent { event, payload, prev: prev.to_vec(), row_digest })
}
