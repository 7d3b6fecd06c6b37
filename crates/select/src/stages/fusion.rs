//! One score out of words and meaning, and a closer look at the best.
//!
//! Words and meaning are added on a fixed scale: what a word is worth is measured against the background and
//! so means the same in every catalog, as closeness does; standardising within a catalog would make the best
//! of three unrelated skills look as good as the best of a thousand.
//!
//! The best few are then compared by what is too dear to count for all: pairs of words that stand side by
//! side, and, for a task of several sentences, how well a skill answers one of them.

use super::lexical::{self, Hit};
use super::semantic;
use crate::index::Index;
use crate::limits::CANDIDATES_MAX;
use crate::query::{Query, Span};

/// What a pair adds, as a multiple of its worth.
const PAIR: f32 = 1.0;
/// What a skill gains that answers one sentence better than any other skill.
const VOTE: f32 = 9.0;
/// A vote from which on it is a reason.
pub(crate) const VOTE_THAT_COUNTS: f32 = VOTE / 2.0;
/// How far behind the best one a vote falls to a third.
const VOTE_DISTANCE: f32 = 3.0;

/// A skill that was looked at closely.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidate {
    /// Its place in the catalog.
    pub(crate) skill: usize,
    /// All in all.
    pub(crate) score: f32,
    /// By words alone.
    pub(crate) words: f32,
    /// By pairs of words.
    pub(crate) pairs: f32,
    /// By meaning, -1 to 1.
    pub(crate) closeness: f32,
    /// By answering one sentence, and which.
    pub(crate) vote: f32,
    pub(crate) sentence: usize,
    /// What each term of the query says.
    pub(crate) hits: Vec<Hit>,
}

/// Which evidence counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) words: bool,
    pub(crate) meaning: bool,
}

/// The best skills, best first; equal ones in the order of the catalog. Those in `wanted` are always among
/// them.
pub(crate) fn rank(query: &Query, index: &Index, used: Use, wanted: &[usize]) -> Vec<Candidate> {
    let mut scores = vec![0f32; index.len()];
    if used.words {
        lexical::score(query, index, &mut scores);
    }
    if used.meaning {
        semantic::score(query, index, &mut scores);
    }
    let mut places = best(&scores);
    places.extend(wanted.iter().filter(|skill| **skill < index.len()).map(|skill| *skill as u32));
    places.sort_unstable();
    places.dedup();
    let mut candidates = look_closely(query, index, used, &places);
    vote(query, index, used, &mut candidates);
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.skill.cmp(&b.skill)));
    candidates
}

/// The places of the highest scores, in no order; of equal ones, the first.
fn best(scores: &[f32]) -> Vec<u32> {
    if scores.len() <= CANDIDATES_MAX {
        return (0..scores.len() as u32).collect();
    }
    // A number that is the greater, the higher the score and the lower the place.
    let key = |score: f32, place: u32| u64::from(ordered(score)) << 32 | u64::from(!place);
    const ROOM: usize = 4 * CANDIDATES_MAX;
    let mut keys: Vec<u64> = Vec::with_capacity(ROOM);
    let mut least = f32::NEG_INFINITY;
    for (score, place) in scores.iter().zip(0..) {
        // What comes later must be better: among equals the first one stays.
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

/// A number whose order is that of the score.
fn ordered(score: f32) -> u32 {
    let bits = score.to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

/// Candidates for places in order.
fn look_closely(query: &Query, index: &Index, used: Use, places: &[u32]) -> Vec<Candidate> {
    let closeness = index.closeness_of(places, &query.whole.vector);
    let mut candidates: Vec<Candidate> = places
        .iter()
        .zip(closeness)
        .map(|(skill, closeness)| Candidate {
            skill: *skill as usize,
            closeness,
            hits: vec![Hit::default(); query.terms.len()],
            ..Candidate::default()
        })
        .collect();
    if used.words {
        for at in 0..query.terms.len() {
            lexical::find(query, at, index, &mut candidates);
        }
    }
    for candidate in &mut candidates {
        (candidate.words, candidate.pairs) = candidate.by_words(&query.whole, index, used);
        let meaning = semantic::worth(candidate.closeness, used.meaning);
        candidate.score = candidate.words + candidate.pairs + meaning;
    }
    candidates
}

impl Candidate {
    fn by_words(&self, span: &Span, index: &Index, used: Use) -> (f32, f32) {
        if !used.words {
            return (0.0, 0.0);
        }
        let words = span.terms.iter().map(|term| self.hits[*term].score).sum();
        let both_stand = |first: usize, second: usize| {
            self.hits[first].score > 0.0 && self.hits[second].score > 0.0
        };
        let stand_together = |pair: &&crate::query::PairOf| {
            both_stand(pair.first, pair.second) && index.has_pair(self.skill, pair.pair)
        };
        let pairs = span.pairs.iter().filter(stand_together).map(|pair| PAIR * pair.worth).sum();
        (words, pairs)
    }
}

/// A task of several sentences asks for several things: a skill that answers one of them best is wanted,
/// though it has nothing to say about the rest.
fn vote(query: &Query, index: &Index, used: Use, candidates: &mut [Candidate]) {
    let places: Vec<u32> = candidates.iter().map(|candidate| candidate.skill as u32).collect();
    for (at, sentence) in query.sentences.iter().enumerate() {
        let scores: Vec<f32> = candidates
            .iter()
            .zip(index.closeness_of(&places, &sentence.vector))
            .map(|(candidate, closeness)| {
                let (words, pairs) = candidate.by_words(sentence, index, used);
                words + pairs + semantic::worth(closeness, used.meaning)
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
            let mut best = best(&scores);
            best.sort_unstable();
            proptest::prop_assert_eq!(best, sorted);
        }
    }
}
