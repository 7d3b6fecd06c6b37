//! How skills fare.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SkillResult;

/// How a skill has fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillMetrics {
    /// Executions, those from the cache not counted.
    pub runs: u64,
    /// How many of them failed.
    pub failures: u64,
    /// How often one was tried again.
    pub retries: u64,
    /// How often an earlier result was given.
    pub cache_hits: u64,
    /// How long all of them took.
    pub duration_ms_total: u64,
    /// How long the longest took.
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
