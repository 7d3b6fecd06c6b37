//! Where a run works: its folder, what it may not touch there, the environment of its programs, and the sandbox.

use std::sync::{Arc, PoisonError, RwLock};

use camino::Utf8PathBuf;

use crate::limits::ToolLimits;
use crate::protected::protected_in;
use crate::sandbox::{Probed, SearchedTree, private_dir};

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
            environment: Vec::new(),
            sandbox: sandbox.into(),
            limits: ToolLimits::default(),
            searched: SearchedTree::default(),
        }
    }

    /// Whether the folder for output is what its path says. One in the work folder may be replaced by a link, by a
    /// repository or by a program, and would then open what the link leads to.
    pub(crate) fn spills_where_it_says(&self) -> bool {
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
    /// Removes what programs left in the folders that were theirs alone. Large output and what was moved aside stay:
    /// the conversation may still speak of them.
    pub fn clean_up(&self) {
        // A sandbox may never have made them, and a program may hold on to something: neither is worth a word.
        let private = private_dir(self);
        for folder in ["tmp", "home", "root"] {
            let _ = std::fs::remove_dir_all(private.join(folder));
        }
        let _ = std::fs::remove_dir(&private);
        let _ = std::fs::remove_dir(&self.spill_dir);
    }
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
