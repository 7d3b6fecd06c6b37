//! Removes runs that are no longer needed: their events and their folder.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_journal::{
    Command, Filter, Journal, JournalError, Payload, Run, RunFolder, RunId, RunKind,
    RunRemovalError, RunStatus,
};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{belongs_to_process, is_interrupted};
use crate::context::AppContext;
use crate::limits::{RETENTION_CLOCK_LEAD_MAX, RETENTION_INTERVAL};

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
pub enum SafeRemovalError {
    #[error(transparent)]
    Removal(#[from] RunRemovalError),
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
/// Fails if the run is in use, was continued since it was read, is still needed, or has a worktree.
/// Nothing is removed then.
pub async fn remove_run(
    journal: &Journal,
    runs: &Utf8Path,
    run: &Run,
) -> Result<(), SafeRemovalError> {
    let has_folder = RunFolder::new(runs, &run.id).path().exists();
    if belongs_to_process(run) && run.status == RunStatus::Running && !has_folder {
        return Err(SafeRemovalError::Elsewhere);
    }
    let run = if has_lost_worktree(journal, run, has_folder) {
        record_lost_worktree(journal, run).await?
    } else {
        run.clone()
    };
    Ok(journal.remove_run(runs, &run).await?)
}

/// Like [`remove_run`], also if the run may be in progress or have a worktree on another machine, or
/// is damaged.
///
/// # Errors
///
/// Fails if the run is in use on this machine, and if it is sound, also if it is still needed or its
/// worktree is there.
pub async fn force_remove_run(
    journal: &Journal,
    runs: &Utf8Path,
    id: &RunId,
) -> Result<(), RunRemovalError> {
    if journal.verify_run(id).await?.problem.is_some() {
        return journal.remove_damaged_run(runs, id).await;
    }
    let Some(mut run) = journal.run(id).await? else { return Ok(()) };
    // The files of the run may be elsewhere, which is what the caller has accepted.
    if has_lost_worktree(journal, &run, true) {
        run = record_lost_worktree(journal, &run).await?;
    }
    journal.remove_run(runs, &run).await
}

/// Returns true if the worktree of an ended run was removed by something else than `rep`. Only the
/// machine that carried out the run can tell: that of the journal's file, or the one that has the
/// folder of the run.
fn has_lost_worktree(journal: &Journal, run: &Run, has_folder: bool) -> bool {
    let is_here = journal.serves_one_machine() || has_folder;
    let is_gone = run.worktree.as_ref().is_some_and(|tree| !Utf8Path::new(&tree.path).exists());
    run.status.is_over() && is_here && is_gone
}

async fn record_lost_worktree(journal: &Journal, run: &Run) -> Result<Run, RunRemovalError> {
    match &run.worktree {
        Some(worktree) => {
            let gone = Payload::WorktreeRemoved { path: worktree.path.clone() };
            Ok(journal.order(&run.id, Command::Event(gone)).await?)
        }
        None => Ok(run.clone()),
    }
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
            let has_folder = RunFolder::new(runs, &run.id).path().exists();
            if let Some(worktree) = &run.worktree
                && !has_lost_worktree(journal, &run, has_folder)
            {
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
    let mut clock = None;
    loop {
        // Ignore errors: the next user of the journal reports them, and pruning is retried tomorrow.
        let _ = journal.complete_removals(&runs).await;
        if clock.is_none() {
            let newest = find_newest_change(&journal).await;
            let start = |newest_ms| RetentionClock::start(SystemClock.now_ms(), newest_ms);
            clock = newest.ok().map(start);
        }
        if let Some(clock) = &clock {
            let now_ms = clock.limit_time(SystemClock.now_ms(), Instant::now());
            let _ = remove_old_runs(&journal, &runs, &selection, now_ms, RemovalMode::Remove).await;
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(RETENTION_INTERVAL) => {}
        }
    }
}

/// The time by which runs are removed without a person. A wall clock that is ahead for a moment would
/// make every run old, so the time starts near the newest change in the journal, and passes no faster
/// than the monotonic clock of the process.
#[derive(Debug)]
struct RetentionClock {
    start_ms: u64,
    started: Instant,
}

impl RetentionClock {
    fn start(now_ms: u64, newest_ms: u64) -> Self {
        let lead_ms = RETENTION_CLOCK_LEAD_MAX.as_millis() as u64;
        let start_ms = now_ms.min(newest_ms.saturating_add(lead_ms));
        RetentionClock { start_ms, started: Instant::now() }
    }

    fn limit_time(&self, now_ms: u64, at: Instant) -> u64 {
        let passed_ms = at.saturating_duration_since(self.started).as_millis() as u64;
        now_ms.min(self.start_ms.saturating_add(passed_ms))
    }
}

/// Returns when a run last changed.
async fn find_newest_change(journal: &Journal) -> Result<u64, JournalError> {
    let (mut newest_ms, mut filter) = (0, Filter::default());
    loop {
        let page = journal.runs(&filter).await?;
        newest_ms = page.items.iter().map(|run| run.updated_ms).fold(newest_ms, u64::max);
        match page.next {
            Some(next) => filter.before = Some(next),
            None => return Ok(newest_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 24 * 60 * 60 * 1000;

    #[test]
    fn a_clock_that_is_ahead_makes_no_run_old() {
        let newest_ms = 1000 * DAY_MS;
        let ahead_ms = newest_ms + 5000 * DAY_MS;
        let clock = RetentionClock::start(ahead_ms, newest_ms);
        assert_eq!(clock.limit_time(ahead_ms, clock.started), newest_ms + DAY_MS);
        let clock = RetentionClock::start(newest_ms + 5, newest_ms);
        assert_eq!(clock.limit_time(newest_ms + 5, clock.started), newest_ms + 5);
        let next_day = clock.started + RETENTION_INTERVAL;
        assert_eq!(clock.limit_time(ahead_ms, next_day), newest_ms + 5 + DAY_MS);
        assert_eq!(clock.limit_time(newest_ms + 7, next_day), newest_ms + 7);
    }
}
