//! The workplace of a run: its folder, the protected paths in it, the environment of its programs, and the sandbox.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{FolderHandle, LocationError};

use crate::confinement::{
    FollowedPaths, GitFollower, LazySandbox, PICTURES, SearchedTree, private_dir,
};
use crate::limits::ToolLimits;
use crate::protected::protected_in;

/// The workplace of a run.
#[derive(Clone, Debug)]
pub struct RunWorkplace {
    /// The work folder. Every path of a tool is beneath it.
    pub dir: Utf8PathBuf,
    /// The folder for output that is too large for a conversation.
    pub spill_dir: Utf8PathBuf,
    /// Folders outside that may be read: those of loaded skills.
    pub readable: ReadableFolders,
    /// Folders outside that programs may also write to, such as the repository of a worktree.
    pub writable: Vec<Utf8PathBuf>,
    /// Folders and files beneath `dir` that tools do not change: `.git` internals, agents' configuration, skills. If
    /// there are any, nested ones ([`is_protected`](crate::protected::is_protected)) are searched for and protected as
    /// well.
    pub protected: Vec<Utf8PathBuf>,
    /// If true, programs may only read the work folder. Their temporary files and home remain writable.
    pub is_read_only: bool,
    /// The environment of programs, without secrets.
    pub environment: Vec<(String, String)>,
    pub sandbox: LazySandbox,
    pub limits: ToolLimits,
    /// The folders below `dir` as the last search for protected paths found them. Clones share it.
    pub(crate) searched: SearchedTree,
    /// The git configuration that the last search for followed files read. Clones share it.
    pub(crate) follower: GitFollower,
}

impl RunWorkplace {
    /// A workplace in a folder, with no other readable folders, an empty environment and the default limits.
    pub fn new(
        dir: impl Into<Utf8PathBuf>,
        spill_dir: impl Into<Utf8PathBuf>,
        sandbox: impl Into<LazySandbox>,
    ) -> Self {
        let dir = dir.into();
        RunWorkplace {
            protected: protected_in(&dir),
            dir,
            spill_dir: spill_dir.into(),
            readable: ReadableFolders::default(),
            writable: Vec::new(),
            is_read_only: false,
            environment: Vec::new(),
            sandbox: sandbox.into(),
            limits: ToolLimits::default(),
            searched: SearchedTree::default(),
            follower: GitFollower::default(),
        }
    }

    /// Finds the files of the work folder that the user's git follows: included configuration, hooks and programs. They
    /// are protected like `protected`. `nested` are the nested protected paths.
    pub(crate) fn find_followed(&self, nested: &[PathBuf]) -> FollowedPaths {
        if self.protected.is_empty() {
            return FollowedPaths::default();
        }
        let home = self.environment.iter().find(|(name, _)| name == "HOME");
        let home = home.map(|(_, home)| Utf8Path::new(home));
        self.follower.find_paths(&self.dir, home, nested)
    }

    /// Returns true if the spill folder is not reached through a symlink. In the work folder, a repository or a program
    /// could replace it with a link, and output would go to the link's target.
    pub fn has_real_spill_folder(&self) -> bool {
        let Ok(inner) = self.spill_dir.strip_prefix(&self.dir) else { return true };
        let mut at = self.dir.clone();
        // Also check the private folder of programs inside it.
        let private = private_dir(self);
        inner.components().chain(private.components().next_back()).all(|part| {
            at.push(part);
            !at.is_symlink()
        })
    }
}

impl RunWorkplace {
    /// Lets tools and programs read the folder of a skill as well, wherever it is. Does nothing for a folder that
    /// programs can write to, which is readable already. Also does nothing if a symlink on its path lies in such a
    /// folder, since a program could redirect it.
    pub fn add_readable(&self, dir: &Utf8Path) {
        let dir = self.dir.join(dir);
        match resolve_links(&dir, MissingPart::Refused) {
            Ok(resolved) if !resolved.visited_paths().any(|path| self.is_writable(path)) => {
                self.readable.add(dir);
            }
            // A folder that cannot be resolved cannot be read either.
            Ok(_) | Err(_) => {}
        }
    }

    /// Returns true if programs can write to a path.
    fn is_writable(&self, path: &Utf8Path) -> bool {
        self.writable.iter().chain([&self.dir]).any(|folder| {
            path.starts_with(folder)
                || folder.canonicalize_utf8().is_ok_and(|real| path.starts_with(real))
        })
    }

    /// Opens the spill folder, creating it if needed. Within the work folder, symlinks are not followed.
    pub fn open_spill_folder(&self) -> std::io::Result<FolderHandle> {
        let Ok(inner) = self.spill_dir.strip_prefix(&self.dir) else {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true);
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(&self.spill_dir)?;
            return FolderHandle::open(&self.spill_dir);
        };
        let dir = FolderHandle::open(&self.dir)?;
        let inner = if inner == "" { Utf8Path::new(".") } else { inner };
        dir.make_folder(inner, 0o700).map_err(|error| match error {
            LocationError::Link { .. } => {
                std::io::Error::other(format!("{} is reached through a link", self.spill_dir))
            }
            other => other.into(),
        })
    }

    /// Removes the private folders of programs. Large output and files that were moved aside stay: the conversation may
    /// still refer to them.
    pub fn clean_up(&self) {
        // Ignore errors: the folders may never have been created, or a program may still use them. Links that a program
        // or a repository left in their place are not followed.
        let (base, inner) = match self.spill_dir.strip_prefix(&self.dir) {
            Ok(inner) => (&self.dir, inner),
            Err(_) => (&self.spill_dir, Utf8Path::new("")),
        };
        let Ok(base) = FolderHandle::open(base) else { return };
        let private = inner.join(private_dir(self).file_name().unwrap_or_default());
        for folder in ["tmp", "home", "root", PICTURES] {
            let _ = base.remove_all(&private.join(folder));
        }
        let _ = base.remove_empty(&private);
        if inner == "" {
            drop(std::fs::remove_dir(&self.spill_dir));
        } else {
            drop(base.remove_empty(inner));
        }
    }
}

/// A path with its symlinks resolved, and the links on the way.
#[derive(Debug, Default, PartialEq, Eq)]
struct ResolvedPath {
    real: Utf8PathBuf,
    /// The real locations of the links on the way.
    links: Vec<Utf8PathBuf>,
}

impl ResolvedPath {
    fn visited_paths(&self) -> impl Iterator<Item = &Utf8Path> {
        self.links.iter().chain([&self.real]).map(Utf8PathBuf::as_path)
    }
}

/// The maximum number of links in a path, as in the kernel.
const LINKS_MAX: usize = 40;

/// Whether a path may be resolved of which a part does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingPart {
    Refused,
    Kept,
}

/// The real path of an absolute path that need not exist, and the real paths of the links on the way.
pub(crate) fn visited_paths(path: &Utf8Path) -> Vec<Utf8PathBuf> {
    match resolve_links(path, MissingPart::Kept) {
        Ok(resolved) => resolved.links.into_iter().chain([resolved.real]).collect(),
        Err(_) => Vec::new(),
    }
}

/// Resolves an absolute path link by link.
fn resolve_links(path: &Utf8Path, missing: MissingPart) -> std::io::Result<ResolvedPath> {
    let mut resolved = ResolvedPath { real: Utf8PathBuf::from("/"), links: Vec::new() };
    let mut rest: Vec<String> = path.components().rev().map(|part| part.to_string()).collect();
    while let Some(part) = rest.pop() {
        let next = match part.as_str() {
            "/" => Utf8PathBuf::from("/"),
            "." => continue,
            ".." => resolved.real.parent().unwrap_or(Utf8Path::new("/")).to_owned(),
            name => resolved.real.join(name),
        };
        let is_link = match next.symlink_metadata() {
            Ok(metadata) => metadata.is_symlink(),
            Err(_) if missing == MissingPart::Kept => false,
            Err(error) => return Err(error),
        };
        if !is_link {
            resolved.real = next;
            continue;
        }
        let target = next.read_link_utf8()?;
        rest.extend(target.components().rev().map(|part| part.to_string()));
        resolved.links.push(next);
        if resolved.links.len() > LINKS_MAX {
            return Err(std::io::Error::other("too many links"));
        }
    }
    Ok(resolved)
}

/// Folders that may be read. The list grows during a run; clones share it.
#[derive(Clone, Debug, Default)]
pub struct ReadableFolders(Arc<RwLock<Vec<Utf8PathBuf>>>);

impl ReadableFolders {
    pub fn add(&self, dir: impl Into<Utf8PathBuf>) {
        let dir = dir.into();
        let mut dirs = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }

    pub fn list(&self) -> Vec<Utf8PathBuf> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn a_folder_that_a_program_could_replace_with_a_link_is_not_made_readable() {
        let bench = Bench::new();
        let workplace = bench.workplace();
        let outside = bench.outside();
        let link = |from: &Utf8Path, to: &Utf8Path| std::os::unix::fs::symlink(to, from).unwrap();
        for folder in ["skills/own", "skills/secret"] {
            std::fs::create_dir_all(outside.join(folder)).unwrap();
        }
        std::fs::create_dir_all(workplace.dir.join("tools/x")).unwrap();
        link(&workplace.dir.join("leads-out"), &outside.join("skills/secret"));
        link(&outside.join("through-the-work-folder"), &workplace.dir.join("leads-out"));
        link(&outside.join("named"), &outside.join("skills/own"));
        for path in ["tools/x", "leads-out"] {
            workplace.add_readable(&workplace.dir.join(path));
        }
        workplace.add_readable(&outside.join("through-the-work-folder"));
        workplace.add_readable(&outside.join("missing"));
        assert!(workplace.readable.list().is_empty());
        workplace.add_readable(&outside.join("named"));
        assert_eq!(workplace.readable.list(), [outside.join("named")]);
    }

    #[test]
    fn cleaning_up_removes_nothing_behind_a_link() {
        let bench = Bench::new();
        let mut workplace = bench.workplace();
        workplace.spill_dir = workplace.dir.join(".repertoire/output");
        bench.file(".repertoire/output/private/tmp/left", "x");
        workplace.clean_up();
        assert!(!workplace.spill_dir.exists());
        let precious = bench.outside().join("elsewhere/private/tmp/precious");
        repertoire_text::fs::write_atomic(&precious, b"x").unwrap();
        let elsewhere = bench.outside().join("elsewhere");
        std::os::unix::fs::symlink(elsewhere, &workplace.spill_dir).unwrap();
        workplace.clean_up();
        assert!(precious.exists());
    }
}
