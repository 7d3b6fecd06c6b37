//! Workflows that are run: a folder each, with the state, the workflow that it was started with, and a lock.
//!
//! The engine ([`repertoire_flow`]) decides; this keeps. A change is acknowledged when the new state is on disk, and is made
//! under the run's lock, so that sub-agents that record at once all count.

pub mod desk;
pub mod find;
mod programs;
mod scripts;
pub mod shown;
mod store;

pub use programs::{ProgramError, check_command, is_built_in_check, run_check};
pub use scripts::{BeginScript, ScriptError, ScriptReport, ScriptRun, Stage};
pub use store::{Begin, Head, Listed, Run, RunError, Runs};
