//! Workflow runs: one folder each, with the state, the workflow it was started with, and a lock.
//!
//! The engine ([`repertoire_flow`]) decides; this module stores. A change is acknowledged once the
//! new state is on disk, and is made under the run's lock, so that no record of concurrent
//! sub-agents is lost.

pub mod desk;
pub mod find;
mod programs;
mod scripts;
pub mod shown;
mod store;

pub use programs::{ProgramError, check_command, is_built_in_check, run_check};
pub use scripts::{BeginScript, ScriptError, ScriptReport, ScriptRun, Stage};
pub use store::{Begin, Head, Listed, Run, RunError, Runs};
