//! Words: BM25 over four fields in two halves.
//!
//! What a word is worth depends on how rare it is in the catalog and among public skills; how much it says
//! about a skill stands in the index.

use super::fusion::Candidate;
use crate::index::{Index, Posting, Weight, levels};
use crate::query::{Place, Query, Term};

/// The most that a word in name and description, and one in headings and body, can add, as multiples of its
/// worth.
const HEAD: f32 = 3.0;
const BODY: f32 = 1.5;
/// What a word adds wherever it stands, as a multiple of its worth.
const ANYWHERE: f32 = 0.4;

/// What a term says about a skill.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hit {
    /// What it adds to the score.
    pub(crate) score: f32,
    /// Which of the term's places in the index it is.
    pub(crate) place: usize,
    pub(crate) head: Weight,
    pub(crate) body: Weight,
}

/// Adds every skill's score by words.
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

/// Notes for candidates, which are in the order of the catalog, what a term says about them.
pub(crate) fn find(query: &Query, at: usize, index: &Index, candidates: &mut [Candidate]) {
    let term = &query.terms[at];
    for place in &term.places {
        let mut candidates = candidates.iter_mut();
        let mut next = candidates.next();
        // Beside the candidates, so that passing over a skill is one comparison.
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

/// What one word adds to one skill.
fn weigh(term: &Term, posting: Posting) -> f32 {
    HEAD * term.head * posting.head.share()
        + BODY * term.whole * posting.body.share()
        + ANYWHERE * term.whole
}
