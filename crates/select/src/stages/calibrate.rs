//! Turns a score into the probability that a skill is the right one.
//!
//! This is a logistic model over a handful of features, none of which depends on the size of the catalog.
//! `docs/concepts/selection.md` explains how its coefficients were fitted.

use super::fusion::RankCandidate;

/// How well a skill's text fits a task: the features of the probability model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TextFit {
    /// The cosine similarity, -1 to 1.
    pub closeness: f32,
    /// The score without the vote for a single sentence.
    pub score: f32,
    /// The distance to the best other skill's score; negative if that one is better.
    pub margin: f32,
    /// True if no other skill scores higher.
    pub is_first: bool,
    /// How strongly the skill's own description speaks against it, 0 to 1.
    pub against: f32,
}

impl TextFit {
    /// Computes the fit of a candidate; `rival` is the best score of any other.
    pub(crate) fn new(candidate: &RankCandidate, rival: Option<f32>, against: f32) -> Self {
        let score = candidate.score - candidate.vote;
        TextFit {
            closeness: candidate.closeness,
            score,
            margin: candidate.score - rival.unwrap_or(0.0).max(RIVAL_MIN),
            is_first: rival.is_none_or(|rival| candidate.score >= rival),
            against,
        }
    }
}

/// Rivals scoring below this count as this much.
const RIVAL_MIN: f32 = 10.0;
/// The coefficients of the model.
const CONSTANT: f32 = -9.15;
const FIRST: f32 = 0.55;
const CLOSENESS: f32 = 1.1;
const MARGIN: f32 = 1.3;
const SCORE: f32 = 2.27;

/// Returns the probability that a skill with this fit is the right one.
pub(crate) fn estimate_probability(fit: &TextFit) -> f32 {
    let sum = CONSTANT
        + if fit.is_first { FIRST } else { 0.0 }
        + CLOSENESS * fit.closeness
        + MARGIN * libm::tanhf(fit.margin / 10.0)
        + SCORE * libm::log1pf(fit.score.max(0.0));
    1.0 / (1.0 + libm::expf(-sum))
}
