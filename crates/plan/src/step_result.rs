//! The result of a step, as its event stores it. One type for all kinds of steps: a field that does not apply is left
//! out.

use std::collections::BTreeSet;

use repertoire_checks::declared::{CheckRunResult, CheckStatus};
use repertoire_checks::recover::RecoverAttempt;
use repertoire_checks::verify::PassSuspicion;
use repertoire_journal::Step;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::verdict::PlanReviewVerdict;

/// The result of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanStepResult {
    /// True if an implementation has changed files since the work on its task began.
    #[serde(skip_serializing_if = "is_false")]
    pub changed: bool,
    /// True if the task was a question, and the agent has answered it.
    #[serde(skip_serializing_if = "is_false")]
    pub answered: bool,
    /// True if the agent could not work at all. Such a step is not an attempt.
    #[serde(skip_serializing_if = "is_false")]
    pub agent_failed: bool,
    /// True if an agent said that the work is done.
    #[serde(skip_serializing_if = "is_false")]
    pub claims_done: bool,
    /// True if a reviewer gave no verdict that can be read.
    #[serde(skip_serializing_if = "is_false")]
    pub malformed: bool,
    /// A fingerprint of the difference that an implementation left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The end of the agent's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The reviewer's verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<PlanReviewVerdict>,
    /// A note of the reviewer for later work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning: Option<String>,
    /// The verdict of a verification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub green: Option<bool>,
    /// The checks that a verification ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<CheckResultSummary>>,
    /// The reasons to doubt a verification that passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suspicions: Vec<PassSuspicion>,
    /// A fingerprint of a failed verification: equal ones failed in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The signatures of the failures that a verification or a recovery left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<BTreeSet<String>>,
    /// The fixes that a recovery tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<RecoverAttempt>,
    /// Notes for the next step, if this one did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// The result of a check, without its output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResultSummary {
    pub name: String,
    pub status: CheckStatus,
    pub exit_code: Option<i32>,
    pub attempts: u32,
    pub duration_ms: u64,
}

impl PlanStepResult {
    /// Reads the result of a step. A result that cannot be read counts as empty, so that it proves nothing.
    pub fn of_step(step: &Step) -> Self {
        PlanStepResult::from_value(&step.result)
    }

    pub(crate) fn from_value(value: &Value) -> Self {
        PlanStepResult::deserialize(value).unwrap_or_default()
    }

    pub(crate) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl From<&CheckRunResult> for CheckResultSummary {
    fn from(result: &CheckRunResult) -> Self {
        CheckResultSummary {
            name: result.name.clone(),
            status: result.status.clone(),
            exit_code: result.exit_code,
            attempts: result.attempts,
            duration_ms: result.duration_ms,
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_comes_back_as_it_was_stored_and_holds_only_what_applies() {
        let result = PlanStepResult {
            changed: true,
            notes: Some("n".into()),
            failures: Some(["f".to_owned()].into()),
            ..PlanStepResult::default()
        };
        let value = result.to_value();
        assert_eq!(value, json!({ "changed": true, "failures": ["f"], "notes": "n" }));
        assert_eq!(PlanStepResult::from_value(&value), result);
    }

    #[test]
    fn a_result_that_cannot_be_read_proves_nothing() {
        for value in [Value::Null, json!("ok"), json!({ "green": "yes" })] {
            assert_eq!(PlanStepResult::from_value(&value), PlanStepResult::default());
        }
    }
}
