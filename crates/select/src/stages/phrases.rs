//! Finds the trigger phrases that skills declare.
//!
//! The phrases of all skills form one automaton. Case is ignored, and so is the difference between spaces,
//! hyphens and underscores. A phrase must begin and end at word boundaries, and its last word may be
//! inflected. Scripts without spaces between words have no such boundaries.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use unicode_normalization::UnicodeNormalization;

use super::case_folding::fold_char;
use crate::background::{BackgroundFrequencies, FrequencyPart};
use crate::document::SkillDocument;
use crate::evidence::{StageEvidence, combine_strengths};
use crate::limits::{PHRASE_BYTES_MAX, PHRASES_PER_SKILL_MAX, TASK_BYTES_MAX};
use crate::selection::SelectionReason;
use crate::task::Task;
use crate::tokenizer::{TextLanguage, is_dense, is_mark};

/// The strength of a phrase of several words, which is seldom an accident.
const SEVERAL_WORDS: f32 = 0.85;
/// The strength of a single word, which may be an accident.
const ONE_WORD: f32 = 0.75;
/// The strength of a word that many skills contain.
const COMMON: f32 = 0.45;
/// The cap on the common words of a skill combined, because long tasks contain many of them.
const COMMON_TOGETHER_MAX: f32 = 0.5;
/// The share of skills above which a word is common.
const COMMON_SHARE: f32 = 0.15;

/// The trigger phrases of all skills.
#[derive(Debug)]
pub(crate) struct PhraseTriggers(PhraseSet);

impl PhraseTriggers {
    pub(crate) fn new(documents: &[SkillDocument<'_>]) -> PhraseTriggers {
        PhraseTriggers(PhraseSet::new(documents, |document| &document.triggers.keywords))
    }

    /// Returns the skills with a phrase in the task, in catalog order. The reason is the skill's longest
    /// phrase; others add to its strength, common words only up to a cap.
    pub(crate) fn find(&self, task: &Task) -> Vec<StageEvidence> {
        let found = self.0.find(&task.text);
        let evidence = found.chunk_by(|a, b| a.skill == b.skill).filter_map(|found| {
            let longest = longest_phrase(found)?;
            Some(StageEvidence {
                skill: longest.skill,
                strength: combine_phrases(found.iter().map(|found| found.phrase.strength())),
                reason: SelectionReason::Phrase { phrase: longest.written.to_owned() },
            })
        });
        evidence.collect()
    }
}

/// Combines the strengths of a skill's phrases in the task.
fn combine_phrases(strengths: impl Iterator<Item = f32>) -> f32 {
    let (common, telling): (Vec<f32>, Vec<f32>) = strengths.partition(|each| *each <= COMMON);
    combine_strengths(
        telling.into_iter().chain([combine_strengths(common).min(COMMON_TOGETHER_MAX)]),
    )
}

/// Returns the longest phrase; ties go to the first.
pub(super) fn longest_phrase<'a, 'b>(found: &'b [FoundPhrase<'a>]) -> Option<&'b FoundPhrase<'a>> {
    found.iter().rev().max_by_key(|found| found.phrase.text.chars().count())
}

/// Builds an automaton that finds all texts, including overlapping ones. The contiguous NFA is quick to
/// build, which matters more than search speed: catalogs change often, and a process answers few tasks per
/// catalog.
pub(super) fn build_automaton<S: AsRef<[u8]>>(texts: &[S]) -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(texts)
        .ok()
}

/// The phrases of all skills, without duplicates.
#[derive(Debug)]
pub(super) struct PhraseSet {
    phrases: Vec<TriggerPhrase>,
    automaton: Option<AhoCorasick>,
}

/// A phrase with the skills that declare it.
#[derive(Debug)]
pub(super) struct TriggerPhrase {
    /// The normalised text.
    text: String,
    /// The start of the last word, or the end of the text if it does not end with a word.
    last: usize,
    owners: Vec<PhraseOwner>,
}

#[derive(Debug)]
struct PhraseOwner {
    skill: usize,
    /// The position of the phrase in the skill's list.
    place: usize,
    /// The phrase as the skill declares it.
    written: String,
}

/// A phrase of a skill that occurs in the text.
#[derive(Debug)]
pub(super) struct FoundPhrase<'a> {
    pub(super) skill: usize,
    pub(super) written: &'a str,
    phrase: &'a TriggerPhrase,
    place: usize,
}

impl PhraseSet {
    pub(super) fn new(
        documents: &[SkillDocument<'_>],
        phrases_of: impl for<'d> Fn(&'d SkillDocument<'_>) -> &'d [String],
    ) -> PhraseSet {
        let mut phrases: Vec<TriggerPhrase> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for (skill, document) in documents.iter().enumerate() {
            let used = phrases_of(document).iter().take(PHRASES_PER_SKILL_MAX);
            for (place, written) in used.enumerate() {
                if written.len() > PHRASE_BYTES_MAX {
                    continue;
                }
                let text = normalise_phrase(written);
                if is_meaningless(&text) {
                    continue;
                }
                let at = *known.entry(text).or_insert_with_key(|text| {
                    phrases.push(TriggerPhrase::new(text.clone()));
                    phrases.len() - 1
                });
                let owners = &mut phrases[at].owners;
                if owners.last().is_none_or(|owner| owner.skill != skill) {
                    owners.push(PhraseOwner { skill, place, written: written.clone() });
                }
            }
        }
        let cores: Vec<&str> = phrases.iter().map(TriggerPhrase::core_text).collect();
        let automaton = if cores.is_empty() { None } else { build_automaton(&cores) };
        PhraseSet { phrases, automaton }
    }

    /// Returns every phrase that occurs in a text, ordered by skill and by position in its list.
    pub(super) fn find(&self, text: &str) -> Vec<FoundPhrase<'_>> {
        let Some(automaton) = &self.automaton else { return Vec::new() };
        let text = normalise_phrase(&text[..text.floor_char_boundary(TASK_BYTES_MAX)]);
        let mut language = None;
        let mut is_found = vec![false; self.phrases.len()];
        let mut found = Vec::new();
        for hit in automaton.find_overlapping_iter(&text) {
            let at = hit.pattern().as_usize();
            let phrase = &self.phrases[at];
            let mut language =
                || *language.get_or_insert_with(|| TextLanguage::detect_language(&text));
            if !is_found[at] && phrase.stands_at(hit.start(), hit.end(), &text, &mut language) {
                is_found[at] = true;
                found.extend(phrase.owners.iter().map(|owner| {
                    let PhraseOwner { skill, place, written } = owner;
                    FoundPhrase { skill: *skill, written, phrase, place: *place }
                }));
            }
        }
        found.sort_unstable_by_key(|found| (found.skill, found.place));
        found
    }
}

impl TriggerPhrase {
    fn new(text: String) -> TriggerPhrase {
        let last = text.trim_end_matches(is_bounded).len();
        TriggerPhrase { text, last, owners: Vec::new() }
    }

    fn last_word(&self) -> &str {
        &self.text[self.last..]
    }

    /// The part of the phrase that stays the same when the last word is inflected.
    fn core_text(&self) -> &str {
        &self.text[..self.last + inflection_core(self.last_word()).len()]
    }

    /// Returns true if the phrase occurs in a text at a match of its core: at word boundaries, inflected or
    /// not.
    fn stands_at(
        &self,
        start: usize,
        end: usize,
        text: &str,
        language: &mut impl FnMut() -> TextLanguage,
    ) -> bool {
        let begins_word = self.text.starts_with(is_bounded);
        if begins_word && text[..start].ends_with(is_bounded) {
            return false;
        }
        if self.last_word().is_empty() {
            return true;
        }
        let rest = &text[end..];
        let end = text.len() - rest.trim_start_matches(is_bounded).len();
        let word = &text[start + self.last..end];
        word == self.last_word() || is_inflected(self.last_word(), word, language)
    }

    /// Returns the probability that the skill is right given this phrase alone.
    fn strength(&self) -> f32 {
        let english = TextLanguage::ENGLISH;
        let mut words = self.text.split(' ');
        let dense = self.text.chars().filter(|c| is_unbounded(*c)).count();
        if words.clone().count() > 1 || dense > 1 {
            return SEVERAL_WORDS;
        }
        let stem = english.stem(words.next().unwrap_or(""));
        let share = BackgroundFrequencies::embedded().share_of_stem(&stem, FrequencyPart::Whole);
        if dense == 1 || share > COMMON_SHARE { COMMON } else { ONE_WORD }
    }
}

/// Normalises a text for comparison: folds case, and replaces runs of spaces, hyphens and underscores with
/// one space.
fn normalise_phrase(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut add = |c: char| match c {
        '-' | '_' | '\u{2010}' | '\u{2011}' => push_space(&mut plain),
        '\u{2019}' => plain.push('\''),
        _ if c.is_whitespace() => push_space(&mut plain),
        _ => fold_char(c, &mut plain),
    };
    if text.is_ascii() {
        text.chars().for_each(&mut add);
    } else {
        text.nfkc().for_each(&mut add);
    }
    plain.truncate(plain.trim_end().len());
    plain
}

fn push_space(plain: &mut String) {
    if !plain.is_empty() && !plain.ends_with(' ') {
        plain.push(' ');
    }
}

/// Returns true for a phrase that would match everywhere: a single letter, or nothing but stop words.
fn is_meaningless(text: &str) -> bool {
    let mut chars = text.chars();
    let is_one = matches!((chars.next(), chars.next()), (Some(c), None) if !is_unbounded(c));
    let mut words = text.split(' ').map(|word| word.trim_matches(is_punctuation));
    is_one || words.all(|word| word.is_empty() || TextLanguage::ENGLISH.is_stop_word(word))
}

fn is_punctuation(c: char) -> bool {
    matches!(c, ',' | '.' | ';' | ':' | '!' | '?' | '"' | '(' | ')')
}

/// Returns true if a letter belongs to words that have boundaries.
fn is_bounded(c: char) -> bool {
    (c.is_alphanumeric() || is_mark(c)) && !is_unbounded(c)
}

/// Returns true if a letter belongs to a script without clear word boundaries: written without spaces or, in
/// Korean, with particles attached to words.
fn is_unbounded(c: char) -> bool {
    is_dense(c) || matches!(c, '\u{ac00}'..='\u{d7af}')
}

/// Returns the part that all inflections of a word begin with.
fn inflection_core(word: &str) -> &str {
    let changes = word.len() >= 4 && word.is_ascii() && word.ends_with(['e', 'y']);
    if changes { &word[..word.len() - 1] } else { word }
}

/// Returns true if a word of a text is an inflection of a word of a phrase.
///
/// English inflections are recognised by their endings, because stems would take `important` for a form of
/// `import`. In other languages stems decide, unless the word is much longer.
fn is_inflected(word: &str, form: &str, language: &mut impl FnMut() -> TextLanguage) -> bool {
    const LONGER_MAX: usize = 5;
    const CHARS_MIN: usize = 3;
    let Some(ending) = form.strip_prefix(word) else {
        return match (
            &word[inflection_core(word).len()..],
            form.strip_prefix(inflection_core(word)),
        ) {
            ("e", Some(ending)) => matches!(ending, "ing" | "ings"),
            ("y", Some(ending)) => matches!(ending, "ies" | "ied"),
            _ => false,
        };
    };
    if ending == "s" {
        return true;
    }
    let chars = word.chars().count();
    if chars < CHARS_MIN {
        return false;
    }
    // The last letter is doubled in `planning` and `dropped`.
    let undoubled = word.chars().next_back().and_then(|last| ending.strip_prefix(last));
    let is_english = match ending {
        "es" | "ed" | "ing" | "ings" => true,
        "d" => word.ends_with('e'),
        _ => matches!(undoubled, Some("ing" | "ed")),
    };
    is_english
        || (ending.chars().count() <= LONGER_MAX && {
            let language = language();
            language != TextLanguage::ENGLISH && language.stem(word) == language.stem(form)
        })
}

#[cfg(test)]
#[path = "phrases_tests.rs"]
mod tests;
