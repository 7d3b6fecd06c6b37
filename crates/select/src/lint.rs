//! Lint that needs selection: skills that cannot be told apart, and skills that their own words do not find.
//!
//! Both look at skills together, so what they say depends on which skills those are. They compare what an
//! agent would be offered: skills that have to be named, and agents, take no part.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use repertoire_skill::lint as skill_lint;
use repertoire_skill::profile::ProfileId;
use repertoire_skill::skill::Skill;
use repertoire_text::{Code, Diagnostic, Severity};

use crate::codes;
use crate::model::Model;

mod own_words;
#[cfg(test)]
mod testing;
mod twins;

/// Every code that lint can report, by id.
pub fn all_codes() -> Vec<&'static Code> {
    let mut all = skill_lint::all_codes();
    all.extend(codes::ALL);
    all.sort_by_key(|code| code.id);
    all
}

/// Whether a profile asks these rules: only our own. The others say what another tool would say.
pub fn applies(profile: ProfileId) -> bool {
    profile == ProfileId::Repertoire
}

/// Findings about skills that are offered together, in the order of the skills.
pub fn check(skills: &[Arc<Skill>], model: &Model) -> Vec<Diagnostic> {
    let offered: Vec<&Skill> =
        skills.iter().map(|skill| &**skill).filter(|skill| skill.is_offered()).collect();
    let (skills, mut out) = without_copies(offered);
    if skills.len() < 2 {
        return out;
    }
    let names = Names::new(&skills);
    let twins = twins::find(&skills, model);
    out.extend(twins::report(&skills, &twins, &names));
    out.extend(own_words::check(&skills, &twins, &names, model));
    out
}

/// The same file under the same name is one skill that lies in two places, as when a project serves two
/// clients: there is nothing to tell apart. The copies are mentioned, and the first stands for all.
fn without_copies(skills: Vec<&Skill>) -> (Vec<&Skill>, Vec<Diagnostic>) {
    skills.par_iter().for_each(|skill| {
        skill.digest();
    });
    let mut first = BTreeMap::new();
    let mut copies = Vec::new();
    let mut kept = Vec::new();
    for skill in skills {
        match first.get(&(&skill.name, skill.digest())) {
            None => {
                first.insert((&skill.name, skill.digest()), skill);
                kept.push(skill);
            }
            Some(original) => {
                let message = format!("the same file as `{}`", original.source.path());
                let found = at_description(skill, &codes::INDISTINGUISHABLE, message);
                copies.push(
                    found.severity(Severity::Info).help("Keep one of them, if both are offered."),
                );
            }
        }
    }
    (kept, copies)
}

/// What a skill is called in messages: its name, and its file where others have the name too.
struct Names(Vec<String>);

impl Names {
    fn new(skills: &[&Skill]) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for skill in skills {
            *counts.entry(&skill.name).or_default() += 1;
        }
        let name = |skill: &&Skill| match counts.get(skill.name.as_str()) {
            Some(2..) => format!("`{}` in `{}`", skill.name, skill.source.path()),
            _ => format!("`{}`", skill.name),
        };
        Names(skills.iter().map(name).collect())
    }

    fn of(&self, skill: usize) -> &str {
        &self.0[skill]
    }
}

/// What an agent reads of a skill before it chooses, besides the name.
fn descriptions(skill: &Skill) -> impl Iterator<Item = &str> {
    std::iter::once(skill.description.as_str()).chain(skill.claude.when_to_use.as_deref())
}

fn at_description(skill: &Skill, code: &'static Code, message: String) -> Diagnostic {
    let found = Diagnostic::new(code, message).help(code.remedy);
    match skill.frontmatter.get("description") {
        Some(node) => found.at(&skill.source, node.span),
        None => found.in_file(skill.source.path()),
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{findings, skill};

    #[test]
    fn one_skill_has_nobody_to_be_taken_for() {
        assert_eq!(findings(&[skill("a", "Reads PDF files.")]), [""; 0]);
        assert_eq!(findings(&[]), [""; 0]);
    }

    #[test]
    fn the_same_file_in_two_places_is_mentioned_and_not_complained_about() {
        let copy = |folder: &str| super::testing::skill_in(folder, "pdf", "Reads PDF files.", "");
        let other = skill("photos", "Sorts photographs by date and place.");
        assert_eq!(
            findings(&[copy("one"), copy("two"), other]),
            ["two/pdf: info[RS600] the same file as `one/pdf/SKILL.md`"]
        );
    }

    #[test]
    fn skills_that_have_to_be_named_take_no_part() {
        let named = |folder: &str| {
            let fields = "disable-model-invocation: true\n";
            super::testing::skill_in(folder, folder, "Reads PDF files.", fields)
        };
        assert_eq!(findings(&[named("a"), named("b"), skill("c", "Reads PDF files.")]), [""; 0]);
    }
}
