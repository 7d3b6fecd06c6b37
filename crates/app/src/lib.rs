//! Repertoire as a library: conversations that are kept, and the worker that drives runs of the journal.
//!
//! A [`ConversationDriver`] runs agents and stores their conversations in a [`ConversationStore`]: one folder per
//! conversation with its state, its events and a lock.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use repertoire_agent::{RunOptions, System};
//! use repertoire::{ConversationDriver, ConversationStore};
//!
//! let driver = ConversationDriver::new(System::builder(), ConversationStore::new("conversations"))?;
//! let report = driver
//!     .send_prompt("default", "What is in this folder?", RunOptions::default())
//!     .await?;
//! println!("{} (go on with {})", report.text, report.conversation);
//! # Ok(())
//! # }
//! ```

pub use repertoire_agent as agent;
pub use repertoire_checks as checks;
pub use repertoire_flow as flow;
pub use repertoire_git as git;
pub use repertoire_github as github;
pub use repertoire_journal as journal;
pub use repertoire_model as model;
pub use repertoire_plan as plan;
pub use repertoire_review as review;
pub use repertoire_sandbox as sandbox;
pub use repertoire_select as select;
pub use repertoire_skill as skill;
pub use repertoire_text as text;

pub mod conversation;
pub mod limits;
pub mod runs;
pub mod usage;
pub mod worker;

pub use conversation::{
    ConversationDriver, ConversationStore, ConversationStoreError, OpenConversation,
};
pub use usage::SkillUse;
