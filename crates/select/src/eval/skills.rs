//! Figures per skill: the queries it was picked for, those it missed, and those it took from other skills.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, AnswerFault, best_gold, find_fault};
use super::calibration::compute_mean;
use super::labels::{LabelPosition, LabelledQuery};

/// The figures of one skill.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillFigures {
    /// The name of the skill.
    pub skill: String,
    /// Queries for which the skill is right.
    pub positives: usize,
    /// Of those, queries for which it was picked.
    pub picked: usize,
    /// The share of those queries for which it was picked.
    pub recall: Option<f64>,
    /// Queries for which it was picked and is wrong: the following three, and those where it was picked
    /// beside a right skill.
    pub false_picks: usize,
    /// Of those, queries for which it was picked instead of a right skill.
    pub stolen: usize,
    /// Of those, queries that exclude it.
    pub forbidden: usize,
    /// Of those, queries for which no skill is right.
    pub unasked: usize,
}

/// A skill that is picked instead of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillConfusion {
    /// The skill that was right.
    pub right: String,
    /// The skill that was picked in its place.
    pub picked: String,
    /// The number of queries with this confusion.
    pub count: usize,
    /// The text of one of these queries.
    pub example: String,
    /// The file and line of that query.
    pub place: LabelPosition,
}

/// Computes the figures of every skill that is right or picked somewhere, by name.
pub fn figures_by_skill<'a>(
    pairs: impl IntoIterator<Item = (&'a LabelledQuery, &'a Answer)>,
) -> Vec<SkillFigures> {
    let mut rows: BTreeMap<&str, SkillFigures> = BTreeMap::new();
    for (query, answer) in pairs {
        for name in query.gold.keys() {
            let row = rows.entry(name).or_default();
            row.positives += 1;
            row.picked += usize::from(answer.has(name));
        }
        let fault = find_fault(query, answer);
        for pick in answer.chosen_picks().filter(|pick| query.is_right(&pick.name) == Some(false)) {
            let row = rows.entry(&pick.name).or_default();
            row.false_picks += 1;
            if query.not.contains(&pick.name) {
                row.forbidden += 1;
            } else if query.should_abstain() {
                row.unasked += 1;
            } else if fault == Some(AnswerFault::Stolen) {
                row.stolen += 1;
            }
        }
    }
    rows.into_iter().map(finish_row).collect()
}

fn finish_row((name, row): (&str, SkillFigures)) -> SkillFigures {
    SkillFigures {
        skill: name.to_owned(),
        recall: compute_mean(row.picked as f64, row.positives),
        ..row
    }
}

/// Counts the pairs of right and picked skills, most frequent first. A query counts once, for its best wrong
/// pick.
pub fn count_confusions<'a>(
    pairs: impl IntoIterator<Item = (&'a LabelledQuery, &'a Answer)>,
) -> Vec<SkillConfusion> {
    let mut found: BTreeMap<(&str, &str), SkillConfusion> = BTreeMap::new();
    for (query, answer) in pairs {
        if find_fault(query, answer) != Some(AnswerFault::Stolen) {
            continue;
        }
        let (Some(right), Some(thief)) = (best_gold(query), answer.chosen_picks().next()) else {
            continue;
        };
        let new = || SkillConfusion {
            right: right.clone(),
            picked: thief.name.clone(),
            count: 0,
            example: query.task.text.clone(),
            place: query.place.clone(),
        };
        found.entry((right, &thief.name)).or_insert_with(new).count += 1;
    }
    let mut all: Vec<SkillConfusion> = found.into_values().collect();
    // The sort is stable, so ties stay ordered by name.
    all.sort_by_key(|pair| std::cmp::Reverse(pair.count));
    all
}
