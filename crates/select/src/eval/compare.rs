//! Two ways of selecting, on the same queries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Answer;
use super::answer::{Failed, Fault, fault};
use super::labels::{Place, Query};
use super::report::{Metric, Report};

/// What changes from one way to the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Metric by metric.
    pub metrics: Vec<Difference>,
    /// Queries that were wrong and are right.
    pub gained: Vec<Change>,
    /// Queries that were right and are wrong.
    pub lost: Vec<Change>,
    /// How likely so uneven a split of gains and losses is by chance alone (paired sign test, two-sided).
    pub p_value: f64,
}

/// One metric of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The metric.
    pub metric: String,
    /// Its value before.
    pub before: Option<f64>,
    /// Its value after.
    pub after: Option<f64>,
    /// After minus before.
    pub difference: Option<f64>,
}

/// A query that is answered otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Where it is written.
    pub place: Place,
    /// Its text.
    pub query: String,
    /// How the wrong one of the two answers is wrong.
    pub fault: Fault,
    /// What would be right.
    pub gold: Vec<String>,
    /// What must not be picked.
    pub not: Vec<String>,
    /// What the wrong answer picked.
    pub picked: Vec<String>,
}

impl Comparison {
    /// Compares the answers of two ways to the same queries.
    pub fn of(queries: &[Query], before: &[Answer], after: &[Answer]) -> Comparison {
        let (first, second) = (Report::of(queries, before), Report::of(queries, after));
        let mut gained = Vec::new();
        let mut lost = Vec::new();
        for ((query, before), after) in queries.iter().zip(before).zip(after) {
            match (fault(query, before), fault(query, after)) {
                (Some(_), None) => gained.extend(Failed::of(query, before).map(Change::from)),
                (None, Some(_)) => lost.extend(Failed::of(query, after).map(Change::from)),
                _ => {}
            }
        }
        let metrics = Metric::ALL.map(|metric| {
            let (before, after) = (first.figures.get(metric), second.figures.get(metric));
            let difference = before.zip(after).map(|(before, after)| after - before);
            Difference { metric: metric.to_string(), before, after, difference }
        });
        let p_value = sign_test(gained.len(), lost.len());
        Comparison { metrics: metrics.to_vec(), gained, lost, p_value }
    }
}

impl From<Failed> for Change {
    fn from(failed: Failed) -> Self {
        Change {
            place: failed.place,
            query: failed.query,
            fault: failed.fault,
            gold: failed.gold,
            not: failed.not,
            picked: failed.picked.into_iter().map(|pick| pick.name).collect(),
        }
    }
}

/// The chance that a fair coin splits as unevenly as this, to either side.
pub fn sign_test(gained: usize, lost: usize) -> f64 {
    let tosses = (gained + lost) as f64;
    let term = |heads: usize| {
        let heads = heads as f64;
        let ways = libm::lgamma(tosses + 1.0)
            - libm::lgamma(heads + 1.0)
            - libm::lgamma(tosses - heads + 1.0);
        libm::exp(ways - tosses * std::f64::consts::LN_2)
    };
    let tail: f64 = (0..=gained.min(lost)).map(term).sum();
    (2.0 * tail).min(1.0)
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
