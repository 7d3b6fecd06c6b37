//! What is served, as clients meet it: over real sockets and streams.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

mod api;
mod events;
mod guard;
mod mcp;
mod serve_state;
