//! Skill by skill: what each finds, misses and takes from others.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, Fault, best_gold, fault};
use super::calibration::mean;
use super::labels::{Place, Query};

/// One skill's figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillFigures {
    /// The skill.
    pub skill: String,
    /// Queries that it is right for.
    pub positives: usize,
    /// How many of them picked it.
    pub picked: usize,
    /// That as a share.
    pub recall: Option<f64>,
    /// Queries that picked it and should not have: all of the following three, and those where it came
    /// second to one that is right.
    pub false_picks: usize,
    /// Of those, queries where it was picked instead of one that is right.
    pub stolen: usize,
    /// Of those, queries that say that it is wrong.
    pub forbidden: usize,
    /// Of those, queries that nothing is right for.
    pub unasked: usize,
}

/// A skill that is picked instead of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confusion {
    /// The skill that was right.
    pub right: String,
    /// The skill that was picked in its place.
    pub picked: String,
    /// For how many queries.
    pub count: usize,
    /// One of them.
    pub example: String,
    /// Where that is written.
    pub place: Place,
}

/// The figures of every skill that is right or picked somewhere, by name.
pub fn skills<'a>(pairs: impl IntoIterator<Item = (&'a Query, &'a Answer)>) -> Vec<SkillFigures> {
    let mut rows: BTreeMap<&str, SkillFigures> = BTreeMap::new();
    for (query, answer) in pairs {
        for name in query.gold.keys() {
            let row = rows.entry(name).or_default();
            row.positives += 1;
            row.picked += usize::from(answer.has(name));
        }
        let fault = fault(query, answer);
        for pick in answer.chosen().filter(|pick| query.is_right(&pick.name) == Some(false)) {
            let row = rows.entry(&pick.name).or_default();
            row.false_picks += 1;
            if query.not.contains(&pick.name) {
                row.forbidden += 1;
            } else if query.should_abstain() {
                row.unasked += 1;
            } else if fault == Some(Fault::Stolen) {
                row.stolen += 1;
            }
        }
    }
    let finish = |(name, row): (&str, SkillFigures)| SkillFigures {
        skill: name.to_owned(),
        recall: mean(row.picked as f64, row.positives),
        ..row
    };
    rows.into_iter().map(finish).collect()
}

/// Who is picked instead of whom, the most frequent first. A query counts once: for its best wrong pick.
pub fn confusions<'a>(pairs: impl IntoIterator<Item = (&'a Query, &'a Answer)>) -> Vec<Confusion> {
    let mut found: BTreeMap<(&str, &str), Confusion> = BTreeMap::new();
    for (query, answer) in pairs {
        if fault(query, answer) != Some(Fault::Stolen) {
            continue;
        }
        let (Some(right), Some(thief)) = (best_gold(query), answer.chosen().next()) else {
            continue;
        };
        let new = || Confusion {
            right: right.clone(),
            picked: thief.name.clone(),
            count: 0,
            example: query.task.text.clone(),
            place: query.place.clone(),
        };
        found.entry((right, &thief.name)).or_insert_with(new).count += 1;
    }
    let mut all: Vec<Confusion> = found.into_values().collect();
    // The order by names stays among equals.
    all.sort_by_key(|pair| std::cmp::Reverse(pair.count));
    all
}
