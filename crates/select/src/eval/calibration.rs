//! Whether a score of 0.8 is right in eight of ten cases.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::labels::Query;

/// How many bins there are.
pub const BINS: usize = 10;

/// Scores against what was right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Ten bins of scores, from 0 to 1.
    pub bins: Vec<Bin>,
    /// How many scores there are.
    pub count: usize,
    /// Expected calibration error: how far scores are from the share that is right, on average.
    pub expected_error: Option<f64>,
    /// Brier score: the mean square of score minus truth.
    pub brier: Option<f64>,
}

/// The scores of one bin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bin {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// How many scores are in it.
    pub count: usize,
    /// Their mean.
    pub mean_score: Option<f64>,
    /// The share of them that was right.
    pub share_right: Option<f64>,
}

/// A score and whether it was right.
pub(super) type Sample = (f64, bool);

impl Calibration {
    /// The calibration of scores from 0 to 1.
    pub fn of(samples: &[(f64, bool)]) -> Calibration {
        let mut bins: [Vec<Sample>; BINS] = Default::default();
        for sample in samples {
            let bin = (sample.0.clamp(0.0, 1.0) * BINS as f64) as usize;
            bins[bin.min(BINS - 1)].push(*sample);
        }
        let count = samples.len();
        let bins: Vec<Bin> =
            bins.iter().enumerate().map(|(at, samples)| bin_of(at, samples)).collect();
        let gap = |bin: &Bin| {
            let gap = bin.mean_score.unwrap_or(0.0) - bin.share_right.unwrap_or(0.0);
            gap.abs() * bin.count as f64
        };
        let square = |(score, right): &Sample| (score - truth(*right)) * (score - truth(*right));
        Calibration {
            count,
            expected_error: mean(bins.iter().map(gap).sum(), count),
            brier: mean(samples.iter().map(square).sum(), count),
            bins,
        }
    }
}

/// How many of the best skills of a query are looked at.
const SAMPLES_MAX: usize = 5;

/// The scores of a query whose truth is known: those of the best skills, picked or not. A query that only
/// says what is wrong says nothing about the others.
pub(super) fn samples(query: &Query, answer: &Answer) -> Vec<Sample> {
    let best = answer.ranked.iter().take(SAMPLES_MAX);
    best.filter_map(|(name, score)| Some((f64::from(*score), query.is_right(name)?))).collect()
}

fn bin_of(at: usize, samples: &[Sample]) -> Bin {
    let count = samples.len();
    Bin {
        from: at as f64 / BINS as f64,
        to: (at + 1) as f64 / BINS as f64,
        count,
        mean_score: mean(samples.iter().map(|(score, _)| score).sum(), count),
        share_right: mean(samples.iter().map(|(_, right)| truth(*right)).sum(), count),
    }
}

fn truth(right: bool) -> f64 {
    if right { 1.0 } else { 0.0 }
}

/// A mean, or nothing of nothing.
pub(super) fn mean(sum: f64, count: usize) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_prophet_has_no_error() {
        let calibration = Calibration::of(&[(1.0, true), (1.0, true), (0.0, false)]);
        assert_eq!((calibration.expected_error, calibration.brier), (Some(0.0), Some(0.0)));
        assert_eq!((calibration.bins[0].count, calibration.bins[9].count), (1, 2));
        assert_eq!(calibration.bins.len(), BINS);
    }

    #[test]
    fn who_is_always_sure_and_right_half_the_time_is_off_by_half() {
        let calibration = Calibration::of(&[(1.0, true), (1.0, false)]);
        assert_eq!((calibration.expected_error, calibration.brier), (Some(0.5), Some(0.5)));
        assert_eq!(calibration.bins[9].share_right, Some(0.5));
    }

    #[test]
    fn errors_of_bins_weigh_by_their_counts() {
        let calibration =
            Calibration::of(&[(0.75, true), (0.75, true), (0.75, true), (0.25, true)]);
        let error = calibration.expected_error.unwrap();
        assert!((error - (3.0 * 0.25 + 0.75) / 4.0).abs() < 1e-12, "{error}");
    }

    #[test]
    fn nothing_is_neither_good_nor_bad() {
        let calibration = Calibration::of(&[]);
        assert_eq!((calibration.expected_error, calibration.brier), (None, None));
        assert_eq!(Calibration::of(&[(f64::NAN, true), (7.0, true)]).bins[9].count, 1);
    }
}
