//! Agents: the turn loop and its middleware, tools, permissions, the sandbox, sub-agents, and backends that let
//! somebody else's agent do the work.

pub mod backend;
pub mod beneath;
pub mod clock;
mod compaction;
pub mod config;
pub mod conversation;
pub mod definition;
pub mod event;
pub mod executor;
pub mod limits;
pub mod mcp;
pub mod middleware;
pub mod permission;
pub mod process;
pub mod run;
pub mod sandbox;
pub mod spending;
pub mod spill;
pub mod system;
pub mod tool;
pub mod tools;
pub mod workplace;

pub use config::Config;
pub use event::{Event, EventKind, Status};
pub use system::{Report, RunError, RunOptions, System};
