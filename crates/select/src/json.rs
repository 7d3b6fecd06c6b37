//! Selections for programs, with published schemas.

use schemars::JsonSchema;
use serde::Serialize;

use crate::selection::{Lack, NearMiss, Pick, Reason, Selection, Unresolved};
use crate::selector::{Explanation, Problem};
use crate::settings::Stage;
use crate::task::Task;

/// `rep match --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MatchJson {
    /// The task's text.
    pub task: String,
    /// How the picks came about: by a hint, a trigger, a match, or `none`.
    pub strategy: String,
    /// Picked skills, the best first; what they need comes right after them.
    pub picks: Vec<Pick>,
    /// Skills that were nearly picked.
    pub near_misses: Vec<NearMiss>,
    /// Whether nothing was picked.
    pub abstained: bool,
    /// The best score that any skill reached.
    pub best: f32,
    /// The skill that reached it, if nothing was picked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
    /// What that skill lacked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacked: Option<Lack>,
    /// Picks that are not trusted: they can be read, and get no capability.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<String>,
    /// What is asked of a score.
    pub threshold: f32,
    /// Names in hints that lead nowhere.
    pub unresolved: Vec<Unresolved>,
    /// How many skills there are.
    pub skills: usize,
    /// How long the selection took, in microseconds, without reading skills.
    pub took_us: u64,
    /// With `--explain`: every stage's word on the skills that came nearest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explained: Vec<WhyJson>,
}

impl MatchJson {
    /// What was selected; how long it took and out of how many is for the caller to add.
    pub fn of(task: &Task, selection: Selection, threshold: f32) -> Self {
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

/// `rep match --why NAME --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhyJson {
    /// The skill.
    pub name: String,
    /// Whether it was picked.
    pub picked: bool,
    /// How likely it is to be right, 0 to 1.
    pub score: f32,
    /// What is asked of it.
    pub threshold: f32,
    /// Its place by words and meaning, from 1, if it is among the best.
    pub rank: Option<usize>,
    /// What kept it out.
    pub lacked: Option<Lack>,
    /// Telling words of the task that it does not have.
    pub missing: Vec<String>,
    /// How likely words and meaning alone make it, 0 to 1.
    pub by_text: f32,
    /// How likely its triggers alone make it, 0 to 1.
    pub by_triggers: f32,
    /// What every stage says.
    pub stages: Vec<StageJson>,
    /// Triggers that it declares and that cannot be used.
    pub problems: Vec<Problem>,
    /// The picked skill that needs it, if it is picked for that.
    pub needed_by: Option<String>,
}

/// One stage's word on a skill.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StageJson {
    /// The stage.
    pub stage: Stage,
    /// What it says, in its own unit.
    pub score: f32,
    /// Why.
    pub reasons: Vec<Reason>,
}

impl From<Explanation> for WhyJson {
    fn from(why: Explanation) -> Self {
        let stages = why.stages.into_iter().map(|one| StageJson {
            stage: one.stage,
            score: one.score,
            reasons: one.reasons,
        });
        WhyJson {
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
