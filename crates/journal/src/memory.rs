//! The memory of failures and fixes: folds single observations into known failures, in one pure
//! function.
//!
//! This module only counts. The driver decides whether a fix may be applied without asking.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::limits::{EVIDENCE_MAX, FIXES_MAX};
use crate::run::RunId;

/// The confidence in a fix that was never verified.
pub const CONFIDENCE_START: f64 = 0.5;
/// The fraction of the distance to 0 or 1 by which one outcome moves the confidence.
pub const CONFIDENCE_RATE: f64 = 0.3;

/// A possible fix for a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureFix {
    /// The action to take.
    pub remedy: FixRemedy,
    /// The conditions that must hold before, for instance `exists PATH`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preconditions: Vec<String>,
    /// The origin of the fix.
    pub origin: FixOrigin,
}

/// The action a fix takes against a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "content", rename_all = "snake_case")]
pub enum FixRemedy {
    /// A change in `git diff` format.
    Patch(String),
    /// A program with its arguments, run without a shell.
    Command(Vec<String>),
    /// A hint for the agent or person that fixes the failure.
    Advice(String),
}

/// The origin of a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FixOrigin {
    /// A change by an agent that made the checks pass.
    Learnt,
    /// A fix entered by a person.
    Taught,
    /// A fix built into the engine.
    Builtin,
}

/// The result of the checks after a fix was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FixOutcome {
    /// The failure is gone, and no new failure appeared.
    Worked,
    /// The failure persists, a new failure appeared, or the fix could not be completed.
    Failed,
    /// The checks could not be run, or the fix does not apply to these files. This changes no
    /// count.
    Unknown,
}

/// A failure that was observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnownFailure {
    /// The repository the failure belongs to.
    pub scope: String,
    /// The signature of the failure.
    pub signature: String,
    /// The category of the failure.
    pub category: String,
    /// The tool's code for this error.
    pub code: Option<String>,
    /// The tool the fixes were verified with.
    pub tool: String,
    /// An example message, without secrets.
    pub example: String,
    /// The number of times the failure was observed.
    pub seen: u64,
    /// The time of the first observation, in milliseconds since 1970.
    pub first_ms: u64,
    /// The time of the last observation, in milliseconds since 1970.
    pub last_ms: u64,
}

/// A fix and its track record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnownFix {
    /// The digest of the remedy.
    pub id: String,
    /// The fix.
    pub fix: FailureFix,
    /// The number of times the fix was verified: the sum of `worked` and `failed`.
    pub tried: u64,
    /// The number of times the fix worked.
    pub worked: u64,
    /// The number of times the fix did not work.
    pub failed: u64,
    /// The confidence in the fix, from 0 to 1.
    pub confidence: f64,
    /// The time the fix became known, in milliseconds since 1970.
    pub added_ms: u64,
    /// The time of the last verification, in milliseconds since 1970.
    pub last_ms: Option<u64>,
    /// The last time the fix worked, in milliseconds since 1970.
    pub last_worked_ms: Option<u64>,
    /// The evidence from the last attempt.
    pub last_reason: String,
    /// The runs that verified the fix, the newest last.
    pub evidence: Vec<RunId>,
}

/// A single observation. The memory is a fold over these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MemoryObservation {
    Seen {
        category: String,
        code: Option<String>,
        tool: String,
        example: String,
    },
    Tried {
        fix: FailureFix,
        outcome: FixOutcome,
        reason: String,
        run: Option<RunId>,
    },
    /// A person taught the failure, or it was imported from another memory.
    Taught {
        failure: KnownFailure,
        fixes: Vec<KnownFix>,
    },
}

impl FixRemedy {
    /// The `kind` tag used in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            FixRemedy::Patch(_) => "patch",
            FixRemedy::Command(_) => "command",
            FixRemedy::Advice(_) => "advice",
        }
    }

    /// Returns the content as one text.
    pub fn to_text(&self) -> String {
        match self {
            FixRemedy::Patch(text) | FixRemedy::Advice(text) => text.clone(),
            FixRemedy::Command(words) => words.join(" "),
        }
    }
}

impl FailureFix {
    /// Returns the digest of the remedy: equal remedies are the same fix, whatever their origin.
    pub fn id(&self) -> String {
        let json = serde_json::json!(self.remedy).to_string();
        let digest = Sha256::digest(json.as_bytes());
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl KnownFix {
    /// Creates the record of a fix that was never verified.
    pub fn new(fix: FailureFix, at_ms: u64) -> Self {
        KnownFix {
            id: fix.id(),
            fix,
            tried: 0,
            worked: 0,
            failed: 0,
            confidence: CONFIDENCE_START,
            added_ms: at_ms,
            last_ms: None,
            last_worked_ms: None,
            last_reason: String::new(),
            evidence: Vec::new(),
        }
    }

    /// Updates the counts and the confidence with one more outcome.
    fn record_outcome(
        &mut self,
        outcome: FixOutcome,
        reason: &str,
        run: Option<&RunId>,
        at_ms: u64,
    ) {
        reason.clone_into(&mut self.last_reason);
        let target = match outcome {
            FixOutcome::Worked => 1.0,
            FixOutcome::Failed => 0.0,
            FixOutcome::Unknown => return,
        };
        self.tried += 1;
        self.last_ms = Some(at_ms);
        match outcome {
            FixOutcome::Worked => {
                self.worked += 1;
                self.last_worked_ms = Some(at_ms);
            }
            _ => self.failed += 1,
        }
        self.confidence += CONFIDENCE_RATE * (target - self.confidence);
        if let Some(run) = run.filter(|run| !self.evidence.contains(run)) {
            self.evidence.push(run.clone());
            let surplus = self.evidence.len().saturating_sub(EVIDENCE_MAX);
            self.evidence.drain(..surplus);
        }
    }
}

/// The known fixes of one failure signature.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailureKnowledge {
    /// `None` before the first observation.
    pub failure: Option<KnownFailure>,
    pub fixes: BTreeMap<String, KnownFix>,
}

impl FailureKnowledge {
    /// Folds one more observation.
    pub fn apply(
        &mut self,
        scope: &str,
        signature: &str,
        observation: &MemoryObservation,
        at_ms: u64,
    ) {
        match observation {
            MemoryObservation::Seen { category, code, tool, example } => {
                let has_fixes = !self.fixes.is_empty();
                let failure = self.failure_or_insert(scope, signature, at_ms);
                failure.category.clone_from(category);
                failure.code.clone_from(code);
                failure.example.clone_from(example);
                // A fix was verified with one tool, and may not work with another.
                if !has_fixes || failure.tool.is_empty() {
                    failure.tool.clone_from(tool);
                }
                failure.seen += 1;
                failure.last_ms = at_ms.max(failure.last_ms);
            }
            MemoryObservation::Tried { fix, outcome, reason, run } => {
                self.failure_or_insert(scope, signature, at_ms);
                let known = self.fixes.entry(fix.id());
                let known = known.or_insert_with(|| KnownFix::new(fix.clone(), at_ms));
                known.record_outcome(*outcome, reason, run.as_ref(), at_ms);
            }
            MemoryObservation::Taught { failure, fixes } => {
                self.merge_failure(failure, scope, signature, at_ms);
                for fix in fixes {
                    self.merge_fix(fix);
                }
            }
        }
        self.drop_weakest_fixes();
    }

    fn failure_or_insert(&mut self, scope: &str, signature: &str, at_ms: u64) -> &mut KnownFailure {
        self.failure.get_or_insert_with(|| KnownFailure {
            scope: scope.to_owned(),
            signature: signature.to_owned(),
            category: "unknown".to_owned(),
            code: None,
            tool: String::new(),
            example: String::new(),
            seen: 0,
            first_ms: at_ms,
            last_ms: at_ms,
        })
    }

    /// Fills in what is missing; existing values win. Importing the same lesson twice changes
    /// nothing.
    fn merge_failure(&mut self, taught: &KnownFailure, scope: &str, signature: &str, at_ms: u64) {
        let is_new = self.failure.is_none();
        let failure = self.failure_or_insert(scope, signature, at_ms);
        if is_new {
            let (scope, signature) = (failure.scope.clone(), failure.signature.clone());
            *failure = KnownFailure { scope, signature, ..taught.clone() };
            return;
        }
        failure.seen = failure.seen.max(taught.seen);
        failure.first_ms = failure.first_ms.min(taught.first_ms);
        failure.last_ms = failure.last_ms.max(taught.last_ms);
        if failure.tool.is_empty() {
            failure.tool.clone_from(&taught.tool);
        }
    }

    /// Keeps the record with more evidence of two records of one fix.
    fn merge_fix(&mut self, taught: &KnownFix) {
        let id = taught.fix.id();
        match self.fixes.get_mut(&id) {
            Some(known) if known.tried >= taught.tried => {
                if taught.fix.origin == FixOrigin::Taught {
                    known.fix = taught.fix.clone();
                }
            }
            _ => {
                self.fixes.insert(id.clone(), KnownFix { id, ..taught.clone() });
            }
        }
    }

    fn drop_weakest_fixes(&mut self) {
        while self.fixes.len() > FIXES_MAX {
            let weakest = self.fixes.values().min_by(|a, b| {
                let age = |fix: &KnownFix| fix.last_ms.unwrap_or(fix.added_ms);
                a.confidence.total_cmp(&b.confidence).then(age(a).cmp(&age(b)))
            });
            let Some(id) = weakest.map(|fix| fix.id.clone()) else { return };
            self.fixes.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests;
