//! The review driver: gathers a change, asks agents about it, and decides which of their findings to report.
//!
//! Agents only propose findings. The engine checks that each one cites changed lines, decides which are proven by a
//! pattern and which need a validator's agreement, and merges duplicates. A [`record::ReviewRecord`] holds the whole result,
//! including the findings that were left out and why.

pub mod admit;
pub mod aggregate;
pub mod baseline;
pub mod change;
pub mod codes;
pub mod content;
pub mod enclosing;
pub mod extract;
pub mod finding;
pub mod fingerprints;
pub mod instructions;
pub mod limits;
pub mod lineup;
pub mod patterns;
pub mod pipeline;
pub mod prompt;
pub mod questions;
pub mod record;
pub mod report;
pub mod rules;
pub mod run_event;
pub mod scope;
pub mod store;
pub mod suppress;
pub mod synthesis;
pub mod validate;
