//! The walls round a call of git.
//!
//! Files and configuration of a repository can name programs: filters, merge drivers, and more in repositories inside of it.
//! So git runs in the sandbox, without network, and with nothing but the repository to read: for calls that only look it is
//! read-only as well. The user's own git configuration is not there either; the parts that matter are written into a file
//! (see `surroundings`). Where there is no sandbox, every setting of the repository that names a program is
//! replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::process::Spawn;
use repertoire_agent::sandbox::Network;
use repertoire_agent::workplace::Workplace;

use super::place::Place;
use super::{Git, GitError};

/// The access that a git call has to the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Read it.
    Read,
    /// Write files and objects; configuration and hooks stay read-only where the sandbox can do that.
    Write,
    /// Write the configuration as well.
    Configure,
}

/// Subcommands that write nothing with the options that the engine uses.
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

/// The access that a command line needs.
pub(super) fn access_of(args: &[&str]) -> Access {
    match args {
        ["config", rest @ ..] if !rest.iter().any(|arg| CONFIG_READING.contains(arg)) => {
            Access::Configure
        }
        // They remember, or forget, settings of a branch.
        ["branch", ..] | ["worktree", "add", ..] => Access::Configure,
        ["config" | "symbolic-ref", rest @ ..] if !rest.contains(&"-m") => Access::Read,
        ["worktree", "list", ..] => Access::Read,
        [subcommand, ..] if READING.contains(subcommand) => Access::Read,
        _ => Access::Write,
    }
}

const CONFIG_READING: &[&str] = &["--get", "--get-all", "--list"];

/// A folder outside of the repository for the private files of confined calls. Deleted with the last clone.
#[derive(Debug)]
pub(super) struct Scratch {
    dir: Utf8PathBuf,
    files: AtomicU64,
    _keep: tempfile::TempDir,
}

impl Scratch {
    pub(super) fn new() -> Result<Self, GitError> {
        let temporary = Utf8Path::new("the folder for temporary files");
        let io = |source| GitError::Io { path: temporary.to_owned(), source };
        let keep = tempfile::Builder::new().prefix("repertoire-git-").tempdir().map_err(io)?;
        let dir = keep.path().canonicalize().map_err(io)?;
        let dir = Utf8PathBuf::try_from(dir).map_err(|error| io(error.into_io_error()))?;
        std::fs::create_dir(dir.join("nothing")).map_err(io)?;
        Ok(Scratch { dir, files: AtomicU64::new(0), _keep: keep })
    }

    /// Writes a file that confined calls can read.
    pub(super) fn file(&self, name: &str, text: &str) -> Result<Utf8PathBuf, GitError> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("{name}-{number}"));
        let written = repertoire_text::fs::write_private(&path, text.as_bytes());
        written.map_err(|source| GitError::Io { path: path.clone(), source })?;
        Ok(path)
    }
}

impl Git {
    pub(super) fn scratch(&self) -> Result<Arc<Scratch>, GitError> {
        if let Some(scratch) = self.scratch.get() {
            return Ok(scratch.clone());
        }
        let made = Arc::new(Scratch::new()?);
        Ok(self.scratch.get_or_init(|| made).clone())
    }

    /// The same call inside the walls, where there are any. `reach` are folders outside of the repository that it writes to,
    /// `readable` files that it reads.
    pub(super) fn confined(
        &self,
        spawn: Spawn,
        place: &Place,
        access: Access,
        reach: &[Utf8PathBuf],
        readable: &[Utf8PathBuf],
    ) -> Result<Spawn, GitError> {
        let scratch = self.scratch()?;
        let mut workplace =
            Workplace::new(scratch.dir.join("nothing"), &scratch.dir, self.sandbox.clone());
        workplace.protected.clear();
        for path in readable.iter().cloned().chain(place.alternates()) {
            workplace.readable.add(path);
        }
        match access {
            Access::Read => {
                place.folders().into_iter().for_each(|path| workplace.readable.add(path))
            }
            Access::Write | Access::Configure => workplace.writable = place.folders(),
        }
        if access == Access::Write {
            kept(place).into_iter().for_each(|path| workplace.readable.add(path));
        }
        workplace.writable.extend(reach.iter().cloned());
        Ok(self.sandbox.confine(spawn, &workplace, Network::Off))
    }
}

/// Paths of a repository that only [`Access::Configure`] changes: a narrower rule wins over the one for the whole folder.
fn kept(place: &Place) -> Vec<Utf8PathBuf> {
    let inner = ["hooks", "config", "config.worktree", "info/attributes"];
    let mut kept: Vec<Utf8PathBuf> = inner.iter().map(|name| place.common_dir.join(name)).collect();
    if place.git_dir != place.common_dir {
        kept.push(place.git_dir.join("config.worktree"));
    }
    kept.retain(|path| path.exists());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_only_look_get_a_repository_that_they_cannot_write() {
        for (args, access) in [
            (&["status", "--porcelain=v2"][..], Access::Read),
            (&["config", "--local", "--get", "--null", "a.b"], Access::Read),
            (&["config", "--local", "--replace-all", "a.b", "c"], Access::Configure),
            (&["symbolic-ref", "--quiet", "HEAD"], Access::Read),
            (&["symbolic-ref", "-m", "why", "HEAD", "refs/heads/x"], Access::Write),
            (&["worktree", "list", "--porcelain"], Access::Read),
            (&["worktree", "add", "x"], Access::Configure),
            (&["branch", "--delete", "x"], Access::Configure),
            (&["add", "--all"], Access::Write),
            (&["something-new"], Access::Write),
        ] {
            assert_eq!(access_of(args), access, "{args:?}");
        }
    }
}
