//! The commands, one file each: its arguments, the calls into the other crates, and its output.

pub(crate) mod agents;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod github;
pub(crate) mod init;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod matching;
pub(crate) mod mcp;
pub(crate) mod new;
pub(crate) mod plan;
pub(crate) mod read;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod sync;
pub(crate) mod trust;
pub(crate) mod verify;
pub(crate) mod workflow;

use camino::Utf8Path;
use repertoire_skill::catalog::{Catalog, CatalogEntry, SkillNotFound};
use repertoire_skill::discover::discover_catalog;
use repertoire_skill::profile::ProfileId;
use repertoire_text::invisible::InvisibleSummary;

use crate::cli::CliContext;
use crate::failure::CliFailure;

impl CliContext<'_> {
    /// Discovers skills as configured.
    ///
    /// The catalog is leaked on purpose: a process makes only one, and freeing thousands of records
    /// takes longer than the rest of some commands.
    pub(crate) fn load_catalog(&self) -> Result<&'static Catalog, CliFailure> {
        Ok(Box::leak(Box::new(discover_catalog(&self.config.discovery_request()?))))
    }
}

/// Returns true if OpenSkills' output is to be reproduced exactly. `--compat` is a usage error in
/// every other profile.
pub(crate) fn is_compat(ctx: &CliContext<'_>, asked: bool) -> Result<bool, CliFailure> {
    if asked && ctx.config.values().profile != ProfileId::Openskills {
        return Err(CliFailure::wrong_usage("`--compat` goes with `--profile openskills` only")
            .hint("Add `--profile openskills`, or leave `--compat` out."));
    }
    Ok(asked)
}

/// Finds one skill by name. The failure says where it searched, and suggests a similar name.
pub(crate) fn resolve_skill<'a>(
    catalog: &'a Catalog,
    name: &str,
) -> Result<&'a CatalogEntry, CliFailure> {
    catalog.resolve(name).map_err(|error| not_found(catalog, &[error]))
}

/// Counts the invisible characters in the skills' frontmatter, which loading stripped from their
/// descriptions.
pub(crate) fn removed_at_load(entries: &[&CatalogEntry]) -> InvisibleSummary {
    let mut all = InvisibleSummary::default();
    for entry in entries {
        let skill = &entry.skill;
        all.merge(&InvisibleSummary::count_in(skill.yaml.slice(skill.text())));
    }
    all
}

/// Finds all the named skills, or fails with every name that does not exist.
pub(crate) fn resolve_skills<'a>(
    catalog: &'a Catalog,
    names: &[String],
) -> Result<Vec<&'a CatalogEntry>, CliFailure> {
    let (found, missing): (Vec<_>, Vec<_>) =
        names.iter().map(|name| catalog.resolve(name)).partition(Result::is_ok);
    let missing: Vec<SkillNotFound> = missing.into_iter().filter_map(Result::err).collect();
    match missing.as_slice() {
        [] => Ok(found.into_iter().flatten().collect()),
        missing => Err(not_found(catalog, missing)),
    }
}

fn not_found(catalog: &Catalog, errors: &[SkillNotFound]) -> CliFailure {
    if let Some(error) = errors.iter().find(|error| !error.ambiguous.is_empty()) {
        let list = error.ambiguous.join(", ");
        return CliFailure::negative_answer(format!(
            "several skills are called `{}`: {list}",
            error.reference
        ))
        .hint("Rename one of them, or name a plugin's as `plugin:skill`.");
    }
    let mut failure = CliFailure::negative_answer(match errors {
        [error] => error.to_string(),
        errors => {
            let names: Vec<String> =
                errors.iter().map(|error| format!("`{}`", error.reference)).collect();
            format!("skills {} not found", names.join(", "))
        }
    });
    let mut searched: Vec<&str> = Vec::new();
    for error in errors {
        if let Some(hint) = explain_missing_skill(catalog, error) {
            failure = failure.hint(hint);
        }
        for place in error.searched.iter().map(String::as_str) {
            if !searched.contains(&place) {
                searched.push(place);
            }
        }
    }
    if !searched.is_empty() {
        failure = failure.hint(format!("Searched: {}", searched.join(", ")));
    }
    if is_switched_off(catalog) {
        failure.hint(SWITCHED_OFF)
    } else {
        failure.hint("`rep list` shows every skill; `rep doctor` says why one is missing.")
    }
}

/// Returns a hint: a broken file of that name, or a similar name.
fn explain_missing_skill(catalog: &Catalog, error: &SkillNotFound) -> Option<String> {
    let wanted = error.reference.as_str();
    let mut broken = catalog.broken().iter();
    if let Some(broken) = broken.find(|broken| is_file_of_skill(&broken.path, wanted)) {
        let path = catalog.places().shorten_path(&broken.path);
        return Some(format!("{path} is broken: {}", broken.reason.message));
    }
    let elsewhere = || {
        let (_, skill) = wanted.split_once(':')?;
        catalog.entries().iter().find(|entry| entry.skill.name == skill).map(|entry| &entry.id)
    };
    let near = error.nearest.as_ref().or_else(elsewhere)?;
    Some(format!("Did you mean `{near}`?"))
}

/// Returns true if `path` is `NAME.md` or lies in a folder called `NAME`.
fn is_file_of_skill(path: &Utf8Path, name: &str) -> bool {
    path.file_stem() == Some(name) || path.parent().and_then(Utf8Path::file_name) == Some(name)
}

/// The hint for a configuration that disables all skills.
pub(crate) const SWITCHED_OFF: &str =
    "Skills are switched off by `skills_enabled`; `rep config` says where that is set.";

/// Returns true if skills are disabled: every profile has roots, so none at all means
/// `skills_enabled` is off.
pub(crate) fn is_switched_off(catalog: &Catalog) -> bool {
    catalog.roots().is_empty()
}
