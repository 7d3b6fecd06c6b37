//! Why a skill is picked for a task or not, stage by stage.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Selector, Weighed, round};
use crate::evidence::combine;
use crate::query::Query;
use crate::selection::{Lack, Reason, Strategy};
use crate::settings::Stage;
use crate::task::Task;

/// What one stage says about one skill.
#[derive(Clone, Debug, PartialEq)]
pub struct StageScore {
    /// The stage.
    pub stage: Stage,
    /// What it says, in the unit of the stage.
    pub score: f32,
    /// Why.
    pub reasons: Vec<Reason>,
}

/// A trigger that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// What the skill declares.
    pub declared: String,
    /// Why it cannot be used.
    pub message: String,
}

/// Why a skill was picked or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The skill.
    pub name: String,
    /// How likely it is to be right, 0 to 1.
    pub score: f32,
    /// What is asked of it.
    pub threshold: f32,
    /// Its place among all skills by words and meaning, from 1, if it was among the best.
    pub rank: Option<usize>,
    /// What kept it out; `None` if it was picked.
    pub lacked: Option<Lack>,
    /// How likely words and meaning alone make it, 0 to 1.
    pub by_text: f32,
    /// How likely its triggers alone make it, 0 to 1.
    pub by_triggers: f32,
    /// What every stage says.
    pub stages: Vec<StageScore>,
    /// Triggers that it declares and that cannot be used.
    pub problems: Vec<Problem>,
    /// Telling words of the task that the skill does not have.
    pub missing: Vec<String>,
    /// The picked skill that needs it, if it is picked for that.
    pub needed_by: Option<String>,
}

impl Selector {
    /// Why a skill is picked for a task or not; `None` if there is no such skill.
    pub fn explain(&self, task: &Task, name: &str) -> Option<Explanation> {
        let skill = self.ready.cards.iter().position(|card| card.id == name)?;
        let (query, weighed, _) = self.weigh(task, &[skill]);
        let mut matched = 0;
        for one in weighed {
            let lacked = self.lacks(&one, matched);
            if one.skill != skill {
                let is_match = lacked.is_none() && one.strategy != Strategy::Hint;
                matched += usize::from(is_match);
                continue;
            }
            let mut explanation = self.explanation(&query, one, lacked);
            if explanation.lacked.is_some()
                && let Some(by) = self.needed_by(task, name)
            {
                explanation.lacked = None;
                explanation.needed_by = Some(by);
            }
            return Some(explanation);
        }
        None
    }

    /// The picked skill that a skill comes along with.
    fn needed_by(&self, task: &Task, name: &str) -> Option<String> {
        let picks = self.select(task).picks;
        let pick = picks.into_iter().find(|pick| pick.name == name)?;
        pick.reasons.into_iter().find_map(|reason| match reason {
            Reason::Need { by } => Some(by),
            _ => None,
        })
    }

    fn problems(&self, skill: usize) -> Vec<Problem> {
        let of_it = self.ready.triggers.problems().filter(|(of, ..)| *of == skill);
        of_it
            .map(|(_, declared, message)| Problem {
                declared: declared.to_owned(),
                message: message.to_owned(),
            })
            .collect()
    }

    fn explanation(&self, query: &Query, one: Weighed, lacked: Option<Lack>) -> Explanation {
        let reasons = self.all_reasons(query, &one);
        let of = |stage: Stage| {
            let belongs = |reason: &&Reason| reason.stage() == stage;
            reasons.iter().filter(belongs).cloned().collect::<Vec<_>>()
        };
        let candidate = &one.candidate;
        let stages = Stage::ALL
            .into_iter()
            .filter(|stage| *stage != Stage::Needs && self.settings.stages.has(*stage))
            .map(|stage| {
                let reasons = of(stage);
                let score = match stage {
                    Stage::Words => candidate.words + candidate.pairs,
                    Stage::Meaning => candidate.closeness,
                    Stage::Context => one.boost,
                    Stage::Negatives => -one.against,
                    _ => combine(
                        one.strengths.iter().filter(|(of, _)| *of == stage).map(|(_, s)| *s),
                    ),
                };
                StageScore { stage, score: round(score), reasons }
            })
            .collect();
        let card = &self.ready.cards[one.skill];
        Explanation {
            name: card.id.clone(),
            score: round(one.score),
            threshold: self.threshold(card),
            rank: one.rank,
            lacked,
            by_text: round(one.by_text),
            by_triggers: round(one.by_triggers),
            stages,
            problems: self.problems(one.skill),
            missing: self.missing(query, &one.candidate),
            needed_by: None,
        }
    }
}
