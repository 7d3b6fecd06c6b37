//! A GitHub event as a value, read from the event file of Actions and its environment variables.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod environment;
mod read;

pub use environment::ActionsEnvironment;
pub use read::{EventError, read_event};

/// A GitHub event: the action, the account that caused it, and the issue or pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitHubEventContext {
    /// The name of the event.
    pub event: EventName,
    /// The action of the event: `opened`, `labeled`, `created` and so on.
    pub action: Option<String>,
    /// The repository the event belongs to.
    pub repository: EventRepository,
    /// The account that caused the event. Its permissions are checked elsewhere.
    pub actor: GitHubAccount,
    /// The account that re-ran the workflow, if it is a different one. It needs the same
    /// permission.
    pub rerun_by: Option<GitHubAccount>,
    /// The issue or pull request the event is about.
    pub entity: Option<IssueOrPull>,
    /// The text in the event.
    pub said: Option<EventText>,
    /// The time of the event, as GitHub writes it. Later text and edits are ignored, because the
    /// actor had not seen them.
    pub at: Option<String>,
    /// The label that was just added.
    pub label: Option<String>,
    /// The account that was just assigned.
    pub assignee: Option<GitHubAccount>,
    /// The inputs of the workflow.
    pub inputs: BTreeMap<String, String>,
    /// The workflow run.
    pub run: WorkflowRun,
}

/// The supported events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventName {
    /// An action on an issue.
    Issues,
    /// A comment on an issue or pull request.
    IssueComment,
    /// An action on a pull request.
    PullRequest,
    /// An action on a pull request, with the workflow and the secrets of the base branch.
    PullRequestTarget,
    /// A review of a pull request.
    PullRequestReview,
    /// A comment on a line of a pull request.
    PullRequestReviewComment,
    /// A workflow started by hand.
    WorkflowDispatch,
    /// A workflow started through the API.
    RepositoryDispatch,
    /// A workflow started by a schedule.
    Schedule,
    /// Any other event.
    Other(String),
}

impl EventName {
    /// The names of the events that can trigger the agent.
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

    /// Parses GitHub's name of an event.
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

    /// Returns GitHub's name of the event.
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

impl GitHubEventContext {
    /// Returns the event with its action, such as `issues.opened`.
    pub fn event_and_action(&self) -> String {
        match &self.action {
            Some(action) => format!("{}.{action}", self.event.as_str()),
            None => self.event.as_str().to_owned(),
        }
    }

    /// Returns true if the event has this action.
    pub fn is_action(&self, action: &str) -> bool {
        self.action.as_deref() == Some(action)
    }

    /// Returns true if the event is about a pull request from another repository, or from one that
    /// was deleted. `None` if the event does not contain the branches: look them up first.
    pub fn is_fork(&self) -> Option<bool> {
        let entity = self.entity.as_ref().filter(|entity| entity.is_pull);
        let Some(entity) = entity else { return Some(false) };
        let pull = entity.pull.as_ref()?;
        let own = self.repository.full_name();
        Some(pull.head_repository.as_ref().is_none_or(|name| !name.eq_ignore_ascii_case(&own)))
    }
}

impl EventRepository {
    /// Returns `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

impl GitHubAccount {
    /// Returns true if the account has this login. Logins are case-insensitive.
    pub fn has_login(&self, login: &str) -> bool {
        self.login.eq_ignore_ascii_case(login)
    }

    /// Returns true if the account is a bot, by its kind or its login.
    pub fn is_bot(&self) -> bool {
        self.kind == AccountKind::Bot || self.login.to_ascii_lowercase().ends_with("[bot]")
    }
}

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventRepository {
    /// The owner of the repository.
    pub owner: String,
    /// The name of the repository.
    pub name: String,
    /// The default branch.
    pub default_branch: Option<String>,
}

/// A GitHub account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitHubAccount {
    /// The login of the account.
    pub login: String,
    /// The kind of account.
    pub kind: AccountKind,
}

/// The kind of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    /// A person.
    User,
    /// A bot or app.
    Bot,
    /// An organisation.
    Organization,
    /// Not specified.
    Unknown,
}

/// An issue or a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IssueOrPull {
    /// The number of the issue or pull request.
    pub number: u64,
    /// The title, as its author wrote it.
    pub title: String,
    /// The text, as its author wrote it.
    pub body: String,
    /// The account that opened it.
    pub author: GitHubAccount,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// The logins of its assignees.
    pub assignees: Vec<String>,
    /// True if it is open.
    pub open: bool,
    /// True if it is a pull request. Its branches are known only if the event contains them.
    pub is_pull: bool,
    /// The branches of a pull request, if the event contains them.
    pub pull: Option<PullBranches>,
}

/// The branches of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PullBranches {
    /// The head branch.
    pub head_ref: String,
    /// The commit of the head branch.
    pub head_sha: String,
    /// The repository of the head branch, as `owner/name`; null if it was deleted.
    pub head_repository: Option<String>,
    /// The base branch.
    pub base_ref: String,
    /// The commit of the base branch.
    pub base_sha: String,
    /// True if the pull request is a draft.
    pub draft: bool,
}

/// The text in an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventText {
    /// The text, as its author wrote it.
    pub text: String,
    /// The previous text, if it was edited.
    pub before: Option<String>,
    /// The author of the text.
    pub author: GitHubAccount,
    /// The id of the comment; null for the text of an issue or pull request.
    pub comment: Option<u64>,
    /// The file and line the comment was written at.
    pub place: Option<(String, Option<u64>)>,
}

/// A workflow run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowRun {
    /// The id of the workflow run.
    pub id: Option<String>,
    /// The URL of the page of the workflow run.
    pub url: Option<String>,
    /// The commit the workflow runs on.
    pub sha: Option<String>,
    /// The branch or tag the workflow runs on.
    pub ref_name: Option<String>,
}
