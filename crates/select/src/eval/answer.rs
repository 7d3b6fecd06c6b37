//! What selection answered to a labelled query, and whether that was right.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::labels::{Place, Query};
use crate::selection::{Pick, Strategy};
use crate::{Selection, Selector};

/// How many reasons of a wrong pick are told.
const REASONS_MAX: usize = 3;
/// How many ranks are looked at for the right skill.
const RANKED_MAX: usize = 100;

/// The answer to a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What was picked, and what nearly was.
    pub selection: Selection,
    /// Skills with their scores, the best first, whether picked or not.
    pub ranked: Vec<(String, f32)>,
    /// The right skill that came nearest, where none was picked.
    pub nearest: Option<Nearest>,
    /// How long it took.
    pub elapsed_us: Option<u64>,
}

impl Answer {
    /// Asks a selector.
    pub fn of(query: &Query, selector: &Selector) -> Answer {
        let ranked = selector.rank(&query.task, RANKED_MAX);
        let mut answer = Answer {
            selection: selector.select(&query.task),
            ranked: ranked.into_iter().map(|one| (one.name, one.score)).collect(),
            ..Answer::default()
        };
        if fault(query, &answer).is_some() {
            answer.nearest = nearest(query, &answer, selector);
        }
        answer
    }

    /// The picks that selection answers for: not those that came along because another needs them.
    pub fn chosen(&self) -> impl Iterator<Item = &Pick> {
        self.selection.picks.iter().filter(|pick| pick.strategy != Strategy::Need)
    }

    /// Whether a skill was picked, for whatever reason.
    pub fn has(&self, skill: &str) -> bool {
        self.selection.picks.iter().any(|pick| pick.name == skill)
    }
}

/// How an answer is wrong.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Nothing was picked, and something should have been.
    Silent,
    /// Others were picked instead.
    Stolen,
    /// A skill was picked that the query is not for.
    Forbidden,
    /// Something was picked, and nothing fits.
    Unasked,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Silent => "silent",
            Fault::Stolen => "stolen",
            Fault::Forbidden => "forbidden",
            Fault::Unasked => "unasked",
        })
    }
}

/// What is wrong with an answer, if anything. Right is an answer with at least one skill that is right and
/// none that must not be; where nothing is right, one without picks.
pub fn fault(query: &Query, answer: &Answer) -> Option<Fault> {
    if query.not.iter().any(|name| answer.has(name)) {
        return Some(Fault::Forbidden);
    }
    let nothing = answer.selection.picks.is_empty();
    if query.should_abstain() {
        return (!nothing).then_some(Fault::Unasked);
    }
    if query.gold.is_empty() || query.gold.keys().any(|name| answer.has(name)) {
        return None;
    }
    Some(if nothing { Fault::Silent } else { Fault::Stolen })
}

/// A query that went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// Where it is written.
    pub place: Place,
    /// Its text.
    pub query: String,
    /// How it went wrong.
    pub fault: Fault,
    /// What would have been right.
    pub gold: Vec<String>,
    /// What must not be picked.
    pub not: Vec<String>,
    /// What was picked.
    pub picked: Vec<Picked>,
    /// The right skill that came nearest, where none was picked.
    pub nearest: Option<Nearest>,
}

/// A skill that was picked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Picked {
    /// The skill.
    pub name: String,
    /// Its score.
    pub score: f32,
    /// Why it was picked, the strongest reasons.
    pub reasons: Vec<String>,
}

/// A right skill that was not picked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Nearest {
    /// The skill.
    pub name: String,
    /// Its place in the ranking, from 1; null if it has none.
    pub rank: Option<usize>,
    /// Its score.
    pub score: Option<f32>,
    /// What kept it out, where selection says so.
    pub lacked: Option<String>,
    /// Telling words of the query that it does not have.
    pub missing: Vec<String>,
}

impl Failed {
    /// The failure of an answer, if it is one.
    pub fn of(query: &Query, answer: &Answer) -> Option<Failed> {
        let fault = fault(query, answer)?;
        let picked = |pick: &Pick| Picked {
            name: pick.name.clone(),
            score: pick.score,
            reasons: pick.reasons.iter().take(REASONS_MAX).map(ToString::to_string).collect(),
        };
        Some(Failed {
            place: query.place.clone(),
            query: query.task.text.clone(),
            fault,
            gold: query.gold.keys().cloned().collect(),
            not: query.not.clone(),
            picked: answer.selection.picks.iter().map(picked).collect(),
            nearest: answer.nearest.clone(),
        })
    }
}

fn nearest(query: &Query, answer: &Answer, selector: &Selector) -> Option<Nearest> {
    if query.gold.keys().any(|name| answer.has(name)) {
        return None;
    }
    let place = answer.ranked.iter().position(|(name, _)| query.gold.contains_key(name));
    let name = match place {
        Some(at) => &answer.ranked[at].0,
        None => best_gold(query)?,
    };
    let why = selector.explain(&query.task, name);
    Some(Nearest {
        name: name.clone(),
        rank: place.map(|at| at + 1),
        score: place.map(|at| answer.ranked[at].1),
        lacked: why.as_ref().and_then(|why| Some(why.lacked.as_ref()?.to_string())),
        missing: why.map(|why| why.missing).unwrap_or_default(),
    })
}

/// The right skill with the best grade; the first by name among equals.
pub(super) fn best_gold(query: &Query) -> Option<&String> {
    let best = query.gold.iter().rev().max_by(|a, b| a.1.total_cmp(b.1));
    best.map(|(name, _)| name)
}
