//! What can go wrong, by what the caller can do about it.

use crate::fold::FoldError;
use crate::run::{Run, RunId};

/// The words of a store, without its password.
pub type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why the journal did not do it. Nothing was stored then, except where it says so.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The lease is somebody else's by now: stop, and throw away what was done.
    #[error("worker `{worker}` no longer has run {run} (its token {token} is old): {now}")]
    Fenced {
        /// The run.
        run: RunId,
        /// The worker that asked.
        worker: String,
        /// The token that it showed.
        token: u64,
        /// How the run stands.
        now: String,
    },
    /// It makes no sense for this run.
    #[error("run {run}: {why}")]
    Refused {
        /// The run.
        run: RunId,
        /// Why, and what can be done.
        why: String,
    },
    /// There is no such run.
    #[error("there is no run `{text}`: {hint}")]
    NotFound {
        /// What was looked for.
        text: String,
        /// What there is.
        hint: String,
    },
    /// There is more than one.
    #[error("`{text}` is more than one run: {}{}", ids.join(", "), if *more { " and more" } else { "" })]
    Ambiguous {
        /// What was looked for.
        text: String,
        /// Which there are, as many as are shown.
        ids: Vec<String>,
        /// Whether there are still more.
        more: bool,
    },
    /// It cannot be remembered.
    #[error("this cannot be remembered: {why}")]
    NotRemembered {
        /// Why, and what can be done.
        why: String,
    },
    /// There is no such dead letter, or more than one.
    #[error("there is no dead letter `{text}`: {hint}")]
    NoLetter {
        /// What was looked for.
        text: String,
        /// What there is.
        hint: String,
    },
    /// It makes no sense for this dead letter.
    #[error("dead letter {letter}: {why}")]
    LetterRefused {
        /// Its id.
        letter: String,
        /// Why, and what can be done.
        why: String,
    },
    /// It is larger than the journal takes.
    #[error(
        "{what} has {size}, and the limit is {limit}; put large things into files, and their paths here"
    )]
    TooLarge {
        /// What.
        what: String,
        /// How large.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// It cannot follow what happened before.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The store was made by a newer version of this program.
    #[error(
        "{place} has schema version {found}, and this version of `rep` knows {known}: use a newer `rep`, or another journal"
    )]
    Newer {
        /// Where.
        place: String,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The file is damaged. Nothing is written to it any more.
    #[error(
        "the journal {place} is damaged ({what}); it is left as it is, and nothing is written to it. Restore a copy, or \
         save what can be read with `sqlite3 {place} .recover | sqlite3 recovered.sqlite` and put that file in its place"
    )]
    Damaged {
        /// Where.
        place: String,
        /// The first sign of it, in SQLite's words.
        what: String,
    },
    /// The thread that reads or writes the SQLite file has panicked or ended. The answer is incomplete.
    #[error(
        "the database worker of {place} crashed, so its answer is incomplete; check the file with `rep doctor`, and try again"
    )]
    WorkerCrashed {
        /// Where.
        place: String,
    },
    /// The database belongs to something else.
    #[error("{place} is a database, but not a journal: name another one")]
    NotAJournal {
        /// Where.
        place: String,
    },
    /// The place cannot be used.
    #[error("the journal {place} cannot be opened: {why}")]
    Open {
        /// Where.
        place: String,
        /// Why.
        why: String,
    },
    /// The store did not answer although it was asked again and again. What was being written may be stored or not.
    #[error("the journal does not answer ({attempts} tries): {source}")]
    Unreachable {
        /// Tries.
        attempts: u32,
        /// The last answer.
        source: Source,
    },
    /// The store refused.
    #[error("the journal: {source}")]
    Store {
        /// What it said.
        source: Source,
    },
    /// Something stored cannot be read.
    #[error("run {run}: {what} cannot be read: {source}")]
    Unreadable {
        /// The run.
        run: String,
        /// What.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
}

impl JournalError {
    /// Whether trying again cannot help as long as the journal is as it is.
    pub fn is_permanent(&self) -> bool {
        matches!(
            self,
            JournalError::Damaged { .. }
                | JournalError::Newer { .. }
                | JournalError::NotAJournal { .. }
        )
    }

    pub(crate) fn refused(run: &RunId, why: impl Into<String>) -> Self {
        JournalError::Refused { run: run.clone(), why: why.into() }
    }

    pub(crate) fn unknown(id: &RunId) -> Self {
        let hint = "no run of this journal has that id".to_owned();
        JournalError::NotFound { text: id.to_string(), hint }
    }
}

/// How a run stands, for the one who lost it.
pub(crate) fn standing(run: &Run) -> String {
    match &run.worker {
        Some(worker) => format!("`{worker}` has it with token {}", run.token),
        None => format!("it is {}", run.status),
    }
}
