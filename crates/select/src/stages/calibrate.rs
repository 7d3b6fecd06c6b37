//! From a score to a probability: how likely a skill is the right one, given how it fits.
//!
//! A logistic model over a handful of features, none of which depends on how large the catalog is. How its
//! figures were found is told in `docs/selection.md`.

use super::fusion::Candidate;

/// How a skill's text fits a task: what a probability is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fit {
    /// Closeness of meaning, -1 to 1.
    pub closeness: f32,
    /// The score without votes.
    pub score: f32,
    /// How far ahead of the next best skill it is or, then negative, behind the best.
    pub margin: f32,
    /// How strongly its own description speaks against it, 0 to 1.
    pub against: f32,
}

impl Fit {
    /// The fit of a candidate; `rival` is the best score of any other.
    pub(crate) fn new(candidate: &Candidate, rival: Option<f32>, against: f32) -> Self {
        let score = candidate.score - candidate.vote;
        Fit {
            closeness: candidate.closeness,
            score,
            margin: candidate.score - rival.unwrap_or(0.0).max(RIVAL_MIN),
            against,
        }
    }
}

/// A rival that scores less than this is none.
const RIVAL_MIN: f32 = 10.0;
/// The coefficients.
const CONSTANT: f32 = -8.65;
const CLOSENESS: f32 = 1.1;
const MARGIN: f32 = 1.3;
const SCORE: f32 = 2.3;

/// How likely a skill that fits so is the right one.
pub(crate) fn probability(fit: &Fit) -> f32 {
    let sum = CONSTANT
        + CLOSENESS * fit.closeness
        + MARGIN * libm::tanhf(fit.margin / 10.0)
        + SCORE * libm::log1pf(fit.score.max(0.0));
    1.0 / (1.0 + libm::expf(-sum))
}
