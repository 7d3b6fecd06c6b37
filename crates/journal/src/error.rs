//! Errors of the journal, grouped by what the caller can do about them.

use crate::fold::FoldError;
use crate::run::{Run, RunId};

/// An error of the store, with passwords removed.
pub type StoreErrorSource = Box<dyn std::error::Error + Send + Sync>;

/// The reason an operation of the journal failed. Nothing was stored, except where a variant says
/// otherwise.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another worker holds the lease by now: stop, and discard the work.
    #[error("worker `{worker}` no longer has run {run} (its token {token} is old): {now}")]
    Fenced {
        run: RunId,
        /// The worker that asked.
        worker: String,
        /// The outdated token of that worker.
        token: u64,
        /// The current state of the run.
        now: String,
    },
    /// The operation is not allowed for this run.
    #[error("run {run}: {why}")]
    Refused {
        run: RunId,
        /// The reason, and what can be done.
        why: String,
    },
    /// Another process has appended events to the run in the meantime: read it again.
    #[error("run {run} has {found} events by now, not {expected}: another process continued it")]
    Conflict { run: RunId, expected: u64, found: u64 },
    /// The id is already in use.
    #[error("there is a run `{run}` already")]
    Exists { run: RunId },
    /// No run matches.
    #[error("there is no run `{text}`: {hint}")]
    NotFound {
        /// The id, part of an id, or name that was looked for.
        text: String,
        hint: String,
    },
    /// More than one run matches.
    #[error("`{text}` is more than one run: {}{}", ids.join(", "), if *more { " and more" } else { "" })]
    Ambiguous {
        /// The part of an id or the name that was looked for.
        text: String,
        /// The matching ids, at most `AMBIGUOUS_MAX`.
        ids: Vec<String>,
        /// True if there are more matches than `ids` holds.
        more: bool,
    },
    /// The fact or fix cannot be stored in the memory.
    #[error("this cannot be remembered: {why}")]
    NotRemembered {
        /// The reason, and what can be done.
        why: String,
    },
    /// No dead letter matches, or more than one does.
    #[error("there is no dead letter `{text}`: {hint}")]
    NoLetter {
        /// The id or part of an id that was looked for.
        text: String,
        hint: String,
    },
    /// The operation is not allowed for this dead letter.
    #[error("dead letter {letter}: {why}")]
    LetterRefused {
        /// The short id.
        letter: String,
        /// The reason, and what can be done.
        why: String,
    },
    /// A value exceeds a size limit of the journal.
    #[error(
        "{what} has {size}, and the limit is {limit}; put large things into files, and their paths here"
    )]
    TooLarge { what: String, size: usize, limit: usize },
    /// An event cannot follow the events before it.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The store has the schema of a newer version of this program.
    #[error(
        "{place} has schema version {found}, and this version of `rep` knows {known}: use a newer `rep`, or another journal"
    )]
    Newer { place: String, found: i64, known: i64 },
    /// The file is damaged. Nothing more is written to it.
    #[error(
        "the journal {place} is damaged ({what}); it is left as it is, and nothing is written to it. Restore a copy, or \
         save what can be read with `sqlite3 {place} .recover | sqlite3 recovered.sqlite` and put that file in its place"
    )]
    Damaged {
        place: String,
        /// The first problem found, in SQLite's words.
        what: String,
    },
    /// A row does not fit its digest: it was changed by something else than the journal. Nothing is
    /// added to its run; everything else can still be used.
    #[error(
        "a row of the journal is damaged ({what}); everything else can still be used. Restore a copy of the database{}",
        run.as_ref().map(|run| format!(", or remove the run with `rep runs rm --force {run}`")).unwrap_or_default()
    )]
    Altered {
        /// The run that the row belongs to, if it belongs to one.
        run: Option<RunId>,
        /// The row that does not fit its digest.
        what: String,
    },
    /// The thread that reads or writes the SQLite file panicked or ended, so the answer is
    /// incomplete.
    #[error(
        "the database worker of {place} crashed, so its answer is incomplete; check the file with `rep doctor`, and try again"
    )]
    WorkerCrashed { place: String },
    /// The database is not a journal.
    #[error("{place} is a database, but not a journal: name another one")]
    NotAJournal { place: String },
    /// The journal cannot be opened.
    #[error("the journal {place} cannot be opened: {why}")]
    Open { place: String, why: String },
    /// The store did not respond after several attempts. A write may or may not have been stored.
    #[error("the journal does not answer ({attempts} tries): {source}")]
    Unreachable {
        attempts: u32,
        /// The error of the last attempt.
        source: StoreErrorSource,
    },
    /// The store returned an error that a retry cannot fix.
    #[error("the journal: {source}")]
    Store { source: StoreErrorSource },
    /// A stored value cannot be decoded.
    #[error("run {run}: {what} cannot be read: {source}")]
    Unreadable { run: String, what: String, source: serde_json::Error },
}

impl JournalError {
    /// Returns true if a retry cannot succeed while the journal is in this state.
    pub fn is_permanent(&self) -> bool {
        matches!(
            self,
            JournalError::Damaged { .. }
                | JournalError::Newer { .. }
                | JournalError::NotAJournal { .. }
        )
    }

    /// Returns the problem if it concerns a single run, which is damaged or written by a later
    /// version. Other runs can still be used.
    pub fn run_problem(&self) -> Option<String> {
        match self {
            JournalError::Altered { what, .. } => Some(what.clone()),
            JournalError::Unreadable { .. } => Some(self.to_string()),
            _ => None,
        }
    }

    pub(crate) fn refused(run: &RunId, why: impl Into<String>) -> Self {
        JournalError::Refused { run: run.clone(), why: why.into() }
    }

    pub(crate) fn unknown_run(id: &RunId) -> Self {
        let hint = "no run of this journal has that id".to_owned();
        JournalError::NotFound { text: id.to_string(), hint }
    }
}

/// Describes the current holder or status of a run, for a worker that lost its lease.
pub(crate) fn describe_holder(run: &Run) -> String {
    match &run.worker {
        Some(worker) => format!("`{worker}` has it with token {}", run.token),
        None => format!("it is {}", run.status),
    }
}
