//! The commits that a run on GitHub stands on: the base branch, whose configuration counts, and the head of a pull request.

use repertoire_github::event::Context;

use crate::git::{Git, GitError, Oid, Remote};

/// The commits that a run stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// The branch that work begins on, or that a pull request shall go into.
    pub base_ref: String,
    /// Its commit. Configuration, skills and modes are read there.
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
    /// Nobody says which branch is the base.
    #[error(
        "neither the event nor `base_branch` says which branch is the base, and none is checked out"
    )]
    NoBase,
    /// A commit is not here.
    #[error("{what} is not in this checkout{why}; check out with `fetch-depth: 0`")]
    Missing {
        /// Which.
        what: String,
        /// What git said when it was fetched.
        why: String,
    },
}

/// The commits of an event. What is not here is fetched.
///
/// # Errors
///
/// When a commit cannot be had.
pub async fn find(
    git: &Git,
    context: &Context,
    base_branch: Option<&str>,
    remote: Option<&Remote>,
) -> Result<Ground, GroundError> {
    let pull = context.entity.as_ref().and_then(|entity| entity.pull.as_ref());
    let base_ref = match (pull, base_branch, &context.repository.default_branch) {
        (Some(pull), _, _) => pull.base_ref.clone(),
        (None, Some(named), _) => named.to_owned(),
        (None, None, Some(usual)) => usual.clone(),
        (None, None, None) => git.branch().await?.ok_or(GroundError::NoBase)?,
    };
    git.check_branch_name(&base_ref).await?;
    let names = [format!("refs/remotes/origin/{base_ref}"), format!("refs/heads/{base_ref}")];
    let what = format!("the base branch `{base_ref}`");
    let base =
        here_or_fetched(git, &names, &format!("refs/heads/{base_ref}"), remote, &what).await?;
    let head = match (pull, context.entity.as_ref()) {
        (Some(pull), Some(entity)) => {
            let what = format!("the head of pull request {}", entity.number);
            let names = Oid::parse(&pull.head_sha).map(|oid| oid.as_str().to_owned());
            let names: Vec<String> = names.into_iter().collect();
            let name = format!("refs/pull/{}/head", entity.number);
            let head = here_or_fetched(git, &names, &name, remote, &what).await?;
            // What was pushed since somebody asked is not what they saw.
            if head.as_str() != pull.head_sha {
                let why =
                    format!(": the event is about {}, and {head} is there now", pull.head_sha);
                return Err(GroundError::Missing { what, why });
            }
            Some(head)
        }
        _ => None,
    };
    Ok(Ground { base_ref, base, head })
}

async fn here_or_fetched(
    git: &Git,
    names: &[String],
    name: &str,
    remote: Option<&Remote>,
    what: &str,
) -> Result<Oid, GroundError> {
    for name in names {
        if let Some(oid) = git.find(name).await? {
            return Ok(oid);
        }
    }
    let missing = |why: String| GroundError::Missing { what: what.to_owned(), why };
    match remote {
        None => Err(missing(String::new())),
        Some(remote) => {
            git.fetch(remote, name).await.map_err(|error| missing(format!(" ({error})")))
        }
    }
}
