//! What is in the folder, as far as a strategy has to know it.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;

/// What is in the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Files of the present change that are there.
    pub changed: BTreeSet<String>,
    /// Manifests and requirements at the root, with their text.
    pub manifests: BTreeMap<String, String>,
    /// Lock files at the root.
    pub locks: BTreeSet<String>,
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
    "go.sum",
];
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;

impl Facts {
    /// Looks at a folder. What cannot be read is as good as not there.
    pub fn of(dir: &Utf8Path, changed: impl IntoIterator<Item = String>) -> Self {
        let read = |name: &&str| {
            let text = repertoire_text::fs::read_text_beneath(
                dir,
                Utf8Path::new(name),
                MANIFEST_BYTES_MAX,
            );
            text.ok().map(|text| ((*name).to_owned(), text))
        };
        let is_file = |name: &String| dir.join(name).is_file() && !dir.join(name).is_symlink();
        Facts {
            changed: changed.into_iter().filter(is_file).collect(),
            manifests: MANIFESTS.iter().filter_map(read).collect(),
            locks: LOCKS.iter().map(|name| (*name).to_owned()).filter(is_file).collect(),
        }
    }

    /// Changed files with one of these endings.
    pub(super) fn changed_with(&self, endings: &[&str]) -> Vec<String> {
        let fits = |path: &&String| {
            Utf8Path::new(path).extension().is_some_and(|ending| endings.contains(&ending))
        };
        self.changed.iter().filter(fits).cloned().collect()
    }
}
