//! The queue: workers take runs from it under leases, and a lease that ran out puts the run back ([`crate::lease`]).
//!
//! A lease has a token, which is larger each time the run is taken. Whoever writes shows it, in the transaction that
//! writes: a worker that was away for too long is refused, and nothing of what it brings is stored.

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

/// Who takes runs.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its name, which people see. Two with the same name are still told apart by their tokens.
    pub name: String,
    /// What it has: a run is only given to a worker that has all labels of the run.
    pub labels: BTreeSet<String>,
    /// The kinds of runs that it can drive. With none it takes nothing.
    pub kinds: BTreeSet<String>,
    /// How long it may be silent.
    pub lease: Duration,
}

/// Which run is next, and how many there may be at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Which of those with the same priority is next.
    pub order: Order,
    /// Most runs under way in all.
    pub total_max: Option<u32>,
    /// Most runs under way in one workspace.
    pub per_workspace_max: Option<u32>,
}

/// Which run of the same priority is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The oldest.
    #[default]
    Fifo,
    /// The newest.
    NewestFirst,
}

/// A run that a worker has.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The run.
    pub run: Run,
    /// What lets the worker write to it.
    pub lease: Lease,
}

/// The right to write to a run, for as long as nobody else has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// The fencing token.
    pub token: u64,
    /// The worker.
    pub worker: String,
    /// How long the worker may be silent.
    pub length: Duration,
}

impl Lease {
    /// Refuses a run that somebody else has by now.
    pub(crate) fn check(&self, run: &Run) -> Result<(), JournalError> {
        match run.token == self.token && run.worker.as_ref() == Some(&self.worker) {
            true => Ok(()),
            false => Err(JournalError::Fenced {
                run: self.run.clone(),
                worker: self.worker.clone(),
                token: self.token,
                now: standing(run),
            }),
        }
    }
}

impl Journal {
    /// Takes the next run that this worker can drive, if there is one. Leases that ran out are put back first.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn claim(
        &self,
        who: &Worker,
        rules: &Rules,
    ) -> Result<Option<Claimed>, JournalError> {
        self.reap().await?;
        // Workers that have nothing to do ask often, and must not keep those waiting that have something to write.
        match self.read(|| self.store().has_queued()).await? {
            true => self.write(&Claim { who: &clean(who)?, rules, only: None }).await,
            false => Ok(None),
        }
    }

    /// Takes this run, if it waits in the queue or its lease ran out, and if the worker and the rules fit.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
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

    /// Says that the worker is still at it, and asks whether somebody wants something of the run.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] when somebody else has the run by now, or nobody.
    pub async fn heartbeat(&self, lease: &Lease) -> Result<Option<Wish>, JournalError> {
        self.write(&Heartbeat { lease }).await
    }

    /// Asks whether somebody wants something of the run, without renewing the lease.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] when somebody else has the run by now, or nobody.
    pub async fn wish(&self, lease: &Lease) -> Result<Option<Wish>, JournalError> {
        let run = self.run(&lease.run).await?.ok_or_else(|| JournalError::unknown(&lease.run))?;
        lease.check(&run)?;
        Ok(run.wish)
    }

    /// Gives a run back to the queue. A step that is under way is interrupted.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] when somebody else has the run by now, or nobody.
    pub async fn release(&self, lease: &Lease, reason: &str) -> Result<(), JournalError> {
        self.write(&Release { lease, reason }).await
    }

    /// Puts runs back whose leases have run out, and returns them. Any number of processes may do it at once.
    /// A run that cannot be read, because a later version wrote it or it is damaged, stays as it is.
    ///
    /// A lease whose worker may be on another machine has run out when this journal has seen it unchanged for its whole
    /// length; so the first call cannot put it back yet. [`Journal::settle`] waits for one run.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn reap(&self) -> Result<Vec<RunId>, JournalError> {
        let leases = self.look_at_leases().await?;
        self.put_back_all(&leases).await
    }

    /// Puts back runs whose leases have run out. If the lease of this run is over by the wall clock, and still has to be
    /// observed, waits until it has run out or was renewed, which takes one lease at most. `on_wait` hears once how long.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
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
    /// The next run that can be read. One that a later version wrote, or that is damaged, keeps no other waiting.
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
        // It may have been renewed or put back since it was read.
        let Some(row) = tx.unchanged(self.lease).await? else { return Ok(Done::plain(None)) };
        match put_back(&row, tx, work).await {
            Ok(Done { out, receipt }) => Ok(Done { out: Some(out.id), receipt }),
            Err(Fault::Journal(_)) => Ok(Done::plain(None)),
            Err(fault) => Err(fault),
        }
    }
}

/// A fault of the journal's own rules comes before anything is written.
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

/// A run that must be there.
pub(crate) async fn locked(tx: &mut Tx, id: &RunId) -> Result<Run, Fault> {
    match text::is_id(id.as_str()) {
        true => Ok(tx.run(id).await?.ok_or_else(|| JournalError::unknown(id))?),
        false => Err(JournalError::unknown(id).into()),
    }
}

/// The worker lets go.
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
