//! Agents: the turn loop and its middleware, tools, permissions, sub-agents, and
//! backends that delegate runs to external agents.
//!
//! # A tour
//!
//! - [`System`] is the entry point: [`System::builder`] combines agents, skills, tools and models,
//!   [`System::run`] runs an agent on a task, [`System::preview`] shows what would be sent.
//! - [`definition`] parses agent definitions; [`config`] holds the settings of a system.
//! - [`middleware`] is one turn as a chain of links, in the order of [`middleware::standard_chain`].
//! - [`conversation`] holds the messages and the activated skills; [`spending`] enforces the limits
//!   of a run.
//! - [`tool`] defines the tool interface, [`tools`] has one tool per file, [`mcp`] adds tools of
//!   MCP servers. [`permission`] decides which calls are allowed; the crate `repertoire_sandbox` confines programs
//!   and supervises them.
//! - [`effect`] defines the effects that a run can have, and the limits on them: tool lists imply
//!   effects.
//! - [`executor`] executes one skill or sub-agent by name.
//! - [`backend`] delegates a whole run to Claude Code, Codex, opencode, Gemini, an ACP agent or any
//!   command.
//! - [`event`] defines the events of a run, the same for all backends.
//!
//! ```
//! use std::sync::Arc;
//!
//! use repertoire_agent::{EventKind, RunOptions, System};
//! use repertoire_model::client::DeltaStream;
//! use repertoire_model::{ResponseDelta, ModelProvider, ModelRequest, StopReason};
//! use repertoire_text::fs::write_atomic;
//!
//! /// A model that always says the same.
//! struct Agreeable;
//!
//! impl ModelProvider for Agreeable {
//!     fn stream(&self, _request: &ModelRequest<'_>) -> DeltaStream {
//!         let answer = [ResponseDelta::Text("Yes.".into()), ResponseDelta::Stop(StopReason::EndTurn)];
//!         Box::pin(futures_util::stream::iter(answer.map(Ok)))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let here = camino::Utf8PathBuf::try_from(dir.path().to_path_buf())?;
//! let skill = "---\nname: invoices\ndescription: How invoices are written here.\n---\nRound up.\n";
//! write_atomic(&here.join("skills/invoices/SKILL.md"), skill.as_bytes())?;
//!
//! let system = System::builder()
//!     .skills_from(here.join("skills"))
//!     .work_dir(&here)
//!     .provider(Arc::new(Agreeable))
//!     .on_event(Arc::new(|event| {
//!         if let EventKind::SkillLoaded { skill, reason, .. } = &event.kind {
//!             println!("{skill}: {reason}");
//!         }
//!     }))
//!     .build()?;
//! let report = system.run("default", "Write the invoices for May", RunOptions::default()).await;
//! assert_eq!(report.skills, ["invoices"]);
//! assert_eq!(report.into_answer()?, "Yes.");
//! # Ok(())
//! # }
//! ```

pub mod backend;
mod compaction;
pub mod config;
pub mod conversation;
pub mod definition;
pub mod effect;
pub mod event;
pub mod executor;
pub mod form;
pub mod limits;
pub mod mcp;
pub mod middleware;
pub mod permission;
pub mod run;
pub mod spending;
pub mod spill;
pub mod system;
pub mod tool;
pub mod tools;

pub use config::AgentConfig;
pub use event::{AgentEvent, AgentRunStatus, EventKind};
pub use system::{AgentRunError, RunOptions, RunReport, System};
