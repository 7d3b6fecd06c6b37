//! Deleting runs that are no longer needed.

use crate::error::JournalError;
use crate::journal::Journal;
use crate::run::RunId;
use crate::sanitise;
use crate::store::{StoreFault, StoreTx};
use crate::transaction::{OperationContext, OperationResult, StoreOperation};

impl Journal {
    /// Deletes a run with its steps and events permanently; a run that does not exist counts as
    /// deleted. Never reuse the id for another run: its fencing tokens would start again from the
    /// beginning.
    ///
    /// A SQLite file does not shrink, but reuses the space.
    ///
    /// # Errors
    ///
    /// [`JournalError::Refused`] if the run has not ended, or its worktree still exists.
    pub async fn forget(&self, id: &RunId) -> Result<(), JournalError> {
        if !sanitise::is_id(id.as_str()) {
            return Ok(());
        }
        self.perform_write(&DeleteRunOperation { id }).await
    }
}

struct DeleteRunOperation<'a> {
    id: &'a RunId,
}

impl StoreOperation for DeleteRunOperation<'_> {
    type Out = ();

    async fn perform(
        &self,
        tx: &mut StoreTx,
        _: &OperationContext<'_>,
    ) -> Result<OperationResult<()>, StoreFault> {
        let Some(stored) = tx.run(self.id).await? else {
            return Ok(OperationResult::without_receipt(()));
        };
        let run = stored.run;
        // Nothing but its files shows whether an attended run is in progress; the caller knows those.
        if !run.status.is_over() && !run.attended {
            let why = format!("it is {}, so it is still needed; cancel it first", run.status);
            return Err(JournalError::refused(self.id, why).into());
        }
        if let Some(worktree) = &run.worktree {
            let why = format!("its worktree {} is still there; remove that first", worktree.path);
            return Err(JournalError::refused(self.id, why).into());
        }
        tx.delete_run(self.id).await?;
        Ok(OperationResult::without_receipt(()))
    }
}
