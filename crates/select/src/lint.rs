//! Lint rules that need selection: skills that cannot be told apart, and skills that their own words do not
//! find.
//!
//! Both rules compare skills, so their findings depend on which skills are linted together. Only skills that
//! are offered to an agent are compared: agents, and skills that have to be named, are left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use repertoire_skill::lint as skill_lint;
use repertoire_skill::profile::ProfileId;
use repertoire_skill::skill::Skill;
use repertoire_text::{Diagnostic, DiagnosticCode, Severity};

use crate::codes;
use crate::model::SelectionModel;

mod own_words;
#[cfg(test)]
mod testing;
mod twins;

/// Returns every code that lint can report, ordered by id.
pub fn all_codes() -> Vec<&'static DiagnosticCode> {
    let mut all = skill_lint::all_codes();
    all.extend(codes::ALL);
    all.sort_by_key(|code| code.id);
    all
}

/// Returns true if a profile uses these rules. Only our own does, because the others reproduce another tool's
/// findings.
pub fn applies_to_profile(profile: ProfileId) -> bool {
    profile == ProfileId::Repertoire
}

/// Checks skills that are offered together, and returns the findings in the order of the skills.
pub fn check_offered_skills(skills: &[Arc<Skill>], model: &SelectionModel) -> Vec<Diagnostic> {
    let offered: Vec<&Skill> =
        skills.iter().map(|skill| &**skill).filter(|skill| skill.is_offered()).collect();
    let (skills, mut out) = without_copies(offered);
    if skills.len() < 2 {
        return out;
    }
    let names = SkillLabels::new(&skills);
    let twins = twins::find_twins(&skills, model);
    out.extend(twins::report_twins(&skills, &twins, &names));
    out.extend(own_words::check_own_words(&skills, &twins, &names, model));
    out
}

/// Keeps only the first of several copies of a skill: the same file under the same name, as in a project that
/// serves two clients. The copies get an `Info` diagnostic.
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

/// The labels of skills in messages: the name, and the file as well if the name is not unique.
struct SkillLabels(Vec<String>);

impl SkillLabels {
    fn new(skills: &[&Skill]) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for skill in skills {
            *counts.entry(&skill.name).or_default() += 1;
        }
        let name = |skill: &&Skill| match counts.get(skill.name.as_str()) {
            Some(2..) => format!("`{}` in `{}`", skill.name, skill.source.path()),
            _ => format!("`{}`", skill.name),
        };
        SkillLabels(skills.iter().map(name).collect())
    }

    fn get_label(&self, skill: usize) -> &str {
        &self.0[skill]
    }
}

/// Returns the texts, apart from the name, by which an agent chooses a skill.
fn description_texts(skill: &Skill) -> impl Iterator<Item = &str> {
    std::iter::once(skill.description.as_str()).chain(skill.claude.when_to_use.as_deref())
}

fn at_description(skill: &Skill, code: &'static DiagnosticCode, message: String) -> Diagnostic {
    let found = Diagnostic::new(code, message).help(code.remedy);
    match skill.frontmatter.get("description") {
        Some(node) => found.at(&skill.source, node.span),
        None => found.in_file(skill.source.path()),
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{format_findings, make_skill};

    #[test]
    fn one_skill_has_nobody_to_be_taken_for() {
        assert_eq!(format_findings(&[make_skill("a", "Reads PDF files.")]), [""; 0]);
        assert_eq!(format_findings(&[]), [""; 0]);
    }

    #[test]
    fn the_same_file_in_two_places_is_mentioned_and_not_complained_about() {
        let copy = |folder: &str| super::testing::skill_in(folder, "pdf", "Reads PDF files.", "");
        let other = make_skill("photos", "Sorts photographs by date and place.");
        assert_eq!(
            format_findings(&[copy("one"), copy("two"), other]),
            ["two/pdf: info[RS600] the same file as `one/pdf/SKILL.md`"]
        );
    }

    #[test]
    fn skills_that_have_to_be_named_take_no_part() {
        let named = |folder: &str| {
            let fields = "disable-model-invocation: true\n";
            super::testing::skill_in(folder, folder, "Reads PDF files.", fields)
        };
        assert_eq!(
            format_findings(&[named("a"), named("b"), make_skill("c", "Reads PDF files.")]),
            [""; 0]
        );
    }
}
