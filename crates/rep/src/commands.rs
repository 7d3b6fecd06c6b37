//! The commands, one a file: its arguments, its call into the crates, its output.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod deps;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod new;
pub(crate) mod props;
pub(crate) mod read;
pub(crate) mod show;
pub(crate) mod sync;
pub(crate) mod to_prompt;
pub(crate) mod trust;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::catalog::{Catalog, Entry, NotFound};
use repertoire_skill::discover::discover;

use crate::cli::Ctx;
use crate::failure::Failure;

impl Ctx<'_> {
    /// A path that was typed, as it was typed where that leads to the right place, so that output can be
    /// pasted back.
    pub(crate) fn typed_path(&self, path: &Utf8Path) -> Utf8PathBuf {
        let same_place = std::env::current_dir().is_ok_and(|dir| dir == self.env.here);
        if same_place { path.to_owned() } else { self.env.here.join(path) }
    }

    /// Discovers under the configuration.
    pub(crate) fn catalog(&self) -> Result<Catalog, Failure> {
        Ok(discover(&self.config.request()?))
    }
}

/// Finds one skill, or says where it was looked for and what may be meant.
pub(crate) fn resolve<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Entry, Failure> {
    catalog.resolve(name).map_err(|error| not_found(&error))
}

fn not_found(error: &NotFound) -> Failure {
    if !error.ambiguous.is_empty() {
        let list = error.ambiguous.join(", ");
        return Failure::no(format!("several skills are called `{}`: {list}", error.reference))
            .hint("Name the one you mean with `--root`, or as `plugin:skill`.");
    }
    let mut failure = Failure::no(error.to_string());
    if let Some(near) = &error.nearest {
        failure = failure.hint(format!("Did you mean `{near}`?"));
    }
    if !error.searched.is_empty() {
        failure = failure.hint(format!("Searched: {}", error.searched.join(", ")));
    }
    failure.hint("`rep list` shows every skill; `rep doctor` says why one is missing.")
}
