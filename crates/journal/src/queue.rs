//! The queue: workers claim runs from it under leases, and a run whose lease expired goes back into
//! it ([`crate::lease`]).
//!
//! A lease has a fencing token, which increases each time the run is claimed. Every write presents
//! the token in its transaction: a worker that was away for too long is refused, and nothing it
//! brings is stored.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::error::{JournalError, standing};
use crate::event::Payload;
use crate::journal::Journal;
use crate::lease::{LeaseRow, Standing};
use crate::limits::{LABELS_MAX, LEASE_MAX, LEASE_WAIT_POLL};
use crate::run::{Run, RunId, Wish};
use crate::store::read::{RunRow, run_of};
use crate::store::{Fault, LeaseChange, Tx, Wanted};
use crate::text;
use crate::write::{Done, Draft, Operation, Work};

/// The worker that claims runs.
#[derive(Clone, Debug)]
pub struct Worker {
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
pub struct Rules {
    /// The order of runs with the same priority.
    pub order: Order,
    /// The maximum number of running runs in total.
    pub total_max: Option<u32>,
    /// The maximum number of running runs per workspace.
    pub per_workspace_max: Option<u32>,
}

/// The order of runs with the same priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Oldest first.
    #[default]
    Fifo,
    NewestFirst,
}

/// A run claimed by a worker.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub run: Run,
    /// The lease with which the worker writes to the run.
    pub lease: Lease,
}

/// The exclusive right to write to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub run: RunId,
    /// The fencing token.
    pub token: u64,
    pub worker: String,
    /// The lease expires if the worker sends no heartbeat for this long.
    pub length: Duration,
}

impl Lease {
    /// Returns [`JournalError::Fenced`] if this lease no longer holds the run.
    pub(crate) fn check(&self, run: &Run) -> Result<(), JournalError> {
        if run.token == self.token && run.worker.as_ref() == Some(&self.worker) {
            return Ok(());
        }
        Err(JournalError::Fenced {
            run: self.run.clone(),
            worker: self.worker.clone(),
            token: self.token,
            now: standing(run),
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
        who: &Worker,
        rules: &Rules,
    ) -> Result<Option<Claimed>, JournalError> {
        self.reap().await?;
        // Idle workers poll often. Check with a read first, so that they don't block writers.
        if !self.read(|| self.store().has_queued()).await? {
            return Ok(None);
        }
        self.write(&Claim { who: &clean(who)?, rules, only: None }).await
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
        who: &Worker,
        rules: &Rules,
    ) -> Result<Option<Claimed>, JournalError> {
        if !text::is_id(id.as_str()) {
            return Ok(None);
        }
        self.reap().await?;
        self.write(&Claim { who: &clean(who)?, rules, only: Some(id) }).await
    }

    /// Renews the lease, and returns a pending request to pause or cancel the run.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] if the lease no longer holds the run.
    pub async fn heartbeat(&self, lease: &Lease) -> Result<Option<Wish>, JournalError> {
        self.write(&Heartbeat { lease }).await
    }

    /// Returns a pending request to pause or cancel the run, without renewing the lease.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] if the lease no longer holds the run.
    pub async fn wish(&self, lease: &Lease) -> Result<Option<Wish>, JournalError> {
        let run = self.run(&lease.run).await?.ok_or_else(|| JournalError::unknown(&lease.run))?;
        lease.check(&run)?;
        Ok(run.wish)
    }

    /// Puts a run back into the queue. A step in progress is interrupted.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] if the lease no longer holds the run.
    pub async fn release(&self, lease: &Lease, reason: &str) -> Result<(), JournalError> {
        self.write(&Release { lease, reason }).await
    }

    /// Puts runs with expired leases back into the queue, and returns them. Any number of processes
    /// may do this concurrently. A run that cannot be read, because it is damaged or was written by
    /// a later version, is left alone.
    ///
    /// A lease whose worker may be on another machine expires when this journal has seen it
    /// unchanged for its whole length, so the first call cannot put it back yet.
    /// [`Journal::settle`] waits for one run.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn reap(&self) -> Result<Vec<RunId>, JournalError> {
        let leases = self.look_at_leases().await?;
        self.put_back_all(&leases).await
    }

    /// Puts runs with expired leases back into the queue. If the lease of this run is over by the
    /// wall clock but still has to be observed, waits until it expires or is renewed, which takes
    /// at most the length of a lease. Calls `on_wait` once, with the time left, before waiting.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn settle(
        &self,
        id: &RunId,
        on_wait: &mut dyn FnMut(Duration),
    ) -> Result<(), JournalError> {
        let mut watched = None;
        loop {
            let leases = self.look_at_leases().await?;
            self.put_back_all(&leases).await?;
            let of_run = leases.iter().find(|(row, _)| row.id == id.as_str());
            let Some((row, Standing::Silent { left_ms })) = of_run else { return Ok(()) };
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

    async fn put_back_all(
        &self,
        leases: &[(LeaseRow, Standing)],
    ) -> Result<Vec<RunId>, JournalError> {
        let mut reaped = Vec::new();
        for (lease, standing) in leases {
            if *standing == Standing::Over {
                reaped.extend(self.write(&Reap { lease }).await?);
            }
        }
        Ok(reaped)
    }
}

fn clean(who: &Worker) -> Result<Worker, JournalError> {
    for names in [&who.labels, &who.kinds] {
        if names.len() > LABELS_MAX {
            let what = "the list of labels or kinds of a worker".to_owned();
            return Err(JournalError::TooLarge { what, size: names.len(), limit: LABELS_MAX });
        }
    }
    let names = |names: &BTreeSet<String>| names.iter().map(|name| text::name(name)).collect();
    Ok(Worker {
        name: text::name(&who.name),
        labels: names(&who.labels),
        kinds: names(&who.kinds),
        lease: who.lease.min(LEASE_MAX),
    })
}

struct Claim<'a> {
    who: &'a Worker,
    rules: &'a Rules,
    only: Option<&'a RunId>,
}

impl Operation for Claim<'_> {
    type Out = Option<Claimed>;

    async fn perform(&self, tx: &mut Tx, work: &Work<'_>) -> Result<Done<Self::Out>, Fault> {
        if self.rules.total_max.is_some() || self.rules.per_workspace_max.is_some() {
            tx.lock_caps().await?;
        }
        if let Some(most) = self.rules.total_max
            && tx.running().await? >= u64::from(most)
        {
            return Ok(Done::plain(None));
        }
        let Some(run) = self.next(tx).await? else { return Ok(Done::plain(None)) };
        let token = run.token + 1;
        let mut draft = Draft::of(run, tx, work.clock).await?;
        draft.add(Payload::LeaseTaken { worker: self.who.name.clone(), token })?;
        let Done { out: run, receipt } =
            draft.store(tx, work, LeaseChange::From(work.lease_term(self.who.lease))).await?;
        let lease = Lease {
            run: run.id.clone(),
            token,
            worker: self.who.name.clone(),
            length: self.who.lease,
        };
        Ok(Done { out: Some(Claimed { run, lease }), receipt })
    }
}

impl Claim<'_> {
    /// Returns the next run that can be decoded. A damaged run, or one written by a later version,
    /// does not block the others.
    async fn next(&self, tx: &mut Tx) -> Result<Option<Run>, Fault> {
        let mut except = BTreeSet::new();
        loop {
            let wanted =
                Wanted { worker: self.who, rules: self.rules, only: self.only, except: &except };
            let Some(row) = tx.candidate(&wanted).await? else { return Ok(None) };
            match run_of(&row) {
                Err(_) if self.only.is_none() => drop(except.insert(row.0)),
                run => return Ok(Some(run?)),
            }
        }
    }
}

struct Heartbeat<'a> {
    lease: &'a Lease,
}

impl Operation for Heartbeat<'_> {
    type Out = Option<Wish>;

    async fn perform(&self, tx: &mut Tx, work: &Work<'_>) -> Result<Done<Self::Out>, Fault> {
        let run = locked(tx, &self.lease.run).await?;
        self.lease.check(&run)?;
        tx.renew(&self.lease.run, work.lease_term(self.lease.length)).await?;
        Ok(Done::plain(run.wish))
    }
}

struct Release<'a> {
    lease: &'a Lease,
    reason: &'a str,
}

impl Operation for Release<'_> {
    type Out = ();

    async fn perform(&self, tx: &mut Tx, work: &Work<'_>) -> Result<Done<()>, Fault> {
        let run = locked(tx, &self.lease.run).await?;
        self.lease.check(&run)?;
        let mut draft = Draft::of(run, tx, work.clock).await?;
        draft.interrupt(self.reason)?;
        end_lease(&mut draft, self.lease, self.reason)?;
        let done = draft.store(tx, work, LeaseChange::End).await?;
        Ok(Done { out: (), receipt: done.receipt })
    }
}

struct Reap<'a> {
    lease: &'a LeaseRow,
}

impl Operation for Reap<'_> {
    type Out = Option<RunId>;

    async fn perform(&self, tx: &mut Tx, work: &Work<'_>) -> Result<Done<Self::Out>, Fault> {
        // The lease may have been renewed or ended since it was read.
        let Some(row) = tx.unchanged(self.lease).await? else { return Ok(Done::plain(None)) };
        match put_back(&row, tx, work).await {
            Ok(Done { out, receipt }) => Ok(Done { out: Some(out.id), receipt }),
            Err(Fault::Journal(_)) => Ok(Done::plain(None)),
            Err(fault) => Err(fault),
        }
    }
}

/// Puts a run back into the queue after its lease expired. A [`Fault::Journal`] is returned before
/// anything is written.
async fn put_back(row: &RunRow, tx: &mut Tx, work: &Work<'_>) -> Result<Done<Run>, Fault> {
    let run = run_of(row)?;
    let worker = run.worker.clone().unwrap_or_default();
    let token = run.token;
    let mut draft = Draft::of(run, tx, work.clock).await?;
    draft.interrupt(&format!("its worker `{worker}` was not heard of in time"))?;
    draft.add(Payload::LeaseExpired { worker, token })?;
    draft.honour_wish()?;
    draft.store(tx, work, LeaseChange::End).await
}

/// Loads and locks a run; a missing run is an error.
pub(crate) async fn locked(tx: &mut Tx, id: &RunId) -> Result<Run, Fault> {
    if !text::is_id(id.as_str()) {
        return Err(JournalError::unknown(id).into());
    }
    Ok(tx.run(id).await?.ok_or_else(|| JournalError::unknown(id))?)
}

/// Adds the release of the lease to a draft.
pub(crate) fn end_lease(
    draft: &mut Draft,
    lease: &Lease,
    reason: &str,
) -> Result<(), JournalError> {
    draft.add(Payload::LeaseReleased {
        worker: lease.worker.clone(),
        token: lease.token,
        reason: reason.to_owned(),
    })?;
    draft.honour_wish()
}
