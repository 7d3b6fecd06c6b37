//! The queue: workers claim runs from it under leases, and a run whose lease expired goes back into
//! it ([`crate::lease`]).
//!
//! A lease has a fencing token, which increases each time the run is claimed. Every write presents
//! the token in its transaction: a worker that was away for too long is refused, and nothing it
//! brings is stored.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::error::{JournalError, describe_holder};
use crate::event::Payload;
use crate::journal::Journal;
use crate::lease::{LeaseRow, LeaseState};
use crate::limits::{LABELS_MAX, LEASE_MAX, LEASE_WAIT_POLL};
use crate::run::{Run, RunId, RunStopRequest};
use crate::sanitise;
use crate::store::rows::{RunRow, StoredRun};
use crate::store::{ClaimConditions, LeaseChange, StoreFault, StoreTx};
use crate::transaction::{EventDraft, OperationContext, OperationResult, StoreOperation};

/// The worker that claims runs.
#[derive(Clone, Debug)]
pub struct QueueWorker {
    /// The name shown to people. Two workers with the same name are still distinguished by their
    /// tokens.
    pub name: String,
    /// The labels of the worker. It only gets runs whose labels it has all of.
    pub labels: BTreeSet<String>,
    /// The kinds of runs the worker can drive. If empty, it claims nothing.
    pub kinds: BTreeSet<String>,
    /// The lease expires if the worker sends no heartbeat for this long.
    pub lease: Duration,
}

/// The order of the queue, and the limits on concurrent runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimRules {
    /// The order of runs with the same priority.
    pub order: QueueOrder,
    /// The maximum number of running runs in total.
    pub total_max: Option<u32>,
    /// The maximum number of running runs per workspace.
    pub per_workspace_max: Option<u32>,
}

/// The order of runs with the same priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueOrder {
    /// Oldest first.
    #[default]
    Fifo,
    NewestFirst,
}

/// A run claimed by a worker.
#[derive(Clone, Debug)]
pub struct ClaimedRun {
    pub run: Run,
    /// The lease with which the worker writes to the run.
    pub lease: RunLease,
}

/// The exclusive right to write to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLease {
    pub run: RunId,
    /// The fencing token.
    pub token: u64,
    pub worker: String,
    /// The lease expires if the worker sends no heartbeat for this long.
    pub length: Duration,
}

impl RunLease {
    /// Returns [`JournalError::Fenced`] if this lease no longer holds the run.
    pub(crate) fn check_holder(&self, run: &Run) -> Result<(), JournalError> {
        if run.token == self.token && run.worker.as_ref() == Some(&self.worker) {
            return Ok(());
        }
        Err(JournalError::Fenced {
            run: self.run.clone(),
            worker: self.worker.clone(),
            token: self.token,
            now: describe_holder(run),
        })
    }
}

impl Journal {
    /// Claims the next run this worker can drive, if there is one. Runs with expired leases are put
    /// back into the queue first.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn claim(
        &self,
        who: &QueueWorker,
        rules: &ClaimRules,
    ) -> Result<Option<ClaimedRun>, JournalError> {
        self.requeue_expired().await?;
        // Idle workers poll often. Check with a read first, so that they don't block writers.
        if !self.perform_read(|| self.store().has_queued()).await? {
            return Ok(None);
        }
        let who = &sanitise_worker(who)?;
        let operation = ClaimOperation { who, rules, only: None };
        loop {
            match self.perform_write(&operation).await {
                // The damaged run is known by now, and the next attempt passes over it.
                Err(JournalError::Altered { run: Some(_), .. }) => {}
                claimed => return claimed,
            }
        }
    }

    /// Claims this run if it is queued or its lease has expired, and the worker's labels and kinds
    /// and the rules allow it.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn claim_run(
        &self,
        id: &RunId,
        who: &QueueWorker,
        rules: &ClaimRules,
    ) -> Result<Option<ClaimedRun>, JournalError> {
        if !sanitise::is_id(id.as_str()) {
            return Ok(None);
        }
        self.requeue_expired().await?;
        self.perform_write(&ClaimOperation { who: &sanitise_worker(who)?, rules, only: Some(id) })
            .await
    }

    /// Renews the lease, and returns a pending request to pause or cancel the run.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] if the lease no longer holds the run.
    pub async fn renew_lease(
        &self,
        lease: &RunLease,
    ) -> Result<Option<RunStopRequest>, JournalError> {
        self.perform_write(&HeartbeatOperation { lease }).await
    }

    /// Returns a pending request to pause or cancel the run, without renewing the lease.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] if the lease no longer holds the run.
    pub async fn pending_request(
        &self,
        lease: &RunLease,
    ) -> Result<Option<RunStopRequest>, JournalError> {
        let run =
            self.run(&lease.run).await?.ok_or_else(|| JournalError::unknown_run(&lease.run))?;
        lease.check_holder(&run)?;
        Ok(run.wish)
    }

    /// Puts a run back into the queue. A step in progress is interrupted.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] if the lease no longer holds the run.
    pub async fn release_run(&self, lease: &RunLease, reason: &str) -> Result<(), JournalError> {
        self.perform_write(&ReleaseOperation { lease, reason }).await
    }

    /// Puts runs with expired leases back into the queue, and returns them. Any number of processes
    /// may do this concurrently. A run that is damaged or was written by a later version is left
    /// alone.
    ///
    /// A lease whose worker may be on another machine expires when this journal has seen it
    /// unchanged for its whole length, so the first call cannot put it back yet.
    /// [`Journal::wait_for_lease`] waits for one run.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn requeue_expired(&self) -> Result<Vec<RunId>, JournalError> {
        let leases = self.observe_leases().await?;
        self.requeue_leases(&leases).await
    }

    /// Puts runs with expired leases back into the queue. If the lease of this run is over by the
    /// wall clock but still has to be observed, waits until it expires or is renewed, which takes
    /// at most the length of a lease. Calls `on_wait` once, with the time left, before waiting.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn wait_for_lease(
        &self,
        id: &RunId,
        on_wait: &mut dyn FnMut(Duration),
    ) -> Result<(), JournalError> {
        let mut watched = None;
        loop {
            let leases = self.observe_leases().await?;
            self.requeue_leases(&leases).await?;
            let of_run = leases.iter().find(|(row, _)| row.id == id.as_str());
            let Some((row, LeaseState::Silent { left_ms })) = of_run else { return Ok(()) };
            let is_renewed = watched.is_some_and(|mark| mark != row.mark());
            if is_renewed || !row.is_over_by_wall_clock {
                return Ok(());
            }
            let left = Duration::from_millis(u64::try_from(*left_ms).unwrap_or(0));
            if watched.is_none() {
                on_wait(left);
            }
            watched = Some(row.mark());
            tokio::time::sleep(left.min(LEASE_WAIT_POLL)).await;
        }
    }

    async fn requeue_leases(
        &self,
        leases: &[(LeaseRow, LeaseState)],
    ) -> Result<Vec<RunId>, JournalError> {
        let mut reaped = Vec::new();
        for (lease, standing) in leases {
            if *standing != LeaseState::Over {
                continue;
            }
            match self.perform_write(&ReapOperation { lease }).await {
                Err(JournalError::Altered { run: Some(_), .. }) => {}
                requeued => reaped.extend(requeued?),
            }
        }
        Ok(reaped)
    }
}

fn sanitise_worker(who: &QueueWorker) -> Result<QueueWorker, JournalError> {
    for names in [&who.labels, &who.kinds] {
        if names.len() > LABELS_MAX {
            let what = "the list of labels or kinds of a worker".to_owned();
            return Err(JournalError::TooLarge { what, size: names.len(), limit: LABELS_MAX });
        }
    }
    let names = |names: &BTreeSet<String>| names.iter().map(|name| sanitise::name(name)).collect();
    Ok(QueueWorker {
        name: sanitise::name(&who.name),
        labels: names(&who.labels),
        kinds: names(&who.kinds),
        lease: who.lease.min(LEASE_MAX),
    })
}

struct ClaimOperation<'a> {
    who: &'a QueueWorker,
    rules: &'a ClaimRules,
    only: Option<&'a RunId>,
}

impl StoreOperation for ClaimOperation<'_> {
    type Out = Option<ClaimedRun>;

    async fn perform(
        &self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> Result<OperationResult<Self::Out>, StoreFault> {
        if self.rules.total_max.is_some() || self.rules.per_workspace_max.is_some() {
            tx.lock_caps().await?;
        }
        if let Some(most) = self.rules.total_max
            && tx.running().await? >= u64::from(most)
        {
            return Ok(OperationResult::without_receipt(None));
        }
        let Some(stored) = self.next(tx).await? else {
            return Ok(OperationResult::without_receipt(None));
        };
        let token = stored.run.token + 1;
        let mut draft = EventDraft::for_run(stored, tx, work.clock).await?;
        draft.add_event(Payload::LeaseTaken { worker: self.who.name.clone(), token })?;
        let OperationResult { out: run, receipt } = draft
            .store_events(tx, work, LeaseChange::From(work.lease_term(self.who.lease)))
            .await?;
        let lease = RunLease {
            run: run.id.clone(),
            token,
            worker: self.who.name.clone(),
            length: self.who.lease,
        };
        Ok(OperationResult { out: Some(ClaimedRun { run, lease }), receipt })
    }
}

impl ClaimOperation<'_> {
    /// Returns the next run that can be decoded. A run written by a later version does not block the
    /// others, nor does one that is known to be damaged.
    async fn next(&self, tx: &mut StoreTx) -> Result<Option<StoredRun>, StoreFault> {
        let mut except = if self.only.is_none() { tx.damaged_runs() } else { BTreeSet::new() };
        loop {
            let wanted = ClaimConditions {
                worker: self.who,
                rules: self.rules,
                only: self.only,
                except: &except,
            };
            let Some(row) = tx.next_candidate(&wanted).await? else { return Ok(None) };
            let id = row.id.clone();
            match tx.decode_run(row) {
                Err(StoreFault::Journal(_)) if self.only.is_none() => {
                    except.insert(id);
                }
                stored => return Ok(Some(stored?)),
            }
        }
    }
}

struct HeartbeatOperation<'a> {
    lease: &'a RunLease,
}

impl StoreOperation for HeartbeatOperation<'_> {
    type Out = Option<RunStopRequest>;

    async fn perform(
        &self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> Result<OperationResult<Self::Out>, StoreFault> {
        let run = lock_run(tx, &self.lease.run).await?.run;
        self.lease.check_holder(&run)?;
        tx.renew_lease(&self.lease.run, work.lease_term(self.lease.length)).await?;
        Ok(OperationResult::without_receipt(run.wish))
    }
}

struct ReleaseOperation<'a> {
    lease: &'a RunLease,
    reason: &'a str,
}

impl StoreOperation for ReleaseOperation<'_> {
    type Out = ();

    async fn perform(
        &self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> Result<OperationResult<()>, StoreFault> {
        let stored = lock_run(tx, &self.lease.run).await?;
        self.lease.check_holder(&stored.run)?;
        let mut draft = EventDraft::for_run(stored, tx, work.clock).await?;
        draft.interrupt_step(self.reason)?;
        end_lease(&mut draft, self.lease, self.reason)?;
        let done = draft.store_events(tx, work, LeaseChange::End).await?;
        Ok(OperationResult { out: (), receipt: done.receipt })
    }
}

struct ReapOperation<'a> {
    lease: &'a LeaseRow,
}

impl StoreOperation for ReapOperation<'_> {
    type Out = Option<RunId>;

    async fn perform(
        &self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> Result<OperationResult<Self::Out>, StoreFault> {
        // The lease may have been renewed or ended since it was read.
        let Some(row) = tx.lock_unchanged_lease(self.lease).await? else {
            return Ok(OperationResult::without_receipt(None));
        };
        match requeue_run(row, tx, work).await {
            Ok(OperationResult { out, receipt }) => {
                Ok(OperationResult { out: Some(out.id), receipt })
            }
            Err(StoreFault::Journal(_)) => Ok(OperationResult::without_receipt(None)),
            Err(fault) => Err(fault),
        }
    }
}

/// Puts a run back into the queue after its lease expired. Faults of the run's content are returned
/// before anything is written.
async fn requeue_run(
    row: RunRow,
    tx: &mut StoreTx,
    work: &OperationContext<'_>,
) -> Result<OperationResult<Run>, StoreFault> {
    let stored = tx.decode_run(row)?;
    let worker = stored.run.worker.clone().unwrap_or_default();
    let token = stored.run.token;
    let mut draft = EventDraft::for_run(stored, tx, work.clock).await?;
    draft.interrupt_step(&format!("its worker `{worker}` was not heard of in time"))?;
    draft.add_event(Payload::LeaseExpired { worker, token })?;
    draft.apply_stop_request()?;
    draft.store_events(tx, work, LeaseChange::End).await
}

/// Loads and locks a run; a missing run is an error.
pub(crate) async fn lock_run(tx: &mut StoreTx, id: &RunId) -> Result<StoredRun, StoreFault> {
    if !sanitise::is_id(id.as_str()) {
        return Err(JournalError::unknown_run(id).into());
    }
    Ok(tx.run(id).await?.ok_or_else(|| JournalError::unknown_run(id))?)
}

/// Adds the release of the lease to a draft.
pub(crate) fn end_lease(
    draft: &mut EventDraft,
    lease: &RunLease,
    reason: &str,
) -> Result<(), JournalError> {
    draft.add_event(Payload::LeaseReleased {
        worker: lease.worker.clone(),
        token: lease.token,
        reason: reason.to_owned(),
    })?;
    draft.apply_stop_request()
}
