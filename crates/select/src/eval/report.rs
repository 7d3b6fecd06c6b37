//! Aggregates the metrics of a set of queries.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, Failed, Fault};
use super::calibration::{Calibration, mean, samples};
use super::labels::Query;
use super::metrics;
use super::skills::{Confusion, SkillFigures, confusions, skills};

/// A metric between 0 and 1, where higher is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The share of queries with a right answer.
    Accuracy,
    /// The share of right skills that rank first.
    Recall1,
    /// The share of right skills among the first three.
    Recall3,
    /// The share of right skills among the first five.
    Recall5,
    /// Normalised discounted cumulative gain of the first five.
    Ndcg5,
    /// Mean reciprocal rank of the first right skill.
    Mrr,
    /// The share of picks that are right.
    Precision,
    /// The share of queries with a right skill for which one was picked.
    Trigger,
    /// The share of queries that exclude some or all skills for which no excluded skill was picked.
    Abstention,
}

impl Metric {
    /// All metrics, in display order.
    pub const ALL: [Metric; 9] = [
        Metric::Accuracy,
        Metric::Trigger,
        Metric::Abstention,
        Metric::Precision,
        Metric::Recall1,
        Metric::Recall3,
        Metric::Recall5,
        Metric::Ndcg5,
        Metric::Mrr,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Metric::Accuracy => "accuracy",
            Metric::Recall1 => "recall@1",
            Metric::Recall3 => "recall@3",
            Metric::Recall5 => "recall@5",
            Metric::Ndcg5 => "ndcg@5",
            Metric::Mrr => "mrr",
            Metric::Precision => "precision",
            Metric::Trigger => "trigger",
            Metric::Abstention => "abstention",
        }
    }

    /// A description of the metric for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Metric::Accuracy => "queries answered right",
            Metric::Recall1 => "right skills that rank first",
            Metric::Recall3 => "right skills among the first three",
            Metric::Recall5 => "right skills among the first five",
            Metric::Ndcg5 => "order of the first five",
            Metric::Mrr => "one over the place of the first right skill",
            Metric::Precision => "picks that were right",
            Metric::Trigger => "queries whose skill was picked",
            Metric::Abstention => "queries that no wrong skill was picked for",
        }
    }

    /// Looks up a metric by name.
    pub fn from_name(name: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.as_str() == name)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The value of every metric; null where no query measures it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// The share of queries with a right answer.
    pub accuracy: Option<f64>,
    /// The share of queries with a right skill for which one was picked.
    pub trigger: Option<f64>,
    /// The share of queries that exclude some or all skills for which no excluded skill was picked.
    pub abstention: Option<f64>,
    /// The share of picks that are right.
    pub precision: Option<f64>,
    /// The share of right skills that rank first.
    #[serde(rename = "recall@1")]
    pub recall_1: Option<f64>,
    /// The share of right skills among the first three.
    #[serde(rename = "recall@3")]
    pub recall_3: Option<f64>,
    /// The share of right skills among the first five.
    #[serde(rename = "recall@5")]
    pub recall_5: Option<f64>,
    /// Normalised discounted cumulative gain of the first five.
    #[serde(rename = "ndcg@5")]
    pub ndcg_5: Option<f64>,
    /// Mean reciprocal rank.
    pub mrr: Option<f64>,
}

impl Figures {
    pub fn get(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Accuracy => self.accuracy,
            Metric::Trigger => self.trigger,
            Metric::Abstention => self.abstention,
            Metric::Precision => self.precision,
            Metric::Recall1 => self.recall_1,
            Metric::Recall3 => self.recall_3,
            Metric::Recall5 => self.recall_5,
            Metric::Ndcg5 => self.ndcg_5,
            Metric::Mrr => self.mrr,
        }
    }
}

/// The number of queries, in total and by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// All queries.
    pub queries: usize,
    /// Queries with a right answer.
    pub right: usize,
    /// Queries with a right skill.
    pub positive: usize,
    /// Queries that exclude a skill.
    pub negative: usize,
    /// Queries for which no skill should be picked.
    pub empty: usize,
    /// Queries with a right skill for which no skill was picked.
    pub silent: usize,
    /// Picks that are known to be right or wrong.
    pub picks: usize,
}

/// Percentiles of the response time, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// The median.
    pub p50_us: u64,
    /// The 95th percentile.
    pub p95_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The maximum.
    pub max_us: u64,
}

/// The results of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The number of queries by kind.
    pub counts: Counts,
    /// The metrics.
    pub figures: Figures,
    /// The figures of every skill that is right or was picked somewhere, by name.
    pub skills: Vec<SkillFigures>,
    /// Pairs of a right skill and the skill picked instead, most frequent first.
    pub confusions: Vec<Confusion>,
    /// How well scores predict which skills are right.
    pub calibration: Calibration,
    /// Response times, if they were measured.
    pub latency: Option<Latency>,
    /// The queries with a wrong answer, in file order.
    pub failures: Vec<Failed>,
}

impl Report {
    /// Builds the report; `answers` are in the order of `queries`.
    pub fn of(queries: &[Query], answers: &[Answer]) -> Report {
        let pairs = || queries.iter().zip(answers);
        let failures: Vec<Failed> =
            pairs().filter_map(|(query, answer)| Failed::of(query, answer)).collect();
        let scores: Vec<(f64, bool)> =
            pairs().flat_map(|(query, answer)| samples(query, answer)).collect();
        let mut sums = Sums::default();
        pairs().for_each(|(query, answer)| sums.add(query, answer));
        let silent = failures.iter().filter(|failed| failed.fault == Fault::Silent).count();
        let right = sums.queries - failures.len();
        Report {
            counts: Counts {
                queries: sums.queries,
                right,
                positive: sums.positive,
                negative: sums.negative,
                empty: sums.empty,
                silent,
                picks: sums.picks,
            },
            figures: sums.figures(right),
            skills: skills(pairs()),
            confusions: confusions(pairs()),
            calibration: Calibration::of(&scores),
            latency: latency(answers),
            failures,
        }
    }
}

#[derive(Default)]
struct Sums {
    queries: usize,
    positive: usize,
    negative: usize,
    empty: usize,
    picks: usize,
    picks_right: usize,
    triggered: usize,
    kept_out: usize,
    recalls: [f64; 3],
    ndcg: f64,
    reciprocal: f64,
}

impl Sums {
    fn add(&mut self, query: &Query, answer: &Answer) {
        self.queries += 1;
        if !query.not.is_empty() {
            self.negative += 1;
            self.kept_out += usize::from(!query.not.iter().any(|name| answer.has(name)));
        }
        if query.should_abstain() {
            self.empty += 1;
            self.kept_out += usize::from(answer.selection.picks.is_empty());
        }
        for right in answer.chosen().filter_map(|pick| query.is_right(&pick.name)) {
            self.picks += 1;
            self.picks_right += usize::from(right);
        }
        if !query.gold.is_empty() {
            self.add_positive(query, answer);
        }
    }

    fn add_positive(&mut self, query: &Query, answer: &Answer) {
        let gold = &query.gold;
        self.positive += 1;
        self.triggered += usize::from(gold.keys().any(|name| answer.has(name)));
        let ranked: Vec<&str> = answer.ranked.iter().map(|(name, _)| name.as_str()).collect();
        for (sum, k) in self.recalls.iter_mut().zip([1, 3, 5]) {
            *sum += metrics::recall(&ranked, gold, k);
        }
        self.ndcg += metrics::ndcg(&ranked, gold, 5);
        self.reciprocal += metrics::reciprocal_rank(&ranked, gold);
    }

    fn figures(&self, right: usize) -> Figures {
        let of_positive = |sum: f64| mean(sum, self.positive);
        let [recall_1, recall_3, recall_5] = self.recalls.map(of_positive);
        Figures {
            accuracy: share(right, self.queries),
            trigger: share(self.triggered, self.positive),
            abstention: share(self.kept_out, self.negative + self.empty),
            precision: share(self.picks_right, self.picks),
            recall_1,
            recall_3,
            recall_5,
            ndcg_5: of_positive(self.ndcg),
            mrr: of_positive(self.reciprocal),
        }
    }
}

fn share(count: usize, of: usize) -> Option<f64> {
    mean(count as f64, of)
}

fn latency(answers: &[Answer]) -> Option<Latency> {
    let mut times: Vec<u64> = answers.iter().filter_map(|answer| answer.elapsed_us).collect();
    times.sort_unstable();
    let last = times.len().checked_sub(1)?;
    // Nearest-rank percentile.
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100).saturating_sub(1)];
    Some(Latency { p50_us: at(50), p95_us: at(95), p99_us: at(99), max_us: times[last] })
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
