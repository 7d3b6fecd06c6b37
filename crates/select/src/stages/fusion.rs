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

/// The places of the highest scores, in no order.
fn best(scores: &[f32]) -> Vec<u32> {
    let mut places: Vec<u32> = (0..scores.len() as u32).collect();
    if places.len() > CANDIDATES_MAX {
        let order =
            |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b));
        places.select_nth_unstable_by(CANDIDATES_MAX, order);
        places.truncate(CANDIDATES_MAX);
    }
    places
}

/// Candidates for places in order.
fn look_closely(query: &Query, index: &Index, used: Use, places: &[u32]) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = places
        .iter()
        .map(|skill| Candidate {
            skill: *skill as usize,
            closeness: index.closeness(*skill as usize, &query.whole.vector),
            hits: vec![Hit::default(); query.terms.len()],
            ..Candidate::default()
        })
        .collect();
    if used.words {
        for (at, term) in query.terms.iter().enumerate() {
            for place in &term.places {
                lexical::find(term, *place, index, &mut candidates, at);
            }
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
    for (at, sentence) in query.sentences.iter().enumerate() {
        let scores: Vec<f32> = candidates
            .iter()
            .map(|candidate| {
                let (words, pairs) = candidate.by_words(sentence, index, used);
                let closeness = index.closeness(candidate.skill, &sentence.vector);
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
