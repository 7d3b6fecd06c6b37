//! Applying patches, restoring files, and refs that keep commits from being garbage-collected.

use std::collections::BTreeSet;

use repertoire_sandbox::process::ProcessInput;
use repertoire_text::fs::{FolderHandle, LocationError};

use super::call::{GitCall, owned_pair};
use super::{GitClient, GitError, GitObjectId, TreeEntryMode, TreeId, TreePath};

impl GitClient {
    /// Checks if a patch applies to the current files. The inner error is git's message.
    pub async fn patch_fits(&self, patch: &str) -> Result<Result<(), String>, GitError> {
        self.run_patch(patch, &["apply", "--check", "--whitespace=nowarn", "-"]).await
    }

    /// Applies all of a patch to the files, or nothing; the index is not touched. Git refuses paths
    /// that lead out of the checkout or through a symbolic link. The inner error is git's message.
    pub async fn apply_patch(&self, patch: &str) -> Result<Result<(), String>, GitError> {
        self.run_patch(patch, &["apply", "--whitespace=nowarn", "-"]).await
    }

    async fn run_patch(&self, patch: &str, args: &[&str]) -> Result<Result<(), String>, GitError> {
        let at_top = GitClient { dir: self.work_tree_root().await?, ..self.clone() };
        let ask = GitCall { stdin: ProcessInput::Text(patch.to_owned()), ..GitCall::new(args) };
        let answer = at_top
            .run_call(ask, &mut |_| repertoire_sandbox::process::OutputFlow::Continue)
            .await?;
        match answer.code {
            0 => Ok(Ok(())),
            1 | 128 => Ok(Err(answer.stderr_text().trim().to_owned())),
            _ => Err(answer.failure_error()),
        }
    }

    /// The existing ignored files, relative to the root. A folder that is ignored as a whole is
    /// listed once, with a trailing slash.
    pub async fn ignored_files(&self) -> Result<BTreeSet<String>, GitError> {
        let at_top = GitClient { dir: self.work_tree_root().await?, ..self.clone() };
        let args = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"];
        let answer = at_top.run_checked_call(GitCall::new(&args)).await?;
        let names = answer.stdout_bytes()?.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Restores the files to a tree that [`GitClient::tree_of_work`] returned, and removes newer files,
    /// untracked ones included. Files that were ignored at that time (the result of
    /// [`GitClient::ignored_files`]) stay, and the index is not touched.
    ///
    /// The `.gitignore` files are restored first: an agent may have ignored new files to hide them,
    /// so which files are ignored is only known once the old rules apply.
    pub async fn restore_files(
        &self,
        tree: &TreeId,
        ignored: &BTreeSet<String>,
    ) -> Result<(), GitError> {
        for is_meant in [is_ignore_file as fn(&str) -> bool, |_| true] {
            self.restore_some(tree, ignored, is_meant).await?;
        }
        Ok(())
    }

    async fn restore_some(
        &self,
        tree: &TreeId,
        ignored: &BTreeSet<String>,
        is_meant: fn(&str) -> bool,
    ) -> Result<(), GitError> {
        let now = self.tree_of_work().await?;
        if now == *tree {
            return Ok(());
        }
        let top = self.work_tree_root().await?;
        let (mut gone, mut there) = (Vec::new(), String::new());
        for change in self.tree_changes(&now, tree).await? {
            let names = [Some(&change.name), change.from.as_ref()];
            if !names.into_iter().flatten().any(|name| is_meant(name.path.as_str())) {
                continue;
            }
            if [change.old_mode, change.new_mode].contains(&TreeEntryMode::Submodule) {
                return Err(GitError::BadPath { path: change.name.path.to_string() });
            }
            gone.extend(change.from.as_ref().map(exact_path).transpose()?);
            let name = exact_path(&change.name)?;
            match change.new_mode {
                TreeEntryMode::Absent => gone.push(name),
                _ => there.push_str(&format!("{name}\0")),
            }
        }
        for path in gone.iter().filter(|path| !was_ignored(path, ignored)) {
            remove_with_empty_parents(&top, path)
                .map_err(|source| GitError::Io { path: top.join(path), source })?;
        }
        if there.is_empty() {
            return Ok(());
        }
        let (_keep, index) = self.index_copy().await?;
        let environment = vec![owned_pair("GIT_INDEX_FILE", index.as_str())];
        let read = ["read-tree", tree.0.as_str()];
        self.run_checked_call(GitCall { environment: environment.clone(), ..GitCall::new(&read) })
            .await?;
        let at_top = GitClient { dir: top, ..self.clone() };
        let write = ["checkout-index", "--force", "--quiet", "-z", "--stdin"];
        let ask = GitCall { environment, stdin: ProcessInput::Text(there), ..GitCall::new(&write) };
        at_top.run_checked_call(ask).await.map(drop)
    }

    /// Moves the current branch and the index to a commit. Files stay as they are.
    pub async fn reset_branch(&self, oid: &GitObjectId) -> Result<(), GitError> {
        self.ok(&["reset", "--mixed", "--quiet", oid.as_str()]).await.map(drop)
    }

    /// Keeps a commit from being garbage-collected, under `refs/repertoire/`.
    pub async fn keep_commit(&self, name: &str, oid: &GitObjectId) -> Result<(), GitError> {
        self.ok(&["update-ref", &format!("refs/repertoire/{name}"), oid.as_str()]).await.map(drop)
    }

    /// The commit kept under this name.
    pub async fn kept_commit(&self, name: &str) -> Result<Option<GitObjectId>, GitError> {
        self.find_commit(&format!("refs/repertoire/{name}")).await
    }

    /// Removes the ref of a kept commit, if it exists.
    pub async fn drop_commit(&self, name: &str) -> Result<(), GitError> {
        self.ok(&["update-ref", "-d", &format!("refs/repertoire/{name}")]).await.map(drop)
    }
}

fn is_ignore_file(path: &str) -> bool {
    path.rsplit('/').next() == Some(".gitignore")
}

fn was_ignored(path: &str, ignored: &BTreeSet<String>) -> bool {
    let folders = path.match_indices('/').map(|(at, _)| &path[..=at]);
    folders.chain([path]).any(|part| ignored.contains(part))
}

fn exact_path(name: &TreePath) -> Result<String, GitError> {
    if name.exact {
        Ok(name.path.to_string())
    } else {
        Err(GitError::BadPath { path: name.path.to_string() })
    }
}

/// Removes a file, and its parent folders that are empty then. Resolves the path from a folder
/// handle without following symbolic links, since an agent may replace a folder by one.
fn remove_with_empty_parents(top: &camino::Utf8Path, path: &str) -> std::io::Result<()> {
    let (top, path) = (FolderHandle::open(top)?, camino::Utf8Path::new(path));
    match top.remove_file(path) {
        Ok(()) => {}
        // Files behind a symbolic link do not belong to the tree.
        Err(LocationError::Link { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let mut folder = path.parent();
    while let Some(empty) = folder.filter(|folder| *folder != "") {
        if top.remove_empty(empty).is_err() {
            break;
        }
        folder = empty.parent();
    }
    Ok(())
}
