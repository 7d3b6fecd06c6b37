//! What happened on GitHub, as a value: the file that Actions leaves for a workflow, and what its environment says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod read;
mod surroundings;

pub use read::{EventError, read};
pub use surroundings::Surroundings;

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
    /// Who had the workflow run again, if that is somebody else. They need the same right.
    pub rerun_by: Option<Account>,
    /// The issue or pull request that it is about.
    pub entity: Option<Entity>,
    /// The text that this event brought.
    pub said: Option<Said>,
    /// When it happened, as the service writes it. What was written or changed later was not there for whoever caused it.
    pub at: Option<String>,
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

impl EventName {
    /// The names of those that may call somebody.
    pub const KNOWN: [&str; 9] = [
        "issues",
        "issue_comment",
        "pull_request",
        "pull_request_target",
        "pull_request_review",
        "pull_request_review_comment",
        "workflow_dispatch",
        "repository_dispatch",
        "schedule",
    ];

    /// The event that GitHub calls so.
    pub fn parse(name: &str) -> EventName {
        match name {
            "issues" => EventName::Issues,
            "issue_comment" => EventName::IssueComment,
            "pull_request" => EventName::PullRequest,
            "pull_request_target" => EventName::PullRequestTarget,
            "pull_request_review" => EventName::PullRequestReview,
            "pull_request_review_comment" => EventName::PullRequestReviewComment,
            "workflow_dispatch" => EventName::WorkflowDispatch,
            "repository_dispatch" => EventName::RepositoryDispatch,
            "schedule" => EventName::Schedule,
            other => EventName::Other(other.to_owned()),
        }
    }

    /// What GitHub calls it.
    pub fn as_str(&self) -> &str {
        match self {
            EventName::Issues => "issues",
            EventName::IssueComment => "issue_comment",
            EventName::PullRequest => "pull_request",
            EventName::PullRequestTarget => "pull_request_target",
            EventName::PullRequestReview => "pull_request_review",
            EventName::PullRequestReviewComment => "pull_request_review_comment",
            EventName::WorkflowDispatch => "workflow_dispatch",
            EventName::RepositoryDispatch => "repository_dispatch",
            EventName::Schedule => "schedule",
            EventName::Other(name) => name,
        }
    }
}

impl Context {
    /// The event with what happened, such as `issues.opened`.
    pub fn event_and_action(&self) -> String {
        match &self.action {
            Some(action) => format!("{}.{action}", self.event.as_str()),
            None => self.event.as_str().to_owned(),
        }
    }

    /// Whether what happened is called so.
    pub fn is_action(&self, action: &str) -> bool {
        self.action.as_deref() == Some(action)
    }

    /// Whether it is about a pull request whose change comes from another repository, or from one that is gone. Where the
    /// event does not say the branches, nobody knows: ask the service first.
    pub fn is_fork(&self) -> Option<bool> {
        let entity = self.entity.as_ref().filter(|entity| entity.is_pull);
        let Some(entity) = entity else { return Some(false) };
        let pull = entity.pull.as_ref()?;
        let own = self.repository.full_name();
        Some(pull.head_repository.as_ref().is_none_or(|name| !name.eq_ignore_ascii_case(&own)))
    }
}

impl Repository {
    /// `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

impl Account {
    /// Whether this is the account of that name. Names differ in more than case.
    pub fn is(&self, login: &str) -> bool {
        self.login.eq_ignore_ascii_case(login)
    }

    /// Whether it is a program: it says so, or its name does.
    pub fn is_bot(&self) -> bool {
        self.kind == AccountKind::Bot || self.login.to_ascii_lowercase().ends_with("[bot]")
    }
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
