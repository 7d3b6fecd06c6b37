//! Scores skills by words: BM25 over four fields in two halves.
//!
//! The weight of a word depends on how rare it is in the catalog and among public skills. Its weight within a
//! skill is in the index.

use super::fusion::RankCandidate;
use crate::index::{SkillIndex, StemPosting, StemWeight, level_values};
use crate::query::{QueryTerm, StemMatch, TaskQuery};

/// The maximum score of a word in name and description, and in headings and body, as multiples of its weight.
const HEAD: f32 = 3.0;
const BODY: f32 = 1.5;
/// The score of a word wherever it occurs, as a multiple of its weight.
const ANYWHERE: f32 = 0.4;

/// The match between a term and a skill.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TermHit {
    /// The amount added to the score.
    pub(crate) score: f32,
    /// The position in the index of the stem that matched.
    pub(crate) place: usize,
    pub(crate) head: StemWeight,
    pub(crate) body: StemWeight,
}

/// Adds the score by words to each skill's score.
pub(crate) fn score_by_words(query: &TaskQuery, index: &SkillIndex, scores: &mut [f32]) {
    for term in &query.terms {
        for StemMatch { at, likeness } in &term.places {
            let head = level_values(HEAD * term.head * likeness);
            let body = level_values(BODY * term.whole * likeness);
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
pub(crate) fn record_hits(
    query: &TaskQuery,
    at: usize,
    index: &SkillIndex,
    candidates: &mut [RankCandidate],
) {
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
            let score = place.likeness * weigh_posting(term, posting);
            let hit = &mut candidate.hits[at];
            if score > hit.score {
                let StemPosting { head, body, .. } = posting;
                *hit = TermHit { score, place: place.at, head, body };
            }
        });
    }
}

/// Returns the amount that a word adds to the score of a skill.
fn weigh_posting(term: &QueryTerm, posting: StemPosting) -> f32 {
    HEAD * term.head * posting.head.as_fraction()
        + BODY * term.whole * posting.body.as_fraction()
        + ANYWHERE * term.whole
}
