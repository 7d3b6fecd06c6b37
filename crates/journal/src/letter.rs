//! Dead letters: work that failed for good, with everything needed to take it up again. They are
//! never retried automatically.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::limits::HISTORY_MAX;
use crate::run::RunId;

/// An event, task or run that failed and needs a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetter {
    /// The id of the dead letter.
    pub id: String,
    /// The repository the letter belongs to.
    pub scope: String,
    /// The kind of work that failed.
    pub source: LetterSource,
    /// The title shown to people.
    pub title: String,
    /// The urgency of the letter.
    pub priority: LetterPriority,
    /// The class of the failure: `permanent`, `substantive` and so on.
    pub class: String,
    /// The reason the work was given up.
    pub reason: String,
    /// The one question whose answer would let the work continue.
    pub question: String,
    /// The run that gave up the work.
    pub run: Option<RunId>,
    /// The data needed to take up the work again.
    pub data: Value,
    /// The status of the letter.
    pub status: LetterStatus,
    /// The number of times the same failure occurred.
    pub times: u64,
    /// The number of retries.
    pub attempts: u64,
    /// The history of the letter, the oldest entry first.
    pub history: Vec<LetterHistoryEntry>,
    /// The time the letter was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// The time of the last change, in milliseconds since 1970.
    pub updated_ms: u64,
}

/// The parameters of a dead letter to add. The fields have the meaning they have in [`DeadLetter`].
#[derive(Clone, Debug, PartialEq)]
pub struct NewLetter {
    pub scope: String,
    pub source: LetterSource,
    pub title: String,
    pub priority: LetterPriority,
    pub class: String,
    pub reason: String,
    pub question: String,
    pub run: Option<RunId>,
    pub data: Value,
    /// The user or worker that adds the letter.
    pub by: String,
}

/// The kind of work a dead letter is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LetterSource {
    /// An event from outside, for instance from GitHub.
    Event,
    /// A task.
    Task,
    /// A run.
    Run,
}

/// The urgency of a dead letter.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LetterPriority {
    /// Can wait.
    Low,
    /// Should be looked at.
    Medium,
    /// Other work is blocked.
    High,
    /// Data or work may be lost.
    Critical,
}

/// The status of a dead letter.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LetterStatus {
    /// Waiting for a person.
    Queued,
    /// A retry is in progress.
    Retrying,
    /// The work is done.
    Resolved,
    /// A person decided not to do the work.
    Abandoned,
}

/// An entry in the history of a dead letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LetterHistoryEntry {
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The change.
    pub what: String,
    /// The user or worker that made the change.
    pub by: String,
}

/// Selects the dead letters to list.
#[derive(Clone, Debug, Default)]
pub struct LetterFilter {
    /// Only letters of this repository.
    pub scope: Option<String>,
    /// Only letters with one of these statuses; all if empty.
    pub statuses: Vec<LetterStatus>,
    /// The maximum number of letters; 0 for the maximum page size.
    pub limit: u32,
    /// The number of letters to skip, as returned in [`crate::JournalPage::next`].
    pub after: u64,
}

impl LetterSource {
    /// The name used in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            LetterSource::Event => "event",
            LetterSource::Task => "task",
            LetterSource::Run => "run",
        }
    }
}

impl LetterPriority {
    /// The name used in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            LetterPriority::Low => "low",
            LetterPriority::Medium => "medium",
            LetterPriority::High => "high",
            LetterPriority::Critical => "critical",
        }
    }
}

impl LetterStatus {
    /// All statuses, in the order of a letter's life.
    pub const ALL: &[LetterStatus] = &[
        LetterStatus::Queued,
        LetterStatus::Retrying,
        LetterStatus::Resolved,
        LetterStatus::Abandoned,
    ];

    /// The name used in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            LetterStatus::Queued => "queued",
            LetterStatus::Retrying => "retrying",
            LetterStatus::Resolved => "resolved",
            LetterStatus::Abandoned => "abandoned",
        }
    }

    /// Returns true if the letter still needs attention.
    pub fn is_open(self) -> bool {
        !matches!(self, LetterStatus::Resolved | LetterStatus::Abandoned)
    }

    /// Returns the reason if the transition to `to` is not allowed.
    pub fn check_transition(self, to: LetterStatus) -> Result<(), &'static str> {
        use LetterStatus::{Abandoned, Queued, Resolved, Retrying};
        match (self, to) {
            (Resolved, _) => Err("it is resolved, and that is the end of it"),
            (Abandoned, Queued) => Ok(()),
            (Abandoned, _) => Err("it was abandoned; put it back into the queue first"),
            (Retrying, Retrying) => Err("somebody is trying it again already"),
            (Queued, Queued) => Err("it is so already"),
            (Queued | Retrying, _) => Ok(()),
        }
    }
}

impl fmt::Display for LetterStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl NewLetter {
    /// Returns the digest that identifies repeated occurrences of the same failure.
    pub(crate) fn digest(&self) -> String {
        let same = serde_json::json!([self.source, self.title, self.data]).to_string();
        Sha256::digest(same.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl DeadLetter {
    /// Returns the last 8 characters of the id. They are the random part, so they tell letters
    /// apart.
    pub fn short(&self) -> &str {
        let start = self.id.len().saturating_sub(8);
        self.id.get(start..).unwrap_or(&self.id)
    }

    /// Records another occurrence of the same failure. If a retry was in progress, it has failed.
    pub(crate) fn record_occurrence(
        &mut self,
        reason: String,
        run: Option<RunId>,
        by: String,
        at_ms: u64,
    ) {
        self.times += 1;
        self.reason = reason;
        self.run = run.or(self.run.take());
        let what = match self.status {
            LetterStatus::Retrying => {
                self.status = LetterStatus::Queued;
                format!("it failed again: {}", self.reason)
            }
            _ => format!("the same came again: {}", self.reason),
        };
        self.add_history(at_ms, what, by);
    }

    /// Adds an entry to the history. The first one, which tells how the letter came about, is never
    /// dropped.
    pub(crate) fn add_history(&mut self, at_ms: u64, what: String, by: String) {
        let at_ms = at_ms.max(self.updated_ms);
        self.updated_ms = at_ms;
        self.history.push(LetterHistoryEntry { at_ms, what, by });
        if self.history.len() > HISTORY_MAX {
            self.history.remove(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_become_of_a_letter() {
        use LetterStatus::{Abandoned, Queued, Resolved, Retrying};
        for to in LetterStatus::ALL {
            assert!(Resolved.check_transition(*to).is_err(), "{to}");
            assert_eq!(Abandoned.check_transition(*to).is_ok(), *to == Queued, "{to}");
            assert_eq!(Retrying.check_transition(*to).is_ok(), *to != Retrying, "{to}");
        }
        assert!(
            Queued.check_transition(Retrying).is_ok() && Queued.check_transition(Queued).is_err()
        );
    }
}
