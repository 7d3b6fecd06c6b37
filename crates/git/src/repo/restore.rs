//! Patches, and files as they were.

use std::collections::BTreeSet;

use repertoire_sandbox::process::Stdin;
use repertoire_text::fs::{Folder, PlaceError};

use super::call::{Ask, pair};
use super::{Git, GitError, Mode, Name, Oid, TreeId};

impl Git {
    /// Whether a patch fits the files as they are. If not, git's own words say why.
    pub async fn patch_fits(&self, patch: &str) -> Result<Result<(), String>, GitError> {
        self.patch(patch, &["apply", "--check", "--whitespace=nowarn", "-"]).await
    }

    /// Applies a patch to the files, all of it or nothing; the index is not touched. Paths that lead out of the checkout or
    /// through a link are refused.
    pub async fn apply_patch(&self, patch: &str) -> Result<Result<(), String>, GitError> {
        self.patch(patch, &["apply", "--whitespace=nowarn", "-"]).await
    }

    async fn patch(&self, patch: &str, args: &[&str]) -> Result<Result<(), String>, GitError> {
        let at_top = Git { dir: self.top().await?, ..self.clone() };
        let ask = Ask { stdin: Stdin::Text(patch.to_owned()), ..Ask::new(args) };
        let answer = at_top.ask(ask, &mut |_| repertoire_sandbox::process::Flow::Continue).await?;
        match answer.code {
            0 => Ok(Ok(())),
            1 | 128 => Ok(Err(answer.stderr().trim().to_owned())),
            _ => Err(answer.failed()),
        }
    }

    /// What is ignored and there, as paths beneath the root; of a folder that is ignored as a whole only its own, with a slash.
    pub async fn ignored(&self) -> Result<BTreeSet<String>, GitError> {
        let at_top = Git { dir: self.top().await?, ..self.clone() };
        let args = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"];
        let answer = at_top.fine(Ask::new(&args)).await?;
        let names = answer.bytes()?.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Makes the files those of a tree that [`Git::tree_of_work`] gave: files that came since are removed, also untracked
    /// ones. What was ignored then, as [`Git::ignored`] gave it, stays as it is, and the index is not touched.
    ///
    /// What says what is ignored comes first: only then it can be told which files are somebody's that were there before, and
    /// which have come since and were hidden.
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
        let top = self.top().await?;
        let (mut gone, mut there) = (Vec::new(), String::new());
        for change in self.tree_changes(&now, tree).await? {
            let names = [Some(&change.name), change.from.as_ref()];
            if !names.into_iter().flatten().any(|name| is_meant(name.path.as_str())) {
                continue;
            }
            if [change.old_mode, change.new_mode].contains(&Mode::Submodule) {
                return Err(GitError::BadPath { path: change.name.path.to_string() });
            }
            gone.extend(change.from.as_ref().map(exact).transpose()?);
            let name = exact(&change.name)?;
            match change.new_mode {
                Mode::Absent => gone.push(name),
                _ => there.push_str(&format!("{name}\0")),
            }
        }
        for path in gone.iter().filter(|path| !was_ignored(path, ignored)) {
            remove(&top, path).map_err(|source| GitError::Io { path: top.join(path), source })?;
        }
        if there.is_empty() {
            return Ok(());
        }
        let (_keep, index) = self.index_copy().await?;
        let environment = vec![pair("GIT_INDEX_FILE", index.as_str())];
        let read = ["read-tree", tree.0.as_str()];
        self.fine(Ask { environment: environment.clone(), ..Ask::new(&read) }).await?;
        let at_top = Git { dir: top, ..self.clone() };
        let write = ["checkout-index", "--force", "--quiet", "-z", "--stdin"];
        let ask = Ask { environment, stdin: Stdin::Text(there), ..Ask::new(&write) };
        at_top.fine(ask).await.map(drop)
    }

    /// Moves the branch that is checked out back to a commit, and the index with it. Files stay as they are.
    pub async fn reset_branch(&self, oid: &Oid) -> Result<(), GitError> {
        self.ok(&["reset", "--mixed", "--quiet", oid.as_str()]).await.map(drop)
    }

    /// Keeps a commit that no branch leads to.
    pub async fn keep_commit(&self, name: &str, oid: &Oid) -> Result<(), GitError> {
        self.ok(&["update-ref", &format!("refs/repertoire/{name}"), oid.as_str()]).await.map(drop)
    }

    /// A commit that was kept under this name.
    pub async fn kept_commit(&self, name: &str) -> Result<Option<Oid>, GitError> {
        self.find(&format!("refs/repertoire/{name}")).await
    }

    /// Keeps a commit no longer, if it was kept.
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

fn exact(name: &Name) -> Result<String, GitError> {
    match name.exact {
        true => Ok(name.path.to_string()),
        false => Err(GitError::BadPath { path: name.path.to_string() }),
    }
}

/// Removes a file, and the folders that nothing is left in. An agent may put a link in the place of a folder, so the path
/// is resolved from a handle, without links.
fn remove(top: &camino::Utf8Path, path: &str) -> std::io::Result<()> {
    let (top, path) = (Folder::open(top)?, camino::Utf8Path::new(path));
    match top.remove_file(path) {
        Ok(()) => {}
        // Files behind a link do not belong to the tree.
        Err(PlaceError::Link { .. }) => return Ok(()),
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
