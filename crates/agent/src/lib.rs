//! Agents: the turn loop and its middleware, tools, permissions, the sandbox, sub-agents, and backends that let
//! somebody else's agent do the work.

pub mod backend;
pub mod clock;
pub mod event;
pub mod limits;
pub mod mcp;
pub mod permission;
pub mod process;
pub mod run;
pub mod sandbox;
pub mod tool;
pub mod tools;
pub mod workplace;
