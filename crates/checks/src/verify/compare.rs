//! What is different between two verifications.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::signature::Signature;
use super::{CheckOutcome, Verification};

/// The errors of two verifications, by their signatures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Those that were not there before.
    pub new: Vec<Signature>,
    /// Those that are still there.
    pub remaining: Vec<Signature>,
    /// Those that are not there any more. One of a check that was not run to its end this time, or whose output
    /// was cut, is not among them.
    pub gone: Vec<Signature>,
}

/// Compares a verification with an earlier one.
pub fn compare(before: &Verification, after: &Verification) -> Comparison {
    let then: BTreeSet<Signature> = before.errors().map(|(_, _, signature)| signature).collect();
    let now: BTreeSet<Signature> = after.errors().map(|(_, _, signature)| signature).collect();
    // A check that was skipped says nothing about its errors, and one whose output was cut may hide them.
    let ran = |name: &str| {
        let check = after.checks.iter().find(|check| check.name == name);
        check.is_some_and(|check| match check.result {
            CheckOutcome::Passed => true,
            CheckOutcome::Failed => !check.analysis.truncated,
            CheckOutcome::TimedOut | CheckOutcome::Skipped | CheckOutcome::CouldNotRun => false,
        })
    };
    let looked_at = before.errors().filter(|(check, _, _)| ran(&check.name));
    let looked_at: BTreeSet<Signature> = looked_at.map(|(_, _, signature)| signature).collect();
    Comparison {
        new: now.difference(&then).copied().collect(),
        remaining: now.intersection(&then).copied().collect(),
        gone: looked_at.difference(&now).copied().collect(),
    }
}
