//! Calls for the checks of a commit: check runs and statuses.

use super::error::ClientError;
use super::page::{CheckRuns, CombinedStatus, Listed};
use super::types::{CheckRun, CommitStatus};
use super::{Client, name};

impl Client {
    /// Lists the check runs of a commit, the latest of each name and app.
    pub async fn check_runs(&self, sha: &str) -> Result<Listed<CheckRun>, ClientError> {
        let mut url = self.at(&["commits", name::sha(sha)?, "check-runs"]);
        url.query_pairs_mut().append_pair("filter", "latest");
        self.list::<CheckRuns>(url).await
    }

    /// Lists the statuses of a commit, the latest of each name.
    pub async fn statuses(&self, sha: &str) -> Result<Listed<CommitStatus>, ClientError> {
        self.list::<CombinedStatus>(self.at(&["commits", name::sha(sha)?, "status"])).await
    }
}
