//! The shapes of `rep runs … --json`, `rep replay --json` and the lines of `rep events --json`, which are the journal's
//! own events.

pub use repertoire::runs::{ChangedFile, DeliveredJson, RunCommand, RunDiffJson, RunFile, RunJson, RunRow, RunTask, SignalJson, TasksDone};
use repertoire_journal::{Difference, Replayed, RunId};
use schemars::JsonSchema;
use serde::Serialize;

/// `rep runs --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunsJson {
    /// The runs, the newest first.
    pub runs: Vec<RunRow>,
    /// Where the list goes on, for `--before`; null if it does not.
    pub next: Option<u64>,
}

/// `rep runs prune --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PruneJson {
    /// Whether nothing was removed because it was only asked what would be.
    pub dry_run: bool,
    /// Worktrees that are gone, or would be.
    pub removed: Vec<RemovedJson>,
    /// Worktrees that stay.
    pub kept: Vec<KeptJson>,
    /// Workspaces that could not be looked at.
    pub failed: Vec<WorkspaceProblem>,
}

/// A worktree that is gone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovedJson {
    /// The run.
    pub run: String,
    /// Where it was.
    pub path: String,
    /// Its branch, which is gone as well.
    pub branch: String,
    /// Where the branch was: `git branch NAME COMMIT` brings it back.
    pub tip: Option<String>,
}

/// A worktree that stays.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeptJson {
    /// The run.
    pub run: String,
    /// Where it is.
    pub path: String,
    /// Why it stays.
    pub why: String,
}

/// A workspace that could not be looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkspaceProblem {
    /// The workspace.
    pub workspace: String,
    /// Why.
    pub why: String,
}

/// `rep replay --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReplayJson {
    /// Whether all of them are equal.
    pub equal: bool,
    /// The runs that were replayed.
    pub runs: Vec<ReplayedJson>,
}

/// A run that was replayed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReplayedJson {
    /// The run.
    pub run: RunId,
    /// Whether what is stored is what the events say.
    pub equal: bool,
    /// Events.
    pub events: u64,
    /// Steps.
    pub steps: u64,
    /// Where it is not.
    pub differences: Vec<DifferenceJson>,
}

/// Something that is stored otherwise than the events say.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DifferenceJson {
    /// What.
    pub what: String,
    /// What is stored.
    pub stored: String,
    /// What the events say.
    pub replayed: String,
}

impl ReplayedJson {
    pub(crate) fn new(run: RunId, replayed: Replayed) -> Self {
        let one = |found: Difference| DifferenceJson {
            what: found.what,
            stored: found.stored,
            replayed: found.replayed,
        };
        ReplayedJson {
            run,
            equal: replayed.differences.is_empty(),
            events: replayed.events,
            steps: replayed.steps,
            differences: replayed.differences.into_iter().map(one).collect(),
        }
    }
}
