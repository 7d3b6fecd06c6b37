//! Creating a worktree.

use camino::{Utf8Path, Utf8PathBuf};

use super::registry::WorktreeOwnerRecord;
use super::stale_locks::{remove_locks, set_setting};
use super::{
    CheckoutRequirement, PreparedWorktree, RunWorktrees, WorktreeError, WorktreeNames,
    WorktreePreparation, WorktreeRequest, lock_reason,
};
use crate::limits::ASIDE_NAMES_MAX;
use crate::repo::{ChangeKind, GitObjectId};

/// The branch and commit that a run's branch starts from.
pub(super) struct BranchBase {
    pub(super) branch: String,
    pub(super) oid: GitObjectId,
}

impl RunWorktrees {
    /// Creates the worktree of a run that has none. Its branch may already exist.
    pub(super) async fn create_worktree(
        &self,
        wanted: &WorktreeRequest<'_>,
        names: &WorktreeNames,
        common: &Utf8Path,
    ) -> Result<PreparedWorktree, WorktreeError> {
        let mut notes = Vec::new();
        let tip = self.repo.branch_tip(&names.branch).await?;
        let run_key = setting_key(&names.branch, "Run");
        if tip.is_some() && self.repo.config_value(&run_key).await?.as_deref() != Some(wanted.run) {
            return Err(WorktreeError::BranchTaken { branch: names.branch.clone() });
        }
        let base = match &tip {
            Some(tip) => self.existing_base(wanted, names, tip).await?,
            None => self.new_base(wanted).await?,
        };
        let dir = self.create_root()?.join(&names.folder);
        notes.extend(move_aside(&dir)?);
        match tip {
            Some(_) => notes.push(format!(
                "the worktree was gone and is made again from its branch `{}`",
                names.branch
            )),
            None => self.check_checkout(wanted).await?,
        }
        // Mark the branch before it exists: after a crash, an unmarked one would be taken for a
        // branch of the user.
        self.record_branch(&names.branch, wanted.run, &base).await?;
        notes.extend(remove_locks(&dir, &dir, common, &names.branch).await?);
        self.run_worktree_add(&dir, wanted.run, &names.branch, tip.is_none().then_some(&base.oid))
            .await?;
        let how = if notes.is_empty() {
            WorktreePreparation::Created
        } else {
            WorktreePreparation::Repaired(notes)
        };
        self.record_new(dir, wanted, names.branch.clone(), base, common, how).await
    }

    /// Runs `git worktree add`, with a new branch at `new_at` or an existing one.
    pub(super) async fn run_worktree_add(
        &self,
        dir: &Utf8Path,
        run: &str,
        branch: &str,
        new_at: Option<&GitObjectId>,
    ) -> Result<(), WorktreeError> {
        let reason = lock_reason(run);
        let mut options = vec!["--lock", "--reason", &reason];
        let commit = match new_at {
            Some(oid) => {
                options.extend(["--no-track", "-b", branch]);
                oid.as_str()
            }
            None => branch,
        };
        self.repo.add_worktree(&options, dir, commit).await?;
        Ok(())
    }

    /// Records the owner of a new worktree.
    pub(super) async fn record_new(
        &self,
        dir: Utf8PathBuf,
        wanted: &WorktreeRequest<'_>,
        branch: String,
        base: BranchBase,
        common: &Utf8Path,
        how: WorktreePreparation,
    ) -> Result<PreparedWorktree, WorktreeError> {
        // Only git has written to this folder yet, so its `.git` file can be trusted.
        let git_dir = self.repo.in_dir(&dir).git_dir().await?;
        let worktree = PreparedWorktree {
            run: wanted.run.to_owned(),
            owner: wanted.owner.clone(),
            git: self.repo.in_worktree(&dir, &git_dir, common),
            dir,
            git_dir,
            common_dir: common.to_owned(),
            branch,
            base_branch: base.branch,
            base_oid: base.oid,
            how,
            set_up: false,
        };
        self.record_owner(&worktree).await?;
        Ok(worktree)
    }

    /// Records the run for the branch, then the owner in the git folder. In this order, since the
    /// second record marks the worktree as complete.
    pub(super) async fn record_owner(
        &self,
        worktree: &PreparedWorktree,
    ) -> Result<(), WorktreeError> {
        let base =
            BranchBase { branch: worktree.base_branch.clone(), oid: worktree.base_oid.clone() };
        self.record_branch(&worktree.branch, &worktree.run, &base).await?;
        WorktreeOwnerRecord::for_worktree(worktree).write(&worktree.git_dir)
    }

    /// Records the run and the base of a branch in the repository's configuration.
    pub(super) async fn record_branch(
        &self,
        branch: &str,
        run: &str,
        base: &BranchBase,
    ) -> Result<(), WorktreeError> {
        let values =
            [("Run", run), ("Base", base.branch.as_str()), ("BaseCommit", base.oid.as_str())];
        for (what, value) in values {
            let key = setting_key(branch, what);
            if self.repo.config_value(&key).await?.as_deref() != Some(value) {
                set_setting(&self.repo, &key, value).await?;
            }
        }
        Ok(())
    }

    /// The base of a new branch.
    async fn new_base(&self, wanted: &WorktreeRequest<'_>) -> Result<BranchBase, WorktreeError> {
        let branch = match &wanted.base {
            Some(branch) => branch.clone(),
            None => {
                // Without any commit there is a branch, but no base.
                self.repo.head_commit().await?;
                let dir = self.repo.dir().to_owned();
                self.repo.current_branch().await?.ok_or(WorktreeError::NoBranch { dir })?
            }
        };
        match self.repo.branch_tip(&branch).await? {
            Some(oid) => Ok(BranchBase { branch, oid }),
            None => Err(WorktreeError::NoSuchBranch { branch }),
        }
    }

    /// The base of an existing branch: as recorded, or else its merge base with the requested
    /// branch.
    pub(super) async fn existing_base(
        &self,
        wanted: &WorktreeRequest<'_>,
        names: &WorktreeNames,
        tip: &GitObjectId,
    ) -> Result<BranchBase, WorktreeError> {
        let branch = self.repo.config_value(&setting_key(&names.branch, "Base")).await?;
        let oid = self.repo.config_value(&setting_key(&names.branch, "BaseCommit")).await?;
        if let (Some(branch), Some(oid)) = (branch, oid.as_deref().and_then(GitObjectId::parse)) {
            return Ok(BranchBase { branch, oid });
        }
        let base = self.new_base(wanted).await?;
        let oid = self.repo.merge_base(tip, &base.oid).await?.unwrap_or(base.oid);
        Ok(BranchBase { oid, ..base })
    }

    /// Returns an error if the user's checkout has an unfinished operation, or changes that the
    /// worktree would lack.
    async fn check_checkout(&self, wanted: &WorktreeRequest<'_>) -> Result<(), WorktreeError> {
        let dir = self.repo.dir().to_owned();
        if let Some(progress) = self.repo.current_operation().await? {
            return Err(WorktreeError::InTheMiddle { dir, progress });
        }
        if wanted.checkout == CheckoutRequirement::Any {
            return Ok(());
        }
        let root = self.root.canonicalize_utf8().unwrap_or_else(|_| self.root.clone());
        let top = self.repo.work_tree_root().await?;
        // The worktrees may be inside the checkout without being ignored.
        let ours = |path: &str| top.join(path).starts_with(&root);
        let changes = self.repo.status().await?.into_iter();
        let files: Vec<String> = changes
            .filter(|change| change.kind != ChangeKind::Untracked || !ours(&change.path))
            .map(|change| change.path)
            .collect();
        if files.is_empty() { Ok(()) } else { Err(WorktreeError::Dirty { dir, files }) }
    }
}

/// The configuration key under which a fact about a run's branch is recorded.
fn setting_key(branch: &str, name: &str) -> String {
    format!("branch.{branch}.repertoire{name}")
}

/// Moves anything at the worktree's future path aside, and returns a note about it. Removes an
/// empty folder.
pub(super) fn move_aside(dir: &Utf8Path) -> Result<Option<String>, WorktreeError> {
    if std::fs::symlink_metadata(dir).is_err() || std::fs::remove_dir(dir).is_ok() {
        return Ok(None);
    }
    let aside = free_name(dir)?;
    std::fs::rename(dir, &aside).map_err(|source| WorktreeError::from_io(dir, source))?;
    Ok(Some(format!("what lay at {dir} was moved to {aside}")))
}

/// An unused name next to a path.
pub(super) fn free_name(path: &Utf8Path) -> Result<Utf8PathBuf, WorktreeError> {
    let mut names = (1..=ASIDE_NAMES_MAX).map(|n| Utf8PathBuf::from(format!("{path}.aside-{n}")));
    names.find(|name| std::fs::symlink_metadata(name).is_err()).ok_or_else(|| {
        let full = "too much was moved aside already; remove some of it";
        WorktreeError::from_io(path, std::io::Error::other(full))
    })
}
