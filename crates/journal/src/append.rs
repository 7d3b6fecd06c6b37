//! How runs are made, and how workers add to them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::JournalError;
use crate::event::Payload;
use crate::journal::Journal;
use crate::limits::BATCH_EVENTS_MAX;
use crate::queue::{Lease, end_lease, locked};
use crate::run::{Limits, Run, RunId, RunStatus};
use crate::store::{Fault, LeaseChange, Tx};
use crate::text;
use crate::write::{Done, Draft, Operation, Work};

/// A run that somebody asks for.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Its id: whoever asks twice with the same one gets one run.
    pub id: RunId,
    /// Which driver it is for.
    pub kind: String,
    /// A name that people know it by.
    pub name: String,
    /// Where it works.
    pub workspace: String,
    /// What a worker has to have to take it.
    pub labels: BTreeSet<String>,
    /// What comes first in the queue: larger is earlier.
    pub priority: i32,
    /// What it may use.
    pub limits: Limits,
    /// What the driver is asked for.
    pub request: Value,
}

impl Journal {
    /// Makes a run and puts it into the queue. If there is one with this id, that one is given.
    ///
    /// # Errors
    ///
    /// When something of it is too large or makes no sense, or the store cannot be used.
    pub async fn create(&self, new: NewRun) -> Result<Run, JournalError> {
        text::check_id(&new.id)?;
        self.write(&Create { new }).await
    }

    /// Adds events to a run, all or none. If the run stops by them, the lease ends too; a step that is still under way
    /// is interrupted first.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] when somebody else has the run by now, [`JournalError::Fold`] when an event cannot follow
    /// what happened before. Nothing is stored then.
    pub async fn append(&self, lease: &Lease, payloads: Vec<Payload>) -> Result<Run, JournalError> {
        if payloads.len() > BATCH_EVENTS_MAX {
            let what = "the list of events".to_owned();
            let (size, limit) = (payloads.len(), BATCH_EVENTS_MAX);
            return Err(JournalError::TooLarge { what, size, limit });
        }
        if let Some(payload) = payloads.iter().find(|payload| is_the_journals(payload)) {
            let why = format!("{} is written by the journal itself", payload.name());
            return Err(JournalError::refused(&lease.run, why));
        }
        self.write(&Append { lease, payloads: &payloads }).await
    }
}

struct Create {
    new: NewRun,
}

impl Operation for Create {
    type Out = Run;

    async fn perform(&self, tx: &mut Tx, work: &Work<'_>) -> Result<Done<Run>, Fault> {
        let new = self.new.clone();
        let payload = Payload::RunCreated {
            kind: new.kind,
            name: new.name,
            workspace: new.workspace,
            labels: new.labels,
            priority: new.priority,
            limits: new.limits,
            request: new.request,
        };
        Draft::of_new(&new.id, payload, work.clock)?.store_new(tx, work).await
    }
}

struct Append<'a> {
    lease: &'a Lease,
    payloads: &'a [Payload],
}

impl Operation for Append<'_> {
    type Out = Run;

    async fn perform(&self, tx: &mut Tx, work: &Work<'_>) -> Result<Done<Run>, Fault> {
        let run = locked(tx, &self.lease.run).await?;
        self.lease.check(&run)?;
        let mut draft = Draft::of(run, tx, work.clock).await?;
        for payload in self.payloads {
            if stops(payload) {
                draft.interrupt(&format!("the run stopped: {}", payload.name()))?;
            }
            draft.add(payload.clone())?;
        }
        let status = draft.run().status;
        if status == RunStatus::Running {
            return draft
                .store(tx, work, LeaseChange::From(work.lease_term(self.lease.length)))
                .await;
        }
        draft.interrupt("the run stopped")?;
        end_lease(&mut draft, self.lease, &format!("the run is {status}"))?;
        draft.store(tx, work, LeaseChange::End).await
    }
}

/// Leases are given and taken only where their tokens are checked.
fn is_the_journals(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::RunCreated { .. }
            | Payload::LeaseTaken { .. }
            | Payload::LeaseReleased { .. }
            | Payload::LeaseExpired { .. }
    )
}

fn stops(payload: &Payload) -> bool {
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
