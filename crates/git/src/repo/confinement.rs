//! The sandbox around a call of git.
//!
//! Files and configuration of a repository can name programs: filters, merge drivers, and more in
//! nested repositories. So git runs in the sandbox, without network, and can read nothing but the
//! repository, which is read-only for calls that do not write. The user's own git configuration is
//! not visible either; the parts that matter are written to a file. Without a sandbox, each setting
//! of the repository that names a program is replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::confinement::NetworkAccess;
use repertoire_sandbox::process::ProcessSpec;
use repertoire_sandbox::workplace::RunWorkplace;

use super::call::CallConfinement;
use super::repository_dirs::RepositoryDirs;
use super::{GitClient, GitError};

/// The access of a git call to the repository. Only [`Access::Configure`] allows changing
/// configuration and hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepositoryAccess {
    /// Read only.
    Read,
    /// Write objects, refs and the index, but not the work tree.
    Record,
    /// Also write the files of the work tree.
    Write,
    /// Write the configuration and the list of worktrees. No filter runs in such a call.
    Configure,
}

/// Subcommands that write nothing when called with the options that the engine uses.
const READING: &[&str] = &[
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-ref-format",
    "diff",
    "diff-tree",
    "for-each-ref",
    "hash-object",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "rev-list",
    "rev-parse",
    "show-ref",
    "status",
];

/// Subcommands that do not write the work tree when called with the options that the engine uses.
const RECORDING: &[&str] = &[
    "add",
    "checkout-index",
    "commit",
    "commit-tree",
    "merge-tree",
    "read-tree",
    "symbolic-ref",
    "update-index",
    "update-ref",
    "write-tree",
];

/// The access that a command line needs.
pub(super) fn access_of(args: &[&str]) -> RepositoryAccess {
    match args {
        ["config", rest @ ..] if !rest.iter().any(|arg| CONFIG_READING.contains(arg)) => {
            RepositoryAccess::Configure
        }
        ["worktree", "list", ..] => RepositoryAccess::Read,
        // Both write or delete settings of a branch.
        ["branch" | "worktree", ..] => RepositoryAccess::Configure,
        ["config" | "symbolic-ref", rest @ ..] if !rest.contains(&"-m") => RepositoryAccess::Read,
        ["reset", rest @ ..] if rest.contains(&"--soft") || rest.contains(&"--mixed") => {
            RepositoryAccess::Record
        }
        [subcommand, ..] if READING.contains(subcommand) => RepositoryAccess::Read,
        [subcommand, ..] if RECORDING.contains(subcommand) => RepositoryAccess::Record,
        _ => RepositoryAccess::Write,
    }
}

const CONFIG_READING: &[&str] = &["--get", "--get-all", "--list"];

/// A folder outside the repository for private files of confined calls. Deleted with the last
/// clone.
#[derive(Debug)]
pub(super) struct ScratchDir {
    dir: Utf8PathBuf,
    files: AtomicU64,
    _keep: tempfile::TempDir,
}

impl ScratchDir {
    pub(super) fn new() -> Result<Self, GitError> {
        let temporary = Utf8Path::new("the folder for temporary files");
        let io = |source| GitError::Io { path: temporary.to_owned(), source };
        let keep = tempfile::Builder::new().prefix("repertoire-git-").tempdir().map_err(io)?;
        let dir = keep.path().canonicalize().map_err(io)?;
        let dir = Utf8PathBuf::try_from(dir).map_err(|error| io(error.into_io_error()))?;
        std::fs::create_dir(dir.join("nothing")).map_err(io)?;
        Ok(ScratchDir { dir, files: AtomicU64::new(0), _keep: keep })
    }

    /// Writes a file that confined calls can read.
    pub(super) fn write_file(&self, name: &str, text: &str) -> Result<Utf8PathBuf, GitError> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("{name}-{number}"));
        let written = repertoire_text::fs::write_private(&path, text.as_bytes());
        written.map_err(|source| GitError::Io { path: path.clone(), source })?;
        Ok(path)
    }
}

impl GitClient {
    pub(super) fn scratch_dir(&self) -> Result<Arc<ScratchDir>, GitError> {
        if let Some(scratch) = self.scratch.get() {
            return Ok(scratch.clone());
        }
        let made = Arc::new(ScratchDir::new()?);
        Ok(self.scratch.get_or_init(|| made).clone())
    }

    /// Returns true if a call may run programs that the repository's configuration names. That
    /// needs a sandbox which keeps them from changing hooks and configuration.
    pub(super) fn may_run_programs(&self, access: RepositoryAccess) -> bool {
        match access {
            RepositoryAccess::Read => self.sandbox.is_enforced(),
            RepositoryAccess::Record | RepositoryAccess::Write => self.sandbox.protects_paths(),
            RepositoryAccess::Configure => false,
        }
    }

    /// The protected paths that do not exist, for which the sandbox therefore cannot have a rule.
    pub(super) fn absent_kept_paths(
        &self,
        confinement: CallConfinement,
    ) -> Result<Vec<Utf8PathBuf>, GitError> {
        match confinement {
            CallConfinement::Repository(RepositoryAccess::Record | RepositoryAccess::Write) => {
                let kept = kept_paths(&*self.repository_dirs()?);
                Ok(kept.into_iter().filter(|path| path.symlink_metadata().is_err()).collect())
            }
            CallConfinement::Repository(_) | CallConfinement::None => Ok(Vec::new()),
        }
    }

    /// Confines a call to the sandbox. `reach` lists folders outside the repository that it writes
    /// to, `readable` files that it reads.
    pub(super) fn confine_spawn(
        &self,
        spawn: ProcessSpec,
        place: &RepositoryDirs,
        access: RepositoryAccess,
        reach: &[Utf8PathBuf],
        readable: &[Utf8PathBuf],
    ) -> Result<ProcessSpec, GitError> {
        let scratch = self.scratch_dir()?;
        let mut workplace =
            RunWorkplace::new(scratch.dir.join("nothing"), &scratch.dir, self.sandbox.clone());
        workplace.protected.clear();
        for path in readable.iter().cloned().chain(place.alternate_objects()) {
            workplace.readable.add(path);
        }
        let (mut readable, mut writable) = (Vec::new(), Vec::new());
        match access {
            RepositoryAccess::Read => readable = place.root_folders(),
            RepositoryAccess::Record => {
                readable.extend(place.top.clone());
                writable = vec![place.common_dir.clone(), place.git_dir.clone()];
            }
            RepositoryAccess::Write | RepositoryAccess::Configure => {
                writable = place.root_folders();
                writable.push(place.git_dir.clone());
            }
        }
        if matches!(access, RepositoryAccess::Record | RepositoryAccess::Write) {
            // A rule for a symbolic link would grant access to its target. Without a rule, the
            // target cannot be reached.
            let is_plain =
                |path: &Utf8PathBuf| path.canonicalize_utf8().is_ok_and(|real| real == *path);
            readable.extend(kept_paths(place).into_iter().filter(is_plain));
        }
        readable.into_iter().for_each(|path| workplace.readable.add(path));
        workplace.writable.extend(writable);
        workplace.writable.extend(reach.iter().cloned());
        Ok(self.sandbox.confine(spawn, &workplace, NetworkAccess::Off))
    }
}

/// Paths of a repository that only [`Access::Configure`] may change. The rule for the narrower path
/// wins over the one for the whole folder.
fn kept_paths(place: &RepositoryDirs) -> Vec<Utf8PathBuf> {
    let inner = ["hooks", "config", "config.worktree", "info/attributes", "modules", "worktrees"];
    let mut kept: Vec<Utf8PathBuf> = inner.iter().map(|name| place.common_dir.join(name)).collect();
    if place.git_dir != place.common_dir {
        kept.push(place.git_dir.join("config.worktree"));
    }
    kept
}

/// Removes protected paths that a call has created. Git itself does not create them, so a filter
/// did.
pub(super) fn remove_created(absent: &[Utf8PathBuf]) -> Result<(), GitError> {
    for path in absent {
        let removed = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
            Ok(_) => std::fs::remove_file(path),
            Err(_) => Ok(()),
        };
        removed.map_err(|source| GitError::Io { path: path.clone(), source })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_only_look_get_a_repository_that_they_cannot_write() {
        for (args, access) in [
            (&["status", "--porcelain=v2"][..], RepositoryAccess::Read),
            (&["config", "--local", "--get", "--null", "a.b"], RepositoryAccess::Read),
            (&["config", "--local", "--replace-all", "a.b", "c"], RepositoryAccess::Configure),
            (&["symbolic-ref", "--quiet", "HEAD"], RepositoryAccess::Read),
            (&["symbolic-ref", "-m", "why", "HEAD", "refs/heads/x"], RepositoryAccess::Record),
            (&["worktree", "list", "--porcelain"], RepositoryAccess::Read),
            (&["worktree", "add", "x"], RepositoryAccess::Configure),
            (&["branch", "--delete", "x"], RepositoryAccess::Configure),
            (&["worktree", "remove", "--force", "x"], RepositoryAccess::Configure),
            (&["add", "--all"], RepositoryAccess::Record),
            (&["reset", "--mixed", "--quiet", "x"], RepositoryAccess::Record),
            (&["reset", "--hard", "--quiet", "x"], RepositoryAccess::Write),
            (&["something-new"], RepositoryAccess::Write),
        ] {
            assert_eq!(access_of(args), access, "{args:?}");
        }
    }
}
