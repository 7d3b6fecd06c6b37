//! From a name to a workflow: a skill's, one of its sub-agents', or a script that prints its steps.

use crate::external::{Script, detect};
use crate::file::{self, Loaded};
use repertoire_skill::catalog::{Catalog, Entry, NotFound};
use repertoire_skill::limits::ResourceLimits;
use repertoire_skill::resources;
use repertoire_text::terminal::printable;

/// Why a name leads to no workflow.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No skill of that name.
    #[error(transparent)]
    NoSkill(#[from] NotFound),
    /// The skill is one that prints its steps itself.
    #[error("skill `{skill}` is a script, and has no {}", file::FILE)]
    Script {
        /// The skill.
        skill: String,
    },
    /// The skill has no steps.
    #[error("skill `{skill}` is no workflow")]
    NoWorkflow {
        /// The skill.
        skill: String,
    },
    /// The skill has others.
    #[error("there is no workflow `{}`", printable(wanted))]
    NoSuchWorkflow {
        /// What was asked for.
        wanted: String,
        /// The skill.
        skill: String,
        /// What it has.
        has: Vec<String>,
    },
}

/// The skill that a workflow of that name belongs to.
///
/// # Errors
///
/// When there is no such skill.
pub fn owner<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Entry, NotFound> {
    match (catalog.resolve(name), name.rsplit_once('/')) {
        (Ok(entry), _) => Ok(entry),
        (Err(_), Some((skill, _))) => catalog.resolve(skill),
        (Err(error), None) => Err(error),
    }
}

/// The workflow of that name: a skill's, or `skill/name` for one that its sub-agents go through.
///
/// # Errors
///
/// [`FindError`].
pub fn find<'a>(catalog: &'a Catalog, name: &str) -> Result<(&'a Entry, Loaded), FindError> {
    let entry = owner(catalog, name)?;
    let all = file::load(&entry.skill);
    let skill = || entry.id.clone();
    if all.is_empty() {
        return Err(match script_of(entry) {
            Some(_) => FindError::Script { skill: skill() },
            None => FindError::NoWorkflow { skill: skill() },
        });
    }
    let has: Vec<String> = all.iter().map(|loaded| loaded.name.clone()).collect();
    let wanted = |loaded: &Loaded| {
        loaded.name == name || name == entry.id && loaded.name == entry.skill.name
    };
    let found = all.into_iter().find(wanted).map(|loaded| (entry, loaded));
    found.ok_or_else(|| FindError::NoSuchWorkflow { wanted: name.to_owned(), skill: skill(), has })
}

/// The script that a skill runs, if it is such a skill.
pub fn script_of(entry: &Entry) -> Option<Script> {
    let skill = &entry.skill;
    if skill.is_agent() || !skill.origin.is_folder() || !may_call(skill.body()) {
        return None;
    }
    let listed = resources::list(skill, &ResourceLimits::default());
    let files: Vec<String> = listed.files.iter().map(|file| file.path.to_string()).collect();
    detect(&skill.name, skill.body(), &files)
}

/// Whether a text may call such a script at all: most do not, and their folders need not be listed.
fn may_call(body: &str) -> bool {
    body.contains("--step") || body.contains("scripts/")
}
