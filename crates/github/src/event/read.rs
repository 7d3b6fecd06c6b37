//! Parses the event file of Actions into a [`Context`].
//!
//! Unknown fields are ignored. A required field that is missing or has the wrong type is an error
//! that names the field. Nothing here calls the API: what an event does not contain stays unknown.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    AccountKind, ActionsEnvironment, EventName, EventRepository, EventText, GitHubAccount,
    GitHubEventContext, IssueOrPull, PullBranches, WorkflowRun,
};
use crate::limits::{EVENT_BYTES_MAX, LIST_MAX, NAME_BYTES_MAX, TEXT_BYTES_MAX};

/// The reason an event cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// The name of the event is not set.
    #[error("the name of the event is missing: set GITHUB_EVENT_NAME, or pass `--event-name`")]
    NoName,
    /// The payload is larger than GitHub's limit.
    #[error("the event has {bytes} bytes; the limit is {EVENT_BYTES_MAX}")]
    TooLarge { bytes: usize },
    /// The payload is not JSON.
    #[error("the event is not JSON: {0}")]
    NotJson(serde_json::Error),
    /// The payload is not a JSON object.
    #[error("the event is not a JSON object")]
    NotAnObject,
    /// A field has the wrong type.
    #[error("`{field}` of the event cannot be read: {source}")]
    Field { field: &'static str, source: serde_json::Error },
    /// A required field is missing.
    #[error("an event `{event}` has `{field}`, and this one does not")]
    Missing { event: String, field: &'static str },
    /// The actor is not known.
    #[error("nobody says who caused the event: it has no `sender`, and GITHUB_ACTOR is not set")]
    NoActor,
    /// The repository is not known.
    #[error(
        "nobody says which repository this is: the event has none, and GITHUB_REPOSITORY is not set"
    )]
    NoRepository,
    /// A name that is not valid on GitHub.
    #[error("`{name}` is not the name of {what} on GitHub")]
    BadName {
        /// The kind of name.
        what: &'static str,
        /// The name with control characters escaped.
        name: String,
    },
}

/// Parses an event.
pub fn read_event(
    payload: &str,
    surroundings: &ActionsEnvironment,
) -> Result<GitHubEventContext, EventError> {
    if payload.len() as u64 > EVENT_BYTES_MAX {
        return Err(EventError::TooLarge { bytes: payload.len() });
    }
    let name = surroundings.event_name.as_deref().ok_or(EventError::NoName)?.trim();
    if !is_name(name, |c| c == '_') {
        return Err(bad_name("an event", name));
    }
    let payload: Value = serde_json::from_str(payload).map_err(EventError::NotJson)?;
    if !payload.is_object() {
        return Err(EventError::NotAnObject);
    }
    EventReader { payload: &payload, event: EventName::parse(name), surroundings }.read_context()
}

struct EventReader<'a> {
    payload: &'a Value,
    event: EventName,
    surroundings: &'a ActionsEnvironment,
}

impl EventReader<'_> {
    fn read_context(self) -> Result<GitHubEventContext, EventError> {
        let repository = self.read_repository()?;
        let actor = self.read_actor(&repository)?;
        let rerun_by = self.read_rerun_by(&actor)?;
        let action: Option<String> = self.optional_field("action")?;
        let entity = self.read_entity()?;
        let said = self.read_text(action.as_deref(), entity.as_ref())?;
        Ok(GitHubEventContext {
            at: self.read_time()?,
            said,
            entity,
            rerun_by,
            actor,
            label: self
                .added_field::<WireLabel>(&action, "labeled", "label")?
                .map(|label| label.name),
            assignee: match self.added_field::<WireAccount>(&action, "assigned", "assignee")? {
                Some(account) => Some(account.into_account()?),
                None => None,
            },
            inputs: self.read_inputs()?,
            run: self.read_workflow_run(&repository),
            action: action.map(|action| truncate_bytes(action, NAME_BYTES_MAX)),
            repository,
            event: self.event,
        })
    }

    /// Returns a field of the payload; `None` for `null`.
    fn optional_field<T: DeserializeOwned>(
        &self,
        field: &'static str,
    ) -> Result<Option<T>, EventError> {
        match self.payload.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => T::deserialize(value)
                .map(Some)
                .map_err(|source| EventError::Field { field, source }),
        }
    }

    fn required_field<T: DeserializeOwned>(&self, field: &'static str) -> Result<T, EventError> {
        let event = || self.event.as_str().to_owned();
        self.optional_field(field)?.ok_or_else(|| EventError::Missing { event: event(), field })
    }

    /// Returns the label or account that was just added, if the action is `wanted`.
    fn added_field<T: DeserializeOwned>(
        &self,
        action: &Option<String>,
        wanted: &str,
        field: &'static str,
    ) -> Result<Option<T>, EventError> {
        if self.is_about_entity() && action.as_deref() == Some(wanted) {
            self.optional_field(field)
        } else {
            Ok(None)
        }
    }

    fn is_about_entity(&self) -> bool {
        use EventName as E;
        match &self.event {
            E::Issues | E::IssueComment | E::PullRequest | E::PullRequestTarget => true,
            E::PullRequestReview | E::PullRequestReviewComment => true,
            E::WorkflowDispatch | E::RepositoryDispatch | E::Schedule | E::Other(_) => false,
        }
    }

    fn read_repository(&self) -> Result<EventRepository, EventError> {
        let wire: Option<WireRepository> = self.optional_field("repository")?;
        let full = wire.as_ref().map(|wire| wire.full_name.as_str());
        let full = full.or(self.surroundings.repository.as_deref());
        let full = full.ok_or(EventError::NoRepository)?;
        let (owner, name) = repository_name(full)?;
        let default_branch = wire.and_then(|wire| wire.default_branch);
        Ok(EventRepository { owner, name, default_branch })
    }

    /// Returns the sender in the payload, or else the actor in the environment. A schedule acts for
    /// the owner: `GITHUB_ACTOR` would be the last account that changed the workflow.
    fn read_actor(&self, repository: &EventRepository) -> Result<GitHubAccount, EventError> {
        if self.event == EventName::Schedule {
            return Ok(account_named(&repository.owner));
        }
        if let Some(sender) = self.optional_field::<WireAccount>("sender")? {
            return sender.into_account();
        }
        let actor = self.surroundings.actor.as_deref().ok_or(EventError::NoActor)?;
        check_login(actor).map(|login| account_named(&login))
    }

    fn read_rerun_by(&self, actor: &GitHubAccount) -> Result<Option<GitHubAccount>, EventError> {
        let around = self.surroundings;
        let Some(by) = around.triggering_actor.as_deref() else { return Ok(None) };
        let first = around.actor.as_deref().is_none_or(|first| first.eq_ignore_ascii_case(by));
        if (first && !around.is_rerun()) || actor.has_login(by) {
            return Ok(None);
        }
        check_login(by).map(|login| Some(account_named(&login)))
    }

    fn read_entity(&self) -> Result<Option<IssueOrPull>, EventError> {
        use EventName as E;
        match &self.event {
            E::Issues | E::IssueComment => {
                self.required_field::<WireEntity>("issue")?.into_entity().map(Some)
            }
            E::PullRequest
            | E::PullRequestTarget
            | E::PullRequestReview
            | E::PullRequestReviewComment => {
                let mut entity =
                    self.required_field::<WireEntity>("pull_request")?.into_entity()?;
                entity.is_pull = true;
                Ok(Some(entity))
            }
            E::WorkflowDispatch | E::RepositoryDispatch | E::Schedule | E::Other(_) => Ok(None),
        }
    }

    /// Returns the text of the event. Adding a label to an issue has none, nor does deleting a
    /// comment.
    fn read_text(
        &self,
        action: Option<&str>,
        entity: Option<&IssueOrPull>,
    ) -> Result<Option<EventText>, EventError> {
        use EventName as E;
        let comment: Option<WireComment> = match (&self.event, action) {
            (E::IssueComment | E::PullRequestReviewComment, Some("created" | "edited")) => {
                Some(self.required_field("comment")?)
            }
            (E::PullRequestReview, Some("submitted" | "edited")) => {
                Some(self.required_field("review")?)
            }
            (E::Issues | E::PullRequest | E::PullRequestTarget, Some("opened" | "edited")) => None,
            _ => return Ok(None),
        };
        let mut said = match (comment, entity) {
            (Some(comment), _) => comment.into_text()?,
            (None, Some(entity)) => EventText {
                text: entity.body.clone(),
                before: None,
                author: entity.author.clone(),
                comment: None,
                place: None,
            },
            (None, None) => return Ok(None),
        };
        if action == Some("edited") {
            said.before = Some(self.read_previous_text(&said.text)?);
        }
        Ok(Some(said))
    }

    /// Returns the time of the event: that of its comment, review, issue or pull request.
    fn read_time(&self) -> Result<Option<String>, EventError> {
        let brought = ["comment", "review", "issue", "pull_request"];
        let field = brought.into_iter().find(|field| self.payload.get(field).is_some());
        let times: Option<WireTimes> = match field {
            Some(field) if self.is_about_entity() => self.optional_field(field)?,
            _ => None,
        };
        let at =
            times.and_then(|times| times.updated_at.or(times.submitted_at).or(times.created_at));
        Ok(at.filter(|at| is_name(at, |c| matches!(c, '-' | ':' | '.' | '+'))))
    }

    /// Returns the text before an edit; the current text if something else was edited.
    fn read_previous_text(&self, now: &str) -> Result<String, EventError> {
        let changes: Option<WireChanges> = self.optional_field("changes")?;
        let body = changes.and_then(|changes| changes.body);
        Ok(match body {
            Some(body) => bounded_text(body.from),
            None => now.to_owned(),
        })
    }

    fn read_inputs(&self) -> Result<BTreeMap<String, String>, EventError> {
        let field = match self.event {
            EventName::WorkflowDispatch => "inputs",
            EventName::RepositoryDispatch => "client_payload",
            _ => return Ok(BTreeMap::new()),
        };
        let inputs: BTreeMap<String, Value> = self.optional_field(field)?.unwrap_or_default();
        Ok(inputs.into_iter().filter_map(plain_input).take(LIST_MAX).collect())
    }

    fn read_workflow_run(&self, repository: &EventRepository) -> WorkflowRun {
        let around = self.surroundings;
        let digits = |id: &&String| id.bytes().all(|byte| byte.is_ascii_digit());
        let id = around.run_id.as_ref().filter(digits).cloned();
        let url = around.server_url.as_deref().zip(id.as_deref()).map(|(server, id)| {
            let server = server.trim_end_matches('/');
            format!("{server}/{}/actions/runs/{id}", repository.full_name())
        });
        WorkflowRun { id, url, sha: around.sha.clone(), ref_name: around.ref_name.clone() }
    }
}

fn plain_input((name, value): (String, Value)) -> Option<(String, String)> {
    match value {
        Value::String(value) => Some((name, bounded_text(Some(value)))),
        Value::Bool(_) | Value::Number(_) => Some((name, value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `full_name`")]
struct WireRepository {
    full_name: String,
    default_branch: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(expecting = "an object with `login`")]
struct WireAccount {
    login: String,
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// The times of a comment, issue or review. Only reviews have `submitted_at`.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireTimes {
    updated_at: Option<String>,
    submitted_at: Option<String>,
    created_at: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `name`")]
struct WireLabel {
    name: String,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireChanges {
    body: Option<WireChange>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireChange {
    from: Option<String>,
}

/// An issue or pull request. An issue has `pull_request` if it is one; a pull request has `head`
/// and `base`.
#[derive(Deserialize)]
#[serde(expecting = "an object with `number`")]
struct WireEntity {
    number: u64,
    title: Option<String>,
    body: Option<String>,
    user: Option<WireAccount>,
    labels: Option<Vec<WireLabel>>,
    assignees: Option<Vec<WireAccount>>,
    state: Option<String>,
    draft: Option<bool>,
    pull_request: Option<Value>,
    head: Option<WireBranch>,
    base: Option<WireBranch>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `ref` and `sha`")]
struct WireBranch {
    #[serde(rename = "ref")]
    name: String,
    sha: String,
    repo: Option<WireRepository>,
}

/// A comment or a review.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireComment {
    id: Option<u64>,
    body: Option<String>,
    user: Option<WireAccount>,
    path: Option<String>,
    line: Option<u64>,
    original_line: Option<u64>,
}

impl WireAccount {
    fn into_account(self) -> Result<GitHubAccount, EventError> {
        let kind = match self.kind.as_deref() {
            Some("User") => AccountKind::User,
            Some("Bot") => AccountKind::Bot,
            Some("Organization") => AccountKind::Organization,
            _ => AccountKind::Unknown,
        };
        Ok(GitHubAccount { login: check_login(&self.login)?, kind })
    }
}

impl WireEntity {
    fn into_entity(self) -> Result<IssueOrPull, EventError> {
        let pull = self.head.zip(self.base).map(|(head, base)| PullBranches {
            head_ref: head.name,
            head_sha: head.sha,
            head_repository: head.repo.map(|repo| repo.full_name),
            base_ref: base.name,
            base_sha: base.sha,
            draft: self.draft.unwrap_or(false),
        });
        let assignees = self.assignees.unwrap_or_default().into_iter().take(LIST_MAX);
        let labels = self.labels.unwrap_or_default().into_iter().take(LIST_MAX);
        Ok(IssueOrPull {
            number: self.number,
            title: bounded_text(self.title),
            body: bounded_text(self.body),
            author: account_or_ghost(self.user)?,
            labels: labels.map(|label| label.name).collect(),
            assignees: assignees.map(|account| account.login).collect(),
            open: self.state.as_deref() != Some("closed"),
            is_pull: self.pull_request.is_some(),
            pull,
        })
    }
}

impl WireComment {
    fn into_text(self) -> Result<EventText, EventError> {
        let line = self.line.or(self.original_line);
        Ok(EventText {
            text: bounded_text(self.body),
            before: None,
            author: account_or_ghost(self.user)?,
            comment: self.id,
            place: self.path.map(|path| (path, line)),
        })
    }
}

/// Returns the author. A deleted account is named `ghost`, as on GitHub.
fn account_or_ghost(user: Option<WireAccount>) -> Result<GitHubAccount, EventError> {
    match user {
        Some(user) => user.into_account(),
        None => Ok(GitHubAccount { login: "ghost".to_owned(), kind: AccountKind::Unknown }),
    }
}

fn account_named(login: &str) -> GitHubAccount {
    let account = GitHubAccount { login: login.to_owned(), kind: AccountKind::Unknown };
    let kind = if account.is_bot() { AccountKind::Bot } else { AccountKind::Unknown };
    GitHubAccount { kind, ..account }
}

fn check_login(name: &str) -> Result<String, EventError> {
    if is_name(name, |c| matches!(c, '-' | '_' | '.' | '[' | ']')) {
        Ok(name.to_owned())
    } else {
        Err(bad_name("an account", name))
    }
}

fn repository_name(full: &str) -> Result<(String, String), EventError> {
    let part = |part: &str| is_name(part, |c| matches!(c, '-' | '_' | '.'));
    let climbs = |part: &str| matches!(part, "." | "..");
    match full.split_once('/') {
        Some((owner, name)) if part(owner) && part(name) && !climbs(owner) && !climbs(name) => {
            Ok((owner.to_owned(), name.to_owned()))
        }
        _ => Err(bad_name("a repository", full)),
    }
}

/// Returns true for a valid name. Names end up in prompts and URLs, so only characters that GitHub
/// allows pass.
fn is_name(name: &str, also: impl Fn(char) -> bool) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || also(c);
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(fine)
}

fn bad_name(what: &'static str, name: &str) -> EventError {
    let shown = truncate_bytes(name.to_owned(), NAME_BYTES_MAX);
    EventError::BadName { what, name: repertoire_text::terminal::printable_line(&shown) }
}

fn bounded_text(text: Option<String>) -> String {
    truncate_bytes(text.unwrap_or_default(), TEXT_BYTES_MAX)
}

fn truncate_bytes(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push_str(" [… cut]");
    }
    text
}
