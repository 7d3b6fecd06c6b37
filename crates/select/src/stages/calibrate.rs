//! From a score to a probability: how likely a skill is the right one, given how it fits.
//!
//! A logistic model over a handful of features, none of which depends on how large the catalog is. How its
//! figures were found is told in `docs/selection.md`.

use super::fusion::Candidate;

/// What a probability is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Features {
    /// Closeness of meaning, -1 to 1.
    pub(crate) closeness: f32,
    /// The score without votes.
    pub(crate) score: f32,
    /// How far ahead of the next best skill it is or, then negative, behind the best.
    pub(crate) margin: f32,
}

impl Features {
    /// The features of a candidate; `rival` is the best score of any other.
    pub(crate) fn new(candidate: &Candidate, rival: Option<f32>) -> Self {
        let score = candidate.score - candidate.vote;
        Features {
            closeness: candidate.closeness,
            score,
            margin: candidate.score - rival.unwrap_or(0.0).max(RIVAL_MIN),
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
