//! Commands that users give to runs without holding their leases.

use crate::error::JournalError;
use crate::event::Payload;
use crate::journal::Journal;
use crate::queue::lock_run;
use crate::run::{Limits, Run, RunId, RunStatus, RunStopRequest};
use crate::store::{LeaseChange, StoreFault, StoreTx};
use crate::transaction::{EventDraft, OperationContext, OperationResult, StoreOperation};

/// A command to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Pauses after the current step if a worker holds the run, else at once.
    Pause {
        by: String,
    },
    Resume {
        by: String,
        /// The new limits, if they change.
        limits: Option<Limits>,
    },
    Cancel {
        by: String,
    },
    /// Retries failed tasks.
    Retry {
        by: String,
        /// The ids of the tasks to retry; all failed tasks if empty.
        tasks: Vec<String>,
    },
    /// Adds a note to the prompt of the next step.
    Steer {
        by: String,
        note: String,
    },
    /// Records an event outside of the run's steps, possibly after its end: for instance where the
    /// work was delivered.
    Event(Payload),
}

impl Journal {
    /// Executes a command on a run. If a worker holds the run, pausing and cancelling become a
    /// request that the worker receives with its next heartbeat; everything else takes effect at
    /// once. Resuming a queued run changes nothing.
    ///
    /// Runs with expired leases are put back into the queue first. Call [`Journal::wait_for_lease`] before
    /// this to wait for a lease that has to be observed.
    ///
    /// # Errors
    ///
    /// [`JournalError::Refused`] if the command is not allowed in the run's current state.
    pub async fn order(&self, id: &RunId, order: Command) -> Result<Run, JournalError> {
        // A worker that has disappeared cannot act on the command.
        self.requeue_expired().await?;
        self.perform_write(&JournalCommandOperation { id, order: &order }).await
    }
}

struct JournalCommandOperation<'a> {
    id: &'a RunId,
    order: &'a Command,
}

impl StoreOperation for JournalCommandOperation<'_> {
    type Out = Run;

    async fn perform(
        &self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> Result<OperationResult<Run>, StoreFault> {
        let stored = lock_run(tx, self.id).await?;
        let run = &stored.run;
        // The run may be queued because its worker disappeared, which the caller could not know.
        if is_claimable(run) && matches!(self.order, Command::Resume { limits: None, .. }) {
            return Ok(OperationResult::without_receipt(stored.run));
        }
        let payload = command_event(run, self.order)
            .map_err(|why| JournalError::Refused { run: run.id.clone(), why })?;
        let mut draft = EventDraft::for_run(stored, tx, work.clock).await?;
        draft.add_event(payload)?;
        draft.store_events(tx, work, LeaseChange::Keep).await
    }
}

/// Returns true if a run is queued and could be claimed now.
fn is_claimable(run: &Run) -> bool {
    run.status == RunStatus::Queued && run.not_before_ms == 0
}

/// Converts a command to the event it results in, or returns the reason it is refused.
fn command_event(run: &Run, order: &Command) -> Result<Payload, String> {
    if run.attended && !matches!(order, Command::Event(_)) {
        return Err(format!("it is a {}, which the program that started it carries out", run.kind));
    }
    match order {
        Command::Pause { by } => pause_event(run, by),
        Command::Resume { by, limits } => resume_event(run, by, *limits),
        Command::Cancel { by } => cancel_event(run, by),
        Command::Retry { by, tasks } => retry_event(run, by, tasks),
        Command::Steer { by, note } => steer_event(run, by, note),
        Command::Event(payload) => external_event(payload),
    }
}

fn pause_event(run: &Run, by: &str) -> Result<Payload, String> {
    match (run.status, run.wish) {
        (RunStatus::Running, None) => Ok(Payload::PauseRequested { by: by.to_owned() }),
        (RunStatus::Running, Some(RunStopRequest::Pause)) => {
            Err("it was already asked to pause, and does so after this step".into())
        }
        (RunStatus::Running, Some(RunStopRequest::Cancel)) => {
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

fn resume_event(run: &Run, by: &str, limits: Option<Limits>) -> Result<Payload, String> {
    match run.status {
        // The worker may have received the cancellation already and be ending the run.
        RunStatus::Running if run.wish == Some(RunStopRequest::Cancel) => {
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

fn cancel_event(run: &Run, by: &str) -> Result<Payload, String> {
    match (run.status, run.wish) {
        (RunStatus::Running, Some(RunStopRequest::Cancel)) => {
            Err("it is being cancelled already; its worker has not let it go yet".into())
        }
        (RunStatus::Running, _) => Ok(Payload::CancelRequested { by: by.to_owned() }),
        (status, _) if status.is_over() => {
            Err(format!("it is {status} already, so there is nothing to cancel"))
        }
        _ => Ok(Payload::RunCancelled { reason: format!("by {by}") }),
    }
}

fn retry_event(run: &Run, by: &str, tasks: &[String]) -> Result<Payload, String> {
    match run.status {
        RunStatus::Running => Err("it is running; pause it before tasks are tried again".into()),
        RunStatus::Queued => Err("it is in the queue already and waits for a worker".into()),
        RunStatus::Completed => Err("it is completed; start a new run for more work".into()),
        RunStatus::Paused | RunStatus::Waiting | RunStatus::Failed | RunStatus::Cancelled => {
            Ok(Payload::RunRetried { by: by.to_owned(), tasks: tasks.to_vec() })
        }
    }
}

fn steer_event(run: &Run, by: &str, note: &str) -> Result<Payload, String> {
    match run.status {
        RunStatus::Completed => Err("it is completed; start a new run for more work".into()),
        status if status.is_over() => {
            Err(format!("it is {status}, so nothing would read this; retry it first"))
        }
        _ => Ok(Payload::Steered { by: by.to_owned(), note: note.to_owned() }),
    }
}

fn external_event(payload: &Payload) -> Result<Payload, String> {
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
