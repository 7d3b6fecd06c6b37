//! Scores skills by meaning: the cosine similarity of their vectors with the task's.

use crate::index::SkillIndex;
use crate::query::TaskQuery;

/// The score of a similarity of 1, in the units of the score by words.
const CLOSENESS: f32 = 40.0;

/// Adds the score by meaning to each skill's score.
pub(crate) fn score_by_meaning(query: &TaskQuery, index: &SkillIndex, scores: &mut [f32]) {
    index.add_closeness(&query.whole.vector, CLOSENESS, scores);
}

/// Returns the score of a similarity, or 0 if meaning is switched off.
pub(crate) fn closeness_score(closeness: f32, is_used: bool) -> f32 {
    if is_used { CLOSENESS * closeness } else { 0.0 }
}
