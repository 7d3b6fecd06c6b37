//! Explains stage by stage why a skill is picked for a task or not.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Selector, Weighed, round};
use crate::evidence::combine;
use crate::query::Query;
use crate::selection::{Lack, Reason, Strategy};
use crate::settings::Stage;
use crate::task::Task;

/// The result of one stage for one skill.
#[derive(Clone, Debug, PartialEq)]
pub struct StageScore {
    pub stage: Stage,
    /// The score, in the unit of the stage.
    pub score: f32,
    pub reasons: Vec<Reason>,
}

/// A trigger that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// The trigger as the skill declares it.
    pub declared: String,
    /// The reason why it cannot be used.
    pub message: String,
}

/// The explanation why a skill was picked or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    pub name: String,
    /// The probability that the skill is right, 0 to 1.
    pub score: f32,
    /// The minimum score for this skill.
    pub threshold: f32,
    /// The rank by words and meaning, from 1; `None` if the skill is not among the candidates.
    pub rank: Option<usize>,
    /// The condition that kept the skill out; `None` if it was picked.
    pub lacked: Option<Lack>,
    /// The probability by words and meaning alone, 0 to 1.
    pub by_text: f32,
    /// The probability by triggers alone, 0 to 1.
    pub by_triggers: f32,
    pub stages: Vec<StageScore>,
    /// Declared triggers that cannot be used.
    pub problems: Vec<Problem>,
    /// Distinctive words of the task that the skill does not contain.
    pub missing: Vec<String>,
    /// The picked skill that depends on this one, if it was picked as a dependency.
    pub needed_by: Option<String>,
}

impl Selector {
    /// Explains why a skill is picked for a task or not. Returns `None` if there is no such skill.
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

    /// Returns the picked skill that a skill was added as a dependency of.
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
