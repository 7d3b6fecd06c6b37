//! Removes runs that are no longer needed: their events and their folder.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_journal::{
    Filter, Journal, JournalError, Run, RunFolder, RunFolderError, RunKind, RunStatus,
};
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{belongs_to_process, is_interrupted};
use crate::context::AppContext;
use crate::limits::RETENTION_INTERVAL;

/// A selection of runs by age, kind and status.
#[derive(Clone, Debug)]
pub struct RunSelection {
    /// Runs that have not changed for this long.
    pub idle: Duration,
    /// Runs of these kinds; all if empty.
    pub kinds: Vec<RunKind>,
    /// Runs that ended in one of these ways; all if empty.
    pub ends: Vec<RunEnd>,
}

/// A way in which a run ended. Other runs are still needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    Completed,
    Failed,
    Cancelled,
    /// The process that carried it out is gone.
    Interrupted,
}

/// Whether runs are removed, or only listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalMode {
    Preview,
    Remove,
}

/// The result of removing old runs.
#[derive(Clone, Debug, Default)]
pub struct RunRemovalReport {
    pub removed: Vec<Run>,
    /// Runs that were selected and stay, with the reason.
    pub kept: Vec<(Run, String)>,
}

/// The reason why a run is not removed.
#[derive(Debug, thiserror::Error)]
pub enum RunRemovalError {
    #[error(transparent)]
    Folder(#[from] RunFolderError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run may be in progress on another machine.
    #[error(
        "it is running and its files are not on this machine, where nothing shows whether it is in use"
    )]
    Elsewhere,
}

impl RunEnd {
    /// Returns the way in which a run ended, and `None` if it is still needed.
    pub fn of_run(run: &Run, runs: &Utf8Path) -> Option<RunEnd> {
        match run.status {
            RunStatus::Completed => Some(RunEnd::Completed),
            RunStatus::Failed => Some(RunEnd::Failed),
            RunStatus::Cancelled => Some(RunEnd::Cancelled),
            _ => is_interrupted(run, runs).then_some(RunEnd::Interrupted),
        }
    }
}

impl RunSelection {
    fn contains(&self, run: &Run, runs: &Utf8Path, now_ms: u64) -> bool {
        let idle_ms = u128::from(now_ms.saturating_sub(run.updated_ms));
        let is_kind = self.kinds.is_empty()
            || RunKind::parse(&run.kind).is_some_and(|kind| self.kinds.contains(&kind));
        is_kind
            && idle_ms >= self.idle.as_millis()
            && RunEnd::of_run(run, runs)
                .is_some_and(|end| self.ends.is_empty() || self.ends.contains(&end))
    }
}

/// Removes a run with its events and its folder. `runs` is the folder of all runs.
///
/// # Errors
///
/// Fails if the run is in use, still needed, or has a worktree. Nothing is removed then.
pub async fn remove_run(
    journal: &Journal,
    runs: &Utf8Path,
    run: &Run,
) -> Result<(), RunRemovalError> {
    let folder = RunFolder::new(runs, &run.id);
    if belongs_to_process(run) && run.status == RunStatus::Running && !folder.path().exists() {
        return Err(RunRemovalError::Elsewhere);
    }
    force_remove_run(journal, runs, run).await
}

/// Like [`remove_run`], also if the run may be in progress on another machine.
///
/// # Errors
///
/// As [`remove_run`].
pub async fn force_remove_run(
    journal: &Journal,
    runs: &Utf8Path,
    run: &Run,
) -> Result<(), RunRemovalError> {
    let folder = RunFolder::new(runs, &run.id);
    if folder.is_locked() {
        return Err(RunFolderError::InUse { id: run.id.clone(), pid: None }.into());
    }
    // First the events: the journal refuses a run that is still needed, and its files must stay then.
    journal.forget(&run.id).await?;
    Ok(folder.remove()?)
}

/// Removes the selected runs, or lists them.
///
/// # Errors
///
/// Fails if the journal cannot be used. Runs that cannot be removed are in the report.
pub async fn remove_old_runs(
    journal: &Journal,
    runs: &Utf8Path,
    selection: &RunSelection,
    now_ms: u64,
    mode: RemovalMode,
) -> Result<RunRemovalReport, JournalError> {
    let mut report = RunRemovalReport::default();
    let mut filter = Filter::default();
    loop {
        let page = journal.runs(&filter).await?;
        for run in page.items.into_iter().filter(|run| selection.contains(run, runs, now_ms)) {
            if let Some(worktree) = &run.worktree {
                let why = format!("its worktree {} is still there", worktree.path);
                report.kept.push((run, why));
                continue;
            }
            let removed = match mode {
                RemovalMode::Preview => Ok(()),
                RemovalMode::Remove => remove_run(journal, runs, &run).await,
            };
            match removed {
                Ok(()) => report.removed.push(run),
                Err(error) => report.kept.push((run, error.to_string())),
            }
        }
        match page.next {
            Some(next) => filter.before = Some(next),
            None => return Ok(report),
        }
    }
}

impl AppContext<'_> {
    /// Returns the age at which runs are removed. `None` if they are kept.
    pub fn runs_kept(&self) -> Option<Duration> {
        let days = self.config.values().runs_keep_days;
        (days > 0).then(|| Duration::from_secs(days.saturating_mul(24 * 60 * 60)))
    }
}

/// Removes runs that are older than `kept`, now and once a day until `shutdown`.
pub async fn apply_retention(
    journal: Journal,
    runs: Utf8PathBuf,
    kept: Duration,
    shutdown: CancellationToken,
) {
    use repertoire_text::clock::{Clock as _, SystemClock};
    let selection = RunSelection { idle: kept, kinds: Vec::new(), ends: Vec::new() };
    loop {
        // Ignore errors: the next user of the journal reports them, and pruning is retried tomorrow.
        let now_ms = SystemClock.now_ms();
        let _ = remove_old_runs(&journal, &runs, &selection, now_ms, RemovalMode::Remove).await;
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(RETENTION_INTERVAL) => {}
        }
    }
}
