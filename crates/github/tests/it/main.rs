//! The client against a fake GitHub.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

mod client;
