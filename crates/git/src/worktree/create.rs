//! Making a worktree.

use camino::{Utf8Path, Utf8PathBuf};

use super::registry::Record;
use super::stale::{remove_locks, set_setting};
use super::{Checkout, How, Names, Wanted, Worktree, WorktreeError, Worktrees, lock_reason};
use crate::repo::{ChangeKind, Oid};
use crate::limits::ASIDE_NAMES_MAX;

/// What a run's branch builds on.
pub(super) struct Base {
    pub(super) branch: String,
    pub(super) oid: Oid,
}

impl Worktrees {
    /// Makes the worktree of a run that has none. Its branch may be there from before.
    pub(super) async fn create(
        &self,
        wanted: &Wanted<'_>,
        names: &Names,
        common: &Utf8Path,
    ) -> Result<Worktree, WorktreeError> {
        let mut notes = Vec::new();
        let tip = self.repo.branch_tip(&names.branch).await?;
        let key = |what: &str| format!("branch.{}.repertoire{what}", names.branch);
        if tip.is_some() && self.repo.setting(&key("Run")).await?.as_deref() != Some(wanted.run) {
            return Err(WorktreeError::BranchTaken { branch: names.branch.clone() });
        }
        let base = match &tip {
            Some(tip) => self.base_from_before(wanted, names, tip).await?,
            None => self.base(wanted).await?,
        };
        let dir = self.made_root()?.join(&names.folder);
        notes.extend(move_aside(&dir)?);
        match tip {
            Some(_) => notes.push(format!(
                "the worktree was gone and is made again from its branch `{}`",
                names.branch
            )),
            None => self.check_checkout(wanted).await?,
        }
        // A branch that is made and not marked would be taken for somebody else's.
        self.mark(&names.branch, wanted.run, &base).await?;
        notes.extend(remove_locks(&dir, &dir, common, &names.branch).await?);
        self.add(&dir, wanted.run, &names.branch, tip.is_none().then_some(&base.oid)).await?;
        let how = if notes.is_empty() { How::Created } else { How::Repaired(notes) };
        self.hand_over(dir, wanted, names.branch.clone(), base, common, how).await
    }

    /// `git worktree add`, with a new branch or the one that is there.
    pub(super) async fn add(
        &self,
        dir: &Utf8Path,
        run: &str,
        branch: &str,
        new_at: Option<&Oid>,
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

    /// Writes down whose a new worktree is.
    pub(super) async fn hand_over(
        &self,
        dir: Utf8PathBuf,
        wanted: &Wanted<'_>,
        branch: String,
        base: Base,
        common: &Utf8Path,
        how: How,
    ) -> Result<Worktree, WorktreeError> {
        // Nobody but git has been here yet, so the file in the worktree can be believed.
        let git_dir = self.repo.in_dir(&dir).git_dir().await?;
        let worktree = Worktree {
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
        self.remember(&worktree).await?;
        Ok(worktree)
    }

    /// The branch remembers its run, and the git folder its owner; in this order, since the second one says it is done.
    pub(super) async fn remember(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let base = Base { branch: worktree.base_branch.clone(), oid: worktree.base_oid.clone() };
        self.mark(&worktree.branch, &worktree.run, &base).await?;
        Record::of(worktree).write(&worktree.git_dir)
    }

    /// Writes down which run a branch is of, and what it builds on.
    pub(super) async fn mark(
        &self,
        branch: &str,
        run: &str,
        base: &Base,
    ) -> Result<(), WorktreeError> {
        let key = |what: &str| format!("branch.{branch}.repertoire{what}");
        let values =
            [("Run", run), ("Base", base.branch.as_str()), ("BaseCommit", base.oid.as_str())];
        for (what, value) in values {
            if self.repo.setting(&key(what)).await?.as_deref() != Some(value) {
                set_setting(&self.repo, &key(what), value).await?;
            }
        }
        Ok(())
    }

    /// What a new branch builds on.
    async fn base(&self, wanted: &Wanted<'_>) -> Result<Base, WorktreeError> {
        let branch = match &wanted.base {
            Some(branch) => branch.clone(),
            None => {
                // Without a commit there is a branch, but nothing to build on.
                self.repo.head().await?;
                let dir = self.repo.dir().to_owned();
                self.repo.branch().await?.ok_or(WorktreeError::NoBranch { dir })?
            }
        };
        match self.repo.branch_tip(&branch).await? {
            Some(oid) => Ok(Base { branch, oid }),
            None => Err(WorktreeError::NoSuchBranch { branch }),
        }
    }

    /// What the branch of a run builds on that was made before.
    pub(super) async fn base_from_before(
        &self,
        wanted: &Wanted<'_>,
        names: &Names,
        tip: &Oid,
    ) -> Result<Base, WorktreeError> {
        let key = |what: &str| format!("branch.{}.repertoire{what}", names.branch);
        let branch = self.repo.setting(&key("Base")).await?;
        let oid = self.repo.setting(&key("BaseCommit")).await?;
        if let (Some(branch), Some(oid)) = (branch, oid.as_deref().and_then(Oid::parse)) {
            return Ok(Base { branch, oid });
        }
        let base = self.base(wanted).await?;
        let oid = self.repo.merge_base(tip, &base.oid).await?.unwrap_or(base.oid);
        Ok(Base { oid, ..base })
    }

    /// Refuses to begin from a checkout that is in the middle of something, or whose changes would be missing.
    async fn check_checkout(&self, wanted: &Wanted<'_>) -> Result<(), WorktreeError> {
        let dir = self.repo.dir().to_owned();
        if let Some(progress) = self.repo.progress().await? {
            return Err(WorktreeError::InTheMiddle { dir, progress });
        }
        if wanted.checkout == Checkout::Any {
            return Ok(());
        }
        let root = self.root.canonicalize_utf8().unwrap_or_else(|_| self.root.clone());
        let top = self.repo.top().await?;
        // Worktrees may live in the checkout, and need not be ignored there.
        let ours = |path: &str| top.join(path).starts_with(&root);
        let changes = self.repo.status().await?.into_iter();
        let files: Vec<String> = changes
            .filter(|change| change.kind != ChangeKind::Untracked || !ours(&change.path))
            .map(|change| change.path)
            .collect();
        match files.is_empty() {
            true => Ok(()),
            false => Err(WorktreeError::Dirty { dir, files }),
        }
    }
}

/// Moves away what lies where a worktree is to be, and tells it; an empty folder is no hindrance.
pub(super) fn move_aside(dir: &Utf8Path) -> Result<Option<String>, WorktreeError> {
    if std::fs::symlink_metadata(dir).is_err() || std::fs::remove_dir(dir).is_ok() {
        return Ok(None);
    }
    let aside = free_name(dir)?;
    std::fs::rename(dir, &aside).map_err(|source| WorktreeError::io(dir, source))?;
    Ok(Some(format!("what lay at {dir} was moved to {aside}")))
}

/// A name beside a path that is not taken.
pub(super) fn free_name(path: &Utf8Path) -> Result<Utf8PathBuf, WorktreeError> {
    let names = (1..=ASIDE_NAMES_MAX).map(|n| Utf8PathBuf::from(format!("{path}.aside-{n}")));
    let free = |name: &Utf8PathBuf| std::fs::symlink_metadata(name).is_err();
    let full = || std::io::Error::other("too much was moved aside already; remove some of it");
    names.into_iter().find(free).ok_or_else(|| WorktreeError::io(path, full()))
}
