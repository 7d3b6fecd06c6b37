//! What a stage found about a skill.

use crate::selection::Reason;

/// A finding for a skill.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Evidence {
    /// The skill's place in the catalog.
    pub(crate) skill: usize,
    /// How likely this alone makes the skill right, 0 to 1.
    pub(crate) strength: f32,
    pub(crate) reason: Reason,
}

/// Findings add up, and never past certainty: one strong one is enough, and more only add.
///
/// ```text
/// none: 0   0.8: 0.8   0.8 and 0.8: 0.96
/// ```
pub(crate) fn combine(strengths: impl IntoIterator<Item = f32>) -> f32 {
    1.0 - strengths.into_iter().map(|strength| 1.0 - strength).product::<f32>()
}

/// A finding from which on it can decide by itself.
const STRONG: f32 = 0.6;
/// What weak findings reach together: however many words and patterns a skill claims, they decide nothing.
const WEAK_TOGETHER_MAX: f32 = 0.5;

/// The same for what skills declare about themselves, where many weak findings are worth no strong one.
pub(crate) fn combine_declared(strengths: impl IntoIterator<Item = f32> + Clone) -> f32 {
    let most = strengths.clone().into_iter().fold(0.0, f32::max);
    let all = combine(strengths);
    if most < STRONG { all.min(WEAK_TOGETHER_MAX) } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_strong_finding_is_enough_and_more_only_add() {
        assert_eq!(combine([]), 0.0);
        assert_eq!(combine([0.8]), 0.8);
        assert!(combine([0.8, 0.1]) > 0.8);
        assert!(combine([0.8; 50]) <= 1.0);
    }

    #[test]
    fn many_weak_declarations_are_worth_no_strong_one() {
        assert_eq!(combine_declared([0.4, 0.45, 0.45]), 0.5);
        assert!((combine_declared([0.4]) - 0.4).abs() < 1e-6);
        assert!(combine_declared([0.85, 0.4]) > 0.85);
    }
}
