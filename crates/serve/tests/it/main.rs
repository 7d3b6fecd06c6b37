//! The daemon over real sockets.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod api;
mod house;
