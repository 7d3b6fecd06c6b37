//! Taking out of the journal what nobody needs any more.

use crate::error::JournalError;
use crate::journal::Journal;
use crate::run::RunId;
use crate::store::{Fault, Tx};
use crate::text;
use crate::write::{Done, Operation, Work};

impl Journal {
    /// Removes a run with its steps and events, for good; a run that is not there is as good as removed. Its id must not be
    /// used for another one: tokens would begin anew.
    ///
    /// A SQLite file does not become smaller by it, but has room again.
    ///
    /// # Errors
    ///
    /// [`JournalError::Refused`] when the run is not over, or its worktree is still there.
    pub async fn forget(&self, id: &RunId) -> Result<(), JournalError> {
        match text::is_id(id.as_str()) {
            true => self.write(&Forget { id }).await,
            false => Ok(()),
        }
    }
}

struct Forget<'a> {
    id: &'a RunId,
}

impl Operation for Forget<'_> {
    type Out = ();

    async fn perform(&self, tx: &mut Tx, _: &Work<'_>) -> Result<Done<()>, Fault> {
        let Some(run) = tx.run(self.id).await? else { return Ok(Done::plain(())) };
        if !run.status.is_over() {
            let why = format!("it is {}, so it is still needed; cancel it first", run.status);
            return Err(JournalError::refused(self.id, why).into());
        }
        if let Some(worktree) = &run.worktree {
            let why = format!("its worktree {} is still there; remove that first", worktree.path);
            return Err(JournalError::refused(self.id, why).into());
        }
        tx.delete_run(self.id).await?;
        Ok(Done::plain(()))
    }
}
