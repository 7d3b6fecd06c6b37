//! What went wrong before and what helped: from single observations to what is known, in one pure function.
//!
//! This module counts. Whether a fix may be applied without asking is the driver's decision, not a number's.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::limits::{EVIDENCE_MAX, FIXES_MAX};
use crate::run::RunId;

/// The confidence in a fix that was never verified.
pub const CONFIDENCE_START: f64 = 0.5;
/// How far one outcome moves it.
pub const CONFIDENCE_RATE: f64 = 0.3;

/// What may help against a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fix {
    /// What is to be done.
    pub remedy: Remedy,
    /// What must hold before: `exists PATH`, for instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preconditions: Vec<String>,
    /// Where it comes from.
    pub origin: FixOrigin,
}

/// What is to be done against a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "content", rename_all = "snake_case")]
pub enum Remedy {
    /// A change, as `git diff` writes it.
    Patch(String),
    /// A program with its arguments; no shell reads them.
    Command(Vec<String>),
    /// Words for whoever mends it.
    Advice(String),
}

/// Where a fix comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FixOrigin {
    /// An agent's change made the checks green.
    Learnt,
    /// A person said so.
    Taught,
    /// The engine has it.
    Builtin,
}

/// What the checks said after a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FixOutcome {
    /// The failure is gone, and nothing new came.
    Worked,
    /// It is still there, or something new came, or the fix broke off.
    Failed,
    /// The checks could not be run, or the fix is for other files. This changes no count.
    Unknown,
}

/// A failure that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The repository.
    pub scope: String,
    /// The signature.
    pub signature: String,
    /// What kind it is.
    pub category: String,
    /// The tool's name for it.
    pub code: Option<String>,
    /// The tool that its fixes are for.
    pub tool: String,
    /// One message, without secrets.
    pub example: String,
    /// How often it was seen.
    pub seen: u64,
    /// When first, in milliseconds since 1970.
    pub first_ms: u64,
    /// When last.
    pub last_ms: u64,
}

/// A fix, and how it has fared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnownFix {
    /// The digest of what is to be done.
    pub id: String,
    /// The fix.
    pub fix: Fix,
    /// How often it was verified: the sum of the next two.
    pub tried: u64,
    /// How often it worked.
    pub worked: u64,
    /// How often it did not.
    pub failed: u64,
    /// From 0 to 1.
    pub confidence: f64,
    /// When it became known, in milliseconds since 1970.
    pub added_ms: u64,
    /// When it was last verified.
    pub last_ms: Option<u64>,
    /// When it last worked.
    pub last_worked_ms: Option<u64>,
    /// What was seen when it was last tried.
    pub last_reason: String,
    /// Runs in which it was verified, the newest last.
    pub evidence: Vec<RunId>,
}

/// One observation: what the memory is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Observation {
    /// A failure was seen.
    Seen {
        /// What kind it is.
        category: String,
        /// The tool's name for it.
        code: Option<String>,
        /// The tool.
        tool: String,
        /// A message.
        example: String,
    },
    /// A fix was tried.
    Tried {
        /// The fix.
        fix: Fix,
        /// What the checks said.
        outcome: FixOutcome,
        /// What was seen.
        reason: String,
        /// The run.
        run: Option<RunId>,
    },
    /// A person taught it, or it came from another memory.
    Taught {
        /// The failure.
        failure: Failure,
        /// Its fixes.
        fixes: Vec<KnownFix>,
    },
}

impl Remedy {
    /// Its kind, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Remedy::Patch(_) => "patch",
            Remedy::Command(_) => "command",
            Remedy::Advice(_) => "advice",
        }
    }

    /// What is to be done, as one text.
    pub fn text(&self) -> String {
        match self {
            Remedy::Patch(text) | Remedy::Advice(text) => text.clone(),
            Remedy::Command(words) => words.join(" "),
        }
    }
}

impl Fix {
    /// The digest of what is to be done: the same remedy is the same fix, whoever found it.
    pub fn id(&self) -> String {
        let json = serde_json::json!(self.remedy).to_string();
        let digest = Sha256::digest(json.as_bytes());
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl KnownFix {
    /// A fix that nobody has verified.
    pub fn new(fix: Fix, at_ms: u64) -> Self {
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

    /// What one more outcome makes of it.
    fn follow(&mut self, outcome: FixOutcome, reason: &str, run: Option<&RunId>, at_ms: u64) {
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

/// What is known of one signature.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// The failure; nothing before the first observation.
    pub failure: Option<Failure>,
    /// Its fixes, by id.
    pub fixes: BTreeMap<String, KnownFix>,
}

impl Known {
    /// One observation more.
    pub fn apply(&mut self, scope: &str, signature: &str, observation: &Observation, at_ms: u64) {
        match observation {
            Observation::Seen { category, code, tool, example } => {
                let has_fixes = !self.fixes.is_empty();
                let failure = self.failure_at(scope, signature, at_ms);
                failure.category.clone_from(category);
                failure.code.clone_from(code);
                failure.example.clone_from(example);
                // A fix was verified with one tool, and says nothing of another.
                if !has_fixes || failure.tool.is_empty() {
                    failure.tool.clone_from(tool);
                }
                failure.seen += 1;
                failure.last_ms = at_ms.max(failure.last_ms);
            }
            Observation::Tried { fix, outcome, reason, run } => {
                self.failure_at(scope, signature, at_ms);
                let known = self.fixes.entry(fix.id());
                let known = known.or_insert_with(|| KnownFix::new(fix.clone(), at_ms));
                known.follow(*outcome, reason, run.as_ref(), at_ms);
            }
            Observation::Taught { failure, fixes } => {
                self.merge_failure(failure, scope, signature, at_ms);
                for fix in fixes {
                    self.merge_fix(fix);
                }
            }
        }
        self.make_room();
    }

    fn failure_at(&mut self, scope: &str, signature: &str, at_ms: u64) -> &mut Failure {
        self.failure.get_or_insert_with(|| Failure {
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

    /// What is known here stands; what is missing is taken. The same lesson twice changes nothing.
    fn merge_failure(&mut self, taught: &Failure, scope: &str, signature: &str, at_ms: u64) {
        let is_new = self.failure.is_none();
        let failure = self.failure_at(scope, signature, at_ms);
        if is_new {
            let (scope, signature) = (failure.scope.clone(), failure.signature.clone());
            *failure = Failure { scope, signature, ..taught.clone() };
            return;
        }
        failure.seen = failure.seen.max(taught.seen);
        failure.first_ms = failure.first_ms.min(taught.first_ms);
        failure.last_ms = failure.last_ms.max(taught.last_ms);
        if failure.tool.is_empty() {
            failure.tool.clone_from(&taught.tool);
        }
    }

    /// Of two records of one fix the one with more evidence stands.
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

    fn make_room(&mut self) {
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
