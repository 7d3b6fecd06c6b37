//! Sets up a new worktree before agents work in it: copies files such as `.env`, and runs a command.

use repertoire_checks::declared::{
    CheckDefinition, CheckError, CheckEvent, CheckRunVerdict, run_checks,
};
use repertoire_git::worktree::{PreparedWorktree, RunWorktrees, WorktreeCopyResult, WorktreeError};
use repertoire_sandbox::workplace::RunWorkplace;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// What a new worktree needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorktreeSetup {
    /// Patterns of files that are copied from the checkout. Only files that git ignores are: others would be committed
    /// with the run's work.
    #[serde(default)]
    pub copy: Vec<String>,
    /// What is run in it once.
    #[serde(default)]
    pub check: Option<CheckDefinition>,
}

/// What was done to set a worktree up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetupReport {
    /// The files.
    pub copied: WorktreeCopyResult,
    /// What came of the command.
    pub verdict: Option<CheckRunVerdict>,
}

/// A worktree that could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error(transparent)]
    Check(#[from] CheckError),
}

/// Sets a worktree up, once: one that was set up is left alone. `workplace` is that of the agent that will work in it.
/// A command that fails leaves the worktree to be set up again; its verdict says why.
pub async fn set_up_worktree(
    worktrees: &RunWorktrees,
    worktree: &mut PreparedWorktree,
    setup: &WorktreeSetup,
    workplace: &RunWorkplace,
    cancel: &CancellationToken,
    on_event: &(dyn Fn(CheckEvent) + Sync),
) -> Result<SetupReport, SetupError> {
    if worktree.set_up {
        return Ok(SetupReport::default());
    }
    let copied = worktrees.copy_ignored_files(worktree, &setup.copy).await?;
    let verdict = match &setup.check {
        Some(check) => {
            let checks = std::slice::from_ref(check);
            Some(run_checks(checks, workplace, cancel, on_event, 1).await?)
        }
        None => None,
    };
    if verdict.as_ref().is_none_or(|verdict| verdict.green) {
        worktrees.mark_set_up(worktree)?;
    }
    Ok(SetupReport { copied, verdict })
}
