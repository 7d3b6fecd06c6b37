//! One score out of words and meaning, and a closer look at the best.
//!
//! Words and meaning are added on a fixed scale: what a word is worth is measured against the background and
//! so means the same in every catalog, as closeness does; standardising within a catalog would make the best
//! of three unrelated skills look as good as the best of a thousand.
//!
//! The best few hundred are then compared by what is too dear to count for all: pairs of words that stand side
//! by side, and, for a task of several sentences, how well a skill answers one of them.

use super::{lexical, semantic};
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
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) skill: usize,
    /// All in all.
    pub(crate) score: f32,
    /// By words alone.
    pub(crate) words: f32,
    /// By pairs of words.
    pub(crate) pairs: f32,
    /// By meaning, -1 to 1.
    pub(crate) closeness: f32,
    /// By answering one sentence.
    pub(crate) vote: f32,
    /// What each term of the query adds.
    pub(crate) terms: Vec<f32>,
}

/// Which evidence counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) words: bool,
    pub(crate) meaning: bool,
}

/// The best skills, best first; equal ones in the order of the catalog.
pub(crate) fn rank(query: &Query, index: &Index, used: Use) -> Vec<Candidate> {
    let mut scores = vec![0f32; index.len()];
    if used.words {
        lexical::score(query, index, &mut scores);
    }
    if used.meaning {
        semantic::score(query, index, &mut scores);
    }
    let mut candidates = look_closely(query, index, used, best(&scores));
    vote(query, index, used, &mut candidates);
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.skill.cmp(&b.skill)));
    candidates
}

/// The places of the highest scores, in order of place.
fn best(scores: &[f32]) -> Vec<u32> {
    let mut places: Vec<u32> = (0..scores.len() as u32).collect();
    if places.len() > CANDIDATES_MAX {
        let order =
            |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b));
        places.select_nth_unstable_by(CANDIDATES_MAX, order);
        places.truncate(CANDIDATES_MAX);
        places.sort_unstable();
    }
    places
}

fn look_closely(query: &Query, index: &Index, used: Use, places: Vec<u32>) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = places
        .iter()
        .map(|skill| Candidate {
            skill: *skill as usize,
            score: 0.0,
            words: 0.0,
            pairs: 0.0,
            closeness: index.closeness(*skill as usize, &query.whole.vector),
            vote: 0.0,
            terms: vec![0.0; query.terms.len()],
        })
        .collect();
    if used.words {
        for (at, term) in query.terms.iter().enumerate() {
            for (place, factor) in &term.places {
                let mut next = candidates.iter_mut().peekable();
                for posting in index.postings(*place) {
                    let skill = posting.skill as usize;
                    while next.next_if(|candidate| candidate.skill < skill).is_some() {}
                    let Some(candidate) = next.next_if(|candidate| candidate.skill == skill) else {
                        continue;
                    };
                    candidate.terms[at] += factor * lexical::weigh(term, posting);
                }
            }
        }
    }
    for candidate in &mut candidates {
        let (words, pairs) = candidate.by_words(&query.whole, index, used);
        (candidate.words, candidate.pairs) = (words, pairs);
        let meaning = if used.meaning { semantic::CLOSENESS * candidate.closeness } else { 0.0 };
        candidate.score = words + pairs + meaning;
    }
    candidates
}

impl Candidate {
    fn by_words(&self, span: &Span, index: &Index, used: Use) -> (f32, f32) {
        let words = span.terms.iter().map(|term| self.terms[*term]).sum();
        let pairs = span
            .pairs
            .iter()
            .filter(|(pair, _)| used.words && index.has_pair(self.skill, *pair))
            .map(|(_, worth)| PAIR * worth)
            .sum();
        (words, pairs)
    }
}

/// A task of several sentences asks for several things: a skill that answers one of them best is wanted,
/// though it has nothing to say about the rest.
fn vote(query: &Query, index: &Index, used: Use, candidates: &mut [Candidate]) {
    for sentence in &query.sentences {
        let scores: Vec<f32> = candidates
            .iter()
            .map(|candidate| {
                let (words, pairs) = candidate.by_words(sentence, index, used);
                let meaning = if used.meaning {
                    semantic::CLOSENESS * index.closeness(candidate.skill, &sentence.vector)
                } else {
                    0.0
                };
                words + pairs + meaning
            })
            .collect();
        let best = scores.iter().copied().fold(f32::MIN, f32::max);
        for (candidate, score) in candidates.iter_mut().zip(scores) {
            let vote = VOTE * libm::expf((score - best) / VOTE_DISTANCE);
            candidate.vote = candidate.vote.max(vote);
        }
    }
    for candidate in candidates {
        candidate.score += candidate.vote;
    }
}
