//! The figures of a whole set of queries.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, Failed, Fault};
use super::calibration::{Calibration, mean, samples};
use super::labels::Query;
use super::metrics;
use super::skills::{Confusion, SkillFigures, confusions, skills};

/// A figure between 0 and 1 of which more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The share of queries that were answered right.
    Accuracy,
    /// The share of right skills that rank first.
    Recall1,
    /// The share of right skills among the first three.
    Recall3,
    /// The share of right skills among the first five.
    Recall5,
    /// How well the first five are ordered.
    Ndcg5,
    /// One over the place of the first right skill, on average.
    Mrr,
    /// The share of picks that were right.
    Precision,
    /// The share of queries with a right skill that picked one.
    Trigger,
    /// The share of queries that nothing, or not a certain skill, should be picked for, where that held.
    Abstention,
}

impl Metric {
    /// Every metric, in the order in which they are shown.
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

    /// Its name.
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

    /// What it says, for people.
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

    /// The metric of a name.
    pub fn from_name(name: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.as_str() == name)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Every metric; null where no query measures it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// The share of queries that were answered right.
    pub accuracy: Option<f64>,
    /// The share of queries with a right skill that picked one.
    pub trigger: Option<f64>,
    /// The share of queries that nothing, or not a certain skill, should be picked for, where that held.
    pub abstention: Option<f64>,
    /// The share of picks that were right.
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
    /// The value of a metric.
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

/// How many queries there are, and of which kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// All queries.
    pub queries: usize,
    /// Those that were answered right.
    pub right: usize,
    /// Queries with a right skill.
    pub positive: usize,
    /// Queries that say which skill must not be picked.
    pub negative: usize,
    /// Queries that nothing should be picked for.
    pub empty: usize,
    /// Queries with a right skill for which nothing was picked.
    pub silent: usize,
    /// Picks of which it is known whether they were right.
    pub picks: usize,
}

/// How long answers took, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Half of the queries took no longer.
    pub p50_us: u64,
    /// 95 of 100 took no longer.
    pub p95_us: u64,
    /// 99 of 100 took no longer.
    pub p99_us: u64,
    /// The longest.
    pub max_us: u64,
}

/// Everything that is known about how selection did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// How many queries there are.
    pub counts: Counts,
    /// The metrics.
    pub figures: Figures,
    /// Every skill that is right or was picked somewhere, by name.
    pub skills: Vec<SkillFigures>,
    /// Which skill is picked instead of which, the most frequent first.
    pub confusions: Vec<Confusion>,
    /// Whether scores mean what they say.
    pub calibration: Calibration,
    /// How long answers took, where that was measured.
    pub latency: Option<Latency>,
    /// The queries that went wrong, in the order of the files.
    pub failures: Vec<Failed>,
}

impl Report {
    /// The report on queries and their answers, in the order of the queries.
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
        let share = |count: usize, of: usize| mean(count as f64, of);
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

fn latency(answers: &[Answer]) -> Option<Latency> {
    let mut times: Vec<u64> = answers.iter().filter_map(|answer| answer.elapsed_us).collect();
    times.sort_unstable();
    let last = times.len().checked_sub(1)?;
    // The smallest time that so many of a hundred do not exceed.
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100).saturating_sub(1)];
    Some(Latency { p50_us: at(50), p95_us: at(95), p99_us: at(99), max_us: times[last] })
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
