//! Evidence that a stage of the pipeline found for a skill.

use crate::selection::SelectionReason;

/// A single piece of evidence for a skill.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StageEvidence {
    /// The index of the skill in the catalog.
    pub(crate) skill: usize,
    /// The probability, from 0 to 1, that the skill is right given this evidence alone.
    pub(crate) strength: f32,
    pub(crate) reason: SelectionReason,
}

/// Combines strengths as independent probabilities (noisy-or): one strong piece is enough, and more never
/// lower the result.
///
/// ```text
/// none: 0   0.8: 0.8   0.8 and 0.8: 0.96
/// ```
pub(crate) fn combine_strengths(strengths: impl IntoIterator<Item = f32>) -> f32 {
    1.0 - strengths.into_iter().map(|strength| 1.0 - strength).product::<f32>()
}

/// The strength at which a single piece of declared evidence can decide a selection.
const STRONG: f32 = 0.6;
/// The cap on combined weak evidence: any number of keywords and patterns that a skill declares stays
/// undecided.
const WEAK_TOGETHER_MAX: f32 = 0.5;

/// Like [`combine`], for triggers that skills declare about themselves: many weak ones never add up to a
/// strong one.
pub(crate) fn combine_declared(strengths: impl IntoIterator<Item = f32> + Clone) -> f32 {
    let most = strengths.clone().into_iter().fold(0.0, f32::max);
    let all = combine_strengths(strengths);
    if most < STRONG { all.min(WEAK_TOGETHER_MAX) } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_strong_finding_is_enough_and_more_only_add() {
        assert_eq!(combine_strengths([]), 0.0);
        assert_eq!(combine_strengths([0.8]), 0.8);
        assert!(combine_strengths([0.8, 0.1]) > 0.8);
        assert!(combine_strengths([0.8; 50]) <= 1.0);
    }

    #[test]
    fn many_weak_declarations_are_worth_no_strong_one() {
        assert_eq!(combine_declared([0.4, 0.45, 0.45]), 0.5);
        assert!((combine_declared([0.4]) - 0.4).abs() < 1e-6);
        assert!(combine_declared([0.85, 0.4]) > 0.85);
    }
}
