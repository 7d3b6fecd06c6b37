//! Finds descriptions that an agent cannot tell apart.
//!
//! Two skills are twins if their descriptions have the same words in the same order, or if name and
//! description reduce to nearly the same stems. The rule for "nearly" comes from reading pairs of real
//! skills: a single word such as `AWS` for `Azure` distinguishes two long descriptions. So the only
//! difference allowed is a few common words that one of the two has in addition; a word replaced by another
//! is always a difference.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rayon::prelude::*;
use repertoire_skill::skill::Skill;
use repertoire_text::Diagnostic;

use super::{SkillLabels, at_description, description_texts};
use crate::background::{BackgroundFrequencies, FrequencyPart};
use crate::codes;
use crate::model::SelectionModel;
use crate::passages;
use crate::tokenizer::{TextLanguage, each_word};
use crate::vectors::{TextVector, dot_products};

/// The minimum cosine similarity of two twins' descriptions.
const CLOSENESS_MIN: f32 = 0.85;
/// The minimum fraction of stems, by weight, that twins share.
const SHARED_MIN: f32 = 0.85;
/// A stem is distinctive if fewer than this fraction of skills contain it.
const TELLING_SHARE: f32 = 0.05;
/// The assumed fraction for a stem that is not in the background.
const UNSEEN: f32 = 0.5 / 67_745.0;

/// Another skill with the same or nearly the same description.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SkillTwin {
    pub(super) skill: usize,
    is_identical: bool,
    closeness: f32,
}

/// The twins of each skill, nearest first.
pub(super) type SkillTwins = Vec<Vec<SkillTwin>>;

/// The text by which a skill describes itself, prepared for comparison.
struct SelfDescription {
    /// The words of the description, in lower case and in order.
    words: String,
    /// The stems of name and description, with their weights.
    stems: BTreeMap<String, f32>,
    vector: TextVector,
}

/// Compares every skill with every other.
pub(super) fn find_twins(skills: &[&Skill], model: &SelectionModel) -> SkillTwins {
    let said: Vec<SelfDescription> =
        skills.par_iter().map(|skill| SelfDescription::new(skill, model)).collect();
    let rows: Vec<i8> = said.iter().flat_map(|one| &one.vector.bytes).copied().collect();
    let of_one = |one: &SelfDescription| -> Vec<(usize, f32)> {
        let mut close = Vec::new();
        dot_products(&rows, &one.vector.bytes, |other, dot| {
            let closeness = dot as f32 * one.vector.scale * said[other].vector.scale;
            if closeness >= CLOSENESS_MIN || one.words == said[other].words {
                close.push((other, closeness));
            }
        });
        close
    };
    said.par_iter()
        .enumerate()
        .map(|(at, one)| {
            let others = of_one(one).into_iter().filter(|(other, _)| *other != at);
            let mut twins: Vec<SkillTwin> = others
                .filter_map(|(skill, closeness)| one.compare_with(&said[skill], skill, closeness))
                .collect();
            twins.sort_by(SkillTwin::nearest_first);
            twins
        })
        .collect()
}

/// Reports each skill that has a twin.
pub(super) fn report_twins(
    skills: &[&Skill],
    twins: &SkillTwins,
    names: &SkillLabels,
) -> Vec<Diagnostic> {
    let with_twins = skills.iter().zip(twins);
    let found = with_twins.filter_map(|(skill, twins)| {
        let (nearest, others) = twins.split_first()?;
        let how = if nearest.is_identical {
            "the same description as"
        } else {
            "nearly the same description as"
        };
        let more = match others.len() {
            0 => String::new(),
            1 => " and 1 other skill".to_owned(),
            more => format!(" and {more} other skills"),
        };
        let message = format!("it has {how} {}{more}", names.get_label(nearest.skill));
        Some(at_description(skill, &codes::INDISTINGUISHABLE, message))
    });
    found.collect()
}

impl SkillTwin {
    fn nearest_first(&self, other: &SkillTwin) -> Ordering {
        other
            .is_identical
            .cmp(&self.is_identical)
            .then(other.closeness.total_cmp(&self.closeness))
            .then(self.skill.cmp(&other.skill))
    }
}

impl SelfDescription {
    fn new(skill: &Skill, model: &SelectionModel) -> Self {
        let text = description_texts(skill).collect::<Vec<_>>().join("\n");
        let mut words = String::with_capacity(text.len());
        each_word(&text, |word| {
            words.push_str(word);
            words.push(' ');
        });
        let vector = model.vectors().encode(&text);
        SelfDescription {
            words,
            stems: weighted_stems(&skill.name, &text, model.background()),
            vector,
        }
    }

    fn compare_with(
        &self,
        other: &SelfDescription,
        skill: usize,
        closeness: f32,
    ) -> Option<SkillTwin> {
        let is_identical = self.words == other.words && !self.words.is_empty();
        let is_twin = is_identical || self.is_nearly_same(other);
        is_twin.then_some(SkillTwin { skill, is_identical, closeness })
    }

    fn is_nearly_same(&self, other: &SelfDescription) -> bool {
        let (mine, theirs) = (self.weights_missing_in(other), other.weights_missing_in(self));
        if !mine.is_empty() && !theirs.is_empty() {
            return false;
        }
        let differing = [mine, theirs].concat();
        let telling = libm::logf(1.0 / TELLING_SHARE);
        if differing.iter().any(|worth| *worth > telling) {
            return false;
        }
        let all: f32 = self.stems.values().sum::<f32>().max(other.stems.values().sum());
        all > 0.0 && 1.0 - differing.iter().sum::<f32>() / all >= SHARED_MIN
    }

    /// Returns the weights of the stems that the other skill does not have.
    fn weights_missing_in(&self, other: &SelfDescription) -> Vec<f32> {
        let missing = self.stems.iter().filter(|(stem, _)| !other.stems.contains_key(*stem));
        missing.map(|(_, weight)| *weight).collect()
    }
}

/// Returns the stems of name and description with their weights. Stop words count in a name, where every word
/// was chosen. Stems of passages about what the skill is not for are marked, so that they never equal the
/// others.
fn weighted_stems(
    name: &str,
    description: &str,
    background: &BackgroundFrequencies,
) -> BTreeMap<String, f32> {
    let language = TextLanguage::detect_language(description);
    let mut all = BTreeMap::new();
    let mut add = |mark: &str, word: &str| {
        let stem = language.stem(word);
        let share = background.share_of_stem(&stem, FrequencyPart::Head).max(UNSEEN);
        all.insert(format!("{mark}{stem}"), libm::logf(1.0 / share));
    };
    each_word(name, |word| add("", word));
    let passages = passages::split_passages(description);
    for (mark, passages) in [("", passages.pro), ("not ", passages.contra)] {
        for passage in passages {
            each_word(passage, |word| {
                if !language.is_stop_word(word) {
                    add(mark, word);
                }
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::lint::testing::{format_findings, make_skill};
    use repertoire_skill::skill::Skill;

    fn twins(skills: &[Arc<Skill>]) -> Vec<String> {
        format_findings(skills).into_iter().filter(|found| found.contains("RS600")).collect()
    }

    #[track_caller]
    fn check_told_apart(one: (&str, &str), other: (&str, &str)) {
        let found = twins(&[make_skill(one.0, one.1), make_skill(other.0, other.1)]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn the_same_words_are_the_same_description_whatever_their_case_and_marks() {
        let found = twins(&[
            make_skill(
                "invoices",
                "Checks invoices against purchase orders. Use when a bill comes in.",
            ),
            make_skill(
                "bills",
                "checks invoices against purchase orders: use when a bill comes in",
            ),
            make_skill("photos", "Sorts photographs by date and place."),
        ]);
        assert_eq!(
            found,
            [
                "s/invoices: warning[RS600] it has the same description as `bills`",
                "s/bills: warning[RS600] it has the same description as `invoices`",
            ]
        );
    }

    #[test]
    fn a_common_word_more_or_another_order_tells_nothing_apart() {
        let found = twins(&[
            make_skill(
                "invoices",
                "Checks invoices against purchase orders, currencies and suppliers.",
            ),
            make_skill(
                "invoices",
                "Checks and creates an invoice, against the suppliers, the currency and the purchase order.",
            ),
        ]);
        assert_eq!(
            found,
            [
                "s/invoices: warning[RS600] it has nearly the same description as `invoices` in `s/invoices/SKILL.md`",
                "s/invoices: warning[RS600] it has nearly the same description as `invoices` in `s/invoices/SKILL.md`",
            ]
        );
    }

    #[test]
    fn many_twins_are_one_finding_each() {
        let all: Vec<_> = ["a", "b", "c", "d"]
            .map(|name| make_skill(name, "Reads PDF files."))
            .into_iter()
            .collect();
        let found = twins(&all);
        assert_eq!(found.len(), 4);
        assert_eq!(
            found[3],
            "s/d: warning[RS600] it has the same description as `a` and 2 other skills"
        );
    }

    #[test]
    fn one_telling_word_in_a_long_description_is_enough() {
        check_told_apart(
            (
                "aws-review",
                "Reviews the architecture of an AWS workload for cost, safety and speed, and files an issue for every finding.",
            ),
            (
                "azure-review",
                "Reviews the architecture of an Azure workload for cost, safety and speed, and files an issue for every finding.",
            ),
        );
    }

    #[test]
    fn a_word_in_the_place_of_another_is_meant() {
        check_told_apart(
            (
                "docs-a",
                "Creates documentation pages for the public functions of a library project.",
            ),
            (
                "docs-b",
                "Reviews documentation pages for the public functions of a library project.",
            ),
        );
    }

    #[test]
    fn a_little_word_in_a_name_is_meant() {
        check_told_apart(
            ("mail-reply", "Replies to a message and keeps its thread."),
            ("mail-reply-all", "Replies to all of a message and keeps its thread."),
        );
    }

    #[test]
    fn saying_what_a_skill_is_not_for_tells_it_apart() {
        check_told_apart(
            ("tables", "Reads tables out of scanned pages. Use for invoices and receipts."),
            ("tables", "Reads tables out of scanned pages. Do not use for invoices and receipts."),
        );
    }
}
