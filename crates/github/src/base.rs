//! Whose configuration an agent works with on a pull request: that of the branch that the change shall go into.
//!
//! Whoever opens a pull request writes every file of it, and some files give orders to agents or run by themselves. So
//! configuration, skills and modes are read from a checkout of the base commit (the [`House`]), and the agent's own
//! checkout begins on a commit in which all protected paths are those of the base ([`overlay`]). What is published in the
//! end has them as the pull request has them ([`without_overlay`]): neither the agent nor this program changes them.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use crate::event::{Context, EventName};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::discover::{Request, discover};
use repertoire_skill::skill::Scope;
use repertoire_skill::trust::{Lock, LockError};

use repertoire_checks::protected_files::is_protected;
use repertoire_git::repo::{Git, GitError, Graft, Oid, RawFile, TreeId};

mod links;

/// Why the configuration of the base could not be used.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// git could not do it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// What is trusted cannot be read.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Something was made where the pull request has a protected file.
    #[error(
        "`{path}` stands where the pull request has files that no agent may touch; nothing is published"
    )]
    InTheWay {
        /// What was made.
        path: String,
    },
}

/// A checkout of the base commit. Only [`house`] makes one, so that nothing else is taken for it.
#[derive(Clone, Debug)]
pub struct House {
    git: Git,
    dir: Utf8PathBuf,
    oid: Oid,
}

/// A commit in which the protected paths are those of the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlay {
    /// The commit.
    pub commit: Oid,
    /// Protected paths that the pull request has otherwise, or has and the base has not; in order.
    pub replaced: Vec<String>,
}

/// Checks the base commit out into a folder that does not exist yet.
pub async fn house(git: &Git, base: &Oid, dir: &Utf8Path) -> Result<House, BaseError> {
    git.add_worktree(&["--detach"], dir, base.as_str()).await?;
    Ok(House { git: git.clone(), dir: dir.to_owned(), oid: base.clone() })
}

impl House {
    /// Where it is: the workspace that configuration is read from.
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// Its commit.
    pub fn oid(&self) -> &Oid {
        &self.oid
    }

    /// Takes it away.
    pub async fn leave(self) -> Result<(), BaseError> {
        let above = self.dir.parent().unwrap_or(&self.dir);
        self.git
            .ok_reaching(&["worktree", "remove", "--force", self.dir.as_str()], &[above])
            .await?;
        Ok(())
    }

    /// The request with trust in the skills of this checkout.
    pub fn vouched(&self, request: Request) -> Result<Request, BaseError> {
        vouched(&self.dir, request)
    }
}

/// The request with trust in the skills of a folder, which must be a checkout of the base branch: whoever can write there can
/// write the workflow that runs this program. Skills of elsewhere are trusted as before.
pub fn vouched(dir: &Utf8Path, request: Request) -> Result<Request, BaseError> {
    let lock = match &request.lock_path {
        Some(path) => Lock::read(path)?,
        None => request.lock.clone(),
    };
    let mut request = Request { lock, lock_path: None, ..request };
    let found = discover(&request);
    for skill in project_skills(&found).filter(|skill| skill.origin.file.starts_with(dir)) {
        request.lock.pin(skill, &request.limits.resources);
    }
    Ok(request)
}

fn project_skills(catalog: &Catalog) -> impl Iterator<Item = &repertoire_skill::skill::Skill> {
    let shadowed = catalog.shadowed().iter().map(|shadowed| &shadowed.entry);
    let all = catalog.entries().iter().chain(shadowed);
    all.map(|entry| &*entry.skill).filter(|skill| skill.origin.scope == Scope::Project)
}

/// Why a pull request from elsewhere is left alone; `None` if it is not. Workflows of its own events have no secrets, so there
/// is no model to ask and nothing can be answered: that is no failure.
pub fn left_alone(context: &Context) -> Option<String> {
    let entity = context.entity.as_ref().filter(|entity| entity.is_pull)?;
    let is_its_own = matches!(
        context.event,
        EventName::PullRequest
            | EventName::PullRequestTarget
            | EventName::PullRequestReview
            | EventName::PullRequestReviewComment
    );
    (is_its_own && context.is_fork() == Some(true)).then(|| {
        format!(
            "pull request {} comes from another repository, and such runs have no secrets; nothing was done",
            entity.number
        )
    })
}

/// A commit on top of the pull request's in which all protected paths are those of the base. Links of the base that lead to
/// something that the pull request may have changed become what they led to.
pub async fn overlay(git: &Git, head: &Oid, base: &Oid) -> Result<Overlay, BaseError> {
    let (head_tree, base_tree) = (git.tree_of(head).await?, git.tree_of(base).await?);
    let theirs = git.raw_files(&head_tree).await?;
    let ours = links::settled(git, git.raw_files(&base_tree).await?).await?;
    let (guarded, open) = split(theirs);
    // A folder of the base that is a file in the pull request: there is nothing in it that could be configured.
    let open = paths_of(&open);
    let ours: Vec<RawFile> =
        ours.into_iter().filter(|file| in_the_way(&open, &file.path).is_none()).collect();
    let replaced = differing(&guarded, &ours);
    if replaced.is_empty() {
        return Ok(Overlay { commit: head.clone(), replaced });
    }
    let tree = regrafted(git, &head_tree, &guarded, ours).await?;
    let message = "Agent configuration of the base branch\n\nFor the agent's checkout only; this commit is not published.";
    let commit = git.commit_tree(&tree, &[head], message).await?;
    Ok(Overlay { commit, replaced })
}

/// The work as a commit on top of the pull request's, with all protected paths as the pull request has them. It is the pull
/// request's own commit if nothing else was changed.
pub async fn without_overlay(
    git: &Git,
    work: &Oid,
    head: &Oid,
    message: &str,
) -> Result<Oid, BaseError> {
    let (work_tree, head_tree) = (git.tree_of(work).await?, git.tree_of(head).await?);
    let (guarded, open) = split(git.raw_files(&work_tree).await?);
    let (theirs, _) = split(git.raw_files(&head_tree).await?);
    let open = paths_of(&open);
    if let Some(path) = theirs.iter().find_map(|file| in_the_way(&open, &file.path)) {
        return Err(BaseError::InTheWay { path: shown(path) });
    }
    let tree = regrafted(git, &work_tree, &guarded, theirs).await?;
    match tree == head_tree {
        true => Ok(head.clone()),
        false => Ok(git.commit_tree(&tree, &[head], message).await?),
    }
}

/// Takes some files out of a tree and puts others in.
async fn regrafted(
    git: &Git,
    tree: &TreeId,
    out: &[RawFile],
    put: Vec<RawFile>,
) -> Result<TreeId, GitError> {
    let out = out.iter().map(|file| Graft::Remove(file.path.clone()));
    let grafts: Vec<Graft> = out.chain(put.into_iter().map(Graft::Put)).collect();
    git.grafted(tree, &grafts).await
}

/// Files that are protected, and the others.
fn split(files: Vec<RawFile>) -> (Vec<RawFile>, Vec<RawFile>) {
    files.into_iter().partition(|file| is_guarded(&file.path))
}

/// Whether a path or a folder that it is in is protected: a folder `AGENTS.md` stands where the file would.
fn is_guarded(path: &[u8]) -> bool {
    let path = shown(path);
    Utf8Path::new(&path).ancestors().any(|part| part != "" && is_protected(part.as_str()))
}

/// The first of these files that stands where a folder of one of these paths would.
fn in_the_way<'a>(open: &BTreeSet<&[u8]>, path: &'a [u8]) -> Option<&'a [u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let mut folders = slashes.map(|(at, _)| &path[..at]);
    folders.find(|folder| open.contains(folder))
}

fn paths_of(files: &[RawFile]) -> BTreeSet<&[u8]> {
    files.iter().map(|file| file.path.as_slice()).collect()
}

fn differing(theirs: &[RawFile], ours: &[RawFile]) -> Vec<String> {
    let by_path = |files: &[RawFile]| -> BTreeMap<Vec<u8>, RawFile> {
        files.iter().map(|file| (file.path.clone(), file.clone())).collect()
    };
    let (theirs, ours) = (by_path(theirs), by_path(ours));
    let mut paths: Vec<&Vec<u8>> = theirs.keys().chain(ours.keys()).collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| theirs.get(*path) != ours.get(*path));
    paths.into_iter().map(|path| shown(path)).collect()
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
