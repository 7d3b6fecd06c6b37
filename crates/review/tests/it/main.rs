//! Review skills: what is read out of them, and what the patterns of the pack find; stored reviews, and their reports.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is a test")]

mod extract;
mod report;
mod review_pack;
mod review_report;
mod store;
