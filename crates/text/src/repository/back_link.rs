//! Checks that a work tree and its git folder belong together.
//!
//! Git follows a `.git` file, a link or a `commondir` file wherever it leads. The target cannot be forged by the one who
//! wrote the work tree, so it decides: it has to name the work tree in turn.

use camino::{Utf8Path, Utf8PathBuf};

use super::configuration::configured_values;
use super::{GitRepository, LINK_BYTES_MAX};
use crate::fs::read_text;

/// The maximum size of a repository's configuration.
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// Returns true if the git folder is inside the work tree, or names it.
pub(super) fn leads_back(repository: &GitRepository) -> bool {
    let GitRepository { top, git_dir, common_dir } = repository;
    let mark = top.join(".git");
    if mark.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return is_same(common_dir, &mark);
    }
    if common_dir == git_dir {
        return is_git_folder_of(git_dir, top);
    }
    is_worktree_of(git_dir, common_dir)
        && named_path(git_dir, "gitdir").is_some_and(|named| is_same(&named, &mark))
}

/// Returns true for the git folder of a submodule, which names its work tree, and for one that was made with
/// `git init --separate-git-dir`, which names none. The `.git` folder of another work tree does not name it either.
fn is_git_folder_of(git_dir: &Utf8Path, top: &Utf8Path) -> bool {
    let config = read_text(&git_dir.join("config"), CONFIG_BYTES_MAX).unwrap_or_default();
    match configured_values(&config, "core", "worktree").last() {
        Some(named) => is_same(&git_dir.join(named), top),
        None => {
            let bare = configured_values(&config, "core", "bare");
            git_dir.file_name() != Some(".git") && bare.last().is_some_and(|bare| bare == "false")
        }
    }
}

fn is_worktree_of(git_dir: &Utf8Path, common_dir: &Utf8Path) -> bool {
    git_dir.parent().is_some_and(|folder| is_same(folder, &common_dir.join("worktrees")))
}

/// The path in a file of the git folder.
fn named_path(git_dir: &Utf8Path, file: &str) -> Option<Utf8PathBuf> {
    let text = read_text(&git_dir.join(file), LINK_BYTES_MAX).ok()?;
    Some(git_dir.join(text.trim_end_matches(['\n', '\r'])))
}

fn is_same(one: &Utf8Path, other: &Utf8Path) -> bool {
    let real = |path: &Utf8Path| path.canonicalize_utf8().ok();
    real(one).is_some_and(|one| Some(one) == real(other))
}
