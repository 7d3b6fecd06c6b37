//! Words: BM25 over four fields in two halves.
//!
//! What a word is worth depends on how rare it is in the catalog and among public skills; how much it says
//! about a skill stands in the index.

use crate::index::{Index, Posting, levels};
use crate::query::{Query, Term};

/// The most that a word in name and description, and one in headings and body, can add, as multiples of its
/// worth.
pub(crate) const HEAD: f32 = 3.0;
pub(crate) const BODY: f32 = 1.5;
/// What a word adds wherever it stands, as a multiple of its worth.
pub(crate) const ANYWHERE: f32 = 0.4;

/// Adds every skill's score by words.
pub(crate) fn score(query: &Query, index: &Index, scores: &mut [f32]) {
    for term in &query.terms {
        for (place, factor) in &term.places {
            let head = levels(HEAD * term.head * factor);
            let body = levels(BODY * term.whole * factor);
            let anywhere = ANYWHERE * term.whole * factor;
            for posting in index.postings(*place) {
                if let Some(score) = scores.get_mut(posting.skill as usize) {
                    *score += head[posting.head.level()] + body[posting.body.level()] + anywhere;
                }
            }
        }
    }
}

/// What one word adds to one skill.
pub(crate) fn weigh(term: &Term, posting: Posting) -> f32 {
    HEAD * term.head * posting.head.share()
        + BODY * term.whole * posting.body.share()
        + ANYWHERE * term.whole
}
