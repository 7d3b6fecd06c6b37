//! The outcome of a GitHub run.

use repertoire_journal::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use repertoire_checks::recover::FailureClass;

/// The conclusion of a GitHub run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunConclusion {
    /// The work is done: checks, review and plan agree.
    Done,
    /// A question was answered, and nothing was changed.
    Answered,
    /// A person has to decide.
    Waiting,
    /// The work could not be done.
    Failed,
    /// No work was triggered.
    Skipped,
    /// The actor is not allowed to ask for it.
    Refused,
}

impl RunConclusion {
    /// The name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            RunConclusion::Done => "done",
            RunConclusion::Answered => "answered",
            RunConclusion::Waiting => "waiting",
            RunConclusion::Failed => "failed",
            RunConclusion::Skipped => "skipped",
            RunConclusion::Refused => "refused",
        }
    }

    /// Returns true if the workflow step is green. An event that triggers nothing, or whose actor
    /// has no rights, is not a failure.
    pub fn is_fine(self) -> bool {
        !matches!(self, RunConclusion::Waiting | RunConclusion::Failed)
    }
}

/// The outcome of a GitHub run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GitHubOutcome {
    /// The conclusion of the run.
    pub conclusion: RunConclusion,
    /// The reason, in one sentence.
    pub reason: String,
    /// The class of the failure, by what can be done about it; null if there was none.
    pub class: Option<FailureClass>,
    /// The mode that was selected.
    pub mode: Option<String>,
    /// The branch with the work.
    pub branch: Option<String>,
    /// True if the branch was pushed.
    pub pushed: bool,
    /// The number of the pull request.
    pub pull_request: Option<u64>,
    /// The result of auto-merge, in one line.
    pub merge: Option<String>,
    /// The results of the checks on the last commit, as text.
    pub checks: Option<String>,
    /// The final answer of the agent.
    pub answer: Option<String>,
    /// The id of the run in the journal.
    pub run: Option<RunId>,
    /// The outcomes of the tasks, in continuous operation.
    pub tasks: Vec<TaskOutcome>,
    /// Further notes for people.
    pub notes: Vec<String>,
}

impl GitHubOutcome {
    /// Creates an outcome without work.
    pub fn new(conclusion: RunConclusion, reason: impl Into<String>) -> Self {
        GitHubOutcome {
            conclusion,
            reason: reason.into(),
            // A failure outside of the work itself is permanent. For work, the caller sets the
            // class.
            class: (!conclusion.is_fine()).then_some(FailureClass::Permanent),
            mode: None,
            branch: None,
            pushed: false,
            pull_request: None,
            merge: None,
            checks: None,
            answer: None,
            run: None,
            tasks: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// The outcome of one task of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskOutcome {
    /// The id of the task.
    pub id: String,
    /// The title of the task.
    pub title: String,
    /// The conclusion of the task.
    pub conclusion: RunConclusion,
    /// The reason for the conclusion.
    pub reason: String,
    /// The branch with the work.
    pub branch: Option<String>,
    /// The number of the pull request.
    pub pull_request: Option<u64>,
}
