//! What happened on GitHub, as a value: the file that Actions leaves for a workflow, and what its environment says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happened, who caused it, and what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    /// The event.
    pub event: EventName,
    /// What happened to the thing that the event is about: `opened`, `labeled`, `created` and so on.
    pub action: Option<String>,
    /// The repository.
    pub repository: Repository,
    /// Who caused the event. Whether they may is another question.
    pub actor: Account,
    /// The issue or pull request that it is about.
    pub entity: Option<Entity>,
    /// The text that this event brought.
    pub said: Option<Said>,
    /// The label that was just added.
    pub label: Option<String>,
    /// The account that was just assigned.
    pub assignee: Option<Account>,
    /// What the workflow was started with.
    pub inputs: BTreeMap<String, String>,
    /// The run of the workflow.
    pub run: WorkflowRun,
}

/// The events that are understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventName {
    /// Something happened to an issue.
    Issues,
    /// Somebody wrote below an issue or a pull request.
    IssueComment,
    /// Something happened to a pull request.
    PullRequest,
    /// The same, with the workflow and the secrets of the base branch.
    PullRequestTarget,
    /// Somebody reviewed a pull request.
    PullRequestReview,
    /// Somebody wrote at a line of a pull request.
    PullRequestReviewComment,
    /// Somebody started the workflow by hand.
    WorkflowDispatch,
    /// A program started it.
    RepositoryDispatch,
    /// The clock did.
    Schedule,
    /// Something else.
    Other(String),
}

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repository {
    /// Whose it is.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// The branch that others begin on.
    pub default_branch: Option<String>,
}

/// Somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// The name that they are known by.
    pub login: String,
    /// What they are.
    pub kind: AccountKind,
}

/// What an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    /// A person.
    User,
    /// A program.
    Bot,
    /// An organisation.
    Organization,
    /// Nobody said.
    Unknown,
}

/// An issue or a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entity {
    /// Its number.
    pub number: u64,
    /// Its title, as its author wrote it.
    pub title: String,
    /// Its text, as its author wrote it.
    pub body: String,
    /// Who opened it.
    pub author: Account,
    /// Its labels.
    pub labels: Vec<String>,
    /// Who it is assigned to.
    pub assignees: Vec<String>,
    /// Whether it is open.
    pub open: bool,
    /// Whether it is a pull request. Its branches are known only where the event says them.
    pub is_pull: bool,
    /// The branches of a pull request, where the event says them.
    pub pull: Option<Pull>,
}

/// The branches of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pull {
    /// The branch with the change.
    pub head_ref: String,
    /// Its commit.
    pub head_sha: String,
    /// The repository that it is in, as `owner/name`; nothing if that is gone.
    pub head_repository: Option<String>,
    /// The branch that it shall go into.
    pub base_ref: String,
    /// Its commit.
    pub base_sha: String,
    /// Whether it is not ready.
    pub draft: bool,
}

/// A text that an event brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// The text, as it was written.
    pub text: String,
    /// What it was before, if it was edited.
    pub before: Option<String>,
    /// Who wrote it.
    pub author: Account,
    /// The number of the comment; nothing for the text of an issue or pull request.
    pub comment: Option<u64>,
    /// The file and line that it was written at.
    pub place: Option<(String, Option<u64>)>,
}

/// The run of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowRun {
    /// Its id.
    pub id: Option<String>,
    /// Where people see it.
    pub url: Option<String>,
    /// The commit that it runs on.
    pub sha: Option<String>,
    /// The branch or tag that it runs on.
    pub ref_name: Option<String>,
}
