//! A worktree for each run, owned by whoever holds the run's lease.
//!
//! A worktree is made once, and taken up again by whoever comes later: what a crash left is repaired, and told. Nothing
//! that is not committed is lost by that: it is committed on a rescue branch first. While a run is unfinished its worktree
//! is locked, so that git's own clearing up leaves it alone.
//!
//! Which run a worktree belongs to is written in its git folder, with a token that only grows: a worker whose lease has
//! gone to another one is refused. The branch remembers its run as well, in the repository's configuration, in case the
//! git folder is lost.

use std::fs::{File, TryLockError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use repertoire_text::fs::make_private_dir;
use crate::repo::{Git, GitError, Oid};
use crate::limits::{WORKTREE_LOCK_POLL, WORKTREE_LOCK_WAIT, WORKTREE_NAME_CHARS_MAX};

mod copy;
mod create;
mod error;
mod finish;
mod head;
mod prune;
mod registry;
mod repair;
mod rescue;
mod stale;

pub use self::error::WorktreeError;
pub use self::finish::{Ending, Finished};
pub use self::prune::{Kept, Pruned, Removal, Removed, Why};
pub use self::registry::Listed;
pub use self::copy::{Copied, Left};

/// Who works on a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The worker.
    pub worker: String,
    /// The token of its lease: that of a later lease is larger.
    pub token: u64,
}

/// A worktree that is wanted.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The run that it is for.
    pub run: &'a str,
    /// What the run is called; goes into the names of the folder and of the branch.
    pub name: &'a str,
    /// The branch that the work builds on; `None` for the one that is checked out.
    pub base: Option<String>,
    /// What the name of the run's branch begins with.
    pub branch_prefix: &'a str,
    /// Who works on it.
    pub owner: Owner,
    /// What the user's own checkout has to be like for a new worktree.
    pub checkout: Checkout,
}

/// What the user's own checkout has to be like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkout {
    /// Without changes: those would be missing in the worktree.
    #[default]
    Clean,
    /// As it is.
    Any,
}

impl<'a> Wanted<'a> {
    /// A worktree for a run, from the branch that is checked out, on a branch beneath `rep/`.
    pub fn new(run: &'a str, name: &'a str, owner: Owner) -> Self {
        Wanted {
            run,
            name,
            base: None,
            branch_prefix: "rep/",
            owner,
            checkout: Checkout::default(),
        }
    }
}

/// A worktree to work in.
#[derive(Clone, Debug)]
pub struct Worktree {
    /// The run that it is for.
    pub run: String,
    /// Who works on it.
    pub owner: Owner,
    /// Its folder.
    pub dir: Utf8PathBuf,
    /// Its git folder, outside of it.
    pub git_dir: Utf8PathBuf,
    /// The git folder of the repository.
    pub common_dir: Utf8PathBuf,
    /// git in it.
    pub git: Git,
    /// The branch of the run.
    pub branch: String,
    /// The branch that the work builds on.
    pub base_branch: String,
    /// The commit that the work builds on.
    pub base_oid: Oid,
    /// How it came to be.
    pub how: How,
    /// Whether it was set up; [`Worktrees::mark_set_up`] says so.
    pub set_up: bool,
}

/// How a worktree came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It is new.
    Created,
    /// It was there, and as it should be.
    Adopted,
    /// Something had to be put right: this, a sentence each.
    Repaired(Vec<String>),
}

/// The worktrees of a repository that belong to runs.
#[derive(Clone, Debug)]
pub struct Worktrees {
    repo: Git,
    root: Utf8PathBuf,
}

impl Worktrees {
    /// Worktrees of a repository, in a folder of their own.
    pub fn new(repo: Git, root: impl Into<Utf8PathBuf>) -> Self {
        Worktrees { repo, root: root.into() }
    }

    /// The worktree of a run: made, or taken up again. It goes on to its end also if nobody waits for it any longer:
    /// stopped in the middle, git would leave its locks behind.
    pub async fn prepare(&self, wanted: &Wanted<'_>) -> Result<Worktree, WorktreeError> {
        let (this, wanted) = (self.clone(), wanted.clone());
        let texts = [wanted.run, wanted.name, wanted.branch_prefix].map(str::to_owned);
        let (base, owner, checkout) = (wanted.base, wanted.owner, wanted.checkout);
        let task = tokio::spawn(async move {
            let [run, name, branch_prefix] = texts.each_ref().map(String::as_str);
            let wanted = Wanted { run, name, branch_prefix, base, owner, checkout };
            this.prepare_to_the_end(&wanted).await
        });
        task.await.map_err(|error| self.broke_off(error))?
    }

    fn broke_off(&self, error: tokio::task::JoinError) -> WorktreeError {
        WorktreeError::io(&self.root, std::io::Error::other(error))
    }

    async fn prepare_to_the_end(&self, wanted: &Wanted<'_>) -> Result<Worktree, WorktreeError> {
        let names = Names::of(wanted)?;
        self.repo.check_branch_name(&names.branch).await?;
        let common = self.repo.common_dir().await?;
        let _lock = lock(&common).await?;
        match registry::find(&common, wanted.run)? {
            Some(entry) => self.take_up(entry, wanted, &names, &common).await,
            None => self.create(wanted, &names, &common).await,
        }
    }

    /// The folder of the worktrees, made if it is missing, without links in its path: git writes it that way.
    fn made_root(&self) -> Result<Utf8PathBuf, WorktreeError> {
        make_private_dir(&self.root).map_err(|source| WorktreeError::io(&self.root, source))?;
        self.root.canonicalize_utf8().map_err(|source| WorktreeError::io(&self.root, source))
    }
}

/// What a worktree and its branch are called.
#[derive(Clone, Debug)]
struct Names {
    folder: String,
    branch: String,
    rescue: String,
}

impl Names {
    fn of(wanted: &Wanted<'_>) -> Result<Names, WorktreeError> {
        let run = wanted.run;
        let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !run.chars().all(fine) || !run.chars().any(|c| c.is_ascii_alphanumeric()) {
            return Err(WorktreeError::BadRun { run: run.to_owned() });
        }
        // The beginning of a run's id is the time, so that the end tells runs apart better.
        let short: Vec<char> = run.chars().filter(char::is_ascii_alphanumeric).collect();
        let short: String = short[short.len().saturating_sub(8)..].iter().collect();
        let folder = format!("{}-{}", slug(wanted.name), short.to_ascii_lowercase());
        let branch = format!("{}{folder}", wanted.branch_prefix);
        let rescue = format!("{}rescue/{folder}", wanted.branch_prefix);
        Ok(Names { folder, branch, rescue })
    }
}

impl Names {
    /// The names of a worktree that is there.
    fn of_worktree(worktree: &Worktree) -> Names {
        let (branch, folder) = (&worktree.branch, worktree.dir.file_name().unwrap_or_default());
        let prefix = branch.strip_suffix(folder).unwrap_or_default();
        let rescue = format!("{prefix}rescue/{folder}");
        Names { folder: folder.to_owned(), branch: branch.clone(), rescue }
    }
}

/// A name that is fine in paths and branches everywhere.
pub fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        match c.is_ascii_alphanumeric() {
            true => slug.push(c),
            false if slug.is_empty() || slug.ends_with('-') => {}
            false => slug.push('-'),
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

/// Why git's own commands are to leave a worktree alone; also tells whose it is if nothing else does.
fn lock_reason(run: &str) -> String {
    format!("repertoire run {run}")
}

/// Keeps others from changing the worktrees of the repository at the same time.
async fn lock(common: &Utf8Path) -> Result<File, WorktreeError> {
    let path = common.join("repertoire-worktrees.lock");
    let io = |source| WorktreeError::io(&path, source);
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

/// Makes git leave a worktree alone.
async fn lock_worktree(repo: &Git, dir: &Utf8Path, run: &str) -> Result<(), GitError> {
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
            assert_eq!(slug(name), expected);
        }
        assert!(slug(&"x ".repeat(500)).len() <= WORKTREE_NAME_CHARS_MAX);
    }

    #[test]
    fn runs_of_the_same_minute_have_branches_of_their_own() {
        let owner = Owner { worker: "w".into(), token: 1 };
        let names = |run: &str| Names::of(&Wanted::new(run, "x", owner.clone()));
        let one = names("0199e5b2-0000-7000-8000-00000000000a").unwrap();
        let other = names("0199e5b2-0000-7000-8000-00000000000b").unwrap();
        assert_ne!(one.branch, other.branch);
        assert_eq!(one.branch, "rep/x-0000000a");
        for run in ["", "a/b", "..", "a b", "-"] {
            assert!(names(run).is_err(), "{run}");
        }
    }
}
