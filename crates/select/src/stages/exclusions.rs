//! Finds tasks that a description excludes in its passages about what the skill is not for.

use super::fusion::RankCandidate;
use crate::index::SkillIndex;
use crate::query::TaskQuery;
use crate::selection::SelectionReason;

/// The strength of the evidence against a skill, 0 to 1, if its description excludes every word of the task.
const STRENGTH: f32 = 0.8;
/// The minimum share of the task's weight that must be excluded.
const SHARE_MIN: f32 = 0.25;

/// Returns how strongly a skill's own description speaks against it, and the words responsible: those that
/// occur in such a passage and nowhere else in name or description.
pub(crate) fn find_exclusion(
    query: &TaskQuery,
    candidate: &RankCandidate,
    index: &SkillIndex,
) -> Option<(f32, SelectionReason)> {
    let contra = index.contra_stems(candidate.skill);
    if contra.is_empty() {
        return None;
    }
    let terms = || query.terms.iter().zip(&candidate.hits);
    let speaks_against = |term: &crate::query::QueryTerm| {
        term.places.iter().any(|place| contra.binary_search(&(place.at as u32)).is_ok())
    };
    let against: Vec<_> = terms()
        .filter(|(term, hit)| hit.head == Default::default() && speaks_against(term))
        .map(|(term, _)| term)
        .collect();
    let worth =
        |terms: &[&crate::query::QueryTerm]| terms.iter().map(|term| term.head).sum::<f32>();
    let whole = worth(&query.terms.iter().collect::<Vec<_>>());
    let share = if whole > 0.0 { worth(&against) / whole } else { 0.0 };
    let words = against.iter().map(|term| term.word.clone()).collect();
    (share >= SHARE_MIN).then(|| (STRENGTH * share.sqrt(), SelectionReason::NotFor { words }))
}
