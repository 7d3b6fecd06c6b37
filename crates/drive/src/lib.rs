//! Drivers: loops that run agents over several turns, steps or processes, such as conversations,
//! plans, reviews and GitHub tasks.
//!
//! A [`Driver`] runs agents and stores their conversations in a [`Store`]: one folder per
//! conversation with its state, its events and a lock.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use repertoire_agent::{RunOptions, System};
//! use repertoire_drive::{Driver, Store};
//!
//! let driver = Driver::new(System::builder(), Store::new("conversations"))?;
//! let report = driver.send("default", "What is in this folder?", RunOptions::default()).await?;
//! println!("{} (go on with {})", report.text, report.conversation);
//! # Ok(())
//! # }
//! ```

pub mod checks;
pub mod conversation;
mod files;
pub mod git;
pub mod github;
pub mod improve;
pub mod limits;
pub mod plan;
mod program;
pub mod review;
pub mod runs;
pub mod usage;
pub mod worker;
pub mod workflow;
pub mod worktree;

pub use conversation::{Driver, Store, StoreError, Talk};
pub use usage::SkillUse;
