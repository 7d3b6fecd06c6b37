//! The analysis of real output of tools.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

mod analyse;
