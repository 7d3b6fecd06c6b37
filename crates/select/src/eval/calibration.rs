//! Calibration of scores: of the skills scored 0.8, eight in ten should be right.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::labels::LabelledQuery;

/// The number of bins that scores are grouped into.
pub const BINS: usize = 10;

/// How well scores predict which skills are right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreCalibration {
    /// Ten bins of equal width, from 0 to 1.
    pub bins: Vec<CalibrationBin>,
    /// The number of scores.
    pub count: usize,
    /// Expected calibration error: the mean distance between the scores of a bin and its share of right
    /// skills.
    pub expected_error: Option<f64>,
    /// Brier score: the mean squared difference between score and truth.
    pub brier: Option<f64>,
}

/// The scores of one bin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationBin {
    /// The lower bound of the bin.
    pub from: f64,
    /// The upper bound of the bin.
    pub to: f64,
    /// The number of scores in the bin.
    pub count: usize,
    /// The mean of the scores; null if the bin is empty.
    pub mean_score: Option<f64>,
    /// The share of the scores that belong to right skills; null if the bin is empty.
    pub share_right: Option<f64>,
}

/// A score, and whether the skill was right.
pub(super) type ScoreSample = (f64, bool);

impl ScoreCalibration {
    /// Computes the calibration of scores from 0 to 1.
    pub fn from_samples(samples: &[(f64, bool)]) -> ScoreCalibration {
        let mut bins: [Vec<ScoreSample>; BINS] = Default::default();
        for sample in samples {
            let bin = (sample.0.clamp(0.0, 1.0) * BINS as f64) as usize;
            bins[bin.min(BINS - 1)].push(*sample);
        }
        let count = samples.len();
        let bins: Vec<CalibrationBin> =
            bins.iter().enumerate().map(|(at, samples)| compute_bin(at, samples)).collect();
        ScoreCalibration {
            count,
            expected_error: compute_mean(bins.iter().map(weighted_gap).sum(), count),
            brier: compute_mean(samples.iter().map(squared_error).sum(), count),
            bins,
        }
    }
}

/// The number of top-ranked skills of each query that are sampled.
const SAMPLES_MAX: usize = 5;

/// Returns the scores of a query's top-ranked skills, picked or not, whose truth is known. A query that only
/// excludes skills tells nothing about the others.
pub(super) fn collect_samples(query: &LabelledQuery, answer: &Answer) -> Vec<ScoreSample> {
    let best = answer.ranked.iter().take(SAMPLES_MAX);
    best.filter_map(|(name, score)| Some((f64::from(*score), query.is_right(name)?))).collect()
}

fn compute_bin(at: usize, samples: &[ScoreSample]) -> CalibrationBin {
    let count = samples.len();
    CalibrationBin {
        from: at as f64 / BINS as f64,
        to: (at + 1) as f64 / BINS as f64,
        count,
        mean_score: compute_mean(samples.iter().map(|(score, _)| score).sum(), count),
        share_right: compute_mean(
            samples.iter().map(|(_, right)| truth_value(*right)).sum(),
            count,
        ),
    }
}

/// The distance between score and truth in a bin, weighted by the number of its scores.
fn weighted_gap(bin: &CalibrationBin) -> f64 {
    let gap = bin.mean_score.unwrap_or(0.0) - bin.share_right.unwrap_or(0.0);
    gap.abs() * bin.count as f64
}

fn squared_error((score, right): &ScoreSample) -> f64 {
    (score - truth_value(*right)) * (score - truth_value(*right))
}

fn truth_value(right: bool) -> f64 {
    if right { 1.0 } else { 0.0 }
}

/// Returns the mean, or `None` if `count` is 0.
pub(super) fn compute_mean(sum: f64, count: usize) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_prophet_has_no_error() {
        let calibration = ScoreCalibration::from_samples(&[(1.0, true), (1.0, true), (0.0, false)]);
        assert_eq!((calibration.expected_error, calibration.brier), (Some(0.0), Some(0.0)));
        assert_eq!((calibration.bins[0].count, calibration.bins[9].count), (1, 2));
        assert_eq!(calibration.bins.len(), BINS);
    }

    #[test]
    fn who_is_always_sure_and_right_half_the_time_is_off_by_half() {
        let calibration = ScoreCalibration::from_samples(&[(1.0, true), (1.0, false)]);
        assert_eq!((calibration.expected_error, calibration.brier), (Some(0.5), Some(0.5)));
        assert_eq!(calibration.bins[9].share_right, Some(0.5));
    }

    #[test]
    fn errors_of_bins_weigh_by_their_counts() {
        let calibration = ScoreCalibration::from_samples(&[
            (0.75, true),
            (0.75, true),
            (0.75, true),
            (0.25, true),
        ]);
        let error = calibration.expected_error.unwrap();
        assert!((error - (3.0 * 0.25 + 0.75) / 4.0).abs() < 1e-12, "{error}");
    }

    #[test]
    fn nothing_is_neither_good_nor_bad() {
        let calibration = ScoreCalibration::from_samples(&[]);
        assert_eq!((calibration.expected_error, calibration.brier), (None, None));
        assert_eq!(
            ScoreCalibration::from_samples(&[(f64::NAN, true), (7.0, true)]).bins[9].count,
            1
        );
    }
}
