//! The commits a GitHub run is based on: the branch whose configuration is used, the branch on
//! which work starts, and the head of a pull request.

use crate::event::{GitHubEventContext, PullBranches};

use repertoire_git::repo::{GitClient, GitError, GitObjectId, GitRemote};

/// The commits a run is based on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunCommits {
    /// The branch whose configuration, skills and modes are used: the default branch, or the one
    /// named by the workflow. Never the base of a pull request, since its author chooses that.
    pub home_ref: String,
    pub home: GitObjectId,
    /// The branch on which work starts, or the base of a pull request.
    pub base_ref: String,
    pub base: GitObjectId,
    /// The head of the pull request, if there is one.
    pub head: Option<GitObjectId>,
}

/// The reason the commits cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum RunCommitsError {
    #[error(transparent)]
    Git(#[from] GitError),
    /// The default branch is not known.
    #[error(
        "neither the event nor the service says which branch is the default one; pass `--base`"
    )]
    NoHome,
    /// A commit is not available.
    #[error("{what} cannot be had{why}")]
    Missing {
        what: String,
        /// The error of the fetch.
        why: String,
    },
}

/// The error text without a remote, when the commit must be in the checkout.
const NOT_HERE: &str = ": it is not in this checkout; check out with `fetch-depth: 0`";

/// Finds the commits of an event. `home` is the branch that the workflow names instead of the
/// default one. If there is a remote, it is asked for the branches: the local `main` of a checkout
/// may be anything.
///
/// # Errors
///
/// If a commit is not available.
pub async fn find_commits(
    git: &GitClient,
    context: &GitHubEventContext,
    home: Option<&str>,
    remote: Option<&GitRemote>,
) -> Result<RunCommits, RunCommitsError> {
    let usual = context.repository.default_branch.as_deref();
    let home_ref = home.or(usual).ok_or(RunCommitsError::NoHome)?.to_owned();
    let home = branch_tip(git, &home_ref, remote).await?;
    let entity = context.entity.as_ref();
    let Some((pull, number)) =
        entity.and_then(|entity| Some((entity.pull.as_ref()?, entity.number)))
    else {
        let (base_ref, base) = (home_ref.clone(), home.clone());
        return Ok(RunCommits { home_ref, home, base_ref, base, head: None });
    };
    let base_ref = pull.base_ref.clone();
    let base = if base_ref == home_ref {
        home.clone()
    } else {
        branch_tip(git, &base_ref, remote).await?
    };
    let head = Some(pull_head(git, pull, number, remote).await?);
    Ok(RunCommits { home_ref, home, base_ref, base, head })
}

impl RunCommits {
    /// Returns the commits with another branch on which work starts. The base of a pull request is
    /// not changed.
    ///
    /// # Errors
    ///
    /// If its commit is not available.
    pub async fn starting_on(
        &self,
        branch: &str,
        git: &GitClient,
        remote: Option<&GitRemote>,
    ) -> Result<RunCommits, RunCommitsError> {
        if self.head.is_some() || branch == self.base_ref {
            return Ok(self.clone());
        }
        let base = branch_tip(git, branch, remote).await?;
        Ok(RunCommits { base_ref: branch.to_owned(), base, ..self.clone() })
    }
}

/// Returns the commit of a branch on the remote; without a remote, its last known commit.
async fn branch_tip(
    git: &GitClient,
    branch: &str,
    remote: Option<&GitRemote>,
) -> Result<GitObjectId, RunCommitsError> {
    git.check_branch_name(branch).await?;
    let missing =
        |why: String| RunCommitsError::Missing { what: format!("the branch `{branch}`"), why };
    let Some(remote) = remote else {
        for name in [format!("refs/remotes/origin/{branch}"), format!("refs/heads/{branch}")] {
            if let Some(oid) = git.find_commit(&name).await? {
                return Ok(oid);
            }
        }
        return Err(missing(NOT_HERE.to_owned()));
    };
    let failed = |error: GitError| missing(format!(" ({error})"));
    let there = git.remote_tip(remote, branch).await.map_err(failed)?;
    match there {
        None => Err(missing(": the service has no such branch".to_owned())),
        Some(oid) if git.find_commit(oid.as_str()).await?.is_some() => Ok(oid),
        Some(_) => git.fetch(remote, &format!("refs/heads/{branch}")).await.map_err(failed),
    }
}

/// Returns the head of a pull request at the time of the event.
async fn pull_head(
    git: &GitClient,
    pull: &PullBranches,
    number: u64,
    remote: Option<&GitRemote>,
) -> Result<GitObjectId, RunCommitsError> {
    let missing = |why: String| {
        let what = format!("the head of pull request {number}");
        RunCommitsError::Missing { what, why }
    };
    let named = GitObjectId::parse(&pull.head_sha);
    if let Some(oid) = &named
        && let Some(oid) = git.find_commit(oid.as_str()).await?
    {
        return Ok(oid);
    }
    let Some(remote) = remote else { return Err(missing(NOT_HERE.to_owned())) };
    let fetched = git.fetch(remote, &format!("refs/pull/{number}/head")).await;
    let head = fetched.map_err(|error| missing(format!(" ({error})")))?;
    // Refuse a head that was pushed after the event: the actor has not seen it.
    if Some(&head) == named.as_ref() {
        return Ok(head);
    }
    let why = format!(": the event is about {}, and {head} is there now", pull.head_sha);
    Err(missing(why))
}
