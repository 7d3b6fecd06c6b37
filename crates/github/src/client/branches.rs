//! Calls for branches and their protection.

use super::error::ClientError;
use super::page::Listed;
use super::types::{Activity, Branch, Protection, Rule};
use super::wire::Call;
use super::{Client, name};

impl Client {
    /// Fetches a branch.
    pub async fn branch(&self, branch: &str) -> Result<Branch, ClientError> {
        self.send(&Call::get(self.at(&["branches", name::branch(branch)?]))).await?.read()
    }

    /// Fetches the protection of a branch; `None` if it has none. Most tokens are not allowed to
    /// read it.
    pub async fn protection(&self, branch: &str) -> Result<Option<Protection>, ClientError> {
        let url = self.at(&["branches", name::branch(branch)?, "protection"]);
        match self.send(&Call::get(url)).await {
            Ok(answer) => answer.read().map(Some),
            Err(ClientError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the rules of rule sets that apply to a branch. Read access is enough.
    pub async fn rules(&self, branch: &str) -> Result<Listed<Rule>, ClientError> {
        self.list::<Vec<Rule>>(self.at(&["rules", "branches", name::branch(branch)?])).await
    }

    /// Lists the pushes to a branch, with the account behind each. Deletions are left out.
    pub async fn moves_of(&self, branch: &str) -> Result<Listed<Activity>, ClientError> {
        let mut url = self.at(&["activity"]);
        let name = format!("refs/heads/{}", name::branch(branch)?);
        url.query_pairs_mut().append_pair("ref", &name);
        let mut found = self.list::<Vec<Activity>>(url).await?;
        // GitHub ignores a filter it does not know and returns everything.
        found.items.retain(|moved| moved.name == name && moved.kind != "branch_deletion");
        Ok(found)
    }

    /// Deletes a branch. Succeeds if it does not exist.
    pub async fn delete_branch(&self, branch: &str) -> Result<(), ClientError> {
        let mut parts = vec!["git", "refs", "heads"];
        parts.extend(name::branch(branch)?.split('/'));
        match self.send(&Call::delete(self.at(&parts))).await {
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
