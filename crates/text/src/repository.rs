//! Finds the git repository around a folder by reading files, without starting git.
//!
//! The rules are git's: the nearest folder with a `.git` that is a repository (`HEAD`, `objects` and `refs`, or a file
//! that names such a folder), on the same file system, and owned by the current user. An empty `.git` folder is
//! ignored. A repository of another user is refused unless the user's `safe.directory` lists it: its configuration
//! could name programs to run. Unlike git, a `.git` that leads to another folder counts only if that folder leads back,
//! because an unpacked archive could otherwise pass off another repository of the user as its own.

use camino::{Utf8Path, Utf8PathBuf};

use crate::fs::read_text;

mod back_link;
mod configuration;
mod owner;

pub use self::configuration::{ConfigSetting, config_settings, configured_values};
pub use self::owner::RepositoryOwners;

/// The maximum size of a `HEAD`, `commondir` or `.git` file.
const LINK_BYTES_MAX: u64 = 8 * 1024;

/// A git repository with a work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitRepository {
    /// The root of the work tree, which contains `.git`. An ancestor of the folder that was searched from, spelled as
    /// there.
    pub top: Utf8PathBuf,
    /// The git folder of this work tree.
    pub git_dir: Utf8PathBuf,
    /// The git folder that all work trees of the repository share: `git_dir` itself, except in a linked work tree.
    pub common_dir: Utf8PathBuf,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepositorySearch {
    Found(GitRepository),
    /// A repository that git would refuse as well. The search ends there.
    Refused {
        /// The root of its work tree.
        top: Utf8PathBuf,
        reason: RepositoryRefusal,
    },
    NotFound,
}

/// The reason why a repository is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepositoryRefusal {
    /// Another user owns it.
    OtherOwner,
    /// Its `.git` is a file that does not lead to a repository.
    BrokenLink,
    /// Its `.git` leads to a git folder that belongs to another work tree.
    OtherWorkTree,
}

/// Finds the repository around a folder. `home` contains the user's git configuration.
pub fn search_repository(here: &Utf8Path, home: &Utf8Path) -> RepositorySearch {
    search_repository_with(here, &RepositoryOwners::of_process(home))
}

/// Like [`search_repository`], with explicitly given accepted owners.
pub fn search_repository_with(here: &Utf8Path, owners: &RepositoryOwners) -> RepositorySearch {
    let file_system = owner::file_system_of(here);
    for top in here.ancestors() {
        if owner::file_system_of(top) != file_system {
            return RepositorySearch::NotFound;
        }
        match read_git_entry(top) {
            GitEntry::None => {}
            GitEntry::Broken => {
                return RepositorySearch::Refused {
                    top: top.to_owned(),
                    reason: RepositoryRefusal::BrokenLink,
                };
            }
            GitEntry::Repository(repository) => {
                return match refusal_of(&repository, owners) {
                    None => RepositorySearch::Found(repository),
                    Some(reason) => RepositorySearch::Refused { top: top.to_owned(), reason },
                };
            }
        }
    }
    RepositorySearch::NotFound
}

/// The reason to refuse a repository; `None` if it is the user's, or listed as safe.
fn refusal_of(repository: &GitRepository, owners: &RepositoryOwners) -> Option<RepositoryRefusal> {
    let reason = if !owners.own_all_of(repository) {
        RepositoryRefusal::OtherOwner
    } else if !back_link::leads_back(repository) {
        RepositoryRefusal::OtherWorkTree
    } else {
        return None;
    };
    (!owners.lists_as_safe(&repository.top)).then_some(reason)
}

/// The repository around a folder, regardless of its owner. Do not run git in it: see [`search_repository`].
pub fn find_repository_around(here: &Utf8Path) -> Option<GitRepository> {
    here.ancestors().find_map(|top| match read_git_entry(top) {
        GitEntry::Repository(repository) => Some(repository),
        GitEntry::None | GitEntry::Broken => None,
    })
}

/// The root of the work tree around a folder, as a part of its path. Returns `None` if there is no usable repository.
pub fn find_work_tree<'a>(here: &'a Utf8Path, home: &Utf8Path) -> Option<&'a Utf8Path> {
    match search_repository(here, home) {
        RepositorySearch::Found(repository) => here.ancestors().find(|dir| **dir == repository.top),
        RepositorySearch::Refused { .. } | RepositorySearch::NotFound => None,
    }
}

/// The `.git` entry of a folder.
enum GitEntry {
    None,
    /// A file that does not lead to a repository.
    Broken,
    Repository(GitRepository),
}

fn read_git_entry(top: &Utf8Path) -> GitEntry {
    let mark = top.join(".git");
    let Ok(metadata) = std::fs::metadata(&mark) else { return GitEntry::None };
    if metadata.is_dir() {
        return common_dir_of(&mark).map_or(GitEntry::None, |common_dir| {
            GitEntry::Repository(new_repository(top, mark, common_dir))
        });
    }
    let Some(git_dir) = read_git_file(&mark, top) else { return GitEntry::Broken };
    common_dir_of(&git_dir).map_or(GitEntry::Broken, |common_dir| {
        GitEntry::Repository(new_repository(top, git_dir, common_dir))
    })
}

fn new_repository(top: &Utf8Path, git_dir: Utf8PathBuf, common_dir: Utf8PathBuf) -> GitRepository {
    GitRepository { top: top.to_owned(), git_dir, common_dir }
}

/// The folder that a `.git` file names.
fn read_git_file(file: &Utf8Path, top: &Utf8Path) -> Option<Utf8PathBuf> {
    let text = read_text(file, LINK_BYTES_MAX).ok()?;
    let path = text.strip_prefix("gitdir: ")?.trim_end_matches(['\n', '\r']);
    top.join(path).canonicalize_utf8().ok()
}

/// The shared git folder of a git folder; `None` if it is not a git folder.
pub fn common_dir_of(git_dir: &Utf8Path) -> Option<Utf8PathBuf> {
    if !is_head(git_dir) {
        return None;
    }
    let common_dir = match read_text(&git_dir.join("commondir"), LINK_BYTES_MAX) {
        Ok(path) => git_dir.join(path.trim_end_matches(['\n', '\r'])).canonicalize_utf8().ok()?,
        Err(_) => git_dir.to_owned(),
    };
    let whole = ["objects", "refs"].iter().all(|folder| common_dir.join(folder).is_dir());
    whole.then_some(common_dir)
}

/// Returns true if `HEAD` names a branch or a commit.
fn is_head(git_dir: &Utf8Path) -> bool {
    let head = git_dir.join("HEAD");
    if let Ok(target) = head.read_link_utf8() {
        return target.as_str().starts_with("refs/");
    }
    let Ok(text) = read_text(&head, LINK_BYTES_MAX) else { return false };
    match text.strip_prefix("ref:") {
        Some(name) => name.trim_start().starts_with("refs/"),
        None => is_object_id(text.trim_end()),
    }
}

fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
#[path = "repository/repository_tests.rs"]
mod tests;
