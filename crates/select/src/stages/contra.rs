//! Passages in a description that say what the skill is not for, when the task is just that.

use super::fusion::Candidate;
use crate::index::Index;
use crate::query::Query;
use crate::selection::Reason;

/// How far a task that is all about what a skill is not for speaks against it, 0 to 1.
const STRENGTH: f32 = 0.8;
/// The share of the task's worth from which on it counts.
const SHARE_MIN: f32 = 0.25;

/// How strongly a skill's own description speaks against it, and by which words: those that stand in such a
/// passage and nowhere in its name or description.
pub(crate) fn find(query: &Query, candidate: &Candidate, index: &Index) -> Option<(f32, Reason)> {
    let contra = index.contra(candidate.skill);
    if contra.is_empty() {
        return None;
    }
    let terms = || query.terms.iter().zip(&candidate.hits);
    let speaks_against = |term: &crate::query::Term| {
        term.places.iter().any(|place| contra.binary_search(&(place.at as u32)).is_ok())
    };
    let against: Vec<_> = terms()
        .filter(|(term, hit)| hit.head == Default::default() && speaks_against(term))
        .map(|(term, _)| term)
        .collect();
    let worth = |terms: &[&crate::query::Term]| terms.iter().map(|term| term.head).sum::<f32>();
    let whole = worth(&query.terms.iter().collect::<Vec<_>>());
    let share = if whole > 0.0 { worth(&against) / whole } else { 0.0 };
    let words = against.iter().map(|term| term.word.clone()).collect();
    (share >= SHARE_MIN).then(|| (STRENGTH * share.sqrt(), Reason::NotFor { words }))
}
