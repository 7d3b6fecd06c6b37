//! Whole runs against a scripted model server.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod commands;
mod executing;
mod faults;
mod lasting;
mod loops;
mod permissions;
mod seeds;
mod strangers;
mod udbud;
mod workspace;
