//! The plan driver: works through the tasks of a plan one by one, lets agents implement and review
//! them in a worktree, and runs the declared checks. A run is complete only when plan, reviews and
//! checks agree.
//!
//! Decisions depend on the journal alone: [`PlanState`] is a fold over its events, [`decide::next`]
//! is a pure function, and a worker that takes over a run after a crash continues where the journal
//! ends.

pub mod codes;
pub mod decide;
pub mod document;
pub mod file;
pub mod keeper;
pub mod learnings;
pub mod lesson;
pub mod letter;
pub mod limits;
pub mod places;
pub mod prompt;
pub mod records;
pub mod request;
mod runner;
pub mod skills;
pub mod state;
pub mod verdict;
pub mod watchdog;
pub mod worktree_setup;

pub use request::{Asked, Bounds, EndingWord, Hand, Improve, KIND, PlanRequest, SkillRules};
pub use runner::{Crew, DriveError, Places, Preview, Runner, Station, deliver};
pub use state::PlanState;
