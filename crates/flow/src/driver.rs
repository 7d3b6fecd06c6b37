//! Workflow runs: events in the journal, from which the engine computes the state.
//!
//! The engine ([`crate::engine`]) decides; this module records. A change is acknowledged once its
//! events are in the journal. Two processes that change one run at the same time don't wait for each
//! other: the second one reads the run again, so that no record of concurrent sub-agents is lost.

pub mod events;
pub mod find;
pub mod fold;
pub mod json_output;
pub mod operations;
mod programs;
mod scripts;
mod store;
mod stored_run;
mod work_state;

pub use events::{ScriptReport, WorkflowRunEvent, WorkflowRunRequest};
pub use programs::{ProgramError, check_command, is_built_in_check, run_check};
pub use scripts::{NewScriptRun, ScriptDecision, ScriptEnvironment, ScriptError, ScriptRun};
pub use store::{NewWorkflowRun, WorkflowRunError, WorkflowRunListEntry, WorkflowRunStore};
pub use stored_run::{AnyWorkflowRun, StoredWorkflowRun, WorkflowRunMetadata};
