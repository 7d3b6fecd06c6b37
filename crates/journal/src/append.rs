//! Creating runs and appending events to them.

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
        text::check_id(&new.id)?;
        self.write(&Create { new }).await
    }

    /// Appends events to a run, all or none. If an event stops the run, the lease ends as well, and
    /// a step still in progress is interrupted first.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] if another worker holds the run by now, [`JournalError::Fold`] if
    /// an event cannot follow the events before it. No event is stored in either case.
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

/// Returns true for events that only the journal writes. Lease events are among them: they are
/// written only where the fencing token is checked.
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
