//! `rep` as people meet it: the real binary, on folders like theirs, with what it prints and how it ends.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop there, and says why it did not begin"
)]

mod agents_tools;
mod book;
mod book_links;
mod browser;
mod completion;
mod config;
mod conformance;
mod consent;
mod conversation_kills;
mod demo_misc;
mod deps;
mod dlq;
mod doctor;
mod eval;
mod github;
mod github_detect;
mod init;
mod lint;
mod list;
mod matching;
mod mcp;
mod memory;
mod new_docs;
mod old_names;
mod pack;
mod page;
mod plan;
mod plan_crash;
mod plan_load;
mod read;
mod review;
mod run;
mod runs;
mod runs_git;
mod runs_kinds;
mod schemathesis;
mod serve;
mod setup;
mod show;
mod sync;
mod talking;
mod telemetry;
mod to_prompt_props;
mod trust;
mod verify;
mod workflow;
mod workflow_kills;
mod workspace;

/// A PostgreSQL server of its own.
#[path = "../../../journal/tests/it/server.rs"]
#[allow(dead_code, reason = "the tests of the journal need more of it")]
mod server;
