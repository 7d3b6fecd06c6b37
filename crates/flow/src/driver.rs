//! Workflow runs: one folder each, with the state, the workflow it was started with, and a lock.
//!
//! The engine ([`crate::engine`]) decides; this module stores. A change is acknowledged once the
//! new state is on disk, and is made under the run's lock, so that no record of concurrent
//! sub-agents is lost.

pub mod find;
pub mod json_output;
pub mod operations;
mod programs;
mod scripts;
mod store;

pub use programs::{ProgramError, check_command, is_built_in_check, run_check};
pub use scripts::{NewScriptRun, ScriptEnvironment, ScriptError, ScriptReport, ScriptRun};
pub use store::{
    NewWorkflowRun, StoredWorkflowRun, WorkflowRunError, WorkflowRunListEntry, WorkflowRunMetadata,
    WorkflowRunStore,
};
