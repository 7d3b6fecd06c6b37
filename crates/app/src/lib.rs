//! Repertoire as a library: configuration, environment, the assembly of agents, plans and reviews, conversations that
//! are kept, and the worker that drives runs of the journal. It prints nothing and asks nothing.
//!
//! An [`AppContext`] holds the environment and the configuration (`repertoire.toml`), and builds everything else: a
//! system of agents ([`agent_setup`]), a skill selector ([`selector_cache`]), runs of plans ([`plan_setup`]) and reviews
//! ([`review_setup`]).
//!
//! A [`ConversationDriver`] runs agents and records their conversations in a [`ConversationStore`]: each is a run of the
//! journal, with a folder for its lock.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use repertoire::agent_setup::AgentRunOptions;
//! use repertoire::config::ConfigFlags;
//! use repertoire::{AppContext, AppEnvironment};
//!
//! let env = AppEnvironment::of_process()?;
//! let ctx = AppContext::load(&env, &ConfigFlags::default())?;
//! let options = AgentRunOptions::default();
//! let mut warnings = Vec::new();
//! let (driver, servers) = ctx.build_driver(&options, &mut warnings).await?;
//! let run = ctx.run_options(&options)?;
//! let report = driver.send_prompt("default", "What is in this folder?", run).await?;
//! println!("{} (go on with {})", report.text, report.conversation);
//! servers.close().await;
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

pub mod agent_setup;
pub mod config;
pub mod consent;
pub mod context;
pub mod conversation;
pub mod env;
pub mod error;
pub mod github_setup;
pub mod limits;
pub mod permission_rules;
pub mod plan_setup;
pub mod review_setup;
pub mod runs;
pub mod selector_cache;
pub mod telemetry;
pub mod usage;
pub mod worker;

pub use context::AppContext;
pub use conversation::{
    ConversationDriver, ConversationStore, ConversationStoreError, OpenConversation,
};
pub use env::AppEnvironment;
pub use error::{AppError, AppErrorKind};
pub use usage::SkillUse;
