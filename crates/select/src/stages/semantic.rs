//! Meaning: how close the task's direction is to that of every skill.

use crate::index::Index;
use crate::query::Query;

/// What full closeness adds, in the units of the lexical score.
pub(crate) const CLOSENESS: f32 = 33.0;

/// Adds every skill's score by meaning.
pub(crate) fn score(query: &Query, index: &Index, scores: &mut [f32]) {
    for (skill, score) in scores.iter_mut().enumerate() {
        *score += CLOSENESS * index.closeness(skill, &query.whole.vector);
    }
}
