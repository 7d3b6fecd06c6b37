//! Facts about the project's folder that strategies need.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;

use super::{RecoverError, RecoverRequest};
use repertoire_git::repo::{DiffTarget, GitClient, GitError, GitObjectId};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectFacts {
    /// The existing files of the present change.
    pub changed: BTreeSet<String>,
    /// The manifests at the root, with their text before this run.
    pub manifests: BTreeMap<String, String>,
    /// The lock files at the root that are unchanged since before this run, with their text. An
    /// agent may have added a malicious entry to a changed one.
    pub locks: BTreeMap<String, String>,
}

const MANIFESTS: &[&str] =
    &["package.json", "Cargo.toml", "pyproject.toml", "requirements.txt", "go.mod"];
const LOCKS: &[&str] = &[
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "Cargo.lock",
    "uv.lock",
    "requirements.txt",
    "go.sum",
];
const MANIFEST_BYTES_MAX: u64 = 8 * 1024 * 1024;

impl ProjectFacts {
    /// Reads the folder and the declared dependencies. Files that cannot be read count as missing.
    pub(super) async fn collect_for(request: &RecoverRequest<'_>) -> Result<Self, RecoverError> {
        let (git, dir) = (request.git, &request.workplace.dir);
        let change = git.diff(&DiffTarget::Work { from: request.base.clone() }, 0).await?;
        let is_same = |name: &str, text: &String| {
            let path = Utf8Path::new(name);
            let now = repertoire_text::fs::read_text_beneath(dir, path, MANIFEST_BYTES_MAX);
            now.is_ok_and(|now| now == *text)
        };
        let changed = change.files.into_iter().map(|file| file.path);
        let mut locks = read_declared_files(git, request.declared, LOCKS).await?;
        locks.retain(|name, text| is_same(name, text));
        Ok(ProjectFacts {
            changed: changed
                .filter(|name| dir.join(name).is_file() && !dir.join(name).is_symlink())
                .collect(),
            manifests: read_declared_files(git, request.declared, MANIFESTS).await?,
            locks,
        })
    }

    /// The changed files with one of these extensions.
    pub(super) fn changed_with(&self, endings: &[&str]) -> Vec<String> {
        let files = self.changed.iter().filter(|path| {
            Utf8Path::new(path).extension().is_some_and(|ending| endings.contains(&ending))
        });
        files.cloned().collect()
    }
}

/// The files with these names in a commit, with their text.
async fn read_declared_files(
    git: &GitClient,
    commit: &GitObjectId,
    names: &[&str],
) -> Result<BTreeMap<String, String>, GitError> {
    let objects: Vec<String> = names.iter().map(|name| format!("{commit}:{name}")).collect();
    let there: Vec<(&str, (GitObjectId, u64))> = names
        .iter()
        .zip(git.object_sizes(&objects).await?)
        .filter_map(|(name, size)| size.map(|size| (*name, size)))
        .filter(|(_, (_, bytes))| *bytes <= MANIFEST_BYTES_MAX)
        .collect();
    let wanted: Vec<(GitObjectId, u64)> = there.iter().map(|(_, size)| size.clone()).collect();
    let blobs = git.read_blobs(&wanted).await?;
    let text = |(name, (oid, _)): (&str, (GitObjectId, u64))| {
        let text = String::from_utf8(blobs.get(&oid)?.clone()).ok()?;
        Some((name.to_owned(), text))
    };
    Ok(there.into_iter().filter_map(text).collect())
}
