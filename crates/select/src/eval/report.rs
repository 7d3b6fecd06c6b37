//! Aggregates the metrics of a set of queries.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, AnswerFault, FailedQuery};
use super::calibration::{ScoreCalibration, collect_samples, compute_mean};
use super::labels::LabelledQuery;
use super::metrics;
use super::skills::{SkillConfusion, SkillFigures, count_confusions, figures_by_skill};

/// A metric between 0 and 1, where higher is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalMetric {
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

impl EvalMetric {
    /// All metrics, in display order.
    pub const ALL: [EvalMetric; 9] = [
        EvalMetric::Accuracy,
        EvalMetric::Trigger,
        EvalMetric::Abstention,
        EvalMetric::Precision,
        EvalMetric::Recall1,
        EvalMetric::Recall3,
        EvalMetric::Recall5,
        EvalMetric::Ndcg5,
        EvalMetric::Mrr,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            EvalMetric::Accuracy => "accuracy",
            EvalMetric::Recall1 => "recall@1",
            EvalMetric::Recall3 => "recall@3",
            EvalMetric::Recall5 => "recall@5",
            EvalMetric::Ndcg5 => "ndcg@5",
            EvalMetric::Mrr => "mrr",
            EvalMetric::Precision => "precision",
            EvalMetric::Trigger => "trigger",
            EvalMetric::Abstention => "abstention",
        }
    }

    /// A description of the metric for people.
    pub fn meaning(self) -> &'static str {
        match self {
            EvalMetric::Accuracy => "queries answered right",
            EvalMetric::Recall1 => "right skills that rank first",
            EvalMetric::Recall3 => "right skills among the first three",
            EvalMetric::Recall5 => "right skills among the first five",
            EvalMetric::Ndcg5 => "order of the first five",
            EvalMetric::Mrr => "one over the place of the first right skill",
            EvalMetric::Precision => "picks that were right",
            EvalMetric::Trigger => "queries whose skill was picked",
            EvalMetric::Abstention => "queries that no wrong skill was picked for",
        }
    }

    /// Looks up a metric by name.
    pub fn from_name(name: &str) -> Option<EvalMetric> {
        EvalMetric::ALL.into_iter().find(|metric| metric.as_str() == name)
    }
}

impl fmt::Display for EvalMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The value of every metric; null where no query measures it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricValues {
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

impl MetricValues {
    pub fn get(&self, metric: EvalMetric) -> Option<f64> {
        match metric {
            EvalMetric::Accuracy => self.accuracy,
            EvalMetric::Trigger => self.trigger,
            EvalMetric::Abstention => self.abstention,
            EvalMetric::Precision => self.precision,
            EvalMetric::Recall1 => self.recall_1,
            EvalMetric::Recall3 => self.recall_3,
            EvalMetric::Recall5 => self.recall_5,
            EvalMetric::Ndcg5 => self.ndcg_5,
            EvalMetric::Mrr => self.mrr,
        }
    }
}

/// The number of queries, in total and by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueryCounts {
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
pub struct LatencyPercentiles {
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
pub struct EvalReport {
    /// The number of queries by kind.
    pub counts: QueryCounts,
    /// The metrics.
    pub figures: MetricValues,
    /// The figures of every skill that is right or was picked somewhere, by name.
    pub skills: Vec<SkillFigures>,
    /// Pairs of a right skill and the skill picked instead, most frequent first.
    pub confusions: Vec<SkillConfusion>,
    /// How well scores predict which skills are right.
    pub calibration: ScoreCalibration,
    /// Response times, if they were measured.
    pub latency: Option<LatencyPercentiles>,
    /// The queries with a wrong answer, in file order.
    pub failures: Vec<FailedQuery>,
}

impl EvalReport {
    /// Builds the report; `answers` are in the order of `queries`.
    pub fn from_answers(queries: &[LabelledQuery], answers: &[Answer]) -> EvalReport {
        let pairs = || queries.iter().zip(answers);
        let failures: Vec<FailedQuery> =
            pairs().filter_map(|(query, answer)| FailedQuery::from_answer(query, answer)).collect();
        let scores: Vec<(f64, bool)> =
            pairs().flat_map(|(query, answer)| collect_samples(query, answer)).collect();
        let mut sums = MetricSums::default();
        pairs().for_each(|(query, answer)| sums.add_answer(query, answer));
        let silent = failures.iter().filter(|failed| failed.fault == AnswerFault::Silent).count();
        let right = sums.queries - failures.len();
        EvalReport {
            counts: QueryCounts {
                queries: sums.queries,
                right,
                positive: sums.positive,
                negative: sums.negative,
                empty: sums.empty,
                silent,
                picks: sums.picks,
            },
            figures: sums.to_metric_values(right),
            skills: figures_by_skill(pairs()),
            confusions: count_confusions(pairs()),
            calibration: ScoreCalibration::from_samples(&scores),
            latency: compute_latency(answers),
            failures,
        }
    }
}

#[derive(Default)]
struct MetricSums {
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

impl MetricSums {
    fn add_answer(&mut self, query: &LabelledQuery, answer: &Answer) {
        self.queries += 1;
        if !query.not.is_empty() {
            self.negative += 1;
            self.kept_out += usize::from(!query.not.iter().any(|name| answer.has(name)));
        }
        if query.should_abstain() {
            self.empty += 1;
            self.kept_out += usize::from(answer.selection.picks.is_empty());
        }
        for right in answer.chosen_picks().filter_map(|pick| query.is_right(&pick.name)) {
            self.picks += 1;
            self.picks_right += usize::from(right);
        }
        if !query.gold.is_empty() {
            self.add_positive(query, answer);
        }
    }

    fn add_positive(&mut self, query: &LabelledQuery, answer: &Answer) {
        let gold = &query.gold;
        self.positive += 1;
        self.triggered += usize::from(gold.keys().any(|name| answer.has(name)));
        let ranked: Vec<&str> = answer.ranked.iter().map(|(name, _)| name.as_str()).collect();
        for (sum, k) in self.recalls.iter_mut().zip([1, 3, 5]) {
            *sum += metrics::recall_at(&ranked, gold, k);
        }
        self.ndcg += metrics::ndcg(&ranked, gold, 5);
        self.reciprocal += metrics::reciprocal_rank(&ranked, gold);
    }

    fn to_metric_values(&self, right: usize) -> MetricValues {
        let of_positive = |sum: f64| compute_mean(sum, self.positive);
        let [recall_1, recall_3, recall_5] = self.recalls.map(of_positive);
        MetricValues {
            accuracy: share_of(right, self.queries),
            trigger: share_of(self.triggered, self.positive),
            abstention: share_of(self.kept_out, self.negative + self.empty),
            precision: share_of(self.picks_right, self.picks),
            recall_1,
            recall_3,
            recall_5,
            ndcg_5: of_positive(self.ndcg),
            mrr: of_positive(self.reciprocal),
        }
    }
}

fn share_of(count: usize, of: usize) -> Option<f64> {
    compute_mean(count as f64, of)
}

fn compute_latency(answers: &[Answer]) -> Option<LatencyPercentiles> {
    let mut times: Vec<u64> = answers.iter().filter_map(|answer| answer.elapsed_us).collect();
    times.sort_unstable();
    let last = times.len().checked_sub(1)?;
    // Nearest-rank percentile.
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100).saturating_sub(1)];
    Some(LatencyPercentiles { p50_us: at(50), p95_us: at(95), p99_us: at(99), max_us: times[last] })
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
