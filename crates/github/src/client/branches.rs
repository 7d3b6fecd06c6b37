//! Calls for branches and their protection.

use super::error::ClientError;
use super::page::PagedList;
use super::types::{BranchActivity, BranchProtection, BranchRule, GitHubBranch};
use super::wire::ClientCall;
use super::{GitHubClient, name};

impl GitHubClient {
    /// Fetches a branch.
    pub async fn get_branch(&self, branch: &str) -> Result<GitHubBranch, ClientError> {
        self.send_call(&ClientCall::get(
            self.repository_url(&["branches", name::check_branch(branch)?]),
        ))
        .await?
        .decode_json()
    }

    /// Fetches the protection of a branch; `None` if it has none. Most tokens are not allowed to
    /// read it.
    pub async fn get_protection(
        &self,
        branch: &str,
    ) -> Result<Option<BranchProtection>, ClientError> {
        let url = self.repository_url(&["branches", name::check_branch(branch)?, "protection"]);
        match self.send_call(&ClientCall::get(url)).await {
            Ok(answer) => answer.decode_json().map(Some),
            Err(ClientError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the rules of rule sets that apply to a branch. Read access is enough.
    pub async fn list_branch_rules(
        &self,
        branch: &str,
    ) -> Result<PagedList<BranchRule>, ClientError> {
        self.list_pages::<Vec<BranchRule>>(self.repository_url(&[
            "rules",
            "branches",
            name::check_branch(branch)?,
        ]))
        .await
    }

    /// Lists the pushes to a branch, with the account behind each. Deletions are left out.
    pub async fn list_branch_activity(
        &self,
        branch: &str,
    ) -> Result<PagedList<BranchActivity>, ClientError> {
        let mut url = self.repository_url(&["activity"]);
        let name = format!("refs/heads/{}", name::check_branch(branch)?);
        url.query_pairs_mut().append_pair("ref", &name);
        let mut found = self.list_pages::<Vec<BranchActivity>>(url).await?;
        // GitHub ignores a filter it does not know and returns everything.
        found.items.retain(|moved| moved.name == name && moved.kind != "branch_deletion");
        Ok(found)
    }

    /// Deletes a branch. Succeeds if it does not exist.
    pub async fn delete_branch(&self, branch: &str) -> Result<(), ClientError> {
        let mut parts = vec!["git", "refs", "heads"];
        parts.extend(name::check_branch(branch)?.split('/'));
        match self.send_call(&ClientCall::delete(self.repository_url(&parts))).await {
            Err(ClientError::NotFound { .. }) | Ok(_) => Ok(()),
            Err(ClientError::Refused { status: 422, message, .. })
                if message.contains("does not exist") =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
