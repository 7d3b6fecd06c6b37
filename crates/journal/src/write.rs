//! Write transactions. A transaction is retried while it may still succeed, and its events are
//! never stored twice, although the acknowledgement of a commit can be lost.

use std::future::Future;
use std::time::Duration;

use crate::boot_clock::BootClock;
use crate::error::JournalError;
use crate::event::{EVENT_VERSION, Event, Payload};
use crate::fold::Folded;
use crate::journal::Journal;
use crate::limits::{ANSWER_MAX, ATTEMPTS_MAX, BATCH_BYTES_MAX};
use crate::remember::entry_of;
use crate::run::{Run, RunId, RunStatus, Step, Wish};
use crate::store::tx::{Line, millis};
use crate::store::{Clock, Fault, LeaseChange, LeaseTerm, Tx, postgres, wait_after};
use crate::text;

/// An operation performed in one transaction. It may be performed again if the transaction failed.
pub(crate) trait Operation: Sync {
    type Out: Send;

    /// Performs the operation, without committing.
    fn perform(
        &self,
        tx: &mut Tx,
        work: &Work<'_>,
    ) -> impl Future<Output = Result<Done<Self::Out>, Fault>> + Send;
}

/// The context of an operation.
pub(crate) struct Work<'a> {
    /// The id of the batch, the same for everything the operation writes, including its retries.
    pub(crate) batch: &'a str,
    /// The clock that stamps events.
    pub(crate) clock: &'a Clock,
    /// The clock that measures leases.
    pub(crate) boot_clock: &'a BootClock,
}

impl Work<'_> {
    /// Returns a lease term of this length that starts now.
    pub(crate) fn lease_term(&self, length: Duration) -> LeaseTerm<'_> {
        LeaseTerm {
            length,
            boot: self.boot_clock.boot(),
            boot_until_ms: self.boot_clock.now_ms().saturating_add(millis(length)),
        }
    }
}

/// The result of an operation.
pub(crate) struct Done<T> {
    pub(crate) out: T,
    /// An event that exists if the operation was committed; `None` if the operation is safe to
    /// repeat.
    pub(crate) receipt: Option<Receipt>,
}

/// Identifies an event written by the operation.
pub(crate) struct Receipt {
    run: RunId,
    seq: u64,
}

impl<T> Done<T> {
    /// A result without a receipt: the operation wrote nothing, or nothing that a repetition would
    /// duplicate.
    pub(crate) fn plain(out: T) -> Self {
        Done { out, receipt: None }
    }
}

impl Journal {
    /// Performs an operation in a transaction, with retries.
    pub(crate) async fn write<O: Operation>(&self, operation: &O) -> Result<O::Out, JournalError> {
        let batch = uuid::Uuid::now_v7().to_string();
        let mut sent = None;
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.attempt(operation, &batch, &mut sent).await {
                Ok(done) => {
                    // Operations without a receipt changed nothing, for instance a claim that found
                    // no run. Don't wake workers that wait for changes.
                    if done.receipt.is_some() {
                        self.ring();
                    }
                    return Ok(done.out);
                }
                Err(fault) => self.wait_or_give_up(fault, attempts).await?,
            }
        }
    }

    /// Performs a read, with retries.
    pub(crate) async fn read<T, F>(&self, mut ask: impl FnMut() -> F) -> Result<T, JournalError>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match answered(ask()).await {
                Ok(out) => return Ok(out),
                Err(fault) => self.wait_or_give_up(fault, attempts).await?,
            }
        }
    }

    /// Performs one attempt. `sent` holds the result of a commit that was never acknowledged.
    async fn attempt<O: Operation>(
        &self,
        operation: &O,
        batch: &str,
        sent: &mut Option<Done<O::Out>>,
    ) -> Result<Done<O::Out>, Fault> {
        let mut tx = answered(self.store().begin()).await?;
        if let Some(Done { receipt: Some(receipt), .. }) = sent.as_ref() {
            // If the server is still processing the first commit, locking the run waits for it.
            answered(tx.run(&receipt.run)).await?;
            if answered(tx.has_batch(&receipt.run, receipt.seq, batch)).await?
                && let Some(done) = sent.take()
            {
                let_go(tx).await;
                return Ok(done);
            }
        }
        *sent = None;
        let work = Work { batch, clock: self.clock(), boot_clock: self.boot_clock() };
        let done = match answered(operation.perform(&mut tx, &work)).await {
            Ok(done) => done,
            Err(fault) => {
                // A fault of the store may be a lost connection: a rollback would only wait for its
                // timeout.
                if matches!(fault, Fault::Journal(_)) {
                    let_go(tx).await;
                }
                return Err(fault);
            }
        };
        match answered(async { Ok(tx.commit().await?) }).await {
            Ok(()) => Ok(done),
            Err(fault) => {
                let is_certain =
                    matches!(&fault, Fault::Sql(error) if postgres::was_rolled_back(error));
                *sent = (!is_certain).then_some(done);
                Err(fault)
            }
        }
    }

    async fn wait_or_give_up(&self, fault: Fault, attempts: u32) -> Result<(), JournalError> {
        match fault {
            Fault::Sql(source) if Fault::sql_may_pass(&source) => {
                if attempts >= ATTEMPTS_MAX {
                    return Err(JournalError::Unreachable { attempts, source: source.into() });
                }
                tokio::time::sleep(wait_after(attempts)).await;
                Ok(())
            }
            fault => Err(self.store().explain(fault)),
        }
    }
}

/// Rolls back a transaction. If that fails, the connection is gone, and the transaction with it.
async fn let_go(tx: Tx) {
    drop(answered(async { Ok(tx.rollback().await?) }).await);
}

/// Applies the response timeout. A connection that does not respond in time counts as lost.
async fn answered<T>(asked: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    match tokio::time::timeout(ANSWER_MAX, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
    }
}

/// Events that are about to be stored, and the state of the run they result in.
pub(crate) struct Draft {
    folded: Folded,
    open_before: Option<Step>,
    wish_before: Option<Wish>,
    lines: Vec<Line>,
    clock: Clock,
}

impl Draft {
    /// Starts a draft with the first event of a run.
    pub(crate) fn of_new(
        id: &RunId,
        payload: Payload,
        clock: &Clock,
    ) -> Result<Self, JournalError> {
        let payload = text::fitting(id, payload)?;
        let line = line(id, 1, clock(), payload)?;
        let mut folded = Folded::default();
        folded.apply(&line.event)?;
        let (lines, clock) = (vec![line], clock.clone());
        Ok(Draft { folded, open_before: None, wish_before: None, lines, clock })
    }

    /// Starts a draft of further events of a locked run.
    pub(crate) async fn of(run: Run, tx: &mut Tx, clock: &Clock) -> Result<Self, Fault> {
        let open_before = tx.open_step(&run).await?;
        Ok(Draft {
            wish_before: run.wish,
            folded: Folded { run: Some(run), steps: open_before.clone().into_iter().collect() },
            open_before,
            lines: Vec::new(),
            clock: clock.clone(),
        })
    }

    pub(crate) fn run(&self) -> &Run {
        self.folded.run.as_ref().expect("a draft begins with a run")
    }

    /// Adds an event. Its time is never before that of the previous event, whatever the clock does.
    pub(crate) fn add(&mut self, payload: Payload) -> Result<(), JournalError> {
        let run = self.run();
        let payload = text::fitting(&run.id, payload)?;
        let at_ms = (self.clock)().max(run.updated_ms);
        let line = line(&run.id, run.seq + 1, at_ms, payload)?;
        self.folded.apply(&line.event)?;
        self.lines.push(line);
        Ok(())
    }

    /// Interrupts the step in progress, if there is one.
    pub(crate) fn interrupt(&mut self, reason: &str) -> Result<(), JournalError> {
        match self.run().open_step {
            Some(step) => self.add(Payload::StepInterrupted { step, reason: reason.to_owned() }),
            None => Ok(()),
        }
    }

    /// Applies a pending pause or cancel request when the worker releases the run.
    pub(crate) fn honour_wish(&mut self) -> Result<(), JournalError> {
        let reason = || "as somebody asked while it was running".to_owned();
        match self.wish_before {
            Some(Wish::Cancel) if !self.run().status.is_over() => {
                self.add(Payload::RunCancelled { reason: reason() })
            }
            Some(Wish::Pause) if self.run().status == RunStatus::Queued => {
                self.add(Payload::RunPaused { reason: reason() })
            }
            _ => Ok(()),
        }
    }

    /// Writes the events of an existing run.
    pub(crate) async fn store(
        self,
        tx: &mut Tx,
        work: &Work<'_>,
        lease: LeaseChange<'_>,
    ) -> Result<Done<Run>, Fault> {
        let Draft { folded: Folded { run, steps }, open_before, lines, .. } = self;
        let mut run = run.expect("a draft begins with a run");
        if lines.is_empty() {
            return Ok(Done::plain(run));
        }
        let size = lines.iter().map(|line| line.payload.len()).sum();
        text::refuse_larger("the list of events (in bytes)", size, BATCH_BYTES_MAX)?;
        tx.insert_events(&lines, work.batch).await?;
        for step in steps.iter().filter(|step| Some(*step) != open_before.as_ref()) {
            tx.put_step(step).await?;
        }
        tx.update_run(&mut run, lease).await?;
        remember(tx, work, &lines).await?;
        Ok(done(run, &lines))
    }

    /// Writes a new run. If a run with this id exists, returns that run.
    pub(crate) async fn store_new(self, tx: &mut Tx, work: &Work<'_>) -> Result<Done<Run>, Fault> {
        let mut run = self.folded.run.expect("a draft begins with a run");
        if tx.insert_run(&mut run).await? {
            tx.insert_events(&self.lines, work.batch).await?;
            tx.notify(&run.id).await?;
            return Ok(done(run, &self.lines));
        }
        let there = tx.run(&run.id).await?;
        Ok(Done::plain(there.ok_or_else(|| JournalError::unknown(&run.id))?))
    }
}

/// Folds the observations in the events into the memory, in the same transaction.
async fn remember(tx: &mut Tx, work: &Work<'_>, lines: &[Line]) -> Result<(), Fault> {
    let entries: Vec<_> = lines.iter().filter_map(|line| entry_of(&line.event)).collect();
    if !entries.is_empty() {
        tx.lock_memory().await?;
    }
    for entry in &entries {
        tx.observe(entry, work.batch).await?;
    }
    Ok(())
}

fn done(run: Run, lines: &[Line]) -> Done<Run> {
    let seq = lines.first().map_or(0, |line| line.event.seq);
    let receipt = Receipt { run: run.id.clone(), seq };
    Done { out: run, receipt: Some(receipt) }
}

fn line(run: &RunId, seq: u64, at_ms: u64, payload: Payload) -> Result<Line, JournalError> {
    let text = text::serialised(&payload)?;
    let event = Event { v: EVENT_VERSION, run: run.clone(), seq, at_ms, payload };
    Ok(Line { event, payload: text })
}
