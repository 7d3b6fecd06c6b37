//! Calls for issues, comments, labels and accounts.

use reqwest::Method;
use serde_json::{Value, json};

use super::error::ClientError;
use super::page::PagedList;
use super::types::{
    CollaboratorPermission, GitHubIssue, GitHubUser, IssueComment, RepositoryInfo, TimelineEvent,
};
use super::wire::{CallResult, ClientCall};
use super::{GitHubClient, name};

impl GitHubClient {
    /// Fetches the repository.
    pub async fn get_repository(&self) -> Result<RepositoryInfo, ClientError> {
        self.send_call(&ClientCall::get(self.repository_url(&[]))).await?.decode_json()
    }

    /// Fetches the account of the token. Tokens of apps, such as a workflow's, are not allowed to.
    pub async fn get_own_user(&self) -> Result<GitHubUser, ClientError> {
        self.send_call(&ClientCall::get(self.api_url(&["user"]))).await?.decode_json()
    }

    /// Fetches the permission of an account. An unknown login is an error.
    pub async fn get_permission(&self, login: &str) -> Result<CollaboratorPermission, ClientError> {
        let url = self.repository_url(&["collaborators", name::login(login)?, "permission"]);
        self.send_call(&ClientCall::get(url)).await?.decode_json()
    }

    /// Fetches an issue or pull request.
    pub async fn get_issue(&self, number: u64) -> Result<GitHubIssue, ClientError> {
        self.send_call(&ClientCall::get(self.issue_url(number, &[]))).await?.decode_json()
    }

    /// Lists the open issues with a label, oldest first, including pull requests.
    pub async fn list_labelled_issues(
        &self,
        label: &str,
    ) -> Result<PagedList<GitHubIssue>, ClientError> {
        let mut url = self.repository_url(&["issues"]);
        url.query_pairs_mut()
            .append_pair("state", "open")
            .append_pair("labels", name::label(label)?)
            .append_pair("sort", "created")
            .append_pair("direction", "asc");
        self.list_pages::<Vec<GitHubIssue>>(url).await
    }

    /// Opens an issue with a label and a marker in its text. If the response is lost, looks for an
    /// open issue of `login` with the label and the marker before trying again.
    pub async fn create_issue(
        &self,
        title: &str,
        body: &str,
        label: &str,
        login: &str,
        marker: &str,
    ) -> Result<GitHubIssue, ClientError> {
        let new = json!({ "title": title, "body": body, "labels": [name::label(label)?] });
        let call = ClientCall::once_only(Method::POST, self.repository_url(&["issues"]), new);
        let look = || async {
            let there = self.list_labelled_issues(label).await?;
            Ok(there.items.into_iter().find(|issue| {
                let ours = issue.user.as_ref().is_some_and(|user| user.has_login(login));
                ours && issue.body.as_deref().is_some_and(|body| body.contains(marker))
            }))
        };
        match self.send_or_find(&call, look).await? {
            CallResult::Answered(answer) => answer.decode_json(),
            CallResult::Found(issue) => Ok(issue),
        }
    }

    /// Changes the title and text of an issue.
    pub async fn update_issue(
        &self,
        number: u64,
        title: &str,
        body: &str,
    ) -> Result<GitHubIssue, ClientError> {
        let change = json!({ "title": title, "body": body });
        let call = ClientCall::change(Method::PATCH, self.issue_url(number, &[]), change);
        self.send_call(&call).await?.decode_json()
    }

    /// Closes an issue. Closing a closed one has no effect.
    pub async fn close_issue(&self, number: u64) -> Result<GitHubIssue, ClientError> {
        let body = json!({ "state": "closed", "state_reason": "completed" });
        let call = ClientCall::change(Method::PATCH, self.issue_url(number, &[]), body);
        self.send_call(&call).await?.decode_json()
    }

    /// Lists the comments on an issue or pull request, oldest first.
    pub async fn list_comments(&self, number: u64) -> Result<PagedList<IssueComment>, ClientError> {
        self.list_pages::<Vec<IssueComment>>(self.issue_url(number, &["comments"])).await
    }

    /// Writes a comment that contains a marker.
    ///
    /// If the response is lost, looks for the marker in the comments of `login` before trying
    /// again, so that the comment is not written twice. The marker must not occur in any earlier
    /// comment.
    pub async fn create_comment(
        &self,
        number: u64,
        body: &str,
        login: &str,
        marker: &str,
    ) -> Result<IssueComment, ClientError> {
        let url = self.issue_url(number, &["comments"]);
        let call = ClientCall::once_only(Method::POST, url, json!({ "body": body }));
        let look = || async {
            let mut there = self.list_comments(number).await?;
            there.items.retain(|comment| has_marker_of(comment, login, marker));
            Ok(there.items.pop())
        };
        match self.send_or_find(&call, look).await? {
            CallResult::Answered(answer) => answer.decode_json(),
            CallResult::Found(comment) => Ok(comment),
        }
    }

    /// Replaces the text of a comment.
    pub async fn update_comment(&self, id: u64, body: &str) -> Result<IssueComment, ClientError> {
        let url = self.repository_url(&["issues", "comments", &id.to_string()]);
        self.send_call(&ClientCall::change(Method::PATCH, url, json!({ "body": body })))
            .await?
            .decode_json()
    }

    /// Adds a label to an issue or pull request. GitHub creates the label if it does not exist.
    pub async fn add_label(&self, number: u64, label: &str) -> Result<(), ClientError> {
        let body = json!({ "labels": [name::label(label)?] });
        let call = ClientCall::change(Method::POST, self.issue_url(number, &["labels"]), body);
        self.send_call(&call).await.map(drop)
    }

    /// Removes a label. Succeeds if it is not set.
    pub async fn remove_label(&self, number: u64, label: &str) -> Result<(), ClientError> {
        let url = self.issue_url(number, &["labels", name::label(label)?]);
        match self.send_call(&ClientCall::delete(url)).await {
            Err(ClientError::NotFound { .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Creates a label, with a colour of six hex digits. Succeeds if it exists.
    pub async fn create_label(
        &self,
        label: &str,
        colour: &str,
        description: &str,
    ) -> Result<(), ClientError> {
        let label = name::label(label)?;
        let body = json!({ "name": label, "color": colour, "description": description });
        match self
            .send_call(&ClientCall::change(Method::POST, self.repository_url(&["labels"]), body))
            .await
        {
            Err(ClientError::Refused { status: 422, message, .. })
                if message.contains("already_exists") =>
            {
                Ok(())
            }
            done => done.map(drop),
        }
    }

    /// Lists the timeline of an issue, oldest first: it shows who added which label.
    pub async fn timeline(&self, number: u64) -> Result<PagedList<TimelineEvent>, ClientError> {
        let events = self.list_pages::<Vec<Value>>(self.issue_url(number, &["timeline"])).await?;
        // Some kinds of events have a different structure; they are not needed.
        let items = events.items.into_iter().filter_map(|event| serde_json::from_value(event).ok());
        Ok(PagedList { items: items.collect(), whole: events.whole })
    }

    /// Returns the time of the last edit of an issue's text; `None` if it was never edited. Only
    /// GraphQL has this: the REST API's `updated_at` changes with every comment and label.
    pub async fn get_last_edited(&self, number: u64) -> Result<Option<String>, ClientError> {
        let variables = json!({ "owner": self.owner, "name": self.repository, "number": number });
        let body = json!({ "query": LAST_EDITED, "variables": variables });
        let answer =
            self.send_call(&ClientCall::change(Method::POST, self.graphql_url(), body)).await?;
        let read: Value = answer.decode_json()?;
        match read.pointer("/data/repository/issue/lastEditedAt") {
            Some(Value::Null) => Ok(None),
            Some(Value::String(at)) => Ok(Some(at.clone())),
            _ => {
                let said = read.pointer("/errors/0/message").and_then(Value::as_str);
                Err(answer.unclear_error(said.unwrap_or("it says nothing of edits").to_owned()))
            }
        }
    }

    /// Returns the GraphQL URL. On GitHub Enterprise it is a sibling of the REST URL (`/api/v3`,
    /// `/api/graphql`).
    fn graphql_url(&self) -> reqwest::Url {
        let mut url = self.base.clone();
        let path = url.path().trim_end_matches('/');
        let above = path.strip_suffix("/v3").unwrap_or(path).to_owned();
        url.set_path(&format!("{above}/graphql"));
        url
    }

    pub(super) fn issue_url(&self, number: u64, rest: &[&str]) -> reqwest::Url {
        let number = number.to_string();
        let mut parts = vec!["issues", number.as_str()];
        parts.extend(rest);
        self.repository_url(&parts)
    }
}

const LAST_EDITED: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { issue(number: $number) { lastEditedAt } } }";

impl PagedList<TimelineEvent> {
    /// Returns the event that last added a label, if the label is still set. Its actor may be an
    /// app, with a login that ends in `[bot]`. Returns `None` for an incomplete list, since the
    /// missing part could contradict it.
    pub fn labelled(&self, label: &str) -> Option<&TimelineEvent> {
        let last = self.items.iter().rfind(|event| is_label_event(event, label));
        let last = last.filter(|event| event.event == "labeled");
        last.filter(|_| self.whole)
    }
}

fn is_label_event(event: &TimelineEvent, label: &str) -> bool {
    let is_named = event.label.as_ref().is_some_and(|it| it.name.eq_ignore_ascii_case(label));
    is_named && matches!(event.event.as_str(), "labeled" | "unlabeled")
}

/// Returns true if a comment of this account contains the marker.
pub(super) fn has_marker_of(comment: &IssueComment, login: &str, marker: &str) -> bool {
    let author = comment.user.as_ref().is_some_and(|user| user.has_login(login));
    author && comment.body.as_deref().is_some_and(|body| body.contains(marker))
}
