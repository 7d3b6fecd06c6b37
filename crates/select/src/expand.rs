//! Expands task words that no skill contains to stems that some skill does contain: other languages' stems,
//! compounds and typos.
//!
//! Only words that would otherwise match nothing are expanded, so no exact match is ever lost. A replacement
//! weighs less than the word itself would, and the reasons name it.

use crate::background::{BackgroundFrequencies, FrequencyPart};
use crate::index::SkillIndex;
use crate::query::StemMatch;
use crate::tokenizer::TextLanguage;

/// The weight of the word's stem in another language, relative to an exact match.
const OTHER_LANGUAGE: f32 = 0.9;
/// The weight of a stem at one typo's distance.
const SLIP: f32 = 0.8;
/// The weight of the parts of a compound, and of the compounds that contain a word.
const COMPOUND: f32 = 0.6;

/// Shorter words have too many neighbours at one typo's distance.
const WORD_LETTERS_MIN: usize = 5;
/// The minimum length of a known part of a compound, and of the remainder.
const PART_LETTERS_MIN: usize = 4;
const REST_LETTERS_MIN: usize = 3;
/// The maximum number of replacements for one word.
const PLACES_MAX: usize = 4;
/// The maximum number of stems that are compared with a word.
const COMPARED_MAX: usize = 2000;

/// Returns the stems of the index that may replace an unknown word.
pub(crate) fn expand_word(
    word: &str,
    stem: &str,
    index: &SkillIndex,
    background: &BackgroundFrequencies,
) -> Vec<StemMatch> {
    let letters = word.chars().count();
    if letters < WORD_LETTERS_MIN || !word.chars().all(char::is_alphabetic) {
        return Vec::new();
    }
    // A word from the background corpus is an ordinary word: don't treat it as a typo.
    if background.share_of_stem(stem, FrequencyPart::Whole) > 0.0 {
        return Vec::new();
    }
    let terms = index.terms();
    let mut places: Vec<StemMatch> = TextLanguage::all_but_english()
        .filter_map(|language| terms.find(&language.stem(word)))
        .map(|at| StemMatch { at, likeness: OTHER_LANGUAGE })
        .collect();
    if places.is_empty() {
        places = find_typos(stem, index).map(|at| StemMatch { at, likeness: SLIP }).collect();
    }
    if places.is_empty() {
        let compounds = find_compounds(word, stem, index).into_iter();
        places = compounds.map(|at| StemMatch { at, likeness: COMPOUND }).collect();
    }
    places.sort_by_key(|place| place.at);
    places.dedup_by_key(|place| place.at);
    places.truncate(PLACES_MAX);
    places
}

/// Returns stems that share the first two letters and are one typo away.
fn find_typos<'a>(stem: &'a str, index: &'a SkillIndex) -> impl Iterator<Item = usize> + 'a {
    let end = stem.char_indices().nth(2).map_or(stem.len(), |(at, _)| at);
    let terms = index.terms();
    terms
        .starting_with(&stem[..end])
        .take(COMPARED_MAX)
        .filter(move |at| is_one_typo(stem, terms.get(*at)))
}

/// Returns true if two words differ by one inserted, deleted, replaced or transposed letter.
pub(crate) fn is_one_typo(one: &str, other: &str) -> bool {
    if one.len().abs_diff(other.len()) > 4 {
        return false;
    }
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (a, b) = (&one[same..], &other[same..]);
    match (a, b) {
        ([], []) => false,
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([x, y, a @ ..], [u, v, b @ ..]) if x == v && y == u && a == b => true,
        _ => a.get(1..) == Some(b) || b.get(1..) == Some(a),
    }
}

/// Returns the longest stem that the word begins with, the longest that it ends with, and the two shortest
/// that begin with its stem.
fn find_compounds(word: &str, stem: &str, index: &SkillIndex) -> Vec<usize> {
    let terms = index.terms();
    let letters = word.chars().count();
    let cuts: Vec<(usize, usize)> =
        word.char_indices().enumerate().map(|(count, (at, _))| (count, at)).collect();
    let begins = cuts
        .iter()
        .rev()
        .filter(|(count, _)| *count >= WORD_LETTERS_MIN && letters - count >= REST_LETTERS_MIN)
        .find_map(|(_, at)| terms.find(&word[..*at]));
    let ends = cuts
        .iter()
        .filter(|(count, _)| *count >= REST_LETTERS_MIN && letters - count >= PART_LETTERS_MIN)
        .find_map(|(_, at)| {
            let rest = &word[*at..];
            let stems = TextLanguage::all_but_english().map(|language| language.stem(rest));
            let known = terms.find(rest).or_else(|| stems.into_iter().find_map(|s| terms.find(&s)));
            known.filter(|known| terms.get(*known).chars().count() >= PART_LETTERS_MIN)
        });
    let mut longer: Vec<usize> = terms.starting_with(stem).take(COMPARED_MAX).collect();
    longer.sort_by_key(|at| (terms.get(*at).len(), *at));
    begins.into_iter().chain(ends).chain(longer.into_iter().take(2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::SkillDocument;
    use crate::vectors::WordVectors;

    fn found(description: &str, word: &str) -> Vec<String> {
        let documents = [SkillDocument::new("a", "a", description, "")];
        let index = SkillIndex::build(&documents, &WordVectors::without_rows(), None);
        let stem = TextLanguage::ENGLISH.stem(word);
        let places = expand_word(word, &stem, &index, BackgroundFrequencies::embedded());
        places.iter().map(|place| index.terms().get(place.at).to_owned()).collect()
    }

    #[test]
    fn a_slip_of_the_finger_is_forgiven() {
        assert_eq!(found("Deploys to kubernetes", "kuberntes"), ["kubernet"]);
        assert_eq!(found("Deploys to kubernetes", "kubrenetes"), ["kubernet"]);
        assert!(found("Deploys to kubernetes", "kuberntse").is_empty());
    }

    #[test]
    fn compounds_are_found_by_their_parts_and_parts_by_their_compounds() {
        assert_eq!(found("Regler for offentligt udbud", "udbudsmaterialet"), ["udbud"]);
        assert_eq!(found("Vejledning om udbudsbetingelser", "udbud"), ["udbudsbetingels"]);
    }

    #[test]
    fn words_that_many_skills_have_mean_themselves() {
        assert!(found("Reads the spread of bonds", "spreadsheet").is_empty());
        assert!(found("Form letters", "format").is_empty());
    }
}
