//! Fuses the scores by words and by meaning, and examines the best candidates more closely.
//!
//! Words and meaning are added on a fixed scale. The weight of a word is measured against the background
//! corpus, so it means the same in every catalog, as cosine similarity does. Standardising scores within a
//! catalog would make the best of three unrelated skills look as good as the best of a thousand.
//!
//! The best candidates are then compared by features that are too expensive to compute for all skills: pairs
//! of adjacent words and, for a task of several sentences, the fit to each single sentence.

use super::lexical::{self, TermHit};
use super::semantic;
use crate::index::SkillIndex;
use crate::limits::CANDIDATES_MAX;
use crate::query::{QuerySpan, TaskQuery};

/// The score of a matched pair, as a multiple of its weight.
const PAIR: f32 = 1.0;
/// The bonus of a skill that fits one sentence better than any other skill.
const VOTE: f32 = 9.0;
/// The minimum vote that is reported as a reason.
pub(crate) const VOTE_THAT_COUNTS: f32 = VOTE / 2.0;
/// The distance to the best score at which a vote falls to 1/e.
const VOTE_DISTANCE: f32 = 3.0;

/// A skill that is examined closely.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankCandidate {
    /// The index of the skill in the catalog.
    pub(crate) skill: usize,
    /// The total score.
    pub(crate) score: f32,
    /// The score by words.
    pub(crate) words: f32,
    /// The score by pairs of words.
    pub(crate) pairs: f32,
    /// The cosine similarity, -1 to 1.
    pub(crate) closeness: f32,
    /// The bonus for fitting a single sentence, and the index of that sentence.
    pub(crate) vote: f32,
    pub(crate) sentence: usize,
    /// The match of each term of the query.
    pub(crate) hits: Vec<TermHit>,
}

/// The kinds of text evidence that are switched on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextEvidenceUse {
    pub(crate) words: bool,
    pub(crate) meaning: bool,
}

/// Returns the best skills, best first, with ties in catalog order. Those in `wanted` are always included.
pub(crate) fn rank_candidates(
    query: &TaskQuery,
    index: &SkillIndex,
    used: TextEvidenceUse,
    wanted: &[usize],
) -> Vec<RankCandidate> {
    let mut scores = vec![0f32; index.len()];
    if used.words {
        lexical::score_by_words(query, index, &mut scores);
    }
    if used.meaning {
        semantic::score_by_meaning(query, index, &mut scores);
    }
    let mut places = best_indexes(&scores);
    places.extend(wanted.iter().filter(|skill| **skill < index.len()).map(|skill| *skill as u32));
    places.sort_unstable();
    places.dedup();
    let mut candidates = score_in_full(query, index, used, &places);
    add_votes(query, index, used, &mut candidates);
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.skill.cmp(&b.skill)));
    candidates
}

/// Returns the indexes of the highest scores, unordered. Ties go to the lower index.
fn best_indexes(scores: &[f32]) -> Vec<u32> {
    if scores.len() <= CANDIDATES_MAX {
        return (0..scores.len() as u32).collect();
    }
    // Orders by descending score, then by ascending index.
    let key =
        |score: f32, place: u32| u64::from(order_preserving_bits(score)) << 32 | u64::from(!place);
    const ROOM: usize = 4 * CANDIDATES_MAX;
    let mut keys: Vec<u64> = Vec::with_capacity(ROOM);
    let mut least = f32::NEG_INFINITY;
    for (score, place) in scores.iter().zip(0..) {
        // A later score must be strictly higher, because ties go to the lower index.
        if *score > least {
            keys.push(key(*score, place));
            if keys.len() == ROOM {
                let (_, last, _) = keys.select_nth_unstable_by(CANDIDATES_MAX - 1, |a, b| b.cmp(a));
                least = scores[!(*last as u32) as usize];
                keys.truncate(CANDIDATES_MAX);
            }
        }
    }
    if keys.len() > CANDIDATES_MAX {
        keys.select_nth_unstable_by(CANDIDATES_MAX - 1, |a, b| b.cmp(a));
        keys.truncate(CANDIDATES_MAX);
    }
    keys.into_iter().map(|key| !(key as u32)).collect()
}

/// Maps a float to an integer with the same order.
fn order_preserving_bits(score: f32) -> u32 {
    let bits = score.to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

/// Scores the given skills, which are in catalog order, in full.
fn score_in_full(
    query: &TaskQuery,
    index: &SkillIndex,
    used: TextEvidenceUse,
    places: &[u32],
) -> Vec<RankCandidate> {
    let closeness = index.closeness_of(places, &query.whole.vector);
    let mut candidates: Vec<RankCandidate> = places
        .iter()
        .zip(closeness)
        .map(|(skill, closeness)| RankCandidate {
            skill: *skill as usize,
            closeness,
            hits: vec![TermHit::default(); query.terms.len()],
            ..RankCandidate::default()
        })
        .collect();
    if used.words {
        for at in 0..query.terms.len() {
            lexical::record_hits(query, at, index, &mut candidates);
        }
    }
    for candidate in &mut candidates {
        (candidate.words, candidate.pairs) = candidate.by_words(&query.whole, index, used);
        let meaning = semantic::closeness_score(candidate.closeness, used.meaning);
        candidate.score = candidate.words + candidate.pairs + meaning;
    }
    candidates
}

impl RankCandidate {
    fn by_words(&self, span: &QuerySpan, index: &SkillIndex, used: TextEvidenceUse) -> (f32, f32) {
        if !used.words {
            return (0.0, 0.0);
        }
        let words = span.terms.iter().map(|term| self.hits[*term].score).sum();
        let both_stand = |first: usize, second: usize| {
            self.hits[first].score > 0.0 && self.hits[second].score > 0.0
        };
        let stand_together = |pair: &&crate::query::TermPair| {
            both_stand(pair.first, pair.second) && index.has_pair(self.skill, pair.pair)
        };
        let pairs = span.pairs.iter().filter(stand_together).map(|pair| PAIR * pair.worth).sum();
        (words, pairs)
    }
}

/// Adds a vote to candidates that fit a single sentence best. A task of several sentences may ask for several
/// things, so a skill can be right although it has nothing in common with the other sentences.
fn add_votes(
    query: &TaskQuery,
    index: &SkillIndex,
    used: TextEvidenceUse,
    candidates: &mut [RankCandidate],
) {
    let places: Vec<u32> = candidates.iter().map(|candidate| candidate.skill as u32).collect();
    for (at, sentence) in query.sentences.iter().enumerate() {
        let scores: Vec<f32> = candidates
            .iter()
            .zip(index.closeness_of(&places, &sentence.vector))
            .map(|(candidate, closeness)| {
                let (words, pairs) = candidate.by_words(sentence, index, used);
                words + pairs + semantic::closeness_score(closeness, used.meaning)
            })
            .collect();
        let best = scores.iter().copied().fold(f32::MIN, f32::max);
        for (candidate, score) in candidates.iter_mut().zip(scores) {
            let vote = VOTE * libm::expf((score - best) / VOTE_DISTANCE);
            if vote > candidate.vote {
                (candidate.vote, candidate.sentence) = (vote, at);
            }
        }
    }
    for candidate in candidates {
        candidate.score += candidate.vote;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_best_are_the_first_of_a_sorted_list(
            scores in proptest::collection::vec(-20i8..20, 0..20 * CANDIDATES_MAX)
        ) {
            let scores: Vec<f32> = scores.into_iter().map(f32::from).collect();
            let mut sorted: Vec<u32> = (0..scores.len() as u32).collect();
            sorted.sort_by(|a, b| scores[*b as usize].total_cmp(&scores[*a as usize]));
            sorted.truncate(CANDIDATES_MAX);
            sorted.sort_unstable();
            let mut best = best_indexes(&scores);
            best.sort_unstable();
            proptest::prop_assert_eq!(best, sorted);
        }
    }
}
