//! Calls for pull requests and their reviews.

use reqwest::{Method, Url};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::error::ClientError;
use super::page::PagedList;
use super::types::{MergeResult, PullFile, PullRequest, PullReview, PullReviewComment};
use super::wire::{CallResult, ClientCall, DIFF};
use super::{GitHubClient, name};

/// The parameters of a pull request to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPull<'a> {
    pub title: &'a str,
    pub body: &'a str,
    /// The head branch, in this repository.
    pub head: &'a str,
    /// The base branch.
    pub base: &'a str,
    pub draft: bool,
}

/// The way a pull request is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MergeMethod {
    /// With a merge commit.
    Merge,
    /// As a single commit.
    Squash,
    /// By rebasing its commits.
    Rebase,
}

impl MergeMethod {
    /// Returns GitHub's name of the method.
    pub fn as_str(self) -> &'static str {
        match self {
            MergeMethod::Merge => "merge",
            MergeMethod::Squash => "squash",
            MergeMethod::Rebase => "rebase",
        }
    }
}

impl GitHubClient {
    /// Fetches a pull request.
    pub async fn get_pull(&self, number: u64) -> Result<PullRequest, ClientError> {
        self.send_call(&ClientCall::get(self.pull_url(number, &[]))).await?.decode_json()
    }

    /// Lists the open pull requests of a branch of this repository.
    pub async fn list_pulls_of(&self, branch: &str) -> Result<PagedList<PullRequest>, ClientError> {
        let mut url = self.repository_url(&["pulls"]);
        let head = format!("{}:{}", self.owner(), name::check_branch(branch)?);
        url.query_pairs_mut().append_pair("state", "open").append_pair("head", &head);
        let mut found = self.list_pages::<Vec<PullRequest>>(url).await?;
        // GitHub ignores a filter it does not know and returns everything.
        let ours = self.full_name();
        found.items.retain(|pull| {
            let repository = pull.head.repo.as_ref();
            let here = repository.is_some_and(|repo| repo.full_name.eq_ignore_ascii_case(&ours));
            here && pull.head.name == branch
        });
        Ok(found)
    }

    /// Lists the open pull requests.
    pub async fn list_open_pulls(&self) -> Result<PagedList<PullRequest>, ClientError> {
        let mut url = self.repository_url(&["pulls"]);
        url.query_pairs_mut().append_pair("state", "open");
        self.list_pages::<Vec<PullRequest>>(url).await
    }

    /// Opens a pull request, or returns the open one between the same branches. The second value is
    /// true if it is new.
    pub async fn create_pull(&self, new: &NewPull<'_>) -> Result<(PullRequest, bool), ClientError> {
        name::check_branch(new.base)?;
        let find = || async {
            let there = self.list_pulls_of(new.head).await?;
            Ok(there.items.into_iter().find(|pull| pull.base.name == new.base))
        };
        if let Some(pull) = find().await? {
            return Ok((pull, false));
        }
        let body = json!({
            "title": new.title, "body": new.body, "head": new.head, "base": new.base,
            "draft": new.draft, "maintainer_can_modify": true,
        });
        let call = ClientCall::once_only(Method::POST, self.repository_url(&["pulls"]), body);
        match self.send_or_find(&call, find).await {
            Ok(CallResult::Answered(answer)) => Ok((answer.decode_json()?, true)),
            Ok(CallResult::Found(pull)) => Ok((pull, true)),
            // Another process opened the pull request first.
            Err(ClientError::Refused { status: 422, what, message }) => match find().await? {
                Some(pull) => Ok((pull, false)),
                None => Err(ClientError::Refused { status: 422, what, message }),
            },
            Err(error) => Err(error),
        }
    }

    /// Merges a pull request if its head is still this commit. Without a method, GitHub creates a
    /// merge commit.
    pub async fn merge_pull(
        &self,
        number: u64,
        sha: &str,
        method: Option<MergeMethod>,
    ) -> Result<MergeResult, ClientError> {
        let mut body = json!({ "sha": name::check_sha(sha)? });
        if let Some(method) = method {
            body["merge_method"] = json!(method.as_str());
        }
        let call = ClientCall::once_only(Method::PUT, self.pull_url(number, &["merge"]), body);
        let look = || async {
            let pull = self.get_pull(number).await?;
            let merged = pull.merged && pull.head.sha == sha;
            let sha = pull.merge_commit_sha.filter(|_| merged);
            Ok(sha.map(|sha| MergeResult { sha, merged: true }))
        };
        match self.send_or_find(&call, look).await? {
            CallResult::Answered(answer) => answer.decode_json(),
            CallResult::Found(merged) => Ok(merged),
        }
    }

    /// Approves a commit of a pull request, unless `login` has already done so.
    pub async fn approve_pull(
        &self,
        number: u64,
        sha: &str,
        login: &str,
        said: &str,
    ) -> Result<PullReview, ClientError> {
        let sha = name::check_sha(sha)?;
        let find = || async {
            let there = self.list_reviews(number).await?;
            Ok(there.items.into_iter().rfind(|review| {
                let ours = review.user.as_ref().is_some_and(|user| user.has_login(login));
                ours && review.state == "APPROVED" && review.commit_id.as_deref() == Some(sha)
            }))
        };
        if let Some(review) = find().await? {
            return Ok(review);
        }
        let body = json!({ "commit_id": sha, "event": "APPROVE", "body": said });
        let call = ClientCall::once_only(Method::POST, self.pull_url(number, &["reviews"]), body);
        match self.send_or_find(&call, find).await? {
            CallResult::Answered(answer) => answer.decode_json(),
            CallResult::Found(review) => Ok(review),
        }
    }

    /// Lists the files a pull request changes.
    pub async fn list_pull_files(&self, number: u64) -> Result<PagedList<PullFile>, ClientError> {
        self.list_pages::<Vec<PullFile>>(self.pull_url(number, &["files"])).await
    }

    /// Fetches the diff of a pull request.
    pub async fn get_pull_diff(&self, number: u64) -> Result<String, ClientError> {
        let call = ClientCall { accept: DIFF, ..ClientCall::get(self.pull_url(number, &[])) };
        Ok(self.send_call(&call).await?.into_text())
    }

    /// Lists the reviews of a pull request, oldest first.
    pub async fn list_reviews(&self, number: u64) -> Result<PagedList<PullReview>, ClientError> {
        self.list_pages::<Vec<PullReview>>(self.pull_url(number, &["reviews"])).await
    }

    /// Lists the review comments on lines of a pull request.
    pub async fn list_review_comments(
        &self,
        number: u64,
    ) -> Result<PagedList<PullReviewComment>, ClientError> {
        self.list_pages::<Vec<PullReviewComment>>(self.pull_url(number, &["comments"])).await
    }

    fn pull_url(&self, number: u64, rest: &[&str]) -> Url {
        let number = number.to_string();
        let mut parts = vec!["pulls", number.as_str()];
        parts.extend(rest);
        self.repository_url(&parts)
    }
}
