//! Where a run works: its folder, what it may not touch there, the environment of its programs, and the sandbox.

use std::sync::{Arc, PoisonError, RwLock};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{Folder, PlaceError};

use crate::limits::ToolLimits;
use crate::protected::protected_in;
use crate::confinement::{PICTURES, Probed, SearchedTree, private_dir};

/// Where a run works.
#[derive(Clone, Debug)]
pub struct Workplace {
    /// The folder; every path of a tool is beneath it.
    pub dir: Utf8PathBuf,
    /// Where output goes that is too large for a conversation.
    pub spill_dir: Utf8PathBuf,
    /// Folders outside that may be read: those of skills that are loaded.
    pub readable: Readable,
    /// Folders outside that programs may write to as well: the repository of a worktree, for instance.
    pub writable: Vec<Utf8PathBuf>,
    /// Folders and files beneath `dir` that tools do not change: `.git` internals, agents' configuration, skills. If there
    /// are any, nested ones ([`is_protected`](crate::protected::is_protected)) are searched for and protected as well.
    pub protected: Vec<Utf8PathBuf>,
    /// Whether programs may only read the folder. Their temporary files and home remain writable.
    pub is_read_only: bool,
    /// The environment of programs, scrubbed.
    pub environment: Vec<(String, String)>,
    /// What keeps programs in their place.
    pub sandbox: Probed,
    /// Caps.
    pub limits: ToolLimits,
    /// The folders below `dir` as the last search for protected paths found them. Clones share it.
    pub(crate) searched: SearchedTree,
}

impl Workplace {
    /// A workplace in a folder, with nothing else to read, an empty environment and the usual limits.
    pub fn new(
        dir: impl Into<Utf8PathBuf>,
        spill_dir: impl Into<Utf8PathBuf>,
        sandbox: impl Into<Probed>,
    ) -> Self {
        let dir = dir.into();
        Workplace {
            protected: protected_in(&dir),
            dir,
            spill_dir: spill_dir.into(),
            readable: Readable::default(),
            writable: Vec::new(),
            is_read_only: false,
            environment: Vec::new(),
            sandbox: sandbox.into(),
            limits: ToolLimits::default(),
            searched: SearchedTree::default(),
        }
    }

    /// Whether the folder for output is what its path says. One in the work folder may be replaced by a link, by a
    /// repository or by a program, and would then open what the link leads to.
    pub fn spills_where_it_says(&self) -> bool {
        let Ok(inner) = self.spill_dir.strip_prefix(&self.dir) else { return true };
        let mut at = self.dir.clone();
        // Programs have a folder of their own in it.
        let private = private_dir(self);
        inner.components().chain(private.components().next_back()).all(|part| {
            at.push(part);
            !at.is_symlink()
        })
    }
}

impl Workplace {
    /// Lets tools and programs read a folder of a skill as well, wherever it is. Nothing is added for a folder that programs
    /// can write to: it is readable already. The same holds if a link on the way lies in such a folder, since a program
    /// could let it lead elsewhere.
    pub fn add_readable(&self, dir: &Utf8Path) {
        let writable = || self.writable.iter().chain([&self.dir]);
        let is_writable = |path: &Utf8Path| {
            writable().any(|folder| {
                path.starts_with(folder)
                    || folder.canonicalize_utf8().is_ok_and(|real| path.starts_with(real))
            })
        };
        let dir = self.dir.join(dir);
        match resolve_links(&dir) {
            Ok(resolved) if !resolved.visited().any(is_writable) => self.readable.add(dir),
            // A folder that cannot be resolved cannot be read either.
            Ok(_) | Err(_) => {}
        }
    }

    /// Makes the folder for output if it is not there, and opens it. In the work folder no link is followed to it.
    pub fn open_spill_folder(&self) -> std::io::Result<Folder> {
        let Ok(inner) = self.spill_dir.strip_prefix(&self.dir) else {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true);
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(&self.spill_dir)?;
            return Folder::open(&self.spill_dir);
        };
        let dir = Folder::open(&self.dir)?;
        let inner = if inner == "" { Utf8Path::new(".") } else { inner };
        dir.make_folder(inner, 0o700).map_err(|error| match error {
            PlaceError::Link { .. } => {
                std::io::Error::other(format!("{} is reached through a link", self.spill_dir))
            }
            other => other.into(),
        })
    }

    /// Removes what programs left in the folders that were theirs alone. Large output and what was moved aside stay:
    /// the conversation may still speak of them.
    pub fn clean_up(&self) {
        // A sandbox may never have made them, and a program may hold on to something: neither is worth a word. A link
        // that a program or a repository left in their place is not followed.
        let (base, inner) = match self.spill_dir.strip_prefix(&self.dir) {
            Ok(inner) => (&self.dir, inner),
            Err(_) => (&self.spill_dir, Utf8Path::new("")),
        };
        let Ok(base) = Folder::open(base) else { return };
        let private = inner.join(private_dir(self).file_name().unwrap_or_default());
        for folder in ["tmp", "home", "root", PICTURES] {
            let _ = base.remove_all(&private.join(folder));
        }
        let _ = base.remove_empty(&private);
        match inner == "" {
            true => drop(std::fs::remove_dir(&self.spill_dir)),
            false => drop(base.remove_empty(inner)),
        }
    }
}

/// The way that a path with links takes.
#[derive(Debug, Default, PartialEq, Eq)]
struct ResolvedPath {
    real: Utf8PathBuf,
    /// The real locations of the links on the way.
    links: Vec<Utf8PathBuf>,
}

impl ResolvedPath {
    fn visited(&self) -> impl Iterator<Item = &Utf8Path> {
        self.links.iter().chain([&self.real]).map(Utf8PathBuf::as_path)
    }
}

/// The maximum number of links in a path, as in the kernel.
const LINKS_MAX: usize = 40;

/// Resolves an absolute path link by link.
fn resolve_links(path: &Utf8Path) -> std::io::Result<ResolvedPath> {
    let mut resolved = ResolvedPath { real: Utf8PathBuf::from("/"), links: Vec::new() };
    let mut rest: Vec<String> = path.components().rev().map(|part| part.to_string()).collect();
    while let Some(part) = rest.pop() {
        let next = match part.as_str() {
            "/" => Utf8PathBuf::from("/"),
            "." => continue,
            ".." => resolved.real.parent().unwrap_or(Utf8Path::new("/")).to_owned(),
            name => resolved.real.join(name),
        };
        if !next.symlink_metadata()?.is_symlink() {
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

/// Folders that may be read. It grows while a run goes on, and everybody who has a clone sees that.
#[derive(Clone, Debug, Default)]
pub struct Readable(Arc<RwLock<Vec<Utf8PathBuf>>>);

impl Readable {
    /// Adds a folder.
    pub fn add(&self, dir: impl Into<Utf8PathBuf>) {
        let dir = dir.into();
        let mut dirs = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }

    /// The folders.
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
