//! Comparison of two verifications.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::signature::FailureSignature;
use super::{CheckOutcome, CheckReport, VerificationReport};

/// The difference between the errors of two verifications, by signature.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerificationComparison {
    /// Errors that are new.
    pub new: Vec<FailureSignature>,
    /// Errors that are still there.
    pub remaining: Vec<FailureSignature>,
    /// Errors that are gone. Does not include errors of a check that did not run to its end this
    /// time, or whose output was cut.
    pub gone: Vec<FailureSignature>,
}

/// Compares a verification with an earlier one.
pub fn compare_verifications(
    before: &VerificationReport,
    after: &VerificationReport,
) -> VerificationComparison {
    let then: BTreeSet<FailureSignature> =
        before.errors().map(|(_, _, signature)| signature).collect();
    let now: BTreeSet<FailureSignature> =
        after.errors().map(|(_, _, signature)| signature).collect();
    let looked_at = before.errors().filter(|(check, _, _)| {
        let now = after.checks.iter().find(|now| now.name == check.name);
        now.is_some_and(shows_all_errors)
    });
    let looked_at: BTreeSet<FailureSignature> =
        looked_at.map(|(_, _, signature)| signature).collect();
    VerificationComparison {
        new: now.difference(&then).copied().collect(),
        remaining: now.intersection(&then).copied().collect(),
        gone: looked_at.difference(&now).copied().collect(),
    }
}

/// A skipped check says nothing about its errors, and a cut output may hide them.
fn shows_all_errors(check: &CheckReport) -> bool {
    match check.result {
        CheckOutcome::Passed => true,
        CheckOutcome::Failed => !check.analysis.truncated,
        CheckOutcome::TimedOut | CheckOutcome::Skipped | CheckOutcome::CouldNotRun => false,
    }
}
