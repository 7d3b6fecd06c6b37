//! The types of `rep runs … --json` and `rep runs replay --json`. The lines of `rep runs events --json` are
//! the journal's own events.

pub use repertoire::runs::{
    DeliveredJson, RunChangedFile, RunCommand, RunDiffJson, RunFile, RunJson, RunListRow, RunTask,
    SignalJson, TasksDone,
};
use repertoire_journal::{
    DamagedRow, DigestReport, ReplayDifference, ReplayReport, Run, RunId, RunStatus,
};
use schemars::JsonSchema;
use serde::Serialize;

/// The output of `rep runs --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunsListJson {
    /// The runs, the newest first.
    pub runs: Vec<RunListRow>,
    /// Runs that cannot be read. `rep runs replay --verify` names what is damaged, and
    /// `rep runs rm --force` removes such a run.
    pub damaged: Vec<DamagedRow>,
    /// The cursor of the next page, for `--before`; null on the last page.
    pub next: Option<u64>,
}

/// The output of `rep runs prune --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PruneJson {
    /// True if nothing was removed because of `--dry-run`.
    pub dry_run: bool,
    /// Worktrees that were removed, or would be.
    pub removed: Vec<RemovedWorktreeJson>,
    /// Worktrees that were kept.
    pub kept: Vec<KeptWorktreeJson>,
    /// Workspaces that could not be examined.
    pub failed: Vec<WorkspaceProblem>,
    /// Old runs that were removed, or would be.
    pub removed_runs: Vec<RemovedRunJson>,
    /// Old runs that were kept.
    pub kept_runs: Vec<KeptRunJson>,
}

/// The output of `rep runs rm --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunsRemovedJson {
    /// The runs that were removed.
    pub runs: Vec<RemovedRunJson>,
    /// The ids of runs that could not be read and were removed.
    pub damaged: Vec<RunId>,
    /// Runs that were not removed.
    pub failed: Vec<RunNotRemovedJson>,
}

/// A run that was not removed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunNotRemovedJson {
    /// The run as it was named.
    pub run: String,
    /// The reason.
    pub reason: String,
}

/// A run that was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovedRunJson {
    /// The id of the run.
    pub run: RunId,
    /// The kind of the run.
    pub kind: String,
    /// The name of the run.
    pub name: String,
    /// The status of the run.
    pub status: RunStatus,
    /// When the run last changed, in milliseconds since 1970.
    pub updated_ms: u64,
}

/// An old run that was kept.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeptRunJson {
    /// The id of the run.
    pub run: RunId,
    /// The reason why it was kept.
    pub why: String,
}

impl RemovedRunJson {
    pub(crate) fn new(run: &Run) -> Self {
        RemovedRunJson {
            run: run.id.clone(),
            kind: run.kind.clone(),
            name: run.name.clone(),
            status: run.status,
            updated_ms: run.updated_ms,
        }
    }
}

/// A worktree that was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovedWorktreeJson {
    /// The id of the run.
    pub run: String,
    /// The path of the worktree.
    pub path: String,
    /// The branch, which was removed as well.
    pub branch: String,
    /// The last commit of the branch: `git branch NAME COMMIT` restores it.
    pub tip: Option<String>,
}

/// A worktree that was kept.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeptWorktreeJson {
    /// The id of the run.
    pub run: String,
    /// The path of the worktree.
    pub path: String,
    /// The reason why it was kept.
    pub why: String,
}

/// A workspace that could not be examined.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkspaceProblem {
    /// The path of the workspace.
    pub workspace: String,
    /// The error.
    pub why: String,
}

/// The output of `rep runs replay --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReplayJson {
    /// True if all runs are equal to their stored state.
    pub equal: bool,
    /// The runs that were replayed.
    pub runs: Vec<ReplayedJson>,
    /// Runs that cannot be read.
    pub damaged: Vec<DamagedRow>,
}

/// A run that was replayed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReplayedJson {
    /// The run.
    pub run: RunId,
    /// True if the stored state equals the state rebuilt from the events.
    pub equal: bool,
    /// Number of events.
    pub events: u64,
    /// Number of steps.
    pub steps: u64,
    /// The differences, if there are any.
    pub differences: Vec<DifferenceJson>,
}

/// A difference between the stored state and the state rebuilt from the events.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DifferenceJson {
    /// The part that differs.
    pub what: String,
    /// The stored value.
    pub stored: String,
    /// The value rebuilt from the events.
    pub replayed: String,
}

/// The output of `rep runs replay --verify --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VerifiedRunsJson {
    /// True if everything fits its digest.
    pub intact: bool,
    /// The runs that were verified.
    pub runs: Vec<VerifiedRunJson>,
}

/// A run whose digests were verified.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VerifiedRunJson {
    /// The run.
    pub run: RunId,
    /// True if everything of the run fits its digest.
    pub intact: bool,
    /// Number of events that fit, up to the first bad one.
    pub events: u64,
    /// Number of steps that fit, up to the first bad one.
    pub steps: u64,
    /// The first problem.
    pub problem: Option<DigestProblemJson>,
}

/// The first thing of a run that does not fit its digest.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DigestProblemJson {
    /// The number of the bad event; null if the events fit, and the run or a step does not.
    pub event: Option<u64>,
    /// The problem.
    pub what: String,
}

impl VerifiedRunJson {
    pub(crate) fn new(run: RunId, report: DigestReport) -> Self {
        let problem = report.problem;
        VerifiedRunJson {
            run,
            intact: problem.is_none(),
            events: report.events,
            steps: report.steps,
            problem: problem
                .map(|found| DigestProblemJson { event: found.event, what: found.what }),
        }
    }
}

impl ReplayedJson {
    pub(crate) fn new(run: RunId, replayed: ReplayReport) -> Self {
        ReplayedJson {
            run,
            equal: replayed.differences.is_empty(),
            events: replayed.events,
            steps: replayed.steps,
            differences: replayed.differences.into_iter().map(difference_json).collect(),
        }
    }
}

fn difference_json(found: ReplayDifference) -> DifferenceJson {
    DifferenceJson { what: found.what, stored: found.stored, replayed: found.replayed }
}
