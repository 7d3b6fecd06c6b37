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
}
