//! Adopting an existing worktree, whatever state it was left in.

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::process;
use repertoire_text::fs::{read_text, write_atomic};

use super::create::{BranchBase, free_name};
use super::head::{abort_progress, attach_branch};
use super::registry::{RegisteredWorktree, WorktreeOwnerRecord};
use super::stale_locks::{remove_locks, set_setting};
use super::{
    PreparedWorktree, RunWorktrees, WorktreeError, WorktreeNames, WorktreePreparation,
    WorktreeRequest, lock_worktree, lock_worktrees,
};
use crate::limits::{
    NESTED_REPOSITORIES_MAX, OWNER_BYTES_MAX, WORKTREE_FREE_WAIT, WORKTREE_LOCK_POLL,
};
use crate::repo::{ChangeKind, GitObjectId};

/// Waits until no process of a former owner runs in a worktree. The caller has killed the known
/// ones, which may take a moment to exit.
async fn wait_until_free(dir: &Utf8Path) -> Result<(), WorktreeError> {
    let mut waited = Duration::ZERO;
    loop {
        let folder = dir.to_owned();
        let processes = tokio::task::spawn_blocking(move || process::occupants(&folder)).await;
        let processes =
            processes.map_err(|error| WorktreeError::from_io(dir, io::Error::other(error)))?;
        if processes.is_empty() {
            return Ok(());
        }
        if waited >= WORKTREE_FREE_WAIT {
            return Err(WorktreeError::Occupied { dir: dir.to_owned(), processes });
        }
        tokio::time::sleep(WORKTREE_LOCK_POLL).await;
        waited += WORKTREE_LOCK_POLL;
    }
}

impl RunWorktrees {
    /// Adopts the worktree of a run and repairs it if needed.
    pub(super) async fn adopt_worktree(
        &self,
        entry: RegisteredWorktree,
        wanted: &WorktreeRequest<'_>,
        names: &WorktreeNames,
        common: &Utf8Path,
    ) -> Result<PreparedWorktree, WorktreeError> {
        if let Some(record) = &entry.record {
            record.check_owner(&wanted.owner)?;
        }
        if entry.record.is_none() && !is_complete(&entry.git_dir) {
            remove_remains(&entry)?;
            return self.create_worktree(wanted, names, common).await;
        }
        if !entry.dir.is_dir() {
            return self.recreate_worktree(entry, wanted, names, common).await;
        }
        wait_until_free(&entry.dir).await?;
        let mut notes: Vec<String> = repair_link(&entry.dir, &entry.git_dir)?.into_iter().collect();
        let mut worktree = self.worktree_of(&entry, wanted, names, common).await?;
        let git_dir = &worktree.git_dir;
        notes.extend(remove_locks(&worktree.dir, git_dir, common, &worktree.branch).await?);
        self.restore_index(&entry, &worktree, &mut notes).await?;
        abort_progress(&worktree, names, &mut notes).await?;
        attach_branch(&worktree, names, &mut notes).await?;
        if entry.locked.is_none() {
            lock_worktree(&self.repo, &worktree.dir, wanted.run).await?;
        }
        worktree.how = if notes.is_empty() {
            WorktreePreparation::Adopted
        } else {
            WorktreePreparation::Repaired(notes)
        };
        self.record_owner(&worktree).await?;
        Ok(worktree)
    }

    /// Repairs a worktree after an agent has worked in it: its link, its locks, and what is checked
    /// out. The branch keeps its history up to `since`: if the agent rewrote it, the files stay as
    /// they are, on top of the old history. Returns a sentence for each repair.
    pub async fn repair_worktree(
        &self,
        worktree: &PreparedWorktree,
        since: &GitObjectId,
    ) -> Result<Vec<String>, WorktreeError> {
        let _lock = lock_worktrees(&worktree.common_dir).await?;
        if let Some(record) = WorktreeOwnerRecord::read(&worktree.git_dir)? {
            record.check_owner(&worktree.owner)?;
        }
        let names = WorktreeNames::of_worktree(worktree);
        let (dir, git_dir, git) = (&worktree.dir, &worktree.git_dir, &worktree.git);
        if !dir.is_dir() {
            // Continuing would commit the deletion of every file. Resuming the run creates the
            // worktree again.
            return Err(WorktreeError::Gone { dir: dir.clone() });
        }
        let mut notes: Vec<String> = repair_link(dir, git_dir)?.into_iter().collect();
        notes.extend(remove_locks(dir, git_dir, &worktree.common_dir, &worktree.branch).await?);
        abort_progress(worktree, &names, &mut notes).await?;
        attach_branch(worktree, &names, &mut notes).await?;
        if !git.is_ancestor(since, &git.head_commit().await?).await? {
            git.ok(&["reset", "--soft", "--quiet", since.as_str()]).await?;
            notes.push(format!(
                "the history of `{}` was rewritten, and goes on from {} again",
                worktree.branch,
                since.short()
            ));
        }
        move_nested_git_dirs(worktree, &mut notes).await?;
        Ok(notes)
    }

    /// Creates a worktree again whose folder is missing: removes its registration and checks out
    /// its branch.
    async fn recreate_worktree(
        &self,
        entry: RegisteredWorktree,
        wanted: &WorktreeRequest<'_>,
        names: &WorktreeNames,
        common: &Utf8Path,
    ) -> Result<PreparedWorktree, WorktreeError> {
        let dir = entry.dir.as_str();
        if let Some(record) = &entry.record {
            // The git folder and its record are removed below, so record the run for the branch
            // first.
            let base =
                BranchBase { branch: record.base_branch.clone(), oid: record.base_oid.clone() };
            self.record_branch(&record.branch, &record.run, &base).await?;
        }
        let branch = entry.record.as_ref().map_or(&names.branch, |record| &record.branch);
        let names = WorktreeNames { branch: branch.clone(), ..names.clone() };
        remove_locks(&entry.dir, &entry.git_dir, common, &names.branch).await?;
        let remove = ["worktree", "remove", "--force", "--force", dir];
        self.repo.run_checked_reaching(&remove, &[&self.root]).await?;
        if self.repo.branch_exists(&names.branch).await? {
            // The lock reason, removed above, may have been the only record of the branch's run.
            let key = format!("branch.{}.repertoireRun", names.branch);
            set_setting(&self.repo, &key, wanted.run).await?;
        }
        self.create_worktree(wanted, &names, common).await
    }

    async fn worktree_of(
        &self,
        entry: &RegisteredWorktree,
        wanted: &WorktreeRequest<'_>,
        names: &WorktreeNames,
        common: &Utf8Path,
    ) -> Result<PreparedWorktree, WorktreeError> {
        let git = self.repo.in_worktree(&entry.dir, &entry.git_dir, common);
        let (branch, base, set_up) = match &entry.record {
            Some(record) => {
                let base =
                    BranchBase { branch: record.base_branch.clone(), oid: record.base_oid.clone() };
                (record.branch.clone(), base, record.set_up)
            }
            None => {
                let tip = self.repo.branch_tip(&names.branch).await?;
                let tip = match tip {
                    Some(tip) => tip,
                    None => git.head_commit().await?,
                };
                let base = self.existing_base(wanted, names, &tip).await?;
                (names.branch.clone(), base, false)
            }
        };
        Ok(PreparedWorktree {
            run: wanted.run.to_owned(),
            owner: wanted.owner.clone(),
            dir: entry.dir.clone(),
            git_dir: entry.git_dir.clone(),
            common_dir: common.to_owned(),
            git,
            branch,
            base_branch: base.branch,
            base_oid: base.oid,
            how: WorktreePreparation::Adopted,
            set_up,
        })
    }

    /// Recreates a missing index, without which every file would look deleted. Without a record,
    /// the worktree was never handed out and its checkout was interrupted, so the files are reset
    /// as well. Otherwise the files may contain work and stay.
    async fn restore_index(
        &self,
        entry: &RegisteredWorktree,
        worktree: &PreparedWorktree,
        notes: &mut Vec<String>,
    ) -> Result<(), WorktreeError> {
        if worktree.git_dir.join("index").exists() {
            return Ok(());
        }
        let how = if entry.record.is_some() { "--mixed" } else { "--hard" };
        worktree.git.ok(&["reset", "--quiet", how]).await?;
        notes.push("the index was missing and is made again".to_owned());
        Ok(())
    }
}

/// Moves the git folders of nested repositories out of the worktree. Git would commit such a
/// repository as a link without its files. Submodules are in the index and stay.
async fn move_nested_git_dirs(
    worktree: &PreparedWorktree,
    notes: &mut Vec<String>,
) -> Result<(), WorktreeError> {
    for _ in 0..NESTED_REPOSITORIES_MAX {
        let changes = worktree.git.status().await?.into_iter();
        let inner = changes
            .filter(|change| change.kind == ChangeKind::Untracked && change.path.ends_with('/'))
            .map(|change| worktree.dir.join(change.path))
            .find(|path| path.join(".git").symlink_metadata().is_ok());
        let Some(inner) = inner else { break };
        let (git, aside) = (inner.join(".git"), free_name(&worktree.dir)?);
        std::fs::rename(&git, &aside).map_err(|source| WorktreeError::from_io(&git, source))?;
        notes.push(format!("{inner} was a repository of its own; {git} is in {aside} now"));
    }
    Ok(())
}

/// Returns true if git had finished creating a worktree's git folder.
fn is_complete(git_dir: &Utf8Path) -> bool {
    let has = |name: &str| std::fs::metadata(git_dir.join(name)).is_ok_and(|file| file.len() > 0);
    has("HEAD") && has("commondir")
}

/// Removes the remains of a worktree whose creation was interrupted. Its folder contains nothing
/// but the link to the git folder; any other files stay where they are.
fn remove_remains(entry: &RegisteredWorktree) -> Result<(), WorktreeError> {
    let link = entry.dir.join(".git");
    ignore_not_found(&link, std::fs::remove_file(&link))?;
    ignore_not_found(&entry.git_dir, std::fs::remove_dir_all(&entry.git_dir))
}

fn ignore_not_found(path: &Utf8Path, done: std::io::Result<()>) -> Result<(), WorktreeError> {
    match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(WorktreeError::from_io(path, error))
        }
        _ => Ok(()),
    }
}

/// Makes the `.git` file of a worktree point to its git folder. Anything else in its place is moved
/// out of the worktree. Returns a note if a repair was needed.
fn repair_link(dir: &Utf8Path, git_dir: &Utf8Path) -> Result<Option<String>, WorktreeError> {
    let path = dir.join(".git");
    let io = |source| WorktreeError::from_io(&path, source);
    let mut note = "the link of the worktree to its repository was repaired".to_owned();
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => {
            if link_target(&path) == git_dir.canonicalize_utf8().ok() {
                return Ok(None);
            }
            std::fs::remove_file(&path).map_err(io)?;
        }
        Ok(_) => {
            let aside = free_name(&git_dir.join("repertoire-found"))?;
            std::fs::rename(&path, &aside).map_err(io)?;
            note.push_str(&format!("; what was in its place is in {aside}"));
        }
        Err(_) => {}
    }
    write_atomic(&path, format!("gitdir: {git_dir}\n").as_bytes()).map_err(io)?;
    Ok(Some(note))
}

fn link_target(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let text = read_text(path, OWNER_BYTES_MAX).ok()?;
    let target = text.strip_prefix("gitdir: ")?.trim_end_matches('\n');
    path.parent()?.join(target).canonicalize_utf8().ok()
}
