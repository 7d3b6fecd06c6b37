//! The commands, one a file: its arguments, its call into the crates, its output.

pub(crate) mod agents;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod conversations;
pub(crate) mod demo;
pub(crate) mod deps;
pub(crate) mod dlq;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod github;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod matching;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod new;
pub(crate) mod plan;
pub(crate) mod props;
pub(crate) mod read;
pub(crate) mod replay;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod sync;
pub(crate) mod to_prompt;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod verify;
pub(crate) mod worker;
pub(crate) mod workflow;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::catalog::{Catalog, Entry, NotFound};
use repertoire_skill::discover::discover;
use repertoire_skill::profile::ProfileId;
use repertoire_text::invisible::InvisibleSummary;

use crate::cli::Ctx;
use crate::failure::Failure;

impl Ctx<'_> {
    /// A path that was typed, as it was typed where that leads to the right place, so that output can be
    /// pasted back.
    pub(crate) fn typed_path(&self, path: &Utf8Path) -> Utf8PathBuf {
        if self.env.moved { self.env.here.join(path) } else { path.to_owned() }
    }

    /// Discovers under the configuration.
    ///
    /// The catalog is never freed: a command makes one and ends, and taking thousands of records apart
    /// one by one would be the longest part of some commands.
    pub(crate) fn catalog(&self) -> Result<&'static Catalog, Failure> {
        Ok(Box::leak(Box::new(discover(&self.config.request()?))))
    }
}

/// Whether to do exactly as OpenSkills does, which only makes sense in its profile.
pub(crate) fn is_compat(ctx: &Ctx<'_>, asked: bool) -> Result<bool, Failure> {
    if asked && ctx.config.profile() != ProfileId::Openskills {
        return Err(Failure::usage("`--compat` goes with `--profile openskills` only")
            .hint("Add `--profile openskills`, or leave `--compat` out."));
    }
    Ok(asked)
}

/// Finds one skill, or says where it was looked for and what may be meant.
pub(crate) fn resolve<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Entry, Failure> {
    catalog.resolve(name).map_err(|error| not_found(catalog, &[error]))
}

/// The invisible characters in the frontmatter of skills. Their descriptions lost them when they were loaded.
pub(crate) fn removed_at_load(entries: &[&Entry]) -> InvisibleSummary {
    let mut all = InvisibleSummary::default();
    for entry in entries {
        let skill = &entry.skill;
        all.merge(&InvisibleSummary::of(skill.yaml.slice(skill.text())));
    }
    all
}

/// Finds all, or names every one that is not there.
pub(crate) fn resolve_all<'a>(
    catalog: &'a Catalog,
    names: &[String],
) -> Result<Vec<&'a Entry>, Failure> {
    let (found, missing): (Vec<_>, Vec<_>) =
        names.iter().map(|name| catalog.resolve(name)).partition(Result::is_ok);
    let missing: Vec<NotFound> = missing.into_iter().filter_map(Result::err).collect();
    match missing.as_slice() {
        [] => Ok(found.into_iter().flatten().collect()),
        missing => Err(not_found(catalog, missing)),
    }
}

fn not_found(catalog: &Catalog, errors: &[NotFound]) -> Failure {
    if let Some(error) = errors.iter().find(|error| !error.ambiguous.is_empty()) {
        let list = error.ambiguous.join(", ");
        return Failure::no(format!("several skills are called `{}`: {list}", error.reference))
            .hint("Rename one of them, or name a plugin's as `plugin:skill`.");
    }
    let mut failure = Failure::no(match errors {
        [error] => error.to_string(),
        errors => {
            let names: Vec<String> =
                errors.iter().map(|error| format!("`{}`", error.reference)).collect();
            format!("skills {} not found", names.join(", "))
        }
    });
    let mut searched: Vec<&str> = Vec::new();
    for error in errors {
        if let Some(hint) = explain(catalog, error) {
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
    match is_switched_off(catalog) {
        true => failure.hint(SWITCHED_OFF),
        false => {
            failure.hint("`rep list` shows every skill; `rep doctor` says why one is missing.")
        }
    }
}

/// A broken file of that name, or a name that may be meant.
fn explain(catalog: &Catalog, error: &NotFound) -> Option<String> {
    let wanted = error.reference.as_str();
    let called = |path: &Utf8Path| {
        path.file_stem() == Some(wanted)
            || path.parent().and_then(Utf8Path::file_name) == Some(wanted)
    };
    if let Some(broken) = catalog.broken().iter().find(|broken| called(&broken.path)) {
        let path = catalog.places().shorten(&broken.path);
        return Some(format!("{path} is broken: {}", broken.reason.message));
    }
    let elsewhere = || {
        let (_, skill) = wanted.split_once(':')?;
        catalog.entries().iter().find(|entry| entry.skill.name == skill).map(|entry| &entry.id)
    };
    let near = error.nearest.as_ref().or_else(elsewhere)?;
    Some(format!("Did you mean `{near}`?"))
}

/// What to say where the configuration allows no skills at all.
pub(crate) const SWITCHED_OFF: &str =
    "Skills are switched off by `skills_enabled`; `rep config` says where that is set.";

/// Every profile has roots, so that none at all means that skills are not wanted.
pub(crate) fn is_switched_off(catalog: &Catalog) -> bool {
    catalog.roots().is_empty()
}
