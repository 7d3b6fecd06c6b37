//! Dead letters: what could not be handled, with all that is needed to take it up again. Nothing retries one by itself.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::limits::HISTORY_MAX;
use crate::run::RunId;

/// Something that could not be handled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetter {
    /// Its id.
    pub id: String,
    /// Which repository it is about.
    pub scope: String,
    /// What it was.
    pub source: LetterSource,
    /// What people know it by.
    pub title: String,
    /// How urgent it is.
    pub priority: Priority,
    /// What kind of failure it was: `permanent`, `substantive` and so on.
    pub class: String,
    /// Why it was given up.
    pub reason: String,
    /// The one question whose answer would let the work go on.
    pub question: String,
    /// The run that gave it up.
    pub run: Option<RunId>,
    /// All that is needed to take it up again.
    pub data: Value,
    /// How far it is.
    pub status: LetterStatus,
    /// How often the same came.
    pub times: u64,
    /// How often somebody tried it again.
    pub attempts: u64,
    /// What happened to it, the oldest first.
    pub history: Vec<Happened>,
    /// When it came, in milliseconds since 1970.
    pub created_ms: u64,
    /// When something last happened to it.
    pub updated_ms: u64,
}

/// A letter that is handed in.
#[derive(Clone, Debug, PartialEq)]
pub struct NewLetter {
    /// Which repository it is about.
    pub scope: String,
    /// What it was.
    pub source: LetterSource,
    /// What people know it by.
    pub title: String,
    /// How urgent it is.
    pub priority: Priority,
    /// What kind of failure it was.
    pub class: String,
    /// Why it was given up.
    pub reason: String,
    /// The one question whose answer would let the work go on.
    pub question: String,
    /// The run that gave it up.
    pub run: Option<RunId>,
    /// All that is needed to take it up again.
    pub data: Value,
    /// Who hands it in.
    pub by: String,
}

/// What a dead letter was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LetterSource {
    /// An event from outside.
    Event,
    /// A task.
    Task,
    /// A run.
    Run,
}

/// How urgent something is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// It can wait.
    Low,
    /// It should be looked at.
    Medium,
    /// Something does not go on before it is.
    High,
    /// Something may be lost.
    Critical,
}

/// How far a dead letter is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LetterStatus {
    /// It waits for somebody.
    Queued,
    /// Somebody tries it again.
    Retrying,
    /// It is done.
    Resolved,
    /// Somebody decided that it will not be done.
    Abandoned,
}

/// Something that happened to a dead letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Happened {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What.
    pub what: String,
    /// Who.
    pub by: String,
}

/// Which dead letters to list.
#[derive(Clone, Debug, Default)]
pub struct LetterFilter {
    /// Only of this repository.
    pub scope: Option<String>,
    /// Only these; all if empty.
    pub statuses: Vec<LetterStatus>,
    /// How many at most; 0 for as many as a page may have.
    pub limit: u32,
    /// How many to leave out: what [`crate::Page::next`] said.
    pub after: u64,
}

impl LetterSource {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            LetterSource::Event => "event",
            LetterSource::Task => "task",
            LetterSource::Run => "run",
        }
    }
}

impl Priority {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Medium => "medium",
            Priority::High => "high",
            Priority::Critical => "critical",
        }
    }
}

impl LetterStatus {
    /// All of them.
    pub const ALL: &[LetterStatus] = &[
        LetterStatus::Queued,
        LetterStatus::Retrying,
        LetterStatus::Resolved,
        LetterStatus::Abandoned,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            LetterStatus::Queued => "queued",
            LetterStatus::Retrying => "retrying",
            LetterStatus::Resolved => "resolved",
            LetterStatus::Abandoned => "abandoned",
        }
    }

    /// Whether somebody still has to do something about it.
    pub fn is_open(self) -> bool {
        !matches!(self, LetterStatus::Resolved | LetterStatus::Abandoned)
    }

    /// Whether it may become this, or why not.
    pub fn refuse(self, to: LetterStatus) -> Result<(), &'static str> {
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
    /// What tells that the same has come again.
    pub(crate) fn digest(&self) -> String {
        let same = serde_json::json!([self.source, self.title, self.data]).to_string();
        Sha256::digest(same.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl DeadLetter {
    /// The end of its id, which tells letters apart.
    pub fn short(&self) -> &str {
        let start = self.id.len().saturating_sub(8);
        self.id.get(start..).unwrap_or(&self.id)
    }

    /// The same came again. If somebody was trying it, that did not help.
    pub(crate) fn again(&mut self, reason: String, run: Option<RunId>, by: String, at_ms: u64) {
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
        self.note(at_ms, what, by);
    }

    /// One more line of its history. The first, which says how it came, always stays.
    pub(crate) fn note(&mut self, at_ms: u64, what: String, by: String) {
        let at_ms = at_ms.max(self.updated_ms);
        self.updated_ms = at_ms;
        self.history.push(Happened { at_ms, what, by });
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
            assert!(Resolved.refuse(*to).is_err(), "{to}");
            assert_eq!(Abandoned.refuse(*to).is_ok(), *to == Queued, "{to}");
            assert_eq!(Retrying.refuse(*to).is_ok(), *to != Retrying, "{to}");
        }
        assert!(Queued.refuse(Retrying).is_ok() && Queued.refuse(Queued).is_err());
    }
}
