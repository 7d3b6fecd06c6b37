//! The shapes of `rep memory … --json` and `rep dlq … --json`.

pub use repertoire_checks::memory::{Exchanged, FixState, Imported};
use repertoire_journal::{DeadLetter, Failure, KnownFix};
use schemars::JsonSchema;
use serde::Serialize;

/// `rep memory list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MemoryJson {
    /// The repository.
    pub scope: String,
    /// Failures, the most frequent first.
    pub failures: Vec<FailureRow>,
    /// Where the list goes on, for `--after`; null if it does not.
    pub next: Option<u64>,
    /// Other repositories that something is known of.
    pub others: Vec<String>,
}

/// A failure in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FailureRow {
    /// The failure.
    pub failure: Failure,
    /// How many fixes are known.
    pub fixes: usize,
    /// How far the best of them is trusted; null if there is none.
    pub best: Option<FixState>,
    /// The confidence in it.
    pub confidence: Option<f64>,
}

/// `rep memory show --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FailureJson {
    /// The failure.
    pub failure: Failure,
    /// What was tried against it, the most trusted first.
    pub fixes: Vec<FixJson>,
}

/// A fix, and how far it is trusted now.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FixJson {
    /// The fix and its record.
    pub fix: KnownFix,
    /// How far it is trusted.
    pub state: FixState,
    /// Why.
    pub why: String,
}

/// `rep memory forget --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ForgottenJson {
    /// The repository.
    pub scope: String,
    /// How many failures were forgotten.
    pub failures: u64,
}

/// `rep dlq list --json` and `rep dlq export`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LettersJson {
    /// The dead letters, the most urgent first.
    pub letters: Vec<DeadLetter>,
    /// Where the list goes on, for `--after`; null if it does not.
    pub next: Option<u64>,
}

/// `rep dlq retry --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RetriedJson {
    /// The dead letter as it is now.
    pub letter: DeadLetter,
    /// The file that its data was written to; null for a run.
    pub file: Option<String>,
    /// What to type next; null if nothing has to be.
    pub command: Option<String>,
}
