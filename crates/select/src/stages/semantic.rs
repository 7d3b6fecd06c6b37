//! Meaning: how close the task's direction is to that of every skill.

use crate::index::Index;
use crate::query::Query;

/// What full closeness adds, in the units of the score by words.
const CLOSENESS: f32 = 40.0;

/// Adds every skill's score by meaning.
pub(crate) fn score(query: &Query, index: &Index, scores: &mut [f32]) {
    index.add_closeness(&query.whole.vector, CLOSENESS, scores);
}

/// What closeness adds.
pub(crate) fn worth(closeness: f32, is_used: bool) -> f32 {
    if is_used { CLOSENESS * closeness } else { 0.0 }
}
