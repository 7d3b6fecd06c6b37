//! Removing runs that are no longer needed, with their events and their folder.

use camino::Utf8Path;

use crate::error::JournalError;
use crate::journal::Journal;
use crate::run::{Run, RunId};
use crate::run_folder::{FolderRemoval, RunFolder, RunFolderError};
use crate::sanitise;
use crate::store::{StoreFault, StoreTx};
use crate::transaction::{OperationContext, OperationResult, StoreOperation};

/// The reason a run is not removed.
#[derive(Debug, thiserror::Error)]
pub enum RunRemovalError {
    #[error(transparent)]
    Folder(#[from] RunFolderError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Journal {
    /// Removes a run with its steps, events and folder permanently; a run that does not exist counts
    /// as removed. `runs` is the folder of all runs. Never reuse the id for another run: its fencing
    /// tokens would start again from the beginning.
    ///
    /// A SQLite file does not shrink, but reuses the space.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::InUse`] if a process holds the lock of the run, [`JournalError::Conflict`] if
    /// the run has other events by now, and [`JournalError::Refused`] if it has not ended, or its
    /// worktree still exists. Nothing is removed then.
    pub async fn remove_run(&self, runs: &Utf8Path, run: &Run) -> Result<(), RunRemovalError> {
        self.remove_with_folder(runs, &run.id, DeletionRule::Unchanged { seq: run.seq }).await
    }

    /// Like [`Journal::remove_run`], without reading the run, which may be damaged.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::InUse`] if a process holds the lock of the run, or the store cannot be used.
    pub async fn remove_damaged_run(
        &self,
        runs: &Utf8Path,
        id: &RunId,
    ) -> Result<(), RunRemovalError> {
        self.remove_with_folder(runs, id, DeletionRule::Always).await
    }

    /// Completes removals that were interrupted between the events of a run and its folder.
    ///
    /// # Errors
    ///
    /// If the store cannot be used. A folder that is in use is left alone.
    pub async fn complete_removals(&self, runs: &Utf8Path) -> Result<(), JournalError> {
        for folder in RunFolder::list_unfinished_removals(runs) {
            // Locked first: the process that holds the lock may be removing the run.
            let Ok(removal) = folder.begin_removal() else { continue };
            let id = folder.id().as_str();
            if self.perform_read(|| self.store().has_run(id, None)).await? {
                removal.cancel();
            } else {
                // A folder that cannot be removed is tried again the next time.
                let _ = removal.finish();
            }
        }
        Ok(())
    }

    /// Holds the lock of the folder until everything is removed, so that no process can continue the
    /// run in between.
    async fn remove_with_folder(
        &self,
        runs: &Utf8Path,
        id: &RunId,
        rule: DeletionRule,
    ) -> Result<(), RunRemovalError> {
        if !sanitise::is_id(id.as_str()) {
            return Ok(());
        }
        let folder = RunFolder::new(runs, id);
        // A run of another machine has no folder here, and gets none.
        let removal = folder.path().exists().then(|| folder.begin_removal()).transpose()?;
        // First the events: the journal refuses a run that is still needed, and its files must stay.
        if let Err(error) = self.perform_write(&DeleteRunOperation { id, rule }).await {
            if let Some(removal) = removal {
                removal.cancel();
            }
            return Err(error.into());
        }
        Ok(removal.map_or(Ok(()), FolderRemoval::finish)?)
    }
}

/// The condition on which a run is deleted.
#[derive(Clone, Copy)]
enum DeletionRule {
    /// It has this many events, has ended, and has no worktree.
    Unchanged {
        seq: u64,
    },
    Always,
}

struct DeleteRunOperation<'a> {
    id: &'a RunId,
    rule: DeletionRule,
}

impl StoreOperation for DeleteRunOperation<'_> {
    type Out = ();

    async fn perform(
        &self,
        tx: &mut StoreTx,
        _: &OperationContext<'_>,
    ) -> Result<OperationResult<()>, StoreFault> {
        if let DeletionRule::Unchanged { seq } = self.rule {
            let Some(row) = tx.run_row(self.id).await? else {
                return Ok(OperationResult::without_receipt(()));
            };
            refuse_needed(&row.decode()?.run, seq)?;
        }
        tx.delete_run(self.id).await?;
        Ok(OperationResult::without_receipt(()))
    }
}

fn refuse_needed(run: &Run, expected: u64) -> Result<(), JournalError> {
    if run.seq != expected {
        let (run, found) = (run.id.clone(), run.seq);
        return Err(JournalError::Conflict { run, expected, found });
    }
    // Nothing but its files shows whether an attended run is in progress; the caller knows those.
    if !run.status.is_over() && !run.attended {
        let short = run.id.short();
        let why = format!(
            "it is {}, so it is still needed; cancel it first with `rep runs cancel {short}`",
            run.status
        );
        return Err(JournalError::refused(&run.id, why));
    }
    match &run.worktree {
        Some(worktree) => {
            let why = format!("its worktree {} is still there; remove that first", worktree.path);
            Err(JournalError::refused(&run.id, why))
        }
        None => Ok(()),
    }
}
