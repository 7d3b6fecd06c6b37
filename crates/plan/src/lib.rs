//! The plan driver: takes the tasks of a plan one by one, lets agents do and review them in a worktree, runs the declared
//! checks, and calls a run complete when plan, reviews and checks agree on it, and not before.
//!
//! What happened is in the journal, and nothing else decides: [`PlanState`] is a fold of it, [`decide::next`] is a pure
//! function, and a worker that takes a run up after a crash goes on where the journal ends.

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
