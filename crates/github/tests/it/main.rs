//! What the crate promises, seen from outside; the client against a fake GitHub.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

mod actor;
mod attacks;
mod client;
mod event;
mod fixtures;
mod hiding;
mod stranger;
mod trigger;
