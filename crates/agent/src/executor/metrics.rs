//! Metrics of skill executions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SkillResult;

/// Metrics of a skill's executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillMetrics {
    /// The number of executions, without cache hits.
    pub runs: u64,
    /// The number of failed executions.
    pub failures: u64,
    /// The number of retries.
    pub retries: u64,
    /// The number of results served from the cache.
    pub cache_hits: u64,
    /// The total duration.
    pub duration_ms_total: u64,
    /// The longest duration.
    pub duration_ms_max: u64,
}

impl SkillMetrics {
    pub(super) fn add(&mut self, result: &SkillResult) {
        self.runs += 1;
        self.failures += u64::from(!result.success);
        self.retries += u64::from(result.metadata.retries);
        self.duration_ms_total += result.metadata.duration_ms;
        self.duration_ms_max = self.duration_ms_max.max(result.metadata.duration_ms);
    }
}
