//! Resolves a name to a workflow: of a skill, of one of its sub-agents, or a script that prints its
//! steps.

use crate::external::{StepScript, detect_script};
use crate::file::{self, LoadedWorkflow};
use repertoire_skill::catalog::{Catalog, CatalogEntry, SkillNotFound};
use repertoire_skill::limits::ResourceLimits;
use repertoire_skill::resources;
use repertoire_text::terminal::printable_line;

/// The reason a name does not lead to a workflow.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No skill has this name.
    #[error(transparent)]
    NoSkill(#[from] SkillNotFound),
    /// The skill is a script that prints its steps itself.
    #[error("skill `{skill}` is a script, and has no {}", file::FILE)]
    Script { skill: String },
    /// The skill has no steps.
    #[error("skill `{skill}` is no workflow")]
    NoWorkflow { skill: String },
    /// The skill has workflows, but none with this name.
    #[error("there is no workflow `{}`", printable_line(wanted))]
    NoSuchWorkflow {
        wanted: String,
        skill: String,
        /// The names of the workflows it has.
        has: Vec<String>,
    },
}

/// Returns the skill that a workflow belongs to.
///
/// # Errors
///
/// If there is no such skill.
pub fn find_owner<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a CatalogEntry, SkillNotFound> {
    match (catalog.resolve(name), name.rsplit_once('/')) {
        (Ok(entry), _) => Ok(entry),
        (Err(_), Some((skill, _))) => catalog.resolve(skill),
        (Err(error), None) => Err(error),
    }
}

/// Loads a workflow by the name of its skill, or `skill/name` for one that its sub-agents go
/// through.
///
/// # Errors
///
/// [`FindError`].
pub fn find_workflow<'a>(
    catalog: &'a Catalog,
    name: &str,
) -> Result<(&'a CatalogEntry, LoadedWorkflow), FindError> {
    let entry = find_owner(catalog, name)?;
    let all = file::load_workflows(&entry.skill);
    let skill = || entry.id.clone();
    if all.is_empty() {
        return Err(match script_of(entry) {
            Some(_) => FindError::Script { skill: skill() },
            None => FindError::NoWorkflow { skill: skill() },
        });
    }
    let has: Vec<String> = all.iter().map(|loaded| loaded.name.clone()).collect();
    let wanted = |loaded: &LoadedWorkflow| {
        loaded.name == name || name == entry.id && loaded.name == entry.skill.name
    };
    let found = all.into_iter().find(wanted).map(|loaded| (entry, loaded));
    found.ok_or_else(|| FindError::NoSuchWorkflow { wanted: name.to_owned(), skill: skill(), has })
}

/// Returns the script of a skill, if it is a script workflow.
pub fn script_of(entry: &CatalogEntry) -> Option<StepScript> {
    let skill = &entry.skill;
    if skill.is_agent() || !skill.origin.is_folder() || !may_call_script(skill.body()) {
        return None;
    }
    let listed = resources::list_resources(skill, &ResourceLimits::default());
    let files: Vec<String> = listed.files.iter().map(|file| file.path.to_string()).collect();
    detect_script(&skill.name, skill.body(), &files)
}

/// Returns true if a text may call such a script. Most skills don't, so their folders need not be
/// listed.
fn may_call_script(body: &str) -> bool {
    body.contains("--step") || body.contains("scripts/")
}
