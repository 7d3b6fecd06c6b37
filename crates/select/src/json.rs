//! JSON output of selections, with published schemas.

use schemars::JsonSchema;
use serde::Serialize;

use crate::selection::{
    NearMiss, RejectionReason, Selection, SelectionPick, SelectionReason, UnresolvedHint,
};
use crate::selector::{SkillExplanation, TriggerProblem};
use crate::settings::SelectionStage;
use crate::task::Task;

/// The output of `rep match --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MatchJson {
    /// The text of the task.
    pub task: String,
    /// How the picks were found: `hint`, `trigger`, `match`, or `none` if there are no picks.
    pub strategy: String,
    /// The picked skills, best first; the dependencies of a pick follow it directly.
    pub picks: Vec<SelectionPick>,
    /// Skills that were nearly picked.
    pub near_misses: Vec<NearMiss>,
    /// True if no skill was picked.
    pub abstained: bool,
    /// The best score of any skill.
    pub best: f32,
    /// The skill with the best score, if no skill was picked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
    /// The condition that the nearest skill failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacked: Option<RejectionReason>,
    /// Picks that are not trusted: they can be read, but get no capabilities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<String>,
    /// The minimum score for a pick.
    pub threshold: f32,
    /// Names in hints that match no skill.
    pub unresolved: Vec<UnresolvedHint>,
    /// The number of skills that were considered.
    pub skills: usize,
    /// The duration of the selection in microseconds, not counting the loading of skills.
    pub took_us: u64,
    /// With `--explain`: the results of every stage for the best-scoring skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explained: Vec<ExplanationJson>,
}

impl MatchJson {
    /// Converts a selection. The caller fills in `skills`, `took_us`, `untrusted` and `explained`.
    pub fn from_selection(task: &Task, selection: Selection, threshold: f32) -> Self {
        let best_pick = selection.picks.iter().map(|pick| pick.score).fold(0.0, f32::max);
        MatchJson {
            task: task.text.clone(),
            strategy: selection.strategy().to_owned(),
            abstained: selection.abstention.is_some(),
            best: selection.abstention.as_ref().map_or(best_pick, |abstention| abstention.best),
            lacked: selection.abstention.as_ref().and_then(|abstention| abstention.lacked.clone()),
            nearest: selection.abstention.and_then(|abstention| abstention.nearest),
            threshold,
            picks: selection.picks,
            near_misses: selection.near_misses,
            unresolved: selection.unresolved,
            untrusted: Vec::new(),
            skills: 0,
            took_us: 0,
            explained: Vec::new(),
        }
    }
}

/// The output of `rep match --why NAME --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExplanationJson {
    /// The name of the skill.
    pub name: String,
    /// True if the skill was picked.
    pub picked: bool,
    /// The probability that the skill is right, 0 to 1.
    pub score: f32,
    /// The minimum score for a pick.
    pub threshold: f32,
    /// The rank by words and meaning, from 1; null if the skill is not among the candidates.
    pub rank: Option<usize>,
    /// The condition that kept the skill out.
    pub lacked: Option<RejectionReason>,
    /// Distinctive words of the task that the skill does not contain.
    pub missing: Vec<String>,
    /// The probability by words and meaning alone, 0 to 1.
    pub by_text: f32,
    /// The probability by triggers alone, 0 to 1.
    pub by_triggers: f32,
    /// The results of every stage.
    pub stages: Vec<StageJson>,
    /// Declared triggers that cannot be used.
    pub problems: Vec<TriggerProblem>,
    /// The picked skill that depends on this one, if it was picked as a dependency.
    pub needed_by: Option<String>,
}

/// The result of one stage for a skill.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StageJson {
    /// The name of the stage.
    pub stage: SelectionStage,
    /// The score, in the unit of the stage.
    pub score: f32,
    /// The reasons for the score.
    pub reasons: Vec<SelectionReason>,
}

impl From<SkillExplanation> for ExplanationJson {
    fn from(why: SkillExplanation) -> Self {
        let stages = why.stages.into_iter().map(|one| StageJson {
            stage: one.stage,
            score: one.score,
            reasons: one.reasons,
        });
        ExplanationJson {
            name: why.name,
            picked: why.lacked.is_none(),
            score: why.score,
            threshold: why.threshold,
            rank: why.rank,
            lacked: why.lacked,
            missing: why.missing,
            by_text: why.by_text,
            by_triggers: why.by_triggers,
            problems: why.problems,
            needed_by: why.needed_by,
            stages: stages.collect(),
        }
    }
}
