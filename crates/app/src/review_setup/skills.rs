//! Selects the skills that take part in a review, and decides how far they are trusted.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_review::extract::{ReviewKind, ReviewSkill, extract_review_skill};
use repertoire_review::instructions::ResolvedSkill;
use repertoire_review::lineup::ReviewLineup;
use repertoire_review::patterns::PatternSet;
use repertoire_review::record::UnresolvedSkill;
use repertoire_review::scope::ReviewInputs;
use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::skill::Scope as SkillScope;
use repertoire_skill::trust::TrustLevel;

use super::ReviewRunOptions;
use crate::context::AppContext;
use crate::error::AppError;

/// Stands for the default skills among the names of skills.
const USUAL: &str = "usual";

impl AppContext<'_> {
    /// Returns the requested skills, or the default ones, and the names that were not found.
    pub(super) fn review_skills(
        &self,
        options: &ReviewRunOptions,
        catalog: &Catalog,
        (workspace, gathered): (&Utf8Path, &ReviewInputs),
        warnings: &mut Vec<String>,
    ) -> Result<(Vec<ResolvedSkill>, Vec<UnresolvedSkill>), AppError> {
        let typed = options.skills.iter().map(|name| name.trim().to_owned());
        let mut asked: Vec<String> = typed.filter(|name| !name.is_empty()).collect();
        if asked.is_empty() {
            asked = self.config.values().review_skills.clone().unwrap_or_default();
        }
        if asked.is_empty() {
            asked.push(USUAL.to_owned());
        }
        if options.no_skills {
            asked.clear();
        }
        let (mut found, mut missing): (Vec<ResolvedSkill>, Vec<UnresolvedSkill>) =
            (Vec::new(), Vec::new());
        for name in &asked {
            let more = match (name.as_str(), catalog.resolve(name)) {
                (USUAL, _) => default_skills(options, catalog, warnings),
                (_, Ok(entry)) => vec![resolve_skill(entry, name, true, warnings)],
                (_, Err(error)) => {
                    missing.push(UnresolvedSkill {
                        source: name.clone(),
                        reason: error.to_string(),
                        searched: error.searched.clone(),
                    });
                    Vec::new()
                }
            };
            for one in more {
                if !contains_skill(&found, &one) {
                    found.push(one);
                }
            }
        }
        found.retain(|one| {
            if catalog
                .resolve(&one.skill.source)
                .is_ok_and(|entry| is_touched(entry, workspace, gathered))
            {
                warnings.push(format!(
                    "the change touches the skill `{}`, which takes no part in its review",
                    one.skill.source
                ));
                false
            } else {
                true
            }
        });
        if found.is_empty() && !missing.is_empty() {
            Err(AppError::wrong_usage(format!("none of the skills is there: {}", asked.join(", ")))
                .hint("`rep list` lists them; without `--skills` the usual ones take part."))
        } else {
            Ok((found, missing))
        }
    }
}

fn contains_skill(found: &[ResolvedSkill], one: &ResolvedSkill) -> bool {
    found
        .iter()
        .any(|known| known.skill.name == one.skill.name && known.skill.source == one.skill.source)
}

/// Returns the review skills of the built-in pack, or trusted skills that override them by name.
fn default_skills(
    options: &ReviewRunOptions,
    catalog: &Catalog,
    warnings: &mut Vec<String>,
) -> Vec<ResolvedSkill> {
    let shadowed = catalog.shadowed().iter().map(|shadowed| &shadowed.entry);
    let all = catalog.entries().iter().chain(shadowed);
    let mut names: Vec<&str> = all
        .clone()
        .filter(|entry| is_builtin(entry) && entry.skill.name.starts_with("reviewing-"))
        .map(|entry| entry.skill.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let winner = |name: &&str| {
        let trusted = catalog.get(name).filter(|entry| entry.trust == TrustLevel::Trusted);
        trusted.or_else(|| all.clone().find(|entry| entry.skill.name == *name && is_builtin(entry)))
    };
    let found = names
        .iter()
        .filter_map(winner)
        .map(|entry| resolve_skill(entry, &entry.skill.name, false, warnings));
    found.filter(|one| options.docs == (one.skill.kind == ReviewKind::Command)).collect()
}

fn is_builtin(entry: &CatalogEntry) -> bool {
    entry.skill.origin.scope == SkillScope::Builtin
}

fn resolve_skill(
    entry: &CatalogEntry,
    source: &str,
    asked: bool,
    warnings: &mut Vec<String>,
) -> ResolvedSkill {
    let extracted = extract_review_skill(&entry.skill, source);
    let said = extracted.diagnostics.iter().filter(|_| asked);
    warnings.extend(said.map(|found| format!("{source}: {}", found.message)));
    let trusted = entry.trust == TrustLevel::Trusted;
    if asked && !trusted {
        warnings.push(format!(
            "the skill `{source}` is not trusted: its patterns prove nothing and its false-positive rules do not count; `rep trust {source}` trusts it"
        ));
    }
    ResolvedSkill { skill: extracted.skill, trusted, asked }
}

/// Returns true if the change under review touches the skill.
fn is_touched(entry: &CatalogEntry, workspace: &Utf8Path, gathered: &ReviewInputs) -> bool {
    let origin = &entry.skill.origin;
    let own = |path: &Utf8PathBuf| {
        let path = workspace.join(path);
        path == origin.file || (origin.is_folder() && path.starts_with(origin.dir()))
    };
    gathered.touched.iter().any(own)
}

/// Returns messages about patterns that cannot be run, if skills were requested explicitly.
pub(super) fn describe_unusable_patterns(
    skills: &[ResolvedSkill],
    patterns: &PatternSet,
) -> Vec<String> {
    let is_asked = skills.iter().any(|resolved| resolved.asked);
    let all = patterns.unusable().iter().filter(|_| is_asked);
    all.map(|(id, why)| format!("the pattern `{id}` cannot be run: {why}")).collect()
}

/// Returns the category of a skill's patterns.
pub(super) fn category_of(lineup: &ReviewLineup, skill: &ReviewSkill) -> String {
    let agent = skill.primary_agent.as_deref();
    let known = lineup.agents.iter().find(|known| Some(known.name.as_str()) == agent);
    match known {
        Some(agent) => agent.category.clone(),
        None => skill.name.strip_prefix("reviewing-").unwrap_or(&skill.name).to_owned(),
    }
}
