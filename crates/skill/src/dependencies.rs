//! Dependencies between skills: an order in which every skill follows its dependencies, missing dependencies,
//! and cycles shown as a path.

use std::collections::{BTreeMap, BTreeSet};

use repertoire_text::{Diagnostic, Severity};
use semver::Version;

use crate::catalog::{Catalog, CatalogEntry};
use crate::codes;
use crate::limits::{CYCLES_MAX, SUGGESTIONS_MAX};
use crate::name;
use crate::skill::{Skill, SkillDependency};

/// The result of looking up a dependency.
#[derive(Clone, Debug)]
pub enum DependencyMatch<'a> {
    /// This skill satisfies it.
    By(&'a CatalogEntry),
    /// No skill has the name.
    Missing,
    /// A skill has the name, but another version or none.
    OtherVersion(&'a CatalogEntry),
}

/// Returns true if `dependencies` certainly lists skills. In practice it also lists packages, often the one
/// that the skill is named after.
fn lists_skills(skill: &Skill) -> bool {
    let versioned = skill.execution.dependencies.iter().any(|need| need.requirement.is_some());
    versioned || skill.frontmatter.get("type").is_some()
}

/// Looks up each dependency of a skill, in file order.
pub fn match_dependencies<'a>(
    skill: &'a Skill,
    entries: &'a [CatalogEntry],
) -> Vec<(&'a SkillDependency, DependencyMatch<'a>)> {
    skill_dependencies(skill).map(|need| (need, match_dependency(need, entries))).collect()
}

fn skill_dependencies(skill: &Skill) -> impl Iterator<Item = &SkillDependency> {
    let own_package = |need: &&SkillDependency| need.name == skill.name && !lists_skills(skill);
    skill.execution.dependencies.iter().filter(move |need| !own_package(need))
}

fn match_dependency<'a>(
    need: &SkillDependency,
    entries: &'a [CatalogEntry],
) -> DependencyMatch<'a> {
    // Plugin skills, and skills named after their folder, have an id that differs from their own name.
    let by_name = |entry: &&CatalogEntry| entry.skill.name == need.name;
    let found = find_by_id(&need.name, entries).or_else(|| entries.iter().find(by_name));
    let Some(entry) = found else {
        return DependencyMatch::Missing;
    };
    match (&need.requirement, &entry.skill.version) {
        (None, _) => DependencyMatch::By(entry),
        (Some(requirement), Some(version)) if requirement.matches(version) => {
            DependencyMatch::By(entry)
        }
        (Some(_), _) => DependencyMatch::OtherVersion(entry),
    }
}

fn find_by_id<'a>(id: &str, entries: &'a [CatalogEntry]) -> Option<&'a CatalogEntry> {
    let start = entries.partition_point(|entry| entry.id.as_str() < id);
    entries.get(start).filter(|entry| entry.id == id)
}

/// Returns the skill and all of its dependencies, dependencies first. Missing ones are left out; [`check_dependencies`]
/// reports them.
pub fn order_by_dependency<'a>(
    catalog: &'a Catalog,
    entry: &'a CatalogEntry,
) -> Vec<&'a CatalogEntry> {
    let mut done = BTreeSet::new();
    let mut out = Vec::new();
    // Each frame is a skill and the number of its dependencies that were visited.
    let mut stack = vec![(entry, 0_usize)];
    let mut open = BTreeSet::from([entry.id.clone()]);
    while let Some((current, looked_at)) = stack.pop() {
        let needs = match_dependencies(&current.skill, catalog.entries());
        match needs.get(looked_at) {
            Some((_, DependencyMatch::By(next)))
                if !done.contains(&next.id) && !open.contains(&next.id) =>
            {
                stack.push((current, looked_at + 1));
                open.insert(next.id.clone());
                stack.push((next, 0));
            }
            Some(_) => stack.push((current, looked_at + 1)),
            None => {
                open.remove(&current.id);
                if done.insert(current.id.clone()) {
                    out.push(current);
                }
            }
        }
    }
    out
}

/// The skills that can be depended on: their names, and their versions if they have one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownSkills(BTreeMap<String, Vec<Option<Version>>>);

impl KnownSkills {
    /// Collects the skills of a catalog, each under its id and under its own name.
    pub fn from_entries(entries: &[CatalogEntry]) -> Self {
        let mut known = KnownSkills::default();
        known.add_entries(entries);
        known
    }

    /// Adds the skills of a catalog.
    pub fn add_entries(&mut self, entries: &[CatalogEntry]) {
        for CatalogEntry { id, skill, .. } in entries {
            self.0.entry(id.clone()).or_default().push(skill.version.clone());
            if *id != skill.name {
                self.0.entry(skill.name.clone()).or_default().push(skill.version.clone());
            }
        }
    }

    /// Returns true if any skill satisfies a dependency.
    pub fn can_satisfy(&self, need: &SkillDependency) -> bool {
        self.0.get(&need.name).is_some_and(|versions| {
            need.requirement.as_ref().is_none_or(|wanted| {
                versions.iter().flatten().any(|version| wanted.matches(version))
            })
        })
    }
}

impl FromIterator<(String, Option<Version>)> for KnownSkills {
    fn from_iter<I: IntoIterator<Item = (String, Option<Version>)>>(skills: I) -> Self {
        let mut known = KnownSkills::default();
        for (name, version) in skills {
            known.0.entry(name).or_default().push(version);
        }
        known
    }
}

/// Caches the nearest names of missing skills. Finding them is slow, and they stay valid as long as the names
/// of all skills do, so the cache is kept from one catalog to the next.
#[derive(Debug, Default)]
pub(crate) struct NearestNameCache {
    known: KnownSkills,
    nearest: BTreeMap<String, Option<String>>,
}

impl NearestNameCache {
    fn nearest_name(&mut self, name: &str, known: &KnownSkills) -> Option<&str> {
        if self.known != *known {
            *self = NearestNameCache { known: known.clone(), nearest: BTreeMap::new() };
        }
        // Each search compares every name, so an untrusted catalog must not cause thousands of them.
        if self.nearest.len() >= SUGGESTIONS_MAX && !self.nearest.contains_key(name) {
            return None;
        }
        let find =
            || name::nearest_name(name, known.0.keys().map(String::as_str)).map(str::to_owned);
        self.nearest.entry(name.to_owned()).or_insert_with(find).as_deref()
    }
}

/// Checks the dependencies of `entries`, which the skills in `known` may satisfy.
pub fn check_dependencies(entries: &[CatalogEntry], known: &KnownSkills) -> Vec<Diagnostic> {
    check_dependencies_cached(entries, known, &mut NearestNameCache::default())
}

/// Like [`check`], with the cache of earlier suggestions.
pub(crate) fn check_dependencies_cached(
    entries: &[CatalogEntry],
    known: &KnownSkills,
    neighbours: &mut NearestNameCache,
) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.skill.execution.dependencies.is_empty()) {
        let skill = &entry.skill;
        for need in skill_dependencies(skill) {
            match known.0.get(&need.name) {
                _ if known.can_satisfy(need) => {}
                Some(versions) => {
                    let found = versions.iter().flatten().max();
                    out.push(version_diagnostic(skill, need, found));
                }
                None => {
                    // The name of a package is not a typo of a skill's name, so don't suggest one.
                    let slip = lists_skills(skill);
                    let near = if slip { neighbours.nearest_name(&need.name, known) } else { None };
                    out.push(missing_diagnostic(skill, need, near));
                }
            }
        }
    }
    let circles = find_cycles(entries);
    out.extend(circles.iter().map(|path| cycle_diagnostic(entries, path)));
    if circles.len() == CYCLES_MAX {
        let code = &codes::DEPENDENCY_CYCLE;
        let message =
            format!("there may be more circles than {CYCLES_MAX}, the most that are shown");
        out.push(Diagnostic::new(code, message).help(code.remedy));
    }
    out
}

/// Returns each cycle once, as the ids along it, starting with the smallest. The search ends after
/// [`CYCLES_MAX`], since skills that all depend on each other form far too many cycles to read.
pub fn find_cycles(entries: &[CatalogEntry]) -> Vec<Vec<String>> {
    let needing = || entries.iter().filter(|entry| !entry.skill.execution.dependencies.is_empty());
    // The same skills as `match_dependency` finds, with an index because all skills are looked up. In reverse order, so
    // that the first of several skills with a name stays.
    let by_name: BTreeMap<&str, &CatalogEntry> =
        entries.iter().rev().map(|entry| (entry.skill.name.as_str(), entry)).collect();
    let edges: BTreeMap<&str, Vec<&str>> = needing()
        .map(|entry| {
            let next = |need: &SkillDependency| {
                let named = || by_name.get(need.name.as_str()).copied();
                find_by_id(&need.name, entries).or_else(named).map(|next| next.id.as_str())
            };
            (entry.id.as_str(), skill_dependencies(&entry.skill).filter_map(next).collect())
        })
        .collect();
    let mut found = BTreeSet::new();
    let mut done = BTreeSet::new();
    for start in edges.keys() {
        let mut path: Vec<(&str, usize)> = vec![(start, 0)];
        while let Some((current, looked_at)) = path.pop() {
            if found.len() >= CYCLES_MAX {
                return found.into_iter().collect();
            }
            let next = edges.get(current).and_then(|needs| needs.get(looked_at));
            let Some(next) = next else {
                done.insert(current);
                continue;
            };
            path.push((current, looked_at + 1));
            if let Some(at) = path.iter().position(|(name, _)| name == next) {
                found.insert(rotate_to_smallest(
                    path[at..].iter().map(|(name, _)| (*name).to_owned()).collect(),
                ));
            } else if !done.contains(next) {
                path.push((next, 0));
            }
        }
    }
    found.into_iter().collect()
}

fn rotate_to_smallest(mut path: Vec<String>) -> Vec<String> {
    let smallest = path.iter().enumerate().min_by_key(|(_, name)| name.as_str());
    let at = smallest.map_or(0, |(at, _)| at);
    path.rotate_left(at);
    path
}

fn locate_dependencies(skill: &Skill, diagnostic: Diagnostic) -> Diagnostic {
    let entry = skill.frontmatter.entries.iter().find(|entry| entry.key == "dependencies");
    match entry {
        Some(entry) => diagnostic.at(&skill.source, entry.key_span),
        None => diagnostic.in_file(skill.source.path()),
    }
}

fn missing_diagnostic(skill: &Skill, need: &SkillDependency, near: Option<&str>) -> Diagnostic {
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => codes::DEPENDENCY_MISSING.remedy.to_owned(),
    };
    let message = format!("`{}` depends on `{need}`, which is not there", skill.name);
    let severity = if lists_skills(skill) { Severity::Error } else { Severity::Warning };
    let found = Diagnostic::new(&codes::DEPENDENCY_MISSING, message).help(help);
    locate_dependencies(skill, found.severity(severity))
}

fn version_diagnostic(
    skill: &Skill,
    need: &SkillDependency,
    found: Option<&Version>,
) -> Diagnostic {
    let version = found.map_or("no version".to_owned(), ToString::to_string);
    let message =
        format!("`{}` depends on `{need}`, but `{}` has {version}", skill.name, need.name);
    let code = &codes::DEPENDENCY_VERSION;
    locate_dependencies(skill, Diagnostic::new(code, message).help(code.remedy))
}

fn cycle_diagnostic(entries: &[CatalogEntry], path: &[String]) -> Diagnostic {
    let mut shown = path.join(" → ");
    shown.push_str(" → ");
    shown.push_str(&path[0]);
    let code = &codes::DEPENDENCY_CYCLE;
    let found = Diagnostic::new(code, format!("the skills depend on each other: {shown}"))
        .help(code.remedy);
    match entries.iter().find(|entry| entry.id == path[0]) {
        Some(entry) => locate_dependencies(&entry.skill, found),
        None => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::make_entry;

    /// Skills by id, with their own names and dependencies.
    #[track_caller]
    fn check(skills: &[(&str, &str, &str)], expect: &[&str]) {
        let mut entries: Vec<CatalogEntry> = skills
            .iter()
            .map(|(id, name, needs)| {
                let fields = format!("type: skill\ndependencies: [{needs}]\n");
                CatalogEntry { id: (*id).to_owned(), ..make_entry(name, &fields, "") }
            })
            .collect();
        entries.sort_by(|a, b| a.id.cmp(&b.id));
        let found: Vec<String> = find_cycles(&entries).iter().map(|ids| ids.join(" ")).collect();
        assert_eq!(found, expect, "{skills:?}");
        // The order of loading follows the same dependencies.
        for (at, entry) in entries.iter().enumerate() {
            let next = match_dependencies(&entry.skill, &entries);
            let is_alone = next.iter().all(|(_, found)| matches!(found, DependencyMatch::Missing));
            let in_cycle = found.iter().any(|ids| ids.split(' ').any(|id| id == entries[at].id));
            assert!(!(is_alone && in_cycle), "{} has no dependencies", entry.id);
        }
    }

    #[test]
    fn a_cycle_is_found_by_ids_and_by_names() {
        check(&[("a", "a", "b"), ("b", "b", "a")], &["a b"]);
        check(&[("p:a", "a", "b"), ("p:b", "b", "a")], &["p:a p:b"]);
        check(&[("p:a", "a", "p:b"), ("p:b", "b", "a"), ("b", "b", "")], &["p:a p:b"]);
        check(&[("folder-a", "a", "folder-b"), ("folder-b", "b", "a")], &["folder-a folder-b"]);
        check(&[("foo", "Foo", "bar"), ("bar", "bar", "Foo")], &["bar foo"]);
    }

    #[test]
    fn skills_of_the_same_name_make_no_cycle_of_their_own() {
        // `b` needs the first `a`, which needs nothing.
        check(&[("a", "a", ""), ("p:a", "a", "b"), ("b", "b", "a")], &[]);
        check(&[("p:a", "a", ""), ("q:a", "a", "b"), ("b", "b", "a")], &[]);
        check(&[("p:a", "a", "b"), ("q:a", "a", ""), ("b", "b", "a")], &["b p:a"]);
    }
}
