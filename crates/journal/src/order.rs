//! What people tell runs to do, without having them.

use crate::error::JournalError;
use crate::event::Payload;
use crate::journal::Journal;
use crate::queue::locked;
use crate::run::{Limits, Run, RunId, RunStatus, Wish};
use crate::store::{Fault, LeaseChange, Tx};
use crate::write::{Done, Draft, Operation, Work};

/// What somebody tells a run to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// To pause: after its step if a worker has it, else at once.
    Pause {
        /// Who.
        by: String,
    },
    /// To go on.
    Resume {
        /// Who.
        by: String,
        /// What it may use from now on, if that changes.
        limits: Option<Limits>,
    },
    /// To end.
    Cancel {
        /// Who.
        by: String,
    },
    /// To try again what failed.
    Retry {
        /// Who.
        by: String,
        /// Which tasks; all that failed if empty.
        tasks: Vec<String>,
    },
    /// To hear a word before its next step.
    Steer {
        /// Who.
        by: String,
        /// The word.
        note: String,
    },
    /// To remember something that happened apart from its steps, also after its end: where its work went, for instance.
    Event(Payload),
}

impl Journal {
    /// Tells a run to do something. What a worker has to do is a wish that its next heartbeat hears of; everything else
    /// takes effect at once. To resume a run that waits in the queue changes nothing.
    ///
    /// Runs whose leases have run out are put back first. Call [`Journal::settle`] before, to wait for one that has to be
    /// observed.
    ///
    /// # Errors
    ///
    /// [`JournalError::Refused`] when it makes no sense for the run as it is.
    pub async fn order(&self, id: &RunId, order: Command) -> Result<Run, JournalError> {
        // A worker that is gone cannot act on the order.
        self.reap().await?;
        self.write(&Ordered { id, order: &order }).await
    }
}

struct Ordered<'a> {
    id: &'a RunId,
    order: &'a Command,
}

impl Operation for Ordered<'_> {
    type Out = Run;

    async fn perform(&self, tx: &mut Tx, work: &Work<'_>) -> Result<Done<Run>, Fault> {
        let run = locked(tx, self.id).await?;
        // It may be there because its worker is gone, which the caller could not know.
        if is_free(&run) && matches!(self.order, Command::Resume { limits: None, .. }) {
            return Ok(Done::plain(run));
        }
        let payload = payload_of(&run, self.order)
            .map_err(|why| JournalError::Refused { run: run.id.clone(), why })?;
        let mut draft = Draft::of(run, tx, work.clock).await?;
        draft.add(payload)?;
        draft.store(tx, work, LeaseChange::Keep).await
    }
}

/// Whether a run waits in the queue for nothing but a worker.
fn is_free(run: &Run) -> bool {
    run.status == RunStatus::Queued && run.not_before_ms == 0
}

/// What the order becomes, or why it makes no sense.
fn payload_of(run: &Run, order: &Command) -> Result<Payload, String> {
    match order {
        Command::Pause { by } => pause(run, by),
        Command::Resume { by, limits } => resume(run, by, *limits),
        Command::Cancel { by } => cancel(run, by),
        Command::Retry { by, tasks } => retry(run, by, tasks),
        Command::Steer { by, note } => steer(run, by, note),
        Command::Event(payload) => remember(payload),
    }
}

fn pause(run: &Run, by: &str) -> Result<Payload, String> {
    match (run.status, run.wish) {
        (RunStatus::Running, None) => Ok(Payload::PauseRequested { by: by.to_owned() }),
        (RunStatus::Running, Some(Wish::Pause)) => {
            Err("it was already asked to pause, and does so after this step".into())
        }
        (RunStatus::Running, Some(Wish::Cancel)) => {
            Err("it is being cancelled, so it cannot be paused".into())
        }
        (RunStatus::Queued, _) => Ok(Payload::RunPaused { reason: format!("by {by}") }),
        (RunStatus::Paused, _) => {
            Err("it is paused already; it can be resumed or cancelled".into())
        }
        (RunStatus::Waiting, _) => {
            Err("it waits for a person and does nothing; it can be resumed or cancelled".into())
        }
        (status, _) => Err(format!("it is {status}, so there is nothing to pause")),
    }
}

fn resume(run: &Run, by: &str, limits: Option<Limits>) -> Result<Payload, String> {
    match run.status {
        // Its worker may have heard of that, and be ending it: then nobody could go on with it.
        RunStatus::Running if run.wish == Some(Wish::Cancel) => {
            return Err("it is being cancelled; retry it when it has ended".into());
        }
        RunStatus::Queued | RunStatus::Paused | RunStatus::Waiting | RunStatus::Failed => {}
        RunStatus::Running if limits.is_some() || run.wish.is_some() => {}
        RunStatus::Running => return Err("it is running already".into()),
        RunStatus::Completed => return Err("it is completed; start a new run for more work".into()),
        RunStatus::Cancelled => {
            return Err("it was cancelled; retry it, or start a new run".into());
        }
    }
    Ok(Payload::RunResumed { by: by.to_owned(), limits })
}

fn cancel(run: &Run, by: &str) -> Result<Payload, String> {
    match (run.status, run.wish) {
        (RunStatus::Running, Some(Wish::Cancel)) => {
            Err("it is being cancelled already; its worker has not let it go yet".into())
        }
        (RunStatus::Running, _) => Ok(Payload::CancelRequested { by: by.to_owned() }),
        (status, _) if status.is_over() => {
            Err(format!("it is {status} already, so there is nothing to cancel"))
        }
        _ => Ok(Payload::RunCancelled { reason: format!("by {by}") }),
    }
}

fn retry(run: &Run, by: &str, tasks: &[String]) -> Result<Payload, String> {
    match run.status {
        RunStatus::Running => Err("it is running; pause it before tasks are tried again".into()),
        RunStatus::Queued => Err("it is in the queue already and waits for a worker".into()),
        RunStatus::Completed => Err("it is completed; start a new run for more work".into()),
        RunStatus::Paused | RunStatus::Waiting | RunStatus::Failed | RunStatus::Cancelled => {
            Ok(Payload::RunRetried { by: by.to_owned(), tasks: tasks.to_vec() })
        }
    }
}

fn steer(run: &Run, by: &str, note: &str) -> Result<Payload, String> {
    match run.status {
        RunStatus::Completed => Err("it is completed; start a new run for more work".into()),
        status if status.is_over() => {
            Err(format!("it is {status}, so nothing would read this; retry it first"))
        }
        _ => Ok(Payload::Steered { by: by.to_owned(), note: note.to_owned() }),
    }
}

fn remember(payload: &Payload) -> Result<Payload, String> {
    match payload {
        Payload::WorktreeRemoved { .. }
        | Payload::Delivered { .. }
        | Payload::PostmortemStart { .. }
        | Payload::PostmortemEnd { .. }
        | Payload::Learned { .. }
        | Payload::Note { .. } => Ok(payload.clone()),
        _ => Err(format!("{} can only be added by the worker that has the run", payload.name())),
    }
}
