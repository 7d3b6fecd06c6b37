//! The journal: an append-only event log of everything runs do.
//!
//! Runs and steps are folds of their events ([`fold`]). The store keeps the result of that fold
//! beside the events, for fast queries; replaying a run's events must yield the same result. Every
//! event carries a digest that is chained to the event before it, and every other row a digest of
//! its own: what is read is verified, and content that changed in the store is an error.
//!
//! The journal is stored in a SQLite file, or in PostgreSQL when one machine is not enough; no
//! other crate contains SQL. Workers claim runs from its queue under leases, and every write
//! presents the fencing token of the lease ([`Journal::append`]).
//!
//! ```
//! use std::sync::Arc;
//!
//! use repertoire_journal::{Journal, NewRun, Payload, ClaimRules, RunId, RunStatus, Target, QueueWorker};
//!
//! # async fn example(folder: camino::Utf8PathBuf) -> Result<(), repertoire_journal::JournalError> {
//! let journal = Journal::open(&Target::File(folder.join("journal.db")), Arc::new(|| 1_000)).await?;
//! let run = journal
//!     .create(NewRun {
//!         id: RunId::new(),
//!         kind: "plan".into(),
//!         name: "tidy up".into(),
//!         workspace: "/repo".into(),
//!         labels: Default::default(),
//!         priority: 0,
//!         limits: Default::default(),
//!         request: serde_json::json!({ "plan": "PLAN.md" }),
//!     })
//!     .await?;
//!
//! let worker = QueueWorker {
//!     name: "here".into(),
//!     labels: Default::default(),
//!     kinds: ["plan".to_owned()].into(),
//!     lease: std::time::Duration::from_secs(30),
//! };
//! let claimed = journal.claim(&worker, &ClaimRules::default()).await?.expect("the run that was just made");
//! assert_eq!(claimed.run.id, run.id);
//!
//! let done = Payload::RunCompleted { summary: "nothing to do".into(), head: None };
//! let run = journal.append(&claimed.lease, vec![done]).await?;
//! assert_eq!(run.status, RunStatus::Completed);
//! assert!(journal.replay_run(&run.id).await?.differences.is_empty());
//! # journal.close().await;
//! # Ok(())
//! # }
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = camino::Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
//! # tokio::runtime::Runtime::new().unwrap().block_on(example(path)).unwrap();
//! ```

mod append;
mod boot_clock;
mod changes;
mod commands;
mod delete_run;
pub mod error;
pub mod event;
pub mod fold;
mod journal;
mod lease;
pub mod letter;
mod letter_operations;
pub mod limits;
pub mod memory;
mod memory_operations;
pub mod metrics;
mod queue;
pub mod redact;
mod replay;
pub mod run;
pub mod run_folder;
mod sanitise;
mod store;
mod stored_batch;
mod transaction;
mod verify;

pub use append::NewRun;
pub use boot_clock::BootClock;
pub use changes::ChangeSubscription;
pub use commands::Command;
pub use delete_run::RunRemovalError;
pub use error::JournalError;
pub use event::{Event, Payload};
pub use journal::{
    CursorParseError, DamagedRow, EventCursor, EventPage, Filter, Journal, JournalPage, Target,
};
pub use letter::{DeadLetter, LetterFilter, LetterStatus, NewLetter};
pub use memory::{FailureFix, FixOutcome, FixRemedy, KnownFailure, KnownFix};
pub use memory_operations::{FailureFilter, MemoryLesson};
pub use metrics::JournalMetrics;
pub use queue::{ClaimRules, ClaimedRun, QueueOrder, QueueWorker, RunLease};
pub use replay::{ReplayDifference, ReplayReport};
pub use run::{Run, RunId, RunKind, RunStatus, RunStopRequest, Step, StepStatus};
pub use run_folder::{RunFolder, RunFolderError, RunLock};
pub use store::JournalClock;
pub use verify::{DigestProblem, DigestReport};
