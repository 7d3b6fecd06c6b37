//! The commits that a run on GitHub stands on: the branch whose configuration counts, the one that work begins on, and the head
//! of a pull request.

use crate::event::{Context, Pull};

use repertoire_git::repo::{Git, GitError, Oid, Remote};

/// The commits that a run stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// The branch whose configuration, skills and modes count: the repository's default branch, or the one that the workflow
    /// names. Never that of a pull request, which whoever opens it chooses.
    pub home_ref: String,
    /// Its commit.
    pub home: Oid,
    /// The branch that work begins on, or that a pull request shall go into.
    pub base_ref: String,
    /// Its commit.
    pub base: Oid,
    /// The head of the pull request.
    pub head: Option<Oid>,
}

/// Why there is no ground.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Nobody says which branch is the default one.
    #[error(
        "neither the event nor the service says which branch is the default one; pass `--base`"
    )]
    NoHome,
    /// A commit is not here.
    #[error("{what} cannot be had{why}")]
    Missing {
        /// Which.
        what: String,
        /// What git said when it was fetched.
        why: String,
    },
}

/// Where nobody can be asked, the checkout has to have it.
const NOT_HERE: &str = ": it is not in this checkout; check out with `fetch-depth: 0`";

/// The commits of an event. `home` is the branch that the workflow names in place of the default one. The service is asked where
/// branches are, if it can be: what a checkout calls `main` may be anybody's.
///
/// # Errors
///
/// When a commit cannot be had.
pub async fn find(
    git: &Git,
    context: &Context,
    home: Option<&str>,
    remote: Option<&Remote>,
) -> Result<Ground, GroundError> {
    let usual = context.repository.default_branch.as_deref();
    let home_ref = home.or(usual).ok_or(GroundError::NoHome)?.to_owned();
    let home = tip(git, &home_ref, remote).await?;
    let entity = context.entity.as_ref();
    let Some((pull, number)) =
        entity.and_then(|entity| Some((entity.pull.as_ref()?, entity.number)))
    else {
        let (base_ref, base) = (home_ref.clone(), home.clone());
        return Ok(Ground { home_ref, home, base_ref, base, head: None });
    };
    let base_ref = pull.base_ref.clone();
    let base = match base_ref == home_ref {
        true => home.clone(),
        false => tip(git, &base_ref, remote).await?,
    };
    let head = Some(head_of(git, pull, number, remote).await?);
    Ok(Ground { home_ref, home, base_ref, base, head })
}

impl Ground {
    /// The same with another branch that work begins on. A pull request says itself where it shall go.
    ///
    /// # Errors
    ///
    /// When its commit cannot be had.
    pub async fn beginning_on(
        &self,
        branch: &str,
        git: &Git,
        remote: Option<&Remote>,
    ) -> Result<Ground, GroundError> {
        if self.head.is_some() || branch == self.base_ref {
            return Ok(self.clone());
        }
        let base = tip(git, branch, remote).await?;
        Ok(Ground { base_ref: branch.to_owned(), base, ..self.clone() })
    }
}

/// The commit of a branch: where the service has it. Without one, where it was seen there last.
async fn tip(git: &Git, branch: &str, remote: Option<&Remote>) -> Result<Oid, GroundError> {
    git.check_branch_name(branch).await?;
    let missing =
        |why: String| GroundError::Missing { what: format!("the branch `{branch}`"), why };
    let Some(remote) = remote else {
        for name in [format!("refs/remotes/origin/{branch}"), format!("refs/heads/{branch}")] {
            if let Some(oid) = git.find(&name).await? {
                return Ok(oid);
            }
        }
        return Err(missing(NOT_HERE.to_owned()));
    };
    let failed = |error: GitError| missing(format!(" ({error})"));
    let there = git.remote_tip(remote, branch).await.map_err(failed)?;
    match there {
        None => Err(missing(": the service has no such branch".to_owned())),
        Some(oid) if git.find(oid.as_str()).await?.is_some() => Ok(oid),
        Some(_) => git.fetch(remote, &format!("refs/heads/{branch}")).await.map_err(failed),
    }
}

/// The head of a pull request, as it was when somebody asked.
async fn head_of(
    git: &Git,
    pull: &Pull,
    number: u64,
    remote: Option<&Remote>,
) -> Result<Oid, GroundError> {
    let missing = |why: String| {
        let what = format!("the head of pull request {number}");
        GroundError::Missing { what, why }
    };
    let named = Oid::parse(&pull.head_sha);
    if let Some(oid) = &named
        && let Some(oid) = git.find(oid.as_str()).await?
    {
        return Ok(oid);
    }
    let Some(remote) = remote else { return Err(missing(NOT_HERE.to_owned())) };
    let fetched = git.fetch(remote, &format!("refs/pull/{number}/head")).await;
    let head = fetched.map_err(|error| missing(format!(" ({error})")))?;
    // What was pushed since somebody asked is not what they saw.
    match Some(&head) == named.as_ref() {
        true => Ok(head),
        false => {
            let why = format!(": the event is about {}, and {head} is there now", pull.head_sha);
            Err(missing(why))
        }
    }
}
