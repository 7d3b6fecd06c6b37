//! The git command line, called from one place.
//!
//! A repository can name programs that git runs, and its configuration may have been written by an
//! agent, an archive or a contributor. So every call runs inside the sandbox with access to the
//! repository, without network and without secrets. Hooks, the file system monitor, external diffs,
//! text conversion, signing, pagers, editors and credential helpers are disabled as well, git does
//! not enter nested repositories, and every call gets the location of the repository explicitly.
//! Filters and merge drivers do run, inside the sandbox: a repository that uses Git LFS cannot be
//! read without them. Without a sandbox, only filters and drivers from the user's own configuration
//! run.
//!
//! Hooks are disabled for the engine's calls only: its commits are checkpoints on the run's own
//! branch, and must not fail because of a formatter. What a hook would verify belongs into the
//! declared checks; [`GitClient::hooks_left_out`] lists the skipped hooks. An agent's own git commands do
//! not go through this module.

use std::sync::{Arc, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::confinement::LazySandbox;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use crate::limits::{GIT_CONFIG_POLL, GIT_CONFIG_TRIES};

mod call;
mod commit;
mod config;
mod confinement;
mod diff;
mod error;
mod harmless;
mod index_flags;
mod log;
mod merge;
mod nested;
mod operation;
mod push;
mod repository_dirs;
mod restore;
mod status;
mod tree;
mod tree_edit;
mod work_files;

pub use self::commit::CommitAuthor;
use self::config::GitConfig;
use self::confinement::ScratchDir;
pub use self::diff::{DiffFingerprint, DiffTarget, FileDiff, GitDiff};
pub use self::error::GitError;
pub use self::harmless::{HARMLESS_ENVIRONMENT, NetworkUse, harmless_settings};
pub use self::log::LogCommit;
pub use self::merge::MergeTreeResult;
pub use self::operation::Progress;
pub use self::push::GitRemote;
use self::repository_dirs::RepositoryDirs;
pub use self::status::{ChangeKind, GitFileChange};
pub use self::tree::PATHS_PER_CALL;
pub use self::tree::{GitAttribute, TreeChange, TreeEntry, TreeEntryMode, TreePath};
pub use self::tree_edit::{RawFile, TreeEdit};
pub use self::work_files::WorkFiles;

/// The full name of a git object, in most cases a commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GitObjectId(String);

/// The object name of a tree. Equal files have the same tree, whatever their authors and times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TreeId(pub GitObjectId);

impl GitObjectId {
    /// Parses a full object name: 40 (SHA-1) or 64 (SHA-256) lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<GitObjectId> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let whole = matches!(text.len(), 40 | 64) && text.bytes().all(hex);
        whole.then(|| GitObjectId(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 10 digits, for display.
    pub fn short(&self) -> &str {
        &self.0[..10]
    }
}

impl std::fmt::Display for GitObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for GitObjectId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        GitObjectId::parse(&text)
            .ok_or_else(|| format!("`{text}` is not the full name of an object"))
    }
}

impl From<GitObjectId> for String {
    fn from(oid: GitObjectId) -> String {
        oid.0
    }
}

/// A repository, seen from one of its checkouts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct GitClient {
    dir: Utf8PathBuf,
    /// The folders of the repository if they are known; otherwise they are searched for in each
    /// call.
    place: Option<Arc<RepositoryDirs>>,
    environment: Arc<[(String, String)]>,
    sandbox: LazySandbox,
    version: Arc<OnceCell<()>>,
    surroundings: Arc<OnceCell<GitConfig>>,
    scratch: Arc<OnceLock<Arc<ScratchDir>>>,
}

impl GitClient {
    /// Creates a handle on the repository around `dir`, with an environment (`PATH` and `HOME`
    /// matter) and the sandbox that confines git. Runs nothing yet.
    pub fn new(
        dir: impl Into<Utf8PathBuf>,
        environment: Vec<(String, String)>,
        sandbox: impl Into<LazySandbox>,
    ) -> GitClient {
        let environment: Vec<_> =
            environment.into_iter().filter(|(name, _)| call::is_passed_to_git(name)).collect();
        GitClient {
            dir: dir.into(),
            place: None,
            environment: environment.into(),
            sandbox: sandbox.into(),
            version: Arc::default(),
            surroundings: Arc::default(),
            scratch: Arc::default(),
        }
    }

    /// The same configuration for another folder.
    #[must_use]
    pub fn in_dir(&self, dir: impl Into<Utf8PathBuf>) -> GitClient {
        GitClient { dir: dir.into(), place: None, surroundings: Arc::default(), ..self.clone() }
    }

    /// The same configuration for a worktree whose git folder is known, so that no file in the
    /// worktree can redirect git.
    #[must_use]
    pub fn in_worktree(
        &self,
        dir: impl Into<Utf8PathBuf>,
        git_dir: impl Into<Utf8PathBuf>,
        common_dir: impl Into<Utf8PathBuf>,
    ) -> GitClient {
        let dir = dir.into();
        let place = RepositoryDirs {
            top: Some(dir.clone()),
            git_dir: git_dir.into(),
            common_dir: common_dir.into(),
        };
        GitClient { place: Some(Arc::new(place)), ..self.in_dir(dir) }
    }

    /// The folder in which git runs.
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// The root of the checkout.
    pub async fn work_tree_root(&self) -> Result<Utf8PathBuf, GitError> {
        let top = self.repository_dirs()?.top.clone();
        top.ok_or_else(|| GitError::NotARepository { dir: self.dir.clone() })
    }

    /// The git folder that all checkouts of the repository share.
    pub async fn common_dir(&self) -> Result<Utf8PathBuf, GitError> {
        Ok(self.repository_dirs()?.common_dir.clone())
    }

    /// The git folder of this checkout.
    pub async fn git_dir(&self) -> Result<Utf8PathBuf, GitError> {
        Ok(self.repository_dirs()?.git_dir.clone())
    }

    /// The commit that is checked out.
    pub async fn head_commit(&self) -> Result<GitObjectId, GitError> {
        match self.find_commit("HEAD").await? {
            Some(oid) => Ok(oid),
            None => Err(GitError::Unborn { dir: self.dir.clone() }),
        }
    }

    /// The branch that is checked out; `None` for a detached `HEAD`.
    pub async fn current_branch(&self) -> Result<Option<String>, GitError> {
        let answer = self.run_any_code(&["symbolic-ref", "--quiet", "HEAD"]).await?;
        match answer.code {
            0 => Ok(answer.stdout_text()?.strip_prefix("refs/heads/").map(str::to_owned)),
            1 => Ok(None),
            _ => Err(answer.failure_error()),
        }
    }

    /// Resolves a branch, a tag or another revision expression to a commit.
    pub async fn resolve(&self, revision: &str) -> Result<GitObjectId, GitError> {
        let found = self.find_commit(revision).await?;
        found.ok_or_else(|| GitError::NoSuchRevision { revision: revision.to_owned() })
    }

    /// Like [`GitClient::resolve`], but returns `None` if there is no such commit.
    pub async fn find_commit(&self, revision: &str) -> Result<Option<GitObjectId>, GitError> {
        let commit = format!("{revision}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
        let answer = self.run_any_code(&args).await?;
        match answer.code {
            0 => answer.parse_oid().map(Some),
            1 => Ok(None),
            // Not a valid revision expression.
            128 if answer.stderr_text().contains("Needed a single revision") => Ok(None),
            _ => Err(answer.failure_error()),
        }
    }

    /// The commit of a branch; `None` if there is no such branch.
    pub async fn branch_tip(&self, branch: &str) -> Result<Option<GitObjectId>, GitError> {
        self.find_commit(&format!("refs/heads/{branch}")).await
    }

    /// Returns true if the branch exists.
    pub async fn branch_exists(&self, branch: &str) -> Result<bool, GitError> {
        let name = format!("refs/heads/{branch}");
        self.run_for_bool(&["show-ref", "--verify", "--quiet", &name]).await
    }

    /// Returns an error if git does not accept the name for a branch.
    pub async fn check_branch_name(&self, branch: &str) -> Result<(), GitError> {
        let name = format!("refs/heads/{branch}");
        let fine =
            !branch.starts_with('-') && self.run_for_bool(&["check-ref-format", &name]).await?;
        if fine { Ok(()) } else { Err(GitError::BadBranchName { branch: branch.to_owned() }) }
    }

    /// Deletes a branch, merged or not, unless it is checked out somewhere. Its commits stay until
    /// git's garbage collection.
    pub async fn delete_branch(&self, branch: &str) -> Result<(), GitError> {
        self.ok(&["branch", "--delete", "--force", "--quiet", "--", branch]).await.map(drop)
    }

    /// Creates or moves a branch. `from` is the commit that it must be at now; `None` if the branch
    /// must not exist.
    pub async fn set_branch(
        &self,
        branch: &str,
        to: &GitObjectId,
        from: Option<&GitObjectId>,
        why: &str,
    ) -> Result<(), GitError> {
        let name = format!("refs/heads/{branch}");
        let none = "0".repeat(to.as_str().len());
        let from = from.map_or(none.as_str(), GitObjectId::as_str);
        let args = ["update-ref", "--create-reflog", "-m", why, &name, to.as_str(), from];
        self.ok(&args).await.map(drop)
    }

    /// Returns true if `older` is reachable from `newer`.
    pub async fn is_ancestor(
        &self,
        older: &GitObjectId,
        newer: &GitObjectId,
    ) -> Result<bool, GitError> {
        self.run_for_bool(&["merge-base", "--is-ancestor", older.as_str(), newer.as_str()]).await
    }

    /// The best common ancestor; `None` if the histories are unrelated.
    pub async fn merge_base(
        &self,
        one: &GitObjectId,
        other: &GitObjectId,
    ) -> Result<Option<GitObjectId>, GitError> {
        let answer = self.run_any_code(&["merge-base", one.as_str(), other.as_str()]).await?;
        match answer.code {
            0 => answer.parse_oid().map(Some),
            1 => Ok(None),
            _ => Err(answer.failure_error()),
        }
    }

    /// Creates a worktree in a folder that is empty or does not exist yet. The files are checked
    /// out in a second call: creating the worktree needs write access to the configuration, and a
    /// checkout runs filters, which must not have that access.
    pub async fn add_worktree(
        &self,
        options: &[&str],
        dir: &Utf8Path,
        commit: &str,
    ) -> Result<(), GitError> {
        // The sandbox can only grant access to an existing folder.
        let io = |source| GitError::Io { path: dir.to_owned(), source };
        std::fs::create_dir_all(dir).map_err(io)?;
        let mut args = vec!["worktree", "add", "--quiet", "--no-checkout"];
        args.extend(options);
        args.extend([dir.as_str(), commit]);
        self.run_checked_reaching(&args, &[dir]).await?;
        self.in_dir(dir).ok(&["reset", "--hard", "--quiet"]).await.map(drop)
    }

    /// Resets index and tracked files to a commit. Changes to tracked files are lost, untracked
    /// files stay.
    pub async fn reset_hard(&self, oid: &GitObjectId) -> Result<(), GitError> {
        self.ok(&["reset", "--hard", "--quiet", oid.as_str()]).await.map(drop)
    }

    /// A value of the repository's own configuration (`--local`).
    pub async fn config_value(&self, key: &str) -> Result<Option<String>, GitError> {
        let answer = self.run_any_code(&["config", "--local", "--get", "--null", key]).await?;
        match answer.code {
            0 => Ok(Some(answer.stdout_text()?.trim_end_matches('\0').to_owned())),
            1 => Ok(None),
            _ => Err(answer.failure_error()),
        }
    }

    /// Sets a value of the repository's own configuration. Unlike git, retries while another
    /// process holds the lock.
    pub async fn set_config_value(&self, key: &str, value: &str) -> Result<(), GitError> {
        let args = ["config", "--local", "--replace-all", key, value];
        for _ in 1..GIT_CONFIG_TRIES {
            match self.ok(&args).await {
                Err(GitError::Locked { .. }) => tokio::time::sleep(GIT_CONFIG_POLL).await,
                done => return done.map(drop),
            }
        }
        self.ok(&args).await.map(drop)
    }

    /// The commit hooks of the repository that the engine's commits skip.
    pub async fn hooks_left_out(&self) -> Result<Vec<String>, GitError> {
        let place = self.repository_dirs()?;
        let folder = match self.git_config(&place).await?.effective_value("core.hookspath") {
            Some(path) => self.work_tree_root().await?.join(path),
            None => place.common_dir.join("hooks"),
        };
        let hooks = COMMIT_HOOKS.iter().filter(|hook| folder.join(hook).is_file());
        Ok(hooks.map(|hook| (*hook).to_owned()).collect())
    }
}

const COMMIT_HOOKS: &[&str] =
    &["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit"];
