//! Creating runs and appending events to them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::JournalError;
use crate::event::Payload;
use crate::journal::Journal;
use crate::limits::BATCH_EVENTS_MAX;
use crate::queue::{RunLease, end_lease, lock_run};
use crate::run::{Limits, Run, RunId, RunStatus};
use crate::sanitise;
use crate::store::{LeaseChange, StoreFault, StoreTx};
use crate::transaction::{EventDraft, OperationContext, OperationResult, StoreOperation};

/// The parameters of a run to create.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// The id of the run. Creating a run twice with the same id yields one run.
    pub id: RunId,
    /// The driver the run is for, for instance `plan`.
    pub kind: String,
    /// The name shown to people.
    pub name: String,
    /// The repository or folder the run works in.
    pub workspace: String,
    /// Only workers with all of these labels may claim the run.
    pub labels: BTreeSet<String>,
    /// The priority in the queue: larger is earlier.
    pub priority: i32,
    pub limits: Limits,
    /// The request, in the driver's own format.
    pub request: Value,
}

impl Journal {
    /// Creates a run and queues it. If a run with this id exists, returns that run.
    ///
    /// # Errors
    ///
    /// If a value is too large or invalid, or the store cannot be used.
    pub async fn create(&self, new: NewRun) -> Result<Run, JournalError> {
        sanitise::check_id(&new.id)?;
        self.perform_write(&CreateRunOperation { new, attended: None }).await
    }

    /// Creates a run that this process carries out itself, with its first events. The run is never
    /// queued and has no lease.
    ///
    /// # Errors
    ///
    /// [`JournalError::Exists`] if there is a run with this id, or as [`Journal::create`].
    pub async fn create_attended(
        &self,
        new: NewRun,
        payloads: Vec<Payload>,
    ) -> Result<Run, JournalError> {
        sanitise::check_id(&new.id)?;
        check_batch(&new.id, &payloads)?;
        self.perform_write(&CreateRunOperation { new, attended: Some(payloads) }).await
    }

    /// Appends events to an attended run whose last event has the number `after_seq`, all or none.
    /// A process that has read the run up to its last event may continue it: of two that try to
    /// do so at the same time, one gets [`JournalError::Conflict`].
    ///
    /// # Errors
    ///
    /// [`JournalError::Conflict`] if the run has other events by now, [`JournalError::Fold`] if an
    /// event cannot follow the events before it. No event is stored in either case.
    pub async fn append_attended(
        &self,
        id: &RunId,
        after_seq: u64,
        payloads: Vec<Payload>,
    ) -> Result<Run, JournalError> {
        check_batch(id, &payloads)?;
        self.perform_write(&AppendAttendedOperation { id, after_seq, payloads: &payloads }).await
    }

    /// Appends events to a run, all or none. If an event stops the run, the lease ends as well, and
    /// a step still in progress is interrupted first.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] if another worker holds the run by now, [`JournalError::Fold`] if
    /// an event cannot follow the events before it. No event is stored in either case.
    pub async fn append(
        &self,
        lease: &RunLease,
        payloads: Vec<Payload>,
    ) -> Result<Run, JournalError> {
        check_batch(&lease.run, &payloads)?;
        self.perform_write(&AppendEventsOperation { lease, payloads: &payloads }).await
    }
}

fn check_batch(run: &RunId, payloads: &[Payload]) -> Result<(), JournalError> {
    if payloads.len() > BATCH_EVENTS_MAX {
        let what = "the list of events".to_owned();
        let (size, limit) = (payloads.len(), BATCH_EVENTS_MAX);
        return Err(JournalError::TooLarge { what, size, limit });
    }
    match payloads.iter().find(|payload| is_journal_event(payload)) {
        Some(payload) => {
            let why = format!("{} is written by the journal itself", payload.name());
            Err(JournalError::refused(run, why))
        }
        None => Ok(()),
    }
}

struct CreateRunOperation {
    new: NewRun,
    /// The first events of an attended run; `None` for a run that is queued.
    attended: Option<Vec<Payload>>,
}

impl StoreOperation for CreateRunOperation {
    type Out = Run;

    async fn perform(
        &self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> Result<OperationResult<Run>, StoreFault> {
        let new = self.new.clone();
        let payload = Payload::RunCreated {
            kind: new.kind,
            name: new.name,
            workspace: new.workspace,
            labels: new.labels,
            priority: new.priority,
            limits: new.limits,
            request: new.request,
            attended: self.attended.is_some(),
        };
        let mut draft = EventDraft::for_new_run(&new.id, payload, work.clock)?;
        for payload in self.attended.iter().flatten() {
            draft.add_event(payload.clone())?;
        }
        let done = draft.store_new(tx, work).await?;
        // Without a receipt nothing was written: a run with this id exists. If this operation has
        // created it, the acknowledgement of its commit was lost.
        if self.attended.is_some()
            && done.receipt.is_none()
            && !tx.has_batch(&new.id, 1, work.batch).await?
        {
            return Err(JournalError::Exists { run: new.id }.into());
        }
        Ok(done)
    }
}

struct AppendAttendedOperation<'a> {
    id: &'a RunId,
    after_seq: u64,
    payloads: &'a [Payload],
}

impl StoreOperation for AppendAttendedOperation<'_> {
    type Out = Run;

    async fn perform(
        &self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> Result<OperationResult<Run>, StoreFault> {
        let stored = lock_run(tx, self.id).await?;
        let run = &stored.run;
        if !run.attended {
            let why = "workers carry it out, so it needs a lease";
            return Err(JournalError::refused(self.id, why).into());
        }
        if run.seq != self.after_seq {
            let (expected, found) = (self.after_seq, run.seq);
            return Err(JournalError::Conflict { run: self.id.clone(), expected, found }.into());
        }
        let mut draft = EventDraft::for_run(stored, tx, work.clock).await?;
        for payload in self.payloads {
            if is_stopping(payload) {
                draft.interrupt_step(&format!("the run stopped: {}", payload.name()))?;
            }
            draft.add_event(payload.clone())?;
        }
        draft.store_events(tx, work, LeaseChange::Keep).await
    }
}

struct AppendEventsOperation<'a> {
    lease: &'a RunLease,
    payloads: &'a [Payload],
}

impl StoreOperation for AppendEventsOperation<'_> {
    type Out = Run;

    async fn perform(
        &self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> Result<OperationResult<Run>, StoreFault> {
        let stored = lock_run(tx, &self.lease.run).await?;
        self.lease.check_holder(&stored.run)?;
        let mut draft = EventDraft::for_run(stored, tx, work.clock).await?;
        for payload in self.payloads {
            if is_stopping(payload) {
                draft.interrupt_step(&format!("the run stopped: {}", payload.name()))?;
            }
            draft.add_event(payload.clone())?;
        }
        let status = draft.run().status;
        if status == RunStatus::Running {
            return draft
                .store_events(tx, work, LeaseChange::From(work.lease_term(self.lease.length)))
                .await;
        }
        draft.interrupt_step("the run stopped")?;
        end_lease(&mut draft, self.lease, &format!("the run is {status}"))?;
        draft.store_events(tx, work, LeaseChange::End).await
    }
}

/// Returns true for events that only the journal writes. Lease events are among them: they are
/// written only where the fencing token is checked.
fn is_journal_event(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::RunCreated { .. }
            | Payload::LeaseTaken { .. }
            | Payload::LeaseReleased { .. }
            | Payload::LeaseExpired { .. }
    )
}

fn is_stopping(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::RunCompleted { .. }
            | Payload::RunFailed { .. }
            | Payload::RunCancelled { .. }
            | Payload::RunWaiting { .. }
            | Payload::RunDeferred { .. }
            | Payload::RunPaused { .. }
    )
}
