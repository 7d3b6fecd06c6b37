//! Integration tests of the skill crate, in one binary.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is a test")]

mod corpus;
mod hostile;
mod meter;
mod reload;
mod round_trip;
