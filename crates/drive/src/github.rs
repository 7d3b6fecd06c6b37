//! The driver for GitHub: from an event to work on a branch, and back to a comment.

pub mod automerge;
pub mod protected;
pub mod publish;
pub mod tasks;
pub mod tracking;
