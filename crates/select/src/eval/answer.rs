//! The selector's answer to a labelled query, and the check whether it was right.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::labels::{LabelPosition, LabelledQuery};
use crate::selection::{PickStrategy, SelectionPick};
use crate::{Selection, SkillSelector};

/// The maximum number of reasons reported for a wrong pick.
const REASONS_MAX: usize = 3;
/// The maximum rank to which the right skill is searched.
const RANKED_MAX: usize = 100;

/// The selector's answer to a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The picks and near misses.
    pub selection: Selection,
    /// Skill names with scores, best first, including skills that were not picked.
    pub ranked: Vec<(String, f32)>,
    /// The best-ranked right skill, if no right skill was picked.
    pub nearest: Option<NearestGoldSkill>,
    /// The time the selector took; `None` if it was not measured.
    pub elapsed_us: Option<u64>,
}

impl Answer {
    /// Runs the selector on a query.
    pub fn from_selector(query: &LabelledQuery, selector: &SkillSelector) -> Answer {
        let ranked = selector.rank(&query.task, RANKED_MAX);
        let mut answer = Answer {
            selection: selector.select(&query.task),
            ranked: ranked.into_iter().map(|one| (one.name, one.score)).collect(),
            ..Answer::default()
        };
        if find_fault(query, &answer).is_some() {
            answer.nearest = find_nearest(query, &answer, selector);
        }
        answer
    }

    /// Iterates over the picks that the selector chose itself, without those that came along as dependencies.
    pub fn chosen_picks(&self) -> impl Iterator<Item = &SelectionPick> {
        self.selection.picks.iter().filter(|pick| pick.strategy != PickStrategy::Need)
    }

    /// Returns true if a skill was picked for any reason, including as a dependency.
    pub fn has(&self, skill: &str) -> bool {
        self.selection.picks.iter().any(|pick| pick.name == skill)
    }
}

/// The way in which an answer is wrong.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerFault {
    /// No skill was picked, although one is right.
    Silent,
    /// Only other skills were picked.
    Stolen,
    /// A skill was picked that the query excludes.
    Forbidden,
    /// A skill was picked, although none is right.
    Unasked,
}

impl fmt::Display for AnswerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AnswerFault::Silent => "silent",
            AnswerFault::Stolen => "stolen",
            AnswerFault::Forbidden => "forbidden",
            AnswerFault::Unasked => "unasked",
        })
    }
}

/// Returns the fault of an answer, or `None` if it is right. An answer is right if it contains at least one
/// right skill and no excluded one; if no skill is right, it must be empty.
pub fn find_fault(query: &LabelledQuery, answer: &Answer) -> Option<AnswerFault> {
    if query.not.iter().any(|name| answer.has(name)) {
        return Some(AnswerFault::Forbidden);
    }
    let nothing = answer.selection.picks.is_empty();
    if query.should_abstain() {
        return (!nothing).then_some(AnswerFault::Unasked);
    }
    if query.gold.is_empty() || query.gold.keys().any(|name| answer.has(name)) {
        return None;
    }
    Some(if nothing { AnswerFault::Silent } else { AnswerFault::Stolen })
}

/// A query that was answered wrongly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailedQuery {
    /// The file and line of the query.
    pub place: LabelPosition,
    /// The text of the query.
    pub query: String,
    /// The way in which the answer is wrong.
    pub fault: AnswerFault,
    /// The skills that would have been right.
    pub gold: Vec<String>,
    /// The skills that must not be picked.
    pub not: Vec<String>,
    /// The skills that were picked.
    pub picked: Vec<FailedQueryPick>,
    /// The best-ranked right skill, if no right skill was picked.
    pub nearest: Option<NearestGoldSkill>,
}

/// A skill that was picked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailedQueryPick {
    /// The name of the skill.
    pub name: String,
    /// The score of the skill.
    pub score: f32,
    /// The strongest reasons for the pick.
    pub reasons: Vec<String>,
}

/// A right skill that was not picked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NearestGoldSkill {
    /// The name of the skill.
    pub name: String,
    /// The rank of the skill, from 1; null if it was not ranked.
    pub rank: Option<usize>,
    /// The score of the skill; null if it was not ranked.
    pub score: Option<f32>,
    /// The condition that kept the skill out, if selection reports one.
    pub lacked: Option<String>,
    /// Distinctive words of the query that the skill does not contain.
    pub missing: Vec<String>,
}

impl FailedQuery {
    /// Returns the failure that an answer represents, or `None` if the answer is right.
    pub fn from_answer(query: &LabelledQuery, answer: &Answer) -> Option<FailedQuery> {
        let fault = find_fault(query, answer)?;
        Some(FailedQuery {
            place: query.place.clone(),
            query: query.task.text.clone(),
            fault,
            gold: query.gold.keys().cloned().collect(),
            not: query.not.clone(),
            picked: answer.selection.picks.iter().map(describe_pick).collect(),
            nearest: answer.nearest.clone(),
        })
    }
}

fn describe_pick(pick: &SelectionPick) -> FailedQueryPick {
    FailedQueryPick {
        name: pick.name.clone(),
        score: pick.score,
        reasons: pick.reasons.iter().take(REASONS_MAX).map(ToString::to_string).collect(),
    }
}

fn find_nearest(
    query: &LabelledQuery,
    answer: &Answer,
    selector: &SkillSelector,
) -> Option<NearestGoldSkill> {
    if query.gold.keys().any(|name| answer.has(name)) {
        return None;
    }
    let place = answer.ranked.iter().position(|(name, _)| query.gold.contains_key(name));
    let name = match place {
        Some(at) => &answer.ranked[at].0,
        None => best_gold(query)?,
    };
    let why = selector.explain(&query.task, name);
    Some(NearestGoldSkill {
        name: name.clone(),
        rank: place.map(|at| at + 1),
        score: place.map(|at| answer.ranked[at].1),
        lacked: why.as_ref().and_then(|why| Some(why.lacked.as_ref()?.to_string())),
        missing: why.map(|why| why.missing).unwrap_or_default(),
    })
}

/// Returns the right skill with the best grade; ties go to the first by name.
pub(super) fn best_gold(query: &LabelledQuery) -> Option<&String> {
    let best = query.gold.iter().rev().max_by(|a, b| a.1.total_cmp(b.1));
    best.map(|(name, _)| name)
}
