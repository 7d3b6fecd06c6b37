//! From a score to a probability: how likely a skill is the right one, given how it fits.
//!
//! A logistic model over a handful of features, none of which depends on how large the catalog is. How its
//! figures were found is told in `docs/selection.md`.

use super::fusion::Candidate;
use crate::query::Query;

/// What a probability is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Features {
    /// How much of the task's worth stands anywhere in the skill, 0 to 1.
    pub covered: f32,
    /// How much of it stands in name or description, weighed, 0 to 1.
    pub in_head: f32,
    /// How much of the worth of pairs stands in the skill, 0 to 1.
    pub pairs: f32,
    /// Closeness of meaning, -1 to 1.
    pub closeness: f32,
    /// The score without votes.
    pub score: f32,
    /// How far ahead of the next best skill it is or, then negative, behind the best.
    pub margin: f32,
    /// How many words with meaning the task has.
    pub terms: f32,
    /// What they are worth together.
    pub worth: f32,
}

impl Features {
    /// The features of a candidate; `rival` is the best score of any other.
    pub(crate) fn new(query: &Query, candidate: &Candidate, rival: Option<f32>) -> Self {
        let share = |part: f32, whole: f32| if whole > 0.0 { part / whole } else { 0.0 };
        let terms = || query.terms.iter().zip(&candidate.hits);
        let worth: f32 = query.terms.iter().map(|term| term.whole).sum();
        let covered: f32 =
            terms().filter(|(_, hit)| hit.score > 0.0).map(|(term, _)| term.whole).sum();
        let head: f32 = query.terms.iter().map(|term| term.head).sum();
        let in_head: f32 = terms().map(|(term, hit)| term.head * hit.head.share()).sum();
        let pairs: f32 = query.whole.pairs.iter().map(|pair| pair.worth).sum();
        let score = candidate.score - candidate.vote;
        Features {
            covered: share(covered, worth),
            in_head: share(in_head, head),
            pairs: share(candidate.pairs, pairs),
            closeness: candidate.closeness,
            score,
            margin: candidate.score - rival.unwrap_or(0.0).max(RIVAL_MIN),
            terms: query.terms.len() as f32,
            worth,
        }
    }
}

/// A rival that scores less than this is none.
const RIVAL_MIN: f32 = 10.0;
/// The coefficients.
const CONSTANT: f32 = -8.6;
const CLOSENESS: f32 = 0.8;
const MARGIN: f32 = 1.2;
const SCORE: f32 = 2.3;

/// How likely a skill with such features is the right one.
pub(crate) fn probability(features: &Features) -> f32 {
    let sum = CONSTANT
        + CLOSENESS * features.closeness
        + MARGIN * libm::tanhf(features.margin / 10.0)
        + SCORE * libm::log1pf(features.score.max(0.0));
    1.0 / (1.0 + libm::expf(-sum))
}
