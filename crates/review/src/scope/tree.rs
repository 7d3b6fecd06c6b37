//! A folder that contains the state under review.

use camino::{Utf8Path, Utf8PathBuf};

use repertoire_git::repo::{GitClient, GitError, TreeId};

/// A folder that contains the state under review. An exported copy is deleted on drop.
#[derive(Debug)]
pub struct ReviewTree {
    dir: Utf8PathBuf,
    exported: Option<tempfile::TempDir>,
}

impl ReviewTree {
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// Returns true if the folder is a temporary copy instead of the user's working directory.
    pub fn is_exported(&self) -> bool {
        self.exported.is_some()
    }

    /// The user's working directory.
    pub(super) fn from_checkout(dir: Utf8PathBuf) -> ReviewTree {
        ReviewTree { dir, exported: None }
    }

    /// Exports a tree to a temporary folder, below `scratch` if given.
    pub(super) async fn export_tree(
        git: &GitClient,
        tree: &TreeId,
        scratch: Option<&Utf8Path>,
    ) -> Result<ReviewTree, GitError> {
        let io = |source| GitError::Io {
            path: scratch.unwrap_or(Utf8Path::new("the folder for temporary files")).to_owned(),
            source,
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix("repertoire-review-");
        // The exported code may be confidential: don't let other users read it.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let keep = match scratch {
            Some(scratch) => builder.tempdir_in(scratch),
            None => builder.tempdir(),
        };
        let keep = keep.map_err(io)?;
        let dir = keep.path().canonicalize().map_err(io)?;
        let dir = Utf8PathBuf::try_from(dir).map_err(|error| io(error.into_io_error()))?;
        git.export_tree(tree, &dir).await?;
        Ok(ReviewTree { dir, exported: Some(keep) })
    }
}
