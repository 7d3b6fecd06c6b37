//! Location of a repository. Found by reading files instead of asking git, so that no file of an
//! agent redirects git.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::repository::{self, RepositoryRefusal, RepositorySearch};

use super::{GitClient, GitError};
use crate::limits::{GIT_ALTERNATES_BYTES_MAX, GIT_ALTERNATES_MAX};

/// The folders of one checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepositoryDirs {
    /// The root of the work tree; `None` in a bare repository.
    pub(super) top: Option<Utf8PathBuf>,
    pub(super) git_dir: Utf8PathBuf,
    pub(super) common_dir: Utf8PathBuf,
}

impl GitClient {
    /// The folders of the repository around [`Git::dir`]. Every call of git gets them explicitly,
    /// so that neither a `.git` file nor `core.worktree` in the repository's configuration decides
    /// where git works.
    pub(super) fn repository_dirs(&self) -> Result<Arc<RepositoryDirs>, GitError> {
        if let Some(place) = &self.place {
            return Ok(place.clone());
        }
        let home = self.env_variable("HOME").unwrap_or("/nonexistent");
        match repository::search_repository(&resolve_links(&self.dir), Utf8Path::new(home)) {
            RepositorySearch::Found(found) => Ok(Arc::new(RepositoryDirs {
                top: Some(found.top),
                git_dir: found.git_dir,
                common_dir: found.common_dir,
            })),
            RepositorySearch::Refused { top, reason: RepositoryRefusal::OtherOwner } => {
                Err(GitError::OtherOwner { top })
            }
            RepositorySearch::Refused { top, reason: RepositoryRefusal::OtherWorkTree } => {
                Err(GitError::OtherWorkTree { top })
            }
            RepositorySearch::Refused { reason: RepositoryRefusal::BrokenLink, .. }
            | RepositorySearch::NotFound => Err(GitError::NotARepository { dir: self.dir.clone() }),
        }
    }

    pub(super) fn env_variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Resolves symbolic links, as git does in the paths it prints.
fn resolve_links(dir: &Utf8Path) -> Utf8PathBuf {
    dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned())
}

impl RepositoryDirs {
    /// The environment variables that pin git to these folders.
    pub(super) fn git_environment(&self) -> Vec<(String, String)> {
        let mut set = vec![("GIT_DIR".to_owned(), self.git_dir.to_string())];
        if self.common_dir != self.git_dir {
            set.push(("GIT_COMMON_DIR".to_owned(), self.common_dir.to_string()));
        }
        if let Some(top) = &self.top {
            set.push(("GIT_WORK_TREE".to_owned(), top.to_string()));
        }
        set
    }

    /// The folders of the repository, without those inside another one.
    pub(super) fn root_folders(&self) -> Vec<Utf8PathBuf> {
        let mut folders: Vec<Utf8PathBuf> = self.top.iter().cloned().collect();
        for folder in [&self.common_dir, &self.git_dir] {
            if !folders.iter().any(|other| folder.starts_with(other)) {
                folders.push(folder.clone());
            }
        }
        folders
    }

    /// The object folders of other repositories that this one borrows from (`git clone --shared`),
    /// directly or indirectly. A path that is not the object folder of a repository is left out.
    pub(super) fn alternate_objects(&self) -> Vec<Utf8PathBuf> {
        let mut found: Vec<Utf8PathBuf> = Vec::new();
        let mut waiting = vec![self.common_dir.join("objects")];
        while let Some(objects) = waiting.pop() {
            let list = objects.join("info/alternates");
            let text = repertoire_text::fs::read_text(&list, GIT_ALTERNATES_BYTES_MAX);
            for line in text.unwrap_or_default().lines().filter(|line| !line.is_empty()) {
                let path = resolve_links(&objects.join(line));
                let of_repository = path.file_name() == Some("objects")
                    && path.parent().is_some_and(|dir| repository::common_dir_of(dir).is_some());
                if of_repository && !found.contains(&path) && found.len() < GIT_ALTERNATES_MAX {
                    waiting.push(path.clone());
                    found.push(path);
                }
            }
        }
        found
    }
}
