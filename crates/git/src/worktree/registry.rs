//! The registered worktrees of a repository, and their owners.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{ReadError, read_text, write_atomic};
use serde::{Deserialize, Serialize};

use super::{
    PreparedWorktree, RunWorktrees, WorktreeError, WorktreeOwner, WorktreePreparation, lock_reason,
};
use crate::limits::OWNER_BYTES_MAX;
use crate::repo::{GitClient, GitError, GitObjectId};

const OWNER: &str = "repertoire-owner.json";

/// The owner file of a worktree, in its git folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WorktreeOwnerRecord {
    pub(super) version: u32,
    pub(super) run: String,
    pub(super) worker: String,
    pub(super) token: u64,
    pub(super) branch: String,
    pub(super) base_branch: String,
    pub(super) base_oid: GitObjectId,
    #[serde(default)]
    pub(super) set_up: bool,
}

impl WorktreeOwnerRecord {
    pub(super) fn for_worktree(worktree: &PreparedWorktree) -> WorktreeOwnerRecord {
        WorktreeOwnerRecord {
            version: 1,
            run: worktree.run.clone(),
            worker: worktree.owner.worker.clone(),
            token: worktree.owner.token,
            branch: worktree.branch.clone(),
            base_branch: worktree.base_branch.clone(),
            base_oid: worktree.base_oid.clone(),
            set_up: worktree.set_up,
        }
    }

    pub(super) fn read(git_dir: &Utf8Path) -> Result<Option<WorktreeOwnerRecord>, WorktreeError> {
        let path = git_dir.join(OWNER);
        let bad = |why: String| WorktreeError::BadOwner { path: path.clone(), why };
        let text = match read_text(&path, OWNER_BYTES_MAX) {
            Ok(text) => text,
            Err(ReadError::NotFound) => return Ok(None),
            Err(error) => return Err(bad(error.to_string())),
        };
        serde_json::from_str(&text).map(Some).map_err(|error| bad(error.to_string()))
    }

    pub(super) fn write(&self, git_dir: &Utf8Path) -> Result<(), WorktreeError> {
        let path = git_dir.join(OWNER);
        let text = serde_json::to_string_pretty(self).expect("a record is text and numbers");
        write_atomic(&path, text.as_bytes()).map_err(|source| WorktreeError::from_io(&path, source))
    }

    /// Returns an error if the lease has passed to another worker.
    pub(super) fn check_owner(&self, owner: &WorktreeOwner) -> Result<(), WorktreeError> {
        let same = self.token == owner.token && self.worker == owner.worker;
        if same || self.token < owner.token {
            Ok(())
        } else {
            Err(WorktreeError::Fenced {
                run: self.run.clone(),
                worker: self.worker.clone(),
                theirs: self.token,
                ours: owner.token,
            })
        }
    }
}

/// A worktree that is registered in git.
#[derive(Debug)]
pub(super) struct RegisteredWorktree {
    pub(super) git_dir: Utf8PathBuf,
    pub(super) dir: Utf8PathBuf,
    pub(super) record: Option<WorktreeOwnerRecord>,
    /// The error if the owner file exists but cannot be read.
    bad: Option<WorktreeError>,
    /// The reason of git's lock, if it is locked.
    pub(super) locked: Option<String>,
}

/// The worktree of a run, for listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeListing {
    pub run: String,
    /// The worker that holds or last held the lease.
    pub worker: String,
    pub token: u64,
    pub dir: Utf8PathBuf,
    /// True if the folder exists.
    pub is_there: bool,
    pub branch: String,
    /// The branch that the work started from.
    pub base_branch: String,
    /// The commit that the work started from.
    pub base_oid: GitObjectId,
}

impl RunWorktrees {
    /// Lists the worktrees of runs, sorted by folder.
    pub async fn list(&self) -> Result<Vec<WorktreeListing>, WorktreeError> {
        let common = self.repo.common_dir().await?;
        let ours = self.own_worktrees(&common)?.into_iter().filter_map(|entry| {
            let record = entry.record?;
            Some(WorktreeListing {
                is_there: entry.dir.is_dir(),
                dir: entry.dir,
                run: record.run,
                worker: record.worker,
                token: record.token,
                branch: record.branch,
                base_branch: record.base_branch,
                base_oid: record.base_oid,
            })
        });
        Ok(ours.collect())
    }

    /// The worktree of a run in its present state, in order to deliver it. Does not take over
    /// ownership.
    pub async fn of_run(&self, run: &str) -> Result<Option<PreparedWorktree>, WorktreeError> {
        let common = self.repo.common_dir().await?;
        let Some(entry) = find_worktree(&common, run)? else { return Ok(None) };
        let Some(record) = entry.record else { return Ok(None) };
        Ok(Some(PreparedWorktree {
            run: record.run,
            owner: WorktreeOwner { worker: record.worker, token: record.token },
            git: self.repo.in_worktree(&entry.dir, &entry.git_dir, &common),
            dir: entry.dir,
            git_dir: entry.git_dir,
            common_dir: common,
            branch: record.branch,
            base_branch: record.base_branch,
            base_oid: record.base_oid,
            how: WorktreePreparation::Adopted,
            set_up: record.set_up,
        }))
    }

    /// The worktrees beneath our root. Those elsewhere belong to an installation with a different
    /// journal.
    pub(super) fn own_worktrees(
        &self,
        common: &Utf8Path,
    ) -> Result<Vec<RegisteredWorktree>, WorktreeError> {
        let root = self.root.canonicalize_utf8().unwrap_or_else(|_| self.root.clone());
        let all = read_entries(common)?.into_iter();
        Ok(all.filter(|entry| entry.dir.starts_with(&root)).collect())
    }
}

/// Finds the worktree of a run, by its record, or by its lock reason if its creation was
/// interrupted.
pub(super) fn find_worktree(
    common: &Utf8Path,
    run: &str,
) -> Result<Option<RegisteredWorktree>, WorktreeError> {
    let reason = lock_reason(run);
    let found = read_entries(common)?.into_iter().find(|entry| match &entry.record {
        Some(record) => record.run == run,
        None => entry.locked.as_ref() == Some(&reason),
    });
    match found {
        // Never guess the owner of a worktree.
        Some(RegisteredWorktree { bad: Some(bad), .. }) => Err(bad),
        found => Ok(found),
    }
}

/// All registered worktrees except the main one. An unreadable record must not hide the others, so
/// it is kept in the entry.
fn read_entries(common: &Utf8Path) -> Result<Vec<RegisteredWorktree>, WorktreeError> {
    let folder = common.join("worktrees");
    let listed = match repertoire_text::fs::list_entries(&folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(WorktreeError::from_io(&folder, error)),
    };
    let mut entries = Vec::new();
    for listed in listed {
        let listed = listed.map_err(|error| WorktreeError::from_io(&folder, error))?;
        let Some(name) = listed.name.to_str() else { continue };
        entries.extend(read_entry(folder.join(name)));
    }
    entries.sort_by(|a, b| a.dir.cmp(&b.dir));
    Ok(entries)
}

fn read_entry(git_dir: Utf8PathBuf) -> Option<RegisteredWorktree> {
    // A worktree that git has only partly created or removed has no such file.
    let link = read_text(&git_dir.join("gitdir"), OWNER_BYTES_MAX).ok()?;
    let link = git_dir.join(link.trim_end_matches('\n'));
    let dir = link.parent()?;
    // With `worktree.useRelativePaths`, git writes relative paths, which may contain `..`.
    let dir = dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned());
    let locked = read_text(&git_dir.join("locked"), OWNER_BYTES_MAX).ok();
    let locked = locked.map(|reason| reason.trim_end_matches('\n').to_owned());
    let (record, bad) = match WorktreeOwnerRecord::read(&git_dir) {
        Ok(record) => (record, None),
        Err(bad) => (None, Some(bad)),
    };
    Some(RegisteredWorktree { git_dir, dir, record, bad, locked })
}

/// The checkouts of a repository with their branches. The main one comes first, unless it is bare.
pub(super) async fn list_checkouts(
    repo: &GitClient,
) -> Result<Vec<(Utf8PathBuf, Option<String>)>, GitError> {
    let bytes = repo.ok(&["worktree", "list", "--porcelain", "-z"]).await?;
    let text = String::from_utf8_lossy(&bytes);
    let mut checkouts: Vec<(Utf8PathBuf, Option<String>)> = Vec::new();
    for line in text.split('\0') {
        if let Some(dir) = line.strip_prefix("worktree ") {
            checkouts.push((dir.into(), None));
        }
        if let Some(branch) = line.strip_prefix("branch refs/heads/")
            && let Some((_, checked_out)) = checkouts.last_mut()
        {
            *checked_out = Some(branch.to_owned());
        }
        if line == "bare" {
            checkouts.pop();
        }
    }
    Ok(checkouts)
}
