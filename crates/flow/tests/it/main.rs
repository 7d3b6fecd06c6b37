//! Workflows from the outside: the engine in sentences, in random graphs, on every workflow that is shipped, and with runs in a journal.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod drive;
mod engine;
mod gates;
mod people;
mod properties;
mod random;
mod shipped;
mod store;
mod support;
