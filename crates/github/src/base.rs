//! Selects the configuration for an agent that works on a pull request: that of the base branch.
//!
//! The author of a pull request controls every file in it, and some files instruct agents or are
//! executed automatically. So configuration, skills and modes are read from a checkout of the base
//! commit (the [`BaseCheckout`]), and the agent's own checkout starts on a commit in which all protected
//! paths are those of the base ([`overlay_base_config`]). The published commit has them as in the pull request
//! ([`remove_overlay`]): neither the agent nor this program changes them.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{EventName, GitHubEventContext};
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::discover::{DiscoveryRequest, discover_catalog};
use repertoire_skill::skill::Scope;
use repertoire_skill::trust::{TrustLock, TrustLockError};

use repertoire_checks::protected_files::is_protected;
use repertoire_git::repo::{GitClient, GitError, GitObjectId, RawFile, TreeEdit, TreeId};

mod links;

/// The reason the configuration of the base cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    #[error(transparent)]
    Git(#[from] GitError),
    /// The list of trusted skills cannot be read.
    #[error(transparent)]
    Lock(#[from] TrustLockError),
    /// The agent created a file where the pull request has a protected one.
    #[error(
        "`{path}` stands where the pull request has files that no agent may touch; nothing is published"
    )]
    InTheWay {
        /// The file the agent created.
        path: String,
    },
}

/// A checkout of the base commit. Only [`checkout_base`] creates one, so no other folder can be mistaken
/// for it.
#[derive(Clone, Debug)]
pub struct BaseCheckout {
    git: GitClient,
    dir: Utf8PathBuf,
    oid: GitObjectId,
}

/// A commit in which the protected paths are those of the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseOverlay {
    pub commit: GitObjectId,
    /// The protected paths that differ between pull request and base, in order.
    pub replaced: Vec<String>,
}

/// Checks out the base commit into a folder that does not exist yet.
pub async fn checkout_base(
    git: &GitClient,
    base: &GitObjectId,
    dir: &Utf8Path,
) -> Result<BaseCheckout, BaseError> {
    git.add_worktree(&["--detach"], dir, base.as_str()).await?;
    Ok(BaseCheckout { git: git.clone(), dir: dir.to_owned(), oid: base.clone() })
}

impl BaseCheckout {
    /// The workspace that configuration is read from.
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    pub fn oid(&self) -> &GitObjectId {
        &self.oid
    }

    /// Removes the checkout.
    pub async fn remove_checkout(self) -> Result<(), BaseError> {
        let above = self.dir.parent().unwrap_or(&self.dir);
        self.git
            .run_checked_reaching(&["worktree", "remove", "--force", self.dir.as_str()], &[above])
            .await?;
        Ok(())
    }

    /// Returns the request with trust in the skills of this checkout.
    pub fn trust_skills(&self, request: DiscoveryRequest) -> Result<DiscoveryRequest, BaseError> {
        trust_skills_of(&self.dir, request)
    }
}

/// Returns the request with trust in the skills of a folder, which must be a checkout of the base
/// branch: an account that can write there can also write the workflow that runs this program. The
/// trust in other skills is unchanged.
pub fn trust_skills_of(
    dir: &Utf8Path,
    request: DiscoveryRequest,
) -> Result<DiscoveryRequest, BaseError> {
    let lock = match &request.lock_path {
        Some(path) => TrustLock::read(path)?,
        None => request.lock.clone(),
    };
    let mut request = DiscoveryRequest { lock, lock_path: None, ..request };
    let found = discover_catalog(&request);
    for skill in project_skills(&found).filter(|skill| skill.origin.file.starts_with(dir)) {
        request.lock.pin_skill(skill, &request.limits.resources);
    }
    Ok(request)
}

fn project_skills(catalog: &Catalog) -> impl Iterator<Item = &repertoire_skill::skill::Skill> {
    let shadowed = catalog.shadowed().iter().map(|shadowed| &shadowed.entry);
    let all = catalog.entries().iter().chain(shadowed);
    all.map(|entry| &*entry.skill).filter(|skill| skill.origin.scope == Scope::Project)
}

/// Returns the reason a pull request from a fork is skipped; `None` if it is not. Workflows for its
/// events have no secrets, so there is no model to call and no way to answer. That is not a
/// failure.
pub fn fork_skip_reason(context: &GitHubEventContext) -> Option<String> {
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

/// Creates a commit on top of the pull request in which all protected paths are those of the base.
/// Symbolic links of the base whose target the pull request may have changed are replaced by their
/// target.
pub async fn overlay_base_config(
    git: &GitClient,
    head: &GitObjectId,
    base: &GitObjectId,
) -> Result<BaseOverlay, BaseError> {
    let (head_tree, base_tree) = (git.tree_of(head).await?, git.tree_of(base).await?);
    let theirs = git.raw_files(&head_tree).await?;
    let ours = links::resolve_links(git, git.raw_files(&base_tree).await?).await?;
    let (guarded, open) = split_protected(theirs);
    // If the pull request has a file in place of a folder of the base, nothing in that folder can
    // take effect.
    let open = paths_of(&open);
    let ours: Vec<RawFile> =
        ours.into_iter().filter(|file| blocking_folder(&open, &file.path).is_none()).collect();
    let replaced = differing_paths(&guarded, &ours);
    if replaced.is_empty() {
        return Ok(BaseOverlay { commit: head.clone(), replaced });
    }
    let tree = replace_files(git, &head_tree, &guarded, ours).await?;
    let message = "Agent configuration of the base branch\n\nFor the agent's checkout only; this commit is not published.";
    let commit = git.commit_tree(&tree, &[head], message).await?;
    Ok(BaseOverlay { commit, replaced })
}

/// Creates a commit on top of the pull request with the agent's work, and all protected paths as in
/// the pull request. Returns the pull request's own commit if nothing else was changed.
pub async fn remove_overlay(
    git: &GitClient,
    work: &GitObjectId,
    head: &GitObjectId,
    message: &str,
) -> Result<GitObjectId, BaseError> {
    let (work_tree, head_tree) = (git.tree_of(work).await?, git.tree_of(head).await?);
    let (guarded, open) = split_protected(git.raw_files(&work_tree).await?);
    let (theirs, _) = split_protected(git.raw_files(&head_tree).await?);
    let open = paths_of(&open);
    if let Some(path) = theirs.iter().find_map(|file| blocking_folder(&open, &file.path)) {
        return Err(BaseError::InTheWay { path: display_path(path) });
    }
    let tree = replace_files(git, &work_tree, &guarded, theirs).await?;
    if tree == head_tree {
        return Ok(head.clone());
    }
    Ok(git.commit_tree(&tree, &[head], message).await?)
}

/// Removes some files from a tree and adds others.
async fn replace_files(
    git: &GitClient,
    tree: &TreeId,
    out: &[RawFile],
    put: Vec<RawFile>,
) -> Result<TreeId, GitError> {
    let out = out.iter().map(|file| TreeEdit::Remove(file.path.clone()));
    let grafts: Vec<TreeEdit> = out.chain(put.into_iter().map(TreeEdit::Put)).collect();
    git.edit_tree(tree, &grafts).await
}

/// Splits files into protected ones and others.
fn split_protected(files: Vec<RawFile>) -> (Vec<RawFile>, Vec<RawFile>) {
    files.into_iter().partition(|file| is_guarded(&file.path))
}

/// Returns true if a path or one of its parent folders is protected: a folder `AGENTS.md` counts
/// like the file.
fn is_guarded(path: &[u8]) -> bool {
    let path = display_path(path);
    Utf8Path::new(&path).ancestors().any(|part| part != "" && is_protected(part.as_str()))
}

/// Returns the first parent folder of a path in whose place there is a file.
fn blocking_folder<'a>(open: &BTreeSet<&[u8]>, path: &'a [u8]) -> Option<&'a [u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let mut folders = slashes.map(|(at, _)| &path[..at]);
    folders.find(|folder| open.contains(folder))
}

fn paths_of(files: &[RawFile]) -> BTreeSet<&[u8]> {
    files.iter().map(|file| file.path.as_slice()).collect()
}

fn differing_paths(theirs: &[RawFile], ours: &[RawFile]) -> Vec<String> {
    let (theirs, ours) = (by_path(theirs), by_path(ours));
    let mut paths: Vec<&Vec<u8>> = theirs.keys().chain(ours.keys()).collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| theirs.get(*path) != ours.get(*path));
    paths.into_iter().map(|path| display_path(path)).collect()
}

fn by_path(files: &[RawFile]) -> BTreeMap<Vec<u8>, RawFile> {
    files.iter().map(|file| (file.path.clone(), file.clone())).collect()
}

fn display_path(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
