//! The journal: everything that a run did, as events that are only ever added to.
//!
//! Runs and steps are folds of their events ([`fold`]). What is stored beside the events is the result of the same fold,
//! so that it can be asked for quickly; replaying a run's events has to give it again.

pub mod event;
pub mod fold;
pub mod limits;
pub mod run;

pub use event::{Event, Payload};
pub use run::{Run, RunId, RunStatus, Step, StepStatus};
