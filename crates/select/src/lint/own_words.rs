//! Finds skills that never rank first for their own words.
//!
//! A skill's own words are what its author expects users to say: the sentences of its description, the
//! requests that the description quotes, and its trigger phrases. Each is run through a selector as a task,
//! by words and meaning alone, because a trigger phrase would always find itself. A skill passes if it ranks
//! first for any of them. Ranking behind its twins counts as first, since these are reported by another rule.
//!
//! The name is tried only if there is nothing else. Nearly every skill is found by its name, but users who
//! know the name do not need selection.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

use rayon::prelude::*;
use regex::Regex;
use repertoire_skill::skill::Skill;
use repertoire_text::Diagnostic;
use repertoire_text::layout::one_line;

use super::twins::{SkillTwin, SkillTwins};
use super::{SkillLabels, at_description, description_texts};
use crate::codes;
use crate::document::SkillDocument;
use crate::limits::OWN_WORDS_MAX;
use crate::model::SelectionModel;
use crate::passages;
use crate::query::split_sentences;
use crate::selector::SkillSelector;
use crate::settings::{SelectionSettings, SelectionStage, StageSet};
use crate::task::Task;
use crate::tokenizer::{TextLanguage, each_word};

/// The maximum number of characters shown of an example.
const EXAMPLE_CHARS_MAX: usize = 80;

/// Reports the skills that lose on all of their own words.
pub(super) fn check_own_words(
    skills: &[&Skill],
    twins: &SkillTwins,
    names: &SkillLabels,
    model: &SelectionModel,
) -> Vec<Diagnostic> {
    let ids: Vec<String> = (0..skills.len()).map(|at| at.to_string()).collect();
    let places: HashMap<&str, usize> =
        ids.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
    let documents: Vec<SkillDocument<'_>> =
        ids.iter().zip(skills).map(|(id, skill)| SkillDocument::from_skill(id, skill)).collect();
    let stages = StageSet::only([SelectionStage::Words, SelectionStage::Meaning]);
    let settings = SelectionSettings { stages, ..SelectionSettings::default() };
    let selector = SkillSelector::new(&documents, model.clone(), settings, None);
    (0..skills.len())
        .into_par_iter()
        .filter_map(|at| {
            let lost = lost_to(skills[at], at, &twins[at], &selector, &places)?;
            Some(lost.to_diagnostic(skills[at], names))
        })
        .collect()
}

/// The result for a skill that never ranked first.
struct LosingSkill {
    tasks: usize,
    /// The skill that won most often, the number of its wins, and one of the tasks.
    winner: usize,
    times: usize,
    example: String,
}

/// Returns `None` if the skill ranked first at least once, or if no task gave a result.
fn lost_to(
    skill: &Skill,
    at: usize,
    twins: &[SkillTwin],
    selector: &SkillSelector,
    places: &HashMap<&str, usize>,
) -> Option<LosingSkill> {
    let mut wins: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut tasks = 0;
    for text in own_words(skill) {
        let ranked = selector.rank(&Task::new(text.as_str()), twins.len() + 1);
        let mut ranked = ranked.iter().filter_map(|ranked| places.get(ranked.name.as_str()));
        let is_twin = |place: usize| twins.iter().any(|twin| twin.skill == place);
        let Some(first) = ranked.find(|place| !is_twin(**place)) else { continue };
        if *first == at {
            return None;
        }
        tasks += 1;
        wins.entry(*first).or_default().push(text);
    }
    // Ties go to the first skill: `max_by_key` returns the last maximum of the reversed order.
    let (winner, won) = wins.into_iter().rev().max_by_key(|(_, won)| won.len())?;
    let example = won.iter().max_by_key(|text| text.contains(' ')).cloned().unwrap_or_default();
    Some(LosingSkill { tasks, winner, times: won.len(), example })
}

impl LosingSkill {
    fn to_diagnostic(&self, skill: &Skill, names: &SkillLabels) -> Diagnostic {
        let LosingSkill { tasks, times, .. } = self;
        let winner = names.get_label(self.winner);
        let often = match (times, tasks) {
            (1, 1) => String::new(),
            (times, tasks) if times == tasks => format!(" {times} times"),
            (times, tasks) => format!(" {times} of {tasks} times"),
        };
        let example = shorten_example(&self.example);
        let message = format!(
            "its own words find other skills: {winner} comes first{often}, as for \"{example}\""
        );
        at_description(skill, &codes::NEVER_FIRST, message)
    }
}

fn shorten_example(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(EXAMPLE_CHARS_MAX) {
        None => line,
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
    }
}

/// Returns the distinct texts that users are expected to say, sentences first, because most skills win with
/// the first one.
fn own_words(skill: &Skill) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for description in description_texts(skill) {
        let passages = passages::split_passages(description);
        for passage in &passages.pro {
            all.extend(split_sentences(passage).map(|sentence| sentence.trim().to_owned()));
            all.extend(quoted_requests(passage).map(str::to_owned));
        }
    }
    all.extend(skill.triggers.keywords.iter().cloned());
    let mut seen = BTreeSet::new();
    all.retain(|text| says_something(text) && seen.insert(text.to_lowercase()));
    all.truncate(OWN_WORDS_MAX);
    if all.is_empty() {
        let mut name = Vec::new();
        each_word(&skill.name, |word| name.push(word.to_owned()));
        all.push(name.join(" "));
    }
    all
}

/// Returns true if a text contains any word but stop words: "Use when asked." finds anything or nothing.
fn says_something(text: &str) -> bool {
    let language = TextLanguage::detect_language(text);
    let mut says = false;
    each_word(text, |word| says |= !language.is_stop_word(word));
    says
}

/// Returns the requests in quotation marks. A single quote must open at the edge of a word, since most are
/// apostrophes.
fn quoted_requests(text: &str) -> impl Iterator<Item = &str> {
    static QUOTED: OnceLock<Regex> = OnceLock::new();
    let quoted = QUOTED.get_or_init(|| {
        let pattern =
            r#""([^"\n]{3,200})"|“([^”\n]{3,200})”|(?:^|[\s(,/])['‘]([^'’\n]{3,200})['’]"#;
        Regex::new(pattern).unwrap_or_else(|error| unreachable!("the pattern is fixed: {error}"))
    });
    quoted
        .captures_iter(text)
        .filter_map(|found| found.iter().skip(1).flatten().next().map(|part| part.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::{format_findings, make_skill, skill_in};

    #[test]
    fn own_words_are_sentences_quoted_requests_and_trigger_phrases() {
        let fields = "triggers:\n  keywords: [red build]\n";
        let description = "Mends the build. Use when the user says \"it's broken\" or 'fix my build'. \
                           Not for slow builds.";
        let skill = skill_in("s", "build-mender", description, fields);
        assert_eq!(
            own_words(&skill),
            [
                "Mends the build.",
                "Use when the user says \"it's broken\" or 'fix my build'.",
                "it's broken",
                "fix my build",
                "red build",
            ]
        );
    }

    #[test]
    fn the_name_speaks_where_nothing_else_does() {
        assert_eq!(own_words(&make_skill("tax-letters", "Use when needed.")), ["tax letters"]);
    }

    #[test]
    fn a_skill_that_others_outdo_in_its_own_words_is_found() {
        let found = format_findings(&[
            make_skill("my-skill", "Reads PDF files. Sorts photographs by date. Use when asked."),
            make_skill("pdf-files", "Reads PDF files."),
            make_skill("photograph-date", "Sorts photographs by date."),
        ]);
        assert_eq!(
            found,
            [
                "s/my-skill: warning[RS601] its own words find other skills: `pdf-files` comes first 1 of 2 times, as for \"Reads PDF files.\""
            ]
        );
    }

    #[test]
    fn skills_that_answer_their_own_words_are_left_alone() {
        let found = format_findings(&[
            make_skill("invoices", "Checks invoices against purchase orders."),
            make_skill("photos", "Sorts photographs by date and place."),
            make_skill("letters", "Writes letters to the tax office."),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn losing_to_a_twin_is_the_twins_finding_alone() {
        let found = format_findings(&[
            make_skill("a", "Reads PDF files."),
            make_skill("b", "Reads PDF files."),
            make_skill("photos", "Sorts photographs by date and place."),
        ]);
        let codes: Vec<bool> = found.iter().map(|found| found.contains("RS600")).collect();
        assert_eq!(codes, [true, true]);
    }

    #[test]
    fn a_long_example_is_cut() {
        assert_eq!(shorten_example("a\n  b"), "a b");
        assert_eq!(shorten_example(&"ø".repeat(81)), format!("{}…", "ø".repeat(80)));
    }
}
