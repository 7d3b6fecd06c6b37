//! A git worktree for each run, owned by the worker that holds the run's lease.
//!
//! A worktree is created once and adopted again by later workers: damage from a crash is repaired
//! and reported. Uncommitted work is never lost in a repair: it is committed to a rescue branch
//! first. While a run is unfinished, its worktree is locked, so that `git worktree prune` leaves it
//! alone.
//!
//! The worktree's git folder records the run that owns it, with a fencing token that only grows: a
//! worker whose lease has passed to another one is refused. The run is also recorded for the
//! branch, in the repository's configuration, in case the git folder is lost.

use std::fs::{File, TryLockError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use crate::limits::{WORKTREE_LOCK_POLL, WORKTREE_LOCK_WAIT, WORKTREE_NAME_CHARS_MAX};
use crate::repo::{GitClient, GitError, GitObjectId};
use repertoire_text::fs::make_private_dir;

mod copy;
mod create;
mod error;
mod finish;
mod head;
mod prune;
mod registry;
mod repair;
mod rescue;
mod stale_locks;

pub use self::copy::{SkippedCopy, WorktreeCopyResult};
pub use self::error::WorktreeError;
pub use self::finish::{BranchDelivery, BranchDeliveryResult};
pub use self::prune::{
    KeptWorktree, RemovedWorktree, WorktreeKeepReason, WorktreePruneResult, WorktreeRemovalMode,
};
pub use self::registry::WorktreeListing;

/// The worker that holds the lease of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeOwner {
    pub worker: String,
    /// The fencing token of the lease. Later leases have larger tokens.
    pub token: u64,
}

/// A request for the worktree of a run.
#[derive(Clone, Debug)]
pub struct WorktreeRequest<'a> {
    pub run: &'a str,
    /// The run's name, which becomes part of the folder's and the branch's name.
    pub name: &'a str,
    /// The branch to start from; `None` for the one that is checked out.
    pub base: Option<String>,
    /// The prefix of the run's branch.
    pub branch_prefix: &'a str,
    pub owner: WorktreeOwner,
    /// Requirement on the user's own checkout. Only applies to new worktrees.
    pub checkout: CheckoutRequirement,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckoutRequirement {
    /// No uncommitted changes, since the worktree would lack them.
    #[default]
    Clean,
    Any,
}

impl<'a> WorktreeRequest<'a> {
    /// A request for a worktree that starts from the current branch, on a branch beneath `rep/`.
    pub fn new(run: &'a str, name: &'a str, owner: WorktreeOwner) -> Self {
        WorktreeRequest {
            run,
            name,
            base: None,
            branch_prefix: "rep/",
            owner,
            checkout: CheckoutRequirement::default(),
        }
    }
}

/// A worktree that a worker has prepared.
#[derive(Clone, Debug)]
pub struct PreparedWorktree {
    pub run: String,
    pub owner: WorktreeOwner,
    pub dir: Utf8PathBuf,
    /// The worktree's git folder, outside of `dir`.
    pub git_dir: Utf8PathBuf,
    /// The git folder of the repository.
    pub common_dir: Utf8PathBuf,
    /// Git, running in the worktree.
    pub git: GitClient,
    pub branch: String,
    /// The branch that the work started from.
    pub base_branch: String,
    /// The commit that the work started from.
    pub base_oid: GitObjectId,
    pub how: WorktreePreparation,
    /// True once [`RunWorktrees::mark_set_up`] has recorded that the worktree is set up.
    pub set_up: bool,
}

/// The state in which a worktree was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorktreePreparation {
    Created,
    /// An existing worktree that was intact.
    Adopted,
    /// A worktree that had to be repaired or recreated. Contains a sentence for each repair.
    Repaired(Vec<String>),
}

/// The worktrees of a repository that belong to runs.
#[derive(Clone, Debug)]
pub struct RunWorktrees {
    repo: GitClient,
    root: Utf8PathBuf,
}

impl RunWorktrees {
    /// The worktrees of `repo` beneath the folder `root`.
    pub fn new(repo: GitClient, root: impl Into<Utf8PathBuf>) -> Self {
        RunWorktrees { repo, root: root.into() }
    }

    /// Creates or adopts the worktree of a run. Completes even if the caller drops the future: a
    /// git process stopped halfway would leave its locks behind.
    pub async fn prepare_worktree(
        &self,
        wanted: &WorktreeRequest<'_>,
    ) -> Result<PreparedWorktree, WorktreeError> {
        let (this, wanted) = (self.clone(), wanted.clone());
        let texts = [wanted.run, wanted.name, wanted.branch_prefix].map(str::to_owned);
        let (base, owner, checkout) = (wanted.base, wanted.owner, wanted.checkout);
        let task = tokio::spawn(async move {
            let [run, name, branch_prefix] = texts.each_ref().map(String::as_str);
            let wanted = WorktreeRequest { run, name, branch_prefix, base, owner, checkout };
            this.prepare_uncancelled(&wanted).await
        });
        task.await.map_err(|error| self.join_error(error))?
    }

    fn join_error(&self, error: tokio::task::JoinError) -> WorktreeError {
        WorktreeError::from_io(&self.root, std::io::Error::other(error))
    }

    async fn prepare_uncancelled(
        &self,
        wanted: &WorktreeRequest<'_>,
    ) -> Result<PreparedWorktree, WorktreeError> {
        let names = WorktreeNames::for_request(wanted)?;
        self.repo.check_branch_name(&names.branch).await?;
        let common = self.repo.common_dir().await?;
        let _lock = lock_worktrees(&common).await?;
        match registry::find_worktree(&common, wanted.run)? {
            Some(entry) => self.adopt_worktree(entry, wanted, &names, &common).await,
            None => self.create_worktree(wanted, &names, &common).await,
        }
    }

    /// Creates the folder of the worktrees if needed, and resolves symbolic links, as git does in
    /// the paths it prints.
    fn create_root(&self) -> Result<Utf8PathBuf, WorktreeError> {
        make_private_dir(&self.root)
            .map_err(|source| WorktreeError::from_io(&self.root, source))?;
        self.root.canonicalize_utf8().map_err(|source| WorktreeError::from_io(&self.root, source))
    }
}

/// The names of a worktree's folder and branches.
#[derive(Clone, Debug)]
struct WorktreeNames {
    folder: String,
    branch: String,
    rescue: String,
}

impl WorktreeNames {
    fn for_request(wanted: &WorktreeRequest<'_>) -> Result<WorktreeNames, WorktreeError> {
        let run = wanted.run;
        let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !run.chars().all(fine) || !run.chars().any(|c| c.is_ascii_alphanumeric()) {
            return Err(WorktreeError::BadRun { run: run.to_owned() });
        }
        // A run id starts with its time, so its end distinguishes runs better.
        let short: Vec<char> = run.chars().filter(char::is_ascii_alphanumeric).collect();
        let short: String = short[short.len().saturating_sub(8)..].iter().collect();
        let folder = format!("{}-{}", slugify(wanted.name), short.to_ascii_lowercase());
        let branch = format!("{}{folder}", wanted.branch_prefix);
        let rescue = format!("{}rescue/{folder}", wanted.branch_prefix);
        Ok(WorktreeNames { folder, branch, rescue })
    }
}

impl WorktreeNames {
    /// The names of an existing worktree.
    fn of_worktree(worktree: &PreparedWorktree) -> WorktreeNames {
        let (branch, folder) = (&worktree.branch, worktree.dir.file_name().unwrap_or_default());
        let prefix = branch.strip_suffix(folder).unwrap_or_default();
        let rescue = format!("{prefix}rescue/{folder}");
        WorktreeNames { folder: folder.to_owned(), branch: branch.clone(), rescue }
    }
}

/// Converts a name to one that is valid in paths and branches everywhere.
pub fn slugify(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= WORKTREE_NAME_CHARS_MAX {
            break;
        }
    }
    match slug.trim_end_matches('-') {
        "" => "run".to_owned(),
        slug => slug.to_owned(),
    }
}

/// The reason of git's lock on a worktree. Also identifies the run if its record is missing.
fn lock_reason(run: &str) -> String {
    format!("repertoire run {run}")
}

/// Locks the worktrees of the repository against changes by other processes.
async fn lock_worktrees(common: &Utf8Path) -> Result<File, WorktreeError> {
    let path = common.join("repertoire-worktrees.lock");
    let io = |source| WorktreeError::from_io(&path, source);
    let file = File::options().create(true).append(true).open(&path).map_err(io)?;
    let mut waited = Duration::ZERO;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if waited < WORKTREE_LOCK_WAIT => {
                tokio::time::sleep(WORKTREE_LOCK_POLL).await;
                waited += WORKTREE_LOCK_POLL;
            }
            Err(TryLockError::WouldBlock) => return Err(WorktreeError::Waited { path }),
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
    }
}

/// Locks a worktree, so that git does not prune it.
async fn lock_worktree(repo: &GitClient, dir: &Utf8Path, run: &str) -> Result<(), GitError> {
    let reason = lock_reason(run);
    repo.ok(&["worktree", "lock", "--reason", &reason, dir.as_str()]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fine_for_folders_and_branches() {
        for (name, expected) in [
            ("Add a Parser!", "add-a-parser"),
            ("../../etc", "etc"),
            ("-rf", "rf"),
            ("ünï", "n"),
            ("", "run"),
            ("💥", "run"),
        ] {
            assert_eq!(slugify(name), expected);
        }
        assert!(slugify(&"x ".repeat(500)).len() <= WORKTREE_NAME_CHARS_MAX);
    }

    #[test]
    fn runs_of_the_same_minute_have_branches_of_their_own() {
        let owner = WorktreeOwner { worker: "w".into(), token: 1 };
        let names =
            |run: &str| WorktreeNames::for_request(&WorktreeRequest::new(run, "x", owner.clone()));
        let one = names("0199e5b2-0000-7000-8000-00000000000a").unwrap();
        let other = names("0199e5b2-0000-7000-8000-00000000000b").unwrap();
        assert_ne!(one.branch, other.branch);
        assert_eq!(one.branch, "rep/x-0000000a");
        for run in ["", "a/b", "..", "a b", "-"] {
            assert!(names(run).is_err(), "{run}");
        }
    }
}
