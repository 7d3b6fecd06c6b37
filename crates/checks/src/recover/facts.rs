//! What is in the folder, as far as a strategy has to know it.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;

use super::{RecoverError, RecoverRequest};
use repertoire_git::repo::{DiffOf, Git, GitError, Oid};

/// What is in the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Files of the present change that are there.
    pub changed: BTreeSet<String>,
    /// Manifests and requirements at the root, with their text as it was before anybody of this run came.
    pub manifests: BTreeMap<String, String>,
    /// Lock files at the root that are as they were then, with their text. What an agent has added to one may be a trap.
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

impl Facts {
    /// Looks at the folder, and at what was declared before. What cannot be read is as good as not there.
    pub(super) async fn of(request: &RecoverRequest<'_>) -> Result<Self, RecoverError> {
        let (git, dir) = (request.git, &request.workplace.dir);
        let change = git.diff(&DiffOf::Work { from: request.base.clone() }, 0).await?;
        let is_file = |name: &String| dir.join(name).is_file() && !dir.join(name).is_symlink();
        let is_same = |name: &str, text: &String| {
            let path = Utf8Path::new(name);
            let now = repertoire_text::fs::read_text_beneath(dir, path, MANIFEST_BYTES_MAX);
            now.is_ok_and(|now| now == *text)
        };
        let mut locks = declared(git, request.declared, LOCKS).await?;
        locks.retain(|name, text| is_same(name, text));
        Ok(Facts {
            changed: change.files.into_iter().map(|file| file.path).filter(is_file).collect(),
            manifests: declared(git, request.declared, MANIFESTS).await?,
            locks,
        })
    }

    /// Changed files with one of these endings.
    pub(super) fn changed_with(&self, endings: &[&str]) -> Vec<String> {
        let fits = |path: &&String| {
            Utf8Path::new(path).extension().is_some_and(|ending| endings.contains(&ending))
        };
        self.changed.iter().filter(fits).cloned().collect()
    }
}

/// The files of these names in a commit, with their text.
async fn declared(
    git: &Git,
    commit: &Oid,
    names: &[&str],
) -> Result<BTreeMap<String, String>, GitError> {
    let objects: Vec<String> = names.iter().map(|name| format!("{commit}:{name}")).collect();
    let there: Vec<(&str, (Oid, u64))> = names
        .iter()
        .zip(git.sizes(&objects).await?)
        .filter_map(|(name, size)| size.map(|size| (*name, size)))
        .filter(|(_, (_, bytes))| *bytes <= MANIFEST_BYTES_MAX)
        .collect();
    let wanted: Vec<(Oid, u64)> = there.iter().map(|(_, size)| size.clone()).collect();
    let blobs = git.blobs(&wanted).await?;
    let text = |(name, (oid, _)): (&str, (Oid, u64))| {
        let text = String::from_utf8(blobs.get(&oid)?.clone()).ok()?;
        Some((name.to_owned(), text))
    };
    Ok(there.into_iter().filter_map(text).collect())
}
