//! The types of `rep verify memory … --json` and `rep runs dead-letters … --json`.

pub use repertoire_checks::memory::{FixState, MemoryFile, MemoryImportResult};
use repertoire_journal::{DamagedRow, DeadLetter, KnownFailure, KnownFix};
use schemars::JsonSchema;
use serde::Serialize;

/// The output of `rep verify memory list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MemoryJson {
    /// The key of the repository.
    pub scope: String,
    /// Failures, the most frequent first.
    pub failures: Vec<FailureRow>,
    /// The position of the next page, for `--after`; null on the last page.
    pub next: Option<u64>,
    /// Other repositories with recorded failures.
    pub others: Vec<String>,
}

/// A failure in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FailureRow {
    /// The failure.
    pub failure: KnownFailure,
    /// Number of known fixes.
    pub fixes: usize,
    /// The state of the best fix; null if there is none.
    pub best: Option<FixState>,
    /// The confidence in the best fix, from 0 to 1; null if there is none.
    pub confidence: Option<f64>,
}

/// The output of `rep verify memory show --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FailureJson {
    /// The failure.
    pub failure: KnownFailure,
    /// The fixes that are known for it, the most trusted first.
    pub fixes: Vec<FixJson>,
}

/// A fix with its current state.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FixJson {
    /// The fix and its record.
    pub fix: KnownFix,
    /// The state, which decides if the fix is applied automatically.
    pub state: FixState,
    /// The reason for the state.
    pub why: String,
}

/// The output of `rep verify memory forget --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MemoryForgetJson {
    /// The key of the repository.
    pub scope: String,
    /// Number of failures that were forgotten.
    pub failures: u64,
}

/// The output of `rep runs dead-letters list --json` and `rep runs dead-letters export`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeadLettersJson {
    /// The dead letters, the most urgent first.
    pub letters: Vec<DeadLetter>,
    /// Dead letters that cannot be read.
    pub damaged: Vec<DamagedRow>,
    /// The position of the next page, for `--after`; null on the last page.
    pub next: Option<u64>,
}

/// The output of `rep runs dead-letters retry --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LetterRetryJson {
    /// The dead letter in its new state.
    pub letter: DeadLetter,
    /// The file that the event was written to; null for runs and tasks.
    pub file: Option<String>,
    /// The command to run next; null if none is needed.
    pub command: Option<String>,
}
