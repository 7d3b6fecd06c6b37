//! Explains stage by stage why a skill is picked for a task or not.

use schemars::JsonSchema;
use serde::Serialize;

use super::{ScoredSkill, SkillSelector, round_score};
use crate::evidence::combine_strengths;
use crate::query::TaskQuery;
use crate::selection::{PickStrategy, RejectionReason, SelectionReason};
use crate::settings::SelectionStage;
use crate::task::Task;

/// The result of one stage for one skill.
#[derive(Clone, Debug, PartialEq)]
pub struct StageScore {
    pub stage: SelectionStage,
    /// The score, in the unit of the stage.
    pub score: f32,
    pub reasons: Vec<SelectionReason>,
}

/// A trigger that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TriggerProblem {
    /// The trigger as the skill declares it.
    pub declared: String,
    /// The reason why it cannot be used.
    pub message: String,
}

/// The explanation why a skill was picked or not.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillExplanation {
    pub name: String,
    /// The probability that the skill is right, 0 to 1.
    pub score: f32,
    /// The minimum score for this skill.
    pub threshold: f32,
    /// The rank by words and meaning, from 1; `None` if the skill is not among the candidates.
    pub rank: Option<usize>,
    /// The condition that kept the skill out; `None` if it was picked.
    pub lacked: Option<RejectionReason>,
    /// The probability by words and meaning alone, 0 to 1.
    pub by_text: f32,
    /// The probability by triggers alone, 0 to 1.
    pub by_triggers: f32,
    pub stages: Vec<StageScore>,
    /// Declared triggers that cannot be used.
    pub problems: Vec<TriggerProblem>,
    /// Distinctive words of the task that the skill does not contain.
    pub missing: Vec<String>,
    /// The picked skill that depends on this one, if it was picked as a dependency.
    pub needed_by: Option<String>,
}

impl SkillSelector {
    /// Explains why a skill is picked for a task or not. Returns `None` if there is no such skill.
    pub fn explain(&self, task: &Task, name: &str) -> Option<SkillExplanation> {
        let skill = self.ready.cards.iter().position(|card| card.id == name)?;
        let (query, weighed, _) = self.score_candidates(task, &[skill]);
        let mut matched = 0;
        for one in weighed {
            let lacked = self.rejection_reason(&one, matched);
            if one.skill != skill {
                let is_match = lacked.is_none() && one.strategy != PickStrategy::Hint;
                matched += usize::from(is_match);
                continue;
            }
            let mut explanation = self.build_explanation(&query, one, lacked);
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
            SelectionReason::Need { by } => Some(by),
            _ => None,
        })
    }

    fn trigger_problems(&self, skill: usize) -> Vec<TriggerProblem> {
        let of_it = self.ready.triggers.problems().filter(|(of, ..)| *of == skill);
        of_it
            .map(|(_, declared, message)| TriggerProblem {
                declared: declared.to_owned(),
                message: message.to_owned(),
            })
            .collect()
    }

    fn build_explanation(
        &self,
        query: &TaskQuery,
        one: ScoredSkill,
        lacked: Option<RejectionReason>,
    ) -> SkillExplanation {
        let reasons = self.all_reasons(query, &one);
        let of = |stage: SelectionStage| {
            let belongs = |reason: &&SelectionReason| reason.stage() == stage;
            reasons.iter().filter(belongs).cloned().collect::<Vec<_>>()
        };
        let candidate = &one.candidate;
        let stages = SelectionStage::ALL
            .into_iter()
            .filter(|stage| *stage != SelectionStage::Needs && self.settings.stages.has(*stage))
            .map(|stage| {
                let reasons = of(stage);
                let score = match stage {
                    SelectionStage::Words => candidate.words + candidate.pairs,
                    SelectionStage::Meaning => candidate.closeness,
                    SelectionStage::Context => one.boost,
                    SelectionStage::Negatives => -one.against,
                    _ => combine_strengths(
                        one.strengths.iter().filter(|(of, _)| *of == stage).map(|(_, s)| *s),
                    ),
                };
                StageScore { stage, score: round_score(score), reasons }
            })
            .collect();
        let card = &self.ready.cards[one.skill];
        SkillExplanation {
            name: card.id.clone(),
            score: round_score(one.score),
            threshold: self.threshold_for(card),
            rank: one.rank,
            lacked,
            by_text: round_score(one.by_text),
            by_triggers: round_score(one.by_triggers),
            stages,
            problems: self.trigger_problems(one.skill),
            missing: self.missing_words(query, &one.candidate),
            needed_by: None,
        }
    }
}
