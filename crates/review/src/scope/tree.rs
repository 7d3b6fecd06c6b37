//! A folder in which the reviewed state can be read.

use camino::{Utf8Path, Utf8PathBuf};

use repertoire_git::repo::{Git, GitError, TreeId};

/// A folder in which the reviewed state can be read. One that was made for it is gone when this is dropped.
#[derive(Debug)]
pub struct Tree {
    dir: Utf8PathBuf,
    exported: Option<tempfile::TempDir>,
}

impl Tree {
    /// The folder.
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// Whether it is a copy, and not where somebody works.
    pub fn is_exported(&self) -> bool {
        self.exported.is_some()
    }

    /// The folder where somebody works.
    pub(super) fn checkout(dir: Utf8PathBuf) -> Tree {
        Tree { dir, exported: None }
    }

    /// A copy of a state, in a folder below `scratch` or where the system keeps such things.
    pub(super) async fn export(
        git: &Git,
        tree: &TreeId,
        scratch: Option<&Utf8Path>,
    ) -> Result<Tree, GitError> {
        let io = |source| GitError::Io {
            path: scratch.unwrap_or(Utf8Path::new("the folder for temporary files")).to_owned(),
            source,
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix("repertoire-review-");
        // What is exported is nobody else's business.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let keep = match scratch {
            Some(scratch) => builder.tempdir_in(scratch),
            None => builder.tempdir(),
        };
        let keep = keep.map_err(io)?;
        let dir = keep.path().canonicalize().map_err(io)?;
        let dir = Utf8PathBuf::try_from(dir).map_err(|error| io(error.into_io_error()))?;
        git.export(tree, &dir).await?;
        Ok(Tree { dir, exported: Some(keep) })
    }
}
