//! Calls for the checks of a commit: check runs and statuses.

use super::error::ClientError;
use super::page::{CheckRuns, CombinedStatus, PagedList};
use super::types::{CheckRun, CommitStatus};
use super::{GitHubClient, name};

impl GitHubClient {
    /// Lists the check runs of a commit, the latest of each name and app.
    pub async fn list_check_runs(&self, sha: &str) -> Result<PagedList<CheckRun>, ClientError> {
        let mut url = self.repository_url(&["commits", name::check_sha(sha)?, "check-runs"]);
        url.query_pairs_mut().append_pair("filter", "latest");
        self.list_pages::<CheckRuns>(url).await
    }

    /// Lists the statuses of a commit, the latest of each name.
    pub async fn list_statuses(&self, sha: &str) -> Result<PagedList<CommitStatus>, ClientError> {
        self.list_pages::<CombinedStatus>(self.repository_url(&[
            "commits",
            name::check_sha(sha)?,
            "status",
        ]))
        .await
    }
}
