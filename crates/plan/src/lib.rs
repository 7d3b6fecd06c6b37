//! The plan driver: works through the tasks of a plan one by one, lets agents implement and review
//! them in a worktree, and runs the declared checks. A run is complete only when plan, reviews and
//! checks agree.
//!
//! Decisions depend on the journal alone: [`PlanState`] is a fold over its events, [`decide::decide_next`]
//! is a pure function, and a worker that takes over a run after a crash continues where the journal
//! ends.

pub mod codes;
pub mod dead_letter;
pub mod decide;
pub mod document;
pub mod file;
pub mod learnings;
pub mod lesson;
pub mod limits;
pub mod locations;
pub mod plan_sync;
pub mod prompt;
pub mod records;
pub mod request;
mod runner;
pub mod skills;
pub mod state;
pub mod step_result;
pub mod verdict;
pub mod watchdog;
pub mod worktree_setup;

pub use request::{
    AdHocTask, KIND, PlanDeliveryMode, PlanLimits, PlanRequest, PlanStepAgent, RecoverySettings,
    SkillRules,
};
pub use runner::{
    DriveError, PlanAgentProvider, PlanAgentSetup, PlanPromptPreview, PlanRunner, RunFolders,
    deliver_work,
};
pub use state::PlanState;
pub use step_result::{CheckResultSummary, PlanStepResult};
