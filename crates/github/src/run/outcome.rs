//! What a run on GitHub came to.

use repertoire_journal::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use repertoire_checks::recover::Class;

/// How a run on GitHub ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// What was asked for is done: checks, review and plan agree.
    Done,
    /// An answer was given, and nothing changed.
    Answered,
    /// A person has to decide.
    Waiting,
    /// It could not be done.
    Failed,
    /// Nothing called for work.
    Skipped,
    /// Whoever asked may not.
    Refused,
}

impl Conclusion {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Conclusion::Done => "done",
            Conclusion::Answered => "answered",
            Conclusion::Waiting => "waiting",
            Conclusion::Failed => "failed",
            Conclusion::Skipped => "skipped",
            Conclusion::Refused => "refused",
        }
    }

    /// Whether the step of a workflow is green with it. What nobody asked for, or may not ask for, is no failure.
    pub fn is_fine(self) -> bool {
        !matches!(self, Conclusion::Waiting | Conclusion::Failed)
    }
}

/// What a run on GitHub came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// How it ended.
    pub conclusion: Conclusion,
    /// Why, in a sentence.
    pub reason: String,
    /// What kind of failure it was, by what can be done about it; null if it was none.
    pub class: Option<Class>,
    /// The mode that was chosen.
    pub mode: Option<String>,
    /// The branch with the work.
    pub branch: Option<String>,
    /// Whether it was pushed.
    pub pushed: bool,
    /// The pull request.
    pub pull_request: Option<u64>,
    /// What became of merging it.
    pub merge: Option<String>,
    /// The checks on the last commit, in words.
    pub checks: Option<String>,
    /// What the agent said in the end.
    pub answer: Option<String>,
    /// The run in the journal.
    pub run: Option<RunId>,
    /// Each task, where there are several.
    pub tasks: Vec<TaskOutcome>,
    /// What people should know besides.
    pub notes: Vec<String>,
}

impl Outcome {
    /// An end, and why.
    pub fn new(conclusion: Conclusion, reason: impl Into<String>) -> Self {
        Outcome {
            conclusion,
            reason: reason.into(),
            // What the work itself came to is known only to whoever did it.
            class: (!conclusion.is_fine()).then_some(Class::Permanent),
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

/// What became of one task of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskOutcome {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How it ended.
    pub conclusion: Conclusion,
    /// Why.
    pub reason: String,
    /// The branch with the work.
    pub branch: Option<String>,
    /// The pull request.
    pub pull_request: Option<u64>,
}
