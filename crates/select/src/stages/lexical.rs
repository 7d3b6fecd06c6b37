//! Scores skills by words: BM25 over four fields in two halves.
//!
//! The weight of a word depends on how rare it is in the catalog and among public skills. Its weight within a
//! skill is in the index.

use super::fusion::Candidate;
use crate::index::{Index, Posting, Weight, levels};
use crate::query::{Place, Query, Term};

/// The maximum score of a word in name and description, and in headings and body, as multiples of its weight.
const HEAD: f32 = 3.0;
const BODY: f32 = 1.5;
/// The score of a word wherever it occurs, as a multiple of its weight.
const ANYWHERE: f32 = 0.4;

/// The match between a term and a skill.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hit {
    /// The amount added to the score.
    pub(crate) score: f32,
    /// The position in the index of the stem that matched.
    pub(crate) place: usize,
    pub(crate) head: Weight,
    pub(crate) body: Weight,
}

/// Adds the score by words to each skill's score.
pub(crate) fn score(query: &Query, index: &Index, scores: &mut [f32]) {
    for term in &query.terms {
        for Place { at, likeness } in &term.places {
            let head = levels(HEAD * term.head * likeness);
            let body = levels(BODY * term.whole * likeness);
            let anywhere = ANYWHERE * term.whole * likeness;
            index.each_posting(*at, |posting| {
                if let Some(score) = scores.get_mut(posting.skill as usize) {
                    *score += head[posting.head.level()] + body[posting.body.level()] + anywhere;
                }
            });
        }
    }
}

/// Records the match of a term in each candidate. Candidates must be in catalog order.
pub(crate) fn find(query: &Query, at: usize, index: &Index, candidates: &mut [Candidate]) {
    let term = &query.terms[at];
    for place in &term.places {
        let mut candidates = candidates.iter_mut();
        let mut next = candidates.next();
        // Kept in a variable of its own, so that skipping a skill is a single comparison.
        let mut next_skill = next.as_ref().map_or(u32::MAX, |next| next.skill as u32);
        index.each_posting(place.at, |posting| {
            while next_skill < posting.skill {
                next = candidates.next();
                next_skill = next.as_ref().map_or(u32::MAX, |next| next.skill as u32);
            }
            if next_skill > posting.skill {
                return;
            }
            let Some(candidate) = &mut next else { return };
            let score = place.likeness * weigh(term, posting);
            let hit = &mut candidate.hits[at];
            if score > hit.score {
                let Posting { head, body, .. } = posting;
                *hit = Hit { score, place: place.at, head, body };
            }
        });
    }
}

/// Returns the amount that a word adds to the score of a skill.
fn weigh(term: &Term, posting: Posting) -> f32 {
    HEAD * term.head * posting.head.share()
        + BODY * term.whole * posting.body.share()
        + ANYWHERE * term.whole
}
