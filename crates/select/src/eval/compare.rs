//! Compares two configurations of the selector on the same queries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Answer;
use super::answer::{AnswerFault, FailedQuery, find_fault};
use super::labels::{LabelPosition, LabelledQuery};
use super::report::{EvalMetric, EvalReport};

/// The changes from one configuration to the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvalComparison {
    /// The value of each metric before and after.
    pub metrics: Vec<MetricDifference>,
    /// Queries that were wrong before and are right now.
    pub gained: Vec<QueryChange>,
    /// Queries that were right before and are wrong now.
    pub lost: Vec<QueryChange>,
    /// The probability that chance alone splits gains and losses this unevenly (paired sign test, two-sided).
    pub p_value: f64,
}

/// The value of one metric before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricDifference {
    /// The name of the metric.
    pub metric: String,
    /// The value before.
    pub before: Option<f64>,
    /// The value after.
    pub after: Option<f64>,
    /// The value after minus the value before.
    pub difference: Option<f64>,
}

/// A query whose answer changed between right and wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryChange {
    /// The file and line of the query.
    pub place: LabelPosition,
    /// The text of the query.
    pub query: String,
    /// The fault of the wrong answer.
    pub fault: AnswerFault,
    /// The skills that would be right.
    pub gold: Vec<String>,
    /// The skills that must not be picked.
    pub not: Vec<String>,
    /// The skills that the wrong answer picked.
    pub picked: Vec<String>,
}

impl EvalComparison {
    /// Compares two sets of answers to the same queries.
    pub fn from_answers(
        queries: &[LabelledQuery],
        before: &[Answer],
        after: &[Answer],
    ) -> EvalComparison {
        let (first, second) =
            (EvalReport::from_answers(queries, before), EvalReport::from_answers(queries, after));
        let mut gained = Vec::new();
        let mut lost = Vec::new();
        for ((query, before), after) in queries.iter().zip(before).zip(after) {
            match (find_fault(query, before), find_fault(query, after)) {
                (Some(_), None) => {
                    gained.extend(FailedQuery::from_answer(query, before).map(QueryChange::from))
                }
                (None, Some(_)) => {
                    lost.extend(FailedQuery::from_answer(query, after).map(QueryChange::from))
                }
                _ => {}
            }
        }
        let metrics = EvalMetric::ALL.map(|metric| {
            let (before, after) = (first.figures.get(metric), second.figures.get(metric));
            let difference = before.zip(after).map(|(before, after)| after - before);
            MetricDifference { metric: metric.to_string(), before, after, difference }
        });
        let p_value = sign_test(gained.len(), lost.len());
        EvalComparison { metrics: metrics.to_vec(), gained, lost, p_value }
    }
}

impl From<FailedQuery> for QueryChange {
    fn from(failed: FailedQuery) -> Self {
        QueryChange {
            place: failed.place,
            query: failed.query,
            fault: failed.fault,
            gold: failed.gold,
            not: failed.not,
            picked: failed.picked.into_iter().map(|pick| pick.name).collect(),
        }
    }
}

/// Returns the two-sided probability that a fair coin splits at least this unevenly.
pub fn sign_test(gained: usize, lost: usize) -> f64 {
    let tosses = (gained + lost) as f64;
    let tail: f64 =
        (0..=gained.min(lost)).map(|heads| heads_probability(heads as f64, tosses)).sum();
    (2.0 * tail).min(1.0)
}

/// Returns the probability of exactly `heads` heads, computed with logarithms because factorials overflow.
fn heads_probability(heads: f64, tosses: f64) -> f64 {
    let ways =
        libm::lgamma(tosses + 1.0) - libm::lgamma(heads + 1.0) - libm::lgamma(tosses - heads + 1.0);
    libm::exp(ways - tosses * std::f64::consts::LN_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_the_binomial_table() {
        let check = |gained, lost, expect: f64| {
            let p = sign_test(gained, lost);
            assert!((p - expect).abs() < 1e-9, "{gained} {lost}: {p}");
            assert_eq!(p, sign_test(lost, gained));
        };
        check(0, 0, 1.0);
        check(1, 1, 1.0);
        check(5, 0, 0.0625);
        check(9, 1, 0.021_484_375);
        assert!(sign_test(5000, 4000) < 1e-20);
    }
}
