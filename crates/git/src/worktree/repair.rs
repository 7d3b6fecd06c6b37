//! Taking up a worktree that is there, whatever state it was left in.

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::process;
use repertoire_text::fs::{read_text, write_atomic};

use super::create::{Base, free_name};
use super::head::{attach, leave_progress};
use super::registry::{Entry, Record};
use super::stale::{remove_locks, set_setting};
use super::{How, Names, Wanted, Worktree, WorktreeError, Worktrees, lock, lock_worktree};
use crate::repo::{ChangeKind, Oid};
use crate::limits::{NESTED_REPOSITORIES_MAX, OWNER_BYTES_MAX, WORKTREE_FREE_WAIT, WORKTREE_LOCK_POLL};

/// Waits until no process of a former owner is left in a worktree. Those that carry its mark were killed, and need a moment.
async fn wait_until_free(dir: &Utf8Path) -> Result<(), WorktreeError> {
    let mut waited = Duration::ZERO;
    loop {
        let folder = dir.to_owned();
        let processes = tokio::task::spawn_blocking(move || process::occupants(&folder)).await;
        let processes =
            processes.map_err(|error| WorktreeError::io(dir, io::Error::other(error)))?;
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

impl Worktrees {
    /// Takes up the worktree of a run.
    pub(super) async fn take_up(
        &self,
        entry: Entry,
        wanted: &Wanted<'_>,
        names: &Names,
        common: &Utf8Path,
    ) -> Result<Worktree, WorktreeError> {
        if let Some(record) = &entry.record {
            record.check(&wanted.owner)?;
        }
        if entry.record.is_none() && !is_whole(&entry.git_dir) {
            forget(&entry)?;
            return self.create(wanted, names, common).await;
        }
        if !entry.dir.is_dir() {
            return self.make_again(entry, wanted, names, common).await;
        }
        wait_until_free(&entry.dir).await?;
        let mut notes: Vec<String> = link(&entry.dir, &entry.git_dir)?.into_iter().collect();
        let mut worktree = self.worktree_of(&entry, wanted, names, common).await?;
        let git_dir = &worktree.git_dir;
        notes.extend(remove_locks(&worktree.dir, git_dir, common, &worktree.branch).await?);
        self.mend_index(&entry, &worktree, &mut notes).await?;
        leave_progress(&worktree, names, &mut notes).await?;
        attach(&worktree, names, &mut notes).await?;
        if entry.locked.is_none() {
            lock_worktree(&self.repo, &worktree.dir, wanted.run).await?;
        }
        worktree.how = if notes.is_empty() { How::Adopted } else { How::Repaired(notes) };
        self.remember(&worktree).await?;
        Ok(worktree)
    }

    /// Puts a worktree right that somebody has just worked in: its link, its locks, and what is checked out. What was there
    /// at `since` stays part of the branch, whatever they did to it: if history was rewritten, the files are as they left
    /// them, on top of what it was. Tells what was mended.
    pub async fn put_right(
        &self,
        worktree: &Worktree,
        since: &Oid,
    ) -> Result<Vec<String>, WorktreeError> {
        let _lock = lock(&worktree.common_dir).await?;
        if let Some(record) = Record::read(&worktree.git_dir)? {
            record.check(&worktree.owner)?;
        }
        let names = Names::of_worktree(worktree);
        let (dir, git_dir, git) = (&worktree.dir, &worktree.git_dir, &worktree.git);
        if !dir.is_dir() {
            // To go on here would commit that every file is gone; who takes the run up again has it made anew.
            return Err(WorktreeError::Gone { dir: dir.clone() });
        }
        let mut notes: Vec<String> = link(dir, git_dir)?.into_iter().collect();
        notes.extend(remove_locks(dir, git_dir, &worktree.common_dir, &worktree.branch).await?);
        leave_progress(worktree, &names, &mut notes).await?;
        attach(worktree, &names, &mut notes).await?;
        if !git.is_ancestor(since, &git.head().await?).await? {
            git.ok(&["reset", "--soft", "--quiet", since.as_str()]).await?;
            notes.push(format!(
                "the history of `{}` was rewritten, and goes on from {} again",
                worktree.branch,
                since.short()
            ));
        }
        open_up(worktree, &mut notes).await?;
        Ok(notes)
    }

    /// The folder is gone: its registration goes as well, and the branch is checked out anew.
    async fn make_again(
        &self,
        entry: Entry,
        wanted: &Wanted<'_>,
        names: &Names,
        common: &Utf8Path,
    ) -> Result<Worktree, WorktreeError> {
        let dir = entry.dir.as_str();
        if let Some(record) = &entry.record {
            // Once it is forgotten by git, the branch is all that remembers.
            let base = Base { branch: record.base_branch.clone(), oid: record.base_oid.clone() };
            self.mark(&record.branch, &record.run, &base).await?;
        }
        let branch = entry.record.as_ref().map_or(&names.branch, |record| &record.branch);
        let names = Names { branch: branch.clone(), ..names.clone() };
        remove_locks(&entry.dir, &entry.git_dir, common, &names.branch).await?;
        let remove = ["worktree", "remove", "--force", "--force", dir];
        self.repo.ok_reaching(&remove, &[&self.root]).await?;
        if self.repo.branch_exists(&names.branch).await? {
            // The lock reason may have been all that told whose the branch is.
            let key = format!("branch.{}.repertoireRun", names.branch);
            set_setting(&self.repo, &key, wanted.run).await?;
        }
        self.create(wanted, &names, common).await
    }

    async fn worktree_of(
        &self,
        entry: &Entry,
        wanted: &Wanted<'_>,
        names: &Names,
        common: &Utf8Path,
    ) -> Result<Worktree, WorktreeError> {
        let git = self.repo.in_worktree(&entry.dir, &entry.git_dir, common);
        let (branch, base, set_up) = match &entry.record {
            Some(record) => {
                let base =
                    Base { branch: record.base_branch.clone(), oid: record.base_oid.clone() };
                (record.branch.clone(), base, record.set_up)
            }
            None => {
                let tip = self.repo.branch_tip(&names.branch).await?;
                let tip = match tip {
                    Some(tip) => tip,
                    None => git.head().await?,
                };
                let base = self.base_from_before(wanted, names, &tip).await?;
                (names.branch.clone(), base, false)
            }
        };
        Ok(Worktree {
            run: wanted.run.to_owned(),
            owner: wanted.owner.clone(),
            dir: entry.dir.clone(),
            git_dir: entry.git_dir.clone(),
            common_dir: common.to_owned(),
            git,
            branch,
            base_branch: base.branch,
            base_oid: base.oid,
            how: How::Adopted,
            set_up,
        })
    }

    /// Without an index every file would look deleted. If nobody was given the worktree yet, its checkout was cut short
    /// and is done again; otherwise the files are somebody's work, and only the index is made anew.
    async fn mend_index(
        &self,
        entry: &Entry,
        worktree: &Worktree,
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

/// A repository that somebody made within the worktree would be committed as a name without its files. Its git folder is moved
/// out of the worktree, so that they are part of the work. A submodule is in the index, and left alone.
async fn open_up(worktree: &Worktree, notes: &mut Vec<String>) -> Result<(), WorktreeError> {
    for _ in 0..NESTED_REPOSITORIES_MAX {
        let changes = worktree.git.status().await?.into_iter();
        let is_repository = |path: &Utf8PathBuf| path.join(".git").symlink_metadata().is_ok();
        let inner = changes
            .filter(|change| change.kind == ChangeKind::Untracked && change.path.ends_with('/'))
            .map(|change| worktree.dir.join(change.path))
            .find(is_repository);
        let Some(inner) = inner else { break };
        let (git, aside) = (inner.join(".git"), free_name(&worktree.dir)?);
        std::fs::rename(&git, &aside).map_err(|source| WorktreeError::io(&git, source))?;
        notes.push(format!("{inner} was a repository of its own; {git} is in {aside} now"));
    }
    Ok(())
}

/// Whether git had made all that it needs in a worktree's git folder.
fn is_whole(git_dir: &Utf8Path) -> bool {
    let has = |name: &str| std::fs::metadata(git_dir.join(name)).is_ok_and(|file| file.len() > 0);
    has("HEAD") && has("commondir")
}

/// Removes what is left of a worktree that git had only begun to make: nobody was given it, and nothing is in it but a
/// link. If there is more, it stays where it is.
fn forget(entry: &Entry) -> Result<(), WorktreeError> {
    let gone = |path: &Utf8Path, done: std::io::Result<()>| match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(WorktreeError::io(path, error))
        }
        _ => Ok(()),
    };
    let link = entry.dir.join(".git");
    gone(&link, std::fs::remove_file(&link))?;
    gone(&entry.git_dir, std::fs::remove_dir_all(&entry.git_dir))
}

/// The file `.git` in a worktree leads to its git folder. Whatever else is in its place is moved out of the worktree.
fn link(dir: &Utf8Path, git_dir: &Utf8Path) -> Result<Option<String>, WorktreeError> {
    let path = dir.join(".git");
    let io = |source| WorktreeError::io(&path, source);
    let mut note = "the link of the worktree to its repository was repaired".to_owned();
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => {
            if leads_to(&path) == git_dir.canonicalize_utf8().ok() {
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

fn leads_to(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let text = read_text(path, OWNER_BYTES_MAX).ok()?;
    let target = text.strip_prefix("gitdir: ")?.trim_end_matches('\n');
    path.parent()?.join(target).canonicalize_utf8().ok()
}
