//! Tests of several crates that need a scripted model, a journal or whole repositories.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

mod checks;
mod conversations;
mod git;
mod github;
mod github_attacks;
mod github_base;
mod github_events;
mod github_modes;
mod memory;
mod plan;
mod plan_asked;
mod plan_attacks;
mod plan_improve;
mod recover;
mod repo;
mod review;
mod review_scope;
#[path = "../../../journal/tests/it/server.rs"]
#[allow(dead_code, reason = "the tests of the journal need more of it")]
mod server;
mod telemetry;
mod verify;
mod worktree;
