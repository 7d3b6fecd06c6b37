//! The journal: everything that a run did, as events that are only ever added to.
//!
//! Runs and steps are folds of their events ([`fold`]). What is stored beside the events is the result of the same fold,
//! so that it can be asked for quickly; replaying a run's events has to give it again.

mod append;
mod changes;
pub mod error;
pub mod event;
pub mod fold;
mod journal;
pub mod limits;
mod order;
mod queue;
mod replay;
pub mod run;
mod store;
mod text;
mod write;

pub use append::NewRun;
pub use changes::Changes;
pub use error::JournalError;
pub use event::{Event, Payload};
pub use journal::{Cursor, Filter, Journal, NoCursor, Page, Target};
pub use order::Command;
pub use queue::{Claimed, Lease, Order, Rules, Worker};
pub use replay::{Difference, Replayed};
pub use run::{Run, RunId, RunStatus, Step, StepStatus, Wish};
pub use store::Clock;
